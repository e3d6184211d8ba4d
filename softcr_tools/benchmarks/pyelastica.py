"""Rows: our rod beside PyElastica's, the same rod at equal tip error."""

import importlib.metadata
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from softcr_models.robot import Robot
from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_tools.benchmarks.pyelastica_runs import (
    Discretisation,
    PyElasticaError,
    Run,
    simulate,
)
from softcr_tools.benchmarks.reference_motion import (
    PERIOD,
    fine_states,
    mean_distance,
    three_phase_pressures,
)
from softcr_tools.benchmarks.rod_steps import UNIT, step_timing
from softcr_tools.benchmarks.row import Rival, Row
from softcr_tools.benchmarks.timing import FEWEST, Effort

OURS = (5, 10)
# Both models are judged against themselves at so many intervals or elements.
FINE = 40
THEIR_FINE = Discretisation(FINE, 768)
# Three Verlet steps per element and period are just inside its stability limit.
THEIRS = tuple(Discretisation(n, 3 * n) for n in (*range(6, 16), *range(16, 33, 2)))


@dataclass(frozen=True, eq=False)
class _Course:
    """The motion, and where both models say the end of the rod goes when computed finely."""

    pressures: np.ndarray  # (T, 3) [Pa]
    our_tips: np.ndarray  # (T, 3) [m]
    their_tips: np.ndarray  # (T, 3) [m]


def rows(robot: Robot, effort: Effort) -> Iterator[Row]:
    """For n = 5 and n = 10 the cheapest PyElastica run whose tip error is not larger."""
    if importlib.util.find_spec("elastica") is None:
        yield from _skipped("PyElastica is not installed: pip install pyelastica")
        return
    pressures = three_phase_pressures(effort.periods)
    try:
        fine_run, *runs = simulate(robot, pressures, (THEIR_FINE, *THEIRS))
        fine = CosseratRod(robot, FINE)
        our_tips = _rod_ends(fine, fine_states(fine, pressures))
        course = _Course(pressures, our_tips, fine_run.tips)
        for intervals in OURS:
            yield _compared(CosseratRod(robot, intervals), course, runs, effort)
    except PyElasticaError as error:
        yield from _skipped(str(error))


def _compared(rod: CosseratRod, course: _Course, runs: list[Run], effort: Effort) -> Row:
    states = rod.simulate(rod.rest_state(), course.pressures, PERIOD)
    error = mean_distance(_rod_ends(rod, states), course.our_tips)
    # NaN of a diverged run is never an equal error
    equal = [run for run in runs if mean_distance(run.tips, course.their_tips) <= error]
    if not equal:
        reason = f"no PyElastica run came within {1e3 * error:.2f} mm of its own fine one"
        return Row(_name(rod.intervals), UNIT, skipped=reason)
    cheapest = min(equal, key=lambda run: run.microseconds)
    again = simulate(rod.robot, course.pressures, [cheapest.discretisation] * FEWEST)
    theirs = float(np.median([run.microseconds for run in again]))
    timing = step_timing(rod, course.pressures, effort)
    return Row(
        _name(rod.intervals),
        UNIT,
        timing,
        error,
        Rival(f"PyElastica {importlib.metadata.version('pyelastica')}", theirs),
        note=f"{_speed(timing.median)}, PyElastica {_speed(theirs)} with "
        f"{cheapest.discretisation.elements} elements, "
        f"{cheapest.discretisation.steps_per_period} steps per period and "
        f"{1e3 * mean_distance(cheapest.tips, course.their_tips):.2f} mm error. "
        f"Errors are of space and time, each model against itself with {FINE} elements. Equal: "
        "geometry, masses, EA, EI, GA, GJ, gravity, pressures (as intrinsic strains). Not equal: "
        "damping (uniform, fitted to the slowest mode, instead of Kelvin-Voigt) and large strain "
        "(its stiffness falls with stretch), so the fine models are "
        f"{1e3 * mean_distance(course.our_tips, course.their_tips):.1f} mm apart",
    )


def _speed(microseconds: float) -> str:
    return f"{1e6 * PERIOD / microseconds:.0f} s of motion per second"


def _rod_ends(rod: CosseratRod, states: np.ndarray) -> np.ndarray:
    """(T, 3) ends of the elastic rod [m] in the frame of its base."""
    elastic = rod.body._replace(base_height=0.0, tip_cap_length=0.0)
    parameters = rod.nominal_parameters[None]
    return stepper.tip_poses(np.ascontiguousarray(states), parameters, elastic, rod.grid)[:, :, 3]


def _skipped(reason: str) -> Iterator[Row]:
    for intervals in OURS:
        yield Row(_name(intervals), UNIT, skipped=reason)


def _name(intervals: int) -> str:
    return f"n = {intervals} beside PyElastica"
