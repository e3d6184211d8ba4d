"""The line that says first whether a run was good: each criterion, and what the command returns."""

from types import SimpleNamespace

import numpy as np
import pytest
from kit.bags import LOOP, TYPES, closed_loop, diagnostics, ticks, without, write_bag

from softcr_models import load_robot
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import read_signals
from softcr_runtime.blocks.command_swings import SWINGS
from softcr_tools import report
from softcr_tools.report.run import Run
from softcr_tools.report.sections import summarize
from softcr_tools.report.verdict import LARGEST_ERROR, MOST_MISSED
from softcr_tools.running import up

DURATION = 4.0


def judged(tmp_path, messages, system=None):
    """The verdict on a bag of these messages."""
    write_bag(tmp_path / "bag", messages)
    return summarize(Run(read_signals(Bag(tmp_path / "bag")), system))["verdict"]


def told_by(node, *warning, **values):
    """What a node says at the end of a run, with a level and a line where it warns."""
    stamp = ticks(DURATION)[-1] + 1
    return [("/diagnostics", stamp, diagnostics(stamp, node, LOOP | values, *warning))]


def stale(times):
    return told_by("simulator", commands_stale=times)


def safety(seconds, message):
    status = TYPES["diagnostic_msgs/msg/DiagnosticStatus"](
        level=0, name="valves: safety", message=message, hardware_id="", values=[]
    )
    return ("safety/state", ticks(DURATION)[0] + round(1e9 * seconds), status)


def test_a_good_run_is_called_good_with_its_two_figures(tmp_path):
    found = judged(tmp_path, closed_loop(DURATION))
    assert found["line"] == (
        "good: 1.00 mm settled, 0.4 % of the controller's cycles missed (plant: same_structure)"
    )
    assert (found["good"], found["failed"]) == (True, False)


BEGUN = [safety(0.0, "vent now: not enabled yet"), safety(0.5, "none: enabled")]
WAITED = told_by("simulator", commands_stale=0, without_commands=True)
SWUNG = told_by("rod_mpc", 1, f"GradientMpc.command: {SWINGS}: the robot is led to rest")


@pytest.mark.parametrize(
    ("more", "lacking", "why"),
    [
        ([], "pressure/sent", "the robot was never commanded"),
        (WAITED, "", "the robot was never commanded"),
        ([*BEGUN, safety(2.0, "vent now: poses silent")], "", "vented after 2.0 s: poses silent"),
        (stale(2), "", "the robot was vented 2 times because commands stopped"),
        ([*stale(1), *SWUNG], "", f"the robot was vented once because {SWINGS}"),
    ],
)
def test_a_run_without_commands_to_its_end_has_failed_and_says_why(tmp_path, more, lacking, why):
    found = judged(tmp_path, [*without(closed_loop(DURATION), lacking), *more])
    assert found["line"] == f"NOT good: {why} (plant: same_structure)"
    assert (found["good"], found["failed"]) == (False, True)


def test_a_vent_that_ends_the_run_is_as_it_should_be(tmp_path):
    rows = [safety(0.5, "none: enabled"), safety(DURATION - 0.1, "vent now: an operator's")]
    assert judged(tmp_path, [*closed_loop(DURATION), *rows])["good"]


@pytest.mark.parametrize("node", ["nempc_controller", "estimator", "simulator"])
def test_missed_cycles_beyond_the_share_are_told_of_the_loop_that_missed(tmp_path, node):
    cycles = 700
    few, many = (round(share * cycles) for share in (0.9 * MOST_MISSED, 1.2 * MOST_MISSED))
    few_of_it = told_by(node, cycles=cycles, missed_cycles=few)
    assert judged(tmp_path / "few", closed_loop(DURATION) + few_of_it)["good"]
    many_of_it = told_by(node, cycles=cycles, missed_cycles=many)
    found = judged(tmp_path / "many", closed_loop(DURATION) + many_of_it)
    assert found["line"] == f"NOT good: {node} missed 6 % of its cycles (plant: same_structure)"
    assert not found["failed"]  # the robot moved
    made_up = told_by(node, cycles=cycles, missed_cycles=many, cycles_made_up=many - few)
    assert judged(tmp_path / "made_up", closed_loop(DURATION) + made_up)["good"]


@pytest.mark.parametrize("robot", ["licher2025", "two_segments"])
def test_a_tip_far_from_its_reference_is_told_with_its_share_of_the_length(
    tmp_path, monkeypatch, robot
):
    """Robots of several segments have no length of the whole in their file."""

    def circle_elsewhere(shift):
        def reference(stamps):
            phase = np.pi * 1e-9 * (stamps - stamps[0])
            return np.stack([0.03 * np.cos(phase), 0.03 * np.sin(phase), 0.11 + 0.0 * phase], 1)

        messages = closed_loop(DURATION, reference)
        for topic, _, message in messages:
            if topic == "simulation/truth/tip/pose":
                message.pose.position.z += shift
        return messages

    content = load_robot(robot).model_dump(mode="json")
    content["actuators"] = content["actuators"][:3]  # the bag's
    monkeypatch.setitem(LOOP, "robot", content)
    length = load_robot(robot).length
    assert judged(tmp_path / "near", circle_elsewhere(0.5 * LARGEST_ERROR * length))["good"]
    found = judged(tmp_path / "far", circle_elsewhere(2.0 * LARGEST_ERROR * length))
    assert found["line"].startswith("NOT good: the tip was ")
    assert "mm off settled, 1" in found["line"]
    assert found["line"].endswith("% of the length (plant: same_structure)")


def test_a_node_that_died_is_told(tmp_path):
    system = {"deaths": [{"node": "estimator", "signal": "SIGKILL", "exit_code": None}]}
    found = judged(tmp_path, closed_loop(DURATION), system)
    assert found["line"] == "NOT good: estimator died (plant: same_structure)"


@pytest.mark.parametrize(("failed", "code"), [(False, 0), (True, 1)])
def test_the_command_tells_a_failed_run_by_its_exit_code(tmp_path, monkeypatch, failed, code):
    class Summary(dict):
        def table(self):
            return ""

    summary = Summary(verdict={"failed": failed})
    monkeypatch.setattr(report, "build", lambda bag, output: summary)
    monkeypatch.setattr(up, "compile_kernels", lambda console, sets: None)
    options = up.SimulationOptions.of_options({})
    outcome = SimpleNamespace(ran=True, exit_code=0)
    assert up._run(lambda *_: outcome, options, tmp_path / "results") == code
