"""The ground of softcr: robots as data, rods, prediction models. No ROS here."""

from softcr_models.errors import UserError
from softcr_models.robot import Robot, available_robots, load_robot
from softcr_models.rod.cosserat_rod import CosseratRod

__all__ = ["CosseratRod", "Robot", "UserError", "available_robots", "load_robot"]
