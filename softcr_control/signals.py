"""Pressure signals that references are made of. Pressures are gauge [Pa], times [s]."""

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


def rotating_pressures(
    phase: np.ndarray, chambers: int, mean: float, amplitude: float
) -> np.ndarray:
    """Pressures (T, m) that turn the bending direction by `phase` (T,) [rad].

    Chamber i of m (evenly spaced) gets mean + amplitude cos(phase - 2 pi i / m); for three chambers
    and more the sum stays constant, so that a slowly turned tip runs on a circle.
    """
    return mean + amplitude * np.cos(phase[:, None] - _chamber_phases(chambers))


def sines(
    times: np.ndarray, chambers: int, mean: float, amplitude: float, frequencies: tuple[float, ...]
) -> np.ndarray:
    """Pressures (T, m): the same sum of sines in every chamber, one m-th of a period apart.

    All components have the same size and together stay within mean +- amplitude. Component j is
    ahead by a further j rad so that the components' peaks do not coincide at time 0.
    """
    offsets = np.arange(len(frequencies))[:, None, None]
    phases = 2 * np.pi * np.array(frequencies)[:, None, None] * times[:, None] + offsets
    waves = np.sin(phases - _chamber_phases(chambers))
    return mean + amplitude * waves.mean(axis=0)


def soft_start(
    pressures: np.ndarray, initial: np.ndarray, times: np.ndarray, seconds: float
) -> np.ndarray:
    """Pressures (T, m) faded in from `initial` (m,) within `seconds`."""
    return initial + fade_in(times, seconds)[:, None] * (pressures - initial)


def fade_in(times: np.ndarray, seconds: float) -> np.ndarray:
    """(T,) from 0 to 1 within `seconds`, first and second derivative zero at both ends."""
    if seconds <= 0.0:
        return np.ones_like(times)
    s = np.clip(times / seconds, 0.0, 1.0)
    return s**3 * (10 - 15 * s + 6 * s**2)


def _chamber_phases(chambers: int) -> np.ndarray:
    return 2 * np.pi * np.arange(chambers) / chambers
