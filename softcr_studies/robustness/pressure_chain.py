"""Biased pressure sensors and a wrong lever arm, on the trajectory to 1.5 Hz."""

from dataclasses import replace

from softcr_studies.loops.tracking_loop import FAST, with_errors
from softcr_studies.loops.tracking_study import PLANT, SENSORS, SIMPLER, musts, tracking_study

_BIASED = replace(
    FAST,
    name="sensors read (1, -1, 0.5) kPa too much",
    errors=with_errors(pressure_bias=(1e3, -1e3, 0.5e3)),
)
_LEVER = replace(
    FAST, name="lever of chamber 1 +5 %", errors=with_errors(lever_factor=(1.05, 1.0, 1.0))
)

STUDY = tracking_study(
    "robustness/pressure-chain",
    "",
    "biased pressure sensors, a wrong lever arm, with every controller",
    (_BIASED, _LEVER),
    exact=f"{SIMPLER}{PLANT}The filter estimates offset and gain of each pressure sensor, too, but "
    f"no lever arm. {SENSORS}The Koopman baseline has learned from 15 minutes of the very plant, "
    "its sensors and its lever.",
    musts=(
        *musts(nempc=(1.5, 0.8), rod_mpc=(1.5, 0.8), case=_BIASED.name),
        *musts(nempc=(2.5, 1.0), rod_mpc=(2.5, 1.0), case=_LEVER.name),
    ),
)
