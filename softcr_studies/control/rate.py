"""The gradient MPC on the trajectory to 1.5 Hz, at 70 and at 500 Hz."""

from dataclasses import replace

from softcr_runtime.settings.registry import GRADIENT_MPC
from softcr_studies.loops.tracking_loop import FAST, RATE_HZ
from softcr_studies.loops.tracking_study import PLANT, SENSORS, SIMPLER, musts, tracking_study

CASES = [
    replace(FAST, name=f"{FAST.name}, {rate:g} Hz", duration=6.0, rate_hz=rate)
    for rate in (RATE_HZ, 500.0)
]

STUDY = tracking_study(
    "control/rate",
    "",
    "the gradient MPC at 70 and at 500 Hz",
    CASES,
    exact=SIMPLER + PLANT + SENSORS,
    methods=(GRADIENT_MPC,),
    musts=musts(nempc=(1.5, 0.7), rod_mpc=(0.7, 0.25)),
)
