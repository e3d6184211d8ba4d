"""The base-sensor estimator as a node: wrenches and pressures in, the arc and its tip out."""

import math
import sys
import threading
import time
from typing import Any, Literal

import numpy as np
from pydantic import Field

from softcr_estimation.cc_estimator import CcEstimate, CcEstimator, CcEstimatorSettings
from softcr_estimation.sample_pairing import PRESSURES, WRENCHES, SamplePairing
from softcr_models import CosseratRod
from softcr_models.constant_curvature.dynamics import ConstantCurvatureModel
from softcr_models.constant_curvature.kinematics import section_pose
from softcr_runtime.messages import (
    named_numbers_message,
    pose_with_covariance_to_message,
    pressures_from_message,
    wrench_from_message,
)
from softcr_runtime.node import LoopNode
from softcr_runtime.process import run
from softcr_runtime.settings import NodeSettings

_NAMES = (
    "delta_x", "delta_y", "elongation",
    "delta_x_rate", "delta_y_rate", "elongation_rate", "bending_stiffness",
)  # fmt: skip


class CcEstimatorNodeSettings(NodeSettings):
    """The filter, and when to go on without the sensor."""

    filter: Literal["ukf", "ekf"] = Field("ukf", description="unscented or extended Kalman filter")
    patience: float = Field(
        0.5,
        ge=0.1,
        le=5.0,
        description="periods to wait for a wrench that is due before going on without it",
    )
    longest_prediction: float = Field(
        1.0,
        ge=0.05,
        le=2.0,
        description="without wrenches for so long the estimate is no longer published",
        json_schema_extra={"unit": "s"},
    )


class CcEstimatorNode(LoopNode):
    """Estimates a constant-curvature arc from the force-torque sensor under its base.

    The model's numbers are those of the robot file; the estimated stiffness takes up their error.
    """

    default_name = "cc_estimator"
    Settings = CcEstimatorNodeSettings
    settings: CcEstimatorNodeSettings
    _predicted_only = _restarts = 0
    _blind = False

    def on_configure_node(self) -> None:
        self._model = ConstantCurvatureModel.of_robot(self.robot)
        self._estimator = CcEstimator(
            self._model,
            CosseratRod(self.robot, 1).base_height,
            CcEstimatorSettings(filter=self.settings.filter),
        )
        self._estimate_arc = self.advertise("estimate/constant_curvature")
        self._estimate_tip = self.advertise("estimate/tip/pose")
        self.receive(PRESSURES, self._decoded_pressures)
        self.receive(WRENCHES, self._decoded_wrench)

    def on_activate_node(self) -> None:
        self._last_stamp = self._last_wrench = float("-inf")
        self._blind = False
        self._predicted_only = self._restarts = 0
        self._pairing = SamplePairing(self.inbox.get, time.monotonic, self.reject, WRENCHES)

    def loop(self, stop: threading.Event) -> None:
        """One tick per pressure sample, as soon as its wrench is there or overdue."""
        patience = self.settings.patience * self.settings.period
        if self.settings.lockstep:
            patience = 1.0  # nothing is lost, only late
        while not stop.is_set():
            pressures = self._pairing.next_pressures()
            if pressures is None:
                continue
            wrench = self._pairing.partner_of(pressures.stamp, patience)
            if stop.is_set():
                return
            received = time.monotonic() if wrench is None else wrench.received
            value = None if wrench is None else wrench.value
            estimate = self._tick(pressures.value, value, pressures.stamp * 1e-9)
            if estimate is not None:
                self._publish(estimate, pressures.stamp)
                self.finish_tick(max(received, pressures.received), pressures.stamp)

    def diagnostic_values(self) -> dict[str, Any]:
        return {
            "filter": self.settings.filter,
            "initial_bending_stiffness": self._model.bending_stiffness,
            "predicted_only": self._predicted_only,
            "restarts": self._restarts,
        }

    def diagnostic_warnings(self) -> list[str]:
        return ["no wrenches: predicting only"] * self._blind

    def _tick(
        self, pressures: np.ndarray, wrench: np.ndarray | None, seconds: float
    ) -> CcEstimate | None:
        """The estimate at a time, or None when there is none to trust."""
        if seconds - self._last_stamp > self.settings.longest_prediction:
            # the first sample, or a hole too long to predict through
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

    def _publish(self, estimate: CcEstimate, stamp: int) -> None:
        values = [*estimate.coordinates, *estimate.rates, estimate.bending_stiffness]
        deviations = np.sqrt(estimate.covariance.diagonal())
        numbers = {}
        for name, value, deviation in zip(_NAMES, values, deviations, strict=True):
            numbers[name], numbers[f"{name}_std"] = float(value), float(deviation)
        self._estimate_arc.publish(named_numbers_message(numbers, stamp))
        model = self._model
        pose = section_pose(estimate.coordinates, model.rest_length, model.radius)
        pose[:3, 3] = estimate.tip_position + self.robot.tip_cap_length * pose[:3, 2]
        self._estimate_tip.publish(
            pose_with_covariance_to_message(pose, estimate.tip_position_covariance, stamp)
        )

    def _decoded_pressures(self, message: Any) -> np.ndarray:
        return pressures_from_message(message, self.robot.chamber_names, PRESSURES)

    @staticmethod
    def _decoded_wrench(message: Any) -> np.ndarray:
        return wrench_from_message(message, WRENCHES)


def main() -> int:
    """Entry point of `ros2 run softcr cc_estimator`."""
    return run(CcEstimatorNode)


if __name__ == "__main__":
    sys.exit(main())
