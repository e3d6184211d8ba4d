"""One step of one rod, on one core."""

import itertools
from collections.abc import Iterator
from functools import partial

import numpy as np

from softcr_studies.frame.study import Must, Result, Results, Row
from softcr_studies.speed import motion
from softcr_studies.speed.timing import TIP_ERROR, Effort, measure_each, speed_study, told

UNIT = "us per 14.3 ms step"
OURS = "softcr"
INTERVALS = (5, 10, 20)


def step(intervals: int, effort: Effort) -> Result:
    """A step of the reference motion, its error against Radau (n = 5) or finer steps."""
    rod, pressures = motion.make_rod(intervals), motion.three_phase_pressures(effort.periods)
    fine = motion.tip_positions(rod, motion.fine_states(rod, pressures))
    true, against = fine, f"{motion.FINE_SUBSTEPS} sub-steps"
    if intervals == INTERVALS[0]:
        true = motion.tip_positions(rod, motion.radau_states(rod, pressures))
        apart = 1e3 * motion.mean_distance(fine, true)
        against = f"Radau at rtol 1e-8, from which {against} are {apart:.4f} mm off"
    substeps = int(np.ceil(motion.PERIOD / rod.max_substep - 1e-9))
    note = f"{substeps} sub-steps; tip error against {against}"
    error = motion.mean_distance(motion.tip_positions(rod, motion.from_rest(rod, pressures)), true)
    return told(1e6 * motion.step_durations(rod, effort), UNIT, error, note)


def single_call(effort: Effort) -> Result:
    """The same from Python, checks and conversions included."""
    rod, pressures = motion.make_rod(), motion.three_phase_pressures(effort.periods)
    states = motion.from_rest(rod, pressures)
    moments = itertools.cycle(zip(states[:-1], pressures[1:], strict=True))
    durations = measure_each(lambda moment: rod.step(*moment, motion.PERIOD), moments, effort)
    return told(1e6 * durations, UNIT, note="CosseratRod.step, checks and conversions included")


def growth(results: Results) -> Iterator[Row]:
    """How the time of a step grows with the intervals."""
    least, *others = (results.first(_name(n), OURS)["median"] / n for n in INTERVALS)
    for intervals, each in zip(INTERVALS[1:], others, strict=True):
        yield Row(_name(intervals), OURS, f"time per interval, times that of n = {INTERVALS[0]}",
                  each / least, 0.0, "x", 1, must=1.2, timing=True)  # fmt: skip


def _name(intervals: int) -> str:
    return f"rod step n = {intervals}"


STUDY = speed_study(
    "speed/rod",
    "one step of one rod, on one core",
    {
        (_name(5), OURS): partial(step, 5),
        (f"{_name(5)}, one Python call", OURS): single_call,
        (_name(10), OURS): partial(step, 10),
        (_name(20), OURS): partial(step, 20),
    },
    [UNIT],
    [growth],
    musts=(Must("median", 20.0, 14.0, case=_name(5)), Must(TIP_ERROR, 0.1, case=_name(5))),
)
