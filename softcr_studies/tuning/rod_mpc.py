"""Knots, rate weight and damping of the gradient MPC."""

from softcr_runtime.registry import GRADIENT_MPC
from softcr_studies.tuning.controllers import ControllerTuning, controller_study
from softcr_studies.tuning.parameters import ROD_MPC


class Settings(ControllerTuning):
    """See ControllerTuning."""

    controller: str = ControllerTuning.begin_with(GRADIENT_MPC)
    against: str = ControllerTuning.compare_with(GRADIENT_MPC)


STUDY = controller_study(
    "tuning/rod-mpc",
    __file__,
    GRADIENT_MPC,
    ROD_MPC,
    Settings,
    "knots, rate weight and damping of the gradient MPC",
)
