"""Which configuration of the model explains what the sensors see: Dalenberg, Algorithm 2.

Newton's method on the stacked errors of all sensors, with the model's lengths frozen: (31) for
poses, (32) for positions alone. What the thesis leaves open, and is chosen here:

- its loop goes on while both errors are too large (`&`), so it ends as soon as one of them is
  small. Here both must be small; `stop = "either"` is the printed loop;
- errors of several sensors count by the largest of them;
- the inverse of a 6 n_s x n matrix is the damped least-squares one, and a step is capped:
  without that the position-only form can run away;
- the search also ends where the model comes no nearer, because it cannot: the result is the same;
- radians and metres count alike, times `angular_weight`.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pinocchio as pin
from pydantic import BaseModel, ConfigDict, Field

from softcr_papers.constant_curvature.kinematics import ConstantCurvatureChain, in_body_axes
from softcr_papers.dalenberg2024.apcc.inverse_kinematics import limited

_Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]


class InferenceSettings(BaseModel):
    """Numbers of Algorithm 2; defaults of the thesis, Sec. V-A, where it gives them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    feedback: Literal["pose", "position"] = Field(
        default="pose", description="which part of the sensors' poses is used, (31) or (32)"
    )
    stop: Literal["both", "either"] = Field(
        default="both", description="which errors must be small to stop; either is the printed loop"
    )
    iterations: Annotated[int, Field(ge=1, le=100)] = Field(
        default=7, description="largest number of updates per tick [-]"
    )
    linear_threshold: _Positive = Field(
        default=1e-4, description="position error that is small enough [m]"
    )
    angular_threshold: _Positive = Field(
        default=5e-3, description="orientation error that is small enough [rad]"
    )
    damping: Annotated[float, Field(ge=0.0, le=1.0)] = Field(
        default=1e-3, description="lambda of the damped least squares [-]"
    )
    angular_weight: Annotated[float, Field(ge=0.0, le=10.0)] = Field(
        default=1.0, description="weight of a radian relative to a metre [m/rad]"
    )
    longest_step: _Positive = Field(
        default=0.5, description="largest change of a coordinate per update [m]"
    )
    shortest_step: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = Field(
        default=1e-6,
        description="stop when no coordinate changes by more than this; 0: off [m]",
    )


@dataclass(frozen=True, eq=False)
class Inference:
    """What Algorithm 2 returns.

    Attributes:
        configuration: (3 n,) q-bar [m].
        linear: (n_s,) distance between each sensor and where the model has it [m].
        angular: (n_s,) angle between their orientations [rad].
        iterations: updates made.
        converged: whether what `stop` asks for was reached.
    """

    configuration: np.ndarray
    linear: np.ndarray
    angular: np.ndarray
    iterations: int
    converged: bool


def infer(
    chain: ConstantCurvatureChain,
    rest_lengths: np.ndarray,
    coverage: np.ndarray,
    poses: np.ndarray,
    start: np.ndarray,
    settings: InferenceSettings,
) -> Inference:
    """The configuration near `start` whose sensors are where they were measured.

    Args:
        chain: the model.
        rest_lengths: (n,) of its sections [m].
        coverage: (n_s, n) where the sensors sit, see `coverage_of`.
        poses: (n_s, 4, 4) measured [m].
        start: (3 n,) where the search begins, the last tick's result (Remark 4) [m].
        settings: of the search.
    """
    q = np.array(start, float)
    iterations, stalled = 0, False
    while True:
        found, jacobian, _ = chain.motion(q, np.zeros_like(q), rest_lengths, coverage)
        twists = np.array([_twist(*pair) for pair in zip(found, poses, strict=True)])
        offsets = poses[:, :3, 3] - found[:, :3, 3]
        linear, angular = np.linalg.norm(offsets, axis=1), np.linalg.norm(twists[:, 3:], axis=1)
        converged = _small(linear, angular, settings)
        if converged or stalled or iterations == settings.iterations:
            return Inference(q, linear, angular, iterations, converged)
        if settings.feedback == "position":
            step = _damped(jacobian[:, :3], offsets, settings)
        else:
            weights = np.repeat([1.0, settings.angular_weight], 3)
            rows = weights[:, None] * in_body_axes(found, jacobian)
            step = _damped(rows, weights * twists, settings)
        stalled = bool(np.abs(step).max() <= settings.shortest_step)
        q += step
        iterations += 1


def _damped(rows: np.ndarray, errors: np.ndarray, settings: InferenceSettings) -> np.ndarray:
    """(m,) one step of (31), (32) from Jacobians (n_s, k, m) and errors (n_s, k), capped."""
    matrix = rows.reshape(-1, rows.shape[-1])
    normal = matrix.T @ matrix + settings.damping**2 * np.eye(matrix.shape[1])
    step = np.linalg.solve(normal, matrix.T @ errors.ravel())
    return limited(step, settings.longest_step)


def _twist(found: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """(6,) body twist from where the model has a sensor to where it is, (30)."""
    twist: np.ndarray = pin.log6(pin.SE3(found).actInv(pin.SE3(pose))).vector
    return twist


def _small(linear: np.ndarray, angular: np.ndarray, settings: InferenceSettings) -> bool:
    small = bool(linear.max() <= settings.linear_threshold)
    if settings.feedback == "position":
        return small
    turned = bool(angular.max() <= settings.angular_threshold)
    return small and turned if settings.stop == "both" else small or turned
