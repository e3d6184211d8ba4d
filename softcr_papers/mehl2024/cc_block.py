"""The base-sensor estimator: wrenches and pressures in, an arc and its tip out."""

import math
from collections.abc import Iterable
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from softcr_models import CosseratRod
from softcr_papers.constant_curvature.kinematics import section_pose
from softcr_papers.mehl2024.cc_estimator import CcEstimate, CcEstimator, CcEstimatorSettings
from softcr_papers.mehl2024.dynamics import ConstantCurvatureModel
from softcr_runtime.blocks.block import BlockBase, Input, Output, Samples
from softcr_runtime.blocks.values import Pose, TipEstimate
from softcr_runtime.settings.node_settings import LIVE, NodeSettings

PRESSURES, WRENCHES = "pressure/state", "force_torque/wrench"
_LOCKSTEP_PATIENCE = 1.0  # in lock-step nothing is lost, only late [s]

_NAMES = (
    "delta_x", "delta_y", "elongation",
    "delta_x_rate", "delta_y_rate", "elongation_rate", "bending_stiffness",
)  # fmt: skip


class CcEstimatorBlockSettings(NodeSettings):
    """The filter, and when to go on without the sensor."""

    filter: Literal["ukf", "ekf"] = Field("ukf", description="unscented or extended Kalman filter")
    patience: float = Field(
        0.5,
        ge=0.1,
        le=5.0,
        description="periods to wait for a wrench that is due before continuing without it",
    )
    longest_prediction: float = Field(
        1.0,
        ge=0.05,
        le=2.0,
        description="time without wrenches after which the estimate is no longer published",
        json_schema_extra={"unit": "s", **LIVE},
    )


class CcEstimatorBlock(BlockBase):
    """Estimates a constant-curvature arc from the force-torque sensor under its base.

    The model's numbers are those of the robot file; the estimated stiffness takes up their error.
    """

    name = "cc_estimator"
    Settings = CcEstimatorBlockSettings
    kernels: ClassVar = ("constant_curvature",)
    outputs = ("estimate/constant_curvature", "estimate/tip/pose")

    def __init__(self, robot: Any, settings: Any) -> None:
        super().__init__(robot, settings)
        self._model = ConstantCurvatureModel.of_robot(robot)
        self._estimator = CcEstimator(
            self._model,
            CosseratRod(robot, 1).base_height,
            CcEstimatorSettings(filter=settings.filter),
        )
        patience = settings.patience * settings.period
        self.inputs = (
            Input(PRESSURES, "lead"),
            Input(
                WRENCHES, "same", needed=False,
                patience=_LOCKSTEP_PATIENCE if settings.lockstep else patience,
            ),
        )  # fmt: skip
        self.reset()

    def reset(self) -> None:
        self._last_stamp = self._last_wrench = -math.inf
        self._blind = False
        self._predicted_only = self._restarts = 0

    def time_jumped(self, seconds: float) -> None:
        """See BlockBase; counted as a restart."""
        restarts = self._restarts + math.isfinite(self._last_stamp)
        self.reset()
        self._restarts = restarts

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """The estimate at `now`; none where there is none to trust, and none of a stamp twice."""
        if now * 1e-9 == self._last_stamp:
            return []
        wrench = getattr(samples.get(WRENCHES), "value", None)
        estimate = self._estimate(samples[PRESSURES].value, wrench, now * 1e-9)
        return [] if estimate is None else self._outputs(estimate, now)

    def describe(self) -> dict[str, Any]:
        return {
            "role": "estimator",
            "filter": self.settings.filter,
            "initial_bending_stiffness": self._model.bending_stiffness,
            "predicted_only": self._predicted_only,
            "restarts": self._restarts,
        }

    def warnings(self) -> list[str]:
        return ["no wrenches: predicting only"] * self._blind

    def _estimate(
        self, pressures: np.ndarray, wrench: np.ndarray | None, seconds: float
    ) -> CcEstimate | None:
        if not 0.0 < seconds - self._last_stamp <= self.settings.longest_prediction:
            # the first sample, a hole too long to predict through, or a time that went back
            self._restarts += math.isfinite(self._last_stamp)
            self._last_stamp = self._last_wrench = seconds
            return self._estimator.start(seconds)
        self._last_stamp = seconds
        if wrench is None:
            self._predicted_only += 1
        else:
            self._last_wrench = seconds
        self._blind = seconds - self._last_wrench > 2.0 * self.settings.period
        estimate = self._estimator.update(pressures, wrench, seconds)
        lost = seconds - self._last_wrench > self.settings.longest_prediction
        return None if lost else estimate

    def _outputs(self, estimate: CcEstimate, now: int) -> list[Output]:
        values = [*estimate.coordinates, *estimate.rates, estimate.bending_stiffness]
        deviations = np.sqrt(estimate.covariance.diagonal())
        numbers = {}
        for name, value, deviation in zip(_NAMES, values, deviations, strict=True):
            numbers[name], numbers[f"{name}_std"] = float(value), float(deviation)
        tip = TipEstimate(
            lambda: Pose.of(self._tip_pose(estimate)), estimate.tip_position_covariance
        )
        return [
            Output("estimate/constant_curvature", now, numbers),
            Output("estimate/tip/pose", now, tip),
        ]

    def _tip_pose(self, estimate: CcEstimate) -> np.ndarray:
        model = self._model
        pose = section_pose(estimate.coordinates, model.rest_length, model.radius)
        pose[:3, 3] = estimate.tip_position + self.robot.tip_cap_length * pose[:3, 2]
        return pose
