"""Estimation of states and parameters: filters, estimators as blocks, identification. No ROS."""

from typing import TYPE_CHECKING

from softcr_models.public_names import imported_on_demand

if TYPE_CHECKING:
    from softcr_estimation.errors import EstimatorError
    from softcr_estimation.estimator_settings import EstimatorSettings, ModelEstimatorSettings
    from softcr_estimation.filters.extended import ExtendedFilter
    from softcr_estimation.filters.unscented import UnscentedFilter
    from softcr_estimation.model_estimator import ModelEstimate, ModelEstimator
    from softcr_estimation.rod_estimator import Estimate, RodEstimator

__all__ = [
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

__getattr__ = imported_on_demand(
    __name__,
    {
        "errors": ("EstimatorError",),
        "estimator_settings": ("EstimatorSettings", "ModelEstimatorSettings"),
        "filters.extended": ("ExtendedFilter",),
        "model_estimator": ("ModelEstimate", "ModelEstimator"),
        "rod_estimator": ("Estimate", "RodEstimator"),
        "filters.unscented": ("UnscentedFilter",),
    },
)
