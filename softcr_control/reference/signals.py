"""Signals that references are made of: inputs in their own unit, times [s]."""

import numpy as np


def time_grid(duration: float, period: float) -> np.ndarray:
    """Times 0, period, ... up to and including `duration` rounded to a whole number of periods."""
    return np.arange(round(duration / period) + 1) * period


def circle_phase(times: np.ndarray, frequency: float) -> np.ndarray:
    """(T,) phase [rad] of a circle at constant `frequency` [Hz]."""
    return 2 * np.pi * frequency * times


def chirp_phase(times: np.ndarray, first: float, last: float) -> np.ndarray:
    """(T,) phase [rad] of a circle whose frequency grows linearly from `first` to `last` [Hz]."""
    return 2 * np.pi * (first * times + (last - first) * times**2 / (2 * max(times[-1], 1e-9)))


def rotating_inputs(
    phase: np.ndarray, inputs: int, mean: float | np.ndarray, amplitude: float | np.ndarray
) -> np.ndarray:
    """Inputs (T, m) that turn the bending direction by `phase` (T,) [rad].

    Input i of m (evenly spaced) gets mean + amplitude cos(phase - 2 pi i / m); for three inputs and
    more the sum stays constant, so that a slowly turned tip runs on a circle.
    """
    turned: np.ndarray = mean + amplitude * np.cos(phase[:, None] - _phases(inputs))
    return turned


def sines(
    times: np.ndarray,
    inputs: int,
    mean: float | np.ndarray,
    amplitude: float | np.ndarray,
    frequencies: tuple[float, ...],
) -> np.ndarray:
    """Inputs (T, m): the same sum of sines in every one, one m-th of a period apart.

    All components have the same size and together stay within mean +- amplitude. Component j is
    ahead by a further j rad so that the components' peaks do not coincide at time 0.
    """
    offsets = np.arange(len(frequencies))[:, None, None]
    phases = 2 * np.pi * np.array(frequencies)[:, None, None] * times[:, None] + offsets
    waves = np.sin(phases - _phases(inputs))
    summed: np.ndarray = mean + amplitude * waves.mean(axis=0)
    return summed


def soft_start(
    inputs: np.ndarray, initial: np.ndarray, times: np.ndarray, seconds: float
) -> np.ndarray:
    """Inputs (T, m) faded in from `initial` (m,) within `seconds`."""
    return initial + fade_in(times, seconds)[:, None] * (inputs - initial)


def fade_in(times: np.ndarray, seconds: float) -> np.ndarray:
    """(T,) from 0 to 1 within `seconds`, first and second derivative zero at both ends."""
    if seconds <= 0.0:
        return np.ones_like(times)
    s = np.clip(times / seconds, 0.0, 1.0)
    return s**3 * (10 - 15 * s + 6 * s**2)


def _phases(inputs: int) -> np.ndarray:
    return 2 * np.pi * np.arange(inputs) / inputs
