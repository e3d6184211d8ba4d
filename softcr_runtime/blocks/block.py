"""Blocks: what a node does, without ROS, clocks or processes.

A block says which inputs it has, how their samples are joined to ticks, and which outputs it makes.
Three executors run it: a ROS node, one process on virtual time, and the replay of a bag; all three
give the same bits where time does not decide. A complete block:

    class Relay(BlockBase):
        \"\"\"Commands the measured pressures times a factor.\"\"\"

        name = "relay"
        Settings = RelaySettings
        inputs = (Input("pressure/state", "lead"),)
        outputs = ("pressure/plan",)

        def tick(self, now, samples):
            pressures = self.settings.factor * samples["pressure/state"].value
            due = now + round(1e9 * self.settings.period)
            return [Output("pressure/plan", now, CommandPacket.single(due, pressures))]
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from softcr_runtime.blocks.budget import Budget
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.tick_grid import Blend, linear
from softcr_runtime.settings.node_settings import NodeSettings, build_settings
from softcr_runtime.wire.codecs import Expected, expected_of

CLOCK = "clock"
"""Topic of the samples that an executor makes for a block whose lead is its own period."""

OVERDUE = "inputs overdue"
"""Why a block is asked to be idle whose inputs have not come for `silence`."""

Rule = Literal["lead", "same", "newest", "latest", "all", "answer"]


@dataclass(frozen=True)
class Input:
    """One input of a block, and which of its samples belong to a tick.

    Attributes:
        topic: name in the table of topics, or `CLOCK`.
        rule: "lead": each sample is a tick. "same": the sample of the lead's stamp. "newest": the
            last one since the last tick. "latest": the last one that ever came. "all": every one
            since the last tick, as a tuple. "answer": the sample of the last tick's stamp, once
            there was a tick.
        resampled: whether the sensor keeps its own time and is interpolated at whole periods; holes
            of up to two periods are bridged.
        needed: whether there is no tick without it.
        patience: how long a sample that is not there is waited for, counted from the arrival of the
            lead [s]; a function where that changes during a run.
        after: another input of the block, which its publisher sends after this one. Until that has
            come this one is waited for, whatever the patience; empty: nothing tells.
        blend: the value between two values, for `resampled`.
        wakes: whether a node is woken by it, or takes it along with others; to be woken costs more.
    """

    topic: str
    rule: Rule = "same"
    resampled: bool = False
    needed: bool = True
    patience: float | Callable[[], float] = np.inf
    after: str = ""
    blend: Blend = linear
    wakes: bool = True

    def patience_now(self) -> float:
        """[s]"""
        return self.patience() if callable(self.patience) else self.patience


@dataclass(slots=True)
class Output:
    """One value that a block publishes.

    Attributes:
        topic: name in the table of topics.
        stamp: [ns].
        value: what the topic's codec encodes; made into a message only where somebody needs one.
    """

    topic: str
    stamp: int
    value: Any


Samples = Mapping[str, Sample]
"""The samples of a tick by topic; a missing one is not there."""


class BlockBase:
    """What a block is, with what most blocks have in common. A subclass writes `tick`.

    Attributes:
        name: default name of its node.
        Settings: its options; ROS parameters, `--help` and what a bag says of it follow from them.
        kinds: of robots that it is for, by name; None: every kind.
        inputs, outputs: what is joined to ticks, and topics that it publishes; of the instance
            where settings change them.
        keep: which of several waiting ticks count: "every" one in order, or the "newest".
        silence: without a tick for so long `idle` is asked, again and again [s].
        on_grid: whether a block that the clock leads ticks at whole multiples of the period.
        actions: names of what people may ask of it, see `act`; in ROS std_srvs/srv/Trigger.
        finished: whether the run is over as far as this block knows.
        intervals: of rods whose states it receives; None for any.
        every: so many ticks of its lead are one answer's, which may take so many periods.
        left_out: whether the last tick was one of the others, for which nothing was computed.
        threads: of numba that its ticks may use.
        share: of a period for which a tick may compute; infinite where it cannot answer with less.
        budget: of the tick; whoever runs the block sets it before each tick that has a limit.
        model: whose states it exchanges; None where it exchanges none.
    """

    name: ClassVar[str]
    Settings: ClassVar[type[NodeSettings]] = NodeSettings
    kinds: ClassVar[tuple[str, ...] | None] = ("rod",)
    inputs: tuple[Input, ...] = ()
    outputs: tuple[str, ...] = ()
    keep: Literal["every", "newest"] = "every"
    silence: float = np.inf
    on_grid: bool = False
    actions: ClassVar[tuple[str, ...]] = ()
    finished: bool = False
    intervals: int | None = None
    every: int = 1
    left_out: bool = False
    threads: int = 1
    share: float = np.inf
    budget: Budget = Budget()
    model: Any = None

    def __init__(self, robot: Any, settings: Any) -> None:
        """Validate and compile.

        Args:
            robot: that `settings.robot` names.
            settings: validated.

        Raises:
            UserError: one line about what a person must mend.
        """
        self.robot, self.settings = robot, settings

    @classmethod
    def settings_model(cls, given: Mapping[str, Any]) -> type[NodeSettings]:
        """The options that it has, where some of those given decide which others there are.

        Raises:
            UserError: a plugin or a file that is named cannot be used.
        """
        return cls.Settings

    @classmethod
    def with_files(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """The given values by dotted name, above those of a file that they name.

        Raises:
            UserError: the file cannot be used.
        """
        return dict(given)

    @classmethod
    def settings_of(
        cls, given: Mapping[str, Any], recorded: Mapping[str, Any] | None = None
    ) -> Any:
        """Validated settings: defaults, then a file's values, then the given ones.

        Args:
            given: values by dotted name.
            recorded: all values of a run, which then stand in the place of a file's.

        Raises:
            UserError: one line about a value or a file that cannot be used.
        """
        chosen = {**(recorded or {}), **given}
        values = cls.with_files(given) if recorded is None else cls.changed(recorded, given)
        return build_settings(cls.settings_model(chosen), values)

    @classmethod
    def changed(cls, recorded: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """The values of a run by dotted name, with some given ones above them."""
        return {**recorded, **given}

    @property
    def title(self) -> str:
        """What complaints about it begin with; a plugin's own name where it runs one."""
        return type(self).__name__

    @property
    def summary(self) -> str:
        """A line for the log: what it was made with."""
        return f"robot {self.settings.robot}"

    @property
    def expected(self) -> Expected:
        """What its messages are about."""
        layout = None if self.model is None else self.model.state
        return expected_of(self.robot, self.intervals, layout, self.settings.frame_prefix)

    def prepared(self, settings: Any) -> Callable[[], None]:
        """What makes it go on with other live settings, done between two ticks and in their thread.

        What takes time, or can fail, is done before that is returned. What an earlier tick used
        stays as it is: nothing starts again.

        Args:
            settings: validated; they differ from its own in live ones only.

        Raises:
            UserError: they cannot be used now.
        """

        def use() -> None:
            self.settings = settings

        return use

    def act(self, action: str) -> str:
        """Do one of `actions`; returns a line about what was done.

        Raises:
            UserError: it cannot be done now.
        """
        raise NotImplementedError

    def rehearse(self) -> None:
        """Do once what a tick does, so that the first tick of a run is as fast as any; `reset`
        follows. On virtual time there is no rehearsal."""

    def reset(self) -> None:
        """Begin anew, as if newly made."""

    def time_jumped(self, seconds: float) -> None:
        """The stamps that come next have jumped forward, or back where it is negative [s]: what was
        remembered by stamps is worth nothing. A block whose robot goes on overwrites this."""
        self.reset()

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """The outputs of one tick.

        Args:
            now: the lead's stamp [ns].
            samples: of this tick.
        """
        raise NotImplementedError

    def hold(self, now: int) -> Iterable[Output]:
        """What stands in for a tick without a usable answer, as long as these are few."""
        return ()

    def idle(self, now: int, why: str) -> Iterable[Output]:
        """What is safe while there are no ticks: hold or vent.

        Args:
            now: stamp for what is published [ns].
            why: "inputs overdue", "no usable answer", "time jumped" or "stopped".
        """
        return ()

    def answered(self, age: float) -> None:
        """Told after each tick: how old its input was when the answer was ready [s]."""

    def describe(self) -> dict[str, Any]:
        """What diagnostics and bags tell of it: text, or what JSON can hold."""
        return {}

    def warnings(self) -> list[str]:
        """Short lines about what is not as it should be."""
        return []
