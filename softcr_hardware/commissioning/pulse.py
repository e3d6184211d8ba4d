"""One pulse of air into one chamber, and what the pressure sensors must say of it.

The valve of one channel lets in air for a moment, stays closed, and exhausts; all others exhaust
all the while. How much air that is follows from the flow of the station file, so the pulse is
bounded by openings, whatever a sensor says:

    rise = (S - p) (1 - exp(-u k_fill T))

with the opening u for the time T, the supply S, and the rate k_fill.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softcr_hardware.ethercat.terminals import Flow, ValveMap
from softcr_models.errors import UserError

OWN_RANGE = (0.5, 1.5)
"""A sensor must show so much of the modelled rise of its own chamber [-]."""
OTHERS = 500.0
"""No other sensor may move by more [Pa]."""
LOSS = 1000.0
"""A closed chamber may lose no more [Pa/s]."""
REMAINDER = 0.25
"""After the exhaust so much of the rise may be left, beside `OTHERS` [-]."""

_SETTLING = 0.05  # [s] after a change of the valve until pressures are looked at
_FEWEST = 10  # samples of a phase


@dataclass(frozen=True)
class Pulse:
    """The phases of a pulse.

    Attributes:
        opening: towards the supply while the chamber fills, 0 to 1.
        fill: time of it [s].
        rest: time on exhaust before [s].
        ready: time the valve is closed before filling: on its way from the exhaust it lags [s].
        hold: time the valve is closed after filling [s].
        exhaust: time of the full exhaust at the end [s].
    """

    opening: float
    fill: float
    rest: float = 0.15
    ready: float = 0.03
    hold: float = 0.3
    exhaust: float = 0.4

    @property
    def duration(self) -> float:
        """All of it [s]."""
        return self.closes + self.hold + self.exhaust

    @property
    def closes(self) -> float:
        """When the valve closes behind the air [s]."""
        return self.rest + self.ready + self.fill

    def opening_at(self, time: float) -> float:
        """What the valve is to do at `time` [s] since the beginning: -1 exhausts, 0 is closed."""
        if not self.rest <= time < self.closes + self.hold:
            return -1.0
        return self.opening if self.closes - self.fill <= time < self.closes else 0.0

    def rise(self, flow: Flow) -> float:
        """What it brings into a vented chamber [Pa]."""
        return flow.supply * -math.expm1(-self.opening * flow.fill_rate * self.fill)


def pulse_of(rise: float, flow: Flow, opening: float = 0.1, **phases: float) -> Pulse:
    """The pulse that brings `rise` [Pa] into a vented chamber of this flow.

    Args:
        rise: wanted, below the supply [Pa].
        flow: of the valve.
        opening: while it fills.
        phases: `rest`, `ready`, `hold` and `exhaust` where they shall not be the usual ones [s].

    Raises:
        UserError: the supply is too low for it.
    """
    if not 0.0 < rise < flow.supply:
        raise UserError(
            f"a pulse of {rise / 1e3:.1f} kPa: must lie below the supply of "
            f"{flow.supply / 1e3:.1f} kPa"
        )
    fill = -math.log1p(-rise / flow.supply) / (opening * flow.fill_rate)
    return Pulse(opening, fill, **phases)


def valve_volts(valve: ValveMap, opening: float) -> float:
    """The command of an opening from -1 (exhaust) to 1 (fill) [V]; 0 is the middle."""
    if opening == 0.0:
        return valve.closed
    end = valve.fill if opening > 0.0 else valve.exhaust
    side = math.copysign(1.0, end - valve.closed)
    span = abs(end - valve.closed) - valve.dead_band
    return valve.closed + side * (valve.dead_band + min(abs(opening), 1.0) * span)


@dataclass(frozen=True, eq=False)
class PulseAnswer:
    """What the sensors said of a pulse.

    Attributes:
        channel: whose valve pulsed, from 0.
        expected: rise of its chamber by the flow of the station file [Pa].
        before: (m,) pressures before [Pa].
        rises: (m,) mean pressures while the valve was closed, less those before [Pa].
        loss: (m,) how fast they fell meanwhile [Pa/s].
        left: (m,) what was left of the rises after the exhaust [Pa].
        noise: (m,) standard deviation before [Pa].
    """

    channel: int
    expected: float
    before: np.ndarray
    rises: np.ndarray
    loss: np.ndarray
    left: np.ndarray
    noise: np.ndarray


def pulse_answer(
    channel: int, pulse: Pulse, flow: Flow, times: np.ndarray, pressures: np.ndarray
) -> PulseAnswer:
    """The answer to a pulse.

    Args:
        channel: whose valve pulsed, from 0.
        pulse: its phases.
        flow: of the station file.
        times: (T,) of the samples since the beginning of the pulse [s].
        pressures: (T, m) of all sensors [Pa].

    Raises:
        UserError: too few samples, or one that is no number.
    """
    times, pressures = np.asarray(times, float), np.asarray(pressures, float)
    closed = pulse.closes
    before = (times >= 0.0) & (times < pulse.rest) & (times >= pulse.rest - 2 * _SETTLING)
    held = (times >= closed + _SETTLING) & (times < closed + pulse.hold)
    after = (times >= pulse.duration - 2 * _SETTLING) & (times < pulse.duration)
    for name, phase in (("before", before), ("with the valve closed", held), ("after", after)):
        if phase.sum() < _FEWEST or not np.isfinite(pressures[phase]).all():
            good = int(np.isfinite(pressures[phase]).all(axis=1).sum())
            raise UserError(
                f"pulse of channel {channel + 1}: {good} good samples {name}, must be {_FEWEST} "
                "and none without a value"
            )
    base = pressures[before].mean(axis=0)
    since = times[held] - times[held].mean()
    slope = since @ pressures[held] / (since @ since)
    return PulseAnswer(
        channel=channel,
        expected=pulse.rise(flow),
        before=base,
        rises=pressures[held].mean(axis=0) - base,
        loss=-slope,
        left=pressures[after].mean(axis=0) - base,
        noise=pressures[before].std(axis=0),
    )


def answering_sensor(answer: PulseAnswer) -> int | None:
    """Which sensor answered, from 0, by the largest change of at least a quarter of the modelled
    rise; None when none did."""
    sizes = np.abs(answer.rises)
    largest = int(np.argmax(sizes))
    return largest if sizes[largest] >= 0.25 * answer.expected else None


def pulse_problems(answer: PulseAnswer, names: Sequence[str]) -> list[str]:
    """What is wrong with the answer to a pulse, for a channel that is thought to be right.

    Args:
        answer: judged here.
        names: (m,) of the chambers.

    Returns:
        One line for each problem; none for a good answer.
    """
    own, name = answer.channel, names[answer.channel]
    found = answering_sensor(answer)
    rise, expected = answer.rises[own], answer.expected
    kpa = f"{rise / 1e3:.1f} kPa, must be {OWN_RANGE[0] * expected / 1e3:.1f} to "
    kpa += f"{OWN_RANGE[1] * expected / 1e3:.1f}"
    if found is None:
        return [
            f"{name}: no sensor answers a pulse of its valve ({kpa}): is the air on, the hose and "
            "the valve's cable connected?"
        ]
    if found != own:
        return [f"{name}: the sensor of {names[found]} answers a pulse of its valve: {kpa} here"]
    problems = []
    if rise < 0.0:
        problems.append(f"{name}: its sensor falls while its chamber fills: {kpa}")
    elif not OWN_RANGE[0] * expected <= rise <= OWN_RANGE[1] * expected:
        problems.append(f"{name}: a pulse of its valve shows {kpa}")
    for index, other in enumerate(names):
        if index != own and abs(answer.rises[index]) > OTHERS:
            problems.append(
                f"{name}: the sensor of {other} moves by {answer.rises[index] / 1e3:.1f} kPa in a "
                f"pulse of its valve, must be below {OTHERS / 1e3:.1f}"
            )
    if (loss := answer.loss[own] * math.copysign(1.0, rise)) > LOSS:
        problems.append(
            f"{name}: loses {loss / 1e3:.1f} kPa/s with its valve closed, must be below "
            f"{LOSS / 1e3:.1f}: a leak"
        )
    if abs(answer.left[own]) > REMAINDER * abs(rise) + OTHERS:
        problems.append(
            f"{name}: {answer.left[own] / 1e3:.1f} kPa are left after the exhaust, must be below "
            f"{(REMAINDER * abs(rise) + OTHERS) / 1e3:.1f}"
        )
    return problems
