"""The filter's noises and sigma points, by swarm and (38), on plants near the model and far off.

The search sees five runs: recordings of the experiments' usual plant with one lever wrong, of a
plant that is softer, heavier at the tip and less damped, of one that is stiffer with biased
pressure sensors, of one that picks up something on its way, and a closed loop. A filter that was
tuned on the first alone trusted the model too much: on a plant far from it its error doubled. One
that was tuned on all but the plant that changes never found what changed.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from softcr_control.reference_settings import ReferenceSettings
from softcr_estimation import EstimatorSettings
from softcr_hardware.plant import Mismatch
from softcr_models import Robot
from softcr_runtime.registry import GRADIENT_MPC
from softcr_studies.different_plant import Difference
from softcr_studies.licher2025.compliance import TRUE_COMPLIANCE
from softcr_studies.tracking_loop import PERIOD, SETTLED, Case, run_loop
from softcr_tools.experiments.tuning.controller_cost import Task, task_of, tip_error_mm
from softcr_tools.experiments.tuning.filter_cost import Run, filter_cost
from softcr_tools.experiments.tuning.filter_runs import (
    Motion,
    Recording,
    filtered,
    looped,
    record,
)
from softcr_tools.experiments.tuning.space import FILTER, published_values
from softcr_tools.experiments.tuning.subject import (
    FINAL_SEEDS,
    SEARCH_SEED,
    Effort,
    Errors,
    Subject,
    held_out,
    write_yaml,
)

JUDGED = ("tip error [mm]", "state error [1e-3]", "compliance error [%]")

_SOFT, _STIFF = Mismatch(1.1, 1.35, 0.8), Mismatch(0.88, 1.0, 1.2)
SEARCH_MOTIONS = (
    Motion("to 1.2 Hz, lever -3 %", (0.2, 0.7, 1.2), 4.0, Difference(lever_factor=0.97)),
    Motion("to 1.3 Hz, soft and heavy", (0.4, 0.9, 1.3), 4.0, Difference(_SOFT)),
    Motion("to 0.6 Hz, stiff, biased", (0.25, 0.6), 4.0,
           Difference(_STIFF, pressure_bias=(800.0, -500.0, 0.0))),
    Motion("to 0.8 Hz, picks up 35 % of the tip mass", (0.3, 0.8), 4.0,
           later=Difference(Mismatch(0.95, 1.45))),
)  # fmt: skip
SEARCH_LOOP = Case(
    "loop to 1.4 Hz", ReferenceSettings(kind="trajectory", frequencies=(0.4, 0.9, 1.4)), 3.0
)
_FAR = Difference(Mismatch(1.15, 1.5, 0.7))
HELD_OUT_MOTIONS = (
    Motion("circle of Experiment 3, compliance 45", (0.5,), 5.0,
           Difference(Mismatch(TRUE_COMPLIANCE / 49.9, tip_mass_factor=1.1))),
    Motion("motion of 4a", (0.5, 1.0, 1.5), 4.0),
    Motion("4a, lever of chamber 1 +5 %", (0.5, 1.0, 1.5), 4.0, Difference(lever_factor=1.05)),
    Motion("4a, compliance +15, mass +50, damping -30 %", (0.5, 1.0, 1.5), 4.0, _FAR),
    Motion("4a, compliance -15, damping +30 %", (0.5, 1.0, 1.5), 4.0,
           Difference(Mismatch(0.85, 1.0, 1.3))),
    Motion("circle of 0.5 Hz, picks up 20 % of the tip mass", (0.5,), 6.0,
           later=Difference(Mismatch(0.95, 1.3))),
)  # fmt: skip
HELD_OUT_LOOPS = (
    held_out("trajectory to 1.5 Hz", 4.0),
    held_out("setpoint (45, 25, 15) kPa", 2.5),
    replace(held_out("trajectory to 1.5 Hz", 4.0, _FAR), name="trajectory to 1.5 Hz, far plant"),
    held_out("trajectory to 1.5 Hz, 500 Hz", 2.5),
)


def filter_subject(robot: Robot, effort: Effort) -> Subject:
    """The filter's noises and sigma points, by swarm and (38)."""
    defaults = EstimatorSettings()
    start = {
        p.name: defaults.state_noise if (value := getattr(defaults, p.name)) is None else value
        for p in FILTER
    }
    loops = [task_of(robot, case) for case in HELD_OUT_LOOPS]
    recordings: dict[tuple[Motion, int], Recording] = {}

    def recorded(motion: Motion, seed: int) -> Recording:
        if (motion, seed) not in recordings:
            recordings[motion, seed] = record(robot, motion, seed)
        return recordings[motion, seed]

    def judge(
        settings: EstimatorSettings, seeds: Sequence[int], progress: Callable[[], None]
    ) -> Errors:
        errors: dict[tuple[str, str], list[float]] = {}
        for seed in seeds:
            for motion in HELD_OUT_MOTIONS:
                for quantity, error in _judged(robot, recorded(motion, seed), settings).items():
                    errors.setdefault((motion.name, quantity), []).append(error)
                progress()
            for task in loops:
                error = _loop_error(robot, task, settings, seed)
                key = f"{task.case.name}, {GRADIENT_MPC}", "tip error [mm]"
                errors.setdefault(key, []).append(error)
                progress()
        return errors

    runs = _runs(robot, effort.search, (SEARCH_SEED,))
    finals = _runs(robot, effort.final, FINAL_SEEDS)
    named = [(motion.name, motion.duration) for motion in (*SEARCH_MOTIONS, SEARCH_LOOP)]
    return Subject(
        space=FILTER,
        start=start,
        swarm=True,
        described={"seconds": {name: effort.search * seconds for name, seconds in named}},
        cost=filter_cost(runs, start),
        final_cost=filter_cost(finals, start),
        shipped=start,
        contenders=lambda values: {
            "Table VI": EstimatorSettings(**published_values(FILTER)),
            "shipped": defaults,
            "tuned": EstimatorSettings(**values),
        },
        judge=judge,
        runs=len(HELD_OUT_MOTIONS) + len(loops),
        write=lambda values, path: write_yaml(values, path),
    )


def _runs(robot: Robot, longer: float, seeds: Sequence[int]) -> list[Run]:
    """Those of the search, so many times as long, for each seed."""
    loop = task_of(robot, replace(SEARCH_LOOP, duration=longer * SEARCH_LOOP.duration))
    recorded = [replace(motion, duration=longer * motion.duration) for motion in SEARCH_MOTIONS]
    runs: list[Run] = []
    for seed in seeds:
        runs += [partial(filtered, robot, record(robot, motion, seed)) for motion in recorded]
        runs.append(partial(looped, robot, loop, seed))
    return runs


def _judged(robot: Robot, recording: Recording, settings: EstimatorSettings) -> dict[str, float]:
    """What a filter makes of a motion, by the truth, after SETTLED."""
    try:
        run = filtered(robot, recording, settings)
    except (ArithmeticError, ValueError):  # the filter lost the numbers
        return dict.fromkeys(JUDGED, np.nan)
    settled = slice(min(round(SETTLED / PERIOD), len(run.positions) // 2), None)
    errors = 1e3 * run.positions, 1e3 * run.states, 100 * run.compliance
    means = (float(error[settled].mean()) for error in errors)
    return dict(zip(JUDGED, means, strict=True))


def _loop_error(robot: Robot, task: Task, settings: EstimatorSettings, seed: int) -> float:
    """Tip error [mm] of the shipped gradient MPC behind a filter."""
    try:
        trace = run_loop(
            robot, task.case, task.source, GRADIENT_MPC, (seed, seed), filter_settings=settings
        )
    except (ArithmeticError, ValueError):  # the filter lost the numbers, or drove the plant mad
        return np.nan
    return tip_error_mm(trace)
