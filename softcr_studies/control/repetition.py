"""Learning over repetitions of a motion, on plants that are not the model."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from softcr_control.predictive.learned_motion import LearnedMotion, shift_after
from softcr_estimation.estimator_settings import in_words
from softcr_models import Robot, load_robot
from softcr_runtime.blocks.block import Output
from softcr_runtime.blocks.values import StateEstimate
from softcr_runtime.settings.registry import GRADIENT_MPC
from softcr_simulation.errors.plant_errors import load_plant_errors
from softcr_studies.frame.study import Cell, Result, Results, Row, Study
from softcr_studies.loops.closed_loop import mean_error_mm
from softcr_studies.loops.compared_loops import LOOPS, OURS, PLAIN, WITHOUT
from softcr_studies.loops.tracking_loop import FAST, PERIOD, SETTLED, reference_of, run_loop
from softcr_studies.robustness.plants import NAMED

REPETITIONS = 6  # after a first run without anything learned
DURATION = 6.0  # [s]
PLANTS = {
    "hard": load_plant_errors("hard"),
    "typical": load_plant_errors("typical"),
    "chamber 2 angle +3 deg": NAMED["chamber 2 angle +3 deg"],
    "play +-0.4, 1.0, 1.6 kPa": NAMED["play +-0.4, 1.0, 1.6 kPa"],
}


class Method(NamedTuple):
    """How a run is made.

    Attributes:
        loop: robot and filter of the loop.
        goes_on: whether a run's filter begins where the last one's ended, as the shipped one does;
            if not, with the numbers of the file.
    """

    loop: str
    goes_on: bool = True


METHODS: Mapping[str, Method] = {
    name + told: Method(name, goes_on)
    for name in (WITHOUT, OURS)
    for told, goes_on in (("", True), (", each filter from the file", False))
}


def run(cell: Cell) -> Result:
    """errors (REPETITIONS + 1,) settled error of the true tip in each run [mm]."""
    method, plain = METHODS[cell.method], load_robot(PLAIN)
    robot = load_robot(LOOPS[method.loop].robot)
    source = reference_of(plain, replace(FAST, duration=DURATION))
    shift, errors = np.zeros((round(DURATION / PERIOD), 3)), []
    numbers = LOOPS[method.loop].filter
    for repetition in range(REPETITIONS + 1):
        seen = _Seen(len(shift))
        found = run_loop(
            robot,
            replace(FAST, name=cell.case, duration=DURATION, errors=PLANTS[cell.case], beam=True),
            source,
            GRADIENT_MPC,
            (cell.stream(f"plant {repetition}"), cell.stream(f"controller {repetition}")),
            filter_settings=numbers,
            learned=_learned(robot, shift),
            observe=seen,
        )
        errors.append(mean_error_mm(found, SETTLED))
        shift = shift_after(shift, seen.filled() - found["wanted"])
        if method.goes_on:
            numbers = numbers.model_copy(update={"begins_with": in_words(seen.parameters)})
    return {"errors": np.array(errors)}


class _Seen:
    """What cameras saw of the tip, and what the filter found: all that may be learned from.

    Attributes:
        estimate: the last one.
    """

    estimate: StateEstimate

    def __init__(self, rows: int) -> None:
        self._tips = np.full((rows, 3), np.nan)

    def __call__(self, name: str, output: Output) -> None:
        row = round(1e-9 * output.stamp / PERIOD) - 1  # the first cycle ends a period from 0
        if output.topic == "mocap/tip/pose" and 0 <= row < len(self._tips):
            self._tips[row] = output.value.position
        elif output.topic == "estimate/rod":
            self.estimate = output.value

    @property
    def parameters(self) -> dict[str, float]:
        """Name -> last value of what was estimated."""
        deviations = self.estimate.parameters_std
        return {name: value for name, value in self.estimate.parameters.items() if deviations[name]}

    def filled(self) -> np.ndarray:
        """(T, 3) with lost poses between their neighbours [m]."""
        rows = np.arange(len(self._tips))
        known = np.isfinite(self._tips[:, 0])
        columns = [np.interp(rows, rows[known], each[known]) for each in self._tips.T]
        return np.stack(columns, axis=1)


def _learned(robot: Robot, shift: np.ndarray) -> LearnedMotion:
    return LearnedMotion(
        robot=robot.name, motion={}, period=PERIOD, errors=[], shift=shift.tolist()
    )


def rows(results: Results) -> Iterable[Row]:
    """The settled error after each number of repetitions."""
    for plant in PLANTS:
        for method in METHODS:
            errors = np.array([each["errors"] for each in results.of(plant, method)])
            for repetition, each in enumerate(errors.T):
                is_asked = plant == "hard" and method == OURS and repetition == 5
                asked = {"must": 0.25, "goal": 0.12} if is_asked else {}
                quantity = f"settled tip error after {repetition} repetitions"
                yield Row.of(plant, method, quantity, each, "mm", **asked)


STUDY = Study(
    name="control/repetition",
    source="",
    summary="learning over repetitions of a motion, on plants that are not the model",
    run=run,
    cases=tuple(PLANTS),
    methods=tuple(METHODS),
    further_rows=rows,
    exact="Plants are those of robustness/plants, on the trajectory of Experiment 4a for 6 s with "
    f"{GRADIENT_MPC}. What is learned is learned from measured tips alone, as `softcr learn "
    "motion` does with its usual gain and smoothing; what is told is the true tip from 2 s on. "
    "Every run has noise of its own, and its plant starts again. A run's filter begins with the "
    "parameters that the last run's ended with, and with the usual deviations; that of the first "
    "one, and where it is said, of each one, with the numbers of the file.",
    about={"repetitions": REPETITIONS, "duration_s": DURATION, "settled_from_s": SETTLED},
)  # fmt: skip
