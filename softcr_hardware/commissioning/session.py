"""What the steps of a commissioning share: bench, operator, files, and what was found so far."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from softcr_hardware.commissioning.bench import About, Bench, Operator, Question
from softcr_hardware.commissioning.drive import Drive
from softcr_hardware.commissioning.expectation import Expectation
from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.record import Record, StepRecord, now_words
from softcr_hardware.force_torque.mounting import Mounting
from softcr_models.errors import UserError
from softcr_models.robots.robot import Robot

_SHORT = 0.1  # [s]


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        name: of its record.
        title: for a person.
        run: does it.
        daily: whether the daily check does it, too.
    """

    name: str
    title: str
    run: Callable[["Session"], StepRecord]
    daily: bool = True


@dataclass
class Session:
    """One run of the command.

    Attributes:
        bench, operator: whose.
        robot: of the bench.
        record: what was found so far.
        mounting: of the force-torque sensor, as its file has it.
        daily: whether the files have been commissioned, and nothing is to be written.
    """

    bench: Bench
    operator: Operator
    robot: Robot
    record: Record
    mounting: Mounting = field(default_factory=Mounting)
    daily: bool = False
    _air: bool = False

    @cached_property
    def drive(self) -> Drive:
        """Of the open bench, as far as it is known."""
        drive = Drive(self.bench, self.operator)
        if self.has("zero"):
            self.bench.data.zero = np.array(self.value("zero", "volts"))
        if self.has("exhaust"):
            drive.trust_exhaust(np.array(self.value("exhaust", "reversed")))
        return drive

    @cached_property
    def model(self) -> Expectation:
        """Of the robot."""
        return Expectation(self.robot)

    @property
    def axes(self) -> np.ndarray:
        """(3, 3) of the force-torque sensor in the base frame, as its file has them."""
        return self.mounting.rotation

    @property
    def names(self) -> tuple[str, ...]:
        """Of the chambers."""
        return tuple(chamber.name for chamber in self.bench.station.chambers)

    def has(self, step: str, *keys: str) -> bool:
        """Whether a step has found something."""
        record = self.record.steps.get(step)
        return record is not None and all(key in record.values for key in keys)

    def value(self, step: str, key: str) -> Any:
        """What a step has found.

        Raises:
            UserError: it did not.
        """
        if not self.has(step, key):
            raise UserError(f"commissioning: step {step} must be done before; --from {step}")
        return self.record.steps[step].values[key]

    def answers(self) -> list[int]:
        """(m,) sensor that answers each channel, from 0."""
        return [int(each) for each in self.value("wiring", "answers")]

    def scale(self, channel: int) -> float:
        """Pressure over the reading of the sensor that answers a channel; below 0: wrong sign."""
        sensor = self.answers()[channel]
        if self.has("slope"):
            ratio = self.value("slope", "ratios")[sensor]
            if ratio is not None:
                return float(ratio)
        return float(self.value("wiring", "signs")[channel])

    def valve_name(self, channel: int) -> str:
        """Of the valve that a channel drives."""
        if self.has("wiring", "valves"):
            return self.names[int(self.value("wiring", "valves")[channel])]
        return self.names[channel]

    def air(self, on: bool) -> None:
        """Ask for the air; nothing where it is so.

        Raises:
            UserError: the operator says no.
        """
        if on == self._air:
            return
        words = (
            "open the air's shut-off valve slowly, a hand on it, and look at the chambers"
            if on
            else "shut the air off at its hand valve and let it out"
        )
        drive = self.drive
        if on:
            drive.rest(_SHORT)  # operational before there is air
            drive.air = True
        else:
            drive.let_air(False)
        self.must("air on" if on else "air off", words)
        self._air = drive.air = on
        drive.let_air(on)

    def must(self, about: About, words: str, channel: int = -1) -> None:
        """Ask for something that must be done.

        Raises:
            UserError: the operator says no.
        """
        if self.drive.wait(Question(about, words, channel)) != "yes":
            raise UserError(f"not done: {words}")

    def forget_air(self) -> None:
        """At the beginning nobody knows of the air: it must be shut off."""
        self._air = True


def found(findings: list[Finding], lines: list[str] | None = None, **values: Any) -> StepRecord:
    """The record of a step that is done now."""
    return StepRecord(
        done=now_words(), findings=tuple(findings), lines=tuple(lines or ()), values=values
    )
