"""How much each error of the model costs, one at a time: what to calibrate first.

Every value is a run of Experiment 4a's reference on a plant that differs in nothing else from the
usual one (bending compliance -5 %, tip mass +10 %, 20 intervals). The baseline has learned from the
usual plant, not from the changed one. What could be calibrated is also run with a gradient MPC that
estimates nothing, neither parameters nor lag, on a plant with that error alone: it costs there what
it costs before a filter has found it, or where none looks for it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from PIL import Image

from softcr_control.reference_settings import ReferenceSettings
from softcr_hardware.plant import Mismatch
from softcr_runtime.registry import GRADIENT_MPC
from softcr_studies import tracking_study
from softcr_studies.closed_loop import mean_error_mm
from softcr_studies.different_plant import Difference
from softcr_studies.study import Cell, Result, Results, Row, Study, StudySettings
from softcr_studies.tracking_loop import FAST, SETTLED, Case
from softcr_studies.tracking_study import PLANT, SENSORS, SHIPPED, SIMPLER, Settings

DURATION = 4.0  # one period of the reference from SETTLED on [s]
USUAL, EXACT = Difference(), Difference(mismatch=Mismatch())
UNAIDED = f"{GRADIENT_MPC}, nothing estimated"
METHODS = (UNAIDED, *SHIPPED)
TIP = "tip_mm"
_POLE = 10.94  # of the file's pressure lag [1/s]
_RUN = replace(FAST, duration=DURATION, learned_on=USUAL)

Change = Callable[[Difference, float], Difference]
Errors = Mapping[tuple[str, str], Sequence[float]]
"""(name of the case, method) -> settled tip error [mm] of every seed."""


@dataclass(frozen=True)
class Axis:
    """One thing that is varied."""

    name: str
    unit: str
    # value on the axis -> its run; its ends are the errors taken as plausible on a bench
    cases: Mapping[float, Case]
    usual: float  # the value of the usual plant
    # value -> its run with nothing estimated and no other error
    alone: Mapping[float, Case] = field(default_factory=dict)
    exact: float = 0.0  # the value that is no error
    calibration: str = ""  # how it is found on a bench; empty: it is nothing to calibrate

    def errors(self, method: str, errors: Errors) -> dict[float, Sequence[float]]:
        """Value -> errors of a method, where it was run."""
        cases = self.alone if method == UNAIDED else self.cases
        return {value: errors[case.name, method] for value, case in cases.items()}

    def lost(self, method: str, errors: Errors) -> float | None:
        """Worst error on the axis, less that without the axis' error [mm]; None: not run."""
        means = {value: np.mean(each) for value, each in self.errors(method, errors).items()}
        without = self.exact if method == UNAIDED else self.usual
        return float(max(means.values()) - means[without]) if means else None


def _rod(name: str) -> Change:
    """Changes a factor of the mismatch by so many per cent."""
    return lambda d, v: replace(d, mismatch=replace(d.mismatch, **{name: 1 + v / 100}))


def _set(name: str, scale: float = 1.0, base: float = 0.0) -> Change:
    """Changes something else."""
    return lambda d, v: replace(d, **{name: base + scale * v})  # type: ignore[arg-type]


def _bias(difference: Difference, value: float) -> Difference:
    return replace(difference, pressure_bias=(1e3 * value, 0.0, 0.0))


def _lag(difference: Difference, value: float) -> Difference:
    return replace(difference, lag_pole=None if value == _POLE else value)


def axes() -> tuple[Axis, ...]:
    """All of them."""
    percents, finer = (-5, 0, 5), (5, 10, 20, 40)
    identify = "`softcr study run licher2025/identification`"
    circles = {
        v: replace(
            _RUN, name=f"{v:g} Hz", reference=ReferenceSettings(kind="circle", frequency=v),
            duration=max(DURATION, 2 + 1 / v),
        )
        for v in (0.2, 0.5, 1.0, 1.5, 2.0, 2.5)
    }  # fmt: skip
    return (
        _axis("bending compliance", "%", -5, (-15, -5, 0, 5, 15),
              _rod("bending_compliance_factor"), f"{identify}, statics"),
        _axis("tip mass", "%", 10, (0, 10, 25, 50), _rod("tip_mass_factor"),
              "scales, with cap, markers and hoses"),
        _axis("damping", "%", 0, (-30, 0, 30), _rod("damping_factor"),
              f"{identify}, a step to ambient"),
        _axis("pressure bias, chamber 1", "kPa", 0, (-2, -1, 0, 1, 2), _bias,
              "readings of the vented chambers"),
        _axis("pressure gain", "%", 0, percents, _set("pressure_gain", 0.01, 1.0),
              "a second gauge at two pressures"),
        _axis("lever arm, chamber 1", "%", 0, percents, _set("lever_factor", 0.01, 1.0),
              f"{identify}, single chambers"),
        _axis("lag pole", "1/s", _POLE, (9.0, _POLE, 13.0), _lag,
              f"{identify}, steps of the valves", exact=_POLE),
        _axis("tip noise", "mm", 0.2, (0.0, 0.2, 0.5, 1.0), _set("tip_noise", 1e-3)),
        _axis("pressure noise", "kPa", 0, (0, 0.1, 0.5), _set("pressure_noise", 1e3)),
        _axis("latency", "ticks", 0, (0, 1, 2, 3), _set("latency", 1, 0)),
        _axis("missing poses", "%", 0, (0, 10, 50), _set("dropout", 0.01)),
        _axis("plant intervals", "-", 20, finer, _set("intervals", 1, 0)),
        _axis("plant intervals, model of 10", "-", 20, finer, _set("intervals", 1, 0),
              model_intervals=10),
        Axis("reference frequency", "Hz", circles, usual=0.2),
    )  # fmt: skip


def cases(settings: StudySettings | None = None) -> list[Case]:
    """Every run once: the usual one stands on most axes."""
    found = [case for axis in axes() for case in (*axis.cases.values(), *axis.alone.values())]
    return list({case.name: case for case in found}.values())


def methods(case: Case) -> Sequence[str]:
    """Who runs a case."""
    return SHIPPED if case.adaptive else (UNAIDED,)


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
    for axis in axes():
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
    for rank, axis in enumerate(sorted(axes(), key=cost, reverse=True), start=1):
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
    lines = axes()
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


def _axis(
    name: str,
    unit: str,
    usual: float,
    values: Sequence[float],
    change: Change,
    calibration: str = "",
    exact: float = 0.0,
    model_intervals: int = _RUN.model_intervals,
) -> Axis:
    """An axis of runs that change the usual plant and, to be calibrated, an exact one."""
    given = replace(_RUN, model_intervals=model_intervals)
    unaided = replace(_RUN, adaptive=False, learns_lag=False)
    cases, alone = {}, {}
    for value in values:
        label, changed = f"{name} {value:g} {unit}", change(USUAL, value)
        cases[value] = replace(given, name=label, difference=changed)
        if cases[value] == replace(_RUN, name=label):
            cases[value] = replace(_RUN, name="usual plant")
        if calibration:
            changed = change(EXACT, value)
            label = "exact plant" if changed == EXACT else f"{label} alone"
            alone[value] = replace(unaided, name=label, difference=changed)
    return Axis(name, unit, cases, usual, alone, exact, calibration)


STUDY = Study(
    name="robustness/model-errors",
    source="",
    summary="sensitivity to 14 model errors, one at a time, and what to calibrate first",
    run=run,
    cases=cases,
    methods=methods,
    settings=Settings,
    exact=f"{SIMPLER}{PLANT}{SENSORS}One of these is changed in each row, which is the tip error "
    "from 2 s on. The Koopman baseline has learned from 15 minutes of the usual plant. Errors of "
    "other parameters (length, angles of the chambers, hysteresis, payload) are not on the map.",
    further_rows=rows,
    draw=draw,
)
