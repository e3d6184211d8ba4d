"""The estimator as a node: tip poses and pressures in, the rod's whole state out."""

import sys
import threading
import time
from typing import Any, Literal

import numba
import numpy as np
from pydantic import Field

from softcr_estimation.rod_estimator import Estimate, EstimatorSettings, RodEstimator
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.kernel import MAX_INTERVALS
from softcr_models.runtime.messages import (
    pose_from_message,
    pose_with_covariance_to_message,
    pressures_from_message,
    rod_cloud_message,
)
from softcr_models.runtime.node import LoopNode, run
from softcr_models.runtime.settings import NodeSettings


class EstimatorNodeSettings(NodeSettings):
    """The filter's model, and when to go on without a camera."""

    filter: Literal["ukf", "ekf"] = Field("ukf", description="unscented or extended Kalman filter")
    intervals: int = Field(5, ge=2, le=MAX_INTERVALS, description="intervals of the filter's rod")
    substeps: int = Field(2, ge=1, le=20, description="sub-steps of the prediction per period")
    parameters: tuple[str, ...] = Field(
        EstimatorSettings().parameters,
        description="estimated beside the state: bending_compliance, tip_mass, damping_factor, "
        "pressure_offset_1 ...",
    )
    use_orientation: bool = Field(False, description="whether the tip's orientation is used too")
    patience: float = Field(
        0.5,
        ge=0.1,
        le=5.0,
        description="periods to wait for a tip pose that is due before going on without it",
    )
    longest_prediction: float = Field(
        1.0,
        ge=0.05,
        le=60.0,
        description="without tip poses for so long the estimate is no longer published",
        json_schema_extra={"unit": "s"},
    )


class Estimator(LoopNode):
    """Estimates the rod's state and softness from the tip's position."""

    default_name = "estimator"
    Settings = EstimatorNodeSettings
    settings: EstimatorNodeSettings
    _repairs = _gated = _predicted_only = _restarts = 0
    _blind = False

    def on_configure_node(self) -> None:
        settings = self.settings
        self._rod = CosseratRod(self.robot, settings.intervals)
        prediction = RodPrediction(self._rod, settings.substeps)
        prediction.warm_up()
        self._estimator = RodEstimator(
            prediction,
            EstimatorSettings(
                filter=settings.filter, parameters=settings.parameters, period=settings.period
            ),
        )
        self._rehearse()
        self._forget()
        self._estimate_rod = self.advertise("estimate/rod")
        self._estimate_tip = self.advertise("estimate/tip/pose")
        self.receive("pressure/state", self._decoded_pressures)
        self.receive("mocap/tip/pose", self._decoded_pose)

    def on_activate_node(self) -> None:
        self._forget()

    def loop(self, stop: threading.Event) -> None:
        """One tick per pressure sample, as soon as its tip pose is there or overdue."""
        # a second thread, on shared cores, is waited for longer than it helps
        numba.set_num_threads(1)
        while not stop.is_set():
            pressures = self._next("pressure/state", None)
            if pressures is None:
                continue
            pose = self._pose_for(pressures.stamp)
            if stop.is_set():
                return
            received = (
                pressures.received if pose is None else max(pressures.received, pose.received)
            )
            tip_pose = None if pose is None else pose.value
            if pose is None:
                # the wait for an overdue pose is no work
                received = time.monotonic()
            estimate = self._update(pressures.value, tip_pose, pressures.stamp)
            if estimate is not None:
                self._publish(estimate, pressures.stamp)
                self.finish_tick(received, pressures.stamp)

    def diagnostic_values(self) -> dict[str, Any]:
        return {
            "initial_parameters": {
                "bending_compliance": self.robot.bending_compliance,
                "tip_mass": self.robot.tip_mass,
            },
            "repairs": self._repairs,
            "gated": self._gated,
            "predicted_only": self._predicted_only,
            "restarts": self._restarts,
            "intervals": self.settings.intervals,
            "filter": self.settings.filter,
        }

    def diagnostic_warnings(self) -> list[str]:
        return ["no tip poses: predicting only"] if self._blind else []

    # --- one tick ---------------------------------------------------------------------------

    def _update(
        self, pressures: np.ndarray, tip_pose: np.ndarray | None, stamp: int
    ) -> Estimate | None:
        """The estimate at `stamp`, or None when there is none to trust."""
        seconds = stamp * 1e-9
        if (
            self._last_stamp is None
            or seconds - self._last_stamp > self.settings.longest_prediction
        ):
            # the first sample, or a hole too long to predict through
            self._restarts += self._last_stamp is not None
            self._last_stamp = seconds
            self._last_pose = seconds
            return self._estimator.start(pressures, seconds)
        self._last_stamp = seconds
        position = rotation = None
        if tip_pose is not None:
            position = tip_pose[:3, 3]
            rotation = tip_pose[:3, :3] if self.settings.use_orientation else None
            self._last_pose = seconds
        estimate = self._estimator.update(pressures, position, seconds, rotation)
        self._repairs = estimate.repairs
        self._gated += estimate.gated
        self._predicted_only += estimate.predicted_only
        self._blind = seconds - self._last_pose > 2.0 * self.settings.period
        if seconds - self._last_pose > self.settings.longest_prediction:
            return None
        return estimate

    def _next(self, topic: str, timeout: float | None) -> Any:
        """The next letter of a topic; letters of the other topic wait in `_waiting`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._waiting[topic]:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0.0:
                return None
            letter = self.inbox.get(timeout=left)
            if letter is None:
                return None
            self._waiting[letter.topic].append(letter)
        return self._waiting[topic].pop(0)

    def _pose_for(self, stamp: int) -> Any:
        """The tip pose of `stamp`, waiting for it a little; None if there is none."""
        period = self.settings.period
        # in lock-step nothing is lost, only late; a blind camera is not waited for every time
        patience = 1.0 if self.settings.lockstep else self.settings.patience * period
        deadline = time.monotonic() + (0.05 * period if self._blind else patience)
        while (left := deadline - time.monotonic()) > 0.0:
            letter = self._next("mocap/tip/pose", left)
            if letter is None:
                return None
            if letter.stamp == stamp:
                return letter
            if letter.stamp > stamp:
                self._waiting["mocap/tip/pose"].insert(0, letter)
                return None
            self.reject("mocap/tip/pose", "came after its cycle")
        return None

    def _forget(self) -> None:
        self._waiting: dict[str, list[Any]] = {"pressure/state": [], "mocap/tip/pose": []}
        self._last_stamp: float | None = None
        self._last_pose = 0.0
        self._blind = False
        self._repairs = self._gated = self._predicted_only = self._restarts = 0

    def _rehearse(self) -> None:
        """Two ticks on nothing, so that no compiled function is first called in the loop."""
        pressures = np.zeros(len(self.robot.chambers))
        tip = self._rod.tip_pose(self._rod.equilibrium(pressures))
        self._estimator.start(pressures, 0.0)
        for tick in (1, 2):
            estimate = self._estimator.update(
                pressures, tip[:3, 3], tick * self.settings.period,
                tip[:3, :3] if self.settings.use_orientation else None,
            )  # fmt: skip
        self._rod_message(estimate, self._node_poses(estimate), 1)

    # --- messages ---------------------------------------------------------------------------

    def _decoded_pressures(self, message: Any) -> np.ndarray:
        return pressures_from_message(message, self.robot.chamber_names, "pressure/state")

    @staticmethod
    def _decoded_pose(message: Any) -> np.ndarray:
        return pose_from_message(message, "mocap/tip/pose")

    def _publish(self, estimate: Estimate, stamp: int) -> None:
        nodes = self._node_poses(estimate)
        self._estimate_rod.publish(self._rod_message(estimate, nodes, stamp))
        pose = self._rod.tip_pose_from_rod_tip(nodes[-1])
        message = pose_with_covariance_to_message(pose, estimate.tip_position_covariance, stamp)
        self._estimate_tip.publish(message)

    @staticmethod
    def _rod_message(estimate: Estimate, nodes: np.ndarray, stamp: int) -> Any:
        poses = np.concatenate((nodes[:1], nodes))
        return rod_cloud_message(
            estimate.state, poses, estimate.parameters, estimate.parameters_std, stamp
        )

    def _node_poses(self, estimate: Estimate) -> np.ndarray:
        names = RodPrediction.parameter_names
        parameters = np.array([estimate.parameters[name] for name in names])
        return self._rod.node_poses(estimate.state, parameters)


def main() -> int:
    """Entry point of `ros2 run softcr estimator`."""
    return run(Estimator)


if __name__ == "__main__":
    sys.exit(main())
