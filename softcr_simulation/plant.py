"""A simulated soft actuator: what simulator and emulators put in the place of the hardware."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from softcr_models.chain.pressure import PressureLag
from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction
from softcr_models.robots.obstacle_files import ObstacleFile
from softcr_models.robots.robot import Robot
from softcr_models.robots.segments import Payload
from softcr_models.rod.cosserat_rod import CosseratRod, EquilibriumError
from softcr_models.rod.description import pose_sensors
from softcr_models.rod.point_loads import PointLoad
from softcr_models.rod_model.rod_model import sensor_pose
from softcr_models.rod_model.tendon_lengths import tendon_lengths
from softcr_runtime.blocks.values import PointForces
from softcr_simulation.errors.different_robot import different_robot
from softcr_simulation.errors.noises import Noises
from softcr_simulation.errors.plant_errors import MODEL_ERRORS, PlantErrors
from softcr_simulation.scripted_loads import LoadScript, LoadsOnRod


@dataclass(frozen=True)
class Surroundings:
    """What acts on the plant from outside.

    Attributes:
        loads: by a script; None for none.
        obstacles: that the rod may touch; None for none.
    """

    loads: LoadScript | None = None
    obstacles: ObstacleFile | None = None


_ALONE, _EXACT = Surroundings(), PlantErrors()


@dataclass(frozen=True, eq=False)
class Measurement:
    """One sample of all sensors, with the truth behind it.

    Attributes:
        stamp: time of the sample [ns].
        pressures: (m,) measured [Pa].
        tip_pose: (4, 4) measured, base frame [m], taken at `tip_stamp` [ns]; None until the first
            one has come through the latency, and where it was lost.
        wrench: (6,) measured force [N], moment [N m], force-torque frame.
        state: (nx,) true state of the plant's rod.
        node_poses: (n + 1, 4, 4) true poses of the rod's nodes, base frame [m].
        true_tip_pose: (4, 4) at `stamp`.
        true_pressures: (m,) [Pa].
        loads: of the script; None without one.
        contact: at all points that may touch an obstacle; None without obstacles.
        body_poses: (3, 4) of each sensor along the body [m], with `tip_pose`.
        tendon_lengths: (tendons,) measured [m].
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
    loads: PointForces | None = None
    contact: PointForces | None = None
    body_poses: tuple[np.ndarray, ...] = ()
    tendon_lengths: np.ndarray = field(default_factory=lambda: np.zeros(0))


def passes(duration: float) -> bool:
    """Whether any time passes in a duration [s].

    Raises:
        ValueError: it is negative, or no number.
    """
    if not 0.0 <= duration < math.inf:
        raise ValueError(f"duration = {duration} s: must be a number that is not negative")
    return duration > 0.0


def with_payload(robot: Robot, mass: float) -> Robot:
    """The robot with a point mass [kg] more: at its payload's centre of mass, or without a payload
    on the outer face of its tip cap."""
    if not mass:
        return robot
    held = robot.payload or Payload(mass=0.0, centre_of_mass=(0.0, 0.0, robot.tip_cap_length))
    return robot.replace(payload=held.model_dump() | {"mass": held.mass + mass})


def _with_lag(robot: Robot, errors: PlantErrors) -> Robot:
    """The robot with the lag that the errors say, its steady gain as before."""
    if errors.lag_pole_factor == 1.0:
        return robot
    lag = robot.pressure_lag
    pole = errors.lag_pole_factor * lag.pole
    return robot.replace(pressure_lag=PressureLag(lag.gain / lag.pole * pole, pole))


class SimulatedPlant:
    """Rod, pressure lag, valve limits and sensors of one robot.

    The plant is never the controller's model: its rod has its own number of intervals, its own
    parameters and a finer time step.

    Attributes:
        errors: how it differs from its file.
        noises: of its sensors.
        mocap_latency: cycles by which a pose arrives late.
        rod: the plant's rod.
        surroundings: what acts on it from outside.
        time: that has passed since it was reset [s]; the script of loads goes by it.
        pressures: (m,) true chamber pressures [Pa]; tensions [N] of tendons.
        inputs: what drives it: names, limits, lag.
        command: (m,) what valves and drives follow [Pa], [N], inside their limits.
    """

    # pressures are exact at the ends of pieces and linear in between: the base force of a moving
    # rod is then right within 0.02 N
    _PIECE = 0.002

    # of a piece: 1 ms, and less where the rod touches an obstacle
    _SUBSTEPS = 2

    def __init__(
        self,
        robot: Robot,
        errors: PlantErrors = _EXACT,
        seed: int = 0,
        intervals: int = 10,
        surroundings: Surroundings = _ALONE,
        mocap_latency: int = 0,
    ) -> None:
        """
        Args:
            robot: as its file has it.
            errors: of the plant, of `MODEL_ERRORS`.
            seed: of all random streams.
            intervals: of the plant's rod.
            surroundings: what acts on it from outside.
            mocap_latency: cycles by which a pose arrives late.

        Raises:
            UserError: a number is out of range, an error needs other equations, a load stands where
                no node can take it, or an obstacle is where the rod is at rest.
        """
        if others := sorted(errors.changed().keys() - MODEL_ERRORS):
            raise UserError(
                f"plant errors: {', '.join(others)}: the plant has the equations of the model, "
                f"allowed are {', '.join(sorted(MODEL_ERRORS))}"
            )
        self.errors, self.surroundings, self.mocap_latency = errors, surroundings, mocap_latency
        self.noises, self._seed = Noises.of(robot, errors), seed
        self._gain = errors.of_inputs("pressure_gain", robot)
        self._bias = errors.of_inputs("pressure_bias", robot)
        different = with_payload(_with_lag(different_robot(robot, errors), errors),
                                 errors.payload_mass)  # fmt: skip
        alone = self.rod = CosseratRod(different, intervals)
        if surroundings.obstacles is not None:
            things, law = surroundings.obstacles.things, surroundings.obstacles.contact.law
            self.rod = CosseratRod(alone.robot, intervals, obstacles=things, contact=law)
        self._loads: LoadsOnRod | None = None
        if surroundings.loads is not None:
            self._loads = LoadsOnRod(surroundings.loads, self.rod)
        self.inputs = RodPrediction(self.rod).inputs
        self._input_noise = np.array([getattr(self.noises, each) for each in robot.quantities])
        self._rest = self._at_rest(alone)
        self._require_free_rest()
        self.reset()

    def reset(self) -> None:
        """Vented and at rest, sensors seeded again."""
        chambers = self.rod.input_size
        self._random = np.random.default_rng(self._seed)
        self._length_noise = np.random.default_rng((self._seed, 1))
        self._poses_lost = np.random.default_rng((self._seed, 1))
        self._poses: deque[tuple[int, np.ndarray, tuple[np.ndarray, ...]]] = deque()
        self.time = 0.0
        self.pressures = np.zeros(chambers)
        self.command = np.zeros(chambers)
        self.state = self._rest.copy()

    def follow(self, command: np.ndarray) -> None:
        """From now on valves and drives follow `command` (m,), clipped to what they can."""
        self.command = np.clip(command, self.inputs.low, self.inputs.high)

    @property
    def aim(self) -> np.ndarray:
        """(m,) at which the valves aim, so that their sensors read the command [Pa]."""
        return np.clip((self.command - self._bias) / self._gain, self.inputs.low, self.inputs.high)

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
        lag, aim = self.inputs.lag, self.aim
        pieces = max(1, math.ceil(duration / self._PIECE - 1e-9))
        piece = duration / pieces
        if lag is None:
            levels = list(np.linspace(self.pressures, aim, pieces + 1))
        else:
            levels = [self.pressures]
            for _ in range(pieces):
                levels.append(lag.step(levels[-1], aim, piece))
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
        begin = self.time
        self.time += piece * (len(levels) - 1)
        if self._loads is None:
            self.state = self._moved(levels, piece)
        else:
            for k in range(len(levels) - 1):
                since, until = begin + k * piece, begin + (k + 1) * piece
                acting = self._loads.acting(since, until, self.state)
                self.state = self._moved(levels[k : k + 2], piece, acting)
        if not np.isfinite(self.state).all():
            loads = "" if self._loads is None else f" and its loads at {self.time:.3f} s"
            raise ArithmeticError(
                f"the plant diverged under inputs {self.pressures.tolist()}{loads}: "
                f"{self.rod.retries.reason}"
            )

    def _moved(
        self, levels: np.ndarray, piece: float, acting: Sequence[PointLoad] = ()
    ) -> np.ndarray:
        """(nx,) the state after pieces [s] under constant loads."""
        moved = self.rod.simulate_ramps(
            self.state, levels, piece, substeps=self._SUBSTEPS, loads=acting
        )
        state: np.ndarray = moved[-1]
        return state

    def _at_rest(self, rod: CosseratRod) -> np.ndarray:
        """(nx,) vented and without loads."""
        try:
            return rod.equilibrium(np.zeros(rod.input_size))
        except EquilibriumError as error:
            mass = self.errors.payload_mass
            if not mass:
                raise
            raise UserError(
                f"payload_mass = {mass:g} kg: robot {rod.robot.name} cannot bear it: {error}"
            ) from None

    def _require_free_rest(self) -> None:
        obstacles = self.surroundings.obstacles
        points, forces = self.rod.contact_forces(self._rest)
        if obstacles is not None and len(points):
            worst = points[int(np.argmax(np.linalg.norm(forces, axis=1)))]
            place = ", ".join(f"{each:.3f}" for each in worst)
            raise UserError(
                f"obstacle {obstacles.nearest(worst)}: the robot at rest touches it with its point "
                f"({place}) m: it must be clear of the robot, outer radius included"
            )

    def measure(self, stamp: int) -> Measurement:
        """Read all sensors at `stamp` [ns]."""
        noises, random = self.noises, self._random
        acting: Sequence[PointLoad] = ()
        if self._loads is not None:
            acting = self._loads.acting(self.time, self.time, self.state)
        nodes = self.rod.node_poses(self.state)
        true_pose = self.rod.tip_pose_from_rod_tip(nodes[-1])
        seen = true_pose.copy()
        seen[:3, 3] += noises.tip * random.standard_normal(3)
        wrench = self.rod.base_wrench(self.state, self.pressures, loads=acting)
        noise = random.standard_normal(6)
        noise[:3] *= noises.force
        noise[3:] *= noises.moment
        self._poses.append((stamp, seen, self._body_poses()))
        tip_stamp, tip_pose = 0, None
        body_poses: tuple[np.ndarray, ...] = ()
        if len(self._poses) > self.mocap_latency:
            tip_stamp, tip_pose, body_poses = self._poses.popleft()
        if self._poses_lost.random() < self.errors.dropout:
            tip_pose = None
        chambers = random.standard_normal(self.rod.input_size)
        read = self._gain * (self.pressures + self._input_noise * chambers) + self._bias
        return Measurement(
            stamp=stamp,
            pressures=read,
            tip_pose=tip_pose,
            tip_stamp=tip_stamp,
            wrench=wrench + noise,
            state=self.state.copy(),
            node_poses=nodes,
            true_tip_pose=true_pose,
            true_pressures=self.pressures.copy(),
            loads=None if self._loads is None else self._loads.forces(self.time, self.state),
            contact=self._contact(),
            body_poses=body_poses,
            tendon_lengths=self._tendon_lengths(),
        )

    def _tendon_lengths(self) -> np.ndarray:
        lengths = tendon_lengths(self.rod, self.state)
        noise = self._length_noise.standard_normal(len(lengths))
        measured: np.ndarray = lengths + self.noises.tendon_length * noise
        return measured

    def _body_poses(self) -> tuple[np.ndarray, ...]:
        """(3, 4) what each sensor along the body sees."""
        sensors = pose_sensors(self.rod.robot)
        poses = [sensor_pose(self.rod, each, self.state) for each in sensors.values()]
        for pose, sensor in zip(poses, sensors.values(), strict=True):
            pose[:, 3] += sensor.noise * self._random.standard_normal(3)
        return tuple(poses)

    def _contact(self) -> PointForces | None:
        if self.surroundings.obstacles is None:
            return None
        points, forces = self.rod.contact_points(self.state)
        return PointForces(points, np.hstack((forces, np.zeros_like(forces))))
