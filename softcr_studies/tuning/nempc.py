"""Quotas, mutation, segments and rate weight of an NEMPC: Table VII of Licher et al. 2025."""

from softcr_runtime.settings.registry import NEMPC as KIND
from softcr_studies.tuning.controllers import ControllerTuning, controller_study
from softcr_studies.tuning.parameters import NEMPC

STUDY = controller_study(
    "tuning/nempc", __file__, KIND, NEMPC, ControllerTuning,
    "quotas, mutation, segments and rate weight of the NEMPC",
    "Licher et al. 2025, Sec. V-B1, Table VII",
)  # fmt: skip
