"""Rows: our stepper beside SciPy's BDF, same equations, equal error."""

import time
from collections.abc import Iterator

import numpy as np
from scipy.integrate import solve_ivp

from softcr_models.prediction import RodPrediction
from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_tools.benchmarks.reference_motion import (
    PERIOD,
    mean_distance,
    radau_states,
    three_phase_pressures,
    tip_positions,
)
from softcr_tools.benchmarks.rod_steps import UNIT, step_error, step_timing
from softcr_tools.benchmarks.row import Requirement, Rival, Row
from softcr_tools.benchmarks.timing import FEWEST, Effort, timing_of

TOLERANCES = 1e-2 * 0.8 ** np.arange(20)


def rows(robot: Robot, effort: Effort) -> Iterator[Row]:
    """BDF with a numerical and with the exact Jacobian, at the loosest tolerance that will do."""
    rod = CosseratRod(robot, 5)
    pressures = three_phase_pressures(effort.periods)
    true_tips = tip_positions(rod, radau_states(rod, pressures))
    error = step_error(rod, pressures, true_tips)
    for name, exact in (("numerical", False), ("exact", True)):
        tolerance, bdf_error = _equal_tolerance(rod, pressures, exact, true_tips, error)
        bdf = 1e6 / len(pressures) * _median_time(rod, pressures, exact, tolerance)
        timing = step_timing(rod, pressures, effort)
        yield Row(
            f"n = 5 beside BDF, {name} Jacobian",
            UNIT,
            timing,
            error,
            Rival("SciPy BDF", bdf),
            (Requirement(bdf / timing.median, "x", 100.0, at_least=True),),
            f"BDF at rtol {tolerance:.1e} is {1e3 * bdf_error:.3f} mm off; right-hand side and "
            "Jacobian are our compiled ones; one integration, pressures jump inside",
        )


def _equal_tolerance(
    rod: CosseratRod, pressures: np.ndarray, exact: bool, true_tips: np.ndarray, error: float
) -> tuple[float, float]:
    """The loosest rtol at which BDF is as good as we are, and its error [m] there."""
    found = float("inf")
    for tolerance in TOLERANCES:
        states = _integrate_with_bdf(rod, pressures, exact, tolerance)
        found = mean_distance(tip_positions(rod, states), true_tips)
        if found <= error:
            break
    return float(tolerance), found


def _median_time(rod: CosseratRod, pressures: np.ndarray, exact: bool, tolerance: float) -> float:
    durations = []
    for _ in range(FEWEST):
        begin = time.perf_counter()
        _integrate_with_bdf(rod, pressures, exact, tolerance)
        durations.append(time.perf_counter() - begin)
    return timing_of(durations).median


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
