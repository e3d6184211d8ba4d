"""The actuator behind the emulators: valves and chambers by the millisecond, and the rod they bend.

Chambers follow the flow of their valves (`emulated_chambers`: first order towards supply or
atmosphere; no tubes, no temperature). The rod feels the pressures and does not act back on them.
"""

import math
import threading
from collections import deque
from collections.abc import Callable

import numpy as np

from softcr_hardware.emulation.chambers import (
    SENSOR_NOISE,
    ChamberErrors,
    advance_chambers,
    emulated_chambers,
)
from softcr_hardware.emulation.sensors import EmulatedSensors
from softcr_hardware.ethercat.terminals import Station
from softcr_models.room_kernels import one_compiles
from softcr_simulation.plant import Measurement, SimulatedPlant

_PIECE = 0.001  # [s] between pressures that the rod lives through
_MANIFOLD_LAG = 0.05  # [s] of the manifold behind its dump valve
_LONGEST = 1.0  # [s] a gap is not simulated beyond


class EmulatedActuator:
    """Chambers behind real valve voltages, with or without the rod. Its methods may be called from
    any thread.

    Attributes:
        seen: the last measurement of `see`; None before it.
        sensors: of the chambers' pressures; they may lie.
        on_seen: called with each of them, by who asked for it; must not raise.
        air_on: whether the dump valve, where there is one, lets the supply into the manifold.
        chambers: (m,) CHAMBER: valves and pressures; a test may change their numbers.
    """

    def __init__(
        self,
        station: Station,
        plant: SimulatedPlant | None = None,
        errors: ChamberErrors | None = None,
        sensor_noise: float = SENSOR_NOISE,
    ):
        """Vented.

        Args:
            station: valves, flow, sensors.
            plant: the rod that the chambers bend; None when nobody looks at it.
            errors: how valves and chambers differ from the station; None for not at all.
            sensor_noise: of the pressure sensors, standard deviation [Pa].
        """
        self._plant = plant
        self._lock = threading.Lock()
        self._rod_lock = threading.Lock()  # held for milliseconds; the chambers do not wait for it
        self.seen: Measurement | None = None
        self.on_seen: Callable[[Measurement], None] | None = None
        count = len(station.chambers)
        self.chambers = emulated_chambers(station.valve, station.flow, count, errors)
        names = [chamber.name for chamber in station.chambers]
        self.sensors = EmulatedSensors(names, sensor_noise)
        self._failed = False  # a fault was typed at the last advance
        with one_compiles():
            exhausting = np.full(count, station.valve.exhaust)
            advance_chambers(self.chambers, exhausting, _PIECE, np.empty(count))
        self._pressures = np.zeros(count)
        self.air_on = True
        self._supply, self._manifold = station.flow.supply, 1.0
        self._time: float | None = None
        self._rod_time: float | None = None
        # what the rod has not lived through yet, and the moment before that
        self._unlived: deque[tuple[float, np.ndarray]] = deque(maxlen=round(_LONGEST / _PIECE))

    @property
    def pressures(self) -> np.ndarray:
        """(m,) gauge [Pa]."""
        with self._lock:
            return self._pressures.copy()

    @property
    def supply_pressure(self) -> float:
        """Gauge pressure of the regulator, before a dump valve [Pa]."""
        with self._lock:
            first = self.chambers[0]
            factor = first["supply"] * first["supplied"] * first["drooped"]
            return float(self._supply * factor)

    def advance(self, time: float, volts: np.ndarray) -> np.ndarray:
        """Chambers at `time` [s], valves having been at (m,) [V] since the last call.

        Returns:
            (m,) pressures [Pa], to be read only.
        """
        with self._lock:
            left = 0.0 if self._time is None else min(time - self._time, _LONGEST)
            self._time = time
            self._fail(time)
            if left > 1e-9:
                self._fill_manifold(left)
                self._pressures = np.empty(len(self._pressures))  # those of before are kept
                advance_chambers(self.chambers, np.asarray(volts, float), left, self._pressures)
            else:  # a test may have changed them
                self._pressures = self.chambers["pressure"].copy()
            if not self._unlived or time > self._unlived[-1][0]:
                self._unlived.append((time, self._pressures))
            return self._pressures

    def _fail(self, time: float) -> None:
        """Faults of chambers and supply that were typed."""
        if not self.sensors.lying and not self._failed:
            return
        self._failed = self.sensors.lying
        for chamber, moment in zip(self.chambers, self.sensors.moments(time), strict=True):
            chamber["more_leak"], chamber["sticking"] = moment.leak, moment.stuck
            chamber["supplied"] = moment.supply

    def _fill_manifold(self, dt: float) -> None:
        """The pressure before the valves follows the dump valve."""
        wanted = 1.0 if self.air_on else 0.0
        if self._manifold != wanted:
            self._manifold = wanted + (self._manifold - wanted) * math.exp(-dt / _MANIFOLD_LAG)
            if abs(self._manifold - wanted) < 1e-4:
                self._manifold = wanted
            self.chambers["end_pressure"] = self._supply * self._manifold

    def move_rod(self, time: float) -> None:
        """Let the rod live until `time` [s] under the pressures that there were meanwhile."""
        if self._plant is None:
            return
        with self._rod_lock:
            if self._rod_time is not None and time > self._rod_time:
                begin = max(self._rod_time, time - _LONGEST)
                self._plant.impose(begin, time, *self._pressures_until(time))
            self._rod_time = time

    def _pressures_until(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """Times (T,) [s] and pressures (T, m) [Pa] that the rod is to live through.

        What the chambers have not been asked for yet goes on as it did: less than a millisecond
        while the master cycles.
        """
        with self._lock:
            known = list(self._unlived) or [(time, self._pressures)]
            while len(self._unlived) > 1 and self._unlived[1][0] <= time:
                self._unlived.popleft()
        if len(known) > 1 and known[-1][0] < time:
            (before, older), (last, newer) = known[-2:]
            ahead = min(time - last, _PIECE)
            known.append((last + ahead, newer + ahead / (last - before) * (newer - older)))
        times, pressures = zip(*known, strict=True)
        return np.array(times), np.array(pressures)

    def measure(self, stamp: int) -> Measurement | None:
        """All sensors of the rod at `stamp` [ns]; None without a rod."""
        if self._plant is None:
            return None
        with self._rod_lock:
            return self._plant.measure(stamp)

    def see(self, time: float) -> Measurement:
        """Let the rod live until `time` [s] and read all its sensors.

        Raises:
            ValueError: there is no rod.
        """
        self.move_rod(time)
        measured = self.measure(round(1e9 * time))
        if measured is None:
            raise ValueError("there is no rod to see")
        self.seen = measured
        if self.on_seen is not None:
            self.on_seen(measured)
        return measured
