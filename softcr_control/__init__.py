"""Controllers, their costs, and the references that they follow. No ROS here."""

from typing import TYPE_CHECKING

from softcr_models.public_names import imported_on_demand

if TYPE_CHECKING:
    from softcr_control.command import Command
    from softcr_control.observation import ControlContext, Controller, Observation
    from softcr_control.predictive.gauss_newton import GaussNewtonMpc, GaussNewtonSettings
    from softcr_control.predictive.nempc import Nempc, NempcSettings
    from softcr_control.reference.references import Reference, ReferenceSource, SampledReference

__all__ = [
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

__getattr__ = imported_on_demand(
    __name__,
    {
        "command": ("Command",),
        "predictive.gauss_newton": ("GaussNewtonMpc", "GaussNewtonSettings"),
        "predictive.nempc": ("Nempc", "NempcSettings"),
        "observation": ("ControlContext", "Controller", "Observation"),
        "reference.references": ("Reference", "ReferenceSource", "SampledReference"),
    },
)
