"""Random plants for choosing numbers and for judging them, which never meet.

TRAIN: what numbers are chosen on, draws of one stream of random numbers, in Experiment 4a's motion
to 1.5 Hz where a study names no others. TEST: what they are judged on, draws of another stream in
other motions. Every draw takes each field of `PlantErrors` evenly from its spread, but for
calibration and events.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcr_control.reference.settings import ReferenceSettings
from softcr_models import load_robot
from softcr_simulation.errors.plant_errors import PlantErrors, about_field
from softcr_studies.frame.study import Cell, Result, Results, Row
from softcr_studies.loops.closed_loop import mean_error_mm
from softcr_studies.loops.compared_loops import (
    LOCK_IN_METRICS,
    PLAIN,
    SILENT_TIP,
    WARNED,
    Loop,
    run_whole,
    silent_percent,
)
from softcr_studies.loops.tracking_loop import SETTLED, Case, reference_of

DURATION = 6.0  # [s]
TRAIN, TEST = "train", "test"
ERROR, LOST = "settled tip error", "lost runs"
LOST_MM = 100.0
"""What a run counts whose filter or plant was lost, about the length of the robot [mm]."""


@dataclass(frozen=True)
class Motion:
    """What drawn plants are asked to do.

    Attributes:
        name: of the row.
        split: TRAIN or TEST.
        reference: what to follow.
        payloads: whether something is picked up on the way, see `PICKED_UP`.
    """

    name: str
    split: str
    reference: ReferenceSettings
    payloads: bool = False


TRAIN_MOTION = Motion("train: motion to 1.5 Hz", TRAIN, ReferenceSettings(kind="trajectory"))
TEST_MOTIONS = (
    Motion("test: circle of 0.6 Hz", TEST, ReferenceSettings(kind="circle", frequency=0.6)),
    Motion(
        "test: motion to 1.3 Hz", TEST,
        ReferenceSettings(kind="trajectory", frequencies=(0.3, 0.8, 1.3)),
    ),
)  # fmt: skip
ALL_TRAIN_MOTIONS = (
    TRAIN_MOTION,
    Motion(
        "train: slow motion to 0.3 Hz", TRAIN,
        ReferenceSettings(kind="trajectory", frequencies=(0.1, 0.2, 0.3)),
    ),
    Motion(
        "train: setpoint", TRAIN, ReferenceSettings(kind="setpoint", inputs=(20e3, 40e3, 30e3))
    ),
)  # fmt: skip
ALL_TEST_MOTIONS = (
    *TEST_MOTIONS,
    Motion("test: setpoint", TEST, ReferenceSettings(kind="setpoint", inputs=(35e3, 10e3, 40e3))),
)
"""With slow ones and at rest, for what is not to be chosen on fast motions alone."""

SPLIT = (
    "Plants are drawn, each field of a plant's errors evenly from its spread but for calibration "
    "and events: hysteresis as play or as a smooth loop, hoses, dead bands, lost and wrong poses "
    "among them. Numbers are chosen on TRAIN draws; TEST draws are of another stream of random "
    "numbers and in other motions. "
)


PICKED_UP = ("payload_mass", "payload_picked_up")
"""Fields of a payload, drawn by themselves: what the plant is else does not depend on them."""


def errors_of(cell: Cell) -> PlantErrors:
    """The draw of a cell's split and seed, with a payload where its motion has any."""
    split = cell.case.split
    errors = PlantErrors.draw(cell.random(f"{split} plants"), load_robot(PLAIN))
    if not cell.case.payloads:
        return errors
    random = cell.random(f"{split} payloads")
    drawn = errors.model_dump()
    for name in PICKED_UP:
        spread = about_field(name).spread
        assert spread is not None
        drawn[name] = random.uniform(*spread)
    return PlantErrors(**drawn)


def run_drawn(cell: Cell, loop: Loop) -> Result:
    """The settled tip error of a loop on the cell's plant [mm], and how it is locked in [%]."""
    errors = errors_of(cell)
    case = Case(cell.case.name, cell.case.reference, DURATION, errors=errors, beam=True)
    told: dict[str, Any] = {ERROR: LOST_MM, LOST: 1.0}
    try:
        result = run_whole(cell, case, reference_of(load_robot(PLAIN), case), loop)
    except (ArithmeticError, ValueError):
        return told
    silent = {
        SILENT_TIP: silent_percent(result, "tip_sigmas"),
        WARNED: LOCK_IN_METRICS[-1].of(result),
    }
    return {ERROR: min(mean_error_mm(result, SETTLED), LOST_MM), LOST: 0.0, **silent}


def summary_rows(results: Results, musts: dict[str, float], cases: Sequence[str]) -> Iterable[Row]:
    """Median, 95 % and worst of the plants of each case and method, and how many runs were lost.

    Args:
        results: of `run_drawn`.
        musts: "median", "95 %", "worst" -> bound [mm]; they hold in `cases`.
        cases: names.
    """
    for (case, method), found in results.by_method().items():
        errors = np.array([each[ERROR] for each in found])
        figures = {
            "median": float(np.median(errors)),
            "95 %": float(np.quantile(errors, 0.95)),
            "worst": float(errors.max()),
        }
        for name, value in figures.items():
            bound = musts.get(name) if case in cases else None
            yield Row(
                case, method, f"{ERROR}, {name}", value, 0.0, "mm", len(found), must=bound
            )  # fmt: skip
        lost = sum(each[LOST] for each in found)
        yield Row(case, method, LOST, float(lost), 0.0, "-", len(found))
        for name in (SILENT_TIP, WARNED):
            values = [each[name] for each in found if name in each]
            if values:
                yield Row.of(case, method, name, values, "%")


def chosen_on_train(results: Results) -> str:
    """The method with the smallest mean error over the TRAIN plants and their motions."""
    errors: dict[str, list[float]] = {}
    for cell in results.cells:
        if cell.case.split == TRAIN:
            errors.setdefault(cell.method, []).append(results[cell][ERROR])
    return min(errors, key=lambda method: float(np.mean(errors[method])))


def judged(results: Results, shipped: str, motions: Sequence[Motion]) -> list[Cell]:
    """The TEST plants in some motions, for the shipped method and the chosen one."""
    methods = dict.fromkeys((shipped, chosen_on_train(results)))
    return [
        Cell(motion, method, seed, results.settings)
        for seed in range(results.settings.seeds)
        for motion in motions
        for method in methods
    ]


def choice_rows(results: Results) -> Iterable[Row]:
    """The mean of each TRAIN motion and method, which decided, then those of `summary_rows`."""
    best = chosen_on_train(results)
    trained = dict.fromkeys(cell.case_name for cell in results.cells if cell.case.split == TRAIN)
    for (case, method), found in results.by_method().items():
        if case in trained:
            errors = [each[ERROR] for each in found]
            note = "chosen" if method == best else ""
            yield Row.of(case, method, f"{ERROR}, mean", errors, "mm", note=note)
    yield from summary_rows(results, {}, ())
