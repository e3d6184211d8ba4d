"""What `softcr up simulation` runs where nobody says more: a plant that is not the model, and a
filter that finds what lies between a pressure's reading and the rod."""

from typing import TYPE_CHECKING

from softcr_models.errors import UserError
from softcr_models.robots.robot import kind_of, load_robot
from softcr_runtime.settings.plugin_settings import settings_class
from softcr_runtime.settings.registry import GRADIENT_MPC, NEMPC, resolve
from softcr_simulation.errors.plant_errors import SAME_STRUCTURE, load_plant_errors, require_meaning

if TYPE_CHECKING:
    from softcr_tools.running.run_options import SimulationOptions

PLAIN, CHAINED = "licher2025", "licher2025_chain"
"""The robot of the headline, without and with a pressure chain."""

PLANT = "typical"

_ROD = "rod"
_SURROUNDINGS = ("loads", "obstacles")


def default_robot(options: "SimulationOptions") -> str:
    """The one with a chain, where controller, filter and plant are those that know it."""
    models = {options.roles.get(role, {}).get("model") for role in ("controller", "estimator")}
    knows = (
        options.controller in (NEMPC, GRADIENT_MPC)
        and options.estimator == _ROD
        and models <= {None, "", _ROD}
        and not options.plant
    )
    return CHAINED if knows else PLAIN


def changes_the_plant(options: "SimulationOptions") -> str:
    """A line where something was given that the default plant does not have, so that a simpler
    one stands in for it; empty where the plant is the one that a run without it has."""
    told = options.roles.get("plant", {})
    given = [name for name in _SURROUNDINGS if told.get(name)]
    usual = default_plant_errors(options.model_copy(update={"roles": {}})) if given else ""
    if usual in ("", SAME_STRUCTURE) or "plant_errors" in told:
        return ""
    words = ", ".join(f"--plant.{name}" for name in given)
    return (
        f"{words}: the plant is {SAME_STRUCTURE}, which has the model's own equations, and not "
        f"{usual}: errors are smaller than, and not comparable with, those of a run without"
    )


def default_plant_errors(options: "SimulationOptions") -> str:
    """Typical ones, where the robot can have them and is alone; nothing for a plant that knows no
    such errors."""
    kind = kind_of(options.robot)
    if options.plant not in ("", kind):
        return ""
    if "plant_errors" not in settings_class(resolve("plant", kind)).model_fields:
        return ""
    told = options.roles.get("plant", {})
    if options.estimator == "cc" or any(told.get(name) for name in _SURROUNDINGS):
        return SAME_STRUCTURE
    robot = load_robot(options.robot)
    try:
        robot.require_one_segment_of_chambers(PLANT)
        require_meaning(load_plant_errors(PLANT), robot)
    except UserError:
        return SAME_STRUCTURE
    return PLANT
