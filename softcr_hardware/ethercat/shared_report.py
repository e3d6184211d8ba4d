"""The newest ValveReport, in memory that two processes share; writing it wakes no process.

One process writes, another one reads whenever it likes. A count before and behind each writing,
odd while it is under way, tells the reader whether it has seen one report or parts of two (a
sequence lock); x86 and the lock of either Python keep the stores in order. Decision and bus are
words that seldom change, and are pickled when they do.
"""

import mmap
import os
import pickle
import struct
from typing import Any

import numpy as np

from softcr_hardware.ethercat.driver import ValveReport

_COUNT = struct.Struct("@Q")
_SIZES = struct.Struct("@QQ")  # bytes of the words, and how often they have changed
_WORDS = 65536  # bytes; those of a decision are few
_LONGEST = 10_000  # characters of what is wrong with the bus, four bytes each at most
_ATTEMPTS = 1000  # a writer is done within microseconds, or has died


class SharedReport:
    """One report, for `chambers` chambers.

    Attributes:
        file: descriptor of the memory, for the other process.
    """

    def __init__(self, chambers: int, file: int | None = None):
        """The writer's or the reader's end.

        Args:
            chambers: m.
            file: of the other end; None to make the memory.
        """
        self._numbers = struct.Struct(f"@{2 + 3 * chambers}d")
        self._chambers = chambers
        self._sizes_at = _COUNT.size + self._numbers.size
        self._words_at = self._sizes_at + _SIZES.size
        length = self._words_at + _WORDS
        self.file = os.memfd_create("softcr_valves") if file is None else file
        if file is None:
            os.ftruncate(self.file, length)
        self._memory = mmap.mmap(self.file, length)
        self._count = self._changes = 0
        self._words: tuple[Any, ...] | None = None
        self._report: ValveReport | None = None

    def write(self, report: ValveReport) -> None:
        """Put up a report in place of the one before."""
        memory = self._memory
        self._count += 2
        _COUNT.pack_into(memory, 0, self._count - 1)
        self._numbers.pack_into(
            memory,
            _COUNT.size,
            report.time,
            report.measured,
            *report.pressures.tolist(),
            *report.sent.tolist(),
            *report.volts.tolist(),
        )
        words = (report.decision, report.bus, report.reconnects, report.gave_up)
        if words != self._words:
            self._words = words
            self._changes += 1
            pickled = pickle.dumps((report.decision, report.bus[:_LONGEST], *words[2:]))
            _SIZES.pack_into(memory, self._sizes_at, len(pickled), self._changes)
            memory[self._words_at : self._words_at + len(pickled)] = pickled
        _COUNT.pack_into(memory, 0, self._count)

    def read(self) -> ValveReport | None:
        """The newest report; None before the first.

        A writer that died while it wrote leaves the report that was read last.
        """
        memory = self._memory
        for _ in range(_ATTEMPTS):
            (count,) = _COUNT.unpack_from(memory, 0)
            if count == self._count:
                return self._report
            if count % 2:
                continue
            numbers = self._numbers.unpack_from(memory, _COUNT.size)
            size, changes = _SIZES.unpack_from(memory, self._sizes_at)
            pickled = b""
            if changes != self._changes:
                pickled = memory[self._words_at : self._words_at + size]
            if _COUNT.unpack_from(memory, 0) != (count,):
                continue
            if pickled:
                self._words, self._changes = pickle.loads(pickled), changes
            assert self._words is not None  # changed with the first report
            m = self._chambers
            pressures, sent, volts = np.array(numbers[2:]).reshape(3, m)
            self._count = count
            time, measured = numbers[:2]
            self._report = ValveReport(time, measured, pressures, sent, volts, *self._words)
            return self._report
        return self._report

    def close(self) -> None:
        """Let the memory go, as far as this end is concerned."""
        self._memory.close()
        os.close(self.file)
