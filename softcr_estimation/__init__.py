"""Estimation of states and parameters: filters, estimators as blocks, identification. No ROS."""

from typing import TYPE_CHECKING

from softcr_models.public_names import imported_on_demand

if TYPE_CHECKING:
    from softcr_estimation.errors import EstimatorError
    from softcr_estimation.estimator_settings import ModelEstimatorSettings
    from softcr_estimation.filters.extended import ExtendedFilter
    from softcr_estimation.filters.unscented import UnscentedFilter
    from softcr_estimation.model_estimator import ModelEstimate, ModelEstimator

__all__ = [
    "EstimatorError",
    "ExtendedFilter",
    "ModelEstimate",
    "ModelEstimator",
    "ModelEstimatorSettings",
    "UnscentedFilter",
]

__getattr__ = imported_on_demand(
    __name__,
    {
        "errors": ("EstimatorError",),
        "estimator_settings": ("ModelEstimatorSettings",),
        "filters.extended": ("ExtendedFilter",),
        "model_estimator": ("ModelEstimate", "ModelEstimator"),
        "filters.unscented": ("UnscentedFilter",),
    },
)
