"""Plateaus of recorded trials: pressures stay and the arm has stopped, where its past has put it.

A model that has run along a trial from its beginning is judged by where it is on the plateaus.
Beside it a rod without memory is fitted to the plateaus of the other trials.
"""

from collections.abc import Sequence

import numpy as np

from softcr_estimation.identification.stretches import Samples, calmest, joined
from softcr_models.identification.measured_groups import Group
from softcr_models.identification.motion_fit import Motion, distances
from softcr_models.identification.prior_fit import predicted_at_rest, prior_fit
from softcr_models.identification.rod_identification import Recording, stacked
from softcr_models.identification.unknowns import FAMILIES, unknowns_of
from softcr_models.robots.robot import Robot
from softcr_models.rod.description import rod_inputs

_STAY = 0.03
"""Standard deviation of an input that stays, noise included, of its range [-]."""


def plateaus(robot: Robot, motion: Motion) -> list[slice]:
    """The calmest second of each plateau; where the arm moves on under inputs that stay, of the
    last time that it stops."""
    stay, found = _STAY * rod_inputs(robot).range, list[slice]()
    seen = {name: values[:, known] for name, values in motion.outputs.items()
            if (known := np.isfinite(values).any(axis=0)).any()}  # fmt: skip
    whole = Recording(motion.inputs, seen, motion.period)
    samples = Samples(motion.name, np.arange(len(motion)), whole, None, stay)
    for rows in calmest(samples):
        mean = motion.inputs[rows].mean(axis=0)
        if found and (np.abs(motion.inputs[found[-1]].mean(axis=0) - mean) < 3.0 * stay).all():
            found.pop()
        found.append(rows)
    return found


def at_plateaus(values: np.ndarray, rows: Sequence[slice]) -> np.ndarray:
    """(N, ...) means of values (T, ...) over plateaus."""
    means = [values[each].mean(axis=0) for each in rows]
    return np.array(means).reshape(-1, *values.shape[1:])


def recorded_plateaus(
    robot: Robot, motions: Sequence[Motion], groups: Sequence[Group]
) -> Recording:
    """A row for each plateau of motions."""
    each = []
    for motion in motions:
        rows, nothing = plateaus(robot, motion), np.full((len(motion), 3), np.nan)
        seen = {g.name: at_plateaus(motion.outputs.get(g.name, nothing), rows) for g in groups}
        each.append(Recording(at_plateaus(motion.inputs, rows), seen))
    return joined(each, len(robot.actuators))


def rod_without_memory(
    robot: Robot,
    families: Sequence[str],
    fitted: Sequence[Motion],
    held: Sequence[Motion],
    groups: Sequence[Group],
) -> list[np.ndarray]:
    """(N, G) distances [m] at the N plateaus of each motion held out, of a rod at rest; empty where
    there are no plateaus to fit to.

    Args:
        robot: the first guess.
        families: of unknowns; those of them that a rest tells of are fitted.
        fitted, held: motions whose plateaus are fitted to and predicted.
        groups: that were measured.
    """
    known = recorded_plateaus(robot, fitted, groups)
    if not len(known):
        return [np.empty((0, len(groups)))] * len(held)
    unknowns = unknowns_of(robot, [each for each in families if each in FAMILIES], groups)
    recorded = prior_fit(robot, known, groups, unknowns).recorded
    found = []
    for motion in held:
        each = recorded_plateaus(robot, [motion], groups)
        predicted = predicted_at_rest(recorded, each.inputs, groups)
        found.append(distances(stacked(groups, predicted) - stacked(groups, each.outputs)))
    return found
