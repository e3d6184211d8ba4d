"""Pressure signals to learn from and to be tested on: one function per family.

A family gives levels (2, B, T, m) [Pa]: the pressures at the begin and at the end of each of T
steps, linear in between. An end that differs from the next begin is a jump.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softcr_models.pressure import PressureLag
from softcr_models.robot import Robot


@dataclass(frozen=True)
class Signal:
    """What all families need to know.

    Attributes:
        ticks: steps of a trajectory.
        period: of a tick [s].
        chambers: number of pressures.
        low, high: range of pressures [Pa].
        lag: of the pressure chain, (32).
    """

    ticks: int
    period: float
    chambers: int
    low: float
    high: float
    lag: PressureLag

    @property
    def span(self) -> float:
        """High minus low [Pa]."""
        return self.high - self.low

    @property
    def times(self) -> np.ndarray:
        """(T + 1,) of the ticks [s]."""
        return self.period * np.arange(self.ticks + 1)

    @classmethod
    def of(cls, robot: Robot, ticks: int, period: float, high: float | None = None) -> "Signal":
        """The signal of a robot's chambers, up to `high` [Pa] or to its limit."""
        limits = robot.pressure_limits
        top = limits.maximum if high is None else high
        return cls(ticks, period, len(robot.chambers), limits.minimum, top, robot.pressure_lag)


Family = Callable[[Signal, int, np.random.Generator], np.ndarray]


def smooth(signal: Signal, count: int, rng: np.random.Generator) -> np.ndarray:
    """Sums of five sines below 1.5 Hz, each chamber scaled to a random part of the range."""
    return _linear(_sum_of_sines(signal, rng.uniform(0.05, 1.5, (count, 5, 1)), rng))


def swings(signal: Signal, count: int, rng: np.random.Generator) -> np.ndarray:
    """One to three sines of 0.05 to 1.2 Hz between empty and a random level: wide and slow."""
    frequencies = rng.uniform(0.05, 1.2, (count, 3, 1))
    silent = np.arange(3)[:, None] >= rng.integers(1, 4, (count, 1, 1))
    return _linear(_sum_of_sines(signal, frequencies, rng, silent, lowest_peak=0.3))


def published(signal: Signal, count: int, rng: np.random.Generator) -> np.ndarray:
    """Sums of 0.1, 0.5 and 1 Hz, Licher et al. Sec. III-I; peaks at 60 to 100 % of the range."""
    frequencies = np.broadcast_to(np.array([0.1, 0.5, 1.0])[:, None], (count, 3, 1))
    return _linear(_sum_of_sines(signal, frequencies, rng, lowest_peak=0.6))


def rotating(signal: Signal, count: int, rng: np.random.Generator) -> np.ndarray:
    """Chambers one after the other: the tip goes round, 0.1 to 2 Hz, radius slowly changing."""
    times = signal.times[:, None]
    shape = (count, 1, 1)
    phase = 2 * np.pi * rng.uniform(0.1, 2.0, shape) * times * rng.choice([-1.0, 1.0], shape)
    angles = 2 * np.pi * np.arange(signal.chambers) / signal.chambers
    amplitude = rng.uniform(0.05, 0.5, shape)
    amplitude = amplitude * (1 + 0.3 * np.sin(2 * np.pi * rng.uniform(0.05, 0.5, shape) * times))
    offset = rng.uniform(0.1, 0.9, shape)
    turned = phase + rng.uniform(0, 2 * np.pi, shape) + angles
    return _linear(_clipped(signal, offset + amplitude * np.sin(turned)))


def lagged_steps(signal: Signal, count: int, rng: np.random.Generator) -> np.ndarray:
    """Full-range steps held for 70 ms to 1.4 s through the pressure lag."""
    return _lagged(signal, _steps(signal, count, rng), rng)


def lagged_jitter(signal: Signal, count: int, rng: np.random.Generator) -> np.ndarray:
    """Random commands for 1 to 10 ticks through the pressure lag, as optimisers try them."""
    held = _steps(signal, count, rng, signal.period, 10 * signal.period)
    return _lagged(signal, held, rng)


def lagged_ramps(signal: Signal, count: int, rng: np.random.Generator) -> np.ndarray:
    """Straight lines between random levels, 0.1 to 1.5 s, through the pressure lag."""
    levels = np.empty((count, signal.ticks + 1, signal.chambers))
    for row in levels:
        knots, duration = [0.0], signal.ticks * signal.period
        while knots[-1] < duration:
            knots.append(knots[-1] + rng.uniform(0.1, 1.5))
        for chamber in range(signal.chambers):
            values = rng.uniform(0.0, 1.0, len(knots))
            row[:, chamber] = np.interp(signal.times, knots, values)
    return _lagged(signal, _clipped(signal, levels), rng)


def lagged_noisy_sines(signal: Signal, count: int, rng: np.random.Generator) -> np.ndarray:
    """Sines with noise of a tick, through the pressure lag: a controller's commands."""
    commands = _sum_of_sines(signal, rng.uniform(0.1, 2.5, (count, 2, 1)), rng)
    deviation = signal.span * rng.uniform(0.0, 0.15, (count, 1, 1))
    noisy = commands + deviation * rng.standard_normal(commands.shape)
    return _lagged(signal, np.clip(noisy, signal.low, signal.high), rng)


def raw_steps(signal: Signal, count: int, rng: np.random.Generator) -> np.ndarray:
    """Steps without any lag, of a random part of the range: jumps at the ticks."""
    part = rng.uniform(0.05, 0.6, (count, 1, 1))
    offset = rng.uniform(0.0, 1.0, (count, 1, 1)) * (1 - part)
    steps = (_steps(signal, count, rng)[:, 1:] - signal.low) / signal.span
    return _held(signal.low + signal.span * (offset + part * steps))


def raw_full_steps(signal: Signal, count: int, rng: np.random.Generator) -> np.ndarray:
    """Full-range steps without any lag: the hardest input there is."""
    return _held(_steps(signal, count, rng)[:, 1:])


def constant(signal: Signal, count: int, rng: np.random.Generator) -> np.ndarray:
    """One level for ever, from the first tick on."""
    levels = rng.uniform(signal.low, signal.high, (count, 1, signal.chambers))
    return _held(np.repeat(levels, signal.ticks, axis=1))


def white_noise(signal: Signal, count: int, rng: np.random.Generator) -> np.ndarray:
    """A new level for every chamber and tick, unfiltered: only for tests of stability."""
    shape = (count, signal.ticks, signal.chambers)
    return _held(rng.uniform(signal.low, signal.high, shape))


FAMILIES: dict[str, Family] = {
    family.__name__: family
    for family in (
        smooth, swings, published, rotating, lagged_steps, lagged_jitter, lagged_ramps,
        lagged_noisy_sines, raw_steps, raw_full_steps, constant, white_noise,
    )
}  # fmt: skip


def _linear(pressures: np.ndarray) -> np.ndarray:
    """Levels of pressures (B, T + 1, m) at the ticks."""
    return np.stack((pressures[:, :-1], pressures[:, 1:]))


def _held(pressures: np.ndarray) -> np.ndarray:
    """Levels of pressures (B, T, m) held over a step each, as in Licher et al."""
    return np.stack((pressures, pressures))


def _lagged(signal: Signal, commands: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Levels that chambers make of commands (B, T + 1, m), of which the last one is not held; they
    begin empty or, in half of the cases, somewhere."""
    begin = np.full(commands.shape[::2], signal.low)
    anywhere = rng.random(len(begin)) < 0.5
    begin[anywhere] = rng.uniform(signal.low, signal.high, begin[anywhere].shape)
    lagged = signal.lag.trajectory(begin, commands[:, :-1], signal.period)
    return _linear(np.clip(lagged, signal.low, signal.high))


def _clipped(signal: Signal, parts: np.ndarray) -> np.ndarray:
    """From parts of the range to pressures inside it."""
    return signal.low + signal.span * np.clip(parts, 0.0, 1.0)


def _sum_of_sines(
    signal: Signal,
    frequencies: np.ndarray,
    rng: np.random.Generator,
    silent: np.ndarray | bool = False,
    lowest_peak: float | None = None,
) -> np.ndarray:
    """(B, T + 1, m): sines of frequencies (B, F, 1) [Hz] added per chamber and scaled into a random
    part of the range: between its low end and `lowest_peak` or more of it, if that is given.

    Sines that are `silent` (B, F, 1) are left out."""
    count, terms, _ = frequencies.shape
    shape = (count, terms, signal.chambers)
    weights, phases = rng.uniform(0.2, 1.0, shape), rng.uniform(0, 2 * np.pi, shape)
    weights = np.where(silent, 0.0, weights)
    waves = np.zeros((count, signal.ticks + 1, signal.chambers))
    for term in range(terms):
        turns = frequencies[:, term, None] * signal.times[:, None]
        waves += weights[:, term, None] * np.sin(2 * np.pi * turns + phases[:, term, None])
    waves /= weights.sum(axis=1)[:, None]
    low, high = np.sort(rng.uniform(0.0, 1.0, (2, count, 1, signal.chambers)), axis=0)
    if lowest_peak is None:
        return _clipped(signal, low + (high - low) * 0.5 * (1 + waves))
    peaks = rng.uniform(lowest_peak, 1.0, (count, 1, signal.chambers))
    return signal.low + peaks * (_clipped(signal, 0.5 * (1 + waves)) - signal.low)


def _steps(
    signal: Signal,
    count: int,
    rng: np.random.Generator,
    shortest: float = 0.07,
    longest: float = 1.4,
) -> np.ndarray:
    """(B, T + 1, m): levels held for a random time [s], chambers together; a third of them zero or
    full in some chamber."""
    levels = np.empty((count, signal.ticks + 1, signal.chambers))
    for row in levels:
        tick = 0
        while tick <= signal.ticks:
            hold = max(1, round(rng.uniform(shortest, longest) / signal.period))
            level = rng.uniform(0.0, 1.0, signal.chambers)
            if rng.random() < 1 / 3:
                level = np.round(level * 1.5) / 1.5
            row[tick : tick + hold] = level
            tick += hold
    return _clipped(signal, levels)
