"""Our rod beside PyElastica's, the same rod at equal tip error.

PyElastica simulates in a process of its own, see pyelastica_process.py.
"""

import importlib.metadata
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from softcr_models.robots.robot import Robot
from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_studies.frame.study import Result
from softcr_studies.speed import motion
from softcr_studies.speed.beside import answers
from softcr_studies.speed.rod import OURS, UNIT
from softcr_studies.speed.timing import FEWEST, Baseline, Effort, Skipped, speed_study, told

INTERVALS = (5, 10)
THEIRS = "PyElastica"
SCRIPT = Path(__file__).with_name("pyelastica_process.py")
LONGEST_WAIT = 600.0
Discretisation = tuple[int, int]  # elements, and steps per period
# Both models are judged against themselves at so many intervals or elements.
FINE = 40
THEIR_FINE: Discretisation = (FINE, 768)
# Three Verlet steps per element and period are just inside its stability limit.
TRIED: Sequence[Discretisation] = [(n, 3 * n) for n in (*range(6, 16), *range(16, 33, 2))]


@dataclass(frozen=True, eq=False)
class Run:
    """One simulation of PyElastica."""

    discretisation: Discretisation
    tips: np.ndarray  # (T, 3) end of the rod after each period, frame of its base [m]; NaN: lost
    microseconds: float  # per period


def compared(intervals: int, theirs: bool, effort: Effort) -> Result:
    """Our rod of so many intervals, or the cheapest PyElastica run whose error is not larger."""
    if importlib.util.find_spec("elastica") is None:
        raise Skipped("PyElastica is not installed: pip install pyelastica")
    pressures, our_tips, fine, runs = _course(effort.periods)
    rod = motion.make_rod(intervals)
    error = motion.mean_distance(rod_ends(rod, motion.from_rest(rod, pressures)), our_tips)
    if not theirs:
        durations = 1e6 * motion.step_durations(rod, effort)
        note = f"{_speed(durations)}; error of space and time, against ourselves with {FINE}"
        return told(durations, UNIT, error, f"{note} intervals")
    # NaN of a diverged run is never an equal error
    equal = [run for run in runs if motion.mean_distance(run.tips, fine.tips) <= error]
    if not equal:
        raise Skipped(f"no PyElastica run came within {1e3 * error:.2f} mm of its own fine one")
    best = min(equal, key=lambda run: run.microseconds)
    again = simulate(rod.robot, pressures, [best.discretisation] * FEWEST)
    durations = np.array([run.microseconds for run in again])
    apart = 1e3 * motion.mean_distance(our_tips, fine.tips)
    elements, steps = best.discretisation
    note = (
        f"version {importlib.metadata.version('pyelastica')}, {_speed(durations)}, "
        f"{elements} elements, {steps} steps per period; error of space and time, against itself "
        f"with {FINE} elements. Equal: geometry, masses, EA, EI, GA, GJ, gravity, pressures (as "
        "intrinsic strains). Not equal: "
        "damping (uniform, fitted to the slowest mode, instead of Kelvin-Voigt) and large strain "
        f"(its stiffness falls with stretch), so the fine models are {apart:.1f} mm apart"
    )
    return told(durations, UNIT, motion.mean_distance(best.tips, fine.tips), note)


@cache
def _course(periods: int) -> tuple[np.ndarray, np.ndarray, Run, list[Run]]:
    """Pressures (T, 3) [Pa], ends of our fine rod (T, 3) [m], PyElastica's fine run, others."""
    rod, pressures = motion.make_rod(FINE), motion.three_phase_pressures(periods)
    fine, *runs = simulate(rod.robot, pressures, (THEIR_FINE, *TRIED))
    return pressures, rod_ends(rod, motion.fine_states(rod, pressures)), fine, runs


def _speed(microseconds: np.ndarray) -> str:
    return f"{1e6 * motion.PERIOD / np.median(microseconds):.0f} s of motion per second"


def rod_ends(rod: CosseratRod, states: np.ndarray) -> np.ndarray:
    """(T, 3) ends of the elastic rod [m] in the frame of its base."""
    elastic = rod.body._replace(base_height=0.0, tip_cap_length=0.0)
    parameters = rod.nominal_parameters[None]
    return stepper.tip_poses(np.ascontiguousarray(states), parameters, elastic, rod.grid)[:, :, 3]


def simulate(
    robot: Robot, pressures: np.ndarray, discretisations: Sequence[Discretisation]
) -> list[Run]:
    """Simulates the robot's rod from rest under pressures (T, 3) [Pa], each held for a period.

    Raises:
        Skipped: the process failed.
    """
    order = {
        "period": motion.PERIOD,
        # The pressure wrench is constant along the rod in the local frame (it acts along the
        # chambers), so what it does to an elastic rod is what an intrinsic strain does: C w_p.
        "intrinsic_strains": (pressures @ robot.actuation_matrix.T * robot.compliances)[:, None],
        "rod": _rod_of(robot),
        "runs": list(discretisations),
    }
    answered = answers(SCRIPT, order, THEIRS, LONGEST_WAIT)
    return [
        Run(discretisation, tips, 1e6 * seconds / len(pressures))
        for discretisation, (tips, seconds) in zip(discretisations, answered, strict=True)
    ]


def _rod_of(robot: Robot) -> dict[str, Any]:
    """What PyElastica's rod is made of."""
    rod = CosseratRod(robot, 10)
    body = {
        "length": robot.length,
        "area": robot.cross_section_area,
        "second_moment_of_area": robot.second_moment_of_area,
        "density": robot.density,
        "stiffness": 1.0 / robot.compliances,
    }
    return {
        "segments": [body],
        "tip_mass": robot.tip_mass,
        "tip_mass_fraction": robot.tip_mass_fraction,
        "gravity": -rod.grid.gravity,
        "damping_constant": _damping_constant(rod),
    }


def _damping_constant(rod: CosseratRod) -> float:
    """Uniform damping [1/s] with which the slowest oscillation decays as ours does.

    Velocities that decay with a constant g let an oscillation decay with g / 2.
    """
    unloaded = np.zeros(rod.input_size)
    jacobian, _ = rod.linearize(rod.equilibrium(unloaded), unloaded)
    modes = np.linalg.eigvals(jacobian)
    oscillating = modes[modes.imag > 0.1 * np.abs(modes)]
    return float(-2.0 * oscillating[np.abs(oscillating).argmin()].real)


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
