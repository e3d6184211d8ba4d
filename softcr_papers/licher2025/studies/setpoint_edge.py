"""Experiment 5b of Licher et al. 2025, Sec. V-B3: a setpoint on the edge of the pressures.

The nominal rod's equilibrium there is out of a stiffer plant's reach: the plant's own is taken.
"""

from softcr_control.reference.settings import ReferenceSettings
from softcr_studies.loops.tracking_loop import Case
from softcr_studies.loops.tracking_study import EXACT, SETTLED_TIP, musts, published, tracking_study

_EDGE = ReferenceSettings(kind="setpoint", inputs=(60e3, 30e3, 0.0))

STUDY = tracking_study(
    "licher2025/setpoint-edge",
    "Licher et al. 2025, Sec. V-B3, Experiment 5b",
    "the test bench's setpoint on the edge of the pressures, simulated, with every controller",
    (Case("setpoint (60, 30, 0) kPa", _EDGE, 6.0, from_plant=True),),
    exact=EXACT.replace(
        "a motion of the nominal rod",
        "the plant's own equilibrium, not the nominal rod's: it can be reached exactly",
    ),
    published=published(SETTLED_TIP, 1.69, 6.90, "bench"),
    musts=musts(nempc=(0.8, 0.3), rod_mpc=(0.5, 0.1)),
)
