"""A hidden robot's parameters from its simulated recordings (Licher et al. 2025, Sec. III-I).

The hidden robot is a few per cent off the robot file everywhere. Its sensors record, with noise, 42
configurations at rest and 10 s of motion. Statics, damping and pressure lag are identified one
after the other by least squares, as `softcr identify` does, and the statics also by the paper's
particle swarm. The robot that was found is validated on a motion it has not seen.
"""

import time
from collections.abc import Iterable

import numpy as np
from pydantic import Field

from softcr_control.reference import signals
from softcr_estimation.identification import stages
from softcr_estimation.identification.stretches import PERIOD, Samples
from softcr_models import Robot, load_robot
from softcr_models.identification import rod_identification as identification
from softcr_models.identification.identifiable import parameters_of, with_parameters
from softcr_models.identification.measured_groups import (
    BASE_FORCE,
    BASE_MOMENT,
    TIP_POSITION,
    groups_of,
)
from softcr_models.identification.rod_identification import Recording
from softcr_runtime.bags.signals import Signal
from softcr_runtime.blocks.virtual_run import Log, run_blocks
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.plant import SimulatedPlant
from softcr_simulation.plants import RodPlant
from softcr_studies.frame.particle_swarm import particle_swarm
from softcr_studies.frame.study import Cell, Result, Results, Row, Study, StudySettings
from softcr_studies.loops.closed_loop import open_loop

PLANT_INTERVALS, MODEL_INTERVALS = 20, stages.MODEL_INTERVALS
TIP_NOISE, FORCE_NOISE, MOMENT_NOISE, PRESSURE_NOISE = 2e-4, 0.02, 5e-4, 50.0
SAMPLES_AT_REST = 10  # averaged per configuration
SWARM = (20, 25)  # particles, iterations
SWARM_REACH = 0.3  # the box round the first guess, in logarithms
STATIC_PARAMETERS = ("length", "tip_mass", "bending_compliance", "dilatation_compliance")
NAMES = (
    *STATIC_PARAMETERS, "bending_relaxation_time", "pressure_lag_gain", "pressure_lag_pole",
)  # fmt: skip
CASE, LEAST_SQUARES, PARTICLE_SWARM = "hidden robot", "least squares", "particle swarm"
_SENSORS = ("pressure/state", "mocap/tip/pose", "force_torque/wrench")
_FACTORS = (1.01, 1.10, 0.93, 1.06, 1.30, 0.95, 0.95)


class Settings(StudySettings):
    """Of which robot."""

    robot: str = Field("licher2025", min_length=1, description="first guess: name or YAML file")


def hidden_robot(robot: Robot) -> Robot:
    """The robot file's, a few per cent off everywhere."""
    values = parameters_of(robot, NAMES) * _FACTORS
    return with_parameters(robot, NAMES, values.tolist())


def statics(truth: Robot, cell: Cell) -> Recording:
    """The configurations at rest: equilibria of the plant, samples averaged."""
    draw, noise = cell.random("statics"), np.sqrt(1.0 / SAMPLES_AT_REST)
    pressures, rod = identification.static_configurations(truth), _plant(truth, 0).rod
    levels = noise * np.repeat([TIP_NOISE, FORCE_NOISE, MOMENT_NOISE], 3)
    measured = np.empty((len(pressures), 9))
    for row, held in zip(measured, pressures, strict=True):
        state = rod.equilibrium(held)
        row[:3], row[3:] = rod.tip_pose(state)[:3, 3], rod.base_wrench(state, held)
        row += levels * draw.standard_normal(9)
    return Recording(pressures, _outputs(measured[:, :3], measured[:, 3:]))


def motion(truth: Robot, frequencies: tuple[float, ...], seed: int) -> Samples:
    """10 s of sines [Hz] from rest, then a step to ambient pressure, and the commands of them."""
    plant = RodPlant.of(truth, _plant(truth, seed))
    times, chambers = signals.time_grid(10.0, PERIOD), len(truth.actuators)
    commands = signals.sines(times, chambers, 30e3, 25e3, frequencies)
    commands = signals.soft_start(commands, np.zeros(chambers), times, 1.0)
    commands[times > 9.0] = 0.0
    log = Log(*_SENSORS)
    run_blocks(open_loop(truth, plant, commands[1:], len(commands), 1 / PERIOD, seed), log)
    pressures, poses, wrenches = map(log.values, _SENSORS)
    tips = np.array([pose.position for pose in poses])
    recording = Recording(np.array(pressures), _outputs(tips, np.array(wrenches)), PERIOD)
    stamps = np.round(1e9 * PERIOD * np.arange(len(tips))).astype(np.int64)
    return Samples("hidden robot", stamps, recording, Signal(stamps, commands))


def _outputs(tips: np.ndarray, wrenches: np.ndarray) -> dict[str, np.ndarray]:
    return {TIP_POSITION: tips, BASE_FORCE: wrenches[:, :3], BASE_MOMENT: wrenches[:, 3:]}


def _plant(truth: Robot, seed: int) -> SimulatedPlant:
    noise = PlantErrors.noiseless(
        tip_noise=TIP_NOISE, pressure_noise=PRESSURE_NOISE, force_noise=FORCE_NOISE,
        moment_noise=MOMENT_NOISE,
    )  # fmt: skip
    return SimulatedPlant(truth, noise, seed, PLANT_INTERVALS)


def run(cell: Cell) -> Result:
    """One identification.

    Returns:
        errors (P,) of the parameters found [%]; seconds; for the least squares also widths (P,) of
        the 95 % intervals [%], unseen (2,) tip errors of first guess and outcome [% of the length],
        and not_excited, the number of parameters that were not.
    """
    robot = load_robot(cell.settings.robot)
    truth = hidden_robot(robot)
    at_rest = statics(truth, cell)
    if cell.method == PARTICLE_SWARM:
        begin = time.perf_counter()
        cost = identification.static_cost(robot, at_rest, MODEL_INTERVALS)
        start = np.log(parameters_of(robot, STATIC_PARAMETERS))
        box = start - SWARM_REACH, start + SWARM_REACH
        best, _ = particle_swarm(cost, *box, *SWARM, cell.stream("swarm"))
        seconds = time.perf_counter() - begin
        errors = np.exp(best) / parameters_of(truth, STATIC_PARAMETERS) - 1.0
        return {"errors": 100.0 * np.abs(errors), "seconds": seconds}
    moved = motion(truth, (0.1, 0.5, 1.0), cell.stream("motion"))
    unseen = motion(truth, (0.3, 0.8), cell.stream("unseen motion")).recording
    begin = time.perf_counter()
    found = stages.identify(robot, stages.Material(at_rest, moved))
    seconds = time.perf_counter() - begin
    if cell.seed == 0:
        stages.write_robot(found.robot, cell.folder / "identified.yaml")
    errors = parameters_of(found.robot, NAMES) / parameters_of(truth, NAMES) - 1.0
    off = []
    for each in (robot, found.robot):
        (tip,) = (group for group in groups_of(each) if group.name == TIP_POSITION)
        tips = identification.in_motion(each, unseen, (tip,), MODEL_INTERVALS)[TIP_POSITION]
        away = np.linalg.norm(tips - unseen.outputs[TIP_POSITION], axis=1)
        off.append(away.mean() / truth.length)
    widths = [found.found[name].width if name in found.found else np.nan for name in NAMES]
    return {
        "errors": 100.0 * np.abs(errors),
        "widths": 100.0 * np.array(widths),
        "unseen": 100.0 * np.array(off),
        "seconds": seconds,
        "not_excited": len(found.not_excited),
    }


def swarm(results: Results) -> Iterable[Cell]:
    """The particle swarm, once: it takes minutes."""
    yield Cell(CASE, PARTICLE_SWARM, 0, results.settings)


def rows(results: Results) -> Iterable[Row]:
    """Errors of every parameter, validation, and the swarm beside it."""
    found = results.of(CASE, LEAST_SQUARES)

    def values(key: str) -> np.ndarray:
        return np.array([result[key] for result in found])

    for name, errors, widths in zip(NAMES, values("errors").T, values("widths").T, strict=True):
        yield Row.of(name, LEAST_SQUARES, "error", errors, "%", must=2.0, goal=0.5)
        yield Row.of(name, LEAST_SQUARES, "95 % interval, half", widths, "%")
    first, identified = values("unseen").T
    yield Row.of("unseen motion", "first guess", "tip error", first, "% of length")
    yield Row.of("unseen motion", "identified", "tip error", identified, "% of length",
                 published={"bench": 1.8})  # fmt: skip
    yield Row.of("all of it", LEAST_SQUARES, "time", values("seconds"), "s", timing=True)
    yield Row.of("all of it", LEAST_SQUARES, "not excited", values("not_excited"), "parameters")
    found = results.of(CASE, PARTICLE_SWARM)
    for name, error in zip(STATIC_PARAMETERS, values("errors").T, strict=True):
        yield Row.of(name, PARTICLE_SWARM, "error", error, "%")
    quantity = f"time, {SWARM[0] * SWARM[1]} evaluations"
    yield Row.of("statics", PARTICLE_SWARM, quantity, values("seconds"), "s", timing=True)


STUDY = Study(
    name="licher2025/identification",
    source="Licher et al. 2025, Sec. III-I",
    summary="a hidden robot's parameters from its recordings",
    run=run,
    cases=(CASE,),
    methods=(LEAST_SQUARES,),
    settings=Settings,
    further_rows=rows,
    later=swarm,
    exact=f"The hidden robot is a rod of {PLANT_INTERVALS} intervals, the identified one has "
    f"{MODEL_INTERVALS}; equations, geometry and the form of the pressure lag are the same, so "
    "no parameter has to make up for a missing one. Configurations at rest are exact equilibria. "
    "Sensors have white noise and no bias. The published 1.8 % is of a real actuator.",
    about={
        "plant_intervals": PLANT_INTERVALS, "model_intervals": MODEL_INTERVALS,
        "tip_noise_mm": 1e3 * TIP_NOISE, "force_noise_n": FORCE_NOISE,
        "moment_noise_nm": MOMENT_NOISE, "pressure_noise_pa": PRESSURE_NOISE,
    },
)  # fmt: skip
