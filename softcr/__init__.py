"""softcr as a library: the ten names that most programs start from, without ROS.

Each name lives in one of the packages `softcr_*`, which hold everything else.
"""

from importlib.metadata import version

from softcr_estimation import ModelEstimator
from softcr_models import CosseratRod, Robot, UserError, available_robots, load_robot
from softcr_models.models import make_model
from softcr_models.prediction import RodPrediction
from softcr_runtime.bags.reading import Bag
from softcr_runtime.blocks.virtual import VirtualExecutor

__version__ = version("softcr")

__all__ = [
    "Bag",
    "CosseratRod",
    "ModelEstimator",
    "Robot",
    "RodPrediction",
    "UserError",
    "VirtualExecutor",
    "available_robots",
    "load_robot",
    "make_model",
]
