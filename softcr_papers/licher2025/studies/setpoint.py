"""Experiment 4b of Licher et al. 2025, Sec. V-B2: a setpoint far from the vented rod."""

from softcr_studies.loops.tracking_loop import SETPOINT
from softcr_studies.loops.tracking_study import SETTLED_TIP, musts, published, tracking_study

STUDY = tracking_study(
    "licher2025/setpoint",
    "Licher et al. 2025, Sec. V-B2, Experiment 4b",
    "a setpoint far from the vented rod with every controller",
    (SETPOINT,),
    published=published(SETTLED_TIP, 2.82, None, "simulation"),
    musts=musts(nempc=(0.8, 0.3), rod_mpc=(0.3, 0.1)),
)
