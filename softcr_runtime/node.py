"""The base of every node: a ROS 2 lifecycle node with settings, one loop thread and diagnostics.

Two threads share the work. The executor's thread serves parameters, lifecycle and diagnostics. The
loop's thread does the work, from activation to deactivation: it takes messages out of the inbox,
computes and publishes. Callbacks of `receive` run in it, too, so nothing in a loop needs a lock.
A complete node:

    class RelaySettings(NodeSettings):
        factor: float = Field(1.0, ge=0.0, le=2.0, description="of measured pressures")

    class Relay(LoopNode):
        \"\"\"Commands the measured pressures times a factor.\"\"\"

        default_name = "relay"
        Settings = RelaySettings
        settings: RelaySettings

        def on_configure_node(self) -> None:
            self.receive("pressure/state", self._decoded)
            self._command = self.advertise("pressure/command")

        def loop(self, stop: threading.Event) -> None:
            while not stop.is_set():
                letter = self.inbox.get(timeout=1.0)
                if letter is not None:
                    self._send(self.settings.factor * letter.value, letter.stamp)
                    self.finish_tick(letter.received, letter.stamp)

        def on_deactivate_node(self) -> None:
            self._send(np.zeros(len(self.robot.chambers)), self.now())

        def _decoded(self, message: Any) -> np.ndarray:
            return pressures_from_message(message, self.robot.chamber_names, "pressure/state")

        def _send(self, pressures: np.ndarray, stamp: int) -> None:
            chambers = self.robot.chamber_names
            self._command.publish(pressures_to_message(pressures, chambers, stamp))

    def main() -> int:
        return run(Relay)
"""

import gc
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rcl_interfaces.msg import (
    SetParametersResult,
)
from rclpy.clock import Clock, ClockType, ROSClock
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.lifecycle.publisher import LifecyclePublisher
from rclpy.parameter import Parameter
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription

from softcr_models.errors import UserError
from softcr_models.robot import Kind, Robot, load_robot
from softcr_runtime import configuration
from softcr_runtime.cycle_timer import TickStatistics
from softcr_runtime.diagnostics import (
    ERROR,
    OK,
    STALE,
    WARN,
    DiagnosticReport,
    diagnostics_to_message,
)
from softcr_runtime.mailbox import LeftAlone, Mailbox
from softcr_runtime.messages import MessageError, from_stamp
from softcr_runtime.namespaces import frame_prefix, full_name
from softcr_runtime.neighbours import Encode, Neighbours
from softcr_runtime.parameters import (
    as_declared,
    parameter_descriptor,
    plain_value,
)
from softcr_runtime.quality_overrides import (
    QOS_OVERRIDES,
    overriding_options,
    unused_overrides,
)
from softcr_runtime.realtime import claim_realtime
from softcr_runtime.sample import MAXIMUM_CLOCK_DIFFERENCE, Sample, check_stamp
from softcr_runtime.settings import (
    NodeSettings,
    build_settings,
    changed_values,
    declared_settings,
    name_and_nearest,
    setting_values,
    unknown_names,
)
from softcr_runtime.time_watch import TimeWatch
from softcr_runtime.topics import TOPICS, qos

if TYPE_CHECKING:
    from softcr_models.constant_curvature.arm import Arm

_DIAGNOSTICS_PERIOD = 1.0  # [s]
_LOOP_STOP_TIMEOUT = 1.0  # how long deactivation waits for the tick in progress [s]
_LAST_WORDS_TIME = 0.05  # for readers to take what deactivation published [s]
_MOST_REASONS = 50  # distinct reasons of rejection that are kept apart


Read = Callable[[Any, float], Sample | None]
"""Makes a sample of what has arrived and when, or None where it must not be used."""


@dataclass(eq=False)
class _SharedInput:
    """An input that comes over DDS, through `subscription`, or from this process (`inside`)."""

    topic: str
    name: str  # full
    decode: Callable[[Any], Any]
    depth: int | None
    wakes: bool
    inside: bool = False
    subscription: Subscription | None = None


class LoopNode(LifecycleNode):
    """A lifecycle node whose work is done by one loop thread while it is active.

    Subclasses set `default_name` and `Settings`, write `loop` and what they need of the four
    `on_..._node`. An exception in any of them is logged and counted, never fatal: a failed
    configure or activate is refused, deactivate and cleanup always end where they should, the loop
    is entered again one period later.

    Attributes:
        kinds: of robots that the node can be for; others are refused.
        settings: the parameters' values; a new object whenever one changes.
        keeps_own_time: whether in lock-step its own cycles are the time, so that stamps of others
            cannot set it back.
        inbox: where the loop gets messages from.
        statistics: of the ticks since activation.
    """

    default_name: ClassVar[str]
    Settings: ClassVar[type[NodeSettings]] = NodeSettings
    kinds: ClassVar[tuple[Kind, ...]] = ("rod",)
    settings: NodeSettings
    keeps_own_time: bool = False
    _last_tick_stamp: int | None

    def __init__(self, neighbours: Neighbours | None = None, **node_options: Any):
        """Declare the parameters; of those given that the node does not have, it warns.

        Args:
            neighbours: the nodes of this process, one of which this becomes; None: it is alone.
            node_options: for rclpy's Node: context, parameter_overrides, ...

        Raises:
            UserError: one line about a parameter whose value is not allowed.
        """
        super().__init__(self.default_name, **node_options)
        self._state = "unconfigured"
        overrides = self._overrides()
        self._use_settings_model(overrides)
        self._declared = declared_settings(self.Settings)
        self._given = self._without_unknown(overrides)
        self.settings = self._settings_candidate = self._settings_from(self._given)
        self._robot_file = load_robot(self.settings.robot, self.kinds)
        self._declare_parameters()
        self.inbox = Mailbox(self.context, self.reject)
        self.statistics = TickStatistics(self.settings.period)
        self.on_finalized: Callable[[], None] = lambda: None
        self._loop_thread: threading.Thread | None = None
        self._loop_stop = threading.Event()
        self._count_lock = threading.Lock()
        self._time = TimeWatch(cast(ROSClock, self.get_clock()))
        self._last_told = -1  # time at the last report [ns]
        self._publishers_advertised: list[LifecyclePublisher] = []
        self._subscriptions_made: list[Subscription] = []
        self._neighbours = neighbours or Neighbours()
        self._shared_inputs: list[_SharedInput] = []
        self._forget_counts()
        self._answer_invalid_transitions()
        self._neighbours.join(self._arrange_inputs)
        self._diagnostics = self.create_publisher(
            TOPICS["/diagnostics"].message_class(), "/diagnostics", qos("/diagnostics")
        )
        # not a lifecycle publisher: what a node was configured with is told in every state
        self._configuration = self.create_publisher(
            TOPICS[configuration.TOPIC].message_class(),
            configuration.TOPIC,
            qos(configuration.TOPIC),
        )
        # a steady clock: simulated time may run fast, slowly or not at all
        self.create_timer(
            _DIAGNOSTICS_PERIOD,
            self.publish_diagnostics,
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )

    # --- what a subclass writes -------------------------------------------------------------

    def on_configure_node(self) -> None:
        """Open, validate, compile, subscribe and advertise; may take long.

        Raises:
            UserError: one line about what a person must mend; the node stays unconfigured.
        """

    def on_activate_node(self) -> None:
        """Get ready for the loop, which starts right after; publishers are enabled."""

    def loop(self, stop: threading.Event) -> None:
        """The work, in a thread of its own; must return soon after `stop` is set.

        The inbox is closed when `stop` is set, so that a waiting `inbox.get()` returns None.
        """
        raise NotImplementedError

    def on_deactivate_node(self) -> None:
        """Leave everything safe: hold or vent; the loop has ended, publishers are still enabled."""

    def on_cleanup_node(self) -> None:
        """Close what was opened; also called after a configure that failed half-way."""

    def configured_with(self) -> str:
        """A line for the log: what the node has just been configured with."""
        return f"robot {self.settings.robot}"

    def diagnostic_values(self) -> dict[str, Any]:
        """More values for the diagnostics: text, or what JSON can hold."""
        return {}

    def diagnostic_warnings(self) -> list[str]:
        """Short lines about what is not as it should be; any of them makes the level WARN."""
        return []

    def named_files(self) -> list[tuple[str, str, Path]]:
        """Files that the node was configured with: setting, value and path of each.

        Raises:
            UserError: one cannot be found.
        """
        return list(configuration.files_of(self.settings))

    def on_time_jump(self, seconds: float) -> str:
        """Time has jumped forward, or back where it is negative, and with it the stamps that come;
        called in the loop's thread. Returns what is done about it, in words."""
        return "stamps from before it count no more"

    def accept_settings(self, candidate: NodeSettings) -> None:
        """Live parameters are about to change, the node being configured or active; use them here
        where they are not read from `settings`.

        Raises:
            UserError: one line about why they must not change now.
        """

    def on_changed_settings(self, before: NodeSettings) -> None:
        """Live parameters have just changed, the node being configured or active; `settings` has
        the new values."""

    # --- what a subclass uses ---------------------------------------------------------------

    @property
    def robot(self) -> Robot:
        """The rod that `settings.robot` names, in a node for rods."""
        return cast(Robot, self._robot_file)

    @property
    def arm(self) -> "Arm":
        """The arm that `settings.robot` names, in a node for arms."""
        return cast("Arm", self._robot_file)

    @property
    def active(self) -> bool:
        """Whether the node is active."""
        return self._state == "active"

    def qualified(self, name: str) -> str:
        """A name with the node's namespace before it, which tells the robots apart."""
        return full_name(self.get_namespace(), name)

    def frame(self, name: str) -> str:
        """The name of one of the robot's own frames, with its prefix."""
        return f"{self.settings.frame_prefix}{name}"

    def now(self) -> int:
        """ROS time [ns]."""
        return self.get_clock().now().nanoseconds

    def present(self) -> int:
        """What the node's own messages are stamped with [ns]: ROS time; in lock-step the newest
        stamp that it knows, 0 before the first."""
        if not self.settings.lockstep:
            return self.now()
        return max([self._last_tick_stamp or 0, *list(self._last_stamps.values())])

    def notice_time(self) -> bool:
        """Whether time has jumped since the last call; the jump has then been dealt with. Only in
        the loop's thread; what is received is checked so by itself."""
        jumped = self._time.look()
        if not jumped or self.settings.lockstep:  # there, stamps are the only time
            return False
        self._begin_other_time(jumped)
        return True

    def advertise(self, topic: str) -> LifecyclePublisher:
        """A publisher of a topic of the table; silent while the node is not active."""
        row = TOPICS[topic]
        name = self.resolve_topic_name(row.name)
        profile = qos(topic, self.settings.lockstep, offered_period=self.settings.period)
        with self._overrides_of(name, "publisher") as options:
            publisher = self.create_lifecycle_publisher(
                row.message_class(), row.name, profile, qos_overriding_options=options
            )
        self._publishers_advertised.append(publisher)
        return publisher

    def receive(
        self,
        topic: str,
        decode: Callable[[Any], Any],
        raw: bool = False,
        depth: int | None = None,
        wakes: bool = True,
    ) -> None:
        """Receive a topic of the table while active; call it in `on_configure_node`.

        Messages are decoded when the loop asks the inbox. Rejected are those that `decode` refuses
        with MessageError, those whose stamp is not newer than the last one, and in wall mode those
        far from this machine's time. Raw ones are not looked at.

        Args:
            topic: name in the table.
            decode: what it makes of a message comes out of the inbox; None does not.
            raw: whether it is given CDR bytes; its letter's stamp is the system clock's time at
                which it was received [ns].
            depth: of the queue, for who must not lose any; None for the topic's own.
            wakes: whether the inbox returns for it, or brings it along with others.
        """

        self._subscribe(topic, self._reader(topic, decode, raw), raw, depth, wakes)

    def receive_value(
        self,
        topic: str,
        decode: Callable[[Any], Any],
        depth: int | None = None,
        wakes: bool = True,
    ) -> None:
        """As `receive`; where another node of this process offers the topic with `offer`, its
        values come from there, and messages of others on that topic are not heard.

        A value is checked as a message is, the first one of an activation by being made
        into one.
        """
        shared = _SharedInput(
            topic, self.resolve_topic_name(TOPICS[topic].name), decode, depth, wakes
        )
        self._shared_inputs.append(shared)
        self._arrange_inputs()

    def offer(self, topic: str, encode: Encode) -> Callable[[Any, int], None]:
        """Offer a topic's values to the other nodes of this process; call it in
        `on_configure_node`.

        Args:
            topic: name in the table.
            encode: makes a message of a value.

        Returns:
            What hands a value of a stamp [ns] over.
        """
        return self._neighbours.offer(self, self.resolve_topic_name(TOPICS[topic].name), encode)

    def reject(self, topic: str, reason: str) -> None:
        """Count a received message that must not be used; the first of its kind is logged."""
        key = f"{topic}: {reason}"
        with self._count_lock:
            if key not in self._rejections and len(self._rejections) >= _MOST_REASONS:
                key = "other"
            self._rejections[key] += 1
            first = self._rejections[key] == 1
        if first:
            self.get_logger().warning(f"rejected {key}")

    def finish_tick(self, received: float, stamp: int) -> None:
        """Count a tick whose output has just been published.

        Args:
            received: when its input was complete, on the monotonic clock [s].
            stamp: of that input [ns]; stamps left out since the last tick count as missed.
        """
        self.statistics.add(time.monotonic() - received)
        if self._last_tick_stamp is not None:
            periods = (stamp - self._last_tick_stamp) * 1e-9 / self.settings.period
            self.statistics.skip(max(round(periods) - 1, 0))
        self._last_tick_stamp = stamp

    def publish_diagnostics(self) -> None:
        """Publish how the node is, now; once a second this happens by itself."""
        try:
            report = self._diagnostic_report()
            self._diagnostics.publish(diagnostics_to_message([report], self.present()))
        except Exception:
            self.count_exception("diagnostics")

    def tell_configuration(self) -> None:
        """Publish what the node is configured with; after configure this happens by itself."""
        try:
            parameters = cast(dict[str, Parameter], self.get_parameters_by_prefix(""))
            reports = configuration.reports(
                self.get_name(),
                self.qualified(self._robot_file.name),
                {name: _plain(parameter.value) for name, parameter in parameters.items()},
                self._robot_file,
                self.named_files(),
            )
            self._configuration.publish(diagnostics_to_message(reports, self.present()))
        except UserError as error:
            self.get_logger().warning(
                f"no bag will hold what the node was configured with: {error}"
            )

    def count_exception(self, where: str) -> None:
        """Log and count the exception that is being handled."""
        error = sys.exc_info()[1]
        with self._count_lock:
            self._exceptions += 1
            self._last_exception = f"{where}: {type(error).__name__}: {error}"
        self.get_logger().error(
            f"{self._last_exception}\n{traceback.format_exc()}", throttle_duration_sec=1.0
        )

    def destroy_node(self) -> None:
        """See rclpy's Node."""
        self._time.close()
        super().destroy_node()

    def finish(self) -> None:
        """From any state: deactivate, clean up, shut down. Call it in the executor's thread."""
        if self._state == "active":
            self.trigger_deactivate()
            # DDS takes back what a reader has not looked at when its writer goes: the last command
            time.sleep(_LAST_WORDS_TIME)
        if self._state == "inactive":
            self.trigger_cleanup()
        if self._state == "unconfigured":
            self.trigger_shutdown()

    # --- lifecycle --------------------------------------------------------------------------

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: see `on_configure_node`."""
        if not self._succeeds("configure", self.on_configure_node):
            self._release()
            return TransitionCallbackReturn.FAILURE
        # Looking through all that numba and others left takes the collector 0.1 s, once in a while
        # and in the middle of a cycle. Nothing of it is garbage: it need not look again.
        gc.collect()
        gc.freeze()
        self._warn_of_unused_overrides()
        self._state = "inactive"
        self._succeeds("configuration", self.tell_configuration)
        self.get_logger().info(f"configured: {self.configured_with()}")
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: see `on_activate_node`."""
        self._forget_counts()
        self._time.look()
        self._arrange_inputs()
        self.inbox.open()
        self.statistics = TickStatistics(self.settings.period)
        super().on_activate(state)
        if not self._succeeds("activate", self.on_activate_node):
            super().on_deactivate(state)
            return TransitionCallbackReturn.FAILURE
        self._state = "active"
        self._schedule(self.settings.realtime_priority)
        self._start_loop()
        self.get_logger().debug("active")
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: see `on_deactivate_node`; always ends inactive."""
        self._stop_loop()
        self._schedule(0)
        self._state = "inactive"
        self._succeeds("deactivate", self.on_deactivate_node)
        self.get_logger().debug("inactive")
        self.publish_diagnostics()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: see `on_cleanup_node`; always ends unconfigured."""
        self._release()
        self._state = "unconfigured"
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: deactivate and clean up as far as needed; a process ends after it."""
        if self._state == "active":
            self.on_deactivate(state)
        if self._state == "inactive":
            self.on_cleanup(state)
        self._state = "finalized"
        self.on_finalized()
        return TransitionCallbackReturn.SUCCESS

    def _succeeds(self, transition: str, action: Callable[[], None]) -> bool:
        try:
            action()
        except UserError as error:
            self.get_logger().error(str(error))
            return False
        except Exception:
            self.count_exception(transition)
            return False
        return True

    def _release(self) -> None:
        self._succeeds("cleanup", self.on_cleanup_node)
        gc.unfreeze()
        self._shared_inputs.clear()
        self._neighbours.withdraw(self)
        self.inbox.destroy()
        self.inbox = Mailbox(self.context, self.reject)
        for publisher in self._publishers_advertised:
            self.destroy_lifecycle_publisher(publisher)
        for subscription in self._subscriptions_made:
            self.destroy_subscription(subscription)
        self._publishers_advertised.clear()
        self._subscriptions_made.clear()

    def _answer_invalid_transitions(self) -> None:
        """Answer a transition that the state does not allow; rclpy lets it end the executor."""
        service = self._service_change_state
        change_state = service.callback

        def answer(request: Any, response: Any) -> Any:
            try:
                return change_state(request, response)
            except Exception as error:  # RCLError is not public
                self.get_logger().warning(f"transition refused: {error}".splitlines()[0])
                response.success = False
                return response

        service.callback = answer

    def _schedule(self, priority: int) -> None:
        """Before the loop's thread starts: it inherits it, and so do the pools it starts."""
        if self.settings.realtime_priority:
            problem = claim_realtime(self, priority)
            if problem:
                self.get_logger().info(f"ordinary scheduling: {problem}")

    # --- loop -------------------------------------------------------------------------------

    def _start_loop(self) -> None:
        self._loop_stop = threading.Event()
        self._loop_thread = threading.Thread(
            target=self._run_loop, args=(self._loop_stop,), name="loop", daemon=True
        )
        self._loop_thread.start()

    def _run_loop(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                self.loop(stop)
                return
            except Exception:
                self.count_exception("loop")
                stop.wait(self.settings.period)

    def _stop_loop(self) -> None:
        self._loop_stop.set()
        self.inbox.close()
        if self._loop_thread is not None:
            self._loop_thread.join(_LOOP_STOP_TIMEOUT)
            if self._loop_thread.is_alive():
                self.get_logger().error(f"the loop did not end within {_LOOP_STOP_TIMEOUT} s")
            self._loop_thread = None

    # --- input ------------------------------------------------------------------------------

    def _reader(self, topic: str, decode: Callable[[Any], Any], raw: bool) -> Read:
        def read(message: Any, received: float) -> Sample | None:
            try:
                stamp = (
                    int(received) if raw
                    else self._checked_stamp(topic, from_stamp(message, topic))
                )  # fmt: skip
                value = decode(message)
            except MessageError as error:
                self.reject(error.topic, error.what)
                return None
            except Exception:
                self.count_exception(topic)
                return None
            self._last_stamps[topic] = stamp
            return None if value is None else Sample(topic, stamp, value, received)

        return read

    def _value_reader(self, topic: str, decode: Callable[[Any], Any]) -> Read:
        """Reads what a neighbour hands over."""

        def read(handed: tuple[Any, int, Encode], received: float) -> Sample | None:
            value, stamp, encode = handed
            try:
                self._checked_stamp(topic, stamp)
                if topic not in self._last_stamps:
                    decode(encode(value, stamp))
            except MessageError as error:
                self.reject(error.topic, error.what)
                return None
            except Exception:
                self.count_exception(topic)
                return None
            self._last_stamps[topic] = stamp
            return Sample(topic, stamp, value, received)

        return read

    def _checked_stamp(self, topic: str, stamp: int) -> int:
        self.notice_time()
        now = None if self.settings.lockstep else self.now()
        back = 1e-9 * (self._last_stamps.get(topic, 0) - stamp)
        if now is None and back > MAXIMUM_CLOCK_DIFFERENCE and not self.keeps_own_time:
            self._begin_other_time(-back)
        if now == 0 and self._time.unknown:
            raise MessageError(topic, "time is not known: use_sim_time is set, nothing on /clock")
        check_stamp(topic, stamp, self._last_stamps.get(topic, 0), now)
        return stamp

    def _begin_other_time(self, jumped: float) -> None:
        """Forget the stamps of before a jump of time [s]."""
        self._last_stamps.clear()
        self._last_tick_stamp = None
        with self._count_lock:
            self._time_jumps += 1
            self._last_time_jump = jumped
        done = self.on_time_jump(jumped)
        way = "forward" if jumped > 0.0 else "back"
        self.get_logger().warning(f"time jumped {way} by {abs(jumped):.3f} s: {done}")

    def _subscribe(
        self, topic: str, read: Read, raw: bool, depth: int | None, wakes: bool
    ) -> Subscription:
        row = TOPICS[topic]
        profile = qos(topic, self.settings.lockstep)
        profile.depth = depth or profile.depth
        name = self.resolve_topic_name(row.name)
        with self._overrides_of(name, "subscription") as options:
            subscription = self.create_subscription(
                row.message_class(),
                row.name,
                lambda _: None,
                profile,
                callback_group=LeftAlone(),
                event_callbacks=SubscriptionEventCallbacks(use_default_callbacks=False),
                qos_overriding_options=options,
                raw=raw,
            )
        self._subscriptions_made.append(subscription)
        kept = row.profile in ("latched", "log")
        self.inbox.add(topic, subscription, read, wakes, kept)
        return subscription

    def _arrange_inputs(self) -> None:
        """What a neighbour offers comes from there, all else over DDS; while not active."""
        if self.active:
            return
        for each in self._shared_inputs:
            inside = self._neighbours.offers(each.name, but=self)
            if inside and not each.inside:
                self._take_from_inside(each)
            elif not inside and each.subscription is None:
                self._take_from_outside(each)

    def _take_from_inside(self, each: "_SharedInput") -> None:
        if each.subscription is not None:
            self.inbox.remove(each.topic)
            self._subscriptions_made.remove(each.subscription)
            self.destroy_subscription(each.subscription)
            each.subscription = None
        each.inside = True
        read = self._value_reader(each.topic, each.decode)
        depth = each.depth or qos(each.topic, self.settings.lockstep).depth
        put = self.inbox.add_hatch(each.topic, read, depth, each.wakes)
        self._neighbours.listen(self, each.name, lambda *handed: put(handed))

    def _take_from_outside(self, each: "_SharedInput") -> None:
        if each.inside:
            self.inbox.remove(each.topic)
            self._neighbours.leave(self, each.name)
            each.inside = False
        read = self._reader(each.topic, each.decode, raw=False)
        each.subscription = self._subscribe(each.topic, read, False, each.depth, each.wakes)

    # --- diagnostics ------------------------------------------------------------------------

    def _forget_counts(self) -> None:
        self._rejections: Counter[str] = Counter()
        self._exceptions = 0
        self._last_exception = ""
        self._last_stamps: dict[str, int] = {}
        self._last_tick_stamp = None
        self._time_jumps, self._last_time_jump = 0, 0.0
        # exceptions, rejections, missed, cycles, jumps of time at the last report
        self._reported = (0, 0, 0, 0, 0)

    def _diagnostic_report(self) -> DiagnosticReport:
        summary = self.statistics.summary()
        with self._count_lock:
            rejections, exceptions = dict(self._rejections), self._exceptions
        counts = (
            exceptions,
            sum(rejections.values()),
            summary["missed_cycles"],
            summary["cycles"],
            self._time_jumps,
        )
        new = [count - before for count, before in zip(counts, self._reported, strict=True)]
        self._reported = counts
        level, message = self._assessment(summary, *new)
        values = summary | {
            "rejected_messages": sum(rejections.values()),
            "rejections": rejections,
            "exceptions": exceptions,
            "time_jumps": self._time_jumps,
            "last_time_jump_s": self._last_time_jump,
            "publishes": self._readers_seen(),
            "receives": self._writers_seen(),
            "from_its_process": [each.name for each in self._shared_inputs if each.inside],
            "mode": self.settings.mode,
            "seed": self.settings.seed,
            # with these a replay of the run's bag knows what the node was
            "settings": setting_values(self.settings),
        }
        return DiagnosticReport(
            name=f"{self.qualified(self.get_name())}: loop",
            level=level,
            message=message,
            hardware_id=self.qualified(self._robot_file.name),
            values=values | self.diagnostic_values(),
        )

    def _readers_seen(self) -> dict[str, int]:
        publishers = [*self._publishers_advertised, self._diagnostics]
        return {p.topic_name: p.get_subscription_count() for p in publishers}

    def _writers_seen(self) -> dict[str, int]:
        return {s.topic_name: s.get_publisher_count() for s in self._subscriptions_made}

    def _assessment(
        self,
        summary: dict[str, Any],
        exceptions: int,
        rejected: int,
        missed: int,
        cycles: int,
        jumps: int = 0,
    ) -> tuple[int, str]:
        """Level and line for what happened since the last report."""
        if exceptions:
            return ERROR, f"{exceptions} exceptions, last in {self._last_exception}"
        if not self.active:
            return OK, self._state
        warnings = [*self._time_warnings(), *self.diagnostic_warnings()]
        if jumps:
            warnings.append(f"time jumped, last by {self._last_time_jump:+.3f} s")
        if cycles == 0 and summary["cycles"] > 0:
            return STALE, ", ".join([f"no cycle for {_DIAGNOSTICS_PERIOD:.0f} s", *warnings])
        warnings += [f"{rejected} messages rejected"] * bool(rejected)
        warnings += [f"{missed} cycles missed"] * bool(missed)
        if warnings:
            return WARN, ", ".join(warnings)
        if summary["cycles"] == 0:
            return OK, "active, no cycle yet"
        return OK, f"{summary['rate_hz']:.1f} Hz, p99 {summary['p99_ms']:.2f} ms"

    def _time_warnings(self) -> list[str]:
        """A line where the time of /clock does not go on; asked once in a report."""
        if not self._time.simulated or self.settings.lockstep:
            return []
        now, before = self.now(), self._last_told
        self._last_told = now
        if now == 0:
            return ["use_sim_time is set, and nothing has come on /clock"]
        return ["/clock stands still"] if now == before else []

    # --- parameters -------------------------------------------------------------------------

    def _use_settings_model(self, given: dict[str, Any]) -> None:
        """Where given parameters decide which others there are, `Settings` is replaced here."""

    def _settings_from(self, given: dict[str, Any]) -> NodeSettings:
        return build_settings(self.Settings, given)

    def _overrides(self) -> dict[str, Any]:
        # rclpy offers no other way to see an override before, and without, a declaration
        given = {
            name: plain_value(parameter.value)
            for name, parameter in self._parameter_overrides.items()
            if not self.has_parameter(name) and not name.startswith(QOS_OVERRIDES)
        }
        return {"frame_prefix": frame_prefix(self.get_namespace())} | given

    def _without_unknown(self, given: dict[str, Any]) -> dict[str, Any]:
        """As ROS does, what the node does not have is left out; it is told, too."""
        unknown = unknown_names(self.Settings, given)
        if unknown:
            lines = [name_and_nearest(name, self._declared) for name in unknown]
            self.get_logger().warning(
                f"ignored: no parameter of this node is called {'; '.join(lines)}"
            )
        return {name: value for name, value in given.items() if name not in unknown}

    def _overrides_of(
        self, topic: str, end: str
    ) -> AbstractContextManager[QoSOverridingOptions | None]:
        """See `overriding_options`."""
        names = self._parameter_overrides.keys()
        return overriding_options(names, topic, end, self.settings.lockstep)

    def _warn_of_unused_overrides(self) -> None:
        """Of qualities of service for topics that the node does not have."""
        lines = unused_overrides(self._parameter_overrides.keys(), self.has_parameter)
        for line in lines:
            self.get_logger().warning(line)

    def _declare_parameters(self) -> None:
        values = setting_values(self.settings)
        for setting in self._declared.values():
            # a whole number given for a number was accepted, and is declared as a number
            value = as_declared(setting, values[setting.name])
            self.declare_parameter(
                setting.name, value, parameter_descriptor(setting), ignore_override=True
            )
        self.add_on_set_parameters_callback(self._check_parameters)
        self.add_post_set_parameters_callback(self._use_settings_candidate)

    def _check_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        now = setting_values(self.settings)
        given = {p.name: plain_value(p.value) for p in parameters if p.name in self._declared}
        changes = {name: value for name, value in given.items() if value != now[name]}
        self._settings_candidate = self.settings
        if not changes:
            return SetParametersResult(successful=True)
        fixed = [name for name in changes if not self._declared[name].live]
        if fixed and self._state != "unconfigured":
            reason = f"parameter {fixed[0]} cannot change while the node is {self._state}"
            return SetParametersResult(successful=False, reason=reason + self._way_back())
        try:
            candidate = build_settings(self.Settings, now | changes)
            load_robot(candidate.robot, self.kinds)
            if self._state in ("inactive", "active"):
                self.accept_settings(candidate)
        except UserError as error:
            return SetParametersResult(successful=False, reason=str(error))
        self._settings_candidate = candidate
        return SetParametersResult(successful=True)

    def _use_settings_candidate(self, _: list[Parameter]) -> None:
        before, self.settings = self.settings, self._settings_candidate
        changed = changed_values(before, self.settings)
        if not changed:
            return
        self._robot_file = load_robot(self.settings.robot, self.kinds)
        was = setting_values(before)
        words = [f"{name} was {was[name]}, is {value}" for name, value in changed.items()]
        self.get_logger().info(f"parameters changed: {', '.join(words)}")
        if self._state in ("inactive", "active"):
            self.on_changed_settings(before)
            self.tell_configuration()

    def _way_back(self) -> str:
        """The transitions after which every parameter can change, as a person asks for them."""
        name = self.get_fully_qualified_name().lstrip("/")
        back = f"softcr lifecycle set {name}"
        if self._state == "active":
            return f": first {back} deactivate, then {back} cleanup"
        return f": first {back} cleanup" if self._state == "inactive" else ""


def _plain(value: Any) -> Any:
    """A parameter's value as JSON has it; rclpy holds lists as arrays."""
    return value if value is None or isinstance(value, bool | int | float | str) else list(value)
