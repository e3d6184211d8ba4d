"""The analog side of emulated terminals: counts to voltages and back, as their settings have it.

What an output does when frames stop, and how an input filters and when it converts, follow from the
CoE objects alone, as the manufacturer describes them (Beckhoff Information System: "Block diagram
for determining the output values" of EL40xx, "Operating modes" and "Filter operation" of EL31xx).
Currents of 4 to 20 mA are treated like voltages of 0 to 10 V.
"""

import math
from collections import deque
from collections.abc import Sequence

from softcr_hardware.ethercat.emulated_objects import ObjectDictionary
from softcr_hardware.ethercat.families import (
    BITS,
    DEFAULT_OUTPUT,
    DEFAULT_RAMP,
    ENABLE_FILTER,
    FILTER,
    PRESENTATION,
    RANGES,
    SCALE_GAIN,
    SCALE_OFFSET,
    SETTINGS_STEP,
    USER_SCALE,
    WATCHDOG,
)
from softcr_hardware.ethercat.terminals import FULL_SCALE_COUNTS, STATUS_TOGGLE, Terminal

_RAMP, _LAST_VALUE = 1, 2  # codes of WATCHDOG
_UNSIGNED, _SIGN_BIT, _ABSOLUTE = 1, 2, 3  # codes of PRESENTATION
_SIEMENS_BITS = 0x05
_RAW_GAIN, _RAW_OFFSET = 0.97, 150.0  # of a converter without calibration; a guess [counts]
_UNDERRANGE, _OVERRANGE = 0x41, 0x42  # status words, with the error bit
_OUTSIDE = 0.005  # of the range: beyond it the status says so
_FREE_RUN = 0.000501  # [s] between conversions by the terminal's own clock
_NOTCHES = (50.0, 60.0)  # [Hz] FIR, codes 0 and 1
_CORNERS = (400.0, 220.0, 100.0, 50.0, 24.0, 12.0, 6.2, 3.0)  # [Hz] IIR, codes from 2


class _Channels:
    """What inputs and outputs have in common."""

    def __init__(self, terminal: Terminal, objects: ObjectDictionary, count: int):
        self._objects, self._first = objects, terminal.first_settings
        self._low, high = RANGES[terminal.unit]
        self._span = high - self._low
        self._step = 2.0 ** max(15 - BITS.get(terminal.family or "", 16), 0)
        self.count = count

    def _setting(self, channel: int, subindex: int, missing: int = 0) -> int:
        return self._objects.setting(self._first + SETTINGS_STEP * channel, subindex, missing)

    def _scaled(self, channel: int, value: float) -> float:
        if self._setting(channel, USER_SCALE):
            gain = self._setting(channel, SCALE_GAIN) / 0x10000
            value = value * gain + self._setting(channel, SCALE_OFFSET)
        return value

    def _limited(self, value: float) -> float:
        stepped = self._step * round(value / self._step)
        return min(max(stepped, 0.0), FULL_SCALE_COUNTS)


class EmulatedOutputs(_Channels):
    """Voltages of an output terminal. Nothing here knows what the station wants them to be."""

    def __init__(self, terminal: Terminal, objects: ObjectDictionary):
        """Just switched on."""
        super().__init__(terminal, objects, terminal.outputs)
        self._held = [0.0] * self.count  # last counts of operation
        self._left: float | None = None  # when frames stopped to count [s]

    def signals(self, now: float, words: Sequence[int] | None) -> list[float]:
        """Of every channel [V], or [mA].

        Args:
            now: time [s].
            words: process data that hold; None outside of operation.
        """
        if words is not None:
            self._left = None
            counts = [self._output(channel, word) for channel, word in enumerate(words)]
            self._held = counts
        else:
            self._left = now if self._left is None else self._left
            counts = [self._without_frames(channel, now - self._left) for channel in self._all]
        return [self._low + self._span * count / FULL_SCALE_COUNTS for count in counts]

    @property
    def ramping(self) -> bool:
        """Whether voltages change without a frame."""
        return self._left is not None and any(
            self._setting(channel, WATCHDOG) == _RAMP for channel in self._all
        )

    @property
    def _all(self) -> range:
        return range(self.count)

    def _without_frames(self, channel: int, since: float) -> float:
        kind = self._setting(channel, WATCHDOG)
        if kind == _LAST_VALUE:
            return self._held[channel]
        target = self._output(channel, self._setting(channel, DEFAULT_OUTPUT))
        if kind != _RAMP:
            return target
        reach = 1e3 * since * self._setting(channel, DEFAULT_RAMP)  # counts a millisecond
        away = self._held[channel] - target
        return target + math.copysign(max(abs(away) - reach, 0.0), away)

    def _output(self, channel: int, word: int) -> float:
        presentation = self._setting(channel, PRESENTATION)
        value = float(word)
        if presentation == _UNSIGNED:
            value = (word & 0xFFFF) / 2
        elif presentation == _SIGN_BIT and word < 0:
            value = -float(word & 0x7FFF)
        elif presentation == _ABSOLUTE:
            value = abs(value)
        value = self._scaled(channel, value)
        if self._setting(channel, 0x07):  # user calibration
            value = (value + self._setting(channel, 0x15)) * self._setting(channel, 0x16) / 0xFFFF
        elif not self._setting(channel, 0x08, missing=1):  # nor the manufacturer's
            value = _RAW_GAIN * value + _RAW_OFFSET
        return self._limited(value)


class EmulatedInputs(_Channels):
    """Process data of an input terminal.

    Without a filter a frame makes it convert: the frame takes along what the frame before has made
    it convert. With one it converts by its own clock, and frames take what is there.
    """

    def __init__(self, terminal: Terminal, objects: ObjectDictionary):
        """Nothing converted yet."""
        super().__init__(terminal, objects, terminal.inputs)
        self._toggle = False
        self._converted = -math.inf  # when
        self._filtered: list[float] = []
        self._past: deque[tuple[float, list[float]]] = deque()

    @property
    def free_running(self) -> bool:
        """Whether it converts by its own clock; the first channel's setting is that of all."""
        return bool(self._setting(0, ENABLE_FILTER))

    def convert(self, now: float, signals: Sequence[float], renewed: bool) -> list[int]:
        """Status and value of every channel in turn, as the next frame takes them.

        Args:
            now: time [s].
            signals: (channels,) [V] or [mA].
            renewed: whether they are new; an old one keeps its toggle.
        """
        if self.free_running:
            first = not math.isfinite(self._converted)
            due = 1 if first else math.floor((now - self._converted) / _FREE_RUN)
            signals = self._filter(now, signals)
            self._toggle ^= renewed and due % 2 == 1
            self._converted = now if first else self._converted + due * _FREE_RUN
        else:
            self._toggle ^= renewed
            self._converted = now
        words: list[int] = []
        for channel, signal in enumerate(signals):
            words += self._input(channel, signal)
        return words

    @property
    def due(self) -> float:
        """When it converts next by its own clock [s]."""
        return self._converted + _FREE_RUN if math.isfinite(self._converted) else -math.inf

    def _filter(self, now: float, signals: Sequence[float]) -> list[float]:
        kind = self._setting(0, FILTER)
        if kind < len(_NOTCHES):  # the mean over a period of the notch
            self._past.append((now, list(signals)))
            while self._past[0][0] < now - 1.0 / _NOTCHES[kind]:
                self._past.popleft()
            rows = [row for _, row in self._past]
            return [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        corner = _CORNERS[min(kind - len(_NOTCHES), len(_CORNERS) - 1)]
        before = self._filtered or list(signals)
        share = 1.0 - math.exp(-2.0 * math.pi * corner * min(max(now - self._converted, 0.0), 1.0))
        self._filtered = [
            old + share * (new - old) for old, new in zip(before, signals, strict=True)
        ]
        return self._filtered

    def _input(self, channel: int, signal: float) -> tuple[int, int]:
        share = (signal - self._low) / self._span
        status = STATUS_TOGGLE if self._toggle else 0
        if share > 1.0 + _OUTSIDE:
            status |= _OVERRANGE
        elif share < -_OUTSIDE:
            status |= _UNDERRANGE
        value = share * FULL_SCALE_COUNTS
        if self._setting(channel, 0x0A):  # user calibration
            gain = self._setting(channel, 0x18) / 0x4000
            value = (value + self._setting(channel, 0x17)) * gain
        elif not self._setting(channel, 0x0B, missing=1):  # nor the manufacturer's
            value = _RAW_GAIN * value + _RAW_OFFSET
        value = self._scaled(channel, value)
        count = round(self._limited(value))
        if self._setting(channel, PRESENTATION) == _UNSIGNED:
            count = 2 * count if count < 0x4000 else 2 * count - 0x10000  # in 16 bits
        if self._setting(channel, _SIEMENS_BITS):
            count = count & ~0x7 | (1 if status & 0x42 == _OVERRANGE else 0)
        return status, count
