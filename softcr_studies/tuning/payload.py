"""How fast a filter lets the payload walk, and when: chosen on random plants that pick something up
or nothing, judged on others.

What finds a payload soon takes up other errors soon as well, so both are run. The variant with the
smallest mean error over the TRAIN plants is run on the TEST plants, beside none.
"""

from collections.abc import Iterable
from dataclasses import replace

from pydantic import Field

from softcr_models.rod.parameters import PAYLOAD
from softcr_studies.frame.study import Cell, Result, Results, Study, StudySettings
from softcr_studies.loops import drawn_plants
from softcr_studies.loops.compared_loops import EVERYTHING, LOOPS, OURS
from softcr_studies.loops.drawn_plants import TEST_MOTIONS, TRAIN_MOTION

NONE = "walk 0"
WALKS = {f"walk {walk:g}": walk for walk in (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)}
"""While an event is found, of the robot's own mass, by the method's name [1/sqrt(s)]."""

TRAINED = (TRAIN_MOTION, replace(TRAIN_MOTION, name=f"{TRAIN_MOTION.name}, payload", payloads=True))
JUDGED = (
    *TEST_MOTIONS,
    *(replace(each, name=f"{each.name}, payload", payloads=True) for each in TEST_MOTIONS),
)


class Settings(StudySettings):
    """See StudySettings."""

    seeds: int = Field(12, ge=2, le=1000, description="random plants of each split")


def run(cell: Cell) -> Result:
    """One plant with a walk of the payload."""
    told = {"openings": {PAYLOAD.name: WALKS[cell.method]}}
    return drawn_plants.run_drawn(
        cell, replace(LOOPS[OURS], filter=EVERYTHING.model_copy(update=told))
    )


def later(results: Results) -> Iterable[Cell]:
    """The TEST plants, without a walk and with the chosen one."""
    return drawn_plants.judged(results, NONE, JUDGED)


STUDY = Study(
    name="tuning/payload",
    source="",
    summary="how fast a payload may walk while an event is found, on random plants",
    run=run,
    cases=TRAINED,
    methods=tuple(WALKS),
    settings=Settings,
    exact=f"{drawn_plants.SPLIT}A seed is a plant, and a payload of up to 50 g that it picks up "
    "between 2 s and 4 s where the row says so. The walk is that of the payload while an event is "
    "found, in parts of the robot's own mass. The one with the smallest mean error over all TRAIN "
    "plants and motions is judged on the TEST plants. Errors count from 2 s to 6 s, so while the "
    "payload is found, too; a run whose filter or plant was lost counts "
    f"{drawn_plants.LOST_MM:g} mm.",
    further_rows=drawn_plants.choice_rows,
    later=later,
)
