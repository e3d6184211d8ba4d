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
from kit.processes import SOFTCR

from softcr_models.robots.robot import load_robot
from softcr_runtime.wire.messages import plan_from_message, pressures_from_message

CHAMBERS = load_robot("licher2025").chamber_names
# a small population: these tests are about the nodes, not about control
COMMAND = [SOFTCR, "up", "simulation"]
SMALL = ("--controller.population", "64")


def start(results, *arguments):
    """`softcr up simulation` as a person starts it."""
    small = () if "--controller" in arguments else SMALL
    return subprocess.Popen(
        [*COMMAND, *small, *arguments, "--results", str(results)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1", "COLUMNS": "120"},
    )


def messages(results):
    from rosbags.highlevel import AnyReader

    found = defaultdict(list)
    with AnyReader([results / "latest" / "bag"]) as reader:
        for connection, received, raw in reader.messages():
            message = reader.deserialize(raw, connection.msgtype)
            found[connection.topic.removeprefix("/")].append((received, bytes(raw), message))
    return found


@pytest.mark.slow
def test_runs_in_lockstep_are_equal_to_the_bit(tmp_path):
    payloads = []
    for name in ("first", "second"):
        arguments = ("--mode", "lockstep", "--duration", "1.5", "--seed", "3")
        process = start(tmp_path / name, *arguments)
        output, _ = process.communicate(timeout=240)
        assert process.returncode == 0, output
        found = messages(tmp_path / name)
        payloads.append({topic: [raw for _, raw, _ in rows] for topic, rows in found.items()})
    first, second = payloads
    expected = {"pressure/plan", "pressure/sent", "pressure/state", "mocap/tip/pose"}
    expected |= {"force_torque/wrench", "estimate/rod", "estimate/tip/pose", "reference/rod"}
    expected |= {"simulation/truth/rod"}
    assert expected <= first.keys()
    # these tell wall time, or the names of the run's files
    others = {"diagnostics", "ticks", "rosout", "parameter_events", "configuration"}
    others |= {topic for topic in first if topic.endswith("/transition_event")}
    for topic in first.keys() - others:
        assert len(first[topic]) >= 104, topic
        assert first[topic] == second[topic], topic
    assert len(set(first["pressure/plan"])) > 50


def run_and_kill(results, victim):
    """Kills a node in mid-run; returns when [ns], the exit code and what the person saw."""
    process = start(results, "--duration", "60")
    lines = []
    running = threading.Event()
    ended = threading.Event()

    def read():
        for line in process.stdout:
            lines.append(line)
            if line.startswith("activating"):
                running.set()
        ended.set()
        running.set()

    reader = threading.Thread(target=read)
    reader.start()
    try:
        running.wait(240)
        assert not ended.is_set(), "".join(lines)
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
    return killed, process.returncode, "".join(lines)


@pytest.mark.parametrize(
    "victim",
    [
        "nempc_controller",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("estimator", "reference")),
    ],
)
def test_a_killed_node_vents_the_chambers_and_is_named(tmp_path, victim):
    killed, code, output = run_and_kill(tmp_path, victim)
    assert code == 1
    assert f"node {victim} died (signal 9" in output
    summary = json.loads((tmp_path / "latest" / "summary.json").read_text())
    assert victim in json.dumps(summary["node_deaths"])
    found = messages(tmp_path)
    pressures = [
        (message.header.stamp.sec * 10**9 + message.header.stamp.nanosec,
         pressures_from_message(message, CHAMBERS, "pressure/state"))
        for _, _, message in found["pressure/state"]
    ]  # fmt: skip
    before = max(p.max() for t, p in pressures if killed - 1e9 < t < killed)
    # what was planned is played, the last command is held for 0.1 s, then a ramp of 0.3 s vents
    after = [p.max() for t, p in pressures if t > killed + 0.8e9]
    assert before > 5e3
    assert after, "the bag must show the venting"
    assert after[0] < 0.1 * before


@pytest.mark.parametrize("victim", [pytest.param("simulator", marks=pytest.mark.slow), "recorder"])
def test_a_killed_plant_or_recorder_ends_the_run_and_leaves_a_readable_bag(tmp_path, victim):
    _, code, output = run_and_kill(tmp_path, victim)
    assert code == 1
    assert f"node {victim} died (signal 9" in output
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
    last = plan_from_message(found["pressure/plan"][-1][2], CHAMBERS, "pressure/plan")
    assert last.commands[-1].tolist() == [0.0, 0.0, 0.0]
    assert Path(tmp_path / "latest" / "report.html").is_file()
