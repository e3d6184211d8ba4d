"""How well a filter saw one part: the figures of Mehl et al., Table II."""

from dataclasses import dataclass

import numpy as np

from softcr_tools.experiments.cc_ukf.plant import DT, SensedRun

LEFT_OUT = 0.1
"""Seconds at the start that do not count, Mehl et al., Sec. III-B."""

LOST = 0.010
"""A filter has converged when its mean tip error over the second half is below this [m]. Mehl et
al. do not say when they call a part converged; their worst part has a mean error of 3.2 mm."""


@dataclass(frozen=True, eq=False)
class Seen:
    """What a filter says of a part.

    Attributes:
        coordinates, rates: (T, 3) of constant curvature [m], [m/s].
        tips, velocities: (T, 3) in the frame of the rod's base [m], [m/s].
        tick_times: (T,) computing time of each tick [s].
        stiffness: (T,) estimated k_theta [N/m]; NaN where the filter has none.
    """

    coordinates: np.ndarray
    rates: np.ndarray
    tips: np.ndarray
    velocities: np.ndarray
    tick_times: np.ndarray
    stiffness: np.ndarray


@dataclass(frozen=True, eq=False)
class Score:
    """Figures of one part.

    Attributes:
        nrmse: (6,) root mean square error over the largest true magnitude, of Delta_x, Delta_y, dL
            and their rates [%].
        tip, velocity: mean error [mm], [mm/s].
        converged: see LOST.
        tick: median computing time [ms].
    """

    nrmse: np.ndarray
    tip: float
    velocity: float
    converged: bool
    tick: float


def score(run: SensedRun, seen: Seen) -> Score:
    """Compares a part's truth with what was seen; what is not finite counts as infinitely wrong."""
    first = round(LEFT_OUT / DT)
    truth = np.hstack([run.coordinates, run.rates])
    error = np.nan_to_num(np.hstack([seen.coordinates, seen.rates]) - truth, nan=np.inf)[first:]
    tip = _distances(seen.tips, run.tips)
    velocity = _distances(seen.velocities, run.velocities)
    return Score(
        nrmse=100.0 * np.sqrt(np.mean(error**2, axis=0)) / np.abs(truth).max(axis=0),
        tip=1e3 * float(tip[first:].mean()),
        velocity=1e3 * float(velocity[first:].mean()),
        converged=bool(tip[len(tip) // 2 :].mean() < LOST),
        tick=1e3 * float(np.median(seen.tick_times)),
    )


def _distances(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    return np.nan_to_num(np.linalg.norm(found - true, axis=1), nan=np.inf)
