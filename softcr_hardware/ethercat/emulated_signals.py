"""The analog side of emulated terminals: counts to voltages and back, as their settings have it.

What an output does when frames stop, and how an input filters and when it converts, follow from the
CoE objects alone, as the manufacturer describes them (Beckhoff Information System: "Block diagram
for determining the output values" of EL40xx, "Operating modes" and "Filter operation" of EL31xx).
Currents of 4 to 20 mA are treated like voltages of 0 to 10 V.
"""

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

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
_RAW_GAIN, _RAW_OFFSET = 0.97, 150.0  # of a converter without calibration; a guess [counts]
_UNDERRANGE, _OVERRANGE = 0x41, 0x42  # status words, with the error bit
_OUTSIDE = 0.005  # of the range: beyond it the status says so
_FREE_RUN = 0.000501  # [s] between conversions by the terminal's own clock
_NOTCHES = (50.0, 60.0)  # [Hz] FIR, codes 0 and 1
_CORNERS = (400.0, 220.0, 100.0, 50.0, 24.0, 12.0, 6.2, 3.0)  # [Hz] IIR, codes from 2


class _Settings(NamedTuple):
    """What a channel's CoE settings say; a field of the other direction is as if not used."""

    presentation: int
    user_scale: int
    scale_offset: int
    scale_gain: int
    user_calibration: int
    calibration_offset: int
    calibration_gain: int
    calibrated: int  # by the manufacturer
    siemens_bits: int
    enable_filter: int
    filter: int
    watchdog: int
    default_output: int
    default_ramp: int


# subindex of each, and what there is without it; 0 where the direction has none
_OUTPUT = _Settings(PRESENTATION, USER_SCALE, SCALE_OFFSET, SCALE_GAIN, 0x07, 0x15, 0x16, 0x08, 0,
                    0, 0, WATCHDOG, DEFAULT_OUTPUT, DEFAULT_RAMP)  # fmt: skip
_INPUT = _Settings(PRESENTATION, USER_SCALE, SCALE_OFFSET, SCALE_GAIN, 0x0A, 0x17, 0x18, 0x0B, 0x05,
                   ENABLE_FILTER, FILTER, 0, 0, 0)  # fmt: skip
_MISSING = _Settings(*14 * [0])._replace(calibrated=1)


class _Channels:
    """What inputs and outputs have in common."""

    def __init__(
        self, terminal: Terminal, objects: ObjectDictionary, count: int, places: _Settings
    ):
        self._objects, self._first, self._places = objects, terminal.first_settings, places
        self._low, high = RANGES[terminal.unit]
        self._span = high - self._low
        self._step = 2.0 ** max(15 - BITS.get(terminal.family or "", 16), 0)
        self.count = count
        self._read_at, self._read = -1, [_MISSING] * count

    @property
    def _settings(self) -> list[_Settings]:
        """(count,) of every channel, read anew only where a master has written: frames are many."""
        if self._objects.changes != self._read_at:
            self._read_at = self._objects.changes
            indices = [self._first + SETTINGS_STEP * channel for channel in range(self.count)]
            self._read = [
                _Settings._make(
                    self._objects.setting(index, place, missing) if place else missing
                    for place, missing in zip(self._places, _MISSING, strict=True)
                )
                for index in indices
            ]
        return self._read

    def _scaled(self, settings: _Settings, value: float) -> float:
        if settings.user_scale:
            value = value * (settings.scale_gain / 0x10000) + settings.scale_offset
        return value

    def _limited(self, value: float) -> float:
        stepped = self._step * round(value / self._step)
        return min(max(stepped, 0.0), FULL_SCALE_COUNTS)


class EmulatedOutputs(_Channels):
    """Voltages of an output terminal. Nothing here knows what the station wants them to be."""

    def __init__(self, terminal: Terminal, objects: ObjectDictionary):
        """Just switched on."""
        super().__init__(terminal, objects, terminal.outputs, _OUTPUT)
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
            counts = list(map(self._output, self._settings, words))
            self._held = counts
        else:
            self._left = now if self._left is None else self._left
            since = now - self._left
            counts = [
                self._without_frames(settings, held, since)
                for settings, held in zip(self._settings, self._held, strict=True)
            ]
        return [self._low + self._span * count / FULL_SCALE_COUNTS for count in counts]

    @property
    def ramping(self) -> bool:
        """Whether voltages change without a frame."""
        return self._left is not None and any(
            settings.watchdog == _RAMP for settings in self._settings
        )

    def _without_frames(self, settings: _Settings, held: float, since: float) -> float:
        if settings.watchdog == _LAST_VALUE:
            return held
        target = self._output(settings, settings.default_output)
        if settings.watchdog != _RAMP:
            return target
        reach = 1e3 * since * settings.default_ramp  # counts a millisecond
        away = held - target
        return target + math.copysign(max(abs(away) - reach, 0.0), away)

    def _output(self, settings: _Settings, word: int) -> float:
        presentation, value = settings.presentation, float(word)
        if presentation == _UNSIGNED:
            value = (word & 0xFFFF) / 2
        elif presentation == _SIGN_BIT and word < 0:
            value = -float(word & 0x7FFF)
        elif presentation == _ABSOLUTE:
            value = abs(value)
        value = self._scaled(settings, value)
        if settings.user_calibration:
            value = (value + settings.calibration_offset) * settings.calibration_gain / 0xFFFF
        elif not settings.calibrated:
            value = _RAW_GAIN * value + _RAW_OFFSET
        return self._limited(value)


class EmulatedInputs(_Channels):
    """Process data of an input terminal.

    Without a filter a frame makes it convert: the frame takes along what the frame before has made
    it convert. With one it converts by its own clock, and frames take what is there.
    """

    def __init__(self, terminal: Terminal, objects: ObjectDictionary):
        """Nothing converted yet."""
        super().__init__(terminal, objects, terminal.inputs, _INPUT)
        self._toggle = False
        self._converted = -math.inf  # when
        self._filtered: list[float] = []
        self._past: deque[tuple[float, list[float]]] = deque()

    @property
    def free_running(self) -> bool:
        """Whether it converts by its own clock; the first channel's setting is that of all."""
        return bool(self._settings[0].enable_filter)

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
        for settings, signal in zip(self._settings, signals, strict=True):
            words += self._input(settings, signal)
        return words

    @property
    def due(self) -> float:
        """When it converts next by its own clock [s]."""
        return self._converted + _FREE_RUN if math.isfinite(self._converted) else -math.inf

    def _filter(self, now: float, signals: Sequence[float]) -> list[float]:
        kind = self._settings[0].filter
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

    def _input(self, settings: _Settings, signal: float) -> tuple[int, int]:
        share = (signal - self._low) / self._span
        status = STATUS_TOGGLE if self._toggle else 0
        if share > 1.0 + _OUTSIDE:
            status |= _OVERRANGE
        elif share < -_OUTSIDE:
            status |= _UNDERRANGE
        value = share * FULL_SCALE_COUNTS
        if settings.user_calibration:
            gain = settings.calibration_gain / 0x4000
            value = (value + settings.calibration_offset) * gain
        elif not settings.calibrated:
            value = _RAW_GAIN * value + _RAW_OFFSET
        value = self._scaled(settings, value)
        count = round(self._limited(value))
        if settings.presentation == _UNSIGNED:
            count = 2 * count if count < 0x4000 else 2 * count - 0x10000  # in 16 bits
        if settings.siemens_bits:
            count = count & ~0x7 | (1 if status & 0x42 == _OVERRANGE else 0)
        return status, count
