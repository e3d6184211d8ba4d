"""What `softcr up simulation` runs around a planar strain robot."""

from collections.abc import Mapping
from typing import Any

from softcr_models.errors import UserError
from softcr_runtime.blocks.system import Parameters
from softcr_runtime.settings import registry
from softcr_runtime.settings.loops import Loop

RATE, PREDICTIVE_RATE = 200.0, 50.0
"""Of the cycles: at 100 Hz the regulator, whose answers come a cycle late, swings; predictive
controllers take longer [Hz]."""

STEP = 0.005
"""Of what filter and controller predict with [s]."""

_REGULATOR = "strain_regulator"
_WITH_FILES = ("nempc", "rod_mpc")  # controllers that have NAME_strain in config/controllers
_OF_TIPS = ("tip_circle", registry.GOAL)  # references that tell no strains


class StrainLoop(Loop):
    """A regulator of strains needs no masses and gets the strains of the shape; a predictive
    controller gets the filter that finds the model's parameters, and the weights for strains."""

    unused = frozenset({"device"})

    def defaults(self, given: Mapping[str, Any]) -> dict[str, str]:
        controller = str(given.get("controller", _REGULATOR))
        defaults = {"controller": controller, "reference": "strain_setpoints"}
        if controller == _REGULATOR:
            defaults["estimator"] = "shape"
        elif controller in _WITH_FILES:
            defaults["controller.controller_file"] = f"{controller}_strain"
        return defaults

    def check(self, options: Any) -> None:
        if options.controller == _REGULATOR and options.reference in _OF_TIPS:
            raise UserError(
                f"reference = {options.reference!r} with controller = {options.controller!r}: "
                "gives only the tip, and the regulator needs strains; must be one of "
                "strain_setpoints, strain_sines, setpoint, trajectory, circle, chirp_circle, file "
                "(with states)"
            )

    def common(self, options: Any) -> Parameters:
        predicts = options.controller in registry.predictive()
        return {"rate_hz": PREDICTIVE_RATE if predicts else RATE}

    def of_model(self, options: Any) -> Parameters:
        """Torques that are held, as the plant's, and equal steps, which cost a third of adapted
        ones and whose error is as smooth as optimisers need."""
        return {"longest_step": STEP, "held_torques": True}
