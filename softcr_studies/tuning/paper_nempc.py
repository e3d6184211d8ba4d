"""The paper's NEMPC: its first step, quotas and rate weight before state weights."""

from softcr_runtime.settings.registry import NEMPC as KIND
from softcr_studies.frame.search import Trials
from softcr_studies.tuning.controllers import Against, Beginning, ControllerTuning, controller_study
from softcr_studies.tuning.parameters import NEMPC


class Settings(ControllerTuning):
    """See ControllerTuning."""

    trials: Trials = 24
    controller: Beginning = "nempc_licher2025"
    against: Against = "nempc_licher2025"


STUDY = controller_study(
    "tuning/paper-nempc", __file__, KIND, NEMPC, Settings,
    "quotas, mutation, segments and rate weight of the paper's NEMPC, which follows states",
    "Licher et al. 2025, Sec. V-B1, Table VII",
)  # fmt: skip
