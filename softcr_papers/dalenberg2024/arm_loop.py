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

    unused = frozenset({"device", "estimator"})

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

    def part(self, role: registry.Kind, options: Any, parameters: Parameters) -> Part | None:
        """No estimator; a reference of tips, and a controller that follows it."""
        has_goals = options.reference == registry.GOAL
        if role == "estimator":
            return None
        if role == "reference" and not has_goals:
            place = "softcr_papers.dalenberg2024.tip_block:TipReferenceBlock"
            return Part("tip_reference", place, {"reference": options.reference, **parameters})
        own: Parameters = {}
        if role == "controller":  # which draws no random numbers
            own, parameters = {"setpoints": "paired"}, {**parameters, "seed": 0}
        if has_goals and role == "controller":
            own["setpoint_topic"] = "reference/output"
        elif role == "reference":
            own["horizon"] = 1
        return super().part(role, options, own | parameters)
