"""Flow, dead band and lag of a valve, from pulses of several openings.

The model is that of the guard of the pressures (`pressure_guard/flow_model.py`): the valve follows
its voltage with a first-order lag, its opening is linear beyond the edges of its dead band, and

    dp/dt = u k_fill (S - p)   or   -|u| k_exhaust p.

Here it is solved in closed form along whole pulses, by numpy, for `scipy.optimize.least_squares`.
"""

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from functools import partial

import numpy as np
from scipy.optimize import least_squares
from scipy.signal import lfilter

from softcr_hardware.commissioning.drive import Trace
from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.record import StepRecord
from softcr_hardware.commissioning.session import Session, Step, found
from softcr_hardware.ethercat.terminals import Flow, ValveMap

_PAUSE = 0.4  # [s]

MOST_PRESSURE = 250.0
"""Residual of the pressures beyond which a fit is refused, root mean square [Pa]."""
MOST_GAIN = 0.08
"""Relative distance of one valve's flow from the mean of all, at most."""
MOST_EDGE = 0.012
"""The same of the edges of the dead band [V]."""
MOST_LAG = 0.002
"""The same of the lag [s]."""

FILLS: tuple[float, ...] = (0.03, 0.06, 0.1, 0.16)
"""Openings of the pulses, towards the supply."""
EXHAUSTS: tuple[float, ...] = (0.04, 0.1, 0.25, 1.0)
"""And of those that let the air out again."""
DOSE = 6000.0
"""Air of each pulse, by the station file [Pa]."""

_READY, _PAUSE = 0.05, 0.06  # [s] closed before and after a change of the valve
_SETTLED = 0.3  # [s] at the end
_GRID = 0.00025  # [s]
_REST = 20  # samples at the beginning of a trace: the offset of the sensor
_SLOWEST, _OLDEST = 0.05, 0.005  # [s]
_NOISE = 50.0  # [Pa] of residuals
_PRIOR = np.array([0.5, 0.5, 0.3, 0.3, 0.01, 0.001])  # of gains [-], edges [V], times [s]: wide


@dataclass(frozen=True)
class ValveFit:
    """One valve.

    Attributes:
        fill_rate, exhaust_rate: fully open [1/s].
        fill_edge, exhaust_edge: where it begins to open [V].
        lag: to its command, first order [s].
        age: of the samples, and of what else delays all [s].
        residual: of the pressures, root mean square [Pa].
    """

    fill_rate: float
    exhaust_rate: float
    fill_edge: float
    exhaust_edge: float
    lag: float
    age: float
    residual: float

    @property
    def delay(self) -> float:
        """From a command to what the samples say of it [s]."""
        return self.lag + self.age

    @property
    def closed(self) -> float:
        """Middle of the closed range [V]."""
        return 0.5 * (self.fill_edge + self.exhaust_edge)

    @property
    def dead_band(self) -> float:
        """Half width of the closed range [V]."""
        return 0.5 * abs(self.fill_edge - self.exhaust_edge)


def flow_pieces(flow: Flow) -> list[list[tuple[float, float]]]:
    """Pulses that tell of a valve: (time [s], opening) of their pieces, one list for each."""
    pulses = []
    for fill, exhaust in zip(FILLS, EXHAUSTS, strict=True):
        filling = -np.log1p(-DOSE / flow.supply) / (flow.fill_rate * fill)
        emptying = min(1.5 / (flow.exhaust_rate * exhaust), 0.6)
        inwards = [(_READY, 0.0), (filling, fill), (_PAUSE, 0.0)]
        pulses.append([*inwards, (emptying, -exhaust), (_PAUSE, 0.0), (_SETTLED, -1.0)])
    return pulses


def fitted_valve(
    traces: Sequence[Trace],
    sensor: int,
    scale: float,
    valve: ValveMap,
    flow: Flow,
    leak: float = 0.0,
) -> ValveFit:
    """The valve that explains all traces best.

    Args:
        traces: of its channel, for `flow_pieces`, each from a vented chamber.
        sensor: which answers it, from 0.
        scale: of pressure over that sensor's reading, below 0 for a wrong sign.
        valve, flow: of the station file, where the search begins; the supply is believed.
        leak: rate at which the closed line loses its air [1/s].
    """
    seen = [_Seen.of(trace, sensor, scale) for trace in traces]
    side = np.sign(valve.fill - valve.closed)
    begin = np.array(
        [
            *(flow.fill_rate, flow.exhaust_rate),
            *(valve.closed + side * valve.dead_band, valve.closed - side * valve.dead_band),
            *(valve.lag, 0.0),
        ]
    )
    units = np.array([flow.fill_rate, flow.exhaust_rate, 1.0, 1.0, 1.0, 1.0])

    def away(x: np.ndarray) -> np.ndarray:
        return np.concatenate(
            [each.pressures - _pressures(each, x, valve, flow.supply, side, leak) for each in seen]
        )

    def residuals(x: np.ndarray) -> np.ndarray:
        prior = (x - begin) / units / _PRIOR
        return np.concatenate([away(x) / _NOISE, prior])

    low = np.array([1e-3, 1e-3, 0.0, 0.0, 1e-5, 0.0])
    high = np.array([np.inf, np.inf, 10.0, 10.0, _SLOWEST, _OLDEST])
    start = np.clip(begin, low + 1e-6, high - 1e-6)
    steps = units * [0.1, 0.1, 0.02, 0.02, 1e-3, 1e-3]
    found = least_squares(residuals, start, bounds=(low, high), x_scale=steps).x
    return _valve(found, float(np.sqrt((away(found) ** 2).mean())))


@dataclass(frozen=True, eq=False)
class _Seen:
    """A trace on a fine grid of time."""

    times: np.ndarray
    pressures: np.ndarray
    grid: np.ndarray
    volts: np.ndarray

    @classmethod
    def of(cls, trace: Trace, sensor: int, scale: float) -> "_Seen":
        pressures = scale * trace.pressures[:, sensor]
        pressures = pressures - np.nanmean(pressures[:_REST])
        good = np.isfinite(pressures)
        grid = np.arange(trace.times[0], trace.times[-1] + _GRID, _GRID)
        sent = np.maximum(np.searchsorted(trace.times, grid + 1e-9, "right") - 1, 0)
        return cls(trace.times[good], pressures[good], grid, trace.volts[sent])


def _pressures(
    seen: _Seen, x: np.ndarray, valve: ValveMap, supply: float, side: float, leak: float
) -> np.ndarray:
    """(T,) pressures at the times of a trace, from a vented chamber [Pa]."""
    fill_rate, exhaust_rate, fill_edge, exhaust_edge, lag, age = x
    decay = np.exp(-_GRID / lag)
    begin = [decay * seen.volts[0]]
    position = lfilter([1.0 - decay], [1.0, -decay], seen.volts, zi=begin)[0]
    filling = side * (position - fill_edge) / abs(valve.fill - fill_edge)
    emptying = side * (exhaust_edge - position) / abs(exhaust_edge - valve.exhaust)
    into = np.clip(filling, 0.0, 1.0) * fill_rate * _GRID
    out = np.clip(emptying, 0.0, 1.0) * exhaust_rate * _GRID + leak * _GRID
    # p -> p e^-(into + out) + S (1 - e^-into): a running product and sum, exact between the two
    total = np.cumsum(into + out)
    inflow = supply * -np.expm1(-into) * np.exp(total)
    pressures = np.exp(-total) * np.cumsum(inflow)
    before = np.concatenate([[0.0], pressures[:-1]])
    return np.interp(seen.times - age, seen.grid, before)


def spread_words(fits: Sequence[ValveFit], names: Sequence[str]) -> list[str]:
    """Valves that differ more from the mean of all than one flow and one valve map may cover."""
    mean = mean_fit(fits)
    words = []
    for name, fit in zip(names, fits, strict=True):
        for what, own, common in (
            ("fill rate", fit.fill_rate, mean.fill_rate),
            ("exhaust rate", fit.exhaust_rate, mean.exhaust_rate),
        ):
            if abs(own / common - 1.0) > MOST_GAIN:
                words.append(
                    f"{name}: {what} {own:.1f} 1/s, all valves {common:.1f}: must be within "
                    f"{100 * MOST_GAIN:.0f} %"
                )
        for what, own, common in (
            ("fill edge", fit.fill_edge, mean.fill_edge),
            ("exhaust edge", fit.exhaust_edge, mean.exhaust_edge),
        ):
            if abs(own - common) > MOST_EDGE:
                words.append(
                    f"{name}: {what} of the dead band {own:.3f} V, all valves {common:.3f}: must "
                    f"be within {1e3 * MOST_EDGE:.0f} mV"
                )
        if abs(fit.delay - mean.delay) > MOST_LAG:
            words.append(
                f"{name}: lag {1e3 * fit.delay:.1f} ms, all valves {1e3 * mean.delay:.1f}: must be "
                f"within {1e3 * MOST_LAG:.0f} ms"
            )
        if fit.residual > MOST_PRESSURE:
            words.append(
                f"{name}: the flow model misses the pressures by {fit.residual:.0f} Pa, must be "
                f"below {MOST_PRESSURE:.0f}"
            )
    return words


def changed_words(common: ValveFit, valve: ValveMap, flow: Flow) -> list[str]:
    """What has changed since the station file was written, beyond what a day may change."""
    words = []
    for what, own, file in (
        ("fill rate", common.fill_rate, flow.fill_rate),
        ("exhaust rate", common.exhaust_rate, flow.exhaust_rate),
    ):
        if abs(own / file - 1.0) > MOST_GAIN:
            words.append(
                f"the valves' {what} is {own:.1f} 1/s, the file has {file:.1f}: must be within "
                f"{100 * MOST_GAIN:.0f} %; commission again"
            )
    for what, own, file in (
        ("closed", common.closed, valve.closed),
        ("dead_band", common.dead_band, valve.dead_band),
    ):
        if abs(own - file) > MOST_EDGE:
            words.append(
                f"the valves' {what} is {own:.3f} V, the file has {file:.3f}: must be within "
                f"{1e3 * MOST_EDGE:.0f} mV; commission again"
            )
    return words


def mean_fit(fits: Sequence[ValveFit]) -> ValveFit:
    """What the station file has for all valves."""
    table = np.array([astuple(fit) for fit in fits]).mean(axis=0)
    return _valve(table[:-1], float(table[-1]))


def _valve(numbers: np.ndarray, residual: float) -> ValveFit:
    fill_rate, exhaust_rate, fill_edge, exhaust_edge, lag, age = numbers.tolist()
    return ValveFit(fill_rate, exhaust_rate, fill_edge, exhaust_edge, lag, age, residual)


def _run(session: Session) -> StepRecord:
    session.air(True)
    drive, station = session.drive, session.bench.station
    leaks = session.value("leak", "rates")
    fits: list[ValveFit] = []
    for channel, sensor in enumerate(session.answers()):
        session.operator.tell(f"output of {session.names[channel]}: pulses of several openings")
        traces = []
        for pieces in flow_pieces(station.flow):
            drive.exhaust(_PAUSE)
            traces.append(drive.play(channel, pieces))
        leak = max(leaks[channel], 0.0) if np.isfinite(leaks[channel]) else 0.0
        scale = session.scale(channel)
        told = traces, sensor, scale, station.flow_valve, station.flow, leak
        fits.append(drive.beside(partial(fitted_valve, *told)))
    valves = [session.valve_name(channel) for channel in range(len(fits))]
    findings = [Finding(words=words) for words in spread_words(fits, valves)]
    common = mean_fit(fits)
    if session.daily:
        findings += [
            Finding(words=words)
            for words in changed_words(common, station.flow_valve, station.flow)
        ]
    lines = [_line(name, fit) for name, fit in zip(valves, fits, strict=True)]
    return found(findings, lines, fits=[asdict(fit) for fit in fits], common=asdict(common))


def _line(name: str, fit: ValveFit) -> str:
    return (
        f"valve of {name}: fill {fit.fill_rate:.1f} 1/s, exhaust {fit.exhaust_rate:.1f} 1/s, "
        f"closed {fit.closed:.3f} V +- {fit.dead_band:.3f}, lag {1e3 * fit.lag:.1f} + "
        f"{1e3 * fit.age:.1f} ms, residual {fit.residual:.0f} Pa"
    )


STEP = Step("flow", "flow, dead band and lag of the valves", _run)
