"""Signals of inputs to learn from and to be tested on: one function per family.

A family gives levels (2, B, T, m) [Pa, N]: the inputs at the start and at the end of each of T
steps, linear in between. An end that differs from the next begin is a jump.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softcr_models.chain.pressure import PressureLag
from softcr_models.robots.robot import Robot
from softcr_models.rod.description import rod_inputs


@dataclass(frozen=True)
class Signal:
    """What all families need to know.

    Attributes:
        ticks: steps of a trajectory.
        period: of a tick [s].
        inputs: m, their number.
        low, high: (m,) their range [Pa, N].
        lag: behind the commands, (32); None: inputs go evenly to a command within a tick.
    """

    ticks: int
    period: float
    inputs: int
    low: np.ndarray
    high: np.ndarray
    lag: PressureLag | None

    @property
    def span(self) -> np.ndarray:
        """(m,) high minus low [Pa, N]."""
        return self.high - self.low

    @property
    def times(self) -> np.ndarray:
        """(T + 1,) of the ticks [s]."""
        return self.period * np.arange(self.ticks + 1)

    @classmethod
    def of(
        cls, robot: Robot, ticks: int, period: float, high: np.ndarray | float | None = None
    ) -> "Signal":
        """The signal of a robot's inputs, up to `high` (m,) [Pa, N] or to their limits.

        Raises:
            UserError: chambers and tendons do not follow their commands with the same lag.
        """
        inputs = rod_inputs(robot)
        top = inputs.high if high is None else np.broadcast_to(high, inputs.size)
        return cls(ticks, period, inputs.size, inputs.low, top, inputs.lag)


Family = Callable[[Signal, int, np.random.Generator], np.ndarray]


def smooth(signal: Signal, count: int, rng: np.random.Generator) -> np.ndarray:
    """Sums of five sines below 1.5 Hz, each input scaled to a random part of the range."""
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
    """Inputs one after the other: the tip goes round, 0.1 to 2 Hz, radius slowly changing."""
    times = signal.times[:, None]
    shape = (count, 1, 1)
    phase = 2 * np.pi * rng.uniform(0.1, 2.0, shape) * times * rng.choice([-1.0, 1.0], shape)
    angles = 2 * np.pi * np.arange(signal.inputs) / signal.inputs
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
    levels = np.empty((count, signal.ticks + 1, signal.inputs))
    for row in levels:
        knots, duration = [0.0], signal.ticks * signal.period
        while knots[-1] < duration:
            knots.append(knots[-1] + rng.uniform(0.1, 1.5))
        for column in range(signal.inputs):
            values = rng.uniform(0.0, 1.0, len(knots))
            row[:, column] = np.interp(signal.times, knots, values)
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
    levels = rng.uniform(signal.low, signal.high, (count, 1, signal.inputs))
    return _held(np.repeat(levels, signal.ticks, axis=1))


def white_noise(signal: Signal, count: int, rng: np.random.Generator) -> np.ndarray:
    """A new level for every input and tick, unfiltered: only for tests of stability."""
    shape = (count, signal.ticks, signal.inputs)
    return _held(rng.uniform(signal.low, signal.high, shape))


FAMILIES: dict[str, Family] = {
    family.__name__: family
    for family in (
        smooth, swings, published, rotating, lagged_steps, lagged_jitter, lagged_ramps,
        lagged_noisy_sines, raw_steps, raw_full_steps, constant, white_noise,
    )
}  # fmt: skip


def _linear(inputs: np.ndarray) -> np.ndarray:
    """Levels of inputs (B, T + 1, m) at the ticks."""
    return np.stack((inputs[:, :-1], inputs[:, 1:]))


def _held(inputs: np.ndarray) -> np.ndarray:
    """Levels of inputs (B, T, m) held over a step each, as in Licher et al."""
    return np.stack((inputs, inputs))


def _lagged(signal: Signal, commands: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Levels that inputs make of commands (B, T + 1, m), of which the last one is not held; they
    begin empty or, in half of the cases, somewhere."""
    begin = np.full(commands.shape[::2], signal.low)
    anywhere = rng.random(len(begin)) < 0.5
    begin[anywhere] = rng.uniform(signal.low, signal.high, begin[anywhere].shape)
    if signal.lag is None:
        return _linear(np.concatenate((begin[:, None], commands[:, :-1]), axis=1))
    lagged = signal.lag.trajectory(begin, commands[:, :-1], signal.period)
    return _linear(np.clip(lagged, signal.low, signal.high))


def _clipped(signal: Signal, parts: np.ndarray) -> np.ndarray:
    """From parts of the range to inputs inside it."""
    return signal.low + signal.span * np.clip(parts, 0.0, 1.0)


def _sum_of_sines(
    signal: Signal,
    frequencies: np.ndarray,
    rng: np.random.Generator,
    silent: np.ndarray | bool = False,
    lowest_peak: float | None = None,
) -> np.ndarray:
    """(B, T + 1, m): sines of frequencies (B, F, 1) [Hz] added per input and scaled into a random
    part of the range: between its low end and `lowest_peak` or more of it, if that is given.

    Sines that are `silent` (B, F, 1) are left out."""
    count, terms, _ = frequencies.shape
    shape = (count, terms, signal.inputs)
    weights, phases = rng.uniform(0.2, 1.0, shape), rng.uniform(0, 2 * np.pi, shape)
    weights = np.where(silent, 0.0, weights)
    waves = np.zeros((count, signal.ticks + 1, signal.inputs))
    for term in range(terms):
        turns = frequencies[:, term, None] * signal.times[:, None]
        waves += weights[:, term, None] * np.sin(2 * np.pi * turns + phases[:, term, None])
    waves /= weights.sum(axis=1)[:, None]
    low, high = np.sort(rng.uniform(0.0, 1.0, (2, count, 1, signal.inputs)), axis=0)
    if lowest_peak is None:
        return _clipped(signal, low + (high - low) * 0.5 * (1 + waves))
    peaks = rng.uniform(lowest_peak, 1.0, (count, 1, signal.inputs))
    return signal.low + peaks * (_clipped(signal, 0.5 * (1 + waves)) - signal.low)


def _steps(
    signal: Signal,
    count: int,
    rng: np.random.Generator,
    shortest: float = 0.07,
    longest: float = 1.4,
) -> np.ndarray:
    """(B, T + 1, m): levels held for a random time [s], inputs together; a third of them zero or
    full in some input."""
    levels = np.empty((count, signal.ticks + 1, signal.inputs))
    for row in levels:
        tick = 0
        while tick <= signal.ticks:
            hold = max(1, round(rng.uniform(shortest, longest) / signal.period))
            level = rng.uniform(0.0, 1.0, signal.inputs)
            if rng.random() < 1 / 3:
                level = np.round(level * 1.5) / 1.5
            row[tick : tick + hold] = level
            tick += hold
    return _clipped(signal, levels)
