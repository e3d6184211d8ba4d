"""Trials of a recorded arm: read from files, held out by name, at rest or on an even grid."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from softcr_estimation.identification.column_map import ColumnMap, Trial, read_trials
from softcr_estimation.identification.signals import Signals
from softcr_estimation.identification.stages import read_one, static_of
from softcr_estimation.identification.stretches import LONGEST_HOLE, PERIOD, runs
from softcr_models.errors import UserError, did_you_mean
from softcr_models.identification.motion_fit import Motion
from softcr_models.identification.rod_identification import Recording
from softcr_models.robots.robot import Robot

_SHORTEST = 1.0  # of a part of a trial between holes [s]
_BRIDGED = 0.2  # longest hole of the inputs that is bridged by a line [s]


def read_parts(
    paths: Sequence[Path], hold_out: Iterable[str], known: ColumnMap | None, robot: Robot
) -> tuple[list[Trial], list[Trial]]:
    """Trials that are fitted to, and those that a fit is judged by.

    Args:
        paths: of recordings.
        hold_out: names of trials of them, and other files.
        known: what their columns are; None: they are as `read_csv` and `read_bag` say.
        robot: that was recorded.

    Raises:
        UserError: a recording cannot be used, or a name is of no trial.
    """
    held = list(hold_out)
    files = [Path(each) for each in held if Path(each).exists()]
    names = {each for each in held if not Path(each).exists()}
    every = list(dict.fromkeys([*paths, *files]))
    if known is not None:
        trials = read_trials(every, known, robot)
    else:
        trials = [Trial(path.stem, path, read_one(path, robot)) for path in every]
    there = [each.name for each in trials]
    for name in sorted(names.difference(there)):
        near = did_you_mean(name, there)
        raise UserError(
            f"--hold-out {name}: no such file or trial; {near}there are {', '.join(there)}"
        )
    judged = [each for each in trials if each.name in names or each.path in files]
    if len(judged) == len(trials):
        raise UserError(f"--hold-out {', '.join(held)}: nothing is left to fit to")
    return [each for each in trials if each not in judged], judged


def rests_of(trials: Sequence[Trial], robot: Robot) -> Recording:
    """A row for each configuration at rest; coordinates that no camera saw are NaN.

    Raises:
        UserError: there is none.
    """
    filled: list[Signals | Recording] = []
    unseen: dict[str, np.ndarray] = {}
    for content in (each.content for each in trials):
        if isinstance(content, Signals):
            outputs = {}
            for name, signal in content.outputs.items():
                unseen[name] = ~np.isfinite(signal.values).any(axis=0)
                seen = np.where(unseen[name], 0.0, signal.values)
                outputs[name] = replace(signal, values=seen)
            content = replace(content, outputs=outputs)
        filled.append(content)
    static = static_of(filled, robot)
    if not len(static):
        raise UserError(f"{_names(trials)}: no configuration at rest was recorded")
    for name, columns in unseen.items():
        static.outputs[name][:, columns] = np.nan
    return static


def payload_of(trials: Sequence[Trial]) -> float:
    """The one payload of all trials [kg].

    Raises:
        UserError: they have different ones.
    """
    found = sorted({each.payload for each in trials})
    if len(found) > 1:
        told = ", ".join(f"{mass:g}" for mass in found)
        raise UserError(f"payloads of {told} kg: a fit at rest takes one; --motion takes several")
    return found[0]


def motions_of(trials: Sequence[Trial], others: Sequence[Trial] = ()) -> list[Motion]:
    """Trials on one even grid, cut where inputs were not recorded; NaN where a sensor was silent.

    The period is PERIOD, or the slowest signal's of these and of some other trials. Shorter holes
    of the inputs, see `bridged`, are lines.

    Raises:
        UserError: a trial has no times, or nothing of it is long enough.
    """
    slowest = max(map(_slowest, (*trials, *others)))
    period, hole = max(PERIOD, slowest), max(LONGEST_HOLE, 2.5 * slowest)
    bridge = max(hole, _BRIDGED)
    found = []
    for each in trials:
        content = each.content
        assert isinstance(content, Signals)
        stamps = content.inputs.stamps
        count = 1 + int((stamps[-1] - stamps[0]) / (1e9 * period))
        grid = stamps[0] + np.round(1e9 * period * np.arange(count)).astype(np.int64)
        inputs = content.inputs.sampled(grid, bridge)
        outputs = {
            name: signal.sampled(grid, hole)
            for name, signal in content.outputs.items()
            if len(signal) > 1
        }
        parts = [
            rows
            for rows in runs(np.isfinite(inputs).all(axis=1))
            if (rows.stop - rows.start) * period >= _SHORTEST
        ]
        if not parts:
            raise UserError(
                f"{content.source}: inputs were never recorded for {_SHORTEST:g} s without holes "
                f"of more than {bridge:.2g} s"
            )
        for number, rows in enumerate(parts):
            name = each.name if len(parts) == 1 else f"{each.name}, part {number + 1}"
            seen = {group: values[rows] for group, values in outputs.items()}
            found.append(Motion(name, inputs[rows], seen, period, each.payload))
    return found


def bridged(trials: Sequence[Trial]) -> tuple[int, float]:
    """Holes of the inputs that `motions_of` bridges by lines: how many, and the longest [s]."""
    found = np.concatenate([
        1e-9 * np.diff(each.content.inputs.stamps)
        for each in trials
        if isinstance(each.content, Signals)
    ])  # fmt: skip
    holes = found[(found > LONGEST_HOLE) & (found <= _BRIDGED)]
    return len(holes), float(holes.max(initial=0.0))


def _slowest(trial: Trial) -> float:
    """The longest median distance between samples of a signal [s]."""
    content = trial.content
    if not isinstance(content, Signals):
        raise UserError(f"trial {trial.name}: has no times: a fit in motion needs them")
    signals = (content.inputs, *content.outputs.values())
    return max(1e-9 * float(np.median(np.diff(each.stamps))) for each in signals if len(each) > 1)


def _names(trials: Sequence[Trial]) -> str:
    return ", ".join(each.name for each in trials)
