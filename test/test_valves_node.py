"""The valves node as a process: real DDS, real EtherCAT master, emulated terminals."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import rclpy
from kit.processes import Peer, until
from kit.wire import Emulator, cable
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.parameter import Parameter
from sensor_msgs.msg import Joy
from std_srvs.srv import Trigger

from softcr_hardware.ethercat.station_state import StationState
from softcr_hardware.ethercat.terminals import load_station
from softcr_models import load_robot
from softcr_models.files.yaml_files import yaml_path
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.wire.diagnostics import diagnostics_from_message
from softcr_runtime.wire.messages import (
    plan_to_message,
    pose_to_message,
    pressures_from_message,
    pressures_to_message,
    to_stamp,
    wrench_to_message,
)
from softcr_runtime.wire.safety_state import SafetyState
from softcr_runtime.wire.topics import TOPICS, qos

pytest.importorskip("pysoem", reason="pip install 'softcr[ethercat]'")
pytestmark = pytest.mark.network

CHAMBERS = load_robot("licher2025").chamber_names
TICK = round(1e9 / 70)  # between commands [ns]
TIMEOUT = 60.0  # of what will come, on a busy machine [s]


class Stack(Peer):
    """The rest of the stack: sends what a controller, cameras and an operator send."""

    def __init__(self):
        super().__init__("rest")
        self.pressures, self.safety, self.sent = [], [], []
        self.hear("pressure/sent", lambda said: self.sent.append(pressures(said, "pressure/sent")))
        self.hear("pressure/state", self.pressures.append)
        self.hear("safety/state", self.safety.append)
        self.command, self.buttons, self.silent = np.zeros(3), [1], set()
        self.node.create_timer(1 / 70, self._send)

    def _send(self):
        stamp = self.now()
        # ten times the same command, which is due from the next tick on
        packet = CommandPacket.regular(stamp + TICK, TICK, np.tile(self.command, (10, 1)))
        messages = {
            "pressure/plan": plan_to_message(packet, CHAMBERS, stamp),
            "mocap/tip/pose": pose_to_message(np.eye(4), stamp),
            "force_torque/wrench": wrench_to_message(np.zeros(6), stamp),
            "safety/operator": joy(stamp, self.buttons),
        }
        for topic, message in messages.items():
            if topic not in self.silent:
                self.publisher(topic).publish(message)

    def until(self, condition, what):
        deadline = time.monotonic() + TIMEOUT
        while not (value := condition()):
            assert time.monotonic() < deadline, f"never came: {what}; safety: {self.told()}"
            self.executor.spin_once(timeout_sec=0.01)
        return value

    def told(self):
        """The last states, where they are new."""
        states = map(str, (message.values for message in self.safety[-8:]))
        return "\n".join([self.says(), *states])

    def says(self):
        return self.safety[-1].message if self.safety else ""

    def state(self):
        (report,) = diagnostics_from_message(SimpleNamespace(status=[self.safety[-1]]))
        return SafetyState.of(report)

    def newest(self):
        return pressures(self.pressures[-1], "pressure/state")

    def ask(self, kind, name, request, patience=2.0):
        client = self._clients.setdefault(name, self.node.create_client(kind, f"valves/{name}"))
        while True:  # an answer is lost when the server does not know the client yet
            answer = client.call_async(request)
            self.spin(patience, answer.done)
            if answer.done():
                return answer.result()

    def trigger(self, name):
        return self.ask(Trigger, name, Trigger.Request())

    def change(self, transition):
        request = ChangeState.Request(transition=Transition(id=transition))
        # a child process is started and brings the bus up; asked twice, it would be refused
        return self.ask(ChangeState, "change_state", request, 20.0).success

    def let_go(self):
        """Release the deadman's switch, and wait until the valves have seen it."""
        self.buttons = [0]
        self.until(lambda: self.safety and self.state().switch == "released", "a released switch")

    def enable(self):
        """As an operator does, who has looked what was latched."""
        self.let_go()
        if self.state().latch:
            self.until(lambda: self.trigger("reset").success, "a reset")
            self.until(lambda: self.state().latch == "", "its being told")
            self.let_go()
        self.buttons = [1]
        self.until(lambda: self.trigger("enable").success, "enabling")


def pressures(message, topic):
    return pressures_from_message(message, CHAMBERS, topic)


def joy(stamp, buttons):
    """What an operator's device says."""
    message = Joy(buttons=buttons)
    message.header.stamp = to_stamp(stamp)
    return message


@pytest.fixture(scope="module")
def wire():
    with cable("n") as made:
        yield made


@pytest.fixture(scope="module")
def emulator(wire, tmp_path_factory):
    made = Emulator(wire, tmp_path_factory.mktemp("node") / "terminals.jsonl")
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def no_shared_memory(monkeypatch):
    """A node killed while it writes may leave shared memory behind that its readers trip over."""
    monkeypatch.setenv("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")


@pytest.fixture
def stack():
    made = Stack()
    yield made
    made.close()


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def station(tmp_path):
    """The shipped one without its arming test, which takes seconds of each test."""
    shipped = yaml_path("licher2025", "ethercat", "station").read_text(encoding="utf-8")
    path = tmp_path / "licher2025.yaml"
    path.write_text(f"{shipped}\narming_test: false\n", encoding="utf-8")
    return path


@pytest.fixture
def valves(wire, state, station):
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "softcr_hardware.nodes.valves", "--ros-args"),
            *("-p", f"interface:={wire.near}", "-p", f"state_directory:={state}"),
            *("-p", f"station:={station}"),
        ],
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    process.said = None
    yield process
    print(story_of(process))


def story_of(process) -> str:
    """What a node has logged, which ends with it."""
    if process.said is None:
        if process.poll() is None:
            process.terminate()
        process.said = process.communicate(timeout=20.0)[0]
    return process.said


def activated(stack):
    assert stack.change(Transition.TRANSITION_CONFIGURE)
    assert stack.change(Transition.TRANSITION_ACTIVATE)


def another(stack, name, topic):
    """A node beside the stack's, and its publisher of a topic."""
    node = rclpy.create_node(name, context=stack.context)
    return node, node.create_publisher(TOPICS[topic].message_class(), topic, qos(topic))


def filled(stack, pressure=5e4):
    """Configured, activated, enabled, and the chambers full."""
    activated(stack)
    stack.enable()
    stack.command = np.full(3, pressure)
    stack.until(lambda: stack.pressures and stack.newest().min() > 0.9 * pressure, "pressure")


@pytest.mark.parametrize("station", ["licher2025"])
def test_the_whole_way_from_configure_to_a_pressure_and_back(stack, valves, emulator, state):
    unconfigured = stack.trigger("vent")
    assert (unconfigured.success, "no bus is open" in unconfigured.message) == (True, True)
    assert not stack.trigger("enable").success
    filled(stack)
    # a warning: the machine is too busy for all fast cycles
    stack.until(lambda: stack.says().startswith(("none: ", "warn: impaired")), "safety")
    assert "vent them first" in stack.trigger("calibrate_zero").message
    began = len(stack.pressures)
    stack.until(lambda: len(stack.pressures) > began + 100, "a stream of pressures")
    stamps = [m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in stack.pressures[-100:]]
    assert stamps == sorted(stamps)
    assert np.allclose(stack.sent[-1], 5e4, atol=1.0)
    # venting, in the active state, at once and again
    for _ in range(2):
        assert stack.trigger("vent").message == "vented"
    stack.until(lambda: "vent asked for" in stack.says(), "safety")
    stack.until(lambda: stack.newest().max() < 5e3, "empty chambers")
    # whoever keeps asking does not arm
    ends = time.monotonic() + 1.0
    while time.monotonic() < ends:
        answer = stack.trigger("enable")
        assert not answer.success
        assert "latched O, vent asked for: let go of the deadman's switch" in answer.message
    # nor does whoever resets while the switch is held
    refused = stack.trigger("reset")
    assert (refused.success, "the deadman's switch is pressed" in refused.message) == (False, True)
    stack.silent.add("safety/operator")
    stack.until(lambda: "operator silent" in stack.trigger("enable").message, "a refusal")
    stack.silent.clear()
    stack.command = np.zeros(3)
    stack.enable()
    # button 1 vents without a service, and is latched
    stack.buttons = [1, 1]
    stack.until(lambda: stack.state().latch == "O", "a vent")
    assert "vent now: vent asked for" in stack.says()
    assert "the deadman's switch is pressed" in stack.trigger("calibrate_zero").message
    stack.let_go()
    stack.until(lambda: stack.trigger("calibrate_zero").success, "calibration")
    # deactivated, the valves are vented, and the service answers
    assert stack.change(Transition.TRANSITION_DEACTIVATE)
    assert stack.trigger("vent").success
    assert "activate the node first" in stack.trigger("enable").message
    assert (state / "licher2025.zero.yaml").exists()
    assert stack.change(Transition.TRANSITION_CLEANUP)
    until(lambda: emulator.events("state")[-1]["state"] == "INIT", "slaves left in INIT")


def test_silent_commands_hold_then_vent_with_the_reason_told(stack, valves, emulator):
    filled(stack)
    stack.silent.add("pressure/plan")
    stack.until(lambda: "vent now: commands silent" in stack.says(), "vent")
    said = [message.message for message in stack.safety]
    assert "hold: commands late" in said
    assert "ramp to vent: commands silent" in said
    stack.until(lambda: stack.newest().max() < 6e3, "empty chambers")
    lines = [line.partition("[valves]: ")[2] for line in story_of(valves).splitlines()]
    story = [line for line in lines if line.startswith(("configured", "armed", "vented"))]
    assert len(story) == 3
    assert "the bus is up; a deadman's switch is required" in story[0]
    assert story[1] == "armed: the deadman's switch is held, commands are of /rest"
    assert story[2].startswith("vented: commands silent")


def test_an_announced_controller_takes_over_while_the_valves_are_enabled(stack, valves, emulator):
    def permit(*names):
        given = Parameter("commanders", value=list(names)).to_parameter_msg()
        request = SetParametersAtomically.Request(parameters=[given])
        return stack.ask(SetParametersAtomically, "hand_over", request).result

    filled(stack)
    assert permit("/rest", "/heir").successful
    began = len(stack.safety)
    heir, publisher = another(stack, "heir", "pressure/command")
    end = time.monotonic() + 2.0
    stack.until(lambda: time.monotonic() > end, "two seconds beside each other")
    stack.silent.add("pressure/plan")

    def command():
        publisher.publish(pressures_to_message(np.full(3, 6e4), CHAMBERS, stack.now()))
        return stack.sent[-1].min() > 5.9e4

    stack.until(command, "the heir's pressures")
    assert permit("/heir", "/rest").successful
    stack.until(lambda: command() and stack.state().owner == "/heir", "another owner")
    said = [message.message for message in stack.safety[began:]]
    assert not any("several" in each or "vent" in each for each in said)
    assert stack.state().enabled
    heir.destroy_node()


def test_a_second_controller_is_named_and_no_command_is_followed(stack, valves, emulator):
    filled(stack)
    assert stack.state().owner == "/rest"
    other, publisher = another(stack, "intruder", "pressure/command")
    began = len(stack.sent)

    def intrude():
        publisher.publish(pressures_to_message(np.full(3, 9e4), CHAMBERS, stack.now()))
        return "vent now" in stack.says()

    stack.until(intrude, "a vent")
    said = [message.message for message in stack.safety]
    several = "/intruder and /rest"
    assert f"hold: commands of several nodes: {several}" in said
    assert f"vent now: commands still of several nodes: {several}" in said
    assert np.max(stack.sent[began:]) < 5.1e4, "a foreign command was followed"
    assert f"of several nodes: {several}" in stack.trigger("enable").message
    other.destroy_node()
    stack.command = np.zeros(3)
    stack.until(lambda: "commands of several" not in stack.trigger("enable").message, "its leaving")
    stack.enable()


def test_a_second_operator_is_named_and_the_valves_vent(stack, valves, emulator):
    filled(stack)
    other, publisher = another(stack, "stranger", "safety/operator")

    def press():
        publisher.publish(joy(stack.now(), [1]))
        return "vent now" in stack.says()

    stack.until(press, "a vent")
    several = "operator's signal of several nodes: /rest and /stranger"
    assert f"vent now: {several}" in [message.message for message in stack.safety]
    stack.silent.add("safety/operator")  # the operator's node is silent, and the stranger asks
    assert not stack.trigger("reset").success
    assert several in stack.trigger("enable").message
    other.destroy_node()


def test_safety_numbers_change_while_disarmed_and_only_then(stack, valves, emulator):
    def change(value):
        wanted = Parameter("safety.command_vent", value=value).to_parameter_msg()
        request = SetParameters.Request(parameters=[wanted])
        (result,) = stack.ask(SetParameters, "set_parameters", request).results
        return result

    activated(stack)
    assert change(1.5).successful
    stack.enable()
    refused = change(2.5)
    assert (refused.successful, refused.reason) == (
        False,
        "safety settings: the valves are enabled, vent them first: softcr call valves/vent",
    )
    stack.silent.add("pressure/plan")
    silent = time.monotonic()
    stack.until(lambda: "commands silent" in stack.says(), "a vent")
    assert time.monotonic() - silent > 1.4, "the number in force is the new one"


def test_a_kept_zero_and_a_held_latch_outlive_the_node(stack, valves, emulator, state):
    kept = StationState("licher2025", state)
    nominal = np.array([each.sensor.zero for each in load_station("licher2025").chambers])
    kept.keep_zero(nominal + 0.1, nominal)
    kept.hold("bus silent, again within 10 minutes")
    activated(stack)
    stack.until(lambda: stack.pressures and stack.newest().max() < -2e3, "pressures of that zero")
    stack.let_go()
    assert stack.state().latch == "H"
    refused = stack.trigger("reset")
    assert not refused.success
    says = f"a check must pass first (softcr commission), which removes {kept.latch_file}"
    assert says in refused.message
    kept.forget_latch()
    stack.until(lambda: stack.trigger("reset").success, "a reset")
    stack.until(lambda: stack.state().latch == "", "its being told")
    stack.until(lambda: stack.trigger("calibrate_zero").success, "calibration")
    zero, _ = kept.zero(nominal)
    assert np.allclose(zero, nominal, atol=0.01)


def children_of(process):
    """Process ids: of the fast cycle."""
    threads = Path(f"/proc/{process.pid}/task").glob("*/children")
    return [int(number) for thread in threads for number in thread.read_text().split()]


def safe_after(emulator, moment):
    """How long after a moment the outputs are safe [s]."""

    def safe():
        return [event for event in emulator.events("outputs", since=moment) if event["safe"]]

    return until(safe, "safe outputs")[0]["time"] - moment


@pytest.mark.parametrize("victim", ["the fast cycle is terminated", "the node is killed"])
def test_a_fast_cycle_that_may_end_well_exhausts_by_command(stack, valves, emulator, victim):
    filled(stack)
    (cycle,) = children_of(valves)
    struck = time.monotonic()
    if victim == "the node is killed":  # it takes its fast cycle along
        valves.kill()
    else:
        os.kill(cycle, signal.SIGTERM)
    assert safe_after(emulator, struck) < 0.150
    until(lambda: emulator.events("state")[-1]["state"] == "INIT", "slaves left in INIT")
    if victim == "the node is killed":
        until(lambda: not Path(f"/proc/{cycle}/cmdline").exists(), "the end of the cycle")
    else:
        assert not emulator.events("watchdog", since=struck)


def test_a_node_that_hangs_is_vented_by_its_fast_cycle(stack, valves, emulator):
    filled(stack)
    stopped = time.monotonic()
    valves.send_signal(signal.SIGSTOP)
    try:
        assert safe_after(emulator, stopped) < 2.0  # a hold, then a ramp, then vented
        assert not emulator.events("watchdog", since=stopped)
    finally:
        valves.send_signal(signal.SIGCONT)
    stack.until(lambda: "vent now: " in stack.says(), "the reason")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_dead_or_hanging_cycle_is_vented_by_terminals_and_told(stack, valves, emulator, number):
    filled(stack)
    (cycle,) = children_of(valves)
    struck = time.monotonic()
    os.kill(cycle, number)
    assert safe_after(emulator, struck) < 0.150
    assert emulator.events("watchdog", since=struck)
    word = "ended" if number == signal.SIGKILL else "silent"
    stack.until(lambda: f"vent now: valve process {word}" in stack.says(), "the reason")
    assert "valve process" in stack.trigger("enable").message
    # brought down and up again, all is well
    assert stack.change(Transition.TRANSITION_DEACTIVATE)
    assert stack.change(Transition.TRANSITION_CLEANUP)
    assert stack.change(Transition.TRANSITION_CONFIGURE)
    assert len(children_of(valves)) == 1


def test_a_missing_interface_is_one_line_and_the_node_stays_unconfigured():
    command = [sys.executable, "-c", CONFIGURE_NOWHERE]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60.0)
    assert "interface 'eth99': not found; there are lo" in run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout.split() == ["FAILURE"]


CONFIGURE_NOWHERE = """
import rclpy
from rclpy.parameter import Parameter
from softcr_hardware.nodes.valves import Valves
rclpy.init()
node = Valves(parameter_overrides=[Parameter("interface", value="eth99")])
print(node.trigger_configure().name)
node.destroy_node()
rclpy.shutdown()
"""
