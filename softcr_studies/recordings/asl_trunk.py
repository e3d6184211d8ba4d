"""Models of a trunk with six motors predict inputs that they were not fitted to, and another day.

The recording is shipped (StanfordASL/trunk-stack, MIT); see `recordings/models` for what is done.
Fitted are 100 s without payload and 100 s under 0.3 kg; held out are the 50 s that follow each, and
another day's trial without payload, for which tendons and cameras had been set anew: its first 30 s
tell where they are.
"""

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from softcr_studies.recordings import models

FIND = (
    "stiffness,segments,stiffening,tip_mass,lever_arms,connectors,directions,tendons,gains,"
    "offsets,registration,markers,delay,relaxation"
)


class Settings(models.Settings):
    """As of `recordings/models`; without a recording the shipped one is taken."""

    shipped: ClassVar = models.Shipped(
        "asl_trunk.npz", "asl_trunk_map.yaml", "asl_trunk_guess.yaml"
    )
    find: str = Field(FIND, description=models.FITTED)
    hold_out: str = Field("a_0g_end, a_300g_end, c_0g", description=models.PREDICTED)
    another_day: str = Field("c_0g", description=models.ANOTHER_DAY)


STUDY = replace(
    models.STUDY,
    name="recordings/asl-trunk",
    summary="a rod, Koopman and linear models predict a recorded trunk of motors",
    settings=Settings,
    needs=(),
)
