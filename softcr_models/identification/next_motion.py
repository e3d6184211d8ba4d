"""The motion to record next: of some simple ones, that which tells most of what a fit left open.

Every motion is simulated at the values that were found and with each unknown a little changed; how
far the positions move apart, beside the noise that the fit has left, is what it tells (the Fisher
information; Bombois et al., Automatica 42, 2006, p. 1651, for the design of experiments by it).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError
from softcr_models.identification.actuation import actuation_as
from softcr_models.identification.measured_groups import Group
from softcr_models.identification.motion_fit import (
    CORRELATED,
    JUDGED,
    JUDGED_EVERY,
    RUN_IN,
    Motion,
    MotionFit,
    Simulation,
    windows_of,
)
from softcr_models.model import Inputs
from softcr_models.robots.robot import Robot
from softcr_models.rod.description import rod_inputs

FREQUENCIES = (0.25, 0.5, 1.0, 2.0)
"""Of the motions that are tried [Hz]."""
_STEP = 0.02  # of a deviation, for differences


@dataclass(frozen=True, eq=False)
class NextMotion:
    """What to record.

    Attributes:
        words: what moves, how often and how far.
        inputs: (T, m) readings from rest on [Pa, N, rad].
        period: between them [s].
        left: (P,) deviations of the unknowns once it is recorded as well.
    """

    words: str
    inputs: np.ndarray
    period: float
    left: np.ndarray


def next_motion(robot: Robot, fit: MotionFit, groups: Sequence[Group], period: float) -> NextMotion:
    """The motion after which the volume of the unknowns' covariance is least.

    Args:
        robot: the first guess of the fit.
        fit: to what is recorded already.
        groups: that will be measured.
        period: of the recording [s].

    Raises:
        UserError: the rod is lost in all motions.
    """
    proposed = list(_proposed(rod_inputs(robot), period))
    nothing = {each.name: np.zeros((len(proposed[0][1]), 3)) for each in groups}
    motions = [Motion(words, inputs, nothing, period) for words, inputs in proposed]
    slopes = _slopes(robot, fit, motions, groups)
    known = np.isfinite(slopes).all(axis=(0, 2))
    if not known.any():
        raise UserError(f"robot {robot.name}: its rod is lost in every motion that was tried")
    rows = np.nan_to_num(slopes).transpose(1, 2, 0)
    left = np.linalg.inv(np.linalg.inv(fit.covariance) + rows.transpose(0, 2, 1) @ rows)
    best = int(np.argmin(np.where(known, np.linalg.slogdet(left)[1], np.inf)))
    words, inputs = proposed[best]
    return NextMotion(words, inputs, period, np.sqrt(left[best].diagonal()))


def _slopes(
    robot: Robot, fit: MotionFit, motions: Sequence[Motion], groups: Sequence[Group]
) -> np.ndarray:
    """(P, W, R) derivatives of what is seen of each motion, in deviations of its noise, by each
    unknown; NaN where a rod is lost."""
    simulation, windows = Simulation(robot, motions, groups), windows_of(motions, len(motions))
    names = [each.name for each in fit.unknowns]
    found = np.array([fit.values[name] for name in names])
    steps = _STEP * np.array([each.deviation for each in fit.unknowns])
    candidates = [
        actuation_as(robot, dict(zip(names, values.tolist(), strict=True)))
        for values in np.vstack((found, found + np.diag(steps)))
    ]
    judged = windows[0].judged(range(windows[0].rows))
    seen = simulation.along(candidates, windows)[0][:, :, judged]
    noise = np.array([fit.noise[each.name] for each in groups])
    # what is left of a fit is no noise that is new at every sample
    weights = np.sqrt(min(1.0, max(motions[0].period, JUDGED_EVERY) / CORRELATED)) / noise
    changed = (seen[1:] - seen[0]) * weights[:, None]
    return changed.reshape(len(names), len(windows), -1) / steps[:, None, None]


def _proposed(limits: Inputs, period: float) -> Iterator[tuple[str, np.ndarray]]:
    """Each input alone, all together and all in turn, from rest on: words, and readings (T, m)."""
    count = limits.size
    times = period * np.arange(round((RUN_IN + JUDGED) / period) + 1)
    begun = np.clip(times / RUN_IN, 0.0, 1.0)
    fading = begun * begun * (3.0 - 2.0 * begun)
    patterns = [(name, np.eye(count)[k], np.zeros(count)) for k, name in enumerate(limits.names)]
    if count > 1:
        patterns.append(("all inputs together", np.ones(count), np.zeros(count)))
        phases = 2.0 * np.pi * np.arange(count) / count
        patterns.append(("all inputs in turn", np.ones(count), phases))
    low, high = np.asarray(limits.low), np.asarray(limits.high)
    one_sided = limits.rest - low < 0.25 * (high - limits.rest)  # such as a pressure
    for words, moved, phases in patterns:
        for hertz in FREQUENCIES:
            angles = 2.0 * np.pi * hertz * times[:, None] - phases
            waves = np.where(one_sided, 0.5 - 0.5 * np.cos(angles), np.sin(angles))
            up, down = high - limits.rest, limits.rest - low
            reach = np.where(one_sided, up, np.minimum(up, down))
            moving = moved * reach * fading[:, None] * waves
            fastest = np.abs(np.diff(moving, axis=0)).max(axis=0) / period
            share = float(np.min(limits.rate / np.maximum(fastest, limits.rate)))
            told = f"{words} at {hertz:g} Hz over {100 * share:.0f} % of the range"
            yield told, limits.rest + share * moving
