"""How far ahead the gradient MPC looks with the pressure chain, and where its knots are: chosen at
rest, in slow and in fast motion of some random plants, judged on others.

On a plant that is the model a long horizon is the better one; on plants that are not, what is
predicted late is wrong. A horizon that is too short makes the commands swing after a jump, so a
setpoint is among the motions. The variant with the smallest mean error over the three motions of
the TRAIN plants is run on the TEST plants, beside the shipped one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pydantic import Field

from softcr_runtime.blocks.system import Parameters
from softcr_studies.frame.study import Cell, Result, Results, Study, StudySettings
from softcr_studies.loops import drawn_plants
from softcr_studies.loops.compared_loops import LOOPS, OURS
from softcr_studies.loops.drawn_plants import ALL_TEST_MOTIONS, ALL_TRAIN_MOTIONS


def _told(*knots: int) -> tuple[str, Parameters]:
    numbers: list[float] = [*knots]
    return f"knots {', '.join(map(str, knots))}", {"horizon": knots[-1], "knots": numbers}


VARIANTS: Mapping[str, Parameters] = dict(
    [_told(1, 7), _told(2, 8), _told(1, 8), _told(1, 5, 8), _told(2, 7), _told(1, 6), _told(1, 5)]
)
"""By the method's name; the last knot is the horizon's last tick."""

SHIPPED = next(iter(VARIANTS))


class Settings(StudySettings):
    """See StudySettings."""

    seeds: int = Field(12, ge=2, le=1000, description="random plants of each split")


def run(cell: Cell) -> Result:
    """One plant with knots."""
    ours = LOOPS[OURS]
    told = {**ours.parameters, **VARIANTS[cell.method]}
    return drawn_plants.run_drawn(cell, replace(ours, parameters=told))


def later(results: Results) -> Iterable[Cell]:
    """The TEST plants, with the shipped knots and the chosen ones."""
    return drawn_plants.judged(results, SHIPPED, ALL_TEST_MOTIONS)


STUDY = Study(
    name="tuning/horizon",
    source="",
    summary="horizon and knots of the gradient MPC with the pressure chain, on random plants",
    run=run,
    cases=ALL_TRAIN_MOTIONS,
    methods=tuple(VARIANTS),
    settings=Settings,
    exact=f"{drawn_plants.SPLIT}A seed is a plant. Knots are counted in ticks of 1/70 s, the last "
    "one is the end of the horizon. The variant with the smallest mean error over all TRAIN plants "
    "and motions is judged on the TEST plants, beside the shipped one. Errors count from 2 s to "
    f"6 s; a run counts {drawn_plants.LOST_MM:g} mm at most.",
    further_rows=drawn_plants.choice_rows,
    later=later,
)
