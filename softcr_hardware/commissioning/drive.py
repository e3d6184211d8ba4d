"""Air into one chamber at a time, within bounds that rest on no single sensor.

Every dose is bounded by openings: at twice the flow of the station file it brings at most
`MOST_AIR`. Beside that, a reading above `HIGHEST`, a reading that is no number, a bus that does not
answer, a late cycle while a chamber fills, or a released deadman's switch exhausts all chambers at
once and ends what was being done.
"""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from softcr_hardware.commissioning.bench import Bench, Operator, Question
from softcr_hardware.commissioning.pulse import Pulse, valve_volts
from softcr_models.errors import UserError

MOST_AIR = 2e4
"""What one dose may bring into a vented chamber, were the flow twice that of the file [Pa]."""
HIGHEST = 1.5e4
"""No reading may be above [Pa]."""

_FLOW_DOUBT = 2.0
_SILENT = 0.05  # [s] without a sample
_LATE = 0.02  # [s] between two exchanges while a chamber fills
_CHECK_PERIOD = 0.1  # [s] between looks at the terminals' states
_READY = 0.03  # [s] closed before filling: on its way from the exhaust a valve lags
_LOOKS = 20  # exchanges in which an input must be silent
_VENTED = 0.6  # [s] at most until a chamber is empty


Result = TypeVar("Result")


class Interrupted(UserError):
    """What was being done had to end; all chambers exhaust. Says why."""


@dataclass(frozen=True, eq=False)
class Trace:
    """Exchanges of one channel.

    Attributes:
        times: (T,) since the beginning [s].
        volts: (T,) sent to the channel's valve at these times [V]; of a valve in reverse what one
            that is not would have been sent.
        pressures: (T, m) of all sensors [Pa]; NaN where no sample came.
    """

    times: np.ndarray
    volts: np.ndarray
    pressures: np.ndarray


class Drive:
    """Owns the valves of an open bench.

    Attributes:
        bench, operator: whose.
        names: of the channels, which are the chambers' of the station file.
        reversed: (m,) valves that are known to fill where they should exhaust.
        air: whether the hand valve of the air may be open.
    """

    def __init__(self, bench: Bench, operator: Operator) -> None:
        """All valves closed until `trust_exhaust`: one may be wired in reverse."""
        self.bench, self.operator = bench, operator
        self.names = tuple(chamber.name for chamber in bench.station.chambers)
        self.reversed = np.zeros(len(self.names), bool)
        self.air = True
        self._calm = 0.0  # what a channel does that is left alone: closed
        self._over = 0
        self._heard = bench.now

    @property
    def count(self) -> int:
        """Number of channels."""
        return len(self.names)

    def trust_exhaust(self, reversed_valves: np.ndarray) -> None:
        """From now on channels exhaust while they are left alone.

        Args:
            reversed_valves: (m,) which valves exhaust where they should fill.
        """
        self.reversed = np.asarray(reversed_valves, bool).copy()
        self._calm = -1.0

    def distrust_exhaust(self) -> None:
        """As at the beginning: channels that are left alone are closed."""
        self.reversed = np.zeros(self.count, bool)
        self._calm = 0.0

    def found_reversed(self, channel: int) -> None:
        """A channel's valve fills when it should exhaust: let its air out through the other end."""
        self.reversed[channel] = True
        self._run(channel, lambda time: -1.0, _VENTED, self.bench.calm_period)

    # --- what steps do ------------------------------------------------------------------------

    def let_air(self, on: bool) -> None:
        """The dump valve's current, where there is one; waits for the manifold behind it."""
        if on == self.bench.data.air_on:
            return
        self.bench.data.air_on = on
        self.rest(self.bench.station.stop_chain.fill_time)

    def rest(
        self, duration: float, fine: bool = False, look: Callable[[], None] = lambda: None
    ) -> Trace:
        """Leave all valves alone.

        Args:
            duration: [s].
            fine: at the period of timed valves, not at the calm one.
            look: called after each exchange.
        """
        period = self.bench.period if fine else self.bench.calm_period
        self._begin()
        return self._run(0, lambda time: self._calm, duration, period, watched=False, look=look)

    def exhaust(self, duration: float = _VENTED) -> None:
        """All channels to their exhaust."""
        self._begin()
        self._run(0, lambda time: -1.0, duration, self.bench.calm_period, watched=False)

    def exhaust_look(self, duration: float) -> np.ndarray:
        """(T, m) pressures [Pa] while all channels exhaust for `duration` [s]."""
        period = self.bench.period
        self._begin()
        return self._run(0, lambda time: -1.0, duration, period, watched=False).pressures

    def pulse(self, channel: int, pulse: Pulse) -> Trace:
        """One pulse; the chamber is vented before and after.

        Raises:
            Interrupted: see the module.
        """
        self._check_dose(pulse.opening, pulse.fill)
        self._begin()
        return self._run(channel, pulse.opening_at, pulse.duration, self.bench.period)

    def fill(self, channel: int, opening: float, time: float) -> Trace:
        """Let air into a vented chamber; its valve is closed afterwards, see `hold`.

        Raises:
            Interrupted: see the module.
        """
        self._check_dose(opening, time)
        pieces = [(_READY, 0.0), (time, opening), (_READY, 0.0)]
        self._begin()
        return self._run(channel, _piecewise(pieces), time + 2 * _READY, self.bench.period)

    def hold(self, channel: int, duration: float, look: Callable[[], None] = lambda: None) -> Trace:
        """Keep a channel closed; `look` is called after each exchange.

        Raises:
            Interrupted: see the module.
        """
        period = self.bench.calm_period
        return self._run(channel, lambda time: 0.0, duration, period, look=look)

    def play(self, channel: int, pieces: list[tuple[float, float]]) -> Trace:
        """Openings of one channel, in their order; what fills is bounded as a whole.

        Args:
            channel: from 0; vented at the beginning.
            pieces: (time [s], opening) of each.

        Raises:
            Interrupted: see the module.
        """
        fills = abs if self._calm == 0.0 else _positive  # a reversed valve fills below 0
        self._check_dose(1.0, sum(time * fills(opening) for time, opening in pieces))
        duration = sum(time for time, _ in pieces)
        self._begin()
        return self._run(channel, _piecewise(pieces), duration, self.bench.period)

    def wait(self, question: Question, channel: int | None = None) -> str:
        """Ask the operator and go on exchanging until the answer.

        Args:
            question: for the operator.
            channel: one that is to be kept closed meanwhile, from 0.

        Raises:
            Interrupted: see the module.
        """
        pending = self.operator.ask(question)
        while (answer := pending()) is None:
            self._run(
                channel or 0,
                lambda time: self._calm if channel is None else 0.0,
                self.bench.calm_period,
                self.bench.calm_period,
                watched=channel is not None,
            )
        return answer

    def silent_inputs(self) -> list[int]:
        """Inputs without a sensor's signal, from 0, all valves left alone; nothing else is done."""
        silent = np.ones(self.count, bool)
        for _ in range(_LOOKS):
            command = self._volts(0, self._calm, self._calm)
            sample = self.bench.exchange(command, self.bench.calm_period)
            if sample is not None:
                silent &= sample.broken | ~np.isfinite(sample.volts)
        self._heard = self.bench.now
        return [int(each) for each in np.flatnonzero(silent)]

    def ask_beside(self, question: Question) -> str:
        """As `wait`, while a cable may be pulled: readings are not looked at, all valves rest."""
        pending = self.operator.ask(question)
        while (answer := pending()) is None:
            command = self._volts(0, self._calm, self._calm)
            self.bench.exchange(command, self.bench.calm_period)
        self._heard = self.bench.now
        return answer

    def beside(self, work: Callable[[], Result]) -> Result:
        """Work of some length, while the bus goes on: without frames the watchdog's value acts, and
        that fills a chamber whose valve is in reverse.

        Returns:
            What `work` returns; what it raises is raised.
        """
        if not self.bench.realtime:
            return work()
        with ThreadPoolExecutor(1) as pool:
            pending = pool.submit(work)
            while not pending.done():
                self._exchange(self._volts(0, self._calm, self._calm), self.bench.calm_period)
            return pending.result()

    def close(self) -> None:
        """All channels to their exhaust, as they are known."""
        self._exchange(self._volts(0, -1.0, -1.0), self.bench.period)

    # --- inside -------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Of something that begins with vented chambers: what was computed meanwhile took time, in
        which the terminals' watchdog may have vented."""
        if self.air and (self._calm == 0.0 or self.reversed.any()):
            self._check()  # bringing the bus up again opens the exhausts, and one of them may fill
        else:
            self.bench.recover()
            self._heard = self.bench.now

    def _check(self) -> None:
        """Ends what a terminal that is not operational has ended."""
        if trouble := self.bench.check() and self.bench.check():  # one answer may be lost
            self._end(f"terminals: {trouble}; shut the air off")

    def _check_dose(self, opening: float, time: float) -> None:
        flow = self.bench.station.flow
        rise = flow.supply * -math.expm1(-_FLOW_DOUBT * opening * flow.fill_rate * time)
        if rise > MOST_AIR:
            raise ValueError(f"a dose of up to {rise:.0f} Pa, at most {MOST_AIR:.0f}")

    def _run(
        self,
        channel: int,
        opening_at: Callable[[float], float],
        duration: float,
        period: float,
        watched: bool = True,
        look: Callable[[], None] = lambda: None,
    ) -> Trace:
        """Exchange for `duration` [s]; `watched` by the deadman's switch."""
        begin = last = checked = self.bench.now
        times, volts, pressures = [], [], []
        while (time := self.bench.now - begin) < duration - 1e-9:
            opening = opening_at(time)
            if watched and not self.operator.holds(self.bench.now):
                self._end("the deadman's switch was released")
            command = self._volts(channel, opening, self._calm if watched else opening)
            seen = self._exchange(command, period)
            if opening > 0.0 and self.bench.now - last > _LATE + period:
                self._end(f"a cycle came {1e3 * (self.bench.now - last):.0f} ms late")
            last = self.bench.now
            if last - checked >= _CHECK_PERIOD:
                checked = last
                self._check()
            times.append(self.bench.now - begin)
            volts.append(self._upright(channel, command[channel]))
            pressures.append(seen)
            look()
        return Trace(np.array(times), np.array(volts), np.array(pressures))

    def _volts(self, channel: int, opening: float, others: float) -> np.ndarray:
        """(m,) commands [V]: one channel's opening, and what the others do."""
        valve = self.bench.station.flow_valve
        openings = np.full(self.count, others)
        openings[channel] = opening
        signs = np.where(self.reversed, -1.0, 1.0)
        return np.array([valve_volts(valve, each) for each in signs * openings])

    def _upright(self, channel: int, volts: float) -> float:
        """What a valve that is not in reverse would have been sent [V]."""
        return (
            2.0 * self.bench.station.flow_valve.closed - volts if self.reversed[channel] else volts
        )

    def _exchange(self, volts: np.ndarray, period: float) -> np.ndarray:
        """(m,) pressures [Pa], NaN without a sample; ends at once what must not go on."""
        sample = self.bench.exchange(volts, period)
        now = self.bench.now
        if sample is None:
            if now - self._heard > _SILENT:
                self._end("the terminals do not answer")
            return np.full(self.count, math.nan)
        self._heard = now
        if sample.stopped:
            self._end("the chain of emergency stops is open")
        if sample.unpowered:
            self._end("valves and sensors are without their 24 V")
        pressures = self.bench.data.pressures(sample.volts)
        if not np.isfinite(pressures).all() or sample.broken.any():
            bad = np.flatnonzero(~np.isfinite(pressures) | sample.broken)
            self._end(f"the sensor of {self.names[bad[0]]} is broken or not connected")
        self._over = self._over + 1 if (pressures > HIGHEST).any() else 0
        if self._over >= 2:  # one reading may be a glitch
            highest = int(np.argmax(pressures))
            why = f"the sensor of {self.names[highest]} reads {pressures[highest] / 1e3:.1f} kPa, "
            why += f"must stay below {HIGHEST / 1e3:.0f}"
            if self._calm == 0.0 or (volts == self.bench.station.valve.exhaust).all():
                why += "; nothing was to fill: shut the air off; is a valve in reverse, or stuck?"
            self._end(why)
        return pressures

    def _end(self, why: str) -> None:
        """All channels to their exhaust, then out.

        Raises:
            Interrupted: always.
        """
        self._over = 0
        self.bench.data.air_on = False
        safe = self._volts(0, -1.0, -1.0) if self._calm else self._volts(0, 0.0, 0.0)
        end = self.bench.now + _VENTED
        while self.bench.now < end:
            self.bench.exchange(safe, self.bench.calm_period)
        self._heard = self.bench.now
        raise Interrupted(why)


def _positive(opening: float) -> float:
    return max(opening, 0.0)


def _piecewise(pieces: list[tuple[float, float]]) -> Callable[[float], float]:
    """The opening at a time of pieces (time [s], opening); the last one's afterwards."""
    ends = np.cumsum([time for time, _ in pieces])

    def at(time: float) -> float:
        return pieces[min(int(np.searchsorted(ends, time + 1e-9, "right")), len(pieces) - 1)][1]

    return at
