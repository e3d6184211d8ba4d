"""The base of all nodes, in real rclpy: lifecycle, faults, diagnostics, parameters, process."""

import itertools
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import rclpy
from kit.processes import ROOT, TIMEOUT, Peer
from lifecycle_msgs.msg import Transition, TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import DescribeParameters, SetParameters
from rclpy.parameter import Parameter
from relay import Relay

from softcr_models import load_robot
from softcr_runtime.ros.node_counts import NodeCounts
from softcr_runtime.ros.process import SupervisedExecutor, run
from softcr_runtime.settings.node_settings import declared_settings
from softcr_runtime.wire.diagnostics import ERROR, OK, STALE, WARN, diagnostics_from_message
from softcr_runtime.wire.messages import from_stamp, pressures_to_message

CHAMBERS = load_robot("licher2025").chamber_names
CONFIGURE = Transition.TRANSITION_CONFIGURE
ACTIVATE = Transition.TRANSITION_ACTIVATE
DEACTIVATE = Transition.TRANSITION_DEACTIVATE
CLEANUP = Transition.TRANSITION_CLEANUP
SHUTDOWN = Transition.TRANSITION_ACTIVE_SHUTDOWN


class World(Peer):
    """The rest of the world: sends pressures, hears commands and diagnostics, asks services."""

    def __init__(self, lockstep: bool = False):
        super().__init__("tester", lockstep)
        self._small_stamps = itertools.count(1)
        self.commands, self.reports, self.states = [], [], []
        self._pressures = self.publisher("pressure/state")
        self.hear("pressure/command", self.commands.append)
        self.hear("/diagnostics", lambda m: self.reports.extend(diagnostics_from_message(m)), False)
        topic = "relay/transition_event"
        self.node.create_subscription(TransitionEvent, topic, self._on_transition, 10)

    def _on_transition(self, event: TransitionEvent) -> None:
        self.states.append(event.goal_state.label)

    def connect(self) -> None:
        """Send until an answer comes, and forget it: DDS has found both directions then."""
        while not self.commands:
            self.send([0.0] * 3, stamp=next(self._small_stamps) if self._lockstep else None)
            self.spin(0.2, until=lambda: bool(self.commands))
        self.spin(0.2)  # answers to earlier ones
        self.commands.clear()

    def client(self, service_type, name: str):
        """A client of the relay that the relay knows.

        An answer is lost when the server has not discovered the client yet. It discovers in the
        order of creation: once it answers a later client it knows this one, too. service_is_ready
        tells less, and within one process it may stay False while the service answers.
        """
        if name not in self._clients:
            self._clients[name] = self.node.create_client(service_type, f"relay/{name}")
            later = self.node.create_client(GetState, "relay/get_state")
            self.until(lambda: self._gets_an_answer(later))
            self.node.destroy_client(later)
        return self._clients[name]

    def ask(self, service_type, name: str, request):
        answer = self.client(service_type, name).call_async(request)
        self.until(answer.done)
        return answer.result()

    def _gets_an_answer(self, client) -> bool:
        answer = client.call_async(GetState.Request())
        self.spin(1.0, until=answer.done)
        return answer.done()

    def change(self, transition: int) -> bool:
        request = ChangeState.Request(transition=Transition(id=transition))
        return self.ask(ChangeState, "change_state", request).success

    def begin(self) -> None:
        assert self.change(CONFIGURE)
        assert self.change(ACTIVATE)
        self.connect()

    def state(self) -> str:
        return self.ask(GetState, "get_state", GetState.Request()).current_state.label

    def set(self, name: str, value) -> SimpleNamespace:
        parameter = Parameter(name, value=value).to_parameter_msg()
        request = SetParameters.Request(parameters=[parameter])
        return self.ask(SetParameters, "set_parameters", request).results[0]

    def send(self, pressures, stamp: int | None = None, names=CHAMBERS) -> int:
        stamp = time.time_ns() if stamp is None else stamp
        pressures = np.asarray(pressures, dtype=float)
        self._pressures.publish(pressures_to_message(pressures, names, stamp))
        return stamp

    def told(self, name: str):
        """A value of the newest report."""
        return self.reports[-1].values.get(name) if self.reports else None

    def answered(self, stamp: int) -> list[float]:
        """The command with this stamp; waits for it."""

        def arrived() -> list:
            return [c for c in self.commands if from_stamp(c, "pressure/command") == stamp]

        return list(self.until(arrived)[0].effort)


@contextmanager
def _running(lockstep: bool = False, **parameters) -> Iterator[tuple[Relay, World]]:
    """A relay that spins in a thread, and a world beside it."""
    context = rclpy.Context()
    rclpy.init(context=context)
    if lockstep:
        parameters["mode"] = "lockstep"
    overrides = [Parameter(name, value=value) for name, value in parameters.items()]
    node = Relay(context=context, parameter_overrides=overrides)
    executor = SupervisedExecutor(node)
    spinning = threading.Thread(target=executor.spin)
    spinning.start()
    world = World(lockstep)
    try:
        yield node, world
    finally:
        world.close()
        executor.create_task(node.finish)
        executor.stop()
        spinning.join(TIMEOUT)
        node.destroy_node()
        context.shutdown()
        assert not spinning.is_alive()


@contextmanager
def _active(lockstep: bool = False, **parameters) -> Iterator[tuple[Relay, World]]:
    with _running(lockstep, **parameters) as (node, world):
        world.begin()
        yield node, world


def test_a_whole_life_answers_only_while_active_and_leaves_a_vent_command():
    with _running(factor=2.0) as (node, world):
        assert world.state() == "unconfigured"
        assert world.change(CONFIGURE)
        world.send([1e3, 2e3, 3e3])  # nobody is to answer this one
        assert world.change(ACTIVATE)
        assert node.active
        assert not world.commands
        world.connect()
        stamp = world.send([10e3, 20e3, 30e3])
        assert world.answered(stamp) == [20e3, 40e3, 60e3]
        assert len(world.commands) == 1
        assert world.change(DEACTIVATE)
        world.until(lambda: len(world.commands) == 2)
        assert list(world.commands[1].effort) == [0.0, 0.0, 0.0]
        assert not any(thread.name == "loop" for thread in threading.enumerate())
        assert world.change(CLEANUP)
        assert world.state() == "unconfigured"
        world.begin()  # and once more from the beginning
        assert world.answered(world.send([1e3, 0.0, 0.0])) == [2e3, 0.0, 0.0]
        world.commands.clear()
        finalized = threading.Event()
        node.on_finalized = finalized.set
        assert world.change(SHUTDOWN)  # from active, which vents first
        assert finalized.is_set()
        world.until(lambda: bool(world.commands))
        assert list(world.commands[0].effort) == [0.0, 0.0, 0.0]
        assert world.state() == "finalized"


def test_a_transition_that_is_not_allowed_or_fails_leaves_nothing_and_may_be_repeated():
    with _running() as (node, world):
        assert not world.change(ACTIVATE)
        assert not world.change(99)
        assert world.state() == "unconfigured"
        node.device_broken = True
        assert not world.change(CONFIGURE)
        assert world.state() == "unconfigured"
        node.device_broken = False
        assert world.change(CONFIGURE)
        assert len(node._inputs.subscriptions) == len(node._publishers_advertised) == 1


def test_bad_messages_are_rejected_counted_and_named():
    with _active() as (node, world):
        good = world.send([1e3] * 3)
        world.answered(good)
        bad = (
            lambda: world.send([1e3, math.nan, 1e3]),
            lambda: world.send([1e3, 1e3], names=CHAMBERS[:2]),
            lambda: world.send([1e3] * 3, stamp=good),  # a repetition
            lambda: world.send([1e3] * 3, stamp=time.time_ns() - 10 * 10**9),
            lambda: world.send([1e3] * 3, stamp=time.time_ns() + 10 * 10**9),
            lambda: world.publisher("pressure/state").publish(b"\x00\x01\x00\x00garbage"),
        )
        for count, send in enumerate(bad, start=1):
            send()
            world.until(lambda count=count: sum(node.counts.rejections.values()) == count)
        assert world.answered(world.send([2e3] * 3)) == [2e3] * 3
        assert len(world.commands) == 2
        node.publish_diagnostics()
        world.until(lambda: world.told("rejected_messages") == len(bad))
        rejections = world.told("rejections")
        for word in (
            "nan must be finite", "must be the chambers", "not newer", "future",
            "not readable as a message of its type",
        ):  # fmt: skip
            assert any(word in reason for reason in rejections), word
        assert all(reason.startswith("pressure/state: ") for reason in rejections)
        for number in range(1000):  # what is told of them stays bounded
            node.reject("pressure/state", f"reason {number}")
        assert len(node.counts.rejections) == 51
        assert sum(node.counts.rejections.values()) == len(bad) + 1000


STALLED_READER = """
import rclpy
from softcr_runtime.wire.topics import TOPICS, qos

rclpy.init()
node, row, stamps = rclpy.create_node("stalled"), TOPICS["pressure/command"], set()

def hear(message):
    stamps.update({message.header.stamp.nanosec} & set(range(10**6, 10**6 + 450)))
    print(len(stamps), flush=True)

node.create_subscription(row.message_class(), row.name, hear, qos(row.name, lockstep=True))
rclpy.spin(node)
"""


def test_in_lockstep_a_reader_that_had_no_time_gets_all_before_the_node_is_inactive():
    with _active(lockstep=True) as (_, world):
        reader = subprocess.Popen(
            [sys.executable, "-c", STALLED_READER], stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        patience = threading.Timer(TIMEOUT, reader.kill)
        patience.start()
        try:
            assert reader.stdout.readline()  # what was published before it came
            reader.send_signal(signal.SIGSTOP)
            stamps = [world.send([1e3] * 3, stamp=10**6 + number) for number in range(450)]
            world.answered(stamps[-1])
            threading.Timer(0.5, reader.send_signal, [signal.SIGCONT]).start()
            assert world.change(DEACTIVATE)
            assert world.change(CLEANUP)  # which takes the publisher away
            heard = 0
            while heard < 450:
                line = reader.stdout.readline()
                assert line, f"only {heard} of 450"
                heard = int(line)
        finally:
            patience.cancel()
            reader.kill()
            reader.wait()


def test_exceptions_in_loop_decoder_and_callbacks_are_counted_and_survived():
    with _active() as (node, world):
        node.fail_next_tick = True
        world.send([1e3] * 3)
        world.until(lambda: node.counts.exceptions == 1)
        world.send([66e3] * 3)
        world.until(lambda: node.counts.exceptions == 2)

        def fail() -> None:
            timer.cancel()
            raise OSError("a bug in a timer")

        timer = node.create_timer(0.001, fail)
        world.until(lambda: node.counts.exceptions == 3)
        assert world.answered(world.send([2e3] * 3)) == [2e3] * 3
        node.publish_diagnostics()
        world.until(lambda: world.told("exceptions") == 3)
        errors = [report.message for report in world.reports if report.level == ERROR]
        assert any("a bug in a timer" in message for message in errors)
        node.fail_deactivate = True  # it ends inactive all the same
        assert world.change(DEACTIVATE)
        assert world.state() == "inactive"
        world.until(lambda: "cannot stop" in world.reports[-1].message)
        assert world.reports[-1].level == ERROR


def test_diagnostics_tell_how_the_run_went():
    with _active(lockstep=True, rate_hz=1.0, seed=7) as (node, world):
        period = 1_000_000_000
        before = node.statistics.cycles
        for cycle in (1, 2, 3, 6):  # 4 and 5 never come
            world.answered(world.send([1e3] * 3, stamp=cycle * period))
        assert world.change(DEACTIVATE)
        world.until(lambda: world.told("cycles") == before + 4)
        report = world.reports[-1]
    assert report.name == "relay: loop"
    assert report.hardware_id == "licher2025"
    values = report.values
    assert values["missed_cycles"] == 2
    assert values["deadline_ms"] == 1000.0
    assert (values["mode"], values["seed"]) == ("lockstep", 7)
    assert values["nested"] == {"a": [1, 2]}
    assert sum(values["tick_time_histogram_ms"]["counts"]) == before + 4
    assert 0.0 < values["p50_ms"] <= values["p99_ms"] <= values["max_ms"]
    assert (values["rejected_messages"], values["rejections"]) == (0, {})


def test_levels_follow_what_happened_since_the_last_report():
    counts, ticks = NodeCounts(), {"rate_hz": 70.0, "p99_ms": 2.5, "cycles": 0, "missed_cycles": 0}

    def told(*warnings, idle="", cycles=0, missed=0):
        ticks["cycles"] += cycles
        ticks["missed_cycles"] += missed
        return counts.assessment(ticks, idle, list(warnings), 1.0)

    assert told() == (OK, "active, no cycle yet")
    assert told(cycles=1) == (OK, "70.0 Hz, p99 2.50 ms")
    assert told() == (STALE, "no cycle for 1 s")
    for _ in range(2):
        counts.reject("pressure/state: late")
    assert told(cycles=1) == (WARN, "2 messages rejected")
    assert told(cycles=1, missed=3) == (WARN, "3 cycles missed")
    counts.jump(-2.0)
    assert told("factor is 0", cycles=1) == (WARN, "factor is 0, time jumped, last by -2.000 s")
    counts.catch("loop", ArithmeticError("no solution"))
    assert told(cycles=1) == (ERROR, "1 exception, last in loop: ArithmeticError: no solution")
    assert told(idle="inactive") == (OK, "inactive")
    counts.forget()
    assert counts.values()["exceptions"] == 0


def _offered_by(world, topic: str):
    return world.until(lambda: world.node.get_publishers_info_by_topic(topic))[0].qos_profile


def test_qualities_of_service_can_be_chosen_and_unknown_parameters_are_warned_of(capfd):
    given = {
        "qos_overrides./pressure/command.publisher.reliability": "best_effort",
        "qos_overrides./pressure/command.publisher.depth": 7,
        "qos_overrides./pressure/comand.publisher.depth": 7,
        **{"factr": 2.0, "population": 64, "factor": 0.5},
    }
    with _running(**given) as (node, world):
        assert node.settings.factor == 0.5
        assert not node.has_parameter("factr")
        assert world.change(CONFIGURE)
        offered = _offered_by(world, "/pressure/command")
        assert offered.reliability.name == "BEST_EFFORT"
        depth = node.get_parameter("qos_overrides./pressure/command.publisher.depth")
        assert depth.value == 7
        assert not world.set(depth.name, 8).successful
        # and once more: they are declared already
        assert world.change(CLEANUP)
        assert world.change(CONFIGURE)
        assert _offered_by(world, "/pressure/command").reliability.name == "BEST_EFFORT"
    warned = [line for line in capfd.readouterr().err.splitlines() if "WARN" in line]
    (unknown,) = [line for line in warned if "factr" in line]
    assert "factr (did you mean factor?); population" in unknown
    first, _ = [line for line in warned if "comand" in line]  # of each configure
    assert "qos_overrides./pressure/comand.publisher.depth: ignored" in first


@pytest.mark.parametrize(
    ("policy", "value", "lockstep", "line"),
    [
        ("reliability", "sometimes", False, "reliability: reliable or best_effort"),
        ("depth", "many", False, "depth: a whole number from 1"),
        ("depth", 0, False, "depth must be at least 1"),
        ("reliability", "best_effort", True, "in lock-step no message may be lost"),
    ],
)
def test_a_bad_quality_of_service_refuses_to_configure_in_one_line(
    capfd, policy, value, lockstep, line
):
    name = f"qos_overrides./pressure/command.publisher.{policy}"
    with _running(lockstep, **{name: value}) as (_, world):
        assert not world.change(CONFIGURE)
        assert world.state() == "unconfigured"
    (told,) = [each for each in capfd.readouterr().err.splitlines() if "ERROR" in each]
    assert line in told


def test_parameters_are_declared_and_change_only_when_they_may_which_is_in_the_log(capfd):
    with _running(rate_hz=50) as (node, world):
        assert node.settings.rate_hz == node.get_parameter("rate_hz").value == 50.0
        assert node.get_parameter("names").value == ["a", "b"]
        request = DescribeParameters.Request(names=["rate_hz", "seed", "busy", "mode"])
        answer = world.ask(DescribeParameters, "describe_parameters", request)
        rate, seed, busy, mode = answer.descriptors
        (rates,), (seeds,) = rate.floating_point_range, seed.integer_range
        assert (rates.from_value, rates.to_value) == (1.0, 1000.0)
        assert (seeds.from_value, seeds.to_value) == (0, 2**31 - 1)
        assert busy.description == "time configure takes [s]"
        constraints = "one of wall, lockstep; can change while unconfigured"
        assert mode.additional_constraints == constraints
        assert world.set("rate_hz", 35.0).successful
        assert node.settings.rate_hz == 35.0
        refused = world.set("rate_hz", 5000.0)
        assert not refused.successful
        assert "rate_hz" in refused.reason
        assert "1000" in refused.reason
        assert not world.set("robot", "nobody").successful
        assert not world.set("unheard_of", 1).successful
        world.change(CONFIGURE)
        refused = world.set("rate_hz", 70.0)
        assert (refused.successful, node.settings.rate_hz) == (False, 35.0)
        assert refused.reason.startswith(
            "parameter rate_hz cannot change while the node is inactive: first softcr lifecycle "
            "set relay cleanup"
        )
        assert world.set("rate_hz", 35.0).successful  # as it is
        world.change(ACTIVATE)
        world.connect()
        for _ in range(2):  # the second time there is nothing new
            assert world.set("factor", 0.5).successful
        assert world.answered(world.send([8e3] * 3)) == [4e3] * 3
    lines = [line for line in capfd.readouterr().err.splitlines() if "parameters changed" in line]
    told = [line.partition("parameters changed: ")[2] for line in lines]
    assert told == ["rate_hz was 50.0, is 35.0", "factor was 1.0, is 0.5"]


@contextmanager
def _process(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen, World]]:
    """A relay in a process of its own, and a world beside it."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("relay.py")), *arguments], text=True,
        env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    world = World()
    try:
        yield process, world
    finally:
        process.kill()
        world.close()


@pytest.fixture
def _signal_handlers() -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_signal_handlers")
def test_help_lists_every_parameter_and_what_a_person_got_wrong_is_one_line(capfd):
    for arguments, line in (
        (["--ros-args", "-p", "rate_hz:=7000.0"], "parameter rate_hz = 7000.0: must be a number"),
        (["--rate", "7"], "argument '--rate': unknown"),
    ):
        assert run(Relay, ["relay", *arguments]) == 2
        errors = capfd.readouterr().err
        assert errors.startswith(f"relay: error: {line}")
        assert errors.count("\n") == 1
    assert run(Relay, ["relay", "--help"]) == 0
    output = capfd.readouterr().out
    assert "Commands the measured pressures times a factor." in output
    rate = "rate_hz := 70.0\n      number of cycles per second; a number from 1.0 to 1000.0 Hz"
    assert rate in output
    assert "factor := 1.0\n      factor on measured pressures; a number from 0.0 to 2.0" in output
    assert all(f"  {name} := " in output for name in declared_settings(Relay.Settings))


@pytest.mark.parametrize(("supervised", "number"), [("0", signal.SIGINT), ("1", signal.SIGTERM)])
def test_a_signal_vents_and_ends_the_process_cleanly(supervised, number):
    with _process(SOFTCR_SUPERVISED=supervised) as (process, world):
        world.begin()
        if supervised == "1":
            process.send_signal(signal.SIGINT)  # a Ctrl-C that reached the whole process group
        assert world.answered(world.send([1e3] * 3)) == [1e3] * 3
        process.send_signal(number)
        world.until(lambda: list(world.commands[-1].effort) == [0.0] * 3)
        _, errors = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0
        (told,) = errors.splitlines()  # what it was configured with, and nothing else
        assert "[INFO]" in told
        assert told.endswith("configured: robot licher2025")


def test_a_signal_while_configuring_ends_the_process_soon():
    with _process("--ros-args", "-p", "busy:=60.0") as (process, world):
        client = world.client(ChangeState, "change_state")
        client.call_async(ChangeState.Request(transition=Transition(id=CONFIGURE)))
        world.until(lambda: "configuring" in world.states)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0
