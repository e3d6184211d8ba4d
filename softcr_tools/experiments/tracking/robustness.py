"""How much each way of not being the model costs, one at a time: what to calibrate first.

Every value is a run of Experiment 4a's reference on a plant that differs in nothing else from the
usual one (bending compliance -5 %, tip mass +10 %, 20 intervals). The rival has learned from the
usual plant, not from the changed one. What could be calibrated is also run with a gradient MPC that
estimates nothing, neither parameters nor lag, on a plant with that error alone: it costs there what
it costs before a filter has found it, or where none looks for it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from PIL import Image

from softcr_control.reference_settings import ReferenceSettings
from softcr_hardware.plant import Mismatch
from softcr_runtime.registry import GRADIENT_MPC
from softcr_tools.experiments.results import Row
from softcr_tools.experiments.tracking.cases import CONTROLLERS, Case, Difference

DURATION = 4.0  # one period of the reference from SETTLED on [s]
USUAL, EXACT = Difference(), Difference(mismatch=Mismatch())
_MOTION = ReferenceSettings(kind="trajectory")
UNAIDED = f"{GRADIENT_MPC}, nothing estimated"
METHODS = (*CONTROLLERS, UNAIDED)

Errors = Mapping[tuple[str, str], Sequence[float]]
"""(name of the case, controller) -> settled tip error [mm] of every seed."""


@dataclass(frozen=True)
class Axis:
    """One thing that is varied.

    Attributes:
        name, unit: of what stands on the axis.
        cases: value on the axis -> its run; its ends are the errors taken as plausible on a bench.
        usual: the value of the usual plant.
        alone: value -> its run with nothing estimated and no other error.
        exact: the value that is no error.
        calibration: how it is found on a bench; empty: it is nothing to calibrate.
    """

    name: str
    unit: str
    cases: Mapping[float, Case]
    usual: float
    alone: Mapping[float, Case] = field(default_factory=dict)
    exact: float = 0.0
    calibration: str = ""


def axes() -> tuple[Axis, ...]:
    """All of them."""
    percents, finer = (-5, 0, 5), (5, 10, 20, 40)
    identify = "`softcr experiment identification`"

    def rod(name: str) -> Callable[[Difference, float], Difference]:
        """Changes a factor of the mismatch by so many per cent."""
        return lambda d, v: replace(d, mismatch=replace(d.mismatch, **{name: 1 + v / 100}))

    return (
        _axis(
            "bending compliance", "%", -5, (-15, -5, 0, 5, 15), rod("bending_compliance_factor"),
            f"{identify}, statics",
        ),
        _axis(
            "tip mass", "%", 10, (0, 10, 25, 50), rod("tip_mass_factor"),
            "scales, with cap, markers and hoses",
        ),
        _axis(
            "damping", "%", 0, (-30, 0, 30), rod("damping_factor"), f"{identify}, a step to ambient"
        ),
        _axis(
            "pressure bias, chamber 1", "kPa", 0, (-2, -1, 0, 1, 2),
            lambda d, v: replace(d, pressure_bias=(1e3 * v, 0.0, 0.0)),
            "readings of the vented chambers",
        ),
        _axis(
            "pressure gain", "%", 0, percents,
            lambda d, v: replace(d, pressure_gain=1 + v / 100), "a second gauge at two pressures",
        ),
        _axis(
            "lever arm, chamber 1", "%", 0, percents,
            lambda d, v: replace(d, lever_factor=1 + v / 100), f"{identify}, single chambers",
        ),
        _axis(
            "lag pole", "1/s", 10.94, (9.0, 10.94, 13.0),
            lambda d, v: replace(d, lag_pole=None if v == 10.94 else v),
            f"{identify}, steps of the valves", exact=10.94,
        ),
        _axis(
            "tip noise", "mm", 0.2, (0.0, 0.2, 0.5, 1.0),
            lambda d, v: replace(d, tip_noise=1e-3 * v),
        ),
        _axis(
            "pressure noise", "kPa", 0, (0, 0.1, 0.5),
            lambda d, v: replace(d, pressure_noise=1e3 * v),
        ),
        _axis("latency", "ticks", 0, (0, 1, 2, 3), lambda d, v: replace(d, latency=int(v))),
        _axis("missing poses", "%", 0, (0, 10, 50), lambda d, v: replace(d, dropout=v / 100)),
        _axis("plant intervals", "-", 20, finer, lambda d, v: replace(d, intervals=int(v))),
        _finer_model(finer),
        Axis(
            "reference frequency",
            "Hz",
            {
                v: Case(
                    f"{v:g} Hz",
                    ReferenceSettings(kind="circle", frequency=v),
                    max(DURATION, 2 + 1 / v),
                    learned_on=USUAL,
                )
                for v in (0.2, 0.5, 1.0, 1.5, 2.0, 2.5)
            },
            usual=0.2,
        ),
    )  # fmt: skip


def cases_of(axes: Sequence[Axis]) -> list[Case]:
    """Every run once: the usual one stands on most axes."""
    cases = [case for axis in axes for case in (*axis.cases.values(), *axis.alone.values())]
    return list({case.name: case for case in cases}.values())


def rows_of(axes: Sequence[Axis], errors: Errors) -> list[Row]:
    """A row per axis, method and value."""
    rows = []
    for axis in axes:
        for method in METHODS:
            for value, found in _values(axis, method, errors).items():
                mean, sd, label = float(np.mean(found)), float(np.std(found)), f"{value:g}"
                rows.append(
                    Row(axis.name, method, f"{label} {axis.unit}", None, mean, sd, "mm", len(found))
                )
    return rows


def described() -> list[dict[str, str]]:
    """What the table's reader has to know of each axis beside its rows."""
    return [
        {
            "name": axis.name,
            "usual": f"{axis.usual:g} {axis.unit}",
            "exact": f"{axis.exact:g} {axis.unit}",
            "calibration": axis.calibration,
        }
        for axis in axes()
    ]


def draw(path: Path, axes: Sequence[Axis], errors: Errors) -> None:
    """One heat map per method: a line for each axis, its values from left to right."""
    widest = max(len(axis.cases) for axis in axes)
    figure, grid = plt.subplots(
        2, 2, figsize=(12.0, 0.75 * len(axes) + 1.0), sharey=True, layout="constrained"
    )
    means = [float(np.mean(found)) for found in errors.values()]
    norm = LogNorm(min(means), max(means))
    for plot, method in zip(grid.flat, METHODS, strict=True):
        image = np.full((len(axes), widest), np.nan)
        for line, axis in enumerate(axes):
            for column, (value, found) in enumerate(_values(axis, method, errors).items()):
                error = image[line, column] = float(np.mean(found))
                plot.text(
                    column, line, f"{value:g} {axis.unit}\n{error:.2f}", fontsize=8,
                    ha="center", va="center", color="white" if norm(error) > 0.6 else "black",
                )  # fmt: skip
        shown = plot.imshow(image, cmap="YlOrRd", norm=norm, aspect="auto")
        plot.set_title(f"{method}: mean tip error [mm]")
        plot.set_xticks([])
        plot.set_yticks(range(len(axes)), [axis.name for axis in axes])
    figure.colorbar(shown, ax=grid, pad=0.01, aspect=60)
    figure.savefig(path, dpi=70)
    plt.close(figure)
    Image.open(path).quantize(64).save(path, optimize=True)  # a third of the size


def _values(axis: Axis, method: str, errors: Errors) -> dict[float, Sequence[float]]:
    """Value on the axis -> errors of a method, where it was run."""
    if method == UNAIDED:
        return {value: errors[case.name, GRADIENT_MPC] for value, case in axis.alone.items()}
    return {value: errors[case.name, method] for value, case in axis.cases.items()}


def _axis(
    name: str,
    unit: str,
    usual: float,
    values: Sequence[float],
    change: Callable[[Difference, float], Difference],
    calibration: str = "",
    exact: float = 0.0,
) -> Axis:
    labels = {value: f"{name} {value:g} {unit}" for value in values}
    cases = {value: _case(label, change(USUAL, value)) for value, label in labels.items()}
    alone = {}
    if calibration:
        alone = {value: _alone(label, change(EXACT, value)) for value, label in labels.items()}
    return Axis(name, unit, cases, usual, alone, exact, calibration)


def _case(name: str, difference: Difference) -> Case:
    return Case(
        "usual plant" if difference == USUAL else name,
        _MOTION,
        DURATION,
        difference=difference,
        learned_on=USUAL,
    )


def _alone(name: str, difference: Difference) -> Case:
    return Case(
        "exact plant" if difference == EXACT else f"{name} alone",
        _MOTION,
        DURATION,
        difference=difference,
        adaptive=False,
        learns_lag=False,
        controllers=(GRADIENT_MPC,),
    )


def _finer_model(intervals: Sequence[float]) -> Axis:
    """The plant's refinement against a controller and filter of ten intervals instead of five."""
    name = "plant intervals, model of 10"
    cases = {}
    for value in intervals:
        case = _case("", replace(USUAL, intervals=int(value)))
        cases[value] = replace(case, name=f"{name}: {value:g}", model_intervals=10)
    return Axis(name, "-", cases, 20)
