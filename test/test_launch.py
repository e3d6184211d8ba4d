"""The launch files with the real launch, where that is installed."""

import importlib.util
import os
import signal
import sys
from pathlib import Path

import pytest

pytest.importorskip(
    "launch.actions",
    reason="launch comes with a ROS 2 installation; docs/howto/workspace.md has a way without one",
)

from kit.processes import ROOT, Launched
from launch import LaunchContext
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction

from softcr_models.errors import UserError
from softcr_tools.running.hardware_system import HardwareOptions
from softcr_tools.running.run_options import SimulationOptions

OWN = {"results", "args", "rviz", "use_sim_time"}
LIGHT = (
    "controller:=examples/joint_pid.py:JointPid",
    "estimator:=examples/constant_velocity.py:ConstantVelocity",
    "args:=--controller.kp 4e4",
)


def description_of(system):
    name = f"{system}_launch"
    spec = importlib.util.spec_from_file_location(name, ROOT / "launch" / f"{system}.launch.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generate_launch_description()


def processes_of(system, **chosen):
    """The command lines that a launch with these arguments would run."""
    context = LaunchContext()
    context.launch_configurations.update(chosen)
    for entity in description_of(system).entities:
        if isinstance(entity, DeclareLaunchArgument):
            entity.execute(context)
        elif isinstance(entity, OpaqueFunction):
            made = entity.execute(context)
    processes = [each for each in made if isinstance(each, ExecuteProcess)]
    return [["".join(part.perform(context) for part in w) for w in p.cmd] for p in processes]


def words_of(system, **chosen):
    """That of the run."""
    (words,) = processes_of(system, **chosen)
    return words


@pytest.mark.parametrize(
    ("system", "kind"), [("simulation", SimulationOptions), ("hardware", HardwareOptions)]
)
def test_the_launch_arguments_are_the_options_of_softcr_up(system, kind):
    arguments = {each.name for each in description_of(system).get_launch_arguments()}
    assert arguments == {*kind.model_fields, *OWN} - {"roles", "virtual"}


def test_what_is_chosen_becomes_the_words_of_softcr_up_and_defaults_are_left_to_it():
    words = words_of("simulation", duration="7", seed="5", args="--plant.mass 2", results="here")
    assert words[:5] == [sys.executable, "-m", "softcr_tools.cli", "up", "simulation"]
    assert words[5:] == [*("--results=here", "--duration=7", "--seed=5", "--plant.mass", "2")]
    assert words_of("simulation")[5:] == ["--results=results/sim"]
    texts = {name: str(value) for name, value in SimulationOptions().model_dump().items()}
    texts = {n: text for n, text in texts.items() if n not in ("roles", "virtual")}
    assert SimulationOptions.of_options(texts) == SimulationOptions()


def test_the_namespace_is_the_argument_s_or_else_the_pushed_one():
    assert "--namespace=robot1" in words_of("hardware", namespace="robot1")
    # what PushRosNamespace of launch_ros leaves
    assert "--namespace=lab/robot1" in words_of("hardware", ros_namespace="/lab/robot1")
    said = words_of("hardware", ros_namespace="/lab", namespace="robot1")
    assert "--namespace=robot1" in said
    assert not any("namespace" in word for word in words_of("hardware"))


def test_simulated_time_is_lockstep_and_the_bench_has_none(tmp_path):
    assert "--mode=lockstep" in words_of("simulation", use_sim_time="true")
    assert not any("mode" in word for word in words_of("simulation", use_sim_time="false"))
    with pytest.raises(RuntimeError, match="bench has the time of this machine"):
        words_of("hardware", use_sim_time="true")
    with pytest.raises(RuntimeError, match="use_sim_time := 'maybe': must be true or false"):
        words_of("simulation", use_sim_time="maybe")


def test_rviz_shows_the_robot_of_the_namespace(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="no rviz2 on PATH"):
        words_of("simulation", rviz="true")
    program = tmp_path / "rviz2"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    run, viewer = processes_of("simulation", rviz="true", mode="lockstep", namespace="lab/robot1")
    assert "--visuals=on" in run  # in lock-step nobody shows the robot unless told
    assert viewer[0] == str(program)
    assert Path(viewer[viewer.index("-d") + 1]).name == "softcr.rviz"
    assert viewer[viewer.index("-f") + 1] == "lab/robot1/base"
    moved = dict(word.split(":=") for word in viewer if ":=/" in word)
    assert moved["/markers"] == "/lab/robot1/markers"
    assert moved["/robot_description"] == "/lab/robot1/robot_description"
    assert "use_sim_time:=true" in viewer
    _, alone = processes_of("simulation", rviz="true")
    assert alone[alone.index("-f") + 1] == "base"
    assert not any(word.startswith("/markers") for word in alone)


def test_an_interrupted_launch_ends_its_run_well(tmp_path):
    with Launched("simulation.launch.py", tmp_path, *LIGHT, manner="noninteractive") as launch:
        launch.wait_for("run_started")
        launch.process.send_signal(signal.SIGINT)
        assert launch.exit_code() == 0, launch.output
        assert not launch.orphans(1.0)
        told = launch.record()
    assert (told["ended_by"], told["exit_code"]) == ("interrupt", 0), launch.output
    assert (tmp_path / "latest" / "report.html").is_file()


def test_a_run_ends_well_whose_launch_was_killed(tmp_path):
    with Launched("simulation.launch.py", tmp_path, *LIGHT) as launch:
        launch.wait_for("run_started")
        launch.process.kill()
        assert launch.exit_code() == -signal.SIGKILL
        assert not launch.orphans(120.0)
        told = launch.record()
    assert (told["ended_by"], told["exit_code"]) == ("interrupt", 0)
    assert (tmp_path / "latest" / "report.html").is_file()


def test_a_wrong_argument_is_told_in_one_line_and_starts_nothing(tmp_path):
    wrong = "args:=--controller.population 3"
    with Launched("simulation.launch.py", tmp_path / "results", wrong) as launch:
        assert launch.exit_code() == 1
    said = "(exit code 2): option controller.population = 3: must be a whole number from 8"
    assert said in launch.output
    assert "Traceback" not in launch.output
    assert not list(tmp_path.glob("results/*"))
