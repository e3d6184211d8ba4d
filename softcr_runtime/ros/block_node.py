"""A block as a ROS 2 node: the executor of real systems.

The node's loop waits for messages, puts them into the block's join, and publishes what the block
answers. A block whose lead is the clock is paced by it: by a cycle timer on the wall clock, by the
answers to its last cycle in lock-step.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numba
from rclpy.lifecycle.publisher import LifecyclePublisher
from std_srvs.srv import Trigger

from softcr_models.errors import UserError
from softcr_runtime.blocks.block import CLOCK, OVERDUE, BlockBase, Output
from softcr_runtime.blocks.budget import Budget, TimedBudget
from softcr_runtime.blocks.cycle_timer import CycleTimer
from softcr_runtime.blocks.guard import Guard
from softcr_runtime.blocks.join import Join, Tick
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.tick_grid import TickGrid
from softcr_runtime.blocks.tick_records import (
    ACTION,
    CHANGE,
    END,
    IDLE,
    JUMP,
    RESET,
    TOPIC,
    TickRecord,
    record_of,
    records_to_message,
)
from softcr_runtime.ros.intra_process import Encode
from softcr_runtime.ros.node import LoopNode
from softcr_runtime.settings.node_settings import NodeSettings, changed_values
from softcr_runtime.wire.codecs import Codec, codec

_RECORDS_PERIOD = 1.0  # between two messages of tick records [s]
_LONGEST_WAIT = 0.5  # for a message, before the loop looks at what else there is [s]
_LOOK = 0.002  # between looks at simulated time [s]
_RESAMPLED_DEPTH = 8  # messages that may wait for the partner that comes late


@dataclass(frozen=True, eq=False)
class _Speaker:
    """Publishes what a block says on a topic, over DDS and to the other nodes of the process."""

    publisher: LifecyclePublisher
    encode: Encode
    deliver: Callable[[Any, int], None]

    def publish(self, output: Output) -> None:
        self.publisher.publish(self.encode(output.value, output.stamp))

    def hand_over(self, output: Output) -> None:
        if self.publisher.is_activated:
            self.deliver(output.value, output.stamp)


class BlockNode(LoopNode):
    """Runs one block; see `block_node_class`."""

    Block: type[BlockBase]
    _block: BlockBase | None = None

    def __init__(self, **node_options: Any) -> None:
        """See LoopNode; services for the block's actions exist in every state."""
        super().__init__(**node_options)
        for name in self.Block.actions:
            self.create_service(Trigger, f"~/{name}", self._service(name))

    def use_settings_model(self, given: dict[str, Any]) -> None:
        type(self).Settings = self.Block.settings_model(given)

    def settings_from(self, given: dict[str, Any]) -> NodeSettings:
        return self.Block.settings_of(given)

    # --- lifecycle --------------------------------------------------------------------------

    def on_configure_node(self) -> None:
        block = self.Block(self._robot_file, self.settings)
        self._block, self._guard = block, Guard(block, self._complain)
        self._guard.rehearse()
        self._records: list[TickRecord] = []
        self._configured_with, self._prepared = self.settings, _nothing
        # changes of settings that wait for the next tick: what does them, and their values
        self._changes: deque[tuple[Callable[[], None], dict[str, float]]] = deque()
        self._topics = tuple(each.topic for each in block.inputs)
        self.keeps_own_time = CLOCK in self._topics
        self._join = Join(block.inputs, block.keep, self.settings.period)
        self._speakers = {topic: self._speaker(topic, block) for topic in block.outputs}
        self._ticks_publisher = self.advertise(TOPIC)
        self._receive_inputs(block)

    def on_activate_node(self) -> None:
        self._join.forget()
        self._guard.reset()
        # changes while inactive come before it
        self._records += [TickRecord(RESET, max(self._now_stamp(), 1))]
        self._records_due = time.monotonic() + _RECORDS_PERIOD
        self._last_stamp = self._last_clock = 0

    def loop(self, stop: threading.Event) -> None:
        # a second thread, on shared cores, is mostly waited for longer than it helps
        numba.set_num_threads(min(self._running.threads, numba.config.NUMBA_NUM_THREADS))
        lead = next(each for each in self._running.inputs if each.rule == "lead")
        if lead.topic != CLOCK:
            self._loop_on_messages(stop)
        elif self.settings.lockstep:
            self._loop_in_lockstep(stop)
        else:
            self._loop_on_the_clock(stop)

    def on_deactivate_node(self) -> None:
        if self._block is None:
            return
        self._use_changes()
        self._idle("stopped")
        self._publish_records()

    def on_time_jump(self, seconds: float) -> str:
        self.inbox.forget_read()
        self._join.forget()
        if not self.settings.lockstep:
            self._last_stamp = 0
            self._idle("time jumped")
        # stamps in a message are told from the first on, which a jump may be years away from
        self._publish_records()
        self._guard.time_jumped(seconds)
        self._last_stamp = self._last_clock = 0
        self._note(TickRecord(JUMP, max(self._now_stamp(), 1), seconds))
        return f"{self._running.title} starts again"

    def accept_settings(self, candidate: NodeSettings) -> None:
        self._prepared = self._running.prepared(candidate)

    def on_changed_settings(self, before: NodeSettings) -> None:
        changed = {n: float(v) for n, v in changed_values(before, self.settings).items()}
        self._changes.append((self._prepared, changed))
        if not self.active:
            self._use_changes()

    def configured_with(self) -> str:
        return self._running.summary

    def diagnostic_values(self) -> dict[str, Any]:
        if self._block is None:  # before the first configure
            return {}
        dropped = {f"{topic}: {why}": n for (topic, why), n in self._join.dropped.items()}
        block = type(self._block)
        place = f"{block.__module__}:{block.__qualname__}"
        return {
            "block": place,
            "dropped": dropped,
            "refusals": self._guard.refusals,
            "unusable_in_a_row": self._guard.in_a_row,
            # a replay begins with these, and finds the changes among the tick records
            "before_changes": changed_values(self.settings, self._configured_with),
            **self._block.describe(),
        }

    def diagnostic_warnings(self) -> list[str]:
        if self._block is None:
            return []
        return [*self._block.warnings(), *self._guard.warnings()]

    # --- three ways of pacing ---------------------------------------------------------------

    def _loop_on_messages(self, stop: threading.Event) -> None:
        """Ticks are made of messages; without any for a while the block is asked to be idle."""
        silent, silent_since = False, time.monotonic()
        while not stop.is_set():
            tick = self._next_tick(silent_since + self._silence())
            if stop.is_set():
                return
            now = time.monotonic()
            if tick is None:
                if now >= silent_since + self._silence():
                    if not silent:
                        self._join.forget()
                        self._tell_silence(f"{OVERDUE} for {self._silence():g} s")
                    self._idle(OVERDUE)
                    silent, silent_since = True, now
                continue
            if silent:
                self._tell_silence("inputs again")
            silent = False
            if self._run(tick, tick.received):
                self._publish(self._outputs)
            silent_since = time.monotonic()

    def _loop_on_the_clock(self, stop: threading.Event) -> None:
        """A tick each period; what has come since the last one belongs to it."""
        period = self.settings.period
        grid = TickGrid(period) if self._running.on_grid else None
        timer = CycleTimer(period)
        while not stop.is_set():
            if grid is None:
                self.statistics.skip(timer.wait())
                stamp = self.now()
            else:
                stamp = self._wait_for_tick(grid, stop)
            self.notice_time()
            begin = time.monotonic()
            self._use_changes()
            self._drain()
            self._publish_records_when_due()
            if stamp <= self._last_clock:  # time stands still, or goes more slowly than the loop
                continue
            self._last_clock = stamp
            self._join.put(Sample(CLOCK, stamp, None, begin))
            tick = self._join.take(begin)
            if tick is not None and not stop.is_set() and self._run(tick, begin):
                self._publish(self._outputs)

    def _wait_for_tick(self, grid: TickGrid, stop: threading.Event) -> int:
        """The next tick of a grid, once ROS time has reached it; 0 where it did not [ns]."""
        now = self.now()
        stamp = grid.after(now, now + grid.period)[0]
        end = time.monotonic() + _LONGEST_WAIT
        while (left := stamp - self.now()) > 0 and not stop.is_set() and time.monotonic() < end:
            # simulated time may go faster than this machine's
            stop.wait(min(left * 1e-9, _LOOK if self._time.simulated else _LONGEST_WAIT))
        # a time that leapt over the tick, from before the first /clock perhaps, has passed it by
        return stamp if -grid.period < left <= 0 else 0

    def _loop_in_lockstep(self, stop: threading.Event) -> None:
        """The same on simulated time: t_{k+1} comes when the answer to t_k is there."""
        period = round(1e9 * self.settings.period)
        stamp = 0
        while not stop.is_set():
            stamp += period
            self._join.put(Sample(CLOCK, stamp, None, time.monotonic()))
            tick = self._next_tick(math.inf)
            if tick is None or stop.is_set():
                return
            begin = time.monotonic()
            if self._run(tick, begin):
                self._publish(self._outputs)
            if self._running.finished:
                self._publish_records()
                self.publish_diagnostics()
                stop.wait()
                return

    # --- one tick ---------------------------------------------------------------------------

    def _next_tick(self, deadline: float) -> Tick | None:
        """The next tick; None when the deadline [s] has passed or the inbox was closed."""
        while True:
            self._use_changes()
            now = time.monotonic()
            tick = self._join.take(now)
            if tick is not None:
                return tick
            self._publish_records_when_due()
            self.notice_time()
            until = min(self._join.wake(), deadline, now + _LONGEST_WAIT)
            sample = self.inbox.get(timeout=max(until - now, 0.0))
            if sample is not None:
                self._join.put(sample)
                for other in self.inbox.read_along():
                    self._join.put(other)
            elif self.inbox.closed or time.monotonic() >= deadline:
                return self._join.take(time.monotonic())

    def _drain(self) -> None:
        """Everything that has arrived goes into the join."""
        for sample in self.inbox.arrived():
            self._join.put(sample)

    def _run(self, tick: Tick, began: float) -> bool:
        """Let the block tick; whether there is something to publish."""
        self._running.budget = budget = self._budget(began)
        self._outputs = self._guard.tick(tick.stamp, tick.samples)
        age = self._age_of(tick.stamp)
        self._running.answered(age)
        self._note(record_of(tick, age, budget.effort))
        self.finish_tick(began, tick.stamp, self._running.every)
        return bool(self._outputs)

    def _idle(self, why: str) -> None:
        # in lock-step stamps continue simulated time, so that runs are equal to the bit
        stamp = self._last_stamp + 1
        if not self.settings.lockstep:  # a clock that stands still must not make a vent stale
            stamp = max(stamp, self.now())
        outputs = self._guard.idle(stamp, why)
        self._note(TickRecord(IDLE if why == OVERDUE else END, stamp))
        self._publish(outputs)

    def _publish(self, outputs: Iterable[Output]) -> None:
        """Over DDS first: what neighbours do with it they do when this loop has nothing to do."""
        said = [(self._speakers[output.topic], output) for output in outputs]
        for speaker, output in said:
            speaker.publish(output)
            self._last_stamp = max(self._last_stamp, output.stamp)
        for speaker, output in said:
            speaker.hand_over(output)

    def _use_changes(self) -> None:
        """Between two ticks, settings that were changed since the last one come into force."""
        while self._changes:
            use, changed = self._changes.popleft()
            use()
            stamp = self._last_tick_stamp or self._now_stamp()
            self._note(TickRecord(CHANGE, stamp, changed=changed))

    # --- records ----------------------------------------------------------------------------

    def _note(self, record: TickRecord) -> None:
        self._records.append(record)

    def _publish_records_when_due(self) -> None:
        if time.monotonic() >= self._records_due:
            self._publish_records()

    def _publish_records(self) -> None:
        records, self._records = self._records, []
        if records:
            name = self.get_name()
            self._ticks_publisher.publish(records_to_message(name, self._topics, records))
        self._records_due = time.monotonic() + _RECORDS_PERIOD

    # --- inside -----------------------------------------------------------------------------

    @property
    def _running(self) -> BlockBase:
        assert self._block is not None  # made by configure
        return self._block

    def _tell_silence(self, line: str) -> None:
        """Before the first tick nobody waits for anything."""
        if self._last_tick_stamp is not None:
            self.get_logger().info(line, throttle_duration_sec=1.0)

    def _silence(self) -> float:
        # in lock-step the plant waits for us, so nothing is overdue
        return math.inf if self.settings.lockstep else self._running.silence

    def _budget(self, began: float) -> Budget:
        """Of a tick whose input came at a time [s]; in lock-step everybody waits for it."""
        share = self._running.share
        if self.settings.lockstep or math.isinf(share):
            return Budget()
        return TimedBudget(began + share * self.settings.period)

    def _age_of(self, stamp: int) -> float:
        return (self.now() - stamp) * 1e-9

    def _now_stamp(self) -> int:
        return 1 if self.settings.lockstep else self.now()

    def _complain(self, line: str) -> None:
        self.get_logger().error(line)

    def _speaker(self, topic: str, block: BlockBase) -> "_Speaker":
        encode = codec(topic, block.expected).encode
        return _Speaker(self.advertise(topic), encode, self.offer(topic, encode))

    def _receive_inputs(self, block: BlockBase) -> None:
        resampled = getattr(block.settings, "resampled", False)
        for each in block.inputs:
            if each.topic == CLOCK:
                continue
            coding: Codec = codec(each.topic, block.expected)
            partner = resampled and not each.resampled
            self.receive_value(
                each.topic,
                coding.decode,
                depth=_RESAMPLED_DEPTH if partner and each.rule in ("same", "lead") else None,
                wakes=each.wakes,
            )

    def _service(self, name: str) -> Callable[[Any, Any], Any]:
        def serve(_: Any, response: Any) -> Any:
            if not self.active:
                response.message = "activate the node first"
                return response
            try:
                response.message = self._running.act(name)
                response.success = True
                number = self.Block.actions.index(name)
                self._note(TickRecord(ACTION + number, max(self._last_stamp, 1)))
            except UserError as error:
                response.success, response.message = False, str(error)
            return response

        return serve


def block_node_class(block: type[BlockBase], name: str = "") -> type[BlockNode]:
    """The node class of a block.

    Args:
        block: what it runs.
        name: of the node; empty for the block's own.
    """
    return type(
        f"{block.__name__}Node",
        (BlockNode,),
        {
            "__doc__": block.__doc__,
            "Block": block,
            "default_name": name or block.name,
            "Settings": block.Settings,
            "kinds": block.kinds,
        },
    )


def _nothing() -> None:
    """What is prepared before anything was."""
