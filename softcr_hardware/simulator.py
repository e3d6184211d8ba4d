"""The simulated robot: commands in, sensor data out, on the hardware's topics.

In a cycle the plant first lives through the period, then follows the newest command, then its
sensors are read: what answers one cycle is followed from the next one on.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from pydantic import Field

from softcr_hardware.plants import Plant
from softcr_models.plugins import Place, made
from softcr_models.robot import kind_of
from softcr_runtime import registry
from softcr_runtime.block import CLOCK, BlockBase, Input, Output, Rule, Samples
from softcr_runtime.plugin_settings import plugin_settings, with_plugin
from softcr_runtime.robot_topics import robot_topics
from softcr_runtime.settings import NodeSettings
from softcr_runtime.values import Pose

_MOST_AT_ONCE = 20  # periods that a late cycle makes the plant live through


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
        description="without a command for so long chambers vent, tendons hold (wall mode)",
        json_schema_extra={"unit": "s"},
    )
    lockstep_timeout: float = Field(
        2.0,
        ge=0.1,
        le=60.0,
        description="wall time to wait for a cycle's command before that (lock-step)",
        json_schema_extra={"unit": "s"},
    )
    duration: float = Field(
        0.0,
        ge=0.0,
        le=86400.0,
        description="simulated time after which the plant stands still; 0 for never",
        json_schema_extra={"unit": "s"},
    )


class Simulator(BlockBase):
    """Simulates a robot: plant, actuators and sensors."""

    name = "simulator"
    Settings = SimulatorSettings
    kinds = ("rod", "arm", "strain")
    _last: int | None
    _timeouts: int
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
        self._command, patience = topics.command, self._patience
        rule: Rule = "answer" if settings.lockstep else "newest"
        self.inputs = (
            Input(CLOCK, "lead"),
            Input(self._command, rule, needed=False, patience=patience),
        )
        speaks_on = getattr(self.plant, "topics", None) or topics.plant
        self.outputs = (*(("/clock",) if settings.lockstep else ()), *speaks_on)
        self._forget()
        made(self.plant.advance, settings.period)
        made(self.plant.measure, 1)

    @classmethod
    def settings_model(cls, given: Mapping[str, Any]) -> type[NodeSettings]:
        """See BlockBase."""
        robot = given.get("robot", cls.Settings.model_fields["robot"].default)
        return with_plugin(cls.Settings, cls._plant_class(given.get("plant", ""), robot))

    @staticmethod
    def _plant_class(named: str, robot: str) -> Any:
        return registry.resolve("plant", named or kind_of(robot))

    @property
    def summary(self) -> str:
        """See BlockBase."""
        settings = self.settings
        return f"{self.title} as robot {settings.robot}, {settings.mode}, seed {settings.seed}"

    @property
    def title(self) -> str:
        """See BlockBase."""
        return type(self.plant).__name__

    def reset(self) -> None:
        """See BlockBase."""
        self.plant.reset()
        self._forget()

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """One cycle."""
        if now == self._last:
            return ()  # no time has passed
        if self._last is None or now < self._last:  # other stamps; the plant is where it was
            self._last, self._command_stamp = None, now
        else:
            # a late cycle has waited longer; the plant must not live more slowly than the clock
            elapsed, period = (now - self._last) * 1e-9, self.settings.period
            self.plant.advance(min(elapsed, _MOST_AT_ONCE * period))
        command = samples.get(self._command)
        if command is not None:
            self._command_stamp = now
            self._is_idle = False
            self.plant.follow(command.value)
        elif self._last is not None and self._is_overdue(now):
            self._go_idle()
        self._last = now
        self.finished = 0.0 < self.settings.duration <= now * 1e-9 and self.settings.lockstep
        return self._measured(now)

    def time_jumped(self, seconds: float) -> None:
        """See BlockBase; the plant goes on from where it is, in the other time."""
        self._last = None

    def describe(self) -> dict[str, Any]:
        """See BlockBase."""
        told: dict[str, Any] = getattr(self.plant, "describe", dict)()
        return (
            {"robot": self.robot.model_dump(mode="json")}
            | told
            | {
                "commands_stale": self._timeouts,
                "without_commands": self._is_idle,
                "finished": self.finished,
            }
        )

    def warnings(self) -> list[str]:
        """See BlockBase."""
        stopped = f"no {self._command}: {self.plant.without_commands}"
        return [stopped] if self._timeouts and self._is_idle else []

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

    def _is_overdue(self, now: int) -> bool:
        if self.settings.lockstep:
            return True
        return (now - self._command_stamp) * 1e-9 > self.settings.command_timeout

    def _go_idle(self) -> None:
        self._timeouts += not self._is_idle
        self._is_idle = True
        self.plant.idle()

    def _patience(self) -> float:
        """For the command of a cycle in lock-step [s]; once idle, soon over."""
        waited_in_vain = self._is_idle and self._timeouts
        return self.settings.period if waited_in_vain else self.settings.lockstep_timeout

    def _forget(self) -> None:
        self._last = None
        self._command_stamp = 0
        self._is_idle, self._timeouts, self.finished = True, 0, False
