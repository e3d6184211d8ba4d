"""How far a recorded arm's model is off in motion: whole trials, from true starts, by frequency."""

from collections.abc import Sequence

import numpy as np

from softcr_models.identification.actuation import Actuation
from softcr_models.identification.measured_groups import Group, groups_of
from softcr_models.identification.motion_fit import Motion, MotionFit, Simulation, distances
from softcr_models.robots.robot import Robot

EVERY = 1.0
"""From one true start to the next [s]."""
BANDS = (0.3, 0.7, 1.2, 2.0, 4.0, 8.0)
"""Upper ends of bands of frequency [Hz]."""


def measured_groups(robot: Robot, motions: Sequence[Motion]) -> tuple[Group, ...]:
    """The groups of positions that were measured in some motion."""
    return tuple(
        each
        for each in groups_of(robot)
        if each.unit == "m"
        and any(np.isfinite(m.outputs[each.name]).any() for m in motions if each.name in m.outputs)
    )


def whole_trials(
    robot: Robot, actuation: Actuation, motions: Sequence[Motion], groups: Sequence[Group]
) -> list[np.ndarray]:
    """(T, G, 3) of each motion from a steady state at its begin, knowing its inputs alone, and of a
    rod that remembers where it began; NaN from where it is lost."""
    simulation = Simulation(robot, motions, groups)
    simulation.remember(actuation)
    found, _ = simulation.along([actuation], simulation.whole)
    return [values[: len(motion)] for values, motion in zip(found[0], motions, strict=True)]


def by_band(values: np.ndarray, period: float, centred: bool = False) -> np.ndarray:
    """(len(BANDS) + 1,) root mean square length of vectors (T, 3) in each band of frequency and
    above, the mean in the first unless they are centred; gaps are filled linearly."""
    columns = [column for column in values.T if np.isfinite(column).sum() > 1]
    powers = np.zeros(len(BANDS) + 1)
    times = np.arange(len(values))
    for column in columns:
        known = np.isfinite(column)
        filled = np.interp(times, times[known], column[known])
        filled -= centred * filled.mean()
        spectrum = np.abs(np.fft.rfft(filled)) ** 2 / len(filled) ** 2
        spectrum[1 : (len(filled) + 1) // 2] *= 2.0
        bands = np.searchsorted(BANDS, np.fft.rfftfreq(len(filled), period))
        powers += np.bincount(bands, spectrum, len(powers))
    rms: np.ndarray = np.sqrt(powers)
    return rms


def true_starts(
    robot: Robot,
    fit: MotionFit,
    motions: Sequence[Motion],
    groups: Sequence[Group],
    horizon: float,
) -> np.ndarray:
    """(S, H, G) distances [m] 1 ... H periods after starts EVERY so often, up to a horizon [s]; see
    `Simulation.from_true_starts`."""
    simulation = Simulation(robot, motions, groups)
    predicted, measured = simulation.from_true_starts(
        fit.actuation, fit.noise, fit.memory, horizon, EVERY, fit.pushed
    )
    return distances(predicted - measured)
