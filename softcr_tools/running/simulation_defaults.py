"""What `softcr up simulation` runs where nobody says more: a plant that is not the model, and a
filter that finds what lies between a pressure's reading and the rod."""

from typing import TYPE_CHECKING

from softcr_models.errors import UserError
from softcr_models.robots.robot import kind_of, load_robot
from softcr_runtime.settings.registry import GRADIENT_MPC, NEMPC
from softcr_simulation.errors.plant_errors import SAME_STRUCTURE, load_plant_errors, require_meaning
from softcr_tools.running.option_checks import OF_SAME_STRUCTURE, settings_of_plant

if TYPE_CHECKING:
    from softcr_tools.running.run_options import SimulationOptions

PLAIN, CHAINED = "licher2025", "licher2025_chain"
"""The robot of the headline, without and with a pressure chain."""

PLANT = "typical"

_ROD = "rod"


def default_robot(options: "SimulationOptions") -> str:
    """The one with a chain, where controller, filter and plant are those that know it."""
    knows = (
        options.controller in (NEMPC, GRADIENT_MPC)
        and options.estimator == options.model == options.filter_model == _ROD
        and not options.plant
    )
    return CHAINED if knows else PLAIN


def changes_the_plant(options: "SimulationOptions") -> str:
    """A line where options were given that the default plant does not have, so that a simpler
    one stands in for it; empty where the plant is the one that a run without them has."""
    given = sorted(OF_SAME_STRUCTURE & options.changed)
    if options.plant_errors != SAME_STRUCTURE or not given:
        return ""
    without = {name: type(options).model_fields[name].default for name in given}
    usual = default_plant_errors(options.model_copy(update=without))
    if usual == SAME_STRUCTURE:
        return ""
    words = ", ".join(f"--{name.replace('_', '-')}" for name in given)
    return (
        f"{words}: the plant is {SAME_STRUCTURE}, which has the model's own equations, and not "
        f"{usual}: errors are smaller than, and not comparable with, those of a run without"
    )


def default_plant_errors(options: "SimulationOptions") -> str:
    """Typical ones, where the robot can have them and no number of another plant is given; nothing
    for a plant that knows no such errors."""
    if options.plant not in ("", kind_of(options.robot)):
        return ""
    if "plant_errors" not in settings_of_plant(options.robot):
        return ""
    if options.estimator == "cc":
        return SAME_STRUCTURE
    if any(name in options.changed for name in OF_SAME_STRUCTURE):
        return SAME_STRUCTURE
    robot = load_robot(options.robot)
    try:
        robot.require_one_segment_of_chambers(PLANT)
        require_meaning(load_plant_errors(PLANT), robot)
    except UserError:
        return SAME_STRUCTURE
    return PLANT
