"""The simulated robot: commands in, sensor data out, on the hardware's topics.

In a cycle the plant first lives through the time that has passed, playing each command of the
newest packet from when it is due; then its sensors are read. Where a packet has run out its last
command is held, and after a while the plant is led to rest.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from pydantic import Field

from softcr_models.plugins import Place, made
from softcr_models.robots.robot import kind_of
from softcr_runtime.blocks.block import CLOCK, BlockBase, Input, Output, Samples
from softcr_runtime.blocks.command_packets import CommandPacket, PacketPlayer
from softcr_runtime.blocks.values import Pose
from softcr_runtime.settings import registry
from softcr_runtime.settings.node_settings import NodeSettings
from softcr_runtime.settings.plugin_settings import plugin_settings, with_plugin
from softcr_runtime.wire.robot_topics import robot_topics
from softcr_simulation.plants import Plant

_MOST_AT_ONCE = 20  # periods that a late cycle makes the plant live through
_MOST_MEASURED = 5  # of them, that sensors measure: as many messages wait to be heard
_WHOLE = 0.9  # a cycle is missed where so much more than a period has passed [periods]
_NEARLY = 0.25  # a command that is due so near to a cycle counts from the cycle on [periods]


class SimulatorSettings(NodeSettings):
    """Which plant, and what happens when commands stop; the plant's own settings stand beside."""

    plant: Place = Field(
        "",
        description="empty: the robot's own; or package.module:Class, or path/file.py:Class",
    )
    command_timeout: float = Field(
        0.1,
        ge=0.01,
        le=10.0,
        description="time after the last planned command after which chambers vent along a ramp "
        "and tendons hold (wall mode)",
        json_schema_extra={"unit": "s"},
    )
    answers_on: Literal["plan", "command"] = Field(
        "plan",
        description="where lock-step waits for the answer to each cycle: the topic of plans, or "
        "that of single commands from a node of your own",
    )
    duration: float = Field(
        0.0,
        ge=0.0,
        le=86400.0,
        description="simulated time after which the plant stands still; 0: never",
        json_schema_extra={"unit": "s"},
    )


class Simulator(BlockBase):
    """Simulates a robot: plant, actuators and sensors."""

    name = "simulator"
    Settings = SimulatorSettings
    kinds = None
    _last: int | None
    _player: PacketPlayer
    _heard: float
    _sent: np.ndarray
    _timeouts: int
    _made_up: int
    _is_idle: bool

    def __init__(self, robot: Any, settings: Any, plant: Plant | None = None) -> None:
        """See BlockBase; compiles every kernel that a tick calls.

        Args:
            robot: see BlockBase.
            settings: see BlockBase.
            plant: made by hand; None: the one that settings name.
        """
        super().__init__(robot, settings)
        plant_class = type(plant) if plant else self._plant_class(settings.plant, settings.robot)
        self.plant = plant or made(
            plant_class, robot, plugin_settings(settings, plant_class), settings.seed
        )
        topics = robot_topics(robot)
        self._plans, self._commands, self._sent_topic = topics.plan, topics.command, topics.sent
        answers = {"plan": topics.plan, "command": topics.command}[settings.answers_on]
        self.inputs = (
            Input(CLOCK, "lead"),
            *(
                (Input(answers, "answer", needed=False),)
                if settings.lockstep
                else (
                    Input(topics.plan, "all", needed=False),
                    Input(topics.command, "newest", needed=False),
                )
            ),
        )
        speaks_on = getattr(self.plant, "topics", None) or topics.plant
        clock = ("/clock",) if settings.lockstep else ()
        self.outputs = (*clock, *speaks_on, topics.sent)
        self._period = round(1e9 * settings.period)  # [ns]
        self._nearly = round(_NEARLY * self._period)  # [ns]
        self._forget()
        made(self.plant.advance, settings.period)
        made(self.plant.measure, 1)

    @classmethod
    def settings_model(cls, given: Mapping[str, Any]) -> type[NodeSettings]:
        robot = given.get("robot", cls.Settings.model_fields["robot"].default)
        return with_plugin(cls.Settings, cls._plant_class(given.get("plant", ""), robot))

    @staticmethod
    def _plant_class(named: str, robot: str) -> Any:
        return registry.resolve("plant", named or kind_of(robot))

    @property
    def summary(self) -> str:
        settings = self.settings
        return f"{self.title} as robot {settings.robot}, {settings.mode}, seed {settings.seed}"

    @property
    def title(self) -> str:
        return type(self.plant).__name__

    def reset(self) -> None:
        self.plant.reset()
        self._forget()

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """One cycle."""
        if now == self._last:
            return ()  # no time has passed
        if self._last is None or now < self._last:  # other stamps; the plant is where it was
            self._last, self._heard = None, now
            self._player.reset()
        begin, lockstep = self._last, self.settings.lockstep
        if begin is not None and lockstep:  # before the answer
            self._live(begin, now)
        for packet, came in self._heard_packets(now, samples):
            self._refused = self._player.hear(packet, came)
            if not self._refused:  # who is refused always has not commanded
                self._heard = now if lockstep else max(self._player.runs_out, now)
                self._is_idle = False
        outputs: list[Output] = []
        cycles = [now] if begin is None or lockstep else self._cycles(begin, now)
        self._made_up += len(cycles) - 1
        for cycle in cycles:
            if begin is not None and not lockstep:
                self._live(begin, cycle)
            due = self._player.at(cycle + self._nearly)
            if self._is_overdue(cycle):
                self._go_idle()
            elif due is not None and not self._is_idle:
                self._follow(due)
            outputs += self._measured(cycle)
            begin = cycle
        self._last = now
        self.finished = 0.0 < self.settings.duration <= now * 1e-9 and lockstep
        return outputs

    def _cycles(self, begin: int, end: int) -> list[int]:
        """Times [ns] at which sensors measure after one time and until another: a late cycle has
        not stopped them, but what they measured comes late."""
        missed = min(int((end - begin) / self._period - _WHOLE), _MOST_MEASURED - 1)
        return [end - k * self._period for k in range(missed, -1, -1)]

    def _heard_packets(self, now: int, samples: Samples) -> list[tuple[CommandPacket, int]]:
        """What came since the last cycle, and when [ns]: a late cycle hears late of what was in
        time. A single command counts from now on."""
        plans = samples.get(self._plans, ())
        heard = []
        for plan in plans if isinstance(plans, tuple) else (plans,):
            came = now
            if self._last is not None and not self.settings.lockstep:
                before = samples[CLOCK].received - plan.received
                came = min(max(now - round(1e9 * before), self._last), now)
            heard.append((plan.value, came))
        if (single := samples.get(self._commands)) is not None:
            heard.append((CommandPacket.single(now, single.value), now))
        return heard

    def _live(self, begin: int, end: int) -> None:
        """Let the plant live from one time to another [ns], playing what is due in between; a late
        cycle has waited longer, and the plant must not live more slowly than the clock."""
        begin = max(begin, end - _MOST_AT_ONCE * self._period)
        changes = self._player.changes(begin + self._nearly, end - self._nearly)
        for change in () if self._is_idle else changes:
            self.plant.advance(1e-9 * (change - begin))
            due = self._player.at(change)
            if due is not None:
                self._follow(due)
            begin = change
        self.plant.advance(1e-9 * (end - begin))

    def _follow(self, command: np.ndarray) -> None:
        if command is not self._sent:
            self.plant.follow(command)
            self._sent = command

    def time_jumped(self, seconds: float) -> None:
        """See BlockBase; the plant goes on from where it is, in the other time."""
        self._last = None

    def describe(self) -> dict[str, Any]:
        told: dict[str, Any] = getattr(self.plant, "describe", dict)()
        return (
            {"robot": self.robot.model_dump(mode="json")}
            | told
            | {
                "commands_stale": self._timeouts,
                "cycles_made_up": self._made_up,
                "plans_refused": dict(self._player.refused),
                "without_commands": self._is_idle,
                "finished": self.finished,
            }
        )

    def warnings(self) -> list[str]:
        lines = [f"{self._plans}: {self._refused}"] if self._refused else []
        stopped = f"no {self._plans}: {self.plant.without_commands}"
        return [*lines, stopped] if self._timeouts and self._is_idle else lines

    def _measured(self, now: int) -> Iterable[Output]:
        if self.settings.lockstep:
            yield Output("/clock", now, None)
        for topic, value in self.plant.measure(now).items():
            if isinstance(value, Output):
                yield value
            elif isinstance(value, np.ndarray) and value.shape == (4, 4):
                yield Output(topic, now, Pose.of(value))
            else:
                yield Output(topic, now, value)
        yield Output(self._sent_topic, now, self._sent)

    def _is_overdue(self, now: int) -> bool:
        """Whether commands have stopped: nothing has come, or what came ran out too long ago. In
        lock-step each cycle waits for its answer, however long that takes; one that is refused is
        none."""
        if self.settings.lockstep:
            return self._last is not None and self._heard < now
        return (now - self._heard) * 1e-9 > self.settings.command_timeout

    def _go_idle(self) -> None:
        self._timeouts += not self._is_idle
        self._is_idle = True
        followed = self.plant.idle()
        if followed is not None:
            self._sent = followed

    def _forget(self) -> None:
        self._last = None
        self._heard = 0  # commands suffice until then [ns]
        self._refused = ""
        self._player = PacketPlayer(self._period)
        self._sent = np.zeros(len(self.expected.actuators))
        self._is_idle, self._timeouts, self.finished = True, 0, False
        self._made_up = 0
