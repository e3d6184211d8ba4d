"""What filters are tuned and judged on: motions of plants that are not the model.

Under known commands plant and sensors do not depend on the filter: a recording serves every
candidate. Behind a controller they do: such a run is made anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_control import signals
from softcr_estimation import Estimate, EstimatorSettings, RodEstimator
from softcr_hardware.plant import SimulatedPlant
from softcr_models import CosseratRod, Robot
from softcr_models.prediction import RodPrediction
from softcr_models.rod.state import RodState, restrict_to_nodes
from softcr_tools.benchmarks.timing import cores
from softcr_tools.experiments.tracking.cases import Difference
from softcr_tools.experiments.tracking.loop import (
    MODEL_INTERVALS,
    PERIOD,
    Cycle,
    plant_of,
    run_loop,
)
from softcr_tools.experiments.tuning.controller_cost import Task

MEAN, AMPLITUDE = 35e3, 20e3  # of the commands [Pa]
WINDOW = 3  # of the moving standard deviation along the rod [differences]


@dataclass(frozen=True)
class Motion:
    """One recording to be made: sines in all chambers, from the vented rod.

    Attributes:
        name: of the row.
        frequencies: of the sines [Hz].
        duration: [s].
        difference: between plant and model.
        later: from half of the motion on, with the same bending compliance; None: as before.
    """

    name: str
    frequencies: tuple[float, ...]
    duration: float
    difference: Difference = field(default_factory=Difference)
    later: Difference | None = None


@dataclass(frozen=True, eq=False)
class Recording:
    """What was measured and what was true, a row per cycle.

    Attributes:
        pressures: (T, m) as read [Pa].
        tips: (T, 3) measured tip positions, base frame [m].
        true_poses: (T, 4, 4) of the tip, base frame [m].
        states: (T, nx) true states at the model's nodes.
        compliance: true bending compliance [rad/(N m m)].
    """

    pressures: np.ndarray
    tips: np.ndarray
    true_poses: np.ndarray
    states: np.ndarray
    compliance: float


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a filter made of a motion, a row per cycle.

    Attributes:
        positions: (T,) distance of the true tip to the estimated one; in a closed loop to where it
            should be [m].
        rotations: (T,) angle between true and estimated tip [rad].
        kinks: (T,) roughness of the strain along the rod, see `kinks_of` [-].
        states: (T,) root mean square of the state's error / state scale [-].
        compliance: (T,) relative error of the bending compliance [-].
        repairs: of the filter.
    """

    positions: np.ndarray
    rotations: np.ndarray
    kinks: np.ndarray
    states: np.ndarray
    compliance: np.ndarray
    repairs: int


def record(robot: Robot, motion: Motion, seed: int) -> Recording:
    """The plant of a seed moves under known commands."""
    plant = plant_of(robot, motion.difference, seed)
    times = signals.time_grid(motion.duration, PERIOD)[:-1]
    chambers = len(robot.chambers)
    wanted = signals.sines(times, chambers, MEAN, AMPLITUDE, motion.frequencies)
    wanted = signals.soft_start(wanted, np.zeros(chambers), times, 1.0)
    bias, gain = np.array(motion.difference.pressure_bias), motion.difference.pressure_gain
    rows = []
    for cycle, command in enumerate(wanted):
        if motion.later is not None and cycle == len(wanted) // 2:
            plant = _become(plant, plant_of(robot, motion.later, seed + 1))
        if cycle:
            plant.advance(PERIOD)
        plant.follow(command)
        measured = plant.measure(round(1e9 * times[cycle]))
        assert measured.tip_pose is not None  # no latency is asked for
        rows.append(
            (
                gain * measured.pressures + bias,
                measured.tip_pose[:3, 3],
                measured.true_tip_pose,
                restrict_to_nodes(measured.state, MODEL_INTERVALS),
            )
        )
    pressures, tips, poses, states = map(np.array, zip(*rows, strict=True))
    return Recording(pressures, tips, poses, states, plant.rod.robot.bending_compliance)


def _become(plant: SimulatedPlant, other: SimulatedPlant) -> SimulatedPlant:
    """The other plant, where this one is: its rod has, for instance, picked up something."""
    other.state, other.pressures, other.command = plant.state, plant.pressures, plant.command
    return other


def filtered(robot: Robot, recording: Recording, settings: EstimatorSettings) -> Judgement:
    """Runs a filter over a recording.

    Raises:
        ArithmeticError, ValueError: the filter lost the numbers.
    """
    model = RodPrediction(CosseratRod(robot, MODEL_INTERVALS), single_precision=False)
    estimator = RodEstimator(model, settings)
    estimates = [estimator.start(recording.pressures[0], 0.0)]
    # what a bad candidate overflows is told by its cost
    with cores(1), np.errstate(over="ignore", invalid="ignore"):
        for cycle in range(1, len(recording.tips)):
            read, tip = recording.pressures[cycle], recording.tips[cycle]
            estimates.append(estimator.update(read, tip, cycle * PERIOD))
        return _judgement(
            model, estimates, recording.true_poses, recording.states, recording.compliance
        )


def looped(robot: Robot, task: Task, seed: int, settings: EstimatorSettings) -> Judgement:
    """Runs the shipped gradient MPC behind a filter; positions are judged by the reference.

    Raises:
        ArithmeticError, ValueError: the filter lost the numbers, or drove the plant mad.
    """
    cycles: list[Cycle] = []
    with np.errstate(over="ignore", invalid="ignore"):
        trace = run_loop(
            robot, task.case, task.source, "rod_mpc", seed, lambda: 0.0,
            filter_settings=settings, observe=cycles.append,
        )  # fmt: skip
        judgement = _judgement(
            RodPrediction(CosseratRod(robot, MODEL_INTERVALS), single_precision=False),
            [cycle.estimate for cycle in cycles],
            np.array([cycle.measured.true_tip_pose for cycle in cycles]),
            restrict_to_nodes(
                np.array([cycle.measured.state for cycle in cycles]), MODEL_INTERVALS
            ),
            trace.true_compliance,
        )
    return replace(judgement, positions=trace.error)


def _judgement(
    model: RodPrediction,
    estimates: Sequence[Estimate],
    true_poses: np.ndarray,
    true_states: np.ndarray,
    true_compliance: float,
) -> Judgement:
    states = np.array([estimate.state for estimate in estimates])
    parameters = np.array(
        [[estimate.parameters[name] for name in model.parameter_names] for estimate in estimates]
    )
    compliance = np.array([estimate.bending_compliance for estimate in estimates])
    found = model.tip_poses(states, parameters)
    turned = Rotation.from_matrix(found[:, :, :3]).inv()
    turned *= Rotation.from_matrix(true_poses[:, :3, :3])
    astray = (states - true_states) / model.state_scale
    return Judgement(
        positions=np.linalg.norm(found[:, :, 3] - true_poses[:, :3, 3], axis=1),
        rotations=turned.magnitude(),
        kinks=kinks_of(states / model.state_scale),
        states=np.sqrt(np.mean(astray**2, axis=1)),
        compliance=np.abs(compliance / true_compliance - 1.0),
        repairs=estimates[-1].repairs,
    )


def kinks_of(states: np.ndarray) -> np.ndarray:
    """(T,) how rough the strain is along the rod: the e_kink of (38).

    The paper takes the moving standard deviation of the strain's derivative by arc length, window
    not printed. Here: of the differences between neighbouring nodes, over WINDOW of them; mean over
    windows and axes. Strain is elastic wrench times compliance, and compliances are constant along
    the rod, so normalised wrenches do as well.

    Args:
        states: (T, nx) divided by the state scale.
    """
    slopes = np.diff(RodState(states).wrenches, axis=1)
    windows = np.lib.stride_tricks.sliding_window_view(slopes, WINDOW, axis=1)
    return windows.std(axis=-1).mean(axis=(1, 2))
