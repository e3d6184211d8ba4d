"""One step of one rod, on one core."""

import itertools
from collections.abc import Iterator

import numpy as np

from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_studies.speed.motion import (
    FINE_SUBSTEPS,
    PERIOD,
    fine_states,
    mean_distance,
    radau_states,
    three_phase_pressures,
    tip_positions,
)
from softcr_studies.speed.timing import (
    TIP_ERROR,
    Effort,
    Timing,
    measure,
    measure_each,
    median_of,
    robot,
    speed_study,
    told,
)
from softcr_studies.study import Must, Result, Results, Row

UNIT = "us per 14.3 ms step"
OURS = "softcr"
INTERVALS = (5, 10, 20)


def step(intervals: int, effort: Effort) -> Result:
    """A step of the reference motion, its error against Radau (n = 5) or finer steps."""
    rod, pressures = CosseratRod(robot(), intervals), three_phase_pressures(effort.periods)
    fine = tip_positions(rod, fine_states(rod, pressures))
    true, against = fine, f"{FINE_SUBSTEPS} sub-steps"
    if intervals == INTERVALS[0]:
        true = tip_positions(rod, radau_states(rod, pressures))
        apart = 1e3 * mean_distance(fine, true)
        against = f"Radau at rtol 1e-8, from which {FINE_SUBSTEPS} sub-steps are {apart:.4f} mm off"
    note = f"{_substeps(rod)} sub-steps; tip error against {against}"
    return told(step_timing(rod, pressures, effort), UNIT, step_error(rod, pressures, true), note)


def single_call(effort: Effort) -> Result:
    """The same from Python, checks and conversions included."""
    rod, pressures = CosseratRod(robot(), INTERVALS[0]), three_phase_pressures(effort.periods)
    states = rod.simulate(rod.rest_state(), pressures, PERIOD)
    moments = itertools.cycle(zip(states[:-1], pressures[1:], strict=True))
    timing = measure_each(lambda moment: rod.step(*moment, PERIOD), moments, effort)
    return told(timing.times(1e6), UNIT, note="CosseratRod.step, checks and conversions included")


def step_timing(rod: CosseratRod, pressures: np.ndarray, effort: Effort) -> Timing:
    """Time per step [us] of the reference motion, simulated in one call."""
    rest = rod.rest_state()
    whole = measure(lambda: rod.simulate(rest, pressures, PERIOD), effort)
    return whole.times(1e6 / len(pressures))


def step_error(rod: CosseratRod, pressures: np.ndarray, true_tips: np.ndarray) -> float:
    """Mean tip error [m] of the same simulation."""
    states = rod.simulate(rod.rest_state(), pressures, PERIOD)
    return mean_distance(tip_positions(rod, states), true_tips)


def growth(results: Results) -> Iterator[Row]:
    """How the time of a step grows with the intervals."""
    first, *others = INTERVALS
    least = median_of(results, _name(first), OURS, UNIT) / first
    for intervals in others:
        times = median_of(results, _name(intervals), OURS, UNIT) / intervals / least
        yield Row(_name(intervals), OURS, f"time per interval, times that of n = {first}", times,
                  0.0, "x", 1, must=1.2, timing=True)  # fmt: skip


def _substeps(rod: CosseratRod) -> int:
    return int(np.ceil(PERIOD / rod.max_substep - 1e-9))


def _name(intervals: int) -> str:
    return f"rod step n = {intervals}"


STUDY = speed_study(
    "speed/rod",
    "one step of one rod, on one core",
    {
        (_name(5), OURS): lambda effort: step(5, effort),
        (f"{_name(5)}, one Python call", OURS): single_call,
        (_name(10), OURS): lambda effort: step(10, effort),
        (_name(20), OURS): lambda effort: step(20, effort),
    },
    [UNIT],
    further=growth,
    musts=(
        Must("median", 20.0, 14.0, case=_name(5)),
        Must(TIP_ERROR, 0.1, case=_name(5)),
    ),
)
