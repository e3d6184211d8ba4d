"""State and parameter estimation. Plain modules; nodes live in `softcr_estimation.nodes`."""

from softcr_estimation.cc_estimator import (
    CcEstimate,
    CcEstimator,
    CcEstimatorError,
    CcEstimatorSettings,
)
from softcr_estimation.errors import EstimatorError
from softcr_estimation.estimator_settings import EstimatorSettings, ModelEstimatorSettings
from softcr_estimation.extended import ExtendedFilter
from softcr_estimation.model_estimator import ModelEstimate, ModelEstimator
from softcr_estimation.rod_estimator import Estimate, RodEstimator
from softcr_estimation.unscented import UnscentedFilter

__all__ = [
    "CcEstimate",
    "CcEstimator",
    "CcEstimatorError",
    "CcEstimatorSettings",
    "Estimate",
    "EstimatorError",
    "EstimatorSettings",
    "ExtendedFilter",
    "ModelEstimate",
    "ModelEstimator",
    "ModelEstimatorSettings",
    "RodEstimator",
    "UnscentedFilter",
]
