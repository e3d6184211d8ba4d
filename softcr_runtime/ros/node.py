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
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, cast

from rclpy.clock import Clock, ClockType, ROSClock
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.lifecycle.publisher import LifecyclePublisher
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription

from softcr_models.errors import UserError
from softcr_models.robots.kinds import AnyRobot
from softcr_models.robots.robot import Robot, load_robot
from softcr_runtime.blocks.cycle_timer import TickStatistics
from softcr_runtime.ros.intra_process import Encode, IntraProcess
from softcr_runtime.ros.mailbox import Mailbox
from softcr_runtime.ros.node_counts import NodeCounts
from softcr_runtime.ros.node_inputs import NodeInputs
from softcr_runtime.ros.node_parameters import NodeParameters
from softcr_runtime.ros.realtime import claim_realtime
from softcr_runtime.ros.time_watch import TimeWatch
from softcr_runtime.settings.node_settings import (
    NodeSettings,
    build_settings,
    changed_values,
    setting_values,
)
from softcr_runtime.wire import configuration
from softcr_runtime.wire.diagnostics import ERROR, DiagnosticReport, diagnostics_to_message
from softcr_runtime.wire.namespaces import full_name
from softcr_runtime.wire.quality_overrides import overriding_options
from softcr_runtime.wire.topics import TOPICS, qos

_DIAGNOSTICS_PERIOD = 1.0  # [s]
_LOOP_STOP_TIMEOUT = 1.0  # how long deactivation waits for the tick in progress [s]
_LAST_WORDS_TIME = 0.05  # for readers to take what deactivation published [s]
_RECEPTION_TIMEOUT = 10.0  # for readers to have all that was published in lock-step [s]
_RECEPTION_POLL = 0.01  # [s]


class LoopNode(LifecycleNode):
    """A lifecycle node whose work is done by one loop thread while it is active.

    Subclasses set `default_name` and `Settings`, write `loop` and what they need of the four
    `on_..._node`. An exception in any of them is logged and counted, never fatal: a failed
    configure or activate is refused, deactivate and cleanup always end where they should, the loop
    is entered again one period later.

    Attributes:
        kinds: of robots that the node can be for, by name; others are refused. None: every kind.
        settings: the parameters' values; a new object whenever one changes.
        keeps_own_time: whether in lock-step its own cycles are the time, so that stamps of others
            cannot set it back.
        counts: what went wrong since activation.
        statistics: of the ticks since activation.
    """

    default_name: ClassVar[str]
    Settings: ClassVar[type[NodeSettings]] = NodeSettings
    kinds: ClassVar[tuple[str, ...] | None] = ("rod",)
    settings: NodeSettings
    keeps_own_time: bool = False
    _last_tick_stamp: int | None

    def __init__(self, intra_process: IntraProcess | None = None, **node_options: Any):
        """Declare the parameters; of those given that the node does not have, it warns.

        Args:
            intra_process: the nodes of this process, one of which this becomes; None: it is alone.
            node_options: for rclpy's Node: context, parameter_overrides, ...

        Raises:
            UserError: one line about a parameter whose value is not allowed.
        """
        super().__init__(self.default_name, **node_options)
        # first: a context that ends destroys its nodes, and those that were refused below, too
        self._time = TimeWatch(cast(ROSClock, self.get_clock()))
        self._state = "unconfigured"
        self._ros_parameters = NodeParameters(self)
        self.settings = self._ros_parameters.first
        self._robot_file = load_robot(self.settings.robot, self.kinds)
        self._ros_parameters.declare()
        self.counts = NodeCounts()
        self.statistics = TickStatistics(self.settings.period, lockstep=self.settings.lockstep)
        self.on_finalized: Callable[[], None] = lambda: None
        self._loop_thread: threading.Thread | None = None
        self._loop_stop = threading.Event()
        self._last_told = -1  # time at the last report [ns]
        self._publishers_advertised: list[LifecyclePublisher] = []
        self._inputs = NodeInputs(self, intra_process or IntraProcess())
        self._last_tick_stamp = None
        self._answer_invalid_transitions()
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

    def diagnostic_failure(self) -> str:
        """What has failed and stays so, which makes the level ERROR; empty for nothing."""
        return ""

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

    def use_settings_model(self, given: dict[str, Any]) -> None:
        """Where given parameters decide which others there are, `Settings` is replaced here."""

    def settings_from(self, given: dict[str, Any]) -> NodeSettings:
        """The settings of given parameters, by name.

        Raises:
            UserError: one line about a value that is not allowed.
        """
        return build_settings(self.Settings, given)

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
    def any_robot(self) -> AnyRobot:
        """The robot that `settings.robot` names, in a node for robots of every kind."""
        return cast(AnyRobot, self._robot_file)

    @property
    def state(self) -> str:
        """Of its lifecycle: unconfigured, inactive, active or finalized."""
        return self._state

    @property
    def configured(self) -> bool:
        """Whether the node is inactive or active."""
        return self._state in ("inactive", "active")

    @property
    def active(self) -> bool:
        """Whether the node is active."""
        return self._state == "active"

    @property
    def inbox(self) -> Mailbox:
        """Where the loop gets messages from."""
        return self._inputs.inbox

    @property
    def time_is_unknown(self) -> bool:
        """Whether time is that of /clock, and nothing has come there yet."""
        return self._time.unknown

    @property
    def clock_topic(self) -> str:
        """Full name of the topic that simulated time comes on; each namespace has its own."""
        return self.resolve_topic_name("/clock")

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
        return max([self._last_tick_stamp or 0, *list(self._inputs.stamps.values())])

    def notice_time(self) -> bool:
        """Whether time has jumped since the last call; the jump has then been dealt with. Only in
        the loop's thread; what is received is checked so by itself."""
        jumped = self._time.look()
        if not jumped or self.settings.lockstep:  # there, stamps are the only time
            return False
        self.begin_other_time(jumped)
        return True

    def begin_other_time(self, jumped: float) -> None:
        """Forget the stamps of before a jump of time [s]."""
        self._inputs.stamps.clear()
        self._last_tick_stamp = None
        self.counts.jump(jumped)
        done = self.on_time_jump(jumped)
        way = "forward" if jumped > 0.0 else "back"
        self.get_logger().warning(f"time jumped {way} by {abs(jumped):.3f} s: {done}")

    def quality_of(
        self, topic: str, end: str
    ) -> AbstractContextManager[QoSOverridingOptions | None]:
        """See `overriding_options`."""
        names = self._ros_parameters.given_names()
        return overriding_options(names, topic, end, self.settings.lockstep)

    def advertise(self, topic: str) -> LifecyclePublisher:
        """A publisher of a topic of the table; silent while the node is not active."""
        row = TOPICS[topic]
        name = self.resolve_topic_name(row.name)
        profile = qos(topic, self.settings.lockstep, offered_period=self.settings.period)
        with self.quality_of(name, "publisher") as options:
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
    ) -> Subscription:
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

        Returns:
            The subscription; it goes with the node's cleanup.
        """
        return self._inputs.receive(topic, decode, raw, depth, wakes)

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
        self._inputs.receive_value(topic, decode, depth, wakes)

    def offer(self, topic: str, encode: Encode) -> Callable[[Any, int], None]:
        """Offer a topic's values to the other nodes of this process; call it in
        `on_configure_node`.

        Args:
            topic: name in the table.
            encode: makes a message of a value.

        Returns:
            What hands a value of a stamp [ns] over.
        """
        return self._inputs.offer(topic, encode)

    def reject(self, topic: str, reason: str) -> None:
        """Count a received message that must not be used; the first of its kind is logged."""
        if first := self.counts.reject(f"{topic}: {reason}"):
            self.get_logger().warning(f"rejected {first}")

    def finish_tick(self, received: float, stamp: int, periods: int = 1) -> None:
        """Count a tick whose output has just been published.

        Args:
            received: when its input was complete, on the monotonic clock [s].
            stamp: of that input [ns]; stamps left out since the last tick count as missed.
            periods: that a tick may take.
        """
        self.statistics.add(time.monotonic() - received, periods)
        if self._last_tick_stamp is not None:
            passed = (stamp - self._last_tick_stamp) * 1e-9 / self.settings.period
            self.statistics.skip(max(round(passed) - periods, 0))
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
            reports = configuration.reports(
                self.get_name(),
                self.qualified(self._robot_file.name),
                self._ros_parameters.values(),
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
        said = self.counts.catch(where, sys.exc_info()[1])
        self.get_logger().error(f"{said}\n{traceback.format_exc()}", throttle_duration_sec=1.0)

    def use_settings(self, settings: NodeSettings) -> None:
        """Parameters have changed: what they are now."""
        before, self.settings = self.settings, settings
        changed = changed_values(before, settings)
        if not changed:
            return
        was = setting_values(before)
        words = [f"{name} was {was[name]}, is {value}" for name, value in changed.items()]
        self.get_logger().info(f"parameters changed: {', '.join(words)}")
        if self.configured:
            self.on_changed_settings(before)
            self.tell_configuration()

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
        self._ros_parameters.warn_of_unused_overrides()
        self._state = "inactive"
        self._succeeds("configuration", self.tell_configuration)
        self.get_logger().info(f"configured: {self.configured_with()}")
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: see `on_activate_node`."""
        self.counts.forget()
        self._inputs.stamps.clear()
        self._last_tick_stamp = None
        self._time.look()
        self._inputs.arrange()
        self.inbox.open()
        self.statistics = TickStatistics(self.settings.period, lockstep=self.settings.lockstep)
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
        if self.settings.lockstep:
            self._wait_for_readers()
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

    def _wait_for_readers(self) -> None:
        """Wait until every subscriber has confirmed the last latched message.

        A busy subscriber may have lost it; DDS sends it again as long as the publisher is there.
        """
        latest = time.monotonic() + _RECEPTION_TIMEOUT
        for publisher in self._publishers_advertised:
            while not publisher.wait_for_all_acked(Duration()):  # longer, it stops all threads
                if time.monotonic() > latest:
                    lost = "a reader has not received all of it"
                    self.get_logger().warning(f"{publisher.topic}: {lost}")
                    break
                time.sleep(_RECEPTION_POLL)

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
        self._inputs.release()
        for publisher in self._publishers_advertised:
            self.destroy_lifecycle_publisher(publisher)
        self._publishers_advertised.clear()

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

    # --- diagnostics ------------------------------------------------------------------------

    def _diagnostic_report(self) -> DiagnosticReport:
        summary = self.statistics.summary()
        warnings = [*self._time_warnings(), *self.diagnostic_warnings()] if self.active else []
        idle = "" if self.active else self._state
        level, message = self.counts.assessment(summary, idle, warnings, _DIAGNOSTICS_PERIOD)
        if failure := self.diagnostic_failure():
            level, message = ERROR, failure
        values = (
            summary
            | self.counts.values()
            | {
                "publishes": self._readers_seen(),
                "receives": self._writers_seen(),
                "from_its_process": self._inputs.inside,
                "mode": self.settings.mode,
                "seed": self.settings.seed,
                # with these a replay of the run's bag knows what the node was
                "settings": setting_values(self.settings),
            }
        )
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
        return {s.topic_name: s.get_publisher_count() for s in self._inputs.subscriptions}

    def _time_warnings(self) -> list[str]:
        """A line where the time of /clock does not go on; asked once in a report."""
        if not self._time.simulated or self.settings.lockstep:
            return []
        now, before = self.now(), self._last_told
        self._last_told = now
        if now == 0:
            return [f"use_sim_time is set, and nothing has come on {self.clock_topic}"]
        return [f"{self.clock_topic} stands still"] if now == before else []
