"""Which families of unknowns recordings tell of: those that lower the error of what a fit did not
see."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from softcr_estimation.identification.motion_errors import whole_trials
from softcr_models.errors import UserError
from softcr_models.identification.actuation import FAMILIES_IN_MOTION, actuation_as
from softcr_models.identification.measured_groups import Group, known_mean
from softcr_models.identification.motion_fit import Motion, motion_fit
from softcr_models.identification.prior_fit import predicted_at_rest, prior_fit
from softcr_models.identification.rod_identification import Recording, Work
from softcr_models.identification.unknowns import Make, recorded_as, unknowns_of
from softcr_models.robots.robot import Robot

FIRST = "registration", "stiffness", "gains", "offsets", "delay", "relaxation"
"""Families that are tried before the others: without them these would stand in for them."""
GAIN = 0.02
"""A family is kept where it lowers the error by this share at least [-]."""
FOLDS = 3
"""Parts of the rests, of which each is left out of a fit once; of trials the first of so many is
left out."""
_STILL = 1e-9  # what moves less did not, but was rounded [m, N, N m]

LeftOut = Callable[[Sequence[str]], float]
"""Error of what is left out of a fit of some families, as a share of how far it moved [-]."""


class Tried(NamedTuple):
    """A family that was tried.

    Attributes:
        name: of it.
        error: with it, and all that were kept before, of what was left out, as a share of how far
            that moved [-].
        kept: whether it was lower, and still is with those that came after.
    """

    name: str
    error: float
    kept: bool


def chosen(
    families: Sequence[str], left_out: LeftOut, tell: Callable[[float], None]
) -> tuple[float, list[Tried]]:
    """The error without any, and each family as it was tried: one after the other, then each of
    those that were kept is left away once, for others may have taken its place.

    Args:
        families: by name, in the order in which they are tried.
        left_out: fits, and judges by what it left out.
        tell: told the share that is done.
    """
    kept: list[str] = []
    tried: dict[str, Tried] = {}
    without = best = left_out(())
    for number, name in enumerate(families):
        error = left_out((*kept, name))
        tried[name] = Tried(name, error, error < (1.0 - GAIN) * best)
        if tried[name].kept:
            kept.append(name)
            best = error
        tell((number + 1.0) / (len(families) + max(len(kept) - 1, 0)))
    again = kept[:-1]  # the last was tried with all others
    for number, name in enumerate(again, 1):
        fewer = [each for each in kept if each != name]
        error = left_out(fewer)
        if (1.0 - GAIN) * error < best:
            kept, best = fewer, min(best, error)
            tried[name] = tried[name]._replace(kept=False)
        tell((len(families) + number) / (len(families) + len(again)))
    return without, list(tried.values())


def with_unknowns(robot: Robot, groups: Sequence[Group], known: Mapping[str, Make]) -> list[str]:
    """Names of the families of which this robot has an unknown, in the order of trial."""
    order = [name for name in FIRST if name in known]
    order += [name for name in known if name not in order]
    return [name for name in order if unknowns_of(robot, [name], groups, known)]


def left_out_at_rest(robot: Robot, rests: Recording, groups: Sequence[Group]) -> LeftOut:
    """Judges fits to rests.

    Raises:
        UserError: there are too few.
    """
    if len(rests) < 2 * FOLDS:
        raise UserError(f"{len(rests)} rests: to choose by those left out, {2 * FOLDS} are needed")
    numbers = np.arange(len(rests)) % FOLDS

    def error(families: Sequence[str]) -> float:
        unknowns = unknowns_of(robot, families, groups)
        off: dict[str, list[np.ndarray]] = {each.name: [] for each in groups}
        for fold in range(FOLDS):
            there, left = rests.rows(numbers != fold), rests.rows(numbers == fold)
            recorded = recorded_as(robot, {})
            if unknowns:
                recorded = prior_fit(robot, there, groups, unknowns).recorded
            seen = predicted_at_rest(recorded, left.inputs, groups)
            for each in groups:
                off[each.name].append(seen[each.name] - left.outputs[each.name])
        order = np.argsort(numbers, kind="stable")
        measured = {each.name: rests.outputs[each.name][order] for each in groups}
        return _share({name: np.vstack(parts) for name, parts in off.items()}, measured)

    return error


def left_out_in_motion(robot: Robot, motions: Sequence[Motion], groups: Sequence[Group]) -> LeftOut:
    """Judges fits to motions by whole trials, from a steady state and the inputs alone.

    Raises:
        UserError: there is one only.
    """
    left = list(motions[::FOLDS])
    there = [each for each in motions if all(each is not other for other in left)]
    if not there:
        raise UserError("one trial: to choose by trials left out, two are needed")

    def error(families: Sequence[str]) -> float:
        unknowns = unknowns_of(robot, families, groups, FAMILIES_IN_MOTION)
        actuation = actuation_as(robot, {})
        if unknowns:
            actuation = motion_fit(robot, there, groups, unknowns, Work()).actuation
        seen = whole_trials(robot, actuation, left, groups)
        off: dict[str, np.ndarray] = {}
        measured: dict[str, np.ndarray] = {}
        for g, group in enumerate(groups):
            parts = [
                (predicted[:, g], motion.outputs[group.name])
                for motion, predicted in zip(left, seen, strict=True)
                if group.name in motion.outputs
            ]
            if parts:
                measured[group.name] = np.vstack([values for _, values in parts])
                off[group.name] = np.vstack([found for found, _ in parts]) - measured[group.name]
        return _share(off, measured)

    return error


def _share(off: Mapping[str, np.ndarray], measured: Mapping[str, np.ndarray]) -> float:
    """Mean over groups of root mean square errors (T, 3), as shares of how far (T, 3) moved; all of
    it where the rod is lost.

    Raises:
        UserError: nothing of it moved.
    """
    shares = []
    for name, values in measured.items():
        known = np.isfinite(values)
        moved = np.sqrt(known_mean((values - known_mean(values, (0,))) ** 2, (0, 1)))
        if known.any() and moved > _STILL:
            errors = np.where(np.isnan(off[name]), moved, off[name])[known]
            shares.append(float(np.sqrt(np.mean(errors**2)) / moved))
    if not shares:
        raise UserError("nothing was seen to move in what is left out of the fits")
    return float(np.mean(shares))
