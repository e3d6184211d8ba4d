"""The arming test: valves, hoses and sensors belong together, before the valves are enabled.

First all exhausts are open for 300 samples: every sensor must read an empty chamber, with the noise
of a living one. Then one channel at a time lets in a pulse of 4 kPa, stays closed and exhausts; its
own sensor must show it as modelled, and no other one (`commissioning.pulse`, which also names what
is wrong). Air is bounded by openings and time, whatever a sensor says: with twice the modelled flow
a pulse brings 8 kPa; and where the fast cycle stops in the middle of one, the terminals' watchdog
ends it at about 12 kPa.
"""

import math
from enum import Enum

import numpy as np

from softcr_hardware.commissioning.pulse import (
    Pulse,
    pulse_answer,
    pulse_of,
    pulse_problems,
    valve_volts,
)
from softcr_hardware.ethercat.terminals import FULL_SCALE_COUNTS, FULL_SCALE_VOLTS, Station
from softcr_models.errors import UserError

RISE = 4e3
"""Of a pulse, as modelled [Pa]."""
OPENING = 0.05
"""While it fills: small, for a fast cycle that stops leaves the valve there [-]."""
SAMPLES = 300
"""Of the vented chambers."""
MOST_PRESSURE = 2e3
"""A vented chamber reads less, either way [Pa]."""
MOST_NOISE = 300.0
"""A sensor's noise is less, standard deviation [Pa]."""
LEAST_NOISE = 0.5
"""A living sensor's noise is more, standard deviation [counts of its input]."""
ATTEMPTS = 3
"""For a pulse that the fast cycle was too late to end in time."""

REST = 1.0
"""After the last pulse [s], so that a motion begins with a robot at rest."""

_EXHAUST = 0.25  # [s] at the end of a pulse
_LATE = 1.5  # times the wanted duration of a pulse's filling, beyond which it is repeated


class Phase(Enum):
    """Where the test is."""

    IDLE = "not begun"
    VENTED = "vented"
    PULSES = "pulses"
    REST = "vented until the robot rests"
    PASSED = "passed"


class ArmingTest:
    """What the valves are given while the test is under way; `step` is called in every cycle.

    Attributes:
        failure: what was found, in words; empty for nothing.
    """

    def __init__(self, station: Station):
        """Not begun."""
        self._names = tuple(chamber.name for chamber in station.chambers)
        self._prepare(station)
        per_count = FULL_SCALE_VOLTS / FULL_SCALE_COUNTS
        slopes = [chamber.sensor.pascal_per_volt for chamber in station.chambers]
        self._least_noise = LEAST_NOISE * per_count * np.array(slopes)
        self._exhaust = np.full(len(self._names), station.valve.exhaust)
        self.forget()

    def _prepare(self, station: Station) -> None:
        """What the pulses need."""
        self._flow, self._valve = station.flow, station.flow_valve
        self._pulse = pulse_of(RISE, station.flow, OPENING, exhaust=_EXHAUST)

    @property
    def passed(self) -> bool:
        """Whether every channel did, since it was last forgotten."""
        return self._phase is Phase.PASSED

    @property
    def words(self) -> str:
        """Where it is, in words."""
        if self._phase is Phase.PULSES:
            return f"a pulse into {self._names[self._channel]}"
        return self._phase.value

    def forget(self) -> None:
        """From the beginning: the proof is void, or the test was stopped."""
        self._phase, self.failure = Phase.IDLE, ""
        self._channel = self._attempt = 0
        self._begin(math.nan)

    def stop(self) -> None:
        """It may not go on; what has passed stays so."""
        if not self.passed:
            self.forget()

    def step(self, now: float, pressures: np.ndarray | None) -> np.ndarray:
        """A cycle.

        Args:
            now: [s].
            pressures: (m,) of a new sample [Pa]; None for none.

        Returns:
            (m,) commands of the valves [V].
        """
        if self._phase is Phase.IDLE:
            self._phase = Phase.VENTED
            self._begin(now)
        if pressures is not None:
            self._times.append(now - self._began)
            self._pressures.append(pressures.tolist())
        if self._phase is Phase.VENTED:
            self._look_at_vented(now)
        elif self._phase is Phase.PULSES:
            return self._go_on(now)
        elif self._phase is Phase.REST and now - self._began >= REST:
            self._phase = Phase.PASSED
        return self._exhaust

    # --- inside -------------------------------------------------------------------------------

    def _begin(self, now: float) -> None:
        """A phase, or a pulse."""
        self._began, self._opened, self._closed = now, math.nan, math.nan
        self._times: list[float] = []
        self._pressures: list[list[float]] = []

    def _look_at_vented(self, now: float) -> None:
        if len(self._pressures) < SAMPLES:
            return
        found = np.array(self._pressures)
        noise, worst = found.std(axis=0), np.abs(found).max(axis=0)
        for index, name in enumerate(self._names):
            if not worst[index] < MOST_PRESSURE:
                self.failure = (
                    f"{name}: reads {found[:, index].mean() / 1e3:.1f} kPa while vented, must be "
                    f"within {MOST_PRESSURE / 1e3:.0f} kPa of zero in every sample"
                )
            elif not self._least_noise[index] <= noise[index] <= MOST_NOISE:
                self.failure = (
                    f"{name}: its sensor's noise is {noise[index]:.1f} Pa, must be "
                    f"{self._least_noise[index]:.1f} to {MOST_NOISE:.0f} Pa"
                )
            if self.failure:
                return
        self._phase = Phase.PULSES
        self._begin(now)

    def _go_on(self, now: float) -> np.ndarray:
        """The pulse of the channel, by how late the cycles really were."""
        pulse, time = self._pulse, now - self._began
        opens = pulse.rest + pulse.ready
        if math.isnan(self._opened):
            volts = pulse.opening_at(min(time, opens - 1e-6)) if time < opens else pulse.opening
            self._opened = math.nan if time < opens else time
            return self._volts(volts)
        if math.isnan(self._closed):
            if time < self._opened + pulse.fill:
                return self._volts(pulse.opening)
            self._closed = time
        since = time - self._closed
        if since < pulse.hold:
            return self._volts(0.0)
        if since >= pulse.hold + pulse.exhaust:
            self._judge(now)
        return self._exhaust

    def _judge(self, now: float) -> None:
        """The pulse as it really was, and what it says."""
        wanted, filled = self._pulse, self._closed - self._opened
        if filled > _LATE * wanted.fill:
            self._attempt += 1
            if self._attempt >= ATTEMPTS:
                self.failure = (
                    f"{self._names[self._channel]}: the fast cycle was {1e3 * filled:.0f} ms late "
                    f"to end a pulse, {ATTEMPTS} times"
                )
            self._begin(now)
            return
        ready = self._opened - wanted.rest
        pulse = Pulse(
            wanted.opening, filled, wanted.rest, ready, wanted.hold, wanted.exhaust
        )  # fmt: skip
        try:
            answer = pulse_answer(
                self._channel, pulse, self._flow, np.array(self._times), np.array(self._pressures)
            )
        except UserError as error:
            self.failure = str(error)
            return
        self.failure = "; ".join(pulse_problems(answer, self._names))
        if self.failure:
            return
        self._attempt = 0
        self._channel += 1
        self._begin(now)
        if self._channel == len(self._names):
            self._phase = Phase.REST

    def _volts(self, opening: float) -> np.ndarray:
        """(m,) commands [V]: the channel's opening, and the exhausts of all others."""
        volts = self._exhaust.copy()
        volts[self._channel] = valve_volts(self._valve, opening)
        return volts
