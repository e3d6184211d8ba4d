"""Models of a pneumatic arm that keeps some of its stretch predict trials of mixed history.

The recording is shipped (ASU-RISE-Lab/4-chamber-softarm-control, MIT); see `recordings/models` for
what is done. Wide stops of the chambers are the arm's memory: where they begin in a trial is found
from its first 0.3 s, which the linear models know as well.
"""

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from softcr_studies.recordings import models

FIND = "stiffness,segments,gains,registration,markers,lag,venting,relaxation,hysteresis"


class Settings(models.Settings):
    """As of `recordings/models`; without a recording the shipped one is taken."""

    shipped: ClassVar = models.Shipped(
        "asu_motions.npz", "asu_motions_map.yaml", "asu_two_segments_guess.yaml"
    )
    find: str = Field(FIND, description=models.FITTED)
    hold_out: str = Field("apr4_4, mar7_1", description=models.PREDICTED)


STUDY = replace(
    models.STUDY,
    name="recordings/asu-two-segments",
    summary="a rod, Koopman and linear models predict a recorded arm that keeps its stretch",
    settings=Settings,
    needs=(),
)
