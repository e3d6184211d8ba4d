"""Experiment 4a of Licher et al. 2025, Sec. V-B2: a trajectory with oscillations up to 1.5 Hz."""

from softcr_studies.loops.tracking_loop import FAST
from softcr_studies.loops.tracking_study import TIP, musts, published, tracking_study

STUDY = tracking_study(
    "licher2025/tracking-fast",
    "Licher et al. 2025, Sec. V-B2, Experiment 4a",
    "a trajectory to 1.5 Hz with every controller",
    (FAST,),
    published=published(TIP, 2.68, None, "simulation"),
    musts=musts(nempc=(1.5, 0.7), rod_mpc=(0.7, 0.25)),
)
