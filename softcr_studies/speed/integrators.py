"""Our stepper beside SciPy's BDF: same equations, equal error."""

import time
from functools import cache, partial

import numpy as np
from scipy.integrate import solve_ivp

from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_studies.speed.motion import (
    PERIOD,
    mean_distance,
    radau_states,
    three_phase_pressures,
    tip_positions,
)
from softcr_studies.speed.rod import OURS, UNIT, step_error, step_timing
from softcr_studies.speed.timing import (
    FEWEST,
    Baseline,
    Effort,
    robot,
    speed_study,
    timing_of,
    told,
)
from softcr_studies.study import Result

TOLERANCES = 1e-2 * 0.8 ** np.arange(20)
CASE = "n = 5 at equal tip error"
NUMERICAL, EXACT = "SciPy BDF, numerical Jacobian", "SciPy BDF, exact Jacobian"


def ours(effort: Effort) -> Result:
    """A step of the reference motion."""
    rod, pressures, true_tips = _motion(effort.periods)
    error = step_error(rod, pressures, true_tips)
    return told(step_timing(rod, pressures, effort), UNIT, error)


def bdf(exact: bool, effort: Effort) -> Result:
    """BDF at the loosest tolerance at which it is as good as we are."""
    rod, pressures, true_tips = _motion(effort.periods)
    error, found, tolerance = step_error(rod, pressures, true_tips), np.inf, 0.0
    for tolerance in TOLERANCES:
        states = _integrate_with_bdf(rod, pressures, exact, tolerance)
        found = mean_distance(tip_positions(rod, states), true_tips)
        if found <= error:
            break
    durations = []
    for _ in range(FEWEST):
        begin = time.perf_counter()
        _integrate_with_bdf(rod, pressures, exact, tolerance)
        durations.append(time.perf_counter() - begin)
    note = (
        f"BDF at rtol {tolerance:.1e}; right-hand side and Jacobian are our compiled ones; one "
        "integration, pressures jump inside"
    )
    return told(timing_of(durations).times(1e6 / len(pressures)), UNIT, found, note)


@cache
def _motion(periods: int) -> tuple[CosseratRod, np.ndarray, np.ndarray]:
    """Rod, pressures (T, 3) [Pa], true tips (T, 3) [m]."""
    rod, pressures = CosseratRod(robot(), 5), three_phase_pressures(periods)
    return rod, pressures, tip_positions(rod, radau_states(rod, pressures))


def _integrate_with_bdf(
    rod: CosseratRod, pressures: np.ndarray, exact: bool, tolerance: float
) -> np.ndarray:
    """(T, 12 (n + 1)) states from rest.

    One integration for the whole motion: to start it again at every jump of the pressures is not
    cheaper at this accuracy.
    """
    last = len(pressures) - 1

    def held(now: float) -> np.ndarray:
        return pressures[min(last, int(now / PERIOD + 1e-9))]

    solution = solve_ivp(
        lambda now, y: rod.derivative(y, held(now)),
        (0.0, len(pressures) * PERIOD),
        rod.rest_state(),
        method="BDF",
        jac=(lambda now, y: rod.linearize(y, held(now))[0]) if exact else None,
        t_eval=np.arange(1, len(pressures) + 1) * PERIOD,
        rtol=tolerance,
        atol=0.1 * tolerance * RodPrediction(rod).state_scale,
    )
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
