"""The model protocol: what every filter and every controller needs of a robot's equations.

A model is anything that says what its state, inputs, parameters and outputs are, advances many
states in one call, and tells what can be measured of a state. The exact rod, its surrogate, the rod
on a GPU, the constant-curvature section and the arm of several sections are models; nothing outside
a model knows what stands at which index of a vector.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from softcr_models.chain.pressure import PressureLag
from softcr_models.chain.readings import InputMemory

Transform = Literal["log", "linear"]
Kind = Literal["pose", "position", "points", "wrench", "vector"]


@dataclass(frozen=True, eq=False)
class Group:
    """Entries of a state that mean the same kind of thing.

    Attributes:
        name: of the group, unique in its layout.
        indices: (k,) places in the state vector, ascending.
        unit: SI, of every entry.
    """

    name: str
    indices: np.ndarray
    unit: str


@dataclass(frozen=True, eq=False)
class Layout:
    """What a state vector holds.

    Attributes:
        groups: each entry belongs to exactly one of them.
        scale: (size,) typical magnitude of each entry, above 0, in the entry's unit.
    """

    groups: tuple[Group, ...]
    scale: np.ndarray

    def __post_init__(self) -> None:
        places = np.sort(np.concatenate([group.indices for group in self.groups]))
        if not np.array_equal(places, np.arange(len(self.scale))):
            raise ValueError("each entry of a state must belong to exactly one group")
        if len(set(self.names)) != len(self.groups):
            raise ValueError(f"groups {self.names}: each name must stand once")
        if not (np.isfinite(self.scale).all() and (self.scale > 0.0).all()):
            raise ValueError("scale: must be finite and above 0")

    @property
    def size(self) -> int:
        """Length of a state vector."""
        return len(self.scale)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the groups, in their order."""
        return tuple(group.name for group in self.groups)

    def __getitem__(self, name: str) -> np.ndarray:
        """(k,) indices of a group; KeyError where there is none of that name."""
        for group in self.groups:
            if group.name == name:
                return group.indices
        raise KeyError(f"{name!r}: the state's groups are {', '.join(self.names)}")

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups)

    def by_group(self, numbers: Mapping[str, float], default: float = 0.0) -> np.ndarray:
        """(size,) the number of each entry's group.

        Args:
            numbers: by name of group.
            default: of the groups that `numbers` leaves out.

        Raises:
            KeyError: no group has such a name.
        """
        values = np.full(self.size, default)
        for name, number in numbers.items():
            values[self[name]] = number
        return values


SENSOR_DEVIATION = 0.003
"""Standard deviation of the logarithm of a gain that is a sensor's alone [-]."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What drives a model: chamber pressures, tendon lengths, tensions.

    Attributes:
        quantity: "pressure", "tendon_length" or "tension"; names of what is estimated about the
            inputs' sensors begin with it (`pressure_offset_1`).
        names: of the m actuators, in the order of every input vector.
        unit: SI, of every input.
        low, high: (m,) smallest and largest allowed value [unit].
        rate: (m,) largest change per second [unit/s].
        lag: from a command to what the model feels; None where commands are followed at once.
        memory: what the model feels of the inputs' past beside them; None for nothing. Inputs of a
            model with a memory have m + k columns.
        gain_deviation: standard deviation of the logarithm of a gain, see `gain_names`, where a
            filter begins [-]; one above `SENSOR_DEVIATION` says that gains are worth estimating.
    """

    quantity: str
    names: tuple[str, ...]
    unit: str
    low: np.ndarray
    high: np.ndarray
    rate: np.ndarray
    lag: PressureLag | None = None
    memory: InputMemory | None = None
    gain_deviation: float = SENSOR_DEVIATION

    def __post_init__(self) -> None:
        shape = (len(self.names),)
        if any(np.shape(each) != shape for each in (self.low, self.high, self.rate)):
            raise ValueError(f"low, high, rate: must each have the shape {shape}")
        if not (self.low < self.high).all() or not (self.rate > 0.0).all():
            raise ValueError("low must be below high and rate above 0, for each input")

    @property
    def size(self) -> int:
        """m, the number of inputs."""
        return len(self.names)

    @property
    def gain_names(self) -> tuple[str, ...]:
        """What is estimated of the inputs' sensors: an input that acts is gain * reading + offset.

        (m,) names, of which `offset_names` are the others.
        """
        return tuple(f"{self.quantity}_gain_{i + 1}" for i in range(self.size))

    @property
    def offset_names(self) -> tuple[str, ...]:
        """(m,) See `gain_names`."""
        return tuple(f"{self.quantity}_offset_{i + 1}" for i in range(self.size))

    @property
    def rest(self) -> np.ndarray:
        """(m,) zero, or the allowed value that is closest to it [unit]."""
        return np.clip(np.zeros(self.size), self.low, self.high)

    @property
    def range(self) -> np.ndarray:
        """(m,) highest minus lowest value [unit]."""
        return self.high - self.low


@dataclass(frozen=True)
class Parameter:
    """A number of a model that may be estimated.

    Attributes:
        name: unique in the model.
        unit: SI; "-" for none.
        nominal: value where nothing is known.
        low, high: bounds of an estimate, in its unit.
        transform: "log": a filter holds the logarithm of value / nominal, which keeps it positive;
            "linear": the difference to the nominal value in units of `scale`.
        noise: random walk of the transformed number [1/sqrt(s)].
        deviation: standard deviation of the transformed number at the start [-].
        scale: of the linear transform, in the parameter's unit.
        opened: random walk of the transformed number while a filter finds that it is wrong
            [1/sqrt(s)]; 0: it is then known as well as ever.
        opens: which finding opens it: "fast" after a few samples, what may change at any time;
            "slow" after a second, what is a matter of how the robot is made.
    """

    name: str
    unit: str
    nominal: float
    low: float
    high: float
    transform: Transform = "log"
    noise: float = 5e-4
    deviation: float = 0.1
    scale: float = 1.0
    opened: float = 0.0
    opens: Literal["fast", "slow"] = "fast"


@dataclass(frozen=True)
class OutputInfo:
    """Something that can be observed of a state.

    Attributes:
        shape: of one observation; a pose is (3, 4), rotation beside position.
        unit: SI; of a pose's position.
        kind: pose, position (3,), points (k, 3), wrench (6,) force then moment, or vector.
        needs_inputs: whether it depends on the inputs beside the state, as a base wrench does.
    """

    shape: tuple[int, ...]
    unit: str
    kind: Kind
    needs_inputs: bool = False


TIP = "tip"
"""The one output that every model has: the tip's pose (3, 4) in the base frame [m]."""


@runtime_checkable
class Model(Protocol):
    """Equations of a robot, for many candidates in one call. All arrays are float64 on the way in.

    B is a batch; arguments of one row serve the whole batch. A candidate whose state becomes NaN or
    infinite comes out as NaN and does not disturb the others.

    Attributes:
        state: what a state vector (nx,) holds.
        inputs: what an input vector (m,) holds.
        parameters: what a parameter vector (P,) holds.
        outputs: what `observe` can tell, by name; `TIP` among them.
    """

    state: Layout
    inputs: Inputs
    parameters: tuple[Parameter, ...]
    outputs: Mapping[str, OutputInfo]

    def step(
        self,
        states: np.ndarray,
        begin: np.ndarray,
        end: np.ndarray,
        parameters: np.ndarray,
        dt: float,
    ) -> np.ndarray:
        """States after one step.

        Args:
            states: (B, nx).
            begin, end: (B, m) inputs at the step's begin and end, linear in between; with what is
                remembered of them where the inputs have a memory.
            parameters: (B, P) or (1, P).
            dt: length of the step [s].

        Returns:
            (B, nx) float64.

        Raises:
            UserError: a wrong shape, a dt that is not positive.
        """
        ...

    def rollout(
        self, state: np.ndarray, inputs: Any, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """(B, T, nx) states after each of T steps from one state (nx,).

        Args:
            state: (nx,) where all candidates begin.
            inputs: (B, T + 1, m) at the grid points, linear in between; where the inputs have a
                memory (B, T + 1, m + k), or `Readings`, which are what controllers give.
            parameters: (P,).
            dt: length of a step [s].
        """
        ...

    def rollout_tips(
        self, state: np.ndarray, inputs: Any, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """(B, T, 3, 4) tip poses of the states of `rollout`; often faster than asking for both."""
        ...

    def observe(
        self,
        names: Sequence[str],
        states: np.ndarray,
        inputs: np.ndarray | None,
        parameters: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """Outputs by name, each `(B, *shape)`.

        Args:
            names: of outputs.
            states: (B, nx).
            inputs: (B, m) or (1, m) where an output needs them; None otherwise.
            parameters: (B, P) or (1, P).

        Raises:
            UserError: no output has such a name, or one needs inputs that are not given.
        """
        ...

    def equilibrium(self, inputs: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """(nx,) steady state at inputs (m,) and parameters (P,)."""
        ...

    def warm_up(self) -> None:
        """Everything a control loop may call, once: afterwards nothing compiles or allocates."""
        ...


class SelfReport(Protocol):
    """What a model may tell beside `Model` of how its computations go, each method by itself."""

    def counts(self) -> Mapping[str, int]:
        """What happened how often since the model was made, by name."""
        ...

    def warnings(self) -> list[str]:
        """One line for each thing that makes present results less good than they look."""
        ...


def counts_and_warnings(model: Model) -> tuple[dict[str, int], list[str]]:
    """Counts and warnings of a model; none where it has no such method of `SelfReport`."""
    return getattr(model, "counts", dict)(), getattr(model, "warnings", list)()


def nominal_parameters(parameters: Sequence[Parameter]) -> np.ndarray:
    """(P,) nominal values."""
    return parameter_values(parameters, {})


def parameter_values(parameters: Sequence[Parameter], given: Mapping[str, float]) -> np.ndarray:
    """(P,) values, of which some are given by name; the others are nominal.

    Names of no parameter, as of an input's sensor, are passed over.
    """
    return np.array([given.get(each.name, each.nominal) for each in parameters], dtype=float)
