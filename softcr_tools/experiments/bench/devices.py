"""The bench's devices as blocks around one `World`: the valves' fast cycle and node, cameras, and a
probe that knows the truth. Each has a clock of its own."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from softcr_models.errors import UserError
from softcr_runtime.block import CLOCK, BlockBase, Input, Output, Samples
from softcr_tools.experiments.bench.world import World

COMMANDS, PRESSURES, POSES = "pressure/command", "pressure/state", "mocap/tip/pose"
TRUE_TIP, SENT = "simulation/truth/tip/pose", "pressure/sent"


class FastCycle(BlockBase):
    """The cycle of the valves' driver; all it knows it is told in the `World`."""

    name = "fast_cycle"
    inputs = (Input(CLOCK, "lead"),)

    def __init__(self, robot: Any, settings: Any, world: World) -> None:
        """See BlockBase; `world` is where the driver is."""
        super().__init__(robot, settings)
        self._world = world

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """See BlockBase."""
        self._world.cycle(1e-9 * now)
        return ()


class Valves(BlockBase):
    """What the valves' node does in a cycle: commands and signs of life in, pressures out."""

    name = "valves"
    inputs = (
        Input(CLOCK, "lead"),
        Input(COMMANDS, "all", needed=False),
        Input(POSES, "all", needed=False),
    )
    actions = ("enable",)

    def __init__(
        self, robot: Any, settings: Any, world: World, age: float, early: float | None
    ) -> None:
        """See BlockBase.

        Args:
            robot: see BlockBase.
            settings: see BlockBase.
            world: where the driver is.
            age: of a command when the valves begin to follow it; -inf: at once [s].
            early: stamps of pressures are earlier than the truth by so much [s]; None: no pressures
                are published.
        """
        super().__init__(robot, settings)
        self._driver, self._age, self._early = world.driver, age, early
        self.outputs = () if early is None else (PRESSURES,)

    def act(self, action: str) -> str:
        """`enable`: asks for it; agrees once the valves are enabled."""
        decision = self._driver.report.decision
        if not decision.enabled:
            self._driver.enable()
            raise UserError(f"valves not enabled: {', '.join(decision.blockers)}")
        return "enabled"

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """See BlockBase."""
        heard: Any = samples  # tuples of all since the last tick
        for each in heard[POSES]:
            self._driver.hear("mocap", 1e-9 * each.stamp)
        for each in heard[COMMANDS]:
            stamped, due = 1e-9 * each.stamp, 1e-9 * each.stamp + self._age
            self._driver.hear("command", each.received, each.value, each.received - stamped, due)
        report = self._driver.report
        if self._early is not None and np.isfinite(report.pressures).all():
            yield Output(PRESSURES, round(1e9 * (report.time - self._early)), report.pressures)


class Cameras(BlockBase):
    """Exposures of the tip."""

    name = "cameras"
    inputs = (Input(CLOCK, "lead"),)
    outputs = (POSES,)

    def __init__(self, robot: Any, settings: Any, world: World, late: float) -> None:
        """See BlockBase.

        Args:
            robot: see BlockBase.
            settings: see BlockBase.
            world: where the rod is.
            late: stamps are later than the truth by so much [s].
        """
        super().__init__(robot, settings)
        self._world, self._late = world, round(1e9 * late)

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """See BlockBase."""
        return [Output(POSES, now + self._late, self._world.seen(1e-9 * now))]


class Probe(BlockBase):
    """The true tip and the valves' setpoint at the controller's ticks; counts those of the motion.

    Attributes:
        begun: whether the motion has.
    """

    name = "probe"
    inputs = (Input(CLOCK, "lead"),)
    actions = ("start",)

    def __init__(
        self, robot: Any, settings: Any, world: World, ticks: int, early: float | None
    ) -> None:
        """See BlockBase.

        Args:
            robot: see BlockBase.
            settings: see BlockBase.
            world: what is looked at.
            ticks: of the motion, after which the run is over.
            early: stamps of pressures that are measured at the ticks are earlier than the truth by
                so much [s]; None: none are measured.
        """
        super().__init__(robot, settings)
        self._world, self._left, self._early = world, ticks, early
        self.begun = False
        self.outputs = (TRUE_TIP, SENT) + (() if early is None else (PRESSURES,))

    def act(self, action: str) -> str:
        """`start`: the next tick is the motion's first."""
        self.begun = True
        return "started"

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """See BlockBase."""
        seconds = 1e-9 * now
        if self._early is not None:
            stamp = now - round(1e9 * self._early)
            yield Output(PRESSURES, stamp, self._world.pressures(seconds))
        yield Output(TRUE_TIP, now, self._world.tip(seconds))
        yield Output(SENT, now, self._world.driver.report.sent.copy())
        self._left -= self.begun
        self.finished = self._left <= 0
