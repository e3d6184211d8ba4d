"""Who answers the questions: a person at this terminal, or a list of answers."""

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from softcr_hardware.commissioning.bench import About, Pending, Question
from softcr_hardware.hold import Grip
from softcr_models.files.number_types import Finite
from softcr_models.files.yaml_files import read_mapping, validated

_DEADMAN, _YES, _NO, _END = b" ", b"y", b"n", b"\n"


@contextmanager
def single_keys(terminal: int) -> Iterator[None]:
    """A terminal that hands over each key at once and does not show it."""
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield
    finally:
        with suppress(termios.error):  # it is gone
            termios.tcsetattr(terminal, termios.TCSADRAIN, before)


class Answers(BaseModel):
    """A file of answers, for a run without a person at the keyboard.

    Attributes:
        gauge: readings of the second gauge by name of the chamber [kPa].
        refuse: what is answered with `no`, as `air on` or `unplug`; all else with `yes`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    gauge: dict[str, Finite] = Field(default_factory=dict)
    refuse: tuple[About, ...] = ()


def load_answers(path: Path) -> Answers:
    """Answers of a YAML file.

    Raises:
        UserError: one line with the file, the field and what is allowed.
    """
    return validated(Answers, read_mapping(path, "answers"), path)


class ListedOperator:
    """Answers from a list; nobody holds a switch, which is taken as held."""

    def __init__(
        self, answers: Answers, names: tuple[str, ...], say: Callable[[str], None]
    ) -> None:
        """`names` of the chambers, and who is told what is asked."""
        self._answers, self._names, self._say = answers, names, say

    def tell(self, line: str) -> None:
        self._say(line)

    def ask(self, question: Question) -> Pending:
        self._say(question.words)
        if question.about == "gauge":
            reading = self._answers.gauge.get(self._names[question.channel])
            return lambda: "" if reading is None else str(reading)
        answer = "no" if question.about in self._answers.refuse else "yes"
        return lambda: answer

    def holds(self, now: float) -> bool:
        return True


class TerminalOperator:
    """A person at this terminal; its space bar is the deadman's switch.

    The terminal must hand over single keys.
    """

    def __init__(self, say: Callable[[str], None], deadman: bool = True) -> None:
        """Whether the space bar must be held while there is air in a chamber."""
        self._say, self._deadman = say, deadman
        self._grip = Grip()
        self._keys = b""

    def tell(self, line: str) -> None:
        self._say(line)

    def ask(self, question: Question) -> Pending:
        number = question.about == "gauge"
        self._say(f"{question.words} [{'a number, then Enter' if number else 'y or n'}]")
        self._read()
        self._keys = b""
        return self._number if number else self._yes_or_no

    def holds(self, now: float) -> bool:
        self._read()
        return not self._deadman or self._grip.held(time.monotonic())

    def _yes_or_no(self) -> str | None:
        self._read()
        for key, answer in ((_YES, "yes"), (_NO, "no")):
            if key in self._keys.lower():
                self._keys = b""
                return answer
        return None

    def _number(self) -> str | None:
        self._read()
        line, end, rest = self._keys.partition(_END)
        if not end:
            return None
        self._keys = rest
        return line.decode("ascii", "ignore").strip()

    def _read(self) -> None:
        """What was typed since the last time."""
        while select.select([sys.stdin], [], [], 0.0)[0]:
            typed = os.read(sys.stdin.fileno(), 4096)
            if not typed:
                return
            if _DEADMAN in typed:
                self._grip.press(time.monotonic())
            self._keys = (self._keys + typed.replace(_DEADMAN, b""))[-200:]
