"""The valve terminals without a wire: scaling and counts of the real ones, in memory."""

from collections.abc import Callable

import numpy as np

from softcr_hardware.actuator import EmulatedActuator
from softcr_hardware.ethercat.process_data import INPUT, OUTPUT, ProcessData, Sample
from softcr_hardware.ethercat.terminals import (
    FULL_SCALE_COUNTS,
    FULL_SCALE_VOLTS,
    STATUS_TOGGLE,
    Station,
)


class MemoryBus:
    """A `ValveBus` on emulated chambers that never fails.

    As on the wire, an exchange reads what the chambers have become under the volts of the exchange
    before, and brings new ones.

    Attributes:
        watchdog_armed: see `ValveBus`.
    """

    watchdog_armed = True

    def __init__(
        self,
        station: Station,
        data: ProcessData,
        actuator: EmulatedActuator,
        now: Callable[[], float],
        quantised: bool = True,
    ) -> None:
        """Valves on exhaust.

        Args:
            station, data: the terminals, and what their bytes mean.
            actuator: valves and chambers.
            now: the time [s].
            quantised: whether volts are counts of 16 bits; else they are exact.
        """
        self._station, self._data, self._actuator = station, data, actuator
        self._now, self._quantised = now, quantised
        self._volts = np.full(len(station.chambers), station.valve.exhaust)
        self._toggle = False

    def open(self) -> None:
        """Nothing to bring up."""

    def close(self) -> None:
        """Nothing to take down."""

    def check(self) -> str:
        """All slaves are operational."""
        return ""

    def exchange(self, volts: np.ndarray) -> Sample:
        """See `ValveBus`."""
        self._toggle = not self._toggle
        sample = self.read()
        self._volts = self._counted(volts) if self._quantised else volts.copy()
        return sample

    def read(self) -> Sample:
        """What the input terminals say now, without an exchange."""
        volts = self._data.volts(self._actuator.advance(self._now(), self._volts))
        if self._quantised:
            return self._data.unpack(self._input_bytes(volts))
        return Sample(volts, np.zeros(len(volts), bool), np.full(len(volts), self._toggle))

    def _input_bytes(self, volts: np.ndarray) -> dict[int, bytes]:
        counts = np.rint(np.clip(volts / FULL_SCALE_VOLTS, -1.0, 1.0) * FULL_SCALE_COUNTS)
        words = {
            position: np.zeros(terminal.inputs, INPUT)
            for position, terminal in enumerate(self._station.terminals, 1)
        }
        for chamber, count in zip(self._station.chambers, counts, strict=True):
            words[chamber.sensor.terminal]["value"][chamber.sensor.channel - 1] = count
            words[chamber.sensor.terminal]["status"] = STATUS_TOGGLE if self._toggle else 0
        return {position: channels.tobytes() for position, channels in words.items()}

    def _counted(self, volts: np.ndarray) -> np.ndarray:
        """(m,) volts that the output terminals make of these [V]."""
        packed = self._data.pack(volts)
        wires = [chamber.valve for chamber in self._station.chambers]
        counts = [np.frombuffer(packed[wire.terminal], OUTPUT)[wire.channel - 1] for wire in wires]
        return np.array(counts) * (FULL_SCALE_VOLTS / FULL_SCALE_COUNTS)
