"""What `softcr up simulation` runs around a tendon-driven arm."""

from collections.abc import Mapping
from typing import Any

from softcr_models.errors import UserError
from softcr_runtime.blocks.system import Parameters, Part
from softcr_runtime.settings import registry
from softcr_runtime.settings.loops import Loop

RATE = 50.0
"""Of an arm's cameras, as on the platform of Dalenberg's thesis, Sec. VI-B [Hz]."""

_CONTROLLER = "apcc"
_MOTIONS = ("setpoint", "trajectory", "tip_circle", "file")


class ArmLoop(Loop):
    """The cameras lead the controller, which estimates the arm's sections itself."""

    unused = frozenset({
        "controller_file", "model", "filter_model", "network", "population", "learned", "device",
        "estimator", "horizon",
    })  # fmt: skip

    def defaults(self, given: Mapping[str, Any]) -> dict[str, str]:
        return {"controller": _CONTROLLER}

    def check(self, options: Any) -> None:
        if options.controller != _CONTROLLER:
            raise UserError(
                f"controller = {options.controller!r}: has no meaning for robot "
                f"{options.robot!r}; must be {_CONTROLLER}"
            )
        if options.reference not in (*_MOTIONS, registry.GOAL):
            raise UserError(
                f"reference = {options.reference!r} for robot {options.robot!r}: must be one of "
                f"{', '.join((*_MOTIONS, registry.GOAL))}"
            )

    def common(self, options: Any) -> Parameters:
        return {"rate_hz": RATE}

    def parts(self, options: Any, common: Parameters) -> dict[registry.Kind, Part | None]:
        """No estimator; a reference of tips, and a controller that follows it."""
        wall = common["mode"] == "wall"
        of_reference: Parameters = common | ({"realtime_priority": 25} if wall else {})
        of_controller: Parameters = common | ({"realtime_priority": 20} if wall else {})
        of_controller |= {"setpoints": "paired"}
        of_reference |= {"duration": options.duration}
        if options.reference == registry.GOAL:
            of_reference |= {"horizon": 1} | options.plugin_settings.get("reference", {})
            reference = registry.part("reference", registry.GOAL, of_reference)
            of_controller["setpoint_topic"] = "reference/output"
        else:
            of_reference |= {"reference": options.reference}
            of_reference |= {"file": options.reference_file} if options.reference_file else {}
            place = "softcr_papers.dalenberg2024.tip_block:TipReferenceBlock"
            reference = Part("tip_reference", place, of_reference)
        of_controller |= options.plugin_settings.get("controller", {})
        controller = registry.part("controller", _CONTROLLER, of_controller)
        return {"estimator": None, "reference": reference, "controller": controller}
