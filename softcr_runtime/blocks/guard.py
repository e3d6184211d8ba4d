"""A block's mistakes do not end the run: what it raises becomes one line and an idle answer."""

import re
from collections.abc import Callable
from typing import Any

from softcr_models.errors import UserError
from softcr_models.plugins import in_a_line
from softcr_runtime.blocks.block import BlockBase, Output, Samples
from softcr_runtime.wire.value_checks import check_value

_NUMBERS = re.compile(r"(?<!\s)\s*(?<!line )(?:[-+]?\b\d[\d.]*(?:e[-+]?\d+)?|[-+]?\b(?:nan|inf)\b)")

MOST_REFUSALS = 5
"""Ticks in a row without a usable answer, after which the block's idle answer is sent."""

MOST_KINDS = 20
"""Kinds of mistakes that are told apart; those beyond are one more."""


class Guard:
    """Lets a block tick and refuses answers that are no answers.

    An exception, an output on a topic that the block does not have, or a value that its topic
    cannot carry is one line, told once for each kind, and the block's `hold` answer is sent
    instead. After `MOST_REFUSALS` such ticks in a row it is the `idle` answer, which holds or
    vents. Lines that differ in their numbers alone are of one kind.

    Attributes:
        in_a_row: the last ticks, as far as none of them had a usable answer.
        refusals: the first line of each kind, and how often the kind came, since `reset`.
    """

    def __init__(self, block: BlockBase, complain: Callable[[str], None]) -> None:
        """
        Args:
            block: to guard.
            complain: told each line.
        """
        self._block, self._complain = block, complain
        self._forget()

    def rehearse(self) -> None:
        """Let the block rehearse; what goes wrong there is told, and goes wrong in the run too.

        Raises:
            UserError: as the block does.
        """
        try:
            self._block.rehearse()
        except UserError:
            raise
        except Exception as error:
            self._tell("rehearse", error)

    def reset(self) -> None:
        """Let the block begin anew."""
        self._forget()
        try:
            self._block.reset()
        except Exception as error:
            self._tell("reset", error)

    def time_jumped(self, seconds: float) -> None:
        """Tell the block that time has jumped."""
        try:
            self._block.time_jumped(seconds)
        except Exception as error:
            self._tell("time_jumped", error)

    def tick(self, now: int, samples: Samples) -> list[Output]:
        """What the block answers, or what stands in for an answer that cannot be used."""
        try:
            outputs = self._checked(self._block.tick(now, samples))
        except Exception as error:
            return self._refused(now, error)
        self.in_a_row = 0
        return outputs

    def idle(self, now: int, why: str) -> list[Output]:
        """What the block does without ticks."""
        try:
            return list(self._block.idle(now, why))
        except Exception as error:
            self._tell("idle", error)
            return []

    def warnings(self) -> list[str]:
        """A line while there are no usable answers."""
        count = self.in_a_row
        return [f"{count} ticks in a row without a usable answer"] if count else []

    def _forget(self) -> None:
        self.refusals: dict[str, int] = {}
        self._first_lines: dict[str, str] = {}  # by kind
        self.in_a_row = 0

    def _checked(self, answer: Any) -> list[Output]:
        outputs = list(answer)
        for output in outputs:
            if not isinstance(output, Output):
                raise TypeError(f"answers with {type(output).__name__}, must be outputs")
            if output.topic not in self._block.outputs:
                allowed = ", ".join(self._block.outputs)
                raise ValueError(f"output {output.topic!r} is not one of {allowed}")
            check_value(output.topic, output.value, self._block.expected)
        return outputs

    def _refused(self, now: int, error: Exception) -> list[Output]:
        self._tell("tick", error)
        self.in_a_row += 1
        if self.in_a_row < MOST_REFUSALS:
            return list(self._block.hold(now))
        return self.idle(now, "no usable answer")

    def _tell(self, where: str, error: Exception) -> None:
        line = f"{self._block.title}.{where}: {in_a_line(error)}"
        kind = _NUMBERS.sub("#", line)
        if kind not in self._first_lines and len(self._first_lines) >= MOST_KINDS:
            kind = line = f"{self._block.title}: mistakes of other kinds"
        first = self._first_lines.setdefault(kind, line)
        self.refusals[first] = self.refusals.get(first, 0) + 1
        if self.refusals[first] == 1:
            self._complain(line)


class Unguarded:
    """Lets a block tick, and what it raises pass: for studies, which had better end than go on."""

    def __init__(self, block: BlockBase) -> None:
        self.reset = block.reset
        self._block = block

    def tick(self, now: int, samples: Samples) -> list[Output]:
        """What the block answers."""
        return list(self._block.tick(now, samples))

    def idle(self, now: int, why: str) -> list[Output]:
        """What the block does without ticks."""
        return list(self._block.idle(now, why))
