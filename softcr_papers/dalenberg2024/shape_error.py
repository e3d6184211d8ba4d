"""E_shape of Dalenberg (MSc thesis, TU Delft), (52): how far two backbones are apart."""

from typing import Literal

import numpy as np

from softcr_papers.constant_curvature.kinematics import ConstantCurvatureChain, coverage_of

SHAPE_POINTS = 500
"""N of (52)."""

Spacing = Literal["rest", "arc"]
"""What equal steps along a backbone are equal in: length of the slack or of the deformed arm."""

_SHORTEST = 1e-6  # a section that is squeezed away still has a place on the backbone [m]


def shape_error(
    arm: ConstantCurvatureChain,
    arm_configuration: np.ndarray,
    arm_lengths: np.ndarray,
    model: ConstantCurvatureChain,
    model_configuration: np.ndarray,
    model_lengths: np.ndarray,
    spacing: Spacing = "rest",
) -> float:
    """E_shape of (52): mean distance of points at equal parts of both backbones [m].

    The thesis has its points "uniformly sampled along the backbones". With `rest` a point of the
    model is compared with the same material point of the arm, if the model's rest lengths are
    right; with `arc` rest lengths do not matter, only where the curves run.
    """
    true = _points(arm, arm_configuration, arm_lengths, spacing)
    found = _points(model, model_configuration, model_lengths, spacing)
    return float(np.linalg.norm(true - found, axis=-1).mean())


def _points(
    chain: ConstantCurvatureChain, q: np.ndarray, rest_lengths: np.ndarray, spacing: Spacing
) -> np.ndarray:
    """(SHAPE_POINTS, 3) [m]."""
    if spacing == "rest":
        return chain.backbone(q, rest_lengths, SHAPE_POINTS)[..., :3, 3]
    lengths = np.maximum(rest_lengths + q[2::3], _SHORTEST)
    places = np.linspace(0.0, lengths.sum(), SHAPE_POINTS)
    # strain is constant in a section, so equal parts of its arc are equal parts of its rest length
    return chain.position(q, rest_lengths, coverage_of(places, lengths))
