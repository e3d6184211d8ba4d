"""How fast the chain's loop learns where tips end beside their prediction: chosen at rest, in slow
and in fast motion of some random plants, judged on others.

What a loop at rest lacks is a steady offset, which a slow low-pass finds; what a fast one follows
is noise and the motion's own errors. The gain with the smallest mean error over the three motions
of the TRAIN plants is run on the TEST plants, beside none.
"""

from collections.abc import Iterable
from dataclasses import replace

from pydantic import Field

from softcr_studies.frame.study import Cell, Result, Results, Study, StudySettings
from softcr_studies.loops import drawn_plants
from softcr_studies.loops.compared_loops import LOOPS, OURS
from softcr_studies.loops.drawn_plants import ALL_TEST_MOTIONS, ALL_TRAIN_MOTIONS

NONE = "no offset"
GAINS = {NONE: 0.0} | {f"gain {gain:g}": gain for gain in (0.005, 0.01, 0.02, 0.04)}
"""Per tick, by the method's name [-]."""


class Settings(StudySettings):
    """See StudySettings."""

    seeds: int = Field(12, ge=2, le=1000, description="random plants of each split")


def run(cell: Cell) -> Result:
    """One plant with a gain."""
    ours = LOOPS[OURS]
    told = {**ours.parameters, "tip_offset_gain": GAINS[cell.method]}
    return drawn_plants.run_drawn(cell, replace(ours, parameters=told))


def later(results: Results) -> Iterable[Cell]:
    """The TEST plants, without an offset and with the chosen gain."""
    return drawn_plants.judged(results, NONE, ALL_TEST_MOTIONS)


STUDY = Study(
    name="tuning/tip-offsets",
    source="",
    summary="the gain of offset-free prediction with the pressure chain, on random plants",
    run=run,
    cases=ALL_TRAIN_MOTIONS,
    methods=tuple(GAINS),
    settings=Settings,
    exact=f"{drawn_plants.SPLIT}A seed is a plant. The gain is per tick of 70 Hz, of the low-pass "
    "that learns where tips end beside their prediction. The one with the smallest mean error "
    "over all TRAIN plants and motions is judged on the TEST plants. Errors count from 2 s to 6 s; "
    f"a run whose filter or plant was lost counts {drawn_plants.LOST_MM:g} mm.",
    further_rows=drawn_plants.choice_rows,
    later=later,
)
