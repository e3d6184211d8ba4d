"""The estimator: what actuators and cameras measure in, the robot's state and tip out.

There is one tick per sample of the actuators, with the cameras' sample of its stamp or, where that
is overdue, without. After a hole that is too long to predict through the estimator starts again.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
from pydantic import Field

from softcr_estimation.context import EstimationContext, Estimator
from softcr_estimation.estimated_shape import estimated_shape
from softcr_estimation.sensors.further_sensors import FURTHER, further_sensors
from softcr_estimation.sensors.pressure_filter import PressureFilter
from softcr_models.errors import UserError
from softcr_models.model import TIP, counts_and_warnings, nominal_parameters
from softcr_models.plugins import Place, made
from softcr_models.robots.robot import kind_of
from softcr_models.tip_offset import TIP_OFFSET
from softcr_runtime.blocks.block import BlockBase, Input, Output, Rule, Samples
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.values import Pose, StateEstimate, TipEstimate, blended_poses
from softcr_runtime.settings import registry
from softcr_runtime.settings.node_settings import LIVE, NodeSettings
from softcr_runtime.settings.plugin_settings import (
    ModelSettings,
    model_of,
    plugin_settings,
    prepared_plugin,
    with_model,
    with_plugin,
)
from softcr_runtime.wire.robot_topics import inputs_of, robot_topics, states_topic

_LOCKSTEP_PATIENCE = 1.0  # in lock-step nothing is lost, only late [s]
_BLIND_PATIENCE = 0.05  # a blind camera is not waited for every time [periods]
_BLIND_AFTER = 2.0  # [periods]
_REHEARSED = 3  # ticks


class EstimatorBlockSettings(ModelSettings):
    """Which estimator on which model, and when to go on without a camera."""

    estimator: Place = Field(
        "rod", description="a registered estimator; or package.module:Class, or path/file.py:Class"
    )
    substeps: int = Field(2, ge=1, le=64, description="sub-steps of the prediction per period")
    patience: float = Field(
        0.5,
        ge=0.1,
        le=5.0,
        description="periods to wait for a tip pose that is due before continuing without it; with "
        "separate sampling more than the cameras' latency and period together",
        json_schema_extra=LIVE,
    )
    pressure_filter: bool = Field(
        True,
        description="whether pressure readings are filtered with the commands that caused them, if "
        "the robot's inputs have a lag",
    )
    longest_prediction: float = Field(
        1.0,
        ge=0.05,
        le=60.0,
        description="time without tip poses after which the estimate is no longer published",
        json_schema_extra={"unit": "s", **LIVE},
    )


class EstimatorBlock(BlockBase):
    """Estimates a robot's state and softness from the poses that cameras measure."""

    name = "estimator"
    Settings = EstimatorBlockSettings
    kinds = None
    _last: float | None
    _last_pose: float
    _blind: bool
    _predicted_only: int
    _restarts: int

    def __init__(self, robot: Any, settings: Any) -> None:
        super().__init__(robot, settings)
        self.model = model_of(robot, settings)
        self.model.warm_up()
        context = EstimationContext(robot, self.model, settings.period)
        named = registry.resolve("estimator", settings.estimator)
        self.estimator: Estimator = made(named, context, plugin_settings(settings, named))
        topics = robot_topics(robot)
        self._actuators, self._cameras = topics.state, topics.poses
        asked = (getattr(settings, f"use_{name}", False) for name in FURTHER)
        self._further = further_sensors(robot, self.model, *asked)
        self._sees_tip = getattr(settings, "use_tip_pose", True)
        if not (self._sees_tip or self._further):
            raise UserError(
                "use_tip_pose = False: nothing else is measured; must be true, or another sensor "
                "that the robot has be used: body poses, tendon lengths, the base wrench"
            )
        resampled = settings.resampled
        self._commands, self._pressures = topics.sent, self._pressure_filter()
        # in lock-step the plant sends it last: what has not come before it does not come
        last = self._commands if settings.lockstep and self._pressures is not None else ""
        self.inputs = (
            # on the bench they come thrice in a period, and the pose that is waited for after them
            Input(self._actuators, "lead", resampled=resampled, wakes=not resampled),
            *(
                Input(
                    topic, "same", resampled, needed=False,
                    patience=self._patience, after=last, blend=blended_poses,
                )
                for topic in (self._cameras,) if self._sees_tip
            ),
            *(
                Input(
                    each.topic, "same", resampled, needed=False, blend=each.blend,
                    patience=partial(self._patience, each.topic), after=last,
                )
                for each in self._further
            ),
        )  # fmt: skip
        if self._pressures is not None:
            # in lock-step it is told once a tick, otherwise it comes when it comes
            rule: Rule = "answer" if settings.lockstep else "all"
            self.inputs += (
                Input(
                    self._commands, rule, needed=False, wakes=settings.lockstep,
                    patience=partial(self._patience, self._commands),
                ),
            )  # fmt: skip
        self._gives_state = getattr(self.estimator, "gives_state", True)
        self._states = states_topic(self.model)
        self.outputs = (*((self._states,) if self._gives_state else ()), "estimate/tip/pose")
        self._forget()

    @classmethod
    def settings_model(cls, given: Mapping[str, Any]) -> type[NodeSettings]:
        named = given.get("estimator", cls.Settings.model_fields["estimator"].default)
        robot = str(given.get("robot", cls.Settings.model_fields["robot"].default))
        base = with_model(cls.Settings, str(given.get("model", "")) or kind_of(robot))
        return with_plugin(base, registry.resolve("estimator", named))

    @property
    def summary(self) -> str:
        settings = self.settings
        name = settings.model or kind_of(settings.robot)
        rod = f" of {settings.intervals} intervals" if hasattr(self.model, "rod") else ""
        kind = f" ({self.estimator.kind})" if hasattr(self.estimator, "kind") else ""
        how = "own times, interpolated" if settings.resampled else "common stamps"
        return (
            f"estimator {settings.estimator}{kind} for {settings.robot}, on model {name}{rod}; "
            f"samples of {' and '.join(each.topic for each in self.inputs)} with {how}"
        )

    @property
    def title(self) -> str:
        return type(self.estimator).__name__

    def rehearse(self) -> None:
        model = self.model
        inputs, nominal = model.inputs.rest, nominal_parameters(model.parameters)
        state = model.equilibrium(inputs, nominal)
        further = [name for each in self._further for name in each.outputs]
        names = (*(self._seen if self._sees_tip else ()), *further)
        seen = model.observe(names, state[None], inputs[None], nominal[None])
        measured = {name: _as_measured(found[0]) for name, found in seen.items()}
        for number in range(_REHEARSED):
            stamp = (1 + number) * self.settings.period
            estimate = self.estimator.update(inputs, measured, stamp)
            if estimate is not None:
                self._outputs(estimate, inputs, 1)

    def prepared(self, settings: Any) -> Callable[[], None]:
        """See BlockBase; of the estimator too, where it has such a method."""
        named = registry.resolve("estimator", settings.estimator)
        own = [plugin_settings(each, named) for each in (self.settings, settings)]
        retune = prepared_plugin(self.estimator, *own)

        def use() -> None:
            retune()
            self.settings = settings

        return use

    def reset(self) -> None:
        self.estimator.reset()
        self._forget()

    def time_jumped(self, seconds: float) -> None:
        """See BlockBase; counted as a restart."""
        restarts = self._restarts + (self._last is not None)
        self.reset()
        self._restarts = restarts

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """The estimate at `now`; none where there is none to trust, and none of a stamp twice."""
        seconds = now * 1e-9
        if seconds == self._last:
            return ()
        measured = self._measured(samples.get(self._cameras))
        located = bool(measured)
        inputs = inputs_of(samples[self._actuators].value)
        longest = self.settings.longest_prediction
        begins = self._last is None or not 0.0 < seconds - self._last <= longest
        if begins:
            # the first sample, a hole too long to predict through, or a time that went back
            self._restarts += self._last is not None
            self._last_pose = seconds
            self.estimator.reset()
            if self._pressures is not None:
                self._pressures.reset()
            self._last_heard[self._commands] = seconds
        self._last = seconds
        inputs = self._filtered(inputs, samples.get(self._commands, ()), seconds)
        for each in self._further:
            if begins:
                self._last_heard[each.topic] = seconds
            if (sample := samples.get(each.topic)) is not None:
                self._last_heard[each.topic] = seconds
                measured |= each.measured(sample.value)
        if located or (measured and not self._sees_tip):
            self._last_pose = seconds
        else:
            self._predicted_only += not begins
        estimate = self.estimator.update(inputs, measured, seconds)
        self._blind = seconds - self._last_pose > _BLIND_AFTER * self.settings.period
        if estimate is None or seconds - self._last_pose > longest:
            return ()
        return self._outputs(estimate, inputs, now)

    def describe(self) -> dict[str, Any]:
        return {
            "role": "estimator",
            "initial_parameters": {each.name: each.nominal for each in self.model.parameters},
            "intervals": self.settings.intervals,
            "predicted_only": self._predicted_only,
            "restarts": self._restarts,
            "beyond_model": self._beyond,
            "predictions": counts_and_warnings(self.model)[0],
            **self._told_of_pressures(),
            **getattr(self.estimator, "describe", dict)(),
        }

    def warnings(self) -> list[str]:
        lines = list(getattr(self.estimator, "warnings", list)())
        silent = [each.topic for each in self._further if self._is_silent(each.topic)]
        missing = [f"nothing on {', '.join(silent)}: estimating without"] if silent else []
        what = "tip poses" if self._sees_tip else "measurements"
        blind = [f"no {what}: predicting only"] * self._blind
        lost = f"not published: {self._beyond} estimates, bent more than the rod's model holds"
        beyond = [lost] * bool(self._beyond)
        return [*blind, *missing, *beyond, *lines, *counts_and_warnings(self.model)[1]]

    def _pressure_filter(self) -> PressureFilter | None:
        """None where it is not wanted, or inputs are no pressures behind a lag."""
        inputs = self.model.inputs
        if not self.settings.pressure_filter or inputs.lag is None or inputs.unit != "Pa":
            return None
        return PressureFilter(inputs.lag, self.settings.period)

    def _filtered(self, inputs: np.ndarray, played: Any, seconds: float) -> np.ndarray:
        """(m,) readings with less noise, by what was played: a sample, or all since last."""
        if self._pressures is None:
            return inputs
        for sample in played if isinstance(played, tuple) else (played,):
            self._last_heard[self._commands] = seconds
            self._pressures.hear(1e-9 * sample.stamp, sample.value)
        return self._pressures.filtered(inputs, seconds)

    def _told_of_pressures(self) -> dict[str, Any]:
        found = self._pressures
        if found is None:
            return {}
        unknown = f"off: nothing on {self._commands} that the readings could follow"
        return {
            "pressure_filter": "on" if found.follows else unknown,
            "pressure_noise": found.noise,
            "command_delay": found.delay,
            "unfiltered": found.unfiltered,
        }

    def _is_silent(self, topic: str) -> bool:
        """Whether a further sensor was not heard for so long that it is not waited for."""
        if self._last is None:
            return False
        heard = self._last_heard.get(topic, self._last)
        return self._last - heard > _BLIND_AFTER * self.settings.period

    @property
    def _seen(self) -> tuple[str, ...]:
        """The model's outputs that the cameras see."""
        return (TIP,) if self.robot.sees_tip else self.robot.bodies_seen

    def _measured(self, sample: Sample | None) -> dict[str, np.ndarray]:
        """Poses by output of the model; none where the cameras saw nothing."""
        if sample is None:
            return {}
        poses = sample.value if isinstance(sample.value, tuple) else (sample.value,)
        seen = zip(self._seen, poses, strict=True)
        if getattr(self.estimator, "positions_suffice", False):
            return {name: pose.position for name, pose in seen}
        return {name: pose.matrix for name, pose in seen}

    def _outputs(self, estimate: Any, inputs: np.ndarray, now: int) -> list[Output]:
        covariance = estimate.tip_position_covariance
        if not self._gives_state:
            position = np.asarray(estimate.tip_position, float)
            if position.shape != (3,) or not np.isfinite(position).all():
                raise ValueError(f"tip_position = {position} must be 3 finite numbers [m]")
            tip = TipEstimate(lambda: Pose.of(_unturned(position)), covariance)
            return [Output("estimate/tip/pose", now, tip)]
        state = estimate.state
        if np.shape(state) != (self.model.state.size,) or not np.isfinite(state).all():
            size = self.model.state.size
            raise ValueError(
                f"state of shape {np.shape(state)} must be {size} finite numbers; an estimator "
                "without a state says gives_state = False"
            )
        shape = estimated_shape(self.model, state, estimate.parameters)
        if not np.isfinite(shape.tip()).all():  # its messages will need the poses anyway
            self._beyond += 1
            return []
        offset = getattr(estimate, "tip_offset", np.zeros(3))
        told = dict(estimate.parameters)
        if offset.any():
            told |= zip(TIP_OFFSET, offset.tolist(), strict=True)
        value = StateEstimate(estimate.state, told, estimate.parameters_std, shape.poses, inputs)
        tip = TipEstimate(lambda: _aside(shape.tip(), offset), covariance)
        return [Output(self._states, now, value), Output("estimate/tip/pose", now, tip)]

    def _patience(self, topic: str = "") -> float:
        """For the tip's pose of a tick, or what a further sensor says [s]."""
        blind = self._is_silent(topic) if topic else self._blind
        if blind and not self.settings.resampled:
            return _BLIND_PATIENCE * self.settings.period
        if self.settings.lockstep:
            return _LOCKSTEP_PATIENCE
        return float(self.settings.patience * self.settings.period)

    def _forget(self) -> None:
        self._last = None
        self._last_pose = 0.0
        self._last_heard: dict[str, float] = {}
        self._blind = False
        self._predicted_only = self._restarts = self._beyond = 0
        if self._pressures is not None:
            self._pressures.reset()


def _as_measured(output: np.ndarray) -> np.ndarray:
    """Poses (3, 4) as (4, 4)."""
    is_pose = output.shape == (3, 4)
    return np.vstack((output, [0.0, 0.0, 0.0, 1.0])) if is_pose else output


def _aside(tip: np.ndarray, offset: np.ndarray) -> Pose:
    """A model's tip (4, 4) and (3,) how it lasts beside it [m]."""
    pose = np.array(tip)
    pose[:3, 3] += offset
    return Pose.of(pose)


def _unturned(position: np.ndarray) -> np.ndarray:
    """(4, 4) pose at a position [m] whose rotation is not known."""
    pose = np.eye(4)
    pose[:3, 3] = position
    return pose
