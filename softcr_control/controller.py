"""The controller: estimate and reference of one stamp in, a packet of limited commands out.

Each command of a packet says when it is due. The first one is due so many ticks after the estimate
as the latest of the last answers took, so that nearly every answer is there in time; where one is
not, the robot plays on from the packet before it. What the actuators measured comes with the
estimate that was made with it; a controller that is led by the tip alone, which tells no more than
itself, hears it from the actuators. The limiter is the last stage, whatever the controller says:
what it lets through is what is published. Without estimate or reference a last packet leads the
robot to rest.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from softcr_control.answer_times import AnswerTimes
from softcr_control.command import Command
from softcr_control.command_limits import limit_command
from softcr_control.controller_file import controller_settings, defaults_on, named_settings
from softcr_control.observation import ControlContext, Controller, Observation
from softcr_control.predictive.horizon import BRIDGED, MAXIMUM_DELAY
from softcr_control.reference.approach import Approach
from softcr_control.reference.references import Reference, as_rotations
from softcr_models.model import TIP, counts_and_warnings, nominal_parameters
from softcr_models.plugins import Place, made
from softcr_models.robots.robot import kind_of
from softcr_models.tip_offset import TIP_OFFSET, tip_offset
from softcr_runtime.blocks.block import OVERDUE, BlockBase, Input, Output, Samples
from softcr_runtime.blocks.command_packets import FARTHEST, LATEST, CommandPacket, PacketPlayer
from softcr_runtime.blocks.command_swings import SWINGS, SwingWatch
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.values import Pose, StateEstimate, TipEstimate
from softcr_runtime.settings import registry
from softcr_runtime.settings.node_settings import LIVE, NodeSettings, nested, setting_values
from softcr_runtime.settings.plugin_settings import (
    ModelSettings,
    model_of,
    plugin_settings,
    prepared_plugin,
    settings_class,
    with_model,
    with_plugin,
)
from softcr_runtime.wire.robot_topics import inputs_of, reference_topic, robot_topics, states_topic

_TOLERANCE = 0.02  # an answer must be there so long before its first command is due [periods]
_SEEN_BY_VALVES = 0.0035
"""On the bench an answer must be there so much earlier: what the valves' node takes to see it, and
the valves to begin [s]."""
_REST_TIME = 0.5  # over which a last packet leads chambers to no pressure [s]
_RAREST = 4.5  # ticks from an answer to the next one, as a rule
_PLAYED = 0.5
"""Share of a plan that may be played before the next one comes, for robots of several segments: the
tip does not show how these move against each other, and that grows where the ends of plans, which
are made without regard for what follows, are played. The arm of two segments is thrown by plans of
7 ticks of which 4 are played, and is not by plans of 8."""
_ASTRAY = 0.05
"""Share of an input's range by which what is played may differ from the commands that were sent;
beyond it, twice in a row, somebody holds or vents, and the controller plans from there."""
_PAST = 2  # ticks before an estimate whose commands are still felt
_REHEARSED = 3  # ticks
_READY = 5  # packets of another controller, from which this one may go on
_SILENT = 2.5  # the other one sends no more if its newest packet is so old [periods]


class ControllerBlockSettings(ModelSettings):
    """Which controller on which model, and when to vent; the controller's own settings beside."""

    controller: Place = Field(
        "nempc",
        description="a registered controller; or package.module:Class, or path/file.py:Class",
    )
    controller_file: str = Field(
        "",
        description="a file of config/controllers, or a YAML file, with the controller's numbers; "
        "empty: its own",
        json_schema_extra={"folder": "controllers"},
    )
    threads: int = Field(
        0,
        ge=0,
        le=256,
        description="number of threads that compute predictions; 0: the controller's own",
    )
    # through the pressure lag nothing jumps: the closed loop's tip error is that of two sub-steps
    substeps: int = Field(1, ge=1, le=64, description="sub-steps of the prediction per period")
    least_delay: int = Field(
        1,
        ge=1,
        le=MAXIMUM_DELAY,
        description="shortest time from an estimate until the first command of its answer is due",
        json_schema_extra={"unit": "periods"},
    )
    budget: float = Field(
        0.5,
        gt=0.0,
        le=MAXIMUM_DELAY,
        description="longest computing time from the arrival of the input, for controllers that "
        "can answer with less; not in lock-step or on virtual time",
        json_schema_extra={"unit": "periods", **LIVE},
    )
    input_timeout: float = Field(
        0.1,
        ge=0.01,
        le=5.0,
        description="time without an estimate or a reference after which a last packet brings the "
        "robot to rest (wall mode)",
        json_schema_extra={"unit": "s", **LIVE},
    )
    sends: bool = Field(
        True,
        description="whether the controller sends packets; without, it hears those of another "
        "controller, and goes on from them when it begins to send and the other one is silent",
        json_schema_extra=LIVE,
    )


class ControllerBlock(BlockBase):
    """Moves the robot along the reference with the controller that its settings name."""

    name = "controller"
    Settings = ControllerBlockSettings
    kinds = None
    _to_rest: CommandPacket
    _venting: bool
    _sent: np.ndarray
    _watch: SwingWatch
    _swings: bool
    _astray: bool
    _compared: int
    _held: np.ndarray | None
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
        self._plans, self._actuators = topics.plan, topics.state
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
        self._sent_topic, self._inputs_topic = topics.sent, topics.reference
        if not settings.lockstep:  # there nobody holds, and every command is played
            self.inputs += tuple(
                Input(topic, "latest", needed=False, wakes=False)
                for topic in (self._sent_topic, self._inputs_topic)
            )
        self.outputs = (self._plans,)
        if not settings.sends:
            self.inputs += (Input(self._plans, "all", needed=False, wakes=False),)
        self._waits, self._others = not settings.sends, deque[Sample](maxlen=MAXIMUM_DELAY + 1)
        self.silence, self.share = settings.input_timeout, settings.budget
        rod = getattr(self.model, "rod", None)
        self.intervals = None if rod is None else rod.intervals
        self._period = round(1e9 * settings.period)  # [ns]
        early = _SEEN_BY_VALVES if settings.resampled else 0.0
        early = early / settings.period + _TOLERANCE  # [periods]
        self._times = AnswerTimes(settings.period, settings.least_delay, early, self._rarest)
        self._forget()

    @classmethod
    def settings_model(cls, given: Mapping[str, Any]) -> type[NodeSettings]:
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
        settings, told = self.settings, [f"{self.settings.controller} for {self.settings.robot}"]
        told.append(f"predicts with {_described(self.model, settings)}")
        told += [
            f"{name} {getattr(settings, name)}"
            for name in ("horizon", "population")
            if hasattr(settings, name)
        ]
        told += [f"numbers of {settings.controller_file}"] * bool(settings.controller_file)
        return ", ".join(told)

    @property
    def title(self) -> str:
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
            self.share = settings.budget

        return use

    def reset(self) -> None:
        self.controller.reset()
        self._waits = not self.settings.sends
        self._others.clear()
        self._forget()

    def time_jumped(self, seconds: float) -> None:
        """See BlockBase; tendons are held where they are, chambers have been vented."""
        sent = self._sent
        self.controller.reset()
        self._forget()
        if self._holds_still:
            self._sent = sent

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """The packet that answers an estimate, unless that is another controller's to answer."""
        if self._waits:
            others: Any = samples.get(self._plans, ())  # a tuple of all
            self._others.extend(others)
            silent = bool(self._others) and now - self._others[-1].stamp > _SILENT * self._period
            if self.settings.sends and silent:
                self._take_over()
        self._answers = self.settings.sends and not self._waits
        if not self._answers:
            return []
        if self._sent_topic in samples:
            self._compare(samples[self._sent_topic])
        self.left_out = not self.settings.lockstep and self._times.leaves_out(now)
        if self.left_out:
            return []
        rows = samples[self._wanted].value
        estimate = samples[self._lead_topic].value
        inputs = self._measured(estimate, samples.get(self._actuators))
        aim = rows.tip_positions if rows.shift is None else rows.tip_positions + rows.shift
        if self._needs_state:  # which leads the model's tip
            aim = aim - tip_offset(estimate.parameters)
        reference = Reference(
            rows.stamp * 1e-9, rows.period, rows.states, aim, as_rotations(rows.tip_orientations)
        )
        observation = self._observation(estimate, reference, inputs)
        stands = self._times.begun and self._played.runs_out + LATEST * self._period < now
        if self._venting and not self._times.too_late:
            self._start_afresh(now)
        if self._venting or self._held is not None or stands:
            pose = observation.output(TIP) if observation.tip is None else observation.tip
            self._approach.begin(pose[:3, 3], now, aim, rows.period)
        on_the_way = self._approach.towards(aim, now, rows.period)
        if on_the_way is not aim:
            reference = replace(reference, tip_positions=on_the_way)
        elif self._inputs_topic in samples:
            known = _inputs_from(now, self._period, samples[self._inputs_topic].value)
            reference = replace(reference, inputs=known)
        observation = replace(observation, reference=reference)
        answer = self.controller.command(observation)
        plan = self._limited(answer.plan if isinstance(answer, Command) else answer, now)
        if not self.settings.lockstep:  # there every answer is in time, however long it took
            self._times.answered(now)
        if isinstance(answer, Command):
            self._fallbacks += answer.fallback
            if answer.candidates is not None:
                self._candidates[answer.candidates] += 1
        self._swings |= self._watch.swings(1e-9 * now, plan[0])
        if (
            self._times.too_late or self._swings
        ):  # what is computed tells when answers are in time again
            return self.idle(now, "too late")
        self._venting = False
        return [self._packet(now, plan)]

    def hold(self, now: int) -> Iterable[Output]:
        """What the packet before has planned for now."""
        if not self._answers:
            return []
        planned = self._planned(now, 0)
        return [self._packet(now, (self._rest if planned is None else planned)[None])]

    def idle(self, now: int, why: str) -> Iterable[Output]:
        """A packet that leads the robot to rest, where the controller starts afresh; if inputs are
        overdue, not before the last packet has run out. In lock-step, where the plant waits for
        every answer, what is left of it is sent again."""
        if self._venting and self.settings.lockstep and why != "stopped":
            left = self._to_rest.commands[np.array(self._to_rest.due) >= self._due(now)]
            return [self._packet(now, left if len(left) else self._to_rest.commands[-1:])]
        if why == OVERDUE and not self.settings.lockstep and now < self._played.runs_out:
            return []
        waits = self._waits and (why == "stopped" or not self._others)
        if self._venting or waits or not self.settings.sends:
            return []
        if self._waits:
            self._take_over()
        self._vents += 1
        self._venting, self._why = True, why
        played = self._planned(now, -1)
        begin = self._rest if played is None else played
        end = begin if self._holds_still else self._rest
        ticks = max(round(_REST_TIME / self.settings.period), 1)
        ways = np.arange(1, ticks + 1)[:, None] / ticks
        packet = CommandPacket.regular(self._due(now), self._period, begin + ways * (end - begin))
        self._to_rest = packet
        self._remember(packet, now)
        self.controller.reset()
        return [Output(self._plans, now, packet)]

    def answered(self, age: float) -> None:
        """See BlockBase; when the next answers are due follows from how late these were."""
        if not self._answers or self.left_out:
            return
        if not self.settings.lockstep:
            self._times.came(age)
            self.every = self._times.every

    def describe(self) -> dict[str, Any]:
        settings = self.settings
        told = {
            "role": "controller",
            "substeps": settings.substeps,
            "intervals": settings.intervals,
            "vents": self._vents,
            "clipped": self._clipped,
            "fallbacks": self._fallbacks,
            "delay": self._times.delay,
            "every": self.every,
            "hand_over": self._state_of_exchange,
            "predictions": counts_and_warnings(self.model)[0],
        }
        for name in ("horizon", "population"):
            if hasattr(settings, name):
                told[name] = getattr(settings, name)
        if counts := dict(self._candidates):
            told |= _spread(counts)
        return told | getattr(self.controller, "describe", dict)()

    def warnings(self) -> list[str]:
        missing = self._venting and self._why == OVERDUE
        lines = ["estimate or reference is missing: vented"] if missing else []
        lines += [f"{self.title}.command: {SWINGS}: the robot is led to rest"] * self._swings
        if self._times.too_late:
            lines.append(self._times.line(self.title))
        return [*lines, *counts_and_warnings(self.model)[1]]

    # --- inside -----------------------------------------------------------------------------

    def _due(self, now: int) -> int:
        """When an answer to an estimate begins to count [ns]."""
        return now + self._times.delay * self._period

    def _planned(self, now: int, ticks: int) -> np.ndarray | None:
        """(m,) the command of the packets before in the tick in which an answer to an estimate
        begins to count, or of so many ticks later; stamps are no whole periods apart."""
        return self._played.at(self._due(now) + ticks * self._period + self._period // 2)

    def _packet(self, now: int, plan: np.ndarray) -> Output:
        """A plan (N, m) that answers an estimate, as it is sent."""
        packet = CommandPacket.regular(self._due(now), self._period, plan)
        if len(plan) > BRIDGED:  # commands beyond the horizon are held
            packet = packet.without_repetitions
        self._times.sent(now, packet.due[-1] + self._period)
        self._remember(packet, now)
        return Output(self._plans, now, packet)

    def _remember(self, packet: CommandPacket, now: int) -> None:
        self._played.hear(packet, now)
        self._sent = packet.commands[0]

    def _start_afresh(self, now: int) -> None:
        """Let the controller forget its plans, but not what is played from an estimate on, nor what
        of it is still to come."""
        self.controller.reset()
        ahead = self._played.runs_out
        times = range(
            now - _PAST * self._period, round(ahead) if ahead > now else now + 1, self._period
        )
        played = [(time, self._played.at(time + self._period // 2)) for time in times]
        known = [(time, command) for time, command in played if command is not None]
        if known:
            due, commands = zip(*known, strict=True)
            packet = CommandPacket(due, np.array(commands))
            getattr(self.controller, "take_over", _nothing)([packet])

    def _compare(self, played: Sample) -> None:
        """What is played with what was sent: where it is something else, that is thought to last
        until it is again what was sent."""
        stamp, value, span = played.stamp, played.value, self.model.inputs.range
        period = self._period
        near = [self._played.at(stamp + part * period // 4) for part in (-6, -2, 1)]
        known = np.array([each for each in near if each is not None])
        if not len(known) or stamp == self._compared:
            return
        self._compared = stamp
        low, high = known.min(axis=0) - _ASTRAY * span, known.max(axis=0) + _ASTRAY * span
        astray = bool(((value < low) | (value > high)).any())
        self._held = value if astray and self._astray else None
        self._astray = astray

    @property
    def _state_of_exchange(self) -> str:
        if self._waits:
            return "ready" if len(self._others) >= _READY else "waiting"
        return "commands" if self.settings.sends else "silent"

    def _take_over(self) -> None:
        """Go on from the last packets of another controller."""
        packets, self._waits = [each.value for each in self._others], False
        for packet in packets:
            self._remember(packet, packet.due[0])
        getattr(self.controller, "take_over", _nothing)(packets)

    @property
    def _rarest(self) -> float:
        """The largest of this that a loop of plans bears [s]; stamps are no whole periods apart."""
        planned, most = getattr(self.settings, "horizon", None), _RAREST
        if planned is not None and len(getattr(self.robot, "segments", ())) > 1:
            most = min(most, _PLAYED * planned + 0.25)
        return most * self.settings.period

    def _measured(self, estimate: Any, sample: Sample | None) -> np.ndarray:
        """(m,) inputs that the estimate was made with; those of a sample where a tip leads."""
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
            state = estimate.state
            parameters = {n: v for n, v in estimate.parameters.items() if n not in TIP_OFFSET}
        else:
            tip = estimate.pose().matrix
        return Observation(
            stamp=reference.stamp,
            state=state,
            parameters=parameters,
            reference=reference,
            inputs=inputs,
            model=self.model,
            delay=self._times.delay,
            last_age=self._times.last_age,
            held=self._held,
            tip=tip,
            budget=self.budget,
        )

    def _limited(self, answer: Any, now: int) -> np.ndarray:
        """(N, m) of an answer (m,) or (N, m): inside the limits, each command no further from the
        one that is played before it than the rate allows."""
        inputs = self.model.inputs
        try:
            wanted = np.atleast_2d(np.asarray(answer, float))
        except (TypeError, ValueError):
            wanted = np.array([[np.nan]])
        if wanted.ndim != 2 or wanted.shape[1] != inputs.size or not np.isfinite(wanted).all():
            numbers = isinstance(answer, np.ndarray) and answer.ndim
            shown = np.array2string(answer, threshold=12) if numbers else repr(answer)
            raise ValueError(
                f"command {shown} must be {inputs.size} finite numbers [{inputs.unit}]"
            )
        before = self._planned(now, -1) if self._held is None else self._held
        if before is None:
            before = self._sent
        steps = np.abs(np.diff(wanted, axis=0, prepend=before[None]))
        possible = steps <= inputs.rate * self.settings.period
        if possible.all() and ((wanted >= inputs.low) & (wanted <= inputs.high)).all():
            return wanted
        plan = np.empty_like(wanted)
        for row, command in enumerate(wanted):
            plan[row], clipped = limit_command(
                command, before, inputs.low, inputs.high, inputs.rate, self.settings.period
            )
            self._clipped += clipped and row == 0
            before = plan[row]
        return plan

    @property
    def _holds_still(self) -> bool:
        """Whether the robot is at rest where it is: tendons hold the lengths they have; no pressure
        vents."""
        return bool(self.model.inputs.quantity == "tendon_length")

    @property
    def _rest(self) -> np.ndarray:
        return np.zeros(self.model.inputs.size)

    def _forget(self) -> None:
        self._sent, self._approach = self._rest, Approach()
        self._played = PacketPlayer(self._period)
        self._times.reset()
        self._watch, self._swings = SwingWatch(self.model.inputs.range), False
        self._astray, self._compared, self._held = False, 0, None
        self.every, self.left_out = 1, False
        self._clipped = self._fallbacks = self._vents = 0
        self._candidates: Counter[int] = Counter()  # answers, by how many each looked at
        self._venting, self._answers = False, True
        self._why = ""


def _nothing(packets: Iterable[CommandPacket]) -> None:
    """What a controller does that goes on from no other one."""


def _inputs_from(now: int, period: int, packet: CommandPacket) -> np.ndarray:
    """(K, m) the inputs of a packet that are known from a time on, a period apart [ns]; no more of
    them than a packet may reach."""
    times = np.arange(now, min(packet.due[-1], now + round(1e9 * FARTHEST)) + 1, period)
    columns = [np.interp(times, packet.due, column) for column in packet.commands.T]
    return np.stack(columns, axis=1)


def _spread(counts: Mapping[int, int]) -> dict[str, int]:
    """Least and median number of candidates, of the numbers of answers by how many they had."""
    numbers = sorted(counts)
    answers = np.cumsum([counts[number] for number in numbers])
    middle = int(np.searchsorted(answers, 0.5 * answers[-1]))
    return {"candidates_least": numbers[0], "candidates_median": numbers[middle]}


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
