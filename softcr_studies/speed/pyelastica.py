"""Our rod beside PyElastica's, the same rod at equal tip error."""

import importlib.metadata
import importlib.util
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_studies.speed.motion import (
    PERIOD,
    fine_states,
    mean_distance,
    three_phase_pressures,
)
from softcr_studies.speed.pyelastica_runs import (
    Discretisation,
    PyElasticaError,
    Run,
    simulate,
)
from softcr_studies.speed.rod import OURS, UNIT, step_timing
from softcr_studies.speed.timing import (
    FEWEST,
    Baseline,
    Effort,
    robot,
    skipped,
    speed_study,
    timing_of,
    told,
)
from softcr_studies.study import Result

INTERVALS = (5, 10)
THEIRS = "PyElastica"
# Both models are judged against themselves at so many intervals or elements.
FINE = 40
THEIR_FINE = Discretisation(FINE, 768)
# Three Verlet steps per element and period are just inside its stability limit.
TRIED = tuple(Discretisation(n, 3 * n) for n in (*range(6, 16), *range(16, 33, 2)))


@dataclass(frozen=True, eq=False)
class Course:
    """The motion, and where both models say the end of the rod goes when computed finely."""

    pressures: np.ndarray  # (T, 3) [Pa]
    our_tips: np.ndarray  # (T, 3) [m]
    their_tips: np.ndarray  # (T, 3) [m]
    runs: list[Run]


def compared(intervals: int, theirs: bool, effort: Effort) -> Result:
    """Our rod of so many intervals, or the cheapest PyElastica run whose error is not larger."""
    if importlib.util.find_spec("elastica") is None:
        return skipped("PyElastica is not installed: pip install pyelastica")
    try:
        course = _course(effort.periods)
        rod = CosseratRod(robot(), intervals)
        states = rod.simulate(rod.rest_state(), course.pressures, PERIOD)
        error = mean_distance(rod_ends(rod, states), course.our_tips)
        if theirs:
            return _cheapest(course, error)
    except PyElasticaError as problem:
        return skipped(str(problem))
    timing = step_timing(rod, course.pressures, effort)
    note = f"{_speed(timing.median)}; error of space and time, against ourselves with {FINE}"
    return told(timing, UNIT, error, f"{note} intervals")


def _cheapest(course: Course, error: float) -> Result:
    # NaN of a diverged run is never an equal error
    equal = [run for run in course.runs if mean_distance(run.tips, course.their_tips) <= error]
    if not equal:
        return skipped(f"no PyElastica run came within {1e3 * error:.2f} mm of its own fine one")
    best = min(equal, key=lambda run: run.microseconds)
    again = simulate(robot(), course.pressures, [best.discretisation] * FEWEST)
    timing = timing_of([run.microseconds for run in again])
    apart = 1e3 * mean_distance(course.our_tips, course.their_tips)
    note = (
        f"version {importlib.metadata.version('pyelastica')}, {_speed(timing.median)}, "
        f"{best.discretisation.elements} elements, {best.discretisation.steps_per_period} steps "
        f"per period; error of space and time, against itself with {FINE} elements. Equal: "
        "geometry, masses, EA, EI, GA, GJ, gravity, pressures (as intrinsic strains). Not equal: "
        "damping (uniform, fitted to the slowest mode, instead of Kelvin-Voigt) and large strain "
        f"(its stiffness falls with stretch), so the fine models are {apart:.1f} mm apart"
    )
    return told(timing, UNIT, mean_distance(best.tips, course.their_tips), note)


@cache
def _course(periods: int) -> Course:
    pressures = three_phase_pressures(periods)
    fine_run, *runs = simulate(robot(), pressures, (THEIR_FINE, *TRIED))
    fine = CosseratRod(robot(), FINE)
    return Course(pressures, rod_ends(fine, fine_states(fine, pressures)), fine_run.tips, runs)


def _speed(microseconds: float) -> str:
    return f"{1e6 * PERIOD / microseconds:.0f} s of motion per second"


def rod_ends(rod: CosseratRod, states: np.ndarray) -> np.ndarray:
    """(T, 3) ends of the elastic rod [m] in the frame of its base."""
    elastic = rod.body._replace(base_height=0.0, tip_cap_length=0.0)
    parameters = rod.nominal_parameters[None]
    return stepper.tip_poses(np.ascontiguousarray(states), parameters, elastic, rod.grid)[:, :, 3]


def _name(intervals: int) -> str:
    return f"n = {intervals} at equal tip error"


STUDY = speed_study(
    "speed/pyelastica",
    "our rod beside PyElastica's at equal tip error",
    {
        (_name(n), method): partial(compared, n, method == THEIRS)
        for n in INTERVALS
        for method in (OURS, THEIRS)
    },
    [UNIT],
    [Baseline((_name(n), OURS), (_name(n), THEIRS)) for n in INTERVALS],
)
