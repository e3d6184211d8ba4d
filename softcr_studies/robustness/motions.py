"""Ours whole on the typical plant in other motions than that of Experiment 4a: at rest, slow, and
in circles of two speeds."""

from dataclasses import replace

from softcr_simulation.errors.plant_errors import load_plant_errors
from softcr_studies.frame.study import Study
from softcr_studies.loops.compared_loops import (
    LOCK_IN_EXPLAINED,
    LOCK_IN_METRICS,
    NO_SILENT_LOCK_IN,
    WHOLE,
    musts_of_both,
)
from softcr_studies.loops.tracking_loop import SETPOINT, SLOW_TRAJECTORY, circle
from softcr_studies.loops.tracking_study import METRICS, SETTLED_TIP
from softcr_studies.robustness.fair import run

_MUSTS = {SETPOINT: 0.2, SLOW_TRAJECTORY: 0.25, circle(0.6): 0.4, circle(1.5): 0.4}  # [mm]

STUDY = Study(
    name="robustness/motions",
    source="",
    summary="ours whole on the typical plant: a setpoint, a slow trajectory, two circles",
    run=run,
    cases=[replace(case, errors=load_plant_errors("typical")) for case in _MUSTS],
    methods=WHOLE,
    metrics=(*METRICS, *LOCK_IN_METRICS),
    musts=[
        *musts_of_both(SETTLED_TIP, {case.name: (must, must / 2) for case, must in _MUSTS.items()}),
        *NO_SILENT_LOCK_IN,
    ],
    exact="The plant is a chain of beam elements with an integrator of its own, and has all that "
    "typical in config/plant_errors says; filter and controllers are the shipped ones with the "
    "chain. The reference is a motion of the nominal rod. Errors count from 2 s on. "
    + LOCK_IN_EXPLAINED,
    about={"settled_from_s": 2.0},
)  # fmt: skip
