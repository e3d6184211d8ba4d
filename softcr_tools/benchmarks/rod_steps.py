"""Rows: one step of one rod, on one core."""

import itertools
from collections.abc import Iterator

import numpy as np

from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_tools.benchmarks.reference_motion import (
    FINE_SUBSTEPS,
    PERIOD,
    fine_states,
    mean_distance,
    radau_states,
    three_phase_pressures,
    tip_positions,
)
from softcr_tools.benchmarks.row import Requirement, Row
from softcr_tools.benchmarks.timing import Effort, Timing, measure, measure_each

UNIT = "us per 14.3 ms step"


def rows(robot: Robot, effort: Effort) -> Iterator[Row]:
    """n = 5 against Radau, n = 10 and 20 against finer steps, and a single call from Python."""
    pressures = three_phase_pressures(effort.periods)
    paper = CosseratRod(robot, 5)
    true_tips = tip_positions(paper, radau_states(paper, pressures))
    fine_error = mean_distance(tip_positions(paper, fine_states(paper, pressures)), true_tips)
    error = step_error(paper, pressures, true_tips)
    timing = step_timing(paper, pressures, effort)
    yield Row(
        "rod step n = 5",
        UNIT,
        timing,
        error,
        requirements=(
            Requirement(timing.median, "us", 20.0, 14.0),
            Requirement(1e3 * error, "mm", 0.1),
        ),
        note=f"{_substeps(paper)} sub-steps; tip error against Radau at rtol 1e-8",
    )
    yield _single_call(paper, pressures, effort)
    for intervals in (10, 20):
        rod = CosseratRod(robot, intervals)
        fine_tips = tip_positions(rod, fine_states(rod, pressures))
        larger = step_timing(rod, pressures, effort)
        growth = larger.median / intervals / (timing.median / paper.intervals)
        yield Row(
            f"rod step n = {intervals}",
            UNIT,
            larger,
            step_error(rod, pressures, fine_tips),
            requirements=(Requirement(growth, "x n=5", 1.2),),
            note=f"{growth:.2f} times the time per interval of n = 5; tip error against "
            f"{FINE_SUBSTEPS} sub-steps, at n = 5 {1e3 * fine_error:.4f} mm from Radau",
        )


def step_timing(rod: CosseratRod, pressures: np.ndarray, effort: Effort) -> Timing:
    """Time per step [us] of the reference motion, simulated in one call."""
    rest = rod.rest_state()
    whole = measure(lambda: rod.simulate(rest, pressures, PERIOD), effort)
    return whole.times(1e6 / len(pressures))


def step_error(rod: CosseratRod, pressures: np.ndarray, true_tips: np.ndarray) -> float:
    """Mean tip error [m] of the same simulation."""
    states = rod.simulate(rod.rest_state(), pressures, PERIOD)
    return mean_distance(tip_positions(rod, states), true_tips)


def _single_call(rod: CosseratRod, pressures: np.ndarray, effort: Effort) -> Row:
    states = rod.simulate(rod.rest_state(), pressures, PERIOD)
    moments = itertools.cycle(zip(states[:-1], pressures[1:], strict=True))
    timing = measure_each(lambda moment: rod.step(*moment, PERIOD), moments, effort)
    return Row(
        "rod step n = 5, one Python call",
        UNIT,
        timing.times(1e6),
        note="CosseratRod.step, checks and conversions included",
    )


def _substeps(rod: CosseratRod) -> int:
    return int(np.ceil(PERIOD / rod.max_substep - 1e-9))
