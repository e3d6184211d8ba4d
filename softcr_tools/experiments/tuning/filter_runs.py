"""What filters are tuned and judged on: motions of a plant that is not the model, recorded once.

Plant and sensors do not depend on the filter, so a recording serves every candidate.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_control import signals
from softcr_estimation import EstimatorSettings, RodEstimator
from softcr_models import CosseratRod, Robot
from softcr_models.prediction import RodPrediction
from softcr_models.rod.state import RodState, restrict_to_nodes
from softcr_tools.benchmarks.timing import cores
from softcr_tools.experiments.tracking.cases import Difference
from softcr_tools.experiments.tracking.loop import MODEL_INTERVALS, PERIOD, plant_of

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
    """

    name: str
    frequencies: tuple[float, ...]
    duration: float
    difference: Difference = field(default_factory=Difference)


@dataclass(frozen=True, eq=False)
class Recording:
    """What was measured and what was true, a row per cycle.

    Attributes:
        pressures: (T, m) as read [Pa].
        poses: (T, 4, 4) measured tip poses, base frame [m].
        tips: (T, 3) true tip positions, base frame [m].
        states: (T, nx) true states at the model's nodes.
        compliance: true bending compliance [rad/(N m m)].
    """

    pressures: np.ndarray
    poses: np.ndarray
    tips: np.ndarray
    states: np.ndarray
    compliance: float


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a filter made of a recording, a row per cycle.

    Attributes:
        unseen: (T,) whether the measured pose was kept from the filter.
        positions, rotations: (T,) distance [m] and angle [rad] to the measured tip pose.
        kinks: (T,) roughness of the strain along the rod, see `kinks_of` [-].
        tips: (T,) distance to the true tip [m].
        states: (T,) root mean square of the state's error / state scale [-].
        compliance: (T,) relative error of the bending compliance [-].
        repairs: of the filter.
    """

    unseen: np.ndarray
    positions: np.ndarray
    rotations: np.ndarray
    kinks: np.ndarray
    tips: np.ndarray
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
        if cycle:
            plant.advance(PERIOD)
        plant.follow(command)
        measured = plant.measure(round(1e9 * times[cycle]))
        assert measured.tip_pose is not None  # no latency is asked for
        rows.append(
            (
                gain * measured.pressures + bias,
                measured.tip_pose,
                measured.true_tip_pose[:3, 3],
                restrict_to_nodes(measured.state, MODEL_INTERVALS),
            )
        )
    pressures, poses, tips, states = map(np.array, zip(*rows, strict=True))
    return Recording(pressures, poses, tips, states, plant.rod.robot.bending_compliance)


def filtered(
    robot: Robot, settings: EstimatorSettings, recording: Recording, withheld: int = 0
) -> Judgement:
    """Runs a filter over a recording.

    Args:
        withheld: every so manyth pose is kept from the filter, to judge it on; 0: none.
    """
    model = RodPrediction(CosseratRod(robot, MODEL_INTERVALS), single_precision=False)
    estimator = RodEstimator(model, settings)
    numbers = np.arange(len(recording.poses))
    unseen = numbers % withheld == withheld - 1 if withheld else np.zeros(len(numbers), bool)
    rows = []
    # what a bad candidate overflows is told by its cost
    with cores(1), np.errstate(over="ignore", invalid="ignore"):
        for cycle, (read, pose) in enumerate(
            zip(recording.pressures, recording.poses, strict=True)
        ):
            if cycle == 0:
                estimate = estimator.start(read, 0.0)
            else:
                seen = None if unseen[cycle] else pose[:3, 3]
                estimate = estimator.update(read, seen, cycle * PERIOD)
            known = [estimate.parameters[name] for name in model.parameter_names]
            rows.append((estimate.state, known, estimate.bending_compliance))
        states, parameters, compliance = map(np.array, zip(*rows, strict=True))
        found = model.tip_poses(states, parameters)
    measured = recording.poses
    turned = Rotation.from_matrix(found[:, :, :3]).inv()
    turned *= Rotation.from_matrix(measured[:, :3, :3])
    astray = (states - recording.states) / model.state_scale
    return Judgement(
        unseen=unseen,
        positions=np.linalg.norm(found[:, :, 3] - measured[:, :3, 3], axis=1),
        rotations=turned.magnitude(),
        kinks=kinks_of(states / model.state_scale),
        tips=np.linalg.norm(found[:, :, 3] - recording.tips, axis=1),
        states=np.sqrt(np.mean(astray**2, axis=1)),
        compliance=np.abs(compliance / recording.compliance - 1.0),
        repairs=estimate.repairs,
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
