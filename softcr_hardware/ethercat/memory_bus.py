"""The valve terminals without a wire, in memory: volts in counts of the real ones."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from softcr_hardware.emulation.actuator import EmulatedActuator
from softcr_hardware.emulation.chambers import SENSOR_NOISE
from softcr_hardware.emulation.sensors import EmulatedSensors
from softcr_hardware.ethercat.families import RANGES
from softcr_hardware.ethercat.process_data import ProcessData, Sample
from softcr_hardware.ethercat.terminals import FULL_SCALE_COUNTS, Channel, Station
from softcr_models.room_kernels import compiled, one_compiles


class MemoryBus:
    """A `ValveBus` on emulated chambers that never fails.

    As on the wire, an exchange reads what the chambers have become under the volts of the exchange
    before, and brings new ones. Input terminals that convert when a frame comes are a cycle later
    still: the frame takes what the frame before has made them convert.
    """

    watchdog_armed = True
    stopped = unpowered = False
    """Whether the chain of emergency stops is open, and whether the 24 V are missing."""

    def __init__(
        self,
        station: Station,
        data: ProcessData,
        actuator: EmulatedActuator,
        now: Callable[[], float],
        quantised: bool = True,
        noise: float = SENSOR_NOISE,
        seed: int = 0,
        converts_on_frame: bool = False,
    ) -> None:
        """Valves on exhaust.

        Args:
            station, data: the terminals, and what their volts mean.
            actuator: valves and chambers.
            now: the time [s].
            quantised: whether volts are counts of 16 bits; else they are exact.
            noise: of the sensors, standard deviation [Pa].
            seed: of the noise.
            converts_on_frame: whether samples are one exchange old.
        """
        names = [chamber.name for chamber in station.chambers]
        actuator.sensors = EmulatedSensors(names, noise, seed)
        self._data, self._actuator, self._now, self._quantised = data, actuator, now, quantised
        self._station = station
        self._output_ranges = _ranges(station, [each.valve for each in station.chambers])
        self._input_ranges = _ranges(station, [each.sensor for each in station.chambers])
        self._volts = np.full(len(station.chambers), station.valve.exhaust)
        self._dumps = station.stop_chain.dump_valve_output is not None
        actuator.air_on = not self._dumps
        self._late = converts_on_frame
        self._converted: Sample | None = None
        self._toggles = np.zeros(len(names), bool)
        self._renewed = np.ones(len(names), bool)
        self._whole = np.zeros(len(names), bool)  # no terminal says that a sensor is broken
        self._gauged = station.supply.gauge is not None
        self._paired = any(each.second_sensor is not None for each in station.chambers)
        with one_compiles():
            _count(self._volts, *self._output_ranges, 0.0, np.empty(len(names)))

    def open(self) -> None:
        """Nothing to bring up."""

    def close(self) -> None:
        """Nothing to take down."""

    def check(self) -> str:
        """All slaves are operational."""
        return ""

    def exchange(self, volts: np.ndarray) -> Sample:
        sample = converted = self.read()
        sample.toggles = self._toggles = self._toggles ^ self._renewed
        if self._late:
            sample, self._converted = self._converted or converted, converted
        self._volts = self._counted(volts, *self._output_ranges, below=0.0)
        if self._dumps:
            air_on = self._data.air_on and not self.stopped and not self.unpowered
            self._actuator.air_on = air_on
        return sample

    def read(self) -> Sample:
        """What the input terminals say now, without an exchange."""
        now = self._now()
        pressures = self._actuator.advance(now, self._volts)
        readings, self._renewed = self._actuator.sensors.read(now, pressures)
        volts = self._counted(self._data.volts(readings), *self._input_ranges, below=1.0)
        second, supply = self._others(pressures)
        return Sample(
            volts, self._whole, self._toggles, second, supply, self.stopped, self.unpowered
        )

    def _others(self, pressures: np.ndarray) -> tuple[np.ndarray | None, float]:
        """Second sensors (m,) and the supply's gauge [Pa], where the station has them."""
        honest, supply, chambers = self._actuator.sensors.honest, math.nan, self._station.chambers
        if self._gauged:
            supply = honest(self._actuator.supply_pressure)
        if not self._paired:
            return None, supply
        second = [
            math.nan if chamber.second_sensor is None else honest(pressure)
            for chamber, pressure in zip(chambers, pressures, strict=True)
        ]
        return np.array(second), supply

    def _counted(
        self, volts: np.ndarray, low: np.ndarray, span: np.ndarray, below: float
    ) -> np.ndarray:
        """(m,) volts as the terminals have them [V], or [mA]; `below` spans under 0 counts."""
        counted = volts.copy()
        if self._quantised:
            _count(volts, low, span, below, counted)
        return counted


@compiled
def _count(
    volts: np.ndarray, low: np.ndarray, span: np.ndarray, below: float, counted: np.ndarray
) -> None:
    for index in range(len(volts)):
        least, width = low[index], span[index]
        limited = min(max(volts[index], least - below * width), least + width) - least
        count = np.rint(limited * (FULL_SCALE_COUNTS / width))
        counted[index] = count * (width / FULL_SCALE_COUNTS) + least


def _ranges(station: Station, wires: Sequence[Channel]) -> tuple[np.ndarray, np.ndarray]:
    """(m,) lowest signals of channels, and what they span [V], or [mA]."""
    ends = [RANGES[station.terminals[wire.terminal - 1].unit] for wire in wires]
    low, high = np.array(ends).T
    return low, high - low
