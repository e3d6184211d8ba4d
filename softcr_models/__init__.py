"""The ground of softcr: robots as data, rods, prediction models. No ROS here."""

from typing import TYPE_CHECKING

from softcr_models.public_names import imported_on_demand

if TYPE_CHECKING:
    from softcr_models.errors import UserError
    from softcr_models.robots.robot import Robot, available_robots, load_robot
    from softcr_models.rod.cosserat_rod import CosseratRod

__all__ = ["CosseratRod", "Robot", "UserError", "available_robots", "load_robot"]

__getattr__ = imported_on_demand(
    __name__,
    {
        "errors": ("UserError",),
        "robots.robot": ("Robot", "available_robots", "load_robot"),
        "rod.cosserat_rod": ("CosseratRod",),
    },
)
