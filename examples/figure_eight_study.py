"""A study in one file: two controllers on a new reference, three seeds.

    softcr study run examples/figure_eight_study.py

The reference is made here, too: the tip draws a figure of eight. The plant is the exact rod with
twice as many intervals as the model and 5 % stiffer; the structure of the equations is the same.
"""

from pathlib import Path

import numpy as np
from pydantic import BaseModel, Field

from softcr_control.reference.references import Reference
from softcr_studies.frame.study import Cell, Metric, Must, Result, Seeds, Study, StudySettings
from softcr_studies.loops.closed_loop import closed_loop, mean_error_mm, tracked

DURATION, SETTLED = 5.0, 2.0  # [s]
HEIGHT = 0.166  # of the figure above the base [m]
WIDTHS = {"narrow": 0.01, "wide": 0.03}  # of the figure [m]
METHODS = {"nempc": {"population": 64}, "rod_mpc": {}}  # controllers and their settings
PLANT = {"intervals": 10, "errors": "bending_factor=0.95"}


class FigureSettings(BaseModel):
    """How wide the figure is."""

    width: float = Field(0.01, gt=0.0, le=0.1, json_schema_extra={"unit": "m"})


class FigureEight:
    """Where the tip should be; a reference like any other from outside."""

    Settings = FigureSettings

    def __init__(self, context, settings: FigureSettings) -> None:
        self.period, self.width = context.period, settings.width

    def window(self, time: float, rows: int) -> Reference:
        """The rows from `time` [s] on; it begins at rest."""
        t = time + self.period * np.arange(rows)
        size = self.width * (1 - np.cos(np.pi * np.minimum(t, 1.0))) / 2
        x, y = size * np.sin(np.pi * t), size * np.sin(2 * np.pi * t) / 2
        return Reference(time, self.period, None, np.stack([x, y, HEIGHT + 0 * t], axis=1))


def run(cell: Cell) -> Result:
    """One case, one controller, one seed."""
    differs = {
        "plant": PLANT,
        "reference": {"width": WIDTHS[cell.case]},
        "controller": METHODS[cell.method],
    }
    reference = f"{Path(__file__).resolve()}:FigureEight"
    found = tracked(cell, closed_loop(cell, cell.method, reference, duration=DURATION, of=differs))
    return {
        "whole": mean_error_mm(found),
        "settled": mean_error_mm(found, SETTLED),
        "tick": float(1e3 * np.median(found["ticks"])),
    }


class Settings(StudySettings):
    """Three seeds unless `--seeds` says otherwise."""

    seeds: Seeds = 3


STUDY = Study(
    name="examples/figure-eight",
    source="",
    summary="both predictive controllers on a figure of eight",
    run=run,
    cases=tuple(WIDTHS),
    methods=tuple(METHODS),
    settings=Settings,
    metrics=(
        Metric("tip error, whole run", "mm", "whole"),
        Metric("tip error from 2 s on", "mm", "settled"),
        Metric("median tick", "ms", "tick", timing=True),
    ),
    musts=(Must("tip error from 2 s on", 1.0, case="narrow"),),
    exact="Plant and model share their equations; intervals and compliance differ.",
)
