"""What the estimator does with each sample: start, update, predict, give up. No ROS here.

The node feeds it with what DDS brings, `softcr replay` with what a bag holds.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from pydantic import Field

from softcr_estimation.rod_estimator import Estimate, EstimatorSettings, RodEstimator
from softcr_estimation.sample_pairing import AnySample, SamplePairing
from softcr_estimation.sample_resampling import SampleResampling
from softcr_models.models import DeviceName, ModelChoice, ModelName, prediction_model
from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.kernel import MAX_INTERVALS
from softcr_models.rod.stepper import PARAMETERS
from softcr_runtime.messages import pose_with_covariance_to_message
from softcr_runtime.rod_clouds import rod_cloud_message
from softcr_runtime.settings import SampledNodeSettings

UNPAIRED_TOLD = 200
"""How many of the last stamps without a tip pose are told: of more than one status, at 70 Hz."""

_LOCKSTEP_PATIENCE = 1.0  # in lock-step nothing is lost, only late [s]
_BLIND_PATIENCE = 0.05  # a blind camera is not waited for every time [periods]


class EstimatorNodeSettings(SampledNodeSettings):
    """The filter's model, and when to go on without a camera."""

    filter: Literal["ukf", "ekf"] = Field("ukf", description="unscented or extended Kalman filter")
    model: ModelName = Field("rod", description="the exact rod, or the network trained for it")
    network: str = Field("", description="path of another network than the robot's own")
    device: DeviceName = Field("cpu", description="where the model computes")
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
        description="periods to wait for a tip pose that is due before going on without it; with "
        "separate sampling more than the cameras' latency and their period together",
    )
    longest_prediction: float = Field(
        1.0,
        ge=0.05,
        le=60.0,
        description="without tip poses for so long the estimate is no longer published",
        json_schema_extra={"unit": "s"},
    )


class EstimationLoop:
    """One tick per pressure sample, with its tip pose or without.

    Attributes:
        rod: of the filter.
        repairs, gated, predicted_only, restarts: counts since `forget`.
        blind: whether the tip poses have stayed away.
        unpaired: the last stamps [ns] that had no tip pose. With the published estimates they tell
            which recorded inputs were used, so that a replay can use the same.
    """

    def __init__(self, robot: Robot, settings: EstimatorNodeSettings) -> None:
        """Make rod and filter, compile and rehearse: the first tick is as fast as any.

        Raises:
            UserError: `settings.parameters` names something that does not exist.
        """
        self._settings = settings
        self._chambers = len(robot.chambers)
        choice = ModelChoice(
            model=settings.model,
            device=settings.device,
            network=settings.network,
            intervals=settings.intervals,
            substeps=settings.substeps,
        )
        prediction = prediction_model(robot, choice)
        self.rod = prediction.rod
        prediction.warm_up()
        self._estimator = RodEstimator(
            prediction,
            EstimatorSettings(
                filter=settings.filter, parameters=settings.parameters, period=settings.period
            ),
        )
        self._rehearse()
        self.forget()

    def pairing(
        self,
        get: Callable[[float | None], AnySample | None],
        now: Callable[[], float],
        reject: Callable[[str, str], None],
    ) -> SamplePairing[AnySample]:
        """What pairs pressures and poses out of an inbox, see `SamplePairing`."""
        if self._settings.resampled:
            return SampleResampling(get, now, reject, self._settings.period)
        return SamplePairing(get, now, reject)

    @property
    def patience(self) -> float:
        """How long to wait for the tip pose of a sample [s]."""
        if self.blind and not self._settings.resampled:
            return _BLIND_PATIENCE * self._settings.period
        if self._settings.lockstep:
            return _LOCKSTEP_PATIENCE
        return self._settings.patience * self._settings.period

    @property
    def counts(self) -> dict[str, int]:
        """What happened since `forget`, for the diagnostics."""
        return {
            "repairs": self.repairs,
            "gated": self.gated,
            "predicted_only": self.predicted_only,
            "restarts": self.restarts,
        }

    def forget(self) -> None:
        """Begin anew with the next sample."""
        self._last_stamp: float | None = None
        self._last_pose = 0.0
        self.blind = False
        self._repairs_before = 0
        self.unpaired: deque[int] = deque(maxlen=UNPAIRED_TOLD)
        self.repairs = self.gated = self.predicted_only = self.restarts = 0

    def tick(
        self, pressures: np.ndarray, tip_pose: np.ndarray | None, stamp: int
    ) -> Estimate | None:
        """The estimate at `stamp`, or None when there is none to trust.

        Args:
            pressures: (m,) measured gauge pressures [Pa].
            tip_pose: (4, 4) measured tip in the base frame [m]; None: predict only.
            stamp: of both [ns].

        Raises:
            EstimatorError: the filter refuses an input; it is left as it was.
        """
        seconds = stamp * 1e-9
        if tip_pose is None:
            self.unpaired.append(stamp)
        if (
            self._last_stamp is None
            or seconds - self._last_stamp > self._settings.longest_prediction
        ):
            # the first sample, or a hole too long to predict through
            self.restarts += self._last_stamp is not None
            self._repairs_before = self.repairs
            self._last_stamp = seconds
            self._last_pose = seconds
            return self._estimator.start(pressures, seconds)
        self._last_stamp = seconds
        position = rotation = None
        if tip_pose is not None:
            position = tip_pose[:3, 3]
            rotation = tip_pose[:3, :3] if self._settings.use_orientation else None
            self._last_pose = seconds
        estimate = self._estimator.update(pressures, position, seconds, rotation)
        self.repairs = self._repairs_before + estimate.repairs
        self.gated += estimate.gated
        self.predicted_only += estimate.predicted_only
        self.blind = seconds - self._last_pose > 2.0 * self._settings.period
        if seconds - self._last_pose > self._settings.longest_prediction:
            return None
        return estimate

    def messages(self, estimate: Estimate, stamp: int) -> tuple[Any, Any]:
        """The estimate/rod and estimate/tip/pose messages of an estimate; stamp [ns]."""
        return estimate_messages(self.rod, estimate, stamp)

    def _rehearse(self) -> None:
        """Two ticks on nothing, so that no compiled function is first called in the loop."""
        pressures = np.zeros(self._chambers)
        tip = self.rod.tip_pose(self.rod.equilibrium(pressures))
        self._estimator.start(pressures, 0.0)
        for tick in (1, 2):
            estimate = self._estimator.update(
                pressures, tip[:3, 3], tick * self._settings.period,
                tip[:3, :3] if self._settings.use_orientation else None,
            )  # fmt: skip
        self.messages(estimate, 1)


def estimate_messages(rod: CosseratRod, estimate: Estimate, stamp: int) -> tuple[Any, Any]:
    """The estimate/rod and estimate/tip/pose messages of an estimate.

    Args:
        rod: of the filter.
        estimate: its state is the rod's.
        stamp: [ns].
    """
    nodes = rod.node_poses(
        estimate.state, np.array([estimate.parameters[name] for name in PARAMETERS])
    )
    cloud = rod_cloud_message(
        estimate.state,
        np.concatenate((nodes[:1], nodes)),
        estimate.parameters,
        estimate.parameters_std,
        stamp,
    )
    tip = rod.tip_pose_from_rod_tip(nodes[-1])
    return cloud, pose_with_covariance_to_message(tip, estimate.tip_position_covariance, stamp)
