"""The whole system as processes over DDS: equal runs in lock-step; what happens when nodes die."""

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import psutil
import pytest
from kit.processes import SOFTCR, until
from rosbags.highlevel import AnyReader

from softcr_models.robots.robot import load_robot
from softcr_runtime.wire.messages import plan_from_message, pressures_from_message

CHAMBERS = load_robot("licher2025").chamber_names
# a small population: these tests are about the nodes, not about control
COMMAND = (SOFTCR, "up", "simulation", "--controller.population", "64")


def start(results, *arguments):
    """`softcr up simulation` as a person starts it."""
    return subprocess.Popen(
        [*COMMAND, *arguments, "--results", str(results)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "COLUMNS": "120"},
    )  # fmt: skip


def messages(results, raw=False):
    """By topic, those of a run's bag, as bytes or decoded."""
    found = defaultdict(list)
    with AnyReader([results / "latest" / "bag"]) as reader:
        for connection, _, payload in reader.messages():
            message = bytes(payload) if raw else reader.deserialize(payload, connection.msgtype)
            found[connection.topic.removeprefix("/")].append(message)
    return found


@pytest.mark.slow
def test_runs_in_lockstep_are_equal_to_the_bit(tmp_path):
    payloads = []
    for name in ("first", "second"):
        arguments = ("--mode", "lockstep", "--duration", "1.5", "--seed", "3")
        process = start(tmp_path / name, *arguments)
        output, _ = process.communicate(timeout=240)
        assert process.returncode == 0, output
        payloads.append(messages(tmp_path / name, raw=True))
    first, second = payloads
    expected = {"pressure/plan", "pressure/sent", "pressure/state", "mocap/tip/pose"}
    expected |= {"force_torque/wrench", "estimate/rod", "estimate/tip/pose", "reference/rod"}
    assert expected | {"simulation/truth/rod"} <= first.keys()
    # these tell wall time, or the names of the run's files
    others = {"diagnostics", "ticks", "rosout", "parameter_events", "configuration"}
    others |= {topic for topic in first if topic.endswith("/transition_event")}
    for topic in first.keys() - others:
        assert len(first[topic]) >= 104, topic
        assert first[topic] == second[topic], topic
    assert len(set(first["pressure/plan"])) > 50


def run_and_kill(results, victim):
    """Kills a node in mid-run, of which the person is told; returns when [ns]."""
    process = start(results, "--duration", "60")
    lines = []

    def has_begun():
        assert process.poll() is None, "".join(lines)
        return any(line.startswith("activating") for line in lines)

    reader = threading.Thread(target=lambda: lines.extend(process.stdout))
    reader.start()
    try:
        until(has_begun, "the activation of nodes", timeout=240.0)
        time.sleep(2.5)  # the chambers must be under pressure
        children = psutil.Process(process.pid).children(recursive=True)
        named = re.compile(rf"^{victim}$|\.{victim}(_node)?$")
        [child] = [c for c in children if any(map(named.search, c.cmdline()))]
        child.send_signal(signal.SIGKILL)
        killed = time.time_ns()
        process.wait(60)
    finally:
        process.kill()
        reader.join()
    assert process.returncode == 1
    assert f"node {victim} died (signal 9" in "".join(lines)
    return killed


@pytest.mark.parametrize(
    "victim",
    [
        "nempc_controller",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("estimator", "reference")),
    ],
)
def test_a_killed_node_vents_the_chambers_and_is_named(tmp_path, victim):
    killed = run_and_kill(tmp_path, victim)
    summary = json.loads((tmp_path / "latest" / "summary.json").read_text())
    assert victim in json.dumps(summary["node_deaths"])
    states = messages(tmp_path)["pressure/state"]
    stamps = [each.header.stamp.sec * 10**9 + each.header.stamp.nanosec for each in states]
    highest = [pressures_from_message(each, CHAMBERS, "pressure/state").max() for each in states]
    pressures = list(zip(stamps, highest, strict=True))
    before = max(p for t, p in pressures if killed - 1e9 < t < killed)
    # what was planned is played, the last command is held for 0.1 s, then a ramp of 0.3 s vents
    after = [p for t, p in pressures if t > killed + 0.8e9]
    assert before > 5e3
    assert after, "the bag must show the venting"
    assert after[0] < 0.1 * before


@pytest.mark.parametrize("victim", [pytest.param("simulator", marks=pytest.mark.slow), "recorder"])
def test_a_killed_plant_or_recorder_ends_the_run_and_leaves_a_readable_bag(tmp_path, victim):
    run_and_kill(tmp_path, victim)
    system = json.loads((tmp_path / "latest" / "system.json").read_text())
    events = [(e["time"], e["node"], e["event"]) for e in system["events"]]
    [died] = [t for t, node, event in events if event == "died" and node == victim]
    mover = "nempc_controller", "deactivated"
    [vented] = [t for t, *what in events if tuple(what) == mover]
    assert vented - died < 0.5
    summary = json.loads((tmp_path / "latest" / "summary.json").read_text())
    assert summary["duration_s"] > 1.0
    assert np.isfinite(summary["estimate_tip_aed_mm"])


def test_ctrl_c_ends_cleanly_with_a_readable_bag(tmp_path):
    process = start(tmp_path, "--duration", "60")
    for line in process.stdout:
        if line.startswith("activating"):
            break
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    found = messages(tmp_path)
    assert len(found["estimate/rod"]) > 50
    # the last packet vents
    last = plan_from_message(found["pressure/plan"][-1], CHAMBERS, "pressure/plan")
    assert last.commands[-1].tolist() == [0.0, 0.0, 0.0]
    assert Path(tmp_path / "latest" / "report.html").is_file()
