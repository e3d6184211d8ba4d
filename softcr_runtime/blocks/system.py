"""Systems as data: which blocks and nodes run together, with which settings, in which order.

Supervised processes, launch files and the executor on virtual time all run the same description.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

Parameter = bool | int | float | str | list[str] | list[float]
Parameters = dict[str, Parameter]


@dataclass(frozen=True)
class Missing:
    """Messages that do not come, however good the wire is.

    Attributes:
        count: how many, one after the other.
        at: the first one that is sent at this virtual time, or later, is the first one missing [s].
        every: so much later as many are missing again, and so on [s]; 0: once.
    """

    count: int
    at: float
    every: float = 0.0


@dataclass(frozen=True)
class Stop:
    """A time during which a part computes nothing: its process or its machine stands still.

    Attributes:
        seconds: how long [s].
        at: virtual time at which it begins [s].
    """

    seconds: float
    at: float


@dataclass(frozen=True)
class Computing:
    """How long the ticks of a part take on virtual time: a constant, or random for each tick.

    A random time is uniformly distributed and drawn from the part's own seeded generator, so equal
    seeds give equal times. What is being computed when a stop begins goes on after it.

    Attributes:
        shortest: time of a tick [s].
        longest: of a random time; None: every tick takes the shortest [s].
        seed: of the random times.
        stops: when nothing is computed at all, in any order.
    """

    shortest: float = 0.0
    longest: float | None = None
    seed: int = 0
    stops: tuple[Stop, ...] = ()


@dataclass(frozen=True)
class Wire:
    """The way of one topic to one block, on virtual time only. No message overtakes another.

    Two wires of one seed lose and delay the same messages of a topic.

    Attributes:
        latency: from publishing to arrival [s].
        jitter: mean of what is added to it, exponentially distributed [s].
        lost: chance that a message does not arrive.
        seed: of the wire's own random numbers.
        missing: messages that do not arrive besides.
    """

    latency: float = 0.0
    jitter: float = 0.0
    lost: float = 0.0
    seed: int = 0
    missing: tuple[Missing, ...] = ()


@dataclass(frozen=True)
class Part:
    """One lifecycle node, or one block on virtual time.

    Attributes:
        name: of the node; unique in its system.
        runs: `package.module:Class` of a block, or `package.module` of a node of its own.
        parameters: settings that differ from their defaults.
        computing: how long its ticks take on virtual time.
        wires: topic -> the way it comes, on virtual time.
        process: parts that name the same one share it; empty: one of its own.
        phase: of a block that the clock leads: its ticks are so long after whole multiples of its
            period on virtual time [s].
        spare: whether the run goes on where its process dies; it controls nothing.
    """

    name: str
    runs: str
    parameters: Parameters = field(default_factory=dict)
    computing: Computing = Computing()
    wires: Mapping[str, Wire] = field(default_factory=dict)
    process: str = ""
    phase: float = 0.0
    spare: bool = False

    @property
    def is_block(self) -> bool:
        """Whether it can run on virtual time."""
        return ":" in self.runs

    @property
    def command(self) -> tuple[str, ...]:
        """Words behind `python -m` that run it as a node."""
        if self.is_block:
            return ("softcr_runtime.ros.run_block", self.runs, self.name)
        return (self.runs,)

    def with_parameters(self, parameters: Parameters) -> "Part":
        """The part with more parameters."""
        return replace(self, parameters=self.parameters | parameters)

    def in_process(self, name: str) -> "Part":
        """The part in a process that it shares with others."""
        return replace(self, process=name)


@dataclass(frozen=True)
class System:
    """What runs together.

    Nodes are started and configured in the order of `parts`, activated in the order of `activation`
    (names of all of them) and taken down in the reverse order of `parts`: what may move the robot
    comes last in it, so that it stops first.

    Attributes:
        name: of the system.
        parts: all of them.
        activation: names of all parts.
        duration: of the run after the last activation [s].
        simulated_time: whether the duration counts on /clock, otherwise on the wall clock.
        controller: part to deactivate at once when another one dies.
        begin: Trigger services, called in this order once all parts are active; the run begins when
            the last of them has agreed. On virtual time, actions of blocks: `part/action`.
        namespace: of all nodes and their topics, without the slashes around it; empty: the root.
            Nothing on virtual time, where systems do not hear each other.
        actuators: part that must be told who may command, where controllers are exchanged; empty:
            none must.
    """

    name: str
    parts: tuple[Part, ...]
    activation: tuple[str, ...]
    duration: float
    simulated_time: bool
    controller: str
    begin: tuple[str, ...] = ()
    namespace: str = ""
    actuators: str = ""

    def __post_init__(self) -> None:
        names = sorted(part.name for part in self.parts)
        if names != sorted(self.activation) or self.controller not in names:
            raise ValueError(
                f"system {self.name}: activation {self.activation} and controller "
                f"{self.controller} must name its parts {names}, each once"
            )
        shared = {part.process for part in self.parts if part.process}
        if shared & set(names):
            raise ValueError(f"system {self.name}: processes {sorted(shared)} are names of parts")

    @property
    def processes(self) -> dict[str, tuple[Part, ...]]:
        """The parts of each process, by its name: the shared one, or its only part's."""
        found: dict[str, tuple[Part, ...]] = {}
        for part in self.parts:
            name = part.process or part.name
            found[name] = (*found.get(name, ()), part)
        return found

    def part(self, name: str) -> Part:
        """The part of a name; KeyError where there is none."""
        for part in self.parts:
            if part.name == name:
                return part
        raise KeyError(name)
