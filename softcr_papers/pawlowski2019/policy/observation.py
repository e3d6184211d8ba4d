"""What a learned policy is told of a rod, the same numbers whatever the rod's grid.

Places along the rod are fractions of a segment's length, linear between nodes, so that a policy
that was trained on one grid can be judged on another. Every number is divided by a typical
magnitude of it. Positions and velocities are in the base frame, curvatures and angular velocities
in the frame of their place.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from softcr_models.errors import UserError
from softcr_models.model import TIP, nominal_parameters
from softcr_models.rod.state import RodState
from softcr_models.rod_model.rod_model import RodModel

CURVATURE_PLACES, VELOCITY_PLACES = (0.0, 0.4, 0.8), (0.6, 1.0)
"""Fractions of each segment's length: nodes of every rod of a multiple of five intervals."""

VERSION = 2
"""Of what is told and of its magnitudes: a policy of another one cannot be used."""

_AXES = ("x", "y", "z")
# typical magnitudes; with numbers that are too small a policy learns in twice the samples
_POSITION, _DISTANCE = 0.3, 0.1  # over the rod's length, of positions and of their difference [-]
_BENDING, _TORSION = 0.5, 0.2  # times the rod's length, of curvatures [rad]
_TIME = 0.4  # in which a tip moves by the rod's length, and turns by `_TURN` [s]
_TURN = 2.0  # [rad]


@dataclass(frozen=True)
class ObservationLayout:
    """What the numbers of an observation mean, and of which robot: what a policy is bound to.

    Two layouts are equal where a policy of the one may be used with the other. Compliances, masses
    and damping are not in it: a policy is used on robots that differ from its model.

    Attributes:
        robot: its name.
        actuators: their names, in the order of every input vector.
        unit: of the inputs.
        low, high: (m,) limits of the inputs, to which actions from -1 to 1 are stretched [unit].
        lengths: (K,) of the segments [m].
        gravity: (3,) in the base frame [m/s^2].
        names: of the observation's entries.
        version: of the observation.
    """

    robot: str
    actuators: tuple[str, ...]
    unit: str
    low: tuple[float, ...]
    high: tuple[float, ...]
    lengths: tuple[float, ...]
    gravity: tuple[float, ...]
    names: tuple[str, ...]
    version: int = VERSION

    def as_json(self) -> dict[str, Any]:
        """As a JSON file has it."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "ObservationLayout":
        """What `as_json` told.

        Raises:
            UserError: it is not such a content.
        """
        try:
            values: dict[str, Any] = {
                n: tuple(v) if isinstance(v, list) else v for n, v in content.items()
            }
            return cls(**values)
        except (AttributeError, TypeError) as error:
            raise UserError(f"layout of an observation: {error}") from None

    def require(self, policy: "ObservationLayout", what: str) -> None:
        """That a policy's layout is this one.

        Args:
            policy: layout that the policy was trained with.
            what: names the policy in the line, as "policy FILE".

        Raises:
            UserError: with the first field that differs, both values, and the robot.
        """
        for name, ours in asdict(self).items():
            theirs = getattr(policy, name)
            if ours == theirs:
                continue
            if name == "names" and set(ours) != set(theirs):  # the others would bury what differs
                ours, theirs = _only(ours, theirs), _only(theirs, ours)
            raise UserError(
                f"{what}: was trained with {name} {_told(theirs)}, must be {_told(ours)} for "
                f"robot {self.robot}"
            )


class PolicyObservation:
    """Observations of many states of a rod in one call.

    The entries, in this order: tip 3, velocity of the tip 3, goal 3, goal - tip 3; of each segment
    curvatures at three places 9 and angular velocities at two 6; then, where they are wanted, the
    goal's velocity 3 and the inputs that act m.

    The state is meant to be that of the moment from which the policy's action acts.

    Attributes:
        model: whose states these are.
        layout: what the entries mean.
        of_goal_velocity, of_inputs: whether these are told.
        offset, scale: (n,) an entry is (value - offset) / scale.
        twists: (nx, 3) states @ twists: velocity of the tip in the tip's frame [m/s].
        places: (nx, 15 K) states @ places: curvatures [1/m] of the nominal rod and angular
            velocities [rad/s], segment by segment.
    """

    def __init__(
        self, model: RodModel, *, of_goal_velocity: bool = False, of_inputs: bool = False
    ) -> None:
        """See the class.

        Args:
            model: the exact rod, the one on a GPU, or the surrogate.
            of_goal_velocity: for goals that move.
            of_inputs: for robots whose inputs do not follow their commands at once.
        """
        self.model = model
        self.of_goal_velocity, self.of_inputs = of_goal_velocity, of_inputs
        rod, robot, inputs = model.rod, model.rod.robot, model.inputs
        self._nominal = nominal_parameters(model.parameters)
        self.twists, self.places = _tip_twists(model), _places(model)
        names, offset, scale = _entries(model, of_goal_velocity, of_inputs)
        self.offset, self.scale = np.array(offset), np.array(scale)
        self.layout = ObservationLayout(
            robot.name, inputs.names, inputs.unit, tuple(inputs.low.tolist()),
            tuple(inputs.high.tolist()), tuple(each.length for each in robot.segments),
            tuple((0.0 - rod.grid.gravity).round(6).tolist()), names,
        )  # fmt: skip
        # bending curvatures of each segment, and which parameter scales them
        columns = [
            15 * a + 3 * i + k
            for a in range(rod.segments)
            for i in range(len(CURVATURE_PLACES))
            for k in range(2)
        ]
        self._bendings = np.array(columns)
        self._bending_of = np.minimum(self._bendings // 15, rod.body.bendings - 1)

    @property
    def size(self) -> int:
        """n, the number of entries."""
        return len(self.scale)

    def __call__(
        self,
        states: np.ndarray,
        goals: np.ndarray,
        *,
        goal_velocities: np.ndarray | None = None,
        inputs: np.ndarray | None = None,
        parameters: np.ndarray | None = None,
        tips: np.ndarray | None = None,
    ) -> np.ndarray:
        """(B, n) float32.

        Args:
            states: (B, nx).
            goals: (B, 3) or (1, 3) where the tip should be, base frame [m].
            goal_velocities: (B, 3) or (1, 3) if the layout has them [m/s].
            inputs: (B, m) that act at this moment, if the layout has them.
            parameters: (B, P) or (1, P) of the model; None: nominal.
            tips: (B, 3, 4) poses of the tip, if they are known already.

        Raises:
            UserError: something that the layout has is not given, or of a wrong shape.
        """
        numbers = self._nominal[None] if parameters is None else parameters
        if tips is None:
            tips = self.model.tip_poses(states, numbers)
        batch, kind = len(states), states.dtype
        tip = tips[:, :, 3]
        twist = states @ self.twists.astype(kind)
        velocity = np.einsum("bij,bj->bi", tips[:, :, :3], twist)
        along = states @ self.places.astype(kind)
        if parameters is not None:
            count = self.model.rod.body.bendings  # the first of the parameters
            ratio = numbers[:, :count] / self._nominal[:count]
            along[:, self._bendings] *= ratio[:, self._bending_of]
        goal = _rows("goals", goals, batch, 3)
        parts = [tip, velocity, goal, goal - tip, along]
        if self.of_goal_velocity:
            parts.append(_rows("goal_velocities", goal_velocities, batch, 3))
        if self.of_inputs:
            parts.append(_rows("inputs", inputs, batch, self.model.inputs.size))
        values = np.concatenate(parts, axis=1, dtype=np.float64)
        return ((values - self.offset) / self.scale).astype(np.float32)


def observation_of(model: Any, *, of_goal_velocity: bool, of_inputs: bool) -> PolicyObservation:
    """The observation of a model.

    Raises:
        UserError: the model's states are not a rod's.
    """
    if not isinstance(model, RodModel):
        raise UserError(f"policy: is for rods, which {type(model).__name__} is not a model of")
    return PolicyObservation(model, of_goal_velocity=of_goal_velocity, of_inputs=of_inputs)


def inputs_lag(model: RodModel, period: float) -> bool:
    """Whether the inputs cannot be what is commanded within a period [s]: a policy of such a robot
    has to be told the inputs that act."""
    inputs = model.inputs
    return inputs.lag is not None or bool((inputs.rate * period < 0.999 * inputs.range).any())


def straight_tip(model: RodModel) -> np.ndarray:
    """(3,) of the straight rod [m]."""
    rest, row = np.zeros((1, model.state_size)), nominal_parameters(model.parameters)[None]
    tip: np.ndarray = model.observe((TIP,), rest, None, row)[TIP][0, :, 3]
    return tip


def _tip_twists(model: RodModel) -> np.ndarray:
    """(nx, 3) velocity of the tip cap's outer face in its frame: v + w x (0, 0, cap)."""
    rod = model.rod
    last = RodState(np.arange(model.state_size), rod.segments).velocities[-1]
    matrix = np.zeros((model.state_size, 3))
    matrix[last[:3], range(3)] = 1.0
    cap = rod.robot.tip_cap_length
    matrix[last[4], 0], matrix[last[3], 1] = cap, -cap
    return matrix


def _places(model: RodModel) -> np.ndarray:
    """(nx, 15 K) of `PolicyObservation.places`."""
    rod, size = model.rod, model.state_size
    parts = RodState(np.eye(size), rod.segments)  # each row: what one entry of a state does
    compliances = rod.robot.segment_compliances
    columns, node = [], 0
    for a in range(rod.segments):
        first, end = rod.grid.first_row[a : a + 2]
        curvatures = parts.wrenches[:, first:end, 3:] * compliances[a, 3:]
        count = end - first - 1
        own = parts.velocities[:, node : node + count, 3:]
        turning = np.concatenate((_at_begin(rod, parts, a, node), own), axis=1)
        columns += [_between(curvatures, each) for each in CURVATURE_PLACES]
        columns += [_between(turning, each) for each in VELOCITY_PLACES]
        node += count
    return np.concatenate(columns, axis=1)


def _at_begin(rod: Any, parts: RodState, a: int, node: int) -> np.ndarray:
    """(nx, 1, 3) angular velocity behind the connector where segment a begins."""
    if a == 0:
        return np.zeros((len(parts.array), 1, 3))
    before = parts.velocities[:, node - 1 : node, 3:]
    connector = rod.robot.segments[a - 1].connector
    return before if connector is None else before @ connector.rotation_matrix


def _between(rows: np.ndarray, fraction: float) -> np.ndarray:
    """(nx, 3) at a fraction of rows (nx, k, 3)."""
    place = fraction * (rows.shape[1] - 1)
    low = min(int(place + 1e-9), rows.shape[1] - 2)
    share = place - low
    between: np.ndarray = (1.0 - share) * rows[:, low] + share * rows[:, low + 1]
    return between


def _entries(
    model: RodModel, of_goal_velocity: bool, of_inputs: bool
) -> tuple[tuple[str, ...], list[float], list[float]]:
    """Names, offsets and scales of the entries."""
    robot, inputs = model.rod.robot, model.inputs
    length, straight = robot.length, straight_tip(model).tolist()
    speed, several = length / _TIME, len(robot.segments) > 1
    found: list[tuple[str, float, float]] = []

    def add(name: str, scales: list[float], offsets: list[float] | None = None) -> None:
        of = zip(_AXES, offsets or [0.0] * 3, scales, strict=True)
        found.extend((f"{name} {axis}", offset, scale) for axis, offset, scale in of)

    add("tip", [_POSITION * length] * 3, straight)
    add("tip velocity", [speed] * 3)
    add("goal", [_POSITION * length] * 3, straight)
    add("goal - tip", [_DISTANCE * length] * 3)
    for segment in robot.segment_names:
        of = f" of {segment}" if several else ""
        for place in CURVATURE_PLACES:
            bending, torsion = _BENDING / length, _TORSION / length
            add(f"curvature at {place}{of}", [bending, bending, torsion])
        for place in VELOCITY_PLACES:
            add(f"angular velocity at {place}{of}", [_TURN / _TIME] * 3)
    if of_goal_velocity:
        add("goal velocity", [speed] * 3)
    if of_inputs:
        low, half = inputs.low, 0.5 * inputs.range
        each = zip(inputs.names, (low + half).tolist(), half.tolist(), strict=True)
        found.extend((f"input {name}", offset, scale) for name, offset, scale in each)
    names, offset, scale = zip(*found, strict=True)
    return names, list(offset), list(scale)


def _rows(name: str, values: Any, batch: int, width: int) -> np.ndarray:
    """(B, width) of what is given as (B, width) or (1, width)."""
    shape = np.shape(values)
    if shape not in ((batch, width), (1, width)):
        raise UserError(f"{name} of shape {shape}: must be ({batch}, {width}) or (1, {width})")
    return np.broadcast_to(np.asarray(values), (batch, width))


def _only(names: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in others)


def _told(value: Any) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_told, value)) + ")"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
