"""What filters are tuned and judged on: motions of plants that are not the model.

Under known commands plant and sensors do not depend on the filter: a recording serves every
candidate. Behind a controller they do: such a run is made anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_control.reference import signals
from softcr_control.reference.references import SampledReference
from softcr_estimation import ModelEstimate, ModelEstimator, ModelEstimatorSettings
from softcr_models import CosseratRod, Robot
from softcr_models.model import TIP
from softcr_models.prediction import RodPrediction
from softcr_models.rod.state import RodState
from softcr_models.rod_model.rows import restricted
from softcr_runtime.blocks.values import StateEstimate
from softcr_runtime.blocks.virtual_run import Log, run_blocks
from softcr_runtime.settings.registry import GRADIENT_MPC
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.plant import SimulatedPlant
from softcr_simulation.plants import RodPlant
from softcr_studies.loops.closed_loop import open_loop
from softcr_studies.loops.tracking_loop import (
    MODEL_INTERVALS,
    PERIOD,
    RATE_HZ,
    REFERENCE_INTERVALS,
    USUAL,
    Case,
    run_loop,
)

_TRUTH = ("simulation/truth/tip/pose", "simulation/truth/rod")
MEAN, AMPLITUDE = 35e3, 20e3  # of the commands [Pa]
WINDOW = 3  # of the moving standard deviation along the rod [differences]


@dataclass(frozen=True)
class Motion:
    """One recording to be made: sines in all chambers, from the vented rod."""

    name: str  # of the row
    frequencies: tuple[float, ...]  # of the sines [Hz]
    duration: float  # [s]
    errors: PlantErrors = USUAL  # of the plant
    later: PlantErrors | None = None  # from half of the motion on, with the same bending compliance


@dataclass(frozen=True, eq=False)
class Recording:
    """What was measured and what was true, a row per cycle."""

    pressures: np.ndarray  # (T, m) as read [Pa]
    tips: np.ndarray  # (T, 3) measured tip positions, base frame [m]
    true_poses: np.ndarray  # (T, 4, 4) of the tip, base frame [m]
    states: np.ndarray  # (T, nx) true states at the model's nodes
    compliance: float  # true bending compliance [rad/(N m m)]


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a filter made of a motion, a row per cycle."""

    positions: np.ndarray  # (T,) true tip from the estimated one, in a loop from the wanted one [m]
    rotations: np.ndarray  # (T,) angle between true and estimated tip [rad]
    kinks: np.ndarray  # (T,) roughness of the strain along the rod, see `kinks_of` [-]
    states: np.ndarray  # (T,) root mean square of the state's error / state scale [-]
    compliance: np.ndarray  # (T,) relative error of the bending compliance [-]
    repairs: int  # of the filter


@cache
def record(robot: Robot, motion: Motion, seed: int) -> Recording:
    """The plant of a seed moves under known commands; a process makes it once."""
    times = signals.time_grid(motion.duration, PERIOD)[:-1]
    chambers = len(robot.actuators)
    wanted = signals.sines(times, chambers, MEAN, AMPLITUDE, motion.frequencies)
    wanted = signals.soft_start(wanted, np.zeros(chambers), times, 1.0)
    plant = _ChangingPlant(robot, motion, len(wanted) // 2, seed)
    log = Log("pressure/state", "mocap/tip/pose", *_TRUTH)
    run_blocks(open_loop(robot, plant, wanted[1:], len(wanted), RATE_HZ, seed), log)
    return Recording(
        np.array(log.values("pressure/state")),
        np.array([pose.position for pose in log.values("mocap/tip/pose")]),
        *_truth(log),
        plant.simulated.rod.robot.bending_compliance,
    )


class _ChangingPlant(RodPlant):
    """A motion's plant."""

    def __init__(self, robot: Robot, motion: Motion, change: int, seed: int) -> None:
        """`change` is the cycle from which on it is the later one, `seed` that of its sensors."""
        self._robot, self._motion, self._change, self._seed = robot, motion, change, seed
        self.reset()

    def reset(self) -> None:
        plant = _BlindValves(self._robot, self._motion.errors, self._seed, REFERENCE_INTERVALS)
        self._use(self._robot, plant)
        self._left = self._change

    def advance(self, duration: float) -> None:
        self._left -= 1
        later, old = self._motion.later, self.simulated
        if self._left == 0 and later is not None:  # for instance, it has picked something up
            new = _BlindValves(self._robot, later, self._seed + 1, REFERENCE_INTERVALS)
            assert isinstance(old, SimulatedPlant)
            new.state, new.pressures, new.command = old.state, old.pressures, old.command
            self.simulated = new
        super().advance(duration)


class _BlindValves(SimulatedPlant):
    """A plant whose valves make the commanded pressures, whatever sensors read."""

    @property
    def aim(self) -> np.ndarray:
        return self.command


def _truth(log: Log) -> tuple[np.ndarray, np.ndarray]:
    """(T, 4, 4) true tip poses [m], (T, nx) true states at the model's nodes."""
    poses, rods = (log.values(topic) for topic in _TRUTH)
    states = np.array([rod.state for rod in rods])
    fine = (RodState(states).intervals,)
    seen = restricted(states, fine, (MODEL_INTERVALS,))
    return np.array([pose.matrix for pose in poses]), seen


def filtered(robot: Robot, recording: Recording, settings: ModelEstimatorSettings) -> Judgement:
    """Runs a filter over a recording.

    Raises:
        ArithmeticError, ValueError: the filter lost the numbers.
    """
    model = RodPrediction(CosseratRod(robot, MODEL_INTERVALS), single_precision=False)
    estimator = ModelEstimator(model, settings)
    estimates = [estimator.start(recording.pressures[0], 0.0)]
    # what a bad candidate overflows is told by its cost
    with np.errstate(over="ignore", invalid="ignore"):
        for cycle in range(1, len(recording.tips)):
            read, tip = recording.pressures[cycle], recording.tips[cycle]
            estimates.append(estimator.update(read, {TIP: tip}, cycle * PERIOD))
        truth = recording.true_poses, recording.states, recording.compliance
        return _judgement(model, estimates, *truth, estimates[-1].repairs)


def looped(
    robot: Robot, case: Case, source: SampledReference, seeds: tuple[int, int],
    settings: ModelEstimatorSettings,
) -> Judgement:  # fmt: skip
    """Runs the shipped gradient MPC behind a filter; positions are judged by the reference.

    Raises:
        ArithmeticError, ValueError: the filter diverged, or the plant behind it.
    """
    log = Log("estimate/rod", *_TRUTH)
    with np.errstate(over="ignore", invalid="ignore"):
        trace = run_loop(
            robot, case, source, GRADIENT_MPC, seeds, filter_settings=settings, observe=log
        )
        model = RodPrediction(CosseratRod(robot, MODEL_INTERVALS), single_precision=False)
        truth = *_truth(log), trace["true_compliance"]
        judged = _judgement(model, log.values("estimate/rod"), *truth, trace["repairs"])
    return replace(judged, positions=trace["error"])


def _judgement(
    model: RodPrediction, estimates: Sequence[ModelEstimate | StateEstimate],
    true_poses: np.ndarray, true_states: np.ndarray, true_compliance: float, repairs: int,
) -> Judgement:  # fmt: skip
    states = np.array([estimate.state for estimate in estimates])
    parameters = np.array(
        [[estimate.parameters[name] for name in model.parameter_names] for estimate in estimates]
    )
    compliance = parameters[:, model.parameter_names.index("bending_compliance")]
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
        repairs=repairs,
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
