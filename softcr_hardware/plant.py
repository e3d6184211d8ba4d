"""A simulated soft actuator: what simulator and emulators put in the place of the hardware."""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from softcr_models.prediction import RodPrediction
from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod


@dataclass(frozen=True)
class Mismatch:
    """How the plant differs from the robot file that filter and controller know.

    Attributes:
        bending_compliance_factor, tip_mass_factor, damping_factor: on the file's values.
    """

    bending_compliance_factor: float = 1.0
    tip_mass_factor: float = 1.0
    damping_factor: float = 1.0


@dataclass(frozen=True)
class SensorModel:
    """What the sensors add to the truth.

    Attributes:
        tip_noise: standard deviation of each coordinate of the tip [m].
        pressure_noise: standard deviation of each pressure [Pa].
        tension_noise: standard deviation of each tension [N].
        force_noise, moment_noise: of the base wrench [N], [N m].
        mocap_latency: cycles by which a pose arrives late.
        seed: of all of them.
    """

    tip_noise: float = 0.0
    pressure_noise: float = 0.0
    force_noise: float = 0.0
    moment_noise: float = 0.0
    mocap_latency: int = 0
    seed: int = 0
    tension_noise: float = 0.0


@dataclass(frozen=True, eq=False)
class Measurement:
    """One sample of all sensors, with the truth behind it.

    Attributes:
        stamp: time of the sample [ns].
        pressures: (m,) measured [Pa].
        tip_pose: (4, 4) measured, base frame [m], taken at `tip_stamp` [ns]; None until the first
        one
            has come through the latency.
        wrench: (6,) measured force [N], moment [N m], force-torque frame.
        state: (nx,) true state of the plant's rod.
        node_poses: (n + 1, 4, 4) true poses of the rod's nodes, base frame [m].
        true_tip_pose: (4, 4) at `stamp`.
        true_pressures: (m,) [Pa].
    """

    stamp: int
    pressures: np.ndarray
    tip_pose: np.ndarray | None
    tip_stamp: int
    wrench: np.ndarray
    state: np.ndarray
    node_poses: np.ndarray
    true_tip_pose: np.ndarray
    true_pressures: np.ndarray


def passes(duration: float) -> bool:
    """Whether any time passes in a duration [s].

    Raises:
        ValueError: it is negative, or no number.
    """
    if not 0.0 <= duration < math.inf:
        raise ValueError(f"duration = {duration} s: must be a number that is not negative")
    return duration > 0.0


class SimulatedPlant:
    """Rod, pressure lag, valve limits and sensors of one robot.

    The plant is never the controller's model: its rod has its own number of intervals, its own
    parameters and a finer time step.

    Attributes:
        rod: the plant's rod.
        pressures: (m,) true chamber pressures [Pa]; tensions [N] of tendons.
        command: (m,) what valves and drives follow [Pa], [N], inside their limits.
    """

    # pressures are exact at the ends of pieces and linear in between: the base force of a moving
    # rod is then right within 0.02 N
    _PIECE = 0.002

    def __init__(
        self, robot: Robot, mismatch: Mismatch, sensors: SensorModel, intervals: int = 10
    ) -> None:
        self.mismatch = mismatch
        self.sensors = sensors
        self.rod = CosseratRod(
            robot.scaled(
                bending=mismatch.bending_compliance_factor,
                damping=mismatch.damping_factor,
                tip_mass=mismatch.tip_mass_factor,
            ),
            intervals,
        )
        self._prediction = RodPrediction(self.rod, substeps=2, single_precision=False)
        self._inputs = self._prediction.inputs
        tendons = np.isin(np.arange(self._inputs.size), robot.tendon_inputs)
        self._input_noise = np.where(tendons, sensors.tension_noise, sensors.pressure_noise)
        self._rest = self.rod.equilibrium(np.zeros(self.rod.input_size))
        self.reset()

    def reset(self) -> None:
        """Vented and at rest, sensors seeded again."""
        chambers = self.rod.input_size
        self._random = np.random.default_rng(self.sensors.seed)
        self._poses: deque[tuple[int, np.ndarray]] = deque()
        self.pressures = np.zeros(chambers)
        self.command = np.zeros(chambers)
        self.state = self._rest.copy()

    def follow(self, command: np.ndarray) -> None:
        """From now on valves and drives follow `command` (m,), clipped to what they can."""
        self.command = np.clip(command, self._inputs.low, self._inputs.high)

    def vent(self) -> None:
        """From now on the valves let the air out, and the tendons are as slack as they may be."""
        self.follow(np.zeros(self.rod.input_size))

    def advance(self, duration: float) -> None:
        """Let `duration` [s] pass. Inputs without a lag go evenly to the command within it.

        Raises:
            ArithmeticError: the rod's motion left what numbers can hold.
            ValueError: time cannot pass so.
        """
        if not passes(duration):
            return
        lag = self._inputs.lag
        pieces = max(1, math.ceil(duration / self._PIECE - 1e-9))
        piece = duration / pieces
        if lag is None:
            levels = list(np.linspace(self.pressures, self.command, pieces + 1))
        else:
            levels = [self.pressures]
            for _ in range(pieces):
                levels.append(lag.step(levels[-1], self.command, piece))
        self.pressures = levels[-1]
        self._move(np.array(levels), piece)

    def impose(self, begin: float, end: float, times: np.ndarray, pressures: np.ndarray) -> None:
        """Live from `begin` to `end` [s] under pressures somebody else made: who emulates valves.

        Args:
            begin, end: of this piece of the rod's life [s].
            times: (T,) of the pressures [s], ascending.
            pressures: (T, m) of the chambers [Pa], linear in between, held before and after.

        Raises:
            ArithmeticError: the rod's motion left what numbers can hold.
            ValueError: time cannot pass so.
        """
        if not passes(end - begin):
            return
        pieces = max(1, math.ceil((end - begin) / self._PIECE - 1e-9))
        grid = np.linspace(begin, end, pieces + 1)
        levels = np.column_stack([np.interp(grid, times, chamber) for chamber in pressures.T])
        self.pressures = levels[-1]
        self._move(levels, (end - begin) / pieces)

    def _move(self, levels: np.ndarray, piece: float) -> None:
        """Along pressures (pieces + 1, m) [Pa], linear in between.

        Held pressures would jump: the wrench at the base follows them within the relaxation time,
        5 ms, and would be off at the very moment it is measured.
        """
        parameters = self.rod.nominal_parameters
        self.state = self._prediction.rollout(self.state, levels[None], parameters, piece)[0, -1]
        if not np.isfinite(self.state).all():
            raise ArithmeticError(
                f"the plant diverged under pressures {self.pressures.tolist()} Pa"
            )

    def measure(self, stamp: int) -> Measurement:
        """Read all sensors at `stamp` [ns]."""
        sensors, random = self.sensors, self._random
        nodes = self.rod.node_poses(self.state)
        true_pose = self.rod.tip_pose_from_rod_tip(nodes[-1])
        seen = true_pose.copy()
        seen[:3, 3] += sensors.tip_noise * random.standard_normal(3)
        wrench = self.rod.base_wrench(self.state, self.pressures)
        noise = random.standard_normal(6)
        noise[:3] *= sensors.force_noise
        noise[3:] *= sensors.moment_noise
        self._poses.append((stamp, seen))
        tip_stamp, tip_pose = 0, None
        if len(self._poses) > sensors.mocap_latency:
            tip_stamp, tip_pose = self._poses.popleft()
        chambers = random.standard_normal(self.rod.input_size)
        return Measurement(
            stamp=stamp,
            pressures=self.pressures + self._input_noise * chambers,
            tip_pose=tip_pose,
            tip_stamp=tip_stamp,
            wrench=wrench + noise,
            state=self.state.copy(),
            node_poses=nodes,
            true_tip_pose=true_pose,
            true_pressures=self.pressures.copy(),
        )
