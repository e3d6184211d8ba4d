"""The supervisor, with small real nodes in real processes: what a person sees in every ending."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from domains import fresh_domain
from kit.processes import Peer, until

rclpy = pytest.importorskip("rclpy")

from rclpy.lifecycle import LifecycleNode  # noqa: E402
from rich.console import Console  # noqa: E402

from softcr_models.errors import UserError  # noqa: E402
from softcr_runtime.blocks.system import Part, System  # noqa: E402
from softcr_runtime.ros.executor import node_services, run_nodes, supervisor  # noqa: E402
from softcr_runtime.ros.executor.supervisor import Supervisor  # noqa: E402
from softcr_runtime.ros.running_systems import domain, running_namespaces  # noqa: E402

NAMES = ("plant", "watcher", "mover")

NODES = '''
import os, signal, sys, time
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import Trigger
from softcr_runtime.wire.diagnostics import OK, DiagnosticReport, diagnostics_to_message
from softcr_runtime.wire.safety_state import SafetyState
from softcr_runtime.wire.topics import qos

GOOD, BAD = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE

class Small(LifecycleNode):
    """Writes what is asked of it to a file, and fails where it is told to."""

    def __init__(self):
        super().__init__("small")
        self.said = open(self.declare_parameter("said", "").value, "a")
        self.behaviour = self.declare_parameter("behaviour", "").value
        if self.behaviour == "wrong parameter":
            print("mover: error: parameter size = 3: must be at least 4", file=sys.stderr)
            sys.exit(2)

        if "agrees" in self.behaviour:
            self.create_service(Trigger, "~/agree", self.agree)

    def agree(self, _, response):
        self.say("asked")
        response.success = self.behaviour.startswith("agrees")
        response.message = "poses are missing"
        return response

    def say(self, word):
        print(self.get_name(), word, file=self.said, flush=True)
        return GOOD

    def on_configure(self, state):
        if self.behaviour == "refuses":
            self.get_logger().error("file /nowhere: no such file")
            return BAD
        if self.behaviour == "dies configuring":
            os.kill(os.getpid(), 11)
        return self.say("configure")

    def on_activate(self, state):
        if self.behaviour == "refuses activation":
            self.get_logger().error("no frame of the cameras has come")
            return BAD
        if self.behaviour == "hangs activating":
            time.sleep(3600.0)
        if self.behaviour == "agrees and vents":
            topic = "safety/state"
            self.safety = self.create_publisher(DiagnosticStatus, topic, qos(topic))
            self.tell_safety(SafetyState(action="none", enabled=True))
            self.timer = self.create_timer(1.0, self.vent)
        if self.behaviour == "finishes":
            self.diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
            self.timer = self.create_timer(0.3, self.tell_finished)
        if self.behaviour == "warns":
            self.get_logger().warning("valve 2 is slow")
        if self.behaviour.startswith("leaves"):
            self.timer = self.create_timer(0.3, self.leave)
        return self.say("activate")

    def tell_safety(self, state):
        report = DiagnosticReport("valves: safety", OK, "vent now: bus silent", "", state.values())
        self.safety.publish(diagnostics_to_message([report], 1).status[0])

    def vent(self):
        self.timer.cancel()
        self.tell_safety(SafetyState(latch="M", cause="bus silent", reason="bus silent"))

    def tell_finished(self):
        name = f"{self.get_fully_qualified_name()[1:]}: loop"
        status = DiagnosticStatus(name=name, values=[KeyValue(key="finished", value="true")])
        self.diagnostics.publish(DiagnosticArray(status=[status]))

    def leave(self):
        self.timer.cancel()
        self.get_logger().error("the disk is full")
        self.trigger_deactivate()
        if self.behaviour == "leaves and ends":
            sys.exit(2)

    on_deactivate = lambda self, state: self.say("deactivate")
    on_cleanup = lambda self, state: self.say("cleanup")

rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
node = Small()
asked_to_end = []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda *_: asked_to_end.append(True))
if node.behaviour == "hangs":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
while not asked_to_end:
    rclpy.spin_once(node, timeout_sec=0.05)
node.say("end")
'''


@pytest.fixture(autouse=True)
def own_domain(monkeypatch, tmp_path):
    monkeypatch.setenv("ROS_DOMAIN_ID", fresh_domain())
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{Path(__file__).parents[1]}")
    monkeypatch.setattr(supervisor, "CONNECT_TIMEOUT", 0.0)  # small nodes tell no connections


class Run:
    """One run of three small nodes under a supervisor in this process.

    `then` are pairs of an event of the run and what to do, in another thread, when it has happened;
    what is `given` are behaviours of nodes and fields of the system.
    """

    def __init__(self, directory, then=(), together=False, spare="", **given):
        self.directory = directory
        console = Console(record=True, width=200)
        thread = threading.Thread(target=self._follow, args=(then,), daemon=True)
        thread.start()
        behaviours = {name: given.pop(name, "") for name in NAMES}
        system = replace(small_system(directory, behaviours, together, spare), **given)
        self.outcome = Supervisor(system, directory, {"size": 3}, console).run()
        thread.join(1.0)
        self.out = console.export_text()

    def _follow(self, then):
        for event, action in then:
            wait_for_event(self.directory, event)
            action()

    @property
    def record(self):
        return record_of(self.directory)

    @property
    def said(self):
        return (self.directory / "said").read_text().splitlines()


def small_system(directory, behaviours, together, spare):
    """Three nodes; where they are `together`, watcher and mover are in one process."""
    (directory / "together.py").write_text(TOGETHER)
    parts = []
    for name in NAMES:
        (directory / f"{name}.py").write_text(NODES)
        both = together and name != "plant"
        parameters = {"said": str(directory / "said"), "behaviour": behaviours[name]}
        part = Part(name, "together" if both else name, parameters, spare=name == spare)
        parts.append(replace(part, process="both") if both else part)
    return System("small", tuple(parts), ("watcher", "mover", "plant"), 300.0, False, "mover")


def record_of(directory):
    return json.loads((directory / "system.json").read_text())


def wait_for_event(directory, event):
    record = directory / "system.json"
    until(lambda: record.exists() and event in events_of(directory), f"event {event}")


def events_of(directory):
    return [entry["event"] for entry in record_of(directory)["events"]]


def pid_of(directory, name):
    started = [e for e in record_of(directory)["events"] if e["event"] == "started"]
    return next(int(e["detail"].removeprefix("pid ")) for e in started if e["node"] == name)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def interrupt(number=signal.SIGINT):
    os.kill(os.getpid(), number)


def killing(directory, name):
    """What kills a node once the run has started."""
    return [("run_started", lambda: os.kill(pid_of(directory, name), signal.SIGKILL))]


UP_AND_DOWN = [
    *("plant configure", "watcher configure", "mover configure"),
    *("watcher activate", "mover activate", "plant activate"),
    *("mover deactivate", "watcher deactivate", "plant deactivate"),
    *("mover cleanup", "watcher cleanup", "plant cleanup"),
]


@pytest.mark.parametrize(
    ("service", "timeout", "why"),
    [("agree", 8.0, "poses are missing"), ("nothing", 1.0, "no such service is running")],
)
def test_a_refused_beginning_is_one_line_and_everything_goes_down(
    tmp_path, capfd, monkeypatch, service, timeout, why
):
    monkeypatch.setattr(node_services.refusal, "__defaults__", (timeout,))
    run = Run(tmp_path, begin=(f"mover/{service}",), mover="disagrees")
    assert not run.outcome.ran
    assert run.outcome.exit_code == 1
    assert f"mover/{service} refused for {timeout:.0f} s: {why}" in capfd.readouterr().err
    assert "run_started" not in events_of(tmp_path)
    assert "mover cleanup" in run.said


def test_a_run_goes_up_in_order_and_down_with_the_mover_first(tmp_path, capfd):
    run = Run(tmp_path, duration=0.5, watcher="warns")
    assert run.outcome.exit_code == 0
    assert run.said[:12] == UP_AND_DOWN
    assert sorted(run.said[12:]) == ["mover end", "plant end", "watcher end"]
    assert "watcher: valve 2 is slow" in run.out
    assert capfd.readouterr().err == ""
    record = run.record
    assert (record["ended_by"], record["exit_code"], record["deaths"]) == ("duration", 0, [])
    assert record["options"] == {"size": 3}
    times = {entry["event"]: entry["time"] for entry in record["events"]}
    assert times["run_ended"] - times["run_started"] >= 0.5


@pytest.mark.parametrize("victim", ["plant", "mover"])
@pytest.mark.parametrize("together", [False, True])
def test_a_killed_node_ends_the_run_and_stops_the_mover_at_once(tmp_path, capfd, victim, together):
    """The death of a process is the death of all its nodes: of mover and watcher together."""
    run = Run(tmp_path, then=killing(tmp_path, victim), together=together)
    dead = ["watcher", "mover"] if together and victim == "mover" else [victim]
    line = f"node{'s' * (len(dead) > 1)} {' and '.join(dead)} died (signal 9)"
    assert run.outcome.exit_code == 1
    assert capfd.readouterr().err.splitlines() == [f"softcr: error: {line}"]
    record = run.record
    assert (record["ended_by"], record["error"]) == ("death", line)
    deaths = [(each["node"], each["signal"], each["exit_code"]) for each in record["deaths"]]
    assert deaths == [(name, 9, None) for name in dead]
    rest = [name for name in ("mover", "watcher", "plant") if name not in dead]
    assert run.said[6 : 6 + len(rest)] == [f"{name} deactivate" for name in rest]
    deactivated = [e["time"] for e in record["events"] if e["event"] == "deactivated"]
    if victim == "plant":  # the others come after the time that chambers need to empty
        assert deactivated[1] - deactivated[0] > 0.9 * supervisor.VENT_TIME


def test_the_death_of_a_spare_node_is_told_and_the_run_goes_on(tmp_path, capfd):
    run = Run(tmp_path, killing(tmp_path, "watcher"), spare="watcher", duration=1.5)
    assert run.outcome.exit_code == 0
    assert capfd.readouterr().err == ""
    assert "node watcher died (signal 9): the run continues without" in run.out
    assert run.record["ended_by"] == "duration"
    (death,) = run.record["deaths"]
    assert death["node"] == "watcher"
    assert run.said[-4:].count("plant end") == 1


def test_two_interrupts_kill_what_hangs(tmp_path, capfd):
    then = [("run_started", interrupt), ("cleaned_up", interrupt)]
    run = Run(tmp_path, then=then, watcher="hangs")
    assert run.outcome.exit_code == 1
    assert "killed before it had ended" in capfd.readouterr().err
    assert not any(is_running(pid_of(tmp_path, name)) for name in NAMES)


@pytest.mark.parametrize("together", [False, True])
def test_a_node_that_refuses_is_a_user_error_in_its_own_words(tmp_path, capfd, together):
    """Those that are configured before it are cleaned up, the other one of its process too."""
    name = "mover" if together else "watcher"
    run = Run(tmp_path, together=together, **{name: "refuses"})
    line = f"node {name} did not configure: file /nowhere: no such file"
    assert (run.outcome.exit_code, run.outcome.ran) == (2, False)
    assert capfd.readouterr().err.splitlines() == [f"softcr: error: {line}"]
    assert "no such file" not in run.out  # said once
    assert run.record["error"] == line
    if together:
        assert "watcher cleanup" in run.said
    else:
        assert run.said[:2] == ["plant configure", "plant cleanup"]


def test_a_node_that_is_never_active_is_waited_for_no_longer(tmp_path, capfd, monkeypatch):
    monkeypatch.setitem(run_nodes.CHANGE_TIMEOUTS, run_nodes.ACTIVATE, 1.0)
    monkeypatch.setattr(run_nodes, "EXIT_TIMEOUT", 0.5)
    run = Run(tmp_path, mover="hangs activating")
    assert (run.outcome.exit_code, run.outcome.ran) == (1, False)
    assert "node mover did not activate within 1 s" in capfd.readouterr().err


def test_a_node_of_the_same_name_that_already_runs_is_respected(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "DISCOVERY_TIME", 2.0)
    peer = Peer(threaded=True)
    peer.executor.add_node(LifecycleNode("plant", context=peer.context))
    with closing(peer), pytest.raises(UserError, match="node plant already runs in ROS domain"):
        Run(tmp_path)
    assert not (tmp_path / "log").exists()


def test_a_node_of_the_same_name_that_never_answers_does_not_hold_a_run_up(tmp_path, monkeypatch):
    """As one that hangs, or whose process was killed: its services are still heard of."""
    monkeypatch.setattr(supervisor, "ANSWER_TIMEOUT", 0.3)
    with closing(Peer("asker")) as peer:
        silent = LifecycleNode("watcher", context=peer.context)
        client = supervisor.LifecycleClient(peer.node, "watcher")
        until(client.is_ready, "the services")
        run = Run(tmp_path, duration=0.2)
        assert run.outcome.ran
        silent.destroy_node()


def test_one_system_per_namespace_and_nodes_end_with_a_killed_supervisor(tmp_path, capfd):
    here = Path(__file__)
    command = f"import sys; sys.path.insert(0, {str(here.parent)!r}); import {here.stem} as test; "
    command += f"test.Run(test.Path({str(tmp_path)!r}))"
    process = subprocess.Popen([sys.executable, "-c", command])
    wait_for_event(tmp_path, "run_started")
    match = "a softcr system already runs in ROS domain .* choose another --namespace, or"
    with pytest.raises(UserError, match=match):
        Run(tmp_path)
    assert running_namespaces(os.environ["ROS_DOMAIN_ID"]) == ["/"]
    # another one beside it: its end, its words and its nodes are its own
    (tmp_path / "robot1").mkdir()
    monitored = ("run_started", lambda: asked.update(running_namespaces(domain())))
    asked = set()
    run = Run(
        tmp_path / "robot1", simulated_time=True, namespace="robot1", begin=("mover/agree",),
        then=[monitored], plant="finishes", watcher="warns", mover="agrees",
    )  # fmt: skip
    assert (run.outcome.exit_code, run.record["ended_by"]) == (0, "duration")
    assert "watcher: valve 2 is slow" in run.out
    assert run.said[5:7] == ["plant activate", "mover asked"]
    events = events_of(run.directory)  # a run begins when everybody asked has agreed
    assert events.index("agreed") < events.index("run_started")
    assert asked == {"/", "/robot1"}
    assert "run_ended" not in events_of(tmp_path)
    pids = [pid_of(tmp_path, name) for name in NAMES]
    process.kill()
    process.wait()
    until(lambda: not any(map(is_running, pids)), "the end of the nodes", 10.0)
    assert record_of(tmp_path)["exit_code"] is None


# --- several nodes in one process ---------------------------------------------------------------

TOGETHER = '''
from pydantic import Field
from softcr_models.errors import UserError
from softcr_runtime.ros.node import LoopNode
from softcr_runtime.settings.node_settings import NodeSettings

class Settings(NodeSettings):
    said: str = Field("", description="file")
    behaviour: str = Field("", description="what goes wrong")

class Together(LoopNode):
    """Writes what is asked of it to a file."""

    default_name = "together"
    Settings = Settings

    def say(self, word):
        with open(self.settings.said, "a") as said:
            print(self.get_name(), word, file=said, flush=True)

    def on_configure_node(self):
        if self.settings.behaviour == "refuses":
            raise UserError("file /nowhere: no such file")
        self.say("configure")

    def on_activate_node(self):
        if self.settings.behaviour == "warns":
            self.get_logger().warning("valve 2 is slow")
        self.say("activate")

    def loop(self, stop):
        stop.wait()

    on_deactivate_node = lambda self: self.say("deactivate")
    on_cleanup_node = lambda self: self.say("cleanup")
'''


def test_nodes_of_one_process_go_up_and_down_in_the_same_order(tmp_path, capfd):
    run = Run(tmp_path, together=True, duration=0.5, watcher="warns")
    assert run.outcome.exit_code == 0
    assert run.said[:12] == UP_AND_DOWN
    assert "watcher: valve 2 is slow" in run.out
    assert capfd.readouterr().err == ""
    assert run.record["nodes"] == list(NAMES)
    pids = {name: pid_of(tmp_path, name) for name in NAMES}
    assert pids["watcher"] == pids["mover"] != pids["plant"]
    assert sorted(path.name for path in (tmp_path / "log").iterdir()) == ["both.log", "plant.log"]
    ended = [entry["node"] for entry in run.record["events"] if entry["event"] == "ended"]
    assert sorted(ended) == sorted(NAMES)


VENTED = "vent now: bus silent; latched M: bus silent: reset it when you know why"
# who does what, in one process or several; the exit code; the one line that is told
ENDINGS = [
    ({"watcher": "refuses activation"}, 2,
     "node watcher did not activate: no frame of the cameras has come"),
    ({"mover": "agrees and vents"}, 1, f"the valves vented: {VENTED}"),
    ({"mover": "wrong parameter"}, 2, "node mover: parameter size = 3: must be at least 4"),
    ({"watcher": "dies configuring"}, 1, "node watcher died (signal 11)"),
    ({"watcher": "leaves"}, 1, "node watcher stopped being active: the disk is full"),
    ({"watcher": "leaves and ends"}, 2, "node watcher: the disk is full"),
]  # fmt: skip


@pytest.mark.parametrize(("behaviours", "code", "line"), ENDINGS)
def test_a_failure_is_a_line_and_an_exit_code(tmp_path, capfd, monkeypatch, behaviours, code, line):
    if line.startswith("node watcher stopped"):
        monkeypatch.setattr(supervisor, "LEAVE_TIME", 0.3)
    begin = ("mover/agree",) if "agrees and vents" in behaviours.values() else ()
    run = Run(tmp_path, begin=begin, **behaviours)
    assert run.outcome.exit_code == code
    assert capfd.readouterr().err.splitlines() == [f"softcr: error: {line}"]
    if begin:
        assert (run.outcome.ran, run.record["ended_by"]) == (True, "failure")
        assert "mover cleanup" in run.said
