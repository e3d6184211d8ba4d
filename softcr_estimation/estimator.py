"""The estimator: what actuators and cameras measure in, the robot's state and tip out.

There is one tick per sample of the actuators, with the cameras' sample of its stamp or, where that
is overdue, without. After a hole that is too long to predict through the estimator begins anew.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np
from pydantic import Field

from softcr_estimation.context import EstimationContext
from softcr_models.model import TIP
from softcr_models.models import DeviceName, ModelChoice, ModelName, prediction_model
from softcr_models.rod.kernel import MAX_INTERVALS
from softcr_runtime import registry
from softcr_runtime.block import BlockBase, Input, Output, Samples
from softcr_runtime.plugin_settings import plugin_settings, with_plugin
from softcr_runtime.plugins import Place
from softcr_runtime.robot_topics import robot_topics
from softcr_runtime.settings import NodeSettings, SampledNodeSettings
from softcr_runtime.values import Pose, StateEstimate, TipEstimate, blended_poses

_LOCKSTEP_PATIENCE = 1.0  # in lock-step nothing is lost, only late [s]
_BLIND_PATIENCE = 0.05  # a blind camera is not waited for every time [periods]
_BLIND_AFTER = 2.0  # [periods]
_REHEARSED = 3  # ticks


class EstimatorBlockSettings(SampledNodeSettings):
    """Which estimator on which model, and when to go on without a camera."""

    estimator: Place = Field(
        "rod", description="a known one; or package.module:Class, or path/file.py:Class"
    )
    model: ModelName = Field("rod", description="the exact rod, or the network trained for it")
    network: str = Field("", description="path of another network than the robot's own")
    device: DeviceName = Field("cpu", description="where the model computes")
    intervals: int = Field(5, ge=2, le=MAX_INTERVALS, description="intervals of the filter's rod")
    substeps: int = Field(2, ge=1, le=20, description="sub-steps of the prediction per period")
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


class EstimatorBlock(BlockBase):
    """Estimates a robot's state and softness from the position of its tip."""

    name = "estimator"
    Settings = EstimatorBlockSettings

    def __init__(self, robot: Any, settings: Any) -> None:
        """See BlockBase."""
        super().__init__(robot, settings)
        choice = ModelChoice(
            model=settings.model,
            device=settings.device,
            network=settings.network,
            intervals=settings.intervals,
            substeps=settings.substeps,
        )
        self.model = prediction_model(robot, choice)
        self.model.warm_up()
        estimator_class = registry.resolve("estimator", settings.estimator)
        context = EstimationContext(robot, self.model, settings.period)
        self.estimator = estimator_class(context, plugin_settings(settings, estimator_class))
        topics = robot_topics(robot)
        self._actuators, self._cameras = topics.state, topics.poses
        resampled = settings.resampled
        self.inputs = (
            Input(self._actuators, "lead", resampled=resampled),
            Input(
                self._cameras, "same", resampled, needed=False,
                patience=self._patience, blend=blended_poses,
            ),
        )  # fmt: skip
        self._gives_state = getattr(estimator_class, "gives_state", True)
        self.outputs = (*(("estimate/rod",) if self._gives_state else ()), "estimate/tip/pose")
        self._forget()

    @classmethod
    def settings_model(cls, given: Mapping[str, Any]) -> type[NodeSettings]:
        """See BlockBase."""
        named = given.get("estimator", cls.Settings.model_fields["estimator"].default)
        return with_plugin(cls.Settings, registry.resolve("estimator", named))

    @property
    def title(self) -> str:
        """See BlockBase."""
        return type(self.estimator).__name__

    def rehearse(self) -> None:
        """See BlockBase."""
        inputs = np.zeros(self.model.inputs.size)
        parameters = np.array([each.nominal for each in self.model.parameters])
        state = self.model.equilibrium(inputs, parameters)
        tip = np.eye(4)
        tip[:3] = self.model.observe((TIP,), state[None], inputs[None], parameters[None])[TIP][0]
        for number in range(_REHEARSED):
            stamp = (1 + number) * self.settings.period
            estimate = self.estimator.update(inputs, {TIP: tip}, stamp)
            if estimate is not None:
                self._outputs(estimate, 1)

    def reset(self) -> None:
        """See BlockBase."""
        self.estimator.reset()
        self._forget()

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """The estimate at `now`; none where there is none to trust."""
        seconds = now * 1e-9
        pose: Pose | None = getattr(samples.get(self._cameras), "value", None)
        inputs = samples[self._actuators].value
        longest = self.settings.longest_prediction
        begins = self._last is None or seconds - self._last > longest
        if begins:
            # the first sample, or a hole too long to predict through
            self._restarts += self._last is not None
            self._last_pose = seconds
            self.estimator.reset()
        self._last = seconds
        if pose is None:
            self._predicted_only += not begins
        else:
            self._last_pose = seconds
        measured = {} if pose is None else {TIP: pose.matrix}
        estimate = self.estimator.update(inputs, measured, seconds)
        self._blind = seconds - self._last_pose > _BLIND_AFTER * self.settings.period
        if estimate is None or seconds - self._last_pose > longest:
            return ()
        return self._outputs(estimate, now)

    def describe(self) -> dict[str, Any]:
        """See BlockBase."""
        return {
            "role": "estimator",
            "initial_parameters": {
                "bending_compliance": self.robot.bending_compliance,
                "tip_mass": self.robot.tip_mass,
            },
            "intervals": self.settings.intervals,
            "predicted_only": self._predicted_only,
            "restarts": self._restarts,
            **getattr(self.estimator, "describe", dict)(),
        }

    def warnings(self) -> list[str]:
        """See BlockBase."""
        lines = list(getattr(self.estimator, "warnings", list)())
        return [*["no tip poses: predicting only"] * self._blind, *lines]

    def _outputs(self, estimate: Any, now: int) -> list[Output]:
        covariance = estimate.tip_position_covariance
        if not self._gives_state:
            position = np.asarray(estimate.tip_position, float)
            if position.shape != (3,) or not np.isfinite(position).all():
                raise ValueError(f"tip_position = {position} must be 3 finite numbers [m]")
            tip = TipEstimate(lambda: Pose.of(_unturned(position)), covariance)
            return [Output("estimate/tip/pose", now, tip)]
        state, rod = estimate.state, self.model.rod
        if np.shape(state) != (self.model.state.size,) or not np.isfinite(state).all():
            size = self.model.state.size
            raise ValueError(
                f"state of shape {np.shape(state)} must be {size} finite numbers; an estimator "
                "without a state says gives_state = False"
            )

        @cache
        def nodes() -> np.ndarray:
            names = (each.name for each in self.model.parameters)
            told = np.array([estimate.parameters[name] for name in names])
            return rod.node_poses(state, told)

        value = StateEstimate(
            state,
            estimate.parameters,
            estimate.parameters_std,
            lambda: np.concatenate((nodes()[:1], nodes())),
        )
        tip = TipEstimate(lambda: Pose.of(rod.tip_pose_from_rod_tip(nodes()[-1])), covariance)
        return [Output("estimate/rod", now, value), Output("estimate/tip/pose", now, tip)]

    def _patience(self) -> float:
        """For the poses of a tick [s]."""
        if self._blind and not self.settings.resampled:
            return _BLIND_PATIENCE * self.settings.period
        if self.settings.lockstep:
            return _LOCKSTEP_PATIENCE
        return float(self.settings.patience * self.settings.period)

    def _forget(self) -> None:
        self._last: float | None = None
        self._last_pose = 0.0
        self._blind = False
        self._predicted_only = self._restarts = 0


def _unturned(position: np.ndarray) -> np.ndarray:
    """(4, 4) pose at a position [m] whose rotation is not known."""
    pose = np.eye(4)
    pose[:3, 3] = position
    return pose
