"""How much each error of the model costs, one at a time: what to calibrate first.

Every value is a run of Experiment 4a's reference on a plant that differs in nothing else from the
usual one (bending compliance -5 %, tip mass +10 %, 20 intervals). The baseline has learned from the
usual plant, not from the changed one. What could be calibrated is also run with a gradient MPC that
estimates nothing, neither parameters nor lag, on a plant with that error alone: it costs there what
it costs before a filter has found it, or where none looks for it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from PIL import Image

from softcr_control.reference.settings import ReferenceSettings
from softcr_runtime.settings.registry import GRADIENT_MPC
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_studies.frame.study import Cell, Result, Results, Row, Study, StudySettings
from softcr_studies.loops import tracking_study
from softcr_studies.loops.closed_loop import mean_error_mm
from softcr_studies.loops.tracking_loop import FAST, SETTLED, Case, with_errors
from softcr_studies.loops.tracking_study import PLANT, SENSORS, SHIPPED, SIMPLER, Settings

DURATION = 4.0  # one period of the reference from SETTLED on [s]
EXACT = PlantErrors.noiseless(tip_noise=2e-4)
UNAIDED = f"{GRADIENT_MPC}, nothing estimated"
METHODS = (UNAIDED, *SHIPPED)
TIP = "tip_mm"
_POLE = 10.94  # of the file's pressure lag [1/s]
_USUAL_RUN = replace(FAST, name="usual plant", duration=DURATION, learned_on=FAST)
_EXACT_RUN = replace(_USUAL_RUN, name="exact plant", errors=EXACT, adaptive=False, learns_lag=False)
_IDENTIFY = "`softcr study run licher2025/identification`"

Change = Callable[[Case, float], Case]
Errors = Mapping[tuple[str, str], Sequence[float]]
"""(name of the case, method) -> settled tip error [mm] of every seed."""


@dataclass(frozen=True)
class Axis:
    """One thing that is varied."""

    name: str
    unit: str
    usual: float  # the value of the usual plant
    values: Sequence[float]  # the ends are the errors taken as plausible on a bench
    change: Change
    calibration: str = ""  # how it is found on a bench; empty: it is nothing to calibrate
    exact: float = 0.0  # the value that is no error

    @property
    def cases(self) -> dict[float, Case]:
        """Value -> its run."""
        return {value: self._varied(_USUAL_RUN, value) for value in self.values}

    @property
    def alone(self) -> dict[float, Case]:
        """Value -> its run with nothing estimated and no other error, if it can be calibrated."""
        values = self.values if self.calibration else ()
        return {value: self._varied(_EXACT_RUN, value, " alone") for value in values}

    def _varied(self, run: Case, value: float, suffix: str = "") -> Case:
        changed = self.change(run, value)
        if changed == run:
            return run
        return replace(changed, name=f"{self.name} {value:g} {self.unit}{suffix}")

    def errors(self, method: str, errors: Errors) -> dict[float, Sequence[float]]:
        """Value -> errors of a method, where it was run."""
        cases = self.alone if method == UNAIDED else self.cases
        return {value: errors[case.name, method] for value, case in cases.items()}

    def lost(self, method: str, errors: Errors) -> float | None:
        """Worst error on the axis, less that without the axis' error [mm]; None: not run."""
        means = {value: np.mean(each) for value, each in self.errors(method, errors).items()}
        without = self.exact if method == UNAIDED else self.usual
        return float(max(means.values()) - means[without]) if means else None


def _error(name: str, to: Callable[[float], Any]) -> Change:
    """Changes a plant error."""
    return lambda run, value: replace(run, errors=with_errors(run.errors, **{name: to(value)}))


def _factor(name: str) -> Change:
    """Changes a factor on the file's value by so many per cent."""
    return _error(name, lambda percent: 1 + percent / 100)


def _first(value: float, usual: float) -> tuple[float, ...]:
    """Of the first chamber alone."""
    return (usual,) if value == usual else (value, usual, usual)


def _intervals(run: Case, intervals: float) -> Case:
    return replace(run, plant_intervals=int(intervals))


def _finer_model(run: Case, intervals: float) -> Case:
    return replace(_intervals(run, intervals), model_intervals=10)


def _circle(run: Case, frequency: float) -> Case:
    circle = ReferenceSettings(kind="circle", frequency=frequency)
    return replace(run, reference=circle, duration=max(DURATION, 2 + 1 / frequency))


AXES = (
    Axis("bending compliance", "%", -5, (-15, -5, 0, 5, 15), _factor("bending_factor"),
         f"{_IDENTIFY}, statics"),
    Axis("tip mass", "%", 10, (0, 10, 25, 50), _factor("tip_mass_factor"),
         "scales, with cap, markers and hoses"),
    Axis("damping", "%", 0, (-30, 0, 30), _factor("damping_factor"),
         f"{_IDENTIFY}, a step to ambient"),
    Axis("pressure bias, chamber 1", "kPa", 0, (-2, -1, 0, 1, 2),
         _error("pressure_bias", lambda kpa: _first(1e3 * kpa, 0.0)),
         "readings of the vented chambers"),
    Axis("pressure gain", "%", 0, (-5, 0, 5), _factor("pressure_gain"),
         "a second gauge at two pressures"),
    Axis("lever arm, chamber 1", "%", 0, (-5, 0, 5),
         _error("lever_factor", lambda v: _first(1.0 + 0.01 * v, 1.0)),
         f"{_IDENTIFY}, single chambers"),
    Axis("lag pole", "1/s", _POLE, (9.0, _POLE, 13.0),
         _error("lag_pole_factor", lambda pole: pole / _POLE),
         f"{_IDENTIFY}, steps of the valves", exact=_POLE),
    Axis("tip noise", "mm", 0.2, (0.0, 0.2, 0.5, 1.0), _error("tip_noise", lambda mm: 1e-3 * mm)),
    Axis("pressure noise", "kPa", 0, (0, 0.1, 0.5),
         _error("pressure_noise", lambda kpa: 1e3 * kpa)),
    Axis("latency", "ticks", 0, (0, 1, 2, 3), lambda run, v: replace(run, latency=int(v))),
    Axis("missing poses", "%", 0, (0, 10, 50), _error("dropout", lambda v: 0.01 * v)),
    Axis("plant intervals", "-", 20, (5, 10, 20, 40), _intervals),
    Axis("plant intervals, model of 10", "-", 20, (5, 10, 20, 40), _finer_model),
    Axis("reference frequency", "Hz", 0.2, (0.2, 0.5, 1.0, 1.5, 2.0, 2.5), _circle),
)  # fmt: skip


def cases(settings: StudySettings | None = None) -> list[Case]:
    """Every run once: the usual one stands on most axes."""
    found = [case for axis in AXES for case in (*axis.cases.values(), *axis.alone.values())]
    return list({case.name: case for case in found}.values())


def run(cell: Cell) -> Result:
    """The settled tip error of one run [mm]."""
    method = GRADIENT_MPC if cell.method == UNAIDED else cell.method
    return {TIP: mean_error_mm(tracking_study.run(replace(cell, method=method)), SETTLED)}


def errors_of(results: Results) -> Errors:
    """Of every case and method."""
    return {owner: [each[TIP] for each in found] for owner, found in results.by_method().items()}


def rows(results: Results) -> Iterator[Row]:
    """A row per axis, method and value."""
    errors = errors_of(results)
    for axis in AXES:
        for method in METHODS:
            for value, found in axis.errors(method, errors).items():
                yield Row.of(axis.name, method, f"{value:g} {axis.unit}", found, "mm")


def draw(results: Results, directory: Path) -> None:
    """The heat map, and what to calibrate first."""
    errors = errors_of(results)
    (directory / "calibration.md").write_text(calibration(errors), encoding="utf-8")
    draw_map(directory / "model_errors.png", errors)


_INTRODUCTION = """### What to calibrate first

"Lost" is the mean tip error at the worst of the errors on the line, less that without the error,
in mm. The order is that of a controller that estimates nothing, on a plant with that error alone:
what costs most there is what a filter has to find first, and what is wrong until it has. The other
columns are the shipped controllers with their filter, and the Koopman baseline, on the usual plant,
which the baseline has learned from: an error is there what has changed since.
"""


def calibration(errors: Errors) -> str:
    """Markdown: the axes that can be calibrated by what they cost, then the others."""

    def cost(axis: Axis) -> float:
        return (axis.lost(UNAIDED, errors) or 0.0) if axis.calibration else -np.inf

    lines = [["", "what", "error", *(f"lost, {each} [mm]" for each in METHODS), "how"], ["---"] * 8]
    for rank, axis in enumerate(sorted(AXES, key=cost, reverse=True), start=1):
        values, unit = list(axis.cases), axis.unit
        span = f"{values[0]:g} {unit} ... {values[-1]:g} {unit}, usually {axis.usual:g} {unit}"
        lost = [axis.lost(method, errors) for method in METHODS]
        figures = ["" if each is None else f"{each:.2f}" for each in lost]
        number = str(rank) if axis.calibration else ""
        how = axis.calibration or "nothing to calibrate, but to know"
        lines.append([number, axis.name, span, *figures, how])
    return "\n".join([_INTRODUCTION, *(f"| {' | '.join(cells)} |" for cells in lines), ""])


def draw_map(path: Path, errors: Errors) -> None:
    """One heat map per method: a line for each axis, its values from left to right."""
    lines = AXES
    widest = max(len(axis.cases) for axis in lines)
    figure, grid = plt.subplots(
        2, 2, figsize=(12.0, 0.75 * len(lines) + 1.0), sharey=True, layout="constrained"
    )
    means = [float(np.mean(found)) for found in errors.values()]
    norm = LogNorm(min(means), max(means))
    for plot, method in zip(grid.flat, METHODS, strict=True):
        image = np.full((len(lines), widest), np.nan)
        for line, axis in enumerate(lines):
            for column, (value, found) in enumerate(axis.errors(method, errors).items()):
                error = image[line, column] = float(np.mean(found))
                plot.text(
                    column, line, f"{value:g} {axis.unit}\n{error:.2f}", fontsize=8,
                    ha="center", va="center", color="white" if norm(error) > 0.6 else "black",
                )  # fmt: skip
        shown = plot.imshow(image, cmap="YlOrRd", norm=norm, aspect="auto")
        plot.set_title(f"{method}: mean tip error [mm]")
        plot.set_xticks([])
        plot.set_yticks(range(len(lines)), [axis.name for axis in lines])
    figure.colorbar(shown, ax=grid, pad=0.01, aspect=60)
    figure.savefig(path, dpi=70)
    plt.close(figure)
    Image.open(path).quantize(64).save(path, optimize=True)  # a third of the size


STUDY = Study(
    name="robustness/model-errors",
    source="",
    summary="sensitivity to 14 model errors, one at a time, and what to calibrate first",
    run=run,
    cases=cases,
    methods=lambda case: SHIPPED if case.adaptive else (UNAIDED,),
    settings=Settings,
    exact=f"{SIMPLER}{PLANT}{SENSORS}One of these is changed in each row, which is the tip error "
    "from 2 s on. The Koopman baseline has learned from 15 minutes of the usual plant. Errors of "
    "structure (length, angles of the chambers, hysteresis, payload and more) are in the study "
    "robustness/plants.",
    further_rows=rows,
    draw=draw,
)
