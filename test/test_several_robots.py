"""Two lock-step robots at once in one ROS domain, one of them at the root: each as if alone."""

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from domains import fresh_domain

pytest.importorskip("rclpy")

from rcl_interfaces.msg import Log
from rich.console import Console

from softcr_models.errors import UserError
from softcr_runtime.bags.message_bytes import cdr_of
from softcr_runtime.bags.own_messages import is_shared
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.recording import BagRecording, RecordedTopic
from softcr_runtime.bags.robots import RobotBag, namespaces_of
from softcr_runtime.bags.signals import read_signals
from softcr_runtime.replay.bag_replay import _QOS, ReplayTask
from softcr_tools import cli
from softcr_tools.replay import offline

RUN = """
import sys
from dataclasses import replace
from pathlib import Path
from rich.console import Console
from softcr_runtime.ros.executor.supervisor import Supervisor
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

directory = Path(sys.argv[1])
options = SimulationOptions.of_options(dict(word.split("=") for word in sys.argv[2:]))
system = simulation_system(options, directory / "bag")
# one process starts in a fraction of the time of five
system = replace(system, parts=tuple(part.in_process("together") for part in system.parts))
sys.exit(Supervisor(system, directory, {}, Console()).run().exit_code)
"""
RATE = 70  # ticks per second
SECONDS = {"": 1, "robot1": 3}
"""The one at the root is at its end long before the other."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Bags by namespace, of two runs at once."""
    environment = os.environ | {"ROS_DOMAIN_ID": fresh_domain(), "OPENBLAS_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[1])
    found = {}
    for namespace, seconds in SECONDS.items():
        directory = tmp_path_factory.mktemp(namespace or "root")
        words = [f"duration={seconds}", f"namespace={namespace}", "mode=lockstep"]
        words += ["controller=rod_mpc", f"seed={seconds}"]
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, str(directory), *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
        )  # fmt: skip
        found[namespace] = SimpleNamespace(directory=directory, process=process)
    for run in found.values():
        run.said, _ = run.process.communicate(timeout=180)
        run.bag = Bag(run.directory)
    return found


@pytest.mark.parametrize("namespace", SECONDS)
def test_each_robot_runs_to_its_own_end_in_a_time_that_never_goes_back(runs, namespace):
    run, ticks = runs[namespace], SECONDS[namespace] * RATE + 1
    assert run.process.returncode == 0, run.said
    told = json.loads((run.directory / "system.json").read_text())
    assert (told["ended_by"], told["deaths"]) == ("duration", [])
    assert run.bag.topics[run.bag.find("pressure/state")].count == ticks
    messages = run.bag.messages("clock" if namespace else "/clock")
    clocks = [message.decode().clock for message in messages]
    times = [each.sec * 10**9 + each.nanosec for each in clocks]
    assert len(times) == ticks
    assert all(before < after for before, after in pairwise(times))


@pytest.mark.parametrize("namespace", SECONDS)
def test_a_bag_names_its_robot_alone(runs, namespace):
    bag = runs[namespace].bag
    assert namespaces_of(bag) == [namespace]
    above = f"{namespace}/" if namespace else ""
    for message in bag.messages(*bag.topics):
        content = message.decode()
        if is_shared(message.topic, message.type):
            if message.topic == "/diagnostics":
                names = {name for each in content.status for name in (each.name, each.hardware_id)}
                assert {name.rpartition("/")[0] for name in names} == {namespace}
        elif (frame := getattr(content, "header", None)) and "/ticks" not in message.topic:
            known = {"", f"{above}base", f"{above}force_torque", "world"}
            assert frame.frame_id in known, message.topic


@pytest.mark.parametrize("namespace", SECONDS)
def test_each_bag_replays_to_the_bit(runs, namespace, tmp_path):
    task = ReplayTask(True, None, {})
    compared = offline.replay(runs[namespace].bag, task, tmp_path / "again", Console())
    for counts in (compared.estimates, compared.commands):
        assert counts.identical == counts.compared == counts.recorded > 0


def test_of_a_bag_with_several_robots_one_is_read(runs, tmp_path, capsys):
    """Of everything, as a recorder of all topics of the domain leaves it."""
    bags = [run.bag for run in runs.values()]
    topics = {name: topic.type for bag in bags for name, topic in bag.topics.items()}
    topics["/rosout"] = "rcl_interfaces/msg/Log"
    both = tmp_path / "bag"
    recording = BagRecording(both, [RecordedTopic(*each, _QOS) for each in topics.items()])
    for bag in bags:
        for message in bag.messages(*bag.topics):
            recording.write(message.topic, message.time, message.payload)
    recording.write("/rosout", message.time + 1, cdr_of(Log(name="robot3.estimator")))
    assert recording.close().failure is None
    for namespace, run in runs.items():
        mine = RobotBag(both, namespace)
        assert mine.topics == run.bag.topics
        read, expected = read_signals(mine), read_signals(run.bag)
        counts = [{key: len(each) for key, each in of.signals.items()} for of in (read, expected)]
        assert counts[0] == counts[1]
        assert read.nodes == expected.nodes
    assert cli.main(["report", str(both)]) == 2
    assert "ambiguous" in (said := capsys.readouterr().err)
    assert "--namespace names the robot" in said
    with pytest.raises(UserError, match="nothing of namespace /robot2; its namespaces are /, /rob"):
        RobotBag(both, "robot2")
    assert cli.main(["report", str(both), "--namespace", "/robot1"]) == 0
