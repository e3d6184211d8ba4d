"""Knots, rate weight and damping of the gradient MPC."""

from softcr_runtime.settings.registry import GRADIENT_MPC
from softcr_studies.tuning.controllers import Against, Beginning, ControllerTuning, controller_study
from softcr_studies.tuning.parameters import ROD_MPC


class Settings(ControllerTuning):
    """See ControllerTuning."""

    controller: Beginning = GRADIENT_MPC
    against: Against = GRADIENT_MPC


STUDY = controller_study(
    "tuning/rod-mpc", __file__, GRADIENT_MPC, ROD_MPC, Settings,
    "knots, rate weight and damping of the gradient MPC",
)  # fmt: skip
