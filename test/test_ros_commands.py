"""`softcr call`, `topics`, `echo`, `param`, `nodes`, `lifecycle`, `run` on real nodes of another
process."""

import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from domains import fresh_domain
from geometry_msgs.msg import PoseStamped
from hypothesis import given
from hypothesis import strategies as st
from kit.processes import until
from kit.refusals import one_line
from sensor_msgs.msg import PointCloud2, PointField
from std_srvs.srv import SetBool, Trigger

from softcr_models.errors import UserError
from softcr_runtime.ros.context import ros_context
from softcr_tools import cli
from softcr_tools.ros import participant
from softcr_tools.ros.executables import NODES as EXECUTABLES
from softcr_tools.ros.interfaces import fill, lines, picked, plain, without_nan
from softcr_tools.ros.topics import is_silent

TIMEOUT = "60"  # of an answer that will come, on a busy machine [s]
NODES = '''
import numpy as np, rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, DurabilityPolicy
from diagnostic_msgs.msg import DiagnosticStatus
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from pydantic import Field
from softcr_runtime.ros.node import LoopNode
from softcr_runtime.settings.node_settings import NodeSettings
from softcr_runtime.wire.topics import qos

class Settings(NodeSettings):
    gain: float = Field(
        2.0, ge=0.0, le=5.0, description="of it", json_schema_extra={"unit": "1/m", "live": True}
    )
    names: tuple[str, ...] = Field(("a", "b"), description="of them")

class Worker(LoopNode):
    """Nothing but a lifecycle."""
    default_name = "worker"
    Settings = Settings
    def loop(self, stop):
        stop.wait()

def answer(request, response):
    response.success, response.message = request.data, f"got {request.data}"
    return response

def count(request, response):
    calls.append(1)
    response.success, response.message = True, f"called {len(calls)} times"
    return response

calls = []
rclpy.init()
worker = Worker()
plain = rclpy.create_node("plain", namespace="/robot1")
plain.create_service(SetBool, "agree", answer)
plain.create_service(Trigger, "count", count)
plain.create_service(Trigger, "lame", lambda _, __: 1 / 0)
latched = plain.create_publisher(
    DiagnosticStatus, "safety/state",
    QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL))
latched.publish(DiagnosticStatus(level=b"\\x01", name="safety", message="said\\x1b]0;\\x9b once"))
sensor = plain.create_publisher(JointState, "/pressure/state", qos("pressure/state"))
plain.create_publisher(JointState, "/pressure/sent", 1)
plain.create_subscription(JointState, "/pressure/command", lambda _: None, 1)
def tick():
    sensor.publish(JointState(
        name=[f"chamber_{k}" for k in range(9)], effort=[1.5, float("nan"), *7 * [3.0]]))
plain.create_timer(0.05, tick)
executor = SingleThreadedExecutor()
executor.add_node(worker)
executor.add_node(plain)
print("ready", flush=True)
while True:
    try:
        executor.spin()
    except ZeroDivisionError:
        pass
'''


@pytest.fixture(scope="module", autouse=True)
def system(tmp_path_factory):
    """A lifecycle node at the root, a plain one in a namespace; nobody else in their domain."""
    script = tmp_path_factory.mktemp("nodes") / "nodes.py"
    script.write_text(NODES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_DOMAIN_ID", fresh_domain())  # an earlier test's nodes linger for 20 s
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
        with subprocess.Popen(
            [sys.executable, script], stdout=subprocess.PIPE, env=environment, text=True
        ) as process:
            assert process.stdout.readline() == "ready\n"
            yield process
            process.kill()


def test_a_service_is_found_and_called_in_time(capsys):
    assert cli.main(["call", "/robot1/agree", "data=true", "--timeout", TIMEOUT]) == 0
    assert "message: got True" in capsys.readouterr().out


@pytest.fixture(scope="module")
def context():
    """One for all commands below: DDS may take 3 s to find the others anew for each of them."""
    with ros_context():
        yield


@pytest.fixture
def said(capsys, monkeypatch, context):
    """Runs a command line; returns exit code, what was printed, and the lines of errors."""
    monkeypatch.setattr(participant, "ros_context", nullcontext)
    # there is one other process: all of its names come together
    monkeypatch.setattr(participant, "ANNOUNCED", 0.5)

    def run(*words):
        code = cli.main(list(words))
        told = capsys.readouterr()
        return code, told.out, told.err.splitlines()

    return run


def assert_refused(said, words, code, *parts):
    """The exit code of a command line, and one line of an error with these parts."""
    got, _, (line,) = said(*words.split())
    assert got == code, line
    assert [part for part in parts if part not in line] == [], line


def test_nodes_are_listed_with_their_states_and_a_namespace_shows_what_is_in_it(said):
    code, text, _ = said("nodes", "--json", "--timeout", TIMEOUT)
    found = {each["node"]: each for each in json.loads(text)}
    assert code == 0
    assert found.keys() == {"/worker", "/robot1/plain"}
    plain = found["/robot1/plain"]
    assert (found["/worker"]["state"], plain["state"]) == ("unconfigured", None)
    assert plain["services"] == ["/robot1/agree", "/robot1/count", "/robot1/lame"]
    assert "/pressure/command" in plain["hears"]
    _, text, _ = said("topics", "--namespace", "robot1")
    assert "/robot1/safety/state" in text
    assert "/pressure" not in text
    assert "diagnostic_msgs/msg/DiagnosticStatus" in text  # nothing is cut where no terminal is


def test_topics_are_listed_with_types_ends_and_rates(said):
    code, text, _ = said("topics", "--rates", "--seconds", "1", "--json")
    found = {each["topic"]: each for each in json.loads(text)}
    assert code == 0
    assert "/rosout" not in found
    state = found["/pressure/state"]
    assert state["types"] == ["sensor_msgs/msg/JointState"]
    assert (state["publishers"], state["subscriptions"]) == (["/robot1/plain"], [])
    assert 2.0 < state["rate_hz"] < 25.0  # 20 where the machine is idle
    assert found["/pressure/sent"]["rate_hz"] == 0.0
    assert found["/pressure/command"]["subscriptions"] == ["/robot1/plain"]


def test_topics_of_other_robots_that_a_recorder_waits_for_are_not_listed():
    assert is_silent({"publishers": [], "subscriptions": ["/recorder", "/robot1/visuals"]})
    # somebody's commands would be heard
    assert not is_silent({"publishers": [], "subscriptions": ["/recorder", "/simulator"]})
    assert not is_silent({"publishers": ["/simulator"], "subscriptions": ["/recorder"]})


def test_an_unknown_name_is_one_line_with_the_nearest_and_where_it_was_looked_for(said):
    where = (f"ROS domain {os.environ['ROS_DOMAIN_ID']}", "LOCALHOST")
    part = "service /agree: unknown; did you mean /robot1/agree? "
    assert_refused(said, "call agree", 2, part, *where)
    part = "node /wroker: unknown; did you mean /worker? "
    assert_refused(said, "param list wroker", 2, part, *where)


def test_a_service_answers_and_its_success_is_the_exit_code(said):
    patient = ("--timeout", TIMEOUT)
    for word, code in (("data=true", 0), ("data=False", 1)):
        got, text, _ = said("call", "agree", word, "--namespace", "robot1", *patient)
        assert got == code
        assert text.splitlines()[0] == "/robot1/agree (std_srvs/srv/SetBool)"
        assert f"message: got {code == 0}" in text
    for number in (1, 2):  # a service is called once
        code, text, _ = said("call", "/robot1/count", "--json", *patient)
        answer = json.loads(text)
        assert (code, answer["type"]) == (0, "std_srvs/srv/Trigger")
        assert answer["response"]["message"] == f"called {number} times"
    line = "service /robot1/lame: no answer within 6 s"
    assert_refused(said, "call /robot1/lame --timeout 6", 1, line)


def test_messages_are_printed_with_short_arrays_or_a_field_of_each(said):
    words = f"echo /pressure/state --timeout {TIMEOUT}"
    code, text, _ = said(*words.split(), "--count", "2")
    assert code == 0
    assert text.count("---") == 2
    assert "effort: [1.5, nan, 3, 3, ..., 3] (9 elements)" in text
    assert said(*words.split(), "--field", "effort[0]", "--count", "3")[1] == "1.5\n1.5\n1.5\n"
    _, text, _ = said(*words.split(), "--once", "--json", "--field", "effort")
    assert json.loads(text)[:2] == [1.5, None]
    assert_refused(said, f"{words} --once --field efort[0]", 2, "did you mean effort?")
    assert_refused(said, f"{words} --once --field effort[9]", 2, "there are 9 elements")


def test_a_latched_message_comes_though_it_was_sent_long_ago(said):
    words = ("echo", "safety/state", "--namespace", "/robot1", "--once", "--timeout", TIMEOUT)
    code, text, _ = said(*words, "--field", "message")
    assert (code, text) == (0, "said]0; once\n")  # without what a terminal would obey
    _, text, _ = said(*words, "--json")
    assert json.loads(text)["level"] == 1
    assert text.isprintable() or text.replace("\n", "").isprintable()


def test_a_silent_topic_is_one_line_and_a_failure(said):
    silent = "echo /pressure/sent --timeout 5"
    assert_refused(said, silent, 1, "no message within 5 s", "/robot1/plain")
    line = "it has no publisher; subscribers: /robot1/plain"
    assert_refused(said, "echo /pressure/command --timeout 5", 1, line)


def test_parameters_are_listed_with_what_their_descriptors_tell(said):
    code, text, _ = said("param", "list", "worker", "--json", "--timeout", TIMEOUT)
    found = {each.pop("name"): each for each in json.loads(text)}
    assert code == 0
    assert found["gain"] == {
        "value": 2.0, "unit": "1/m", "range": "a number from 0.0 to 5.0 1/m",
        "changes": "in any state", "description": "of it",
    }  # fmt: skip
    assert found["mode"]["range"] == "one of wall, lockstep"
    assert found["mode"]["changes"] == "while unconfigured"
    assert found["names"]["value"] == ["a", "b"]
    assert found["use_sim_time"]["value"] is False  # of ROS itself, which tells no more
    code, text, _ = said("param", "list", "worker", "--timeout", TIMEOUT)
    assert code == 0
    assert "a number from 0.0 to 5.0" in text


def test_a_parameter_is_set_and_the_node_s_answer_told(said):
    patient = ("--timeout", TIMEOUT)
    change = f"param set --timeout {TIMEOUT} worker"
    told = said("param", "set", "worker", "gain", "3.5", *patient)
    assert told[:2] == (0, "/worker: gain was 2, is 3.5 1/m\n")
    assert said("param", "get", "worker", "gain", *patient)[:2] == (0, "3.5 1/m\n")
    assert_refused(said, f"{change} names [x,y]", 1, "names is fixed when the node starts")
    assert said("param", "get", "worker", "names", *patient)[1] == "[a, b]\n"
    assert_refused(said, f"{change} gain -1", 1, "/worker refused", "gain")
    assert_refused(said, f"{change} gain much", 2, "parameter gain = 'much': must be a number")
    assert_refused(said, f"{change} gian 1", 2, "did you mean gain?")


def test_a_node_is_led_through_its_states(said):
    patient = ("--timeout", TIMEOUT)

    def change(transition):
        return said("lifecycle", "set", "worker", transition)

    assert said("lifecycle", "get", "worker", *patient)[1] == (
        "/worker: unconfigured; transitions: configure, shutdown\n"
    )
    line = "not allowed while /worker is unconfigured"
    assert_refused(said, "lifecycle set worker activate", 2, line)
    assert change("configure")[:2] == (0, "/worker: was unconfigured, is inactive\n")
    assert_refused(said, "lifecycle set worker activte", 2, "did you mean activate?")
    assert change("activate")[:2] == (0, "/worker: was inactive, is active\n")
    assert said("param", "set", "worker", "gain", "1", *patient)[0] == 0
    words = f"param set worker seed 1 --timeout {TIMEOUT}"
    assert_refused(said, words, 1, "cannot change while the node is active")
    assert change("deactivate")[0] == 0
    assert change("cleanup")[:2] == (0, "/worker: was inactive, is unconfigured\n")
    assert said("param", "set", "worker", "robot", "dalenberg_robot1", *patient)[0] == 1
    assert_refused(said, "lifecycle set /robot1/plain configure", 2, "is not a lifecycle node")


@pytest.mark.parametrize("words", ["param get worker gain", "lifecycle get worker"])
def test_services_of_a_node_that_has_just_begun_are_waited_for(words, said, monkeypatch):
    whole, looks = participant.Participant.graph, count()

    def without_services_yet(self):
        graph = whole(self)
        return graph if next(looks) > 3 else replace(graph, services={}, servers={})

    monkeypatch.setattr(participant.Participant, "graph", without_services_yet)
    assert said(*words.split(), "--timeout", TIMEOUT)[0] == 0


@pytest.mark.parametrize("node", EXECUTABLES)
def test_every_node_has_its_parameters_as_options(node, said, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    code, text, _ = said("run", node, "--help")
    assert code == 0
    assert f"Parameters of {node}" in text
    assert "--realtime-priority" in text


def test_a_node_runs_alone_with_the_parameters_given(said):
    command = [sys.executable, "-m", "softcr_tools.cli", "run", "tip_reference"]
    options = ["--namespace", "robot2", "--name", "guide", "--rate-hz", "33", "--seed", "5"]
    process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    try:
        words = ("lifecycle", "get", "guide", "--namespace", "robot2", "--timeout", TIMEOUT)
        until(lambda: process.poll() is not None or said(*words)[0] == 0, "the node")
        words = ("param", "get", "/robot2/guide", "rate_hz", "--json", "--timeout", TIMEOUT)
        assert json.loads(said(*words)[1])["value"] == 33.0
        process.send_signal(signal.SIGINT)
        assert process.wait(60.0) == 0, process.stderr.read()
    finally:
        process.kill()  # nothing of a test that failed is heard in later ones


def test_fields_are_filled_by_their_declared_types():
    pose = PoseStamped()
    fill(pose, ["pose.position.x=0.25", "header.frame_id=base", "header.stamp.sec=-3"], "Pose")
    assert (pose.pose.position.x, pose.header.frame_id, pose.header.stamp.sec) == (0.25, "base", -3)


@pytest.mark.parametrize(
    ("message", "word", "part"),
    [
        (SetBool.Request(), "data=1", "must be true or false"),
        (SetBool.Request(), "data", "must be FIELD=VALUE; X has data (boolean)"),
        (SetBool.Request(), "date=true", "did you mean data?"),
        (Trigger.Request(), "data=true", "X has no fields"),
        (PoseStamped(), "header.stamp.nanosec=-1", "from 0 to 4294967295 (uint32)"),
        (PoseStamped(), "header.stamp=now", "is a builtin_interfaces/msg/Time; name its fields"),
        (PoseStamped(), "header.frame_id.x=1", "has no fields"),
        (PoseStamped(), "pose.position.x=far", "must be a number (double)"),
    ],
)
def test_a_wrong_field_is_one_line(message, word, part):
    with one_line(says=part):
        fill(message, [word], "X")


@given(st.integers(), st.sampled_from(["header.stamp.sec", "header.stamp.nanosec"]))
def test_a_whole_number_is_taken_exactly_where_its_type_holds_it(number, field):
    low, high = (-(2**31), 2**31 - 1) if field.endswith(".sec") else (0, 2**32 - 1)
    pose = PoseStamped()
    if low <= number <= high:
        fill(pose, [f"{field}={number}"], "X")
        assert picked(plain(pose), field) == number
    else:
        with pytest.raises(UserError):
            fill(pose, [f"{field}={number}"], "X")


def cloud(**changes):
    """A cloud of two points with three fields, one of them of two numbers."""
    layout = np.dtype([("x", "<f8"), ("input.a", "<u2"), ("pair", "<f4", (2,))])
    table = np.array([(1.5, 7, (1, 2)), (-2.5, 9, (3, 4))], layout)
    fields = [("x", 0, 8, 1), ("input.a", 8, 4, 1), ("pair", 10, 7, 2)]
    made = {
        "height": 1, "width": 2, "point_step": 18, "row_step": 36, "data": table.tobytes(),
        "fields": [PointField(name=n, offset=o, datatype=d, count=c) for n, o, d, c in fields],
    }  # fmt: skip
    return PointCloud2(**(made | changes))


def test_the_points_of_a_cloud_stand_by_field_unless_it_contradicts_itself():
    value = plain(cloud())
    assert value["points"] == {"x": [1.5, -2.5], "input.a": [7, 9], "pair": [[1, 2], [3, 4]]}
    assert picked(value, "points.input.a[1]") == 9
    assert picked(value, "points.pair[1][0]") == 3.0
    for wrong in ({"row_step": 35}, {"data": b"short"}, {"point_step": 3}, {"height": 7}):
        assert "data" in plain(cloud(**wrong))


def test_text_is_short_and_json_has_no_nan():
    value = {"a": [float("nan")] * 99, "b": {"c": True}, "d": [{"e": 1, "f": 2}] * 9, "g": []}
    assert list(lines(value)) == [
        "a: [nan, nan, nan, nan, ..., nan] (99 elements)",
        "b:", "  c: true",
        "d:", *["  - e: 1", "    f: 2"] * 6, "  ... 9 elements",
        "g: []",
    ]  # fmt: skip
    assert without_nan(value)["a"] == [None] * 99
