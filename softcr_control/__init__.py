"""Controllers and what they follow; no ROS outside `nodes`."""

from softcr_control.nempc import Command, Nempc, NempcSettings
from softcr_control.references import Reference, ReferenceSource, SampledReference

__all__ = [
    "Command",
    "Nempc",
    "NempcSettings",
    "Reference",
    "ReferenceSource",
    "SampledReference",
]
