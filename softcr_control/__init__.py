"""Controllers and what they follow; no ROS outside `nodes`."""

from softcr_control.apcc import Apcc, ApccSettings
from softcr_control.command import Command
from softcr_control.gauss_newton import GaussNewtonMpc, GaussNewtonSettings
from softcr_control.nempc import Nempc, NempcSettings
from softcr_control.observation import ControlContext, Controller, Observation
from softcr_control.references import Reference, ReferenceSource, SampledReference

__all__ = [
    "Apcc",
    "ApccSettings",
    "Command",
    "ControlContext",
    "Controller",
    "GaussNewtonMpc",
    "GaussNewtonSettings",
    "Nempc",
    "NempcSettings",
    "Observation",
    "Reference",
    "ReferenceSource",
    "SampledReference",
]
