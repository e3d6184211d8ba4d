"""Models of a trunk with six motors predict its motion under a payload they were not fitted to.

The recording is shipped (StanfordASL/trunk-stack, MIT); see `recordings/models` for what is done.
Fitted is one trial without payload; held out are the same inputs under 0.3 kg, and another day's
trial without payload, for which tendons and cameras had been set anew.
"""

from dataclasses import replace
from typing import ClassVar

from softcr_studies.recordings import models

FIND = (
    "stiffness,segments,stiffening,tip_mass,lever_arms,connectors,directions,tendons,gains,"
    "offsets,registration,markers,delay,relaxation"
)


class Settings(models.Settings):
    """As of `recordings/models`; without a recording the shipped one is taken."""

    shipped: ClassVar = models.Shipped(
        "asl_trunk.npz", "asl_trunk_map.yaml", "asl_trunk_guess.yaml", FIND, "a_300g, c_0g"
    )


STUDY = replace(
    models.STUDY,
    name="recordings/asl-trunk",
    summary="a rod, Koopman and linear models predict a recorded trunk under another payload",
    settings=Settings,
    needs=(),
)
