"""Which Gaussian filter an estimator uses, and what all estimators share around it."""

import math
from typing import Any, Literal

import numpy as np

from softcr_estimation.errors import EstimatorError
from softcr_estimation.estimator_settings import FilterSettings, Kind
from softcr_estimation.filters.extended import ExtendedFilter
from softcr_estimation.filters.gaussian import Measure, Predict, SquareRootFilter
from softcr_estimation.filters.unscented import UnscentedFilter


def suited(chosen: Literal["auto", Kind], model: object) -> Kind:
    """The filter that was chosen; of `auto` the one that the model names as its `suited_filter`,
    and the unscented one where it names none."""
    if chosen != "auto":
        return chosen
    named: Kind = getattr(model, "suited_filter", "ukf")
    return named


def make_filter(
    settings: FilterSettings,
    predict: Predict,
    measure: Measure,
    noise: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    scale: np.ndarray | float = 1.0,
    farthest: float = math.inf,
) -> SquareRootFilter:
    """The filter that the settings choose.

    Args:
        settings: which one, its gate and its sigma points; auto counts as ukf.
        predict, measure, noise, bounds, farthest: see SquareRootFilter.
        scale: (n,) typical magnitudes of the filter's numbers, for the extended one's differences.
    """
    functions = predict, measure, noise
    shared: dict[str, Any] = {
        "bounds": bounds, "gate_probability": settings.gate_probability, "farthest": farthest
    }  # fmt: skip
    if settings.filter == "ekf":
        return ExtendedFilter(*functions, scale=scale, **shared)
    weights = {"alpha": settings.alpha, "beta": settings.beta, "kappa": settings.kappa}
    return UnscentedFilter(*functions, **shared, **weights)


def elapsed(last: float, stamp: float, longest_gap: float) -> float:
    """Time from the last stamp to this one [s].

    Args:
        last: stamp [s]; NaN before the start.
        stamp: [s].
        longest_gap: longest time that may be bridged [s].

    Raises:
        EstimatorError: not started; a stamp that is not later than the last one, or too much later.
    """
    if math.isnan(last):
        raise EstimatorError("estimator: update before start; call start first")
    duration = stamp - last
    if not 0.0 < duration <= longest_gap:
        raise EstimatorError(
            f"stamp: {stamp} s after {last} s; must be later, by at most {longest_gap} s"
        )
    return duration
