"""Our stepper beside SciPy's BDF: same equations, equal error."""

import timeit
from functools import cache, partial

import numpy as np
from scipy.integrate import solve_ivp

from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_studies.frame.study import Result
from softcr_studies.speed import motion
from softcr_studies.speed.rod import OURS, UNIT
from softcr_studies.speed.timing import FEWEST, Baseline, Effort, speed_study, told

TOLERANCES = 1e-2 * 0.8 ** np.arange(20)
CASE = "n = 5 at equal tip error"
NUMERICAL, EXACT = "SciPy BDF, numerical Jacobian", "SciPy BDF, exact Jacobian"


def ours(effort: Effort) -> Result:
    """A step of the reference motion."""
    rod, _, _, error = _motion(effort.periods)
    return told(1e6 * motion.step_durations(rod, effort), UNIT, error)


def bdf(exact: bool, effort: Effort) -> Result:
    """BDF at the loosest tolerance at which it is as good as we are."""
    rod, pressures, true_tips, error = _motion(effort.periods)
    found, tolerance = np.inf, 0.0
    for tolerance in TOLERANCES:
        states = _integrate_with_bdf(rod, pressures, exact, tolerance)
        found = motion.mean_distance(motion.tip_positions(rod, states), true_tips)
        if found <= error:
            break
    durations = timeit.repeat(
        lambda: _integrate_with_bdf(rod, pressures, exact, tolerance), repeat=FEWEST, number=1
    )
    note = (
        f"BDF at rtol {tolerance:.1e}; right-hand side and Jacobian are our compiled ones; one "
        "integration, pressures jump inside"
    )
    return told(1e6 * np.array(durations) / len(pressures), UNIT, found, note)


@cache
def _motion(periods: int) -> tuple[CosseratRod, np.ndarray, np.ndarray, float]:
    """Rod, pressures (T, 3) [Pa], true tips (T, 3) and our mean distance from them [m]."""
    rod, pressures = motion.make_rod(), motion.three_phase_pressures(periods)
    true = motion.tip_positions(rod, motion.radau_states(rod, pressures))
    ours = motion.tip_positions(rod, motion.from_rest(rod, pressures))
    return rod, pressures, true, motion.mean_distance(ours, true)


def _integrate_with_bdf(
    rod: CosseratRod, pressures: np.ndarray, exact: bool, tolerance: float
) -> np.ndarray:
    """(T, 12 (n + 1)) states from rest.

    One integration for the whole motion: to start it again at every jump of the pressures is not
    cheaper at this accuracy.
    """
    last = len(pressures) - 1

    def held(now: float) -> np.ndarray:
        return pressures[min(last, int(now / motion.PERIOD + 1e-9))]

    solution = solve_ivp(
        lambda now, y: rod.derivative(y, held(now)), (0.0, len(pressures) * motion.PERIOD),
        rod.rest_state(), method="BDF",
        jac=(lambda now, y: rod.linearize(y, held(now))[0]) if exact else None,
        t_eval=np.arange(1, len(pressures) + 1) * motion.PERIOD,
        rtol=tolerance, atol=0.1 * tolerance * RodPrediction(rod).state_scale,
    )  # fmt: skip
    return np.ascontiguousarray(solution.y.T)


STUDY = speed_study(
    "speed/integrators",
    "our stepper beside SciPy's BDF at equal error",
    {
        (CASE, OURS): ours,
        (CASE, NUMERICAL): partial(bdf, False),
        (CASE, EXACT): partial(bdf, True),
    },
    [UNIT],
    [Baseline((CASE, OURS), (CASE, name), must=100.0) for name in (NUMERICAL, EXACT)],
)
