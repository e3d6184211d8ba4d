"""Process data of a station: bytes of the terminals <-> volts and pressures of the chambers.

The layouts are worked out once. Packing and unpacking are then plain numbers: they are done a
thousand times a second for a handful of channels, where a line of numpy costs several times more.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from softcr_hardware.ethercat.families import RANGES, Unit
from softcr_hardware.ethercat.station_wiring import first_bits
from softcr_hardware.ethercat.terminals import (
    FULL_SCALE_COUNTS,
    STATUS_FAULT,
    STATUS_TOGGLE,
    Channel,
    Station,
    Terminal,
)
from softcr_models.errors import UserError

INPUT = np.dtype([("status", "<u2"), ("value", "<i2")])
"""One channel of an input terminal."""
OUTPUT = np.dtype("<i2")
"""One channel of an output terminal."""


@dataclass(slots=True, eq=False)  # not frozen: one is made in every fast cycle
class Sample:
    """What the input terminals said in one cycle, in the order of the chambers.

    Attributes:
        volts: (m,) [V].
        broken: (m,) the terminal says so, or the voltage is none the sensor can have.
        toggles: (m,) change with each new value.
        second: (m,) pressures of the second sensors [Pa]; NaN where there is none, or a broken one.
        supply: gauge pressure of the supply [Pa]; NaN likewise.
        stopped: whether the chain of emergency stops is open.
        unpowered: whether the 24 V of valves and sensors are missing.
    """

    volts: np.ndarray
    broken: np.ndarray
    toggles: np.ndarray
    second: np.ndarray | None = None
    supply: float = math.nan
    stopped: bool = False
    unpowered: bool = False


class ProcessData:
    """Packs and unpacks what the terminals exchange in a cycle.

    Attributes:
        nominal_zero: (m,) voltages at zero gauge pressure in the station file [V].
        zero: (m,) those in use; calibration replaces them.
        slope: (m,) of the sensors [Pa/V].
        air_on: whether the dump valve, where there is one, gets its current with the next `pack`.
    """

    def __init__(self, station: Station):
        """Of a validated station."""
        sensors = [chamber.sensor for chamber in station.chambers]
        self.nominal_zero = np.array([sensor.zero for sensor in sensors])
        self.zero = self.nominal_zero
        self.slope = np.array([sensor.pascal_per_volt for sensor in sensors])
        self._ranges = [(sensor.lowest, sensor.highest) for sensor in sensors]
        terminals = station.terminals
        self.air_on = False
        chain, bits = station.stop_chain, first_bits(station, "inputs")
        self._digital = [
            (place.terminal, bits[place.terminal] + place.channel - 1) if place else None
            for place in (chain.stop_input, chain.supply_24v_input)
        ]
        self._dump: tuple[int, int, int] | None = None  # position, value with the air on, bytes
        if (place := chain.dump_valve_output) is not None:
            bit = first_bits(station, "outputs")[place.terminal] + place.channel - 1
            size = station.terminals[place.terminal - 1].output_bytes
            self._dump = place.terminal, 1 << bit, size
        self._scales = {position: _scale(each) for position, each in enumerate(terminals, 1)}
        self._extra = [  # sensors beside those that are regulated by; the gauge of the supply last
            (index, sensor)
            for index, sensor in enumerate(
                [*(chamber.second_sensor for chamber in station.chambers), station.supply.gauge]
            )
            if sensor is not None
        ]
        inputs = {sensor.terminal for sensor in sensors}
        inputs |= {sensor.terminal for _, sensor in self._extra}
        self._wires = station.watchdog_wires
        inputs |= {wire.input.terminal for wire in self._wires}
        wired = _by_terminal(sensors)
        self._sensors = {
            position: (
                struct.Struct("<" + "Hh" * terminals[position - 1].inputs), wired.get(position, [])
            )
            for position in sorted(inputs)
        }  # fmt: skip
        dead = station.valve.when_dead  # where channels rest that nobody uses
        self._valves = []
        valves = [chamber.valve for chamber in station.chambers]
        for position, wires in _by_terminal(valves).items():
            terminal = terminals[position - 1]
            rest = [output_count(dead, terminal.unit)] * terminal.outputs
            layout = struct.Struct(f"<{terminal.outputs}h")
            self._valves.append((position, layout, rest, wires))
        self._dead = dead

    def pack(self, volts: np.ndarray) -> dict[int, bytes]:
        """Output bytes by position of the terminal, for valve commands (m,) [V]."""
        wanted = volts.tolist()
        packed = {}
        for position, layout, words, wires in self._valves:
            low, per_count = self._scales[position]
            for chamber, channel in wires:
                count = round((wanted[chamber] - low) / per_count)
                words[channel] = min(max(count, 0), FULL_SCALE_COUNTS)
            packed[position] = layout.pack(*words)
        if self._dump is not None:
            position, value, size = self._dump
            packed[position] = (value if self.air_on else 0).to_bytes(size, "little")
        return packed

    def unpack(self, inputs: Mapping[int, bytes]) -> Sample:
        """The sample in the input bytes by position of the terminal."""
        count = len(self._ranges)
        volts, broken, toggles = [0.0] * count, [False] * count, [False] * count
        extra = [math.nan] * (count + 1)
        found = {}
        for position, (layout, wires) in self._sensors.items():
            words = found[position] = layout.unpack_from(inputs[position])
            low, per_count = self._scales[position]
            for chamber, channel in wires:
                status, seen = words[2 * channel], low + words[2 * channel + 1] * per_count
                lowest, highest = self._ranges[chamber]
                volts[chamber] = seen
                broken[chamber] = bool(status & STATUS_FAULT) or not lowest <= seen <= highest
                toggles[chamber] = bool(status & STATUS_TOGGLE)
        for index, sensor in self._extra:
            words = found[sensor.terminal]
            status, seen = words[2 * sensor.channel - 2], words[2 * sensor.channel - 1]
            low, per_count = self._scales[sensor.terminal]
            told = low + seen * per_count
            if not status & STATUS_FAULT and sensor.lowest <= told <= sensor.highest:
                extra[index] = (told - sensor.zero) * sensor.pascal_per_volt
        closed, powered = (self._is_on(place, inputs) for place in self._digital)
        return Sample(
            np.array(volts), np.array(broken), np.array(toggles), np.array(extra[:-1]), extra[-1],
            not closed, not powered,
        )  # fmt: skip

    @staticmethod
    def _is_on(place: tuple[int, int] | None, inputs: Mapping[int, bytes]) -> bool:
        """Whether a digital input is at 24 V; one that there is not always is."""
        if place is None:
            return True
        position, bit = place
        return bool(inputs[position][bit // 8] >> bit % 8 & 1)

    # --- wires that show what outputs do when frames stop -------------------------------------

    def wire_signals(self, testing: bool) -> list[float]:
        """What the wired outputs are to give [V], or [mA]: something else while `testing`.

        Sets what `pack` puts there from now on.
        """
        told = []
        for wire in self._wires:
            low, per_count = self._scales[wire.output.terminal]
            span = FULL_SCALE_COUNTS * per_count
            other = low + span / 2
            if abs(other - self._dead) < span / 4:
                other = low + span
            wanted = other if testing else self._dead
            told.append(wanted)
            for position, _, words, _ in self._valves:
                if position == wire.output.terminal:
                    words[wire.output.channel - 1] = round((wanted - low) / per_count)
        return told

    def wire_readings(self, inputs: Mapping[int, bytes]) -> list[float]:
        """What comes in at the wired inputs [V], or [mA]; NaN where the terminal says it is bad."""
        read = []
        for wire in self._wires:
            words = self._sensors[wire.input.terminal][0].unpack_from(inputs[wire.input.terminal])
            status, count = words[2 * wire.input.channel - 2 : 2 * wire.input.channel]
            low, per_count = self._scales[wire.input.terminal]
            read.append(math.nan if status & STATUS_FAULT else low + count * per_count)
        return read

    @property
    def input_positions(self) -> tuple[int, ...]:
        """Terminals whose inputs `unpack` needs."""
        digital = {place[0] for place in self._digital if place is not None}
        return tuple(sorted({*self._sensors, *digital}))

    def pressures(self, volts: np.ndarray) -> np.ndarray:
        """Gauge pressures (m,) [Pa] of sensor voltages (m,) [V]."""
        return (volts - self.zero) * self.slope

    def volts(self, pressures: np.ndarray) -> np.ndarray:
        """What the sensors say [V] at pressures (m,) [Pa]; for who plays the sensors."""
        return self.zero + np.asarray(pressures) / self.slope


def _scale(terminal: Terminal) -> tuple[float, float]:
    """Signal at count 0, and per count."""
    low, high = RANGES[terminal.unit]
    return low, (high - low) / FULL_SCALE_COUNTS


def output_count(signal: float, unit: Unit) -> int:
    """The 16-bit value of an output channel for a signal [V], or [mA]."""
    low, high = RANGES[unit]
    return round(FULL_SCALE_COUNTS * min(max((signal - low) / (high - low), 0.0), 1.0))


def zero_volts(
    samples: np.ndarray, nominal: np.ndarray, most_noise: float = 0.05, most_offset: float = 0.3
) -> np.ndarray:
    """Zero-offset calibration: what the sensors say while the chambers are open to the air.

    Args:
        samples: (T, m) voltages of vented chambers [V].
        nominal: (m,) what the station file says [V].
        most_noise: largest standard deviation [V]; more is a chamber that still empties.
        most_offset: largest distance from the file's value [V]; more is another sensor, or a fault.

    Returns:
        (m,) medians [V].

    Raises:
        UserError: too few samples, too much noise, or an offset that no calibration may hide.
    """
    samples = np.asarray(samples, dtype=float)
    if samples.ndim != 2 or len(samples) < 100 or not np.all(np.isfinite(samples)):
        raise UserError(f"zero calibration: {len(samples)} samples, at least 100 are needed")
    zero = np.median(samples, axis=0)
    noise = samples.std(axis=0)
    for index, (middle, spread, expected) in enumerate(zip(zero, noise, nominal, strict=True)):
        where = f"zero calibration: sensor {index + 1}"
        if spread > most_noise:
            raise UserError(f"{where} varies by {spread:.3f} V, at most {most_noise} V: vent first")
        if abs(middle - expected) > most_offset:
            raise UserError(
                f"{where} reads {middle:.3f} V, must be within {most_offset} V of the station "
                f"file's {expected:.3f} V: vented? right sensor?"
            )
    return zero


def _by_terminal(wires: Sequence[Channel]) -> dict[int, list[tuple[int, int]]]:
    """Each chamber and the channel it is wired to (from 0), by position of the terminal."""
    found: dict[int, list[tuple[int, int]]] = {}
    for chamber, wire in enumerate(wires):
        found.setdefault(wire.terminal, []).append((chamber, wire.channel - 1))
    return found
