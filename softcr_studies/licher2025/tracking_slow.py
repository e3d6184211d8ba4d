"""Experiment 5a of Licher et al. 2025, Sec. V-B3: a trajectory with oscillations up to 0.2 Hz."""

from softcr_control.reference_settings import ReferenceSettings
from softcr_studies.tracking_loop import Case
from softcr_studies.tracking_study import TIP, musts, published, tracking_study

SLOW = ReferenceSettings(kind="trajectory", frequencies=(0.05, 0.12, 0.2), fade_in=2.0)
SLOW_TRAJECTORY = Case("trajectory to 0.2 Hz", SLOW, 30.0)

STUDY = tracking_study(
    "licher2025/tracking-slow",
    "Licher et al. 2025, Sec. V-B3, Experiment 5a",
    "the test bench's trajectory to 0.2 Hz, simulated, with every controller",
    (SLOW_TRAJECTORY,),
    published=published(TIP, 2.57, 5.68, "bench"),
    musts=musts(nempc=(1.2, 0.5), rod_mpc=(0.5, 0.2)),
)
