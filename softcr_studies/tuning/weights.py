"""State weights of the paper's NEMPC, once its other numbers are chosen: tuning/paper-nempc."""

from softcr_runtime.settings.registry import NEMPC
from softcr_studies.tuning.controllers import Against, Beginning, ControllerTuning, controller_study
from softcr_studies.tuning.parameters import WEIGHTS


class Settings(ControllerTuning):
    """See ControllerTuning."""

    controller: Beginning = "nempc_licher2025"
    against: Against = "nempc_licher2025"


STUDY = controller_study(
    "tuning/weights", __file__, NEMPC, WEIGHTS, Settings,
    "state weights of the paper's NEMPC",
    "Licher et al. 2025, Sec. V-B1, Table VII",
)  # fmt: skip
