"""Signals on one grid, and what is in them: where the robot rested, where it moved from rest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from softcr_estimation.identification.signals import Signals
from softcr_models.errors import UserError
from softcr_models.identification.measured_groups import POSITION
from softcr_models.identification.rod_identification import Recording
from softcr_models.robots.robot import Robot
from softcr_models.rod.description import rod_inputs
from softcr_runtime.bags.signals import Signal

PERIOD = 1 / 70  # of the grid, unless the recording is slower [s]
LONGEST_HOLE = 0.05  # that is interpolated, unless the recording is slower [s]
TIP_CALM, PRESSURE_CALM = 5e-4, 300.0
"""Standard deviations at rest, sensor noise included [m], [Pa]."""
TENSION_CALM = 0.015
"""Standard deviation of a tension or a motor's angle at rest, sensor noise included, of its range
[-]."""
REST, BEGIN = 1.0, 0.25  # calm for so long: a configuration; a motion may begin [s]
SHORTEST_MOTION, LONGEST_MOTION = 2.0, 12.0  # [s]
RUN_IN = 4.0
"""Of a motion that did not begin at rest: what differs at its begin falls to 2 %, because the
slowest motion of the shipped robot decays with 0.97 1/s [s]."""


@dataclass(frozen=True, eq=False)
class Samples:
    """A stretch without holes, a row per period.

    Attributes:
        source: where from.
        stamps: (T,) [ns].
        recording: inputs, and what the sensors of outputs said.
        commands: None: not recorded.
        calm: of each input, standard deviation at rest [Pa, N]; a number is that of all.
    """

    source: str
    stamps: np.ndarray
    recording: Recording
    commands: Signal | None
    calm: np.ndarray | float = PRESSURE_CALM

    def part(self, begin: int, end: int, run_in: int = 0) -> "Samples":
        """The rows from `begin` to before `end`; `run_in` of them are not judged."""
        rows = slice(begin, end)
        recording = self.recording.rows(rows, run_in)
        return replace(self, stamps=self.stamps[rows], recording=recording)

    def __len__(self) -> int:
        return len(self.stamps)


def calm_of(robot: Robot) -> np.ndarray:
    """(m,) standard deviation up to which each input of a robot counts as at rest [Pa, N, rad]."""
    limits = rod_inputs(robot)
    chambers = np.array(robot.quantities) == "pressure"
    return np.where(chambers, PRESSURE_CALM, TENSION_CALM * (limits.high - limits.low))


def stretches(signals: Signals, calm: np.ndarray | float = PRESSURE_CALM) -> list[Samples]:
    """The signals on one grid, cut where a sensor was silent.

    Args:
        signals: of one recording.
        calm: see `Samples`.

    Raises:
        UserError: the sensors were never heard together for a second.
    """
    sensors = (signals.inputs, *signals.outputs.values())
    slowest = max(1e-9 * float(np.median(np.diff(series.stamps))) for series in sensors)
    period, hole = max(PERIOD, slowest), max(LONGEST_HOLE, 2.5 * slowest)
    first = max(int(series.stamps[0]) for series in sensors)
    last = min(int(series.stamps[-1]) for series in sensors)
    count = 1 + max(0, int((last - first) / (1e9 * period)))
    grid = first + np.round(1e9 * period * np.arange(count)).astype(np.int64)
    found = [series.sampled(grid, hole) for series in sensors]
    known = np.all([np.isfinite(values).all(axis=1) for values in found], axis=0)
    whole = Recording(found[0], dict(zip(signals.outputs, found[1:], strict=True)), period)
    result = [
        Samples(signals.source, grid[rows], whole.rows(rows), signals.commands, calm)
        for rows in runs(known)
        if (rows.stop - rows.start) * period >= REST
    ]
    if not result:
        raise UserError(
            f"{signals.source}: inputs, {', '.join(signals.outputs)} were never recorded together "
            f"for {REST:g} s without holes of more than {hole:g} s"
        )
    return result


def rests(samples: Samples) -> Recording:
    """A row for each time the robot stood still, means over the calmest second of it."""
    recording = samples.recording
    means = [recording.rows(rows) for rows in calmest(samples)]
    return Recording(
        _means([each.inputs for each in means], recording.inputs),
        {
            name: _means([each.outputs[name] for each in means], values)
            for name, values in recording.outputs.items()
        },
    )


def calmest(samples: Samples) -> list[slice]:
    """The calmest second of each time the robot stood still."""
    spread = _spread(samples, REST)
    width = len(samples) - len(spread) + 1
    begins = [calm.start + int(np.argmin(spread[calm])) for calm in runs(spread <= 1.0)]
    return [slice(begin, begin + width) for begin in begins]


def joined(recordings: Sequence[Recording], inputs: int) -> Recording:
    """Configurations at rest of (K, inputs), one after the other; NaN where one of the recordings
    lacks a sensor of the others."""
    names = dict.fromkeys(name for each in recordings for name in each.outputs)

    def outputs(each: Recording, name: str) -> np.ndarray:
        silent = np.full((len(each), 3), np.nan)
        return each.outputs.get(name, silent)

    return Recording(
        np.concatenate([np.empty((0, inputs)), *(each.inputs for each in recordings)]),
        {name: np.concatenate([outputs(each, name) for each in recordings]) for name in names},
    )


def longest_motion(samples: Samples) -> Samples | None:
    """From a rest to the next one, or to the end, at most LONGEST_MOTION; None: there is none.

    Where nothing begins at rest, whatever comes first, RUN_IN of it not judged.
    """
    recording = samples.recording
    period = recording.period
    resting = np.array([r.start for r in runs(_spread(samples, REST) <= 1.0)], int)
    longest: Samples | None = None
    for calm in runs(_spread(samples, BEGIN) <= 1.0):
        begin = calm.stop - 1  # the last calm window begins here
        later = resting[resting > begin]
        until = int(later[0] + REST / period) if len(later) else len(samples)
        until = min(until, len(samples), begin + 1 + round(LONGEST_MOTION / period))
        if longest is None or until - begin > len(longest):
            longest = samples.part(begin, until)
    if longest is None and (len(samples) - 1) * period >= RUN_IN + SHORTEST_MOTION:
        end = round((RUN_IN + LONGEST_MOTION) / period)
        longest = samples.part(0, min(len(samples), end), round(RUN_IN / period))
    return longest if longest and len(longest) * period >= SHORTEST_MOTION else None


def held_commands(commands: Signal, stamps: np.ndarray, delay: int) -> np.ndarray:
    """(T, m) what was asked for `delay` [ns] before each stamp; NaN before the first command."""
    places = np.searchsorted(commands.stamps, stamps - delay, side="right") - 1
    held: np.ndarray = commands.values[np.maximum(places, 0)].astype(float)
    held[places < 0] = np.nan
    return held


def _means(parts: Sequence[np.ndarray], like: np.ndarray) -> np.ndarray:
    """(K, width) the mean of each part; no rows without parts."""
    return np.array([part.mean(axis=0) for part in parts]).reshape(-1, like.shape[1])


def _spread(samples: Samples, seconds: float) -> np.ndarray:
    """(T - w + 1,) of each window of so long: up to 1 it is calm. Empty where all is shorter."""
    recording = samples.recording
    width = max(2, round(seconds / recording.period))
    if len(recording) < width:
        return np.empty(0)
    # a base wrench alone is at rest when the inputs are
    positions = [
        values / TIP_CALM for name, values in recording.outputs.items() if name.endswith(POSITION)
    ]
    deviations = [
        np.lib.stride_tricks.sliding_window_view(values, width, axis=0).std(axis=-1).max(axis=1)
        for values in (recording.inputs / samples.calm, *positions)
    ]
    spread: np.ndarray = np.max(deviations, axis=0)
    return spread


def runs(flags: np.ndarray) -> list[slice]:
    """Each run of True in flags (T,)."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(int), [0]))))
    return [slice(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]
