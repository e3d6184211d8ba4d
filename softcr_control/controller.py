"""The controller: estimate and reference of one stamp in, a limited command out.

What the actuators measured comes with the estimate that was made with it; a controller that is led
by the tip alone, which tells no more than itself, hears it from the actuators.
The limiter is the last stage, whatever the controller says: what it lets through is what is
published. Without estimate or reference the actuators are told what is safe, again and again.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from statistics import median
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from softcr_control.command import Command
from softcr_control.controller_file import controller_settings, named_settings
from softcr_control.hand_over import HandOver, HandOverSettings
from softcr_control.horizon import MAXIMUM_DELAY
from softcr_control.model_defaults import defaults_on
from softcr_control.observation import ControlContext, Controller, Observation
from softcr_control.references import Reference, as_rotations
from softcr_models.limits import limit_command
from softcr_models.model import TIP, nominal_parameters, told_by
from softcr_models.plugins import Place, made
from softcr_models.robot import kind_of
from softcr_runtime import registry
from softcr_runtime.block import BlockBase, Input, Output, Samples
from softcr_runtime.plugin_settings import (
    ModelSettings,
    model_of,
    plugin_settings,
    prepared_plugin,
    settings_class,
    with_model,
    with_plugin,
)
from softcr_runtime.robot_topics import inputs_of, reference_topic, robot_topics, states_topic
from softcr_runtime.sample import Sample
from softcr_runtime.settings import LIVE, NodeSettings, nested, setting_values
from softcr_runtime.values import Pose, StateEstimate, TipEstimate

_LATENCIES_KEPT = 15  # ticks that tell how late answers are
_MIN_SAMPLES = 5  # of them: a run's first answer is later than the others, and says nothing
_LATE_TOLERANCE = 0.05  # an answer may be so much late, and is not planned for later [periods]
# Answers must be so much earlier to be planned for earlier again [periods]. The bench's wait until
# their tick; the simulator follows them before, and a plan that is late makes the loop oscillate
_EARLIER_MARGIN, _EARLIER_MARGIN_SIMULATED = 0.25, 0.05
_LEAD = 0.0035
"""An answer to the bench is sent so long before the tick it was planned for: what the valves' node
takes to see it, and the valves to begin [s]."""
_REHEARSED = 3  # ticks


class ControllerBlockSettings(ModelSettings, HandOverSettings):
    """Which controller on which model, and when to vent; the controller's own settings beside."""

    controller: Place = Field(
        "nempc", description="a known one; or package.module:Class, or path/file.py:Class"
    )
    controller_file: str = Field(
        "",
        description="a file of config/controllers, or a YAML file, with the controller's numbers; "
        "empty: its own",
        json_schema_extra={"folder": "controllers"},
    )
    threads: int = Field(
        0, ge=0, le=256, description="of the prediction; 0: as the controller likes them"
    )
    # through the pressure lag nothing jumps: the closed loop's tip error is that of two sub-steps
    substeps: int = Field(1, ge=1, le=20, description="sub-steps of the prediction per period")
    command_age: float = Field(
        0.0,
        ge=0.0,
        le=0.1,
        description="of an answer when the valves begin to follow it, counted from its stamp, for "
        "which they wait themselves; 0: they do when it comes. As the valves'",
        json_schema_extra={"unit": "s"},
    )
    input_timeout: float = Field(
        0.1,
        ge=0.01,
        le=5.0,
        description="without estimate or reference for so long the chambers vent (wall mode)",
        json_schema_extra={"unit": "s", **LIVE},
    )


class ControllerBlock(BlockBase):
    """Moves the robot along the reference, by the controller that its settings name."""

    name = "controller"
    Settings = ControllerBlockSettings
    kinds = ("rod", "arm", "strain")
    _expected_delay: int
    _fallbacks: int
    _clipped: int
    _vents: int
    keep = "newest"

    def __init__(
        self,
        robot: Any,
        settings: Any,
        make: Callable[[ControlContext], Controller] | None = None,
    ) -> None:
        """See BlockBase.

        Args:
            robot: see BlockBase.
            settings: see BlockBase.
            make: another way to make the controller; None: as settings say.
        """
        super().__init__(robot, settings)
        controller_class = registry.resolve("controller", settings.controller)
        precise = getattr(controller_class, "double_precision", False)
        self.model = model_of(robot, settings, single_precision=not precise)
        self.model.warm_up()
        context = ControlContext(
            robot, self.model, settings.period, settings.seed, settings.resampled
        )
        self._needs_state = getattr(controller_class, "needs_state", True)
        if make is None:
            # a controller may be made in several ways, by what it is made for
            kind = getattr(controller_class, "made", controller_class)
            self.controller = made(kind, context, plugin_settings(settings, controller_class))
        else:
            self.controller = make(context)
        self.threads = settings.threads or getattr(controller_class, "threads", 1)
        topics = robot_topics(robot)
        self._commands, self._actuators = topics.command, topics.state
        self._wanted = reference_topic(self.model)
        # the state leads a controller that needs it, the tip alone one that does not
        self._lead_topic = states_topic(self.model) if self._needs_state else "estimate/tip/pose"
        self.inputs = (
            Input(self._lead_topic, "lead"),
            # on the bench the estimate comes after both, and pressures come thrice in a period
            Input(self._wanted, "same", wakes=not settings.resampled),
        )
        if not self._needs_state:
            self.inputs += (
                Input(self._actuators, "same", settings.resampled, wakes=not settings.resampled),
            )
        self.outputs = (self._commands,)
        if settings.takes_over:
            self.inputs += (Input(self._commands, "latest", needed=False, wakes=False),)
        self._hand_over = HandOver(settings, settings.period, MAXIMUM_DELAY + 1)
        self.silence = settings.input_timeout
        rod = getattr(self.model, "rod", None)
        self.intervals = None if rod is None else rod.intervals
        self._lead = _LEAD / settings.period if settings.resampled else 0.0  # [periods]
        self._waited_for = round(settings.command_age / settings.period)  # [periods]
        self._forget()

    @classmethod
    def settings_model(cls, given: Mapping[str, Any]) -> type[NodeSettings]:
        """See BlockBase."""
        base = with_model(cls.Settings, _model_named(given))
        return with_plugin(base, registry.resolve("controller", _named(given)))

    @classmethod
    def with_files(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """See BlockBase; the file's numbers stand below the given ones."""
        named, path = _named(given), given.get("controller_file", "")
        kind = settings_class(registry.resolve("controller", named))
        own, others = _split(given, kind)
        defaults = defaults_on(_model_named(given))
        return setting_values(named_settings(named, path, own, defaults)) | others

    @classmethod
    def changed(cls, recorded: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
        """See BlockBase; another controller, file or model begins from its own numbers."""
        if {"controller", "controller_file", "model"} & given.keys():
            kept = {n: v for n, v in recorded.items() if n in cls.Settings.model_fields}
            return cls.with_files(kept | dict(given))
        kind = settings_class(registry.resolve("controller", _named(recorded)))
        own = [_split(values, kind) for values in (recorded, given)]
        merged = controller_settings(kind, None, own[1][0], below=own[0][0])
        return setting_values(merged) | own[0][1] | own[1][1]

    @property
    def summary(self) -> str:
        """See BlockBase."""
        settings, told = self.settings, [f"{self.settings.controller} for {self.settings.robot}"]
        told.append(f"predicts with {_described(self.model, settings)}")
        told += [
            f"{name} {getattr(settings, name)}"
            for name in ("horizon", "population")
            if hasattr(settings, name)
        ]
        told += [f"numbers of {settings.controller_file}"] * bool(settings.controller_file)
        if self._waited_for:
            age = 1e3 * settings.command_age
            told.append(f"answers are followed {age:.1f} ms after their sample")
        return ", ".join(told)

    @property
    def title(self) -> str:
        """See BlockBase."""
        return type(self.controller).__name__

    def rehearse(self) -> None:
        """See BlockBase; at rest."""
        model, period = self.model, self.settings.period
        inputs = np.zeros(model.inputs.size)
        parameters = nominal_parameters(model.parameters)
        state = model.equilibrium(inputs, parameters)
        tip = model.observe((TIP,), state[None], inputs[None], parameters[None])[TIP][0, :, 3]
        rows = getattr(self.controller, "rows", 1)
        reference = Reference(0.0, period, np.tile(state, (rows, 1)), np.tile(tip, (rows, 1)))
        estimate: StateEstimate | TipEstimate = StateEstimate(state, {})
        if not self._needs_state:
            pose = np.eye(4)
            pose[:3, 3] = tip
            estimate = TipEstimate(lambda: Pose.of(pose), np.zeros((3, 3)))
        for _ in range(_REHEARSED):
            self.controller.command(self._observation(estimate, reference, inputs))

    def prepared(self, settings: Any) -> Callable[[], None]:
        """See BlockBase; of the controller too, where it has such a method."""
        named = registry.resolve("controller", settings.controller)
        own = [plugin_settings(each, named) for each in (self.settings, settings)]
        retune = prepared_plugin(self.controller, *own)

        def use() -> None:
            retune()
            self.settings, self.silence = settings, settings.input_timeout
            self._hand_over.use(settings)

        return use

    def reset(self) -> None:
        """See BlockBase."""
        self.controller.reset()
        self._hand_over.reset()
        self._forget()

    def time_jumped(self, seconds: float) -> None:
        """See BlockBase; tendons are held where they are, chambers have been vented."""
        safe = self._safe()
        self.controller.reset()
        self._forget()
        self._sent = safe

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """The command that answers an estimate, unless that is another controller's to answer."""
        began = self._hand_over.begun
        if not began and self._commands in samples:
            heard = samples[self._commands]
            self._hand_over.hear(heard.stamp, heard.value)
        self._answers = self._hand_over.answers(now)
        if not self._answers:
            return []
        if not began:
            self._take_over()
        rows = samples[self._wanted].value
        aim = rows.tip_positions if rows.shift is None else rows.tip_positions + rows.shift
        reference = Reference(
            rows.stamp * 1e-9, rows.period, rows.states, aim, as_rotations(rows.tip_orientations)
        )
        self._delay = self._expected_delay
        estimate = samples[self._lead_topic].value
        inputs = self._measured(estimate, samples.get(self._actuators))
        answer = self.controller.command(self._observation(estimate, reference, inputs))
        command = self._limited(answer.pressures if isinstance(answer, Command) else answer)
        self._venting = False
        self._fallbacks += isinstance(answer, Command) and answer.fallback
        return [Output(self._commands, now, command)]

    def hold(self, now: int) -> Iterable[Output]:
        """The last command again."""
        if not self._answers:
            return []
        return [Output(self._commands, now, self._sent)]

    def idle(self, now: int, why: str) -> Iterable[Output]:
        """Zero pressure at once; where it begins the controller starts afresh."""
        if not self._hand_over.vents(now, why == "stopped"):
            return []
        if not self._venting:
            self._vents += 1
            self.controller.reset()
        self._venting = True
        self._sent = self._safe()
        return [Output(self._commands, now, self._sent)]

    def answered(self, age: float) -> None:
        """See BlockBase; the plan for late answers follows from how late they were."""
        if not self._answers:
            return
        self._latencies.append(age)
        if not self.settings.lockstep and len(self._latencies) >= _MIN_SAMPLES:
            usual = self._usual_latency() / self.settings.period
            margin = _EARLIER_MARGIN if self._lead else _EARLIER_MARGIN_SIMULATED
            least, most = self._ticks(usual), self._ticks(usual + margin)
            self._expected_delay = min(max(self._expected_delay, least), most)

    def age_to_send(self) -> float:
        """See BlockBase.

        The simulator follows a command from its next tick on, whenever it came. The bench's valves
        wait until it is of the age they are told, and follow older ones at once, along a ramp.
        """
        if not self._lead or self._delay <= self._waited_for:
            return 0.0
        return (self._delay - self._lead) * self.settings.period

    def describe(self) -> dict[str, Any]:
        """See BlockBase."""
        settings = self.settings
        told = {
            "role": "controller",
            "substeps": settings.substeps,
            "intervals": settings.intervals,
            "vents": self._vents,
            "clipped": self._clipped,
            "fallbacks": self._fallbacks,
            "delay": self._expected_delay,
            "hand_over": self._hand_over.words,
            "predictions": told_by(self.model)[0],
        }
        for name in ("horizon", "population"):
            if hasattr(settings, name):
                told[name] = getattr(settings, name)
        return told | getattr(self.controller, "describe", dict)()

    def warnings(self) -> list[str]:
        """See BlockBase."""
        lines = ["estimate or reference is missing: vented"] if self._venting else []
        return [*lines, *self._late(), *told_by(self.model)[1]]

    # --- inside -----------------------------------------------------------------------------

    def _take_over(self) -> None:
        """Go on from the last commands of another controller."""
        commands = self._hand_over.commands
        if not len(commands):
            return
        self._sent = commands[-1]
        continue_from = getattr(self.controller, "take_over", None)
        if continue_from is not None:
            continue_from(commands)

    def _late(self) -> list[str]:
        """A line where answers come later than any plan can be for; in lock-step nothing does."""
        most = MAXIMUM_DELAY * self.settings.period
        if self.settings.lockstep or len(self._latencies) < _MIN_SAMPLES:
            return []
        usual = self._usual_latency()
        if usual <= most:
            return []
        return [
            f"{self.title}.command: answers are {1e3 * usual:.0f} ms old, must be at most "
            f"{1e3 * most:.0f} ms"
        ]

    def _measured(self, estimate: Any, sample: Sample | None) -> np.ndarray:
        """(m,) inputs that the estimate was made with; a sample comes of older bags, and tips."""
        if sample is not None:
            return inputs_of(sample.value)
        if estimate.inputs is None:
            raise ValueError(
                f"{self._lead_topic} tells no inputs that it was made with: a field input.NAME is "
                f"needed of each of {', '.join(self.model.inputs.names)}"
            )
        inputs: np.ndarray = estimate.inputs
        return inputs

    def _observation(self, estimate: Any, reference: Reference, inputs: np.ndarray) -> Observation:
        state, parameters, tip = None, {}, None
        if self._needs_state:
            state, parameters = estimate.state, estimate.parameters
        else:
            tip = estimate.pose().matrix
        return Observation(
            stamp=reference.stamp,
            state=state,
            parameters=parameters,
            reference=reference,
            inputs=inputs,
            model=self.model,
            delay=self._delay,
            tip=tip,
        )

    def _limited(self, command: Any) -> np.ndarray:
        inputs = self.model.inputs
        try:
            wanted = np.asarray(command, float)
        except (TypeError, ValueError):
            wanted = np.array(np.nan)
        if wanted.shape != (inputs.size,) or not np.isfinite(wanted).all():
            shown = np.array2string(wanted, threshold=12) if wanted.ndim else repr(command)
            raise ValueError(
                f"command {shown} must be {inputs.size} finite numbers [{inputs.unit}]"
            )
        self._sent, clipped = limit_command(
            wanted, self._sent, inputs.low, inputs.high, inputs.rate, self.settings.period
        )
        self._clipped += clipped
        return self._sent

    def _usual_latency(self) -> float:
        """[s] The simulator follows what is early too early; what is early for the bench waits, so
        that nearly all answers should be in time."""
        if self._lead:
            return sorted(self._latencies)[-2:][0]
        return median(self._latencies)

    def _ticks(self, latency: float) -> int:
        """Until an answer so late is followed [periods]."""
        ticks = 1 + int(latency + max(self._lead - _LATE_TOLERANCE, 0.0))
        return min(max(ticks, self._waited_for), MAXIMUM_DELAY)

    def _safe(self) -> np.ndarray:
        """(m,) no pressure vents; tendons hold the lengths that they were asked for last."""
        return self._sent if self.model.inputs.quantity == "tendon_length" else self._rest()

    def _rest(self) -> np.ndarray:
        return np.zeros(self.model.inputs.size)

    def _forget(self) -> None:
        self._sent = self._rest()
        self._latencies: deque[float] = deque(maxlen=_LATENCIES_KEPT)
        self._expected_delay = self._delay = max(1, self._waited_for)
        self._clipped = self._fallbacks = self._vents = 0
        self._venting, self._answers = False, True


def _described(model: Any, settings: Any) -> str:
    """A model in words."""
    name = settings.model or kind_of(settings.robot)
    of_rod = f" of {settings.intervals} intervals" if hasattr(model, "rod") else ""
    return f"model {name}{of_rod}"


def _model_named(given: Mapping[str, Any]) -> str:
    robot = str(given.get("robot", ControllerBlockSettings.model_fields["robot"].default))
    return str(given.get("model", "")) or kind_of(robot)


def _named(given: Mapping[str, Any]) -> str:
    default = ControllerBlockSettings.model_fields["controller"].default
    return str(given.get("controller", default))


def _split(
    values: Mapping[str, Any], kind: type[BaseModel]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Values by dotted name: the controller's own, as groups; and the block's."""
    own = {n: v for n, v in values.items() if n.partition(".")[0] in kind.model_fields}
    return nested(own), {name: value for name, value in values.items() if name not in own}
