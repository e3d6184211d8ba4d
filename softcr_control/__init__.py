"""Controllers and what they follow; no ROS outside `nodes`."""

from softcr_control.apcc import Apcc, ApccSettings
from softcr_control.command import Command
from softcr_control.nempc import Nempc, NempcSettings
from softcr_control.references import Reference, ReferenceSource, SampledReference
from softcr_control.rod_mpc import RodMpc, RodMpcSettings

__all__ = [
    "Apcc",
    "ApccSettings",
    "Command",
    "Nempc",
    "NempcSettings",
    "Reference",
    "ReferenceSource",
    "RodMpc",
    "RodMpcSettings",
    "SampledReference",
]
