"""A block's mistakes do not end the run: what it raises becomes one line and an idle answer."""

from collections.abc import Callable
from typing import Any

import numpy as np

from softcr_runtime.block import BlockBase, Output, Samples

MOST_REFUSALS = 5
"""Ticks in a row without a usable answer, after which the block's idle answer is sent."""


class Guard:
    """Lets a block tick and refuses answers that are no answers.

    An exception, an output on a topic that the block does not have, or a value that is not finite
    is one line, told once for each kind, and the tick has no output: the actuators hold what they
    were told last until that is too old. After `MOST_REFUSALS` such ticks in a row the block's
    `idle` answer is sent instead, which holds or vents.

    Attributes:
        refusals: what was refused, and how often, since `reset`.
    """

    def __init__(self, block: BlockBase, complain: Callable[[str], None]) -> None:
        """
        Args:
            block: to guard.
            complain: told each line.
        """
        self._block, self._complain = block, complain
        self._forget()

    def reset(self) -> None:
        """Let the block begin anew."""
        self._forget()
        self._block.reset()

    def tick(self, now: int, samples: Samples) -> list[Output]:
        """What the block answers; nothing where that cannot be used."""
        try:
            outputs = list(self._block.tick(now, samples))
            for output in outputs:
                _check(output, self._block.outputs)
        except Exception as error:
            return self._refused(now, error)
        self._in_a_row = 0
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
        count = self._in_a_row
        return [f"{count} ticks in a row without a usable answer"] if count else []

    def _forget(self) -> None:
        self.refusals: dict[str, int] = {}
        self._in_a_row = 0

    def _refused(self, now: int, error: Exception) -> list[Output]:
        self._tell("tick", error)
        self._in_a_row += 1
        return [] if self._in_a_row < MOST_REFUSALS else self.idle(now, "inputs overdue")

    def _tell(self, where: str, error: Exception) -> None:
        text = " ".join(str(error).split()) or "no message"
        line = f"{self._block.title}.{where}: {type(error).__name__}: {text}"
        self.refusals[line] = self.refusals.get(line, 0) + 1
        if self.refusals[line] == 1:
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


def _check(output: Any, topics: tuple[str, ...]) -> None:
    if not isinstance(output, Output):
        raise TypeError(f"answers with {type(output).__name__}, must be outputs")
    if output.topic not in topics:
        raise ValueError(f"output {output.topic!r} is not one of {', '.join(topics)}")
    if isinstance(output.value, np.ndarray) and not np.isfinite(output.value).all():
        raise ValueError(f"{output.topic} = {output.value.tolist()} must be finite")
