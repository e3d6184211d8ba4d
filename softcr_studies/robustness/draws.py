"""Ours whole on a hundred random plants: worst, 95 % and median. They took no part in any choice.

A seed is a plant. The numbers of chain and filter are chosen in `tuning/chain`, on other plants in
another motion.
"""

from collections.abc import Iterable
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from pydantic import Field

from softcr_studies.frame.study import Cell, Result, Results, Row, Study, StudySettings
from softcr_studies.loops import drawn_plants
from softcr_studies.loops.compared_loops import LOOPS, OURS
from softcr_studies.loops.drawn_plants import ERROR, TEST_MOTIONS

MUSTS = {"median": 0.4, "95 %": 0.8, "worst": 3.0}  # [mm]


class Settings(StudySettings):
    """See StudySettings."""

    seeds: int = Field(100, ge=1, le=1000, description="number of random plants")


def run(cell: Cell) -> Result:
    """One plant in one motion."""
    return drawn_plants.run_drawn(cell, LOOPS[cell.method])


def rows(results: Results) -> Iterable[Row]:
    """Of each motion."""
    return drawn_plants.summary_rows(results, MUSTS, [each.name for each in TEST_MOTIONS])


def draw(results: Results, directory: Path) -> None:
    """How many plants have at most an error."""
    figure, plot = plt.subplots(figsize=(6.0, 3.0), layout="constrained")
    for (case, _), found in results.by_method().items():
        errors = np.sort([each[ERROR] for each in found])
        plot.step(errors, 100.0 * np.arange(1, len(errors) + 1) / len(errors), label=case)
    plot.set_xscale("log")
    plot.set_xlabel("settled tip error [mm]")
    plot.set_ylabel("plants [%]")
    plot.legend()
    figure.savefig(directory / "draws.png", dpi=80)
    plt.close(figure)


STUDY = Study(
    name="robustness/draws",
    source="",
    summary="the headline's loop on a hundred random plants: worst, 95 % and median",
    run=run,
    cases=TEST_MOTIONS,
    methods=(OURS,),
    settings=Settings,
    exact=f"{drawn_plants.SPLIT}These are the TEST draws, a seed is a plant. Errors count from 2 s "
    f"to 6 s; a run whose filter or plant was lost counts {drawn_plants.LOST_MM:g} mm.",
    further_rows=rows,
    draw=draw,
)
