"""How much each way of not being the model costs, one at a time: what to calibrate first.

Every value is a run of Experiment 4a's reference on a plant that differs in nothing else from the
usual one (bending compliance -5 %, tip mass +10 %, 20 intervals). The rival has learned from the
usual plant, not from the changed one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from softcr_control.reference_settings import ReferenceSettings
from softcr_tools.experiments.results import Row
from softcr_tools.experiments.tracking.cases import CONTROLLERS, Case, Difference

DURATION = 6.0  # [s]
USUAL = Difference()


@dataclass(frozen=True)
class Axis:
    """One thing that is varied.

    Attributes:
        name, unit: of what stands on the axis.
        cases: value on the axis -> its run.
    """

    name: str
    unit: str
    cases: Mapping[float, Case]


def axes() -> tuple[Axis, ...]:
    """All of them."""
    return (
        _rod("bending compliance", "bending_compliance_factor", (-15, -5, 0, 5, 15)),
        _rod("tip mass", "tip_mass_factor", (0, 10, 25, 50)),
        _rod("damping", "damping_factor", (-30, 0, 30)),
        _axis(
            "pressure bias, chamber 1",
            "kPa",
            {v: {"pressure_bias": (1e3 * v, 0.0, 0.0)} for v in (-2, -1, 0, 1, 2)},
        ),
        _axis("pressure gain", "%", {v: {"pressure_gain": 1 + v / 100} for v in (-5, 0, 5)}),
        _axis("lever arm, chamber 1", "%", {v: {"lever_factor": 1 + v / 100} for v in (-5, 0, 5)}),
        _axis("lag pole", "1/s", {v: {"lag_pole": v} for v in (9.0, 10.94, 13.0)}),
        _axis("tip noise", "mm", {v: {"tip_noise": 1e-3 * v} for v in (0.0, 0.2, 0.5, 1.0)}),
        _axis("missing poses", "%", {v: {"dropout": v / 100} for v in (0, 10, 50)}),
        _axis("plant intervals", "-", {v: {"intervals": v} for v in (5, 10, 20, 40)}),
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
        ),
    )


def rows_of(axes: Sequence[Axis], errors: Mapping[tuple[str, str], Sequence[float]]) -> list[Row]:
    """A row per value and controller.

    Args:
        errors: (name of the case, controller) -> settled tip error [mm] of every seed.
    """
    return [
        Row(
            axis.name,
            controller,
            f"{value:g} {axis.unit}",
            None,
            float(np.mean(errors[case.name, controller])),
            float(np.std(errors[case.name, controller])),
            "mm",
            len(errors[case.name, controller]),
        )
        for axis in axes
        for controller in CONTROLLERS
        for value, case in axis.cases.items()
    ]


def draw(
    path: Path, axes: Sequence[Axis], errors: Mapping[tuple[str, str], Sequence[float]]
) -> None:
    """One heat map per controller: a line for each axis, its values from left to right."""
    widest = max(len(axis.cases) for axis in axes)
    figure, grid = plt.subplots(
        1, len(CONTROLLERS), figsize=(8.0 * len(CONTROLLERS), 0.6 * len(axes) + 1.5), sharey=True
    )
    for plot, controller in zip(grid, CONTROLLERS, strict=True):
        image = np.full((len(axes), widest), np.nan)
        for line, axis in enumerate(axes):
            for column, (value, case) in enumerate(axis.cases.items()):
                error = float(np.mean(errors[case.name, controller]))
                image[line, column] = error
                plot.text(
                    column, line, f"{value:g} {axis.unit}\n{error:.2f} mm",
                    ha="center", va="center", fontsize=8,
                )  # fmt: skip
        shown = plot.imshow(image, cmap="YlOrRd", norm="log", aspect="auto")
        plot.set_title(f"{controller}: mean tip error [mm]")
        plot.set_xticks([])
        plot.set_yticks(range(len(axes)), [axis.name for axis in axes])
        figure.colorbar(shown, ax=plot)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _rod(name: str, factor: str, percents: Sequence[float]) -> Axis:
    return _axis(
        name,
        "%",
        {v: {"mismatch": replace(USUAL.mismatch, **{factor: 1 + v / 100})} for v in percents},
    )


def _axis(name: str, unit: str, changes: Mapping[float, Mapping[str, object]]) -> Axis:
    reference = ReferenceSettings(kind="trajectory")
    return Axis(
        name,
        unit,
        {
            value: Case(
                f"{name} {value:g} {unit}",
                reference,
                DURATION,
                difference=Difference(**{**vars(USUAL), **change}),
                learned_on=USUAL,
            )
            for value, change in changes.items()
        },
    )
