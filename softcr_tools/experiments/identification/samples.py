"""What was recorded of a robot, on one grid: where it rested, and where it moved from rest."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError
from softcr_models.identification import Recording
from softcr_tools.report_run import Series

PERIOD = 1 / 70  # of the grid, unless the recording is slower [s]
LONGEST_HOLE = 0.05  # that is interpolated, unless the recording is slower [s]
TIP_CALM, PRESSURE_CALM = (
    5e-4,
    300.0,
)  # standard deviations at rest, sensor noise included [m], [Pa]
REST, BEGIN = 1.0, 0.25  # calm for so long: a configuration; a motion may begin [s]
SHORTEST_MOTION, LONGEST_MOTION = 2.0, 12.0  # [s]
# of a motion that did not begin at rest; what differs at its begin falls to 2 %, because the
# slowest motion of the shipped robot decays with 0.97 1/s [s]
RUN_IN = 4.0


@dataclass(frozen=True, eq=False)
class Signals:
    """What sensors said, each at its own stamps; stamps [ns].

    Attributes:
        source: where from, for the eyes of a person.
        pressures: (T, m) [Pa].
        tips: (T, 3) [m], base frame.
        wrenches: (T, 6) of the force-torque sensor [N], [N m].
        commands: (T, m) pressures asked for, each until the next [Pa]; None: not recorded.
    """

    source: str
    pressures: Series
    tips: Series
    wrenches: Series
    commands: Series | None


@dataclass(frozen=True, eq=False)
class Samples:
    """A stretch without holes, a row per period.

    Attributes:
        source: where from.
        stamps: (T,) [ns].
        recording: pressures, tips, wrenches.
        commands: None: not recorded.
    """

    source: str
    stamps: np.ndarray
    recording: Recording
    commands: Series | None

    def part(self, begin: int, end: int, run_in: int = 0) -> "Samples":
        """The rows from `begin` to before `end`; `run_in` of them are not judged."""
        whole, rows = self.recording, slice(begin, end)
        recording = Recording(
            whole.pressures[rows], whole.tips[rows], whole.wrenches[rows], whole.period, run_in
        )
        return Samples(self.source, self.stamps[rows], recording, self.commands)

    def __len__(self) -> int:
        return len(self.stamps)


def stretches(signals: Signals) -> list[Samples]:
    """The signals on one grid, cut where a sensor was silent.

    Raises:
        UserError: the sensors were never heard together for a second.
    """
    sensors = (signals.pressures, signals.tips, signals.wrenches)
    slowest = max(_spacing(series) for series in sensors)
    period, hole = max(PERIOD, slowest), max(LONGEST_HOLE, 2.5 * slowest)
    first = max(int(series.stamps[0]) for series in sensors)
    last = min(int(series.stamps[-1]) for series in sensors)
    count = 1 + max(0, int((last - first) / (1e9 * period)))
    grid = first + np.round(1e9 * period * np.arange(count)).astype(np.int64)
    found = [series.at(grid, hole) for series in sensors]
    known = np.ones(len(grid), bool)
    for series in found:
        known &= np.isin(grid, series.stamps)
    result = []
    for begin, end in _runs(known):
        stamps = grid[begin:end]
        if len(stamps) * period >= REST:
            pressures, tips, wrenches = (
                series.values[np.isin(series.stamps, stamps)] for series in found
            )
            recording = Recording(pressures, tips, wrenches, period)
            result.append(Samples(signals.source, stamps, recording, signals.commands))
    if not result:
        raise UserError(
            f"{signals.source}: pressures, tips and wrenches were never recorded together for "
            f"{REST:g} s without holes of more than {hole:g} s"
        )
    return result


def rests(samples: Samples) -> Recording:
    """A row for each time the robot stood still, means over the calmest second of it."""
    recording = samples.recording
    spread = _spread(recording, REST)
    width = len(samples) - len(spread) + 1
    rows = []
    for begin, end in _runs(spread <= 1.0):
        calmest = begin + int(np.argmin(spread[begin:end]))
        rows.append(slice(calmest, calmest + width))
    return Recording(
        _means(recording.pressures, rows),
        _means(recording.tips, rows),
        _means(recording.wrenches, rows),
    )


def joined(recordings: Sequence[Recording]) -> Recording:
    """Configurations at rest, one after the other."""
    return Recording(
        np.concatenate([recording.pressures for recording in recordings]),
        np.concatenate([recording.tips for recording in recordings]),
        np.concatenate([recording.wrenches for recording in recordings]),
    )


def longest_motion(samples: Samples) -> Samples | None:
    """From a rest to the next one, or to the end, at most LONGEST_MOTION; None: there is none.

    Where nothing begins at rest, whatever comes first, RUN_IN of it not judged.
    """
    recording = samples.recording
    period = recording.period
    calm = _runs(_spread(recording, BEGIN) <= 1.0)
    resting = np.array([begin for begin, _ in _runs(_spread(recording, REST) <= 1.0)], int)
    longest: Samples | None = None
    for _, end in calm:
        begin = end - 1  # the last calm window begins here
        later = resting[resting > begin]
        until = int(later[0] + REST / period) if len(later) else len(samples)
        until = min(until, len(samples), begin + 1 + round(LONGEST_MOTION / period))
        if longest is None or until - begin > len(longest):
            longest = samples.part(begin, until)
    if longest is None and (len(samples) - 1) * period >= RUN_IN + SHORTEST_MOTION:
        end = round((RUN_IN + LONGEST_MOTION) / period)
        longest = samples.part(0, min(len(samples), end), round(RUN_IN / period))
    if longest is None or len(longest) * period < SHORTEST_MOTION:
        return None
    return longest


def held_commands(commands: Series, stamps: np.ndarray, delay: int) -> np.ndarray:
    """(T, m) what was asked for `delay` [ns] before each stamp; NaN before the first command."""
    places = np.searchsorted(commands.stamps, stamps - delay, side="right") - 1
    held: np.ndarray = commands.values[np.maximum(places, 0)].astype(float)
    held[places < 0] = np.nan
    return held


def _spacing(series: Series) -> float:
    """Median time between samples [s]."""
    return float(1e-9 * np.median(np.diff(series.stamps))) if len(series) > 1 else 0.0


def _spread(recording: Recording, seconds: float) -> np.ndarray:
    """(T - w + 1,) of each window of so long: up to 1 it is calm. Empty where all is shorter."""
    width = max(2, round(seconds / recording.period))
    if len(recording.tips) < width:
        return np.empty(0)
    deviations = [
        np.lib.stride_tricks.sliding_window_view(values, width, axis=0).std(axis=-1).max(axis=1)
        for values in (recording.tips / TIP_CALM, recording.pressures / PRESSURE_CALM)
    ]
    spread: np.ndarray = np.maximum(*deviations)
    return spread


def _means(values: np.ndarray, rows: Sequence[slice]) -> np.ndarray:
    if not rows:
        return np.empty((0, values.shape[1]))
    return np.array([values[row].mean(axis=0) for row in rows])


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """Begin and end of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(int), [0]))))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]
