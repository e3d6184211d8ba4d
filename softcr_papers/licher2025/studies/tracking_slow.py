"""Experiment 5a of Licher et al. 2025, Sec. V-B3: a trajectory with oscillations up to 0.2 Hz."""

from softcr_studies.loops.tracking_loop import SLOW_TRAJECTORY
from softcr_studies.loops.tracking_study import TIP, musts, published, tracking_study

STUDY = tracking_study(
    "licher2025/tracking-slow",
    "Licher et al. 2025, Sec. V-B3, Experiment 5a",
    "the test bench's trajectory to 0.2 Hz, simulated, with every controller",
    (SLOW_TRAJECTORY,),
    published=published(TIP, 2.57, 5.68, "bench"),
    musts=musts(nempc=(1.2, 0.5), rod_mpc=(0.5, 0.2)),
)
