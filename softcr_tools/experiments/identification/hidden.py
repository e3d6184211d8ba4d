"""The robot whose parameters are hidden, and what its sensors record (Licher et al., III-I)."""

from dataclasses import dataclass

import numpy as np

from softcr_control import signals
from softcr_hardware.plant import Mismatch, SensorModel, SimulatedPlant
from softcr_hardware.plants import RodPlant
from softcr_models import Robot
from softcr_models.identification import (
    DAMPING,
    LAG_PARAMETERS,
    STATIC_PARAMETERS,
    Recording,
    parameters_of,
    static_configurations,
    with_parameters,
)
from softcr_studies.virtual_runs import Log, open_loop, run_blocks

PERIOD = 1 / 70
PLANT_INTERVALS = 20
TIP_NOISE, FORCE_NOISE, MOMENT_NOISE, PRESSURE_NOISE = 2e-4, 0.02, 5e-4, 50.0
SAMPLES_AT_REST = 10  # averaged per configuration
NAMES = (*STATIC_PARAMETERS, DAMPING, *LAG_PARAMETERS)
_SENSORS = ("pressure/state", "mocap/tip/pose", "force_torque/wrench")
_FACTORS = (1.01, 1.10, 0.93, 1.06, 1.30, 0.95, 0.95)


@dataclass(frozen=True, eq=False)
class Recordings:
    """One seed's.

    Attributes:
        truth: the hidden robot.
        static: of the configurations at rest.
        motion: 10 s of 0.1, 0.5 and 1 Hz, then all chambers vented.
        commands: (T, m) that made the motion [Pa].
        unseen: another motion, for validation.
    """

    truth: Robot
    static: Recording
    motion: Recording
    commands: np.ndarray
    unseen: Recording


def hidden_robot(robot: Robot) -> Robot:
    """The robot file's, a few per cent off everywhere."""
    values = parameters_of(robot, NAMES) * _FACTORS
    return with_parameters(robot, NAMES, values.tolist())


def record(robot: Robot, seed: int) -> Recordings:
    """What a person records to identify a robot."""
    truth = hidden_robot(robot)
    motion, commands = _motion(truth, (0.1, 0.5, 1.0), seed)
    unseen, _ = _motion(truth, (0.3, 0.8), seed + 1000)
    return Recordings(truth, _static(truth, seed), motion, commands, unseen)


def _plant(truth: Robot, seed: int) -> SimulatedPlant:
    sensors = SensorModel(TIP_NOISE, PRESSURE_NOISE, FORCE_NOISE, MOMENT_NOISE, 0, seed)
    return SimulatedPlant(truth, Mismatch(), sensors, PLANT_INTERVALS)


def _static(truth: Robot, seed: int) -> Recording:
    """At rest, so the plant's equilibrium is what a person waits for; samples are averaged."""
    draw = np.random.default_rng(seed)
    pressures = static_configurations(truth)
    rod = _plant(truth, seed).rod
    noise = np.sqrt(1.0 / SAMPLES_AT_REST)
    tips, wrenches = [], []
    for row in pressures:
        state = rod.equilibrium(row)
        tips.append(rod.tip_pose(state)[:3, 3] + noise * TIP_NOISE * draw.standard_normal(3))
        levels = np.repeat([FORCE_NOISE, MOMENT_NOISE], 3)
        wrenches.append(rod.base_wrench(state, row) + noise * levels * draw.standard_normal(6))
    return Recording(pressures, np.array(tips), np.array(wrenches))


def _motion(
    truth: Robot, frequencies: tuple[float, ...], seed: int
) -> tuple[Recording, np.ndarray]:
    plant = RodPlant.of(truth, _plant(truth, seed))
    times = signals.time_grid(10.0, PERIOD)
    chambers = len(truth.actuators)
    commands = signals.sines(times, chambers, 30e3, 25e3, frequencies)
    commands = signals.soft_start(commands, np.zeros(chambers), times, 1.0)
    commands[times > 9.0] = 0.0  # the step to ambient pressure
    log = Log(*_SENSORS)
    run_blocks(open_loop(truth, plant, commands[1:], len(commands), 1 / PERIOD, seed), log)
    pressures, poses, wrenches = map(log.values, _SENSORS)
    tips = np.array([pose.position for pose in poses])
    return Recording(np.array(pressures), tips, np.array(wrenches), PERIOD), commands[:-1]
