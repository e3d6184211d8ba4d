"""Motions that several studies share: those of the experiments of Licher et al. 2025."""

from softcr_control.reference.settings import ReferenceSettings
from softcr_studies.loops.tracking_loop import SETTLED, Case

SETPOINT = Case("setpoint (45, 25, 15) kPa", ReferenceSettings(kind="setpoint"), 6.0)
"""Experiment 4b: a setpoint far from the vented rod."""

SLOW = ReferenceSettings(kind="trajectory", frequencies=(0.05, 0.12, 0.2), fade_in=2.0)
SLOW_TRAJECTORY = Case("trajectory to 0.2 Hz", SLOW, 30.0)
"""Experiment 5a: a trajectory with oscillations up to 0.2 Hz."""


def circle(frequency: float) -> Case:
    """At least two turns after it has settled, and 6 s: Experiment 5c."""
    reference = ReferenceSettings(kind="circle", frequency=frequency)
    return Case(f"circle {frequency:g} Hz", reference, max(6.0, SETTLED + 2 / frequency))
