"""The examples: one file each, run by every executor without a line in the packages."""

import itertools
import json
import os
import re
import runpy
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from docs_output import problem_of_output
from kit.own_controllers import written
from kit.processes import ROOT, SOFTCR

from softcr_models.robots.robot import load_robot
from softcr_runtime.bags.message_bytes import cdr_of, header_stamp, same_content
from softcr_runtime.bags.reading import Bag
from softcr_runtime.blocks.virtual import VirtualExecutor
from softcr_runtime.settings import command_line
from softcr_runtime.settings.plugin_settings import settings_class
from softcr_runtime.settings.registry import resolve
from softcr_runtime.wire.codecs import codec
from softcr_studies.frame.cell import Cell, StudySettings
from softcr_studies.frame.command import app
from softcr_studies.loops.closed_loop import closed_loop, tracked
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

PID = "examples/joint_pid.py:JointPid"
VELOCITY = "examples/constant_velocity.py:ConstantVelocity"
SPRING = "examples/spring_plant.py:SpringPlant"
FOUR_CHAMBERS = "examples/upright_four_chambers.yaml"
OUTSIDE = {"controller": PID, "estimator": VELOCITY, "plant": SPRING, "reference": "tip_circle"}
OTHER_NUMBERS = {"controller.kp": "4e4", "plant.tip_noise": "1e-4", "estimator.acceleration": "5"}


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)


def softcr(home, command, options, code=0):
    """What the command says of options, in a process that begins in a folder, by its exit code."""
    words = [f"--{name.replace('_', '-')}={text}" for name, text in options.items()]
    ran = subprocess.run(
        [SOFTCR, *command, *words], capture_output=True, text=True, timeout=400, cwd=home,
        env=os.environ | {"COLUMNS": "200", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def run_on_virtual_time(duration=3, **texts):
    """Topic -> stamp -> what was published, and the executor."""
    given = {"mode": "lockstep", "duration": str(duration), **texts}
    system = simulation_system(SimulationOptions.of_options(given), Path("nowhere"))
    published = {}
    executor = VirtualExecutor(
        system,
        observe=lambda _, output: published.setdefault(output.topic, {}).update(
            {output.stamp: output.value}
        ),
    )
    executor.run()
    return published, executor


def tip_errors(published, against="reference"):
    """(T,) distances of the true tip from the reference's first row, or from the estimate [m]."""
    truth = published["simulation/truth/tip/pose"]
    if against == "reference":
        wanted = {t: rows.tip_positions[0] for t, rows in published["reference/rod"].items()}
    else:
        wanted = {t: e.pose().position for t, e in published["estimate/tip/pose"].items()}
    stamps = sorted(truth.keys() & wanted.keys())
    return np.array([np.linalg.norm(truth[t].position - wanted[t]) for t in stamps])


def test_the_controller_follows_a_setpoint_with_the_house_s_filter():
    published, executor = run_on_virtual_time(6, controller=PID, reference="setpoint")
    assert not executor.complaints
    wanted = published["reference/rod"]
    moved = np.linalg.norm(wanted[min(wanted)].tip_positions[0, :2])
    assert tip_errors(published)[-70:].max() < 0.1 * moved


def test_a_robot_of_four_chambers_is_followed_by_the_gradient_mpc():
    published, executor = run_on_virtual_time(4, robot=FOUR_CHAMBERS, controller="rod_mpc")
    assert not executor.complaints
    assert {values.shape for values in published["pressure/sent"].values()} == {(4,)}
    assert 1e3 * tip_errors(published)[-140:].mean() < 1.0  # [mm]


def test_the_filter_of_the_tip_alone_sees_less_noise_than_the_cameras():
    chosen = OUTSIDE | {"reference": "setpoint", "controller.kd": "0", "controller.kp": "0"}
    noisy = {"plant.tip_noise": "1e-3", "estimator.tip_noise": "1e-3"}
    chosen |= noisy | {"estimator.acceleration": "0.3"}
    published, executor = run_on_virtual_time(6, **chosen)
    assert not executor.complaints
    assert "estimate/rod" not in published
    seen, truth = (published[t] for t in ("mocap/tip/pose", "simulation/truth/tip/pose"))
    noise = np.mean([np.linalg.norm(seen[t].position - truth[t].position) for t in seen])
    assert tip_errors(published, "estimate")[-140:].mean() < 0.7 * noise


def test_the_spring_stands_where_its_statics_say():
    robot, spring = load_robot("licher2025"), resolve("plant", SPRING)
    settings = settings_class(spring)(stiffness=50.0, push=2e-5, tip_noise=0.0)
    plant = spring(robot, settings, 0)
    pressures = np.array([30e3, 0.0, 10e3])
    plant.follow(pressures)
    plant.advance(20.0)
    angles = np.array([chamber.angle for chamber in robot.chambers])
    expected = -2e-5 / 50.0 * np.array([np.cos(angles) @ pressures, np.sin(angles) @ pressures])
    measured = plant.measure(1)
    np.testing.assert_allclose(measured["mocap/tip/pose"][:2, 3], expected, atol=1e-9)
    np.testing.assert_allclose(measured["pressure/state"], pressures, rtol=1e-9)


def test_all_three_together_follow_a_circle():
    published, executor = run_on_virtual_time(6, **OUTSIDE)
    assert not executor.complaints
    # the spring's tip does not come lower: the circle's height is not its own
    wanted, truth = (published[topic] for topic in ("reference/rod", "simulation/truth/tip/pose"))
    lower = abs(wanted[max(wanted)].tip_positions[0, 2] - truth[max(truth)].position[2])
    assert np.sqrt(tip_errors(published)[-140:].mean() ** 2 - lower**2) < 8e-3


@pytest.mark.parametrize(
    ("chosen", "numbers"),
    [
        (OUTSIDE, OTHER_NUMBERS),
        pytest.param(
            {"controller": PID, "estimator": "rod", "reference": "circle"},
            {"controller.kp": "6e4"},
            marks=pytest.mark.slow,
        ),
        pytest.param({"robot": FOUR_CHAMBERS, "controller": "rod_mpc"}, {}, marks=pytest.mark.slow),
    ],
)
def test_nodes_virtual_time_and_replay_give_the_same_bits(tmp_path, chosen, numbers):
    options = {"mode": "lockstep", "duration": "2", "seed": "5", **chosen, **numbers}
    softcr(ROOT, ["up", "simulation"], options | {"results": str(tmp_path)})
    bag = Bag(tmp_path / "latest")

    published, executor = run_on_virtual_time(2, seed="5", **chosen, **numbers)
    recorded = {topic.removeprefix("/"): topic for topic in bag.topics}
    for topic in published.keys() & recorded.keys() - {"clock"}:
        coding = codec(topic, executor.block("simulator").expected)
        messages = list(bag.messages(recorded[topic]))
        assert len(messages) == len(published[topic]) >= 140, topic
        for message in messages:
            stamp = header_stamp(message.payload)
            made = cdr_of(coding.encode(published[topic][stamp], stamp))
            assert same_content(message.payload, made, message.type), (topic, stamp)

    replay = ["replay", str(tmp_path / "latest"), "--controller", "--trust-bag"]
    said = softcr(tmp_path, replay, {"output": "again"})
    assert "141 of 141 equal to the bit" in said
    assert "142 of 142 equal to the bit" in said


@pytest.mark.slow
def test_a_controller_that_breaks_down_in_a_run_of_nodes_is_one_line_and_vents(tmp_path):
    mine = written(tmp_path / "mine.py", ">= 60", "return np.full(3, np.nan)")
    given = OUTSIDE | {"controller": mine, "mode": "lockstep", "duration": "2"}
    given |= {"results": str(tmp_path / "results")}
    line = "Mine.tick: ValueError: command [nan nan nan] must be 3 finite numbers [Pa]"
    said = softcr(ROOT, ["up", "simulation"], given, code=1)
    told = [each for each in said.splitlines() if line in each]
    assert len(told) == 3  # when it happens, in the verdict and in the report
    assert re.match(r"NOT good: .*\[Pa\], \d+ times; ", told[1])
    assert re.search(r"\[Pa\], \d+ times$", told[2].rstrip())
    bag = Bag(tmp_path / "results" / "latest")
    counts = {topic: info.count for topic, info in bag.topics.items()}
    assert counts["/pressure/state"] == counts["/mocap/tip/pose"] == 141
    assert counts["/pressure/sent"] == 141
    assert counts["/pressure/plan"] == 141  # those that are refused hold, then lead to rest
    last = [message.decode() for message in bag.messages("/pressure/sent")][-1]
    assert list(last.effort) == [0.0, 0.0, 0.0]


# --- scripts that the documentation shows -------------------------------------------------------


def example(name):
    """What an example defines."""
    return SimpleNamespace(**runpy.run_path(str(ROOT / "examples" / f"{name}.py")))


def test_the_rod_in_ten_lines_swings_back(capsys):
    module = example("rod_in_ten_lines")
    assert len(module.states) == 70
    # a second after venting most of the bend is gone, and gravity's sag is small
    bent, tip = module.rod.tip_pose(module.bent)[:2, 3], module.tips[-1][:2]
    assert np.linalg.norm(tip) < 0.5 * np.linalg.norm(bent)
    assert "the tip starts at" in capsys.readouterr().out


def test_the_closed_loop_of_the_example_settles_on_its_setpoint():
    errors = example("closed_loop").tip_errors(controller="rod_mpc", reference="setpoint")
    assert len(errors) == 4 * 70 + 1
    assert errors[-70:].mean() < 1e-3


def test_the_table_of_a_bag_has_the_errors_of_the_run(tmp_path):
    cell = Cell("recorded", "rod_mpc", 0, StudySettings(), bag=tmp_path / "bag")
    found = tracked(cell, closed_loop(cell, "rod_mpc", "circle", duration=2.0))
    tables = example("read_bag").tables(tmp_path / "bag")
    assert list(tables["pressures"].columns) == ["chamber_1", "chamber_2", "chamber_3"]
    distance = (tables["tip"] - tables["wanted"]).dropna().pow(2).sum(axis=1).pow(0.5)
    at = np.isin(distance.index.to_numpy().round(7), found["times"].round(7))
    assert distance[at].to_numpy() == pytest.approx(found["error"], abs=1e-12)


def test_a_study_in_one_file_ends_in_a_table(tmp_path):
    file = ROOT / "examples" / "figure_eight_study.py"
    assert len(file.read_text().splitlines()) < 120
    words = ["run", str(file), "--seeds", "1", "--workers", "1", "--results", str(tmp_path)]
    assert command_line.run(app, words) == 0
    folder = tmp_path / "studies" / "examples" / "figure-eight" / "latest"
    table = json.loads((folder / "table.json").read_text())
    settled = [row for row in table["rows"] if row["quantity"] == "tip error from 2 s on"]
    found = {(row["case"], row["method"]) for row in settled}
    assert found == {*itertools.product(("narrow", "wide"), ("nempc", "rod_mpc"))}
    assert all(row["mean"] < 1.0 for row in settled)


def test_the_notebook_prints_what_it_shows(monkeypatch, capsys):
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    names = {"__name__": "__main__"}
    cells = json.loads((ROOT / "examples" / "rod.ipynb").read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 5
    for cell in code:
        exec(compile("".join(cell["source"]), f"cell {cell['execution_count']}", "exec"), names)
        shown = [line for each in cell["outputs"] for line in each.get("text", [])]
        assert problem_of_output("".join(shown), capsys.readouterr().out) is None
