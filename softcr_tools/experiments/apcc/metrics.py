"""What the thesis measures of a run."""

import numpy as np

from softcr_models.constant_curvature.kinematics import ConstantCurvatureChain

SHAPE_POINTS = 500
"""N of (52)."""


def shape_error(
    arm: ConstantCurvatureChain,
    arm_configuration: np.ndarray,
    arm_lengths: np.ndarray,
    model: ConstantCurvatureChain,
    model_configuration: np.ndarray,
    model_lengths: np.ndarray,
) -> float:
    """E_shape of (52): mean distance of points at equal parts of both material lengths [m]."""
    true = arm.backbone(arm_configuration, arm_lengths, SHAPE_POINTS)
    found = model.backbone(model_configuration, model_lengths, SHAPE_POINTS)
    distances = np.linalg.norm(true[..., :3, 3] - found[..., :3, 3], axis=-1)
    return float(distances.mean())
