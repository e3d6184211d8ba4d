"""The launch files with the real launch, where that is installed."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("launch.actions", reason="launch comes with a ROS 2 installation only")

from launch import LaunchContext
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction

from softcr_tools.hardware_system import HardwareOptions
from softcr_tools.run_options import SimulationOptions

ROOT = Path(__file__).parents[1]
LAUNCHED = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
_, noninteractive, file, *arguments = sys.argv
service = LaunchService(noninteractive=noninteractive == "noninteractive")
service.include_launch_description(LaunchDescription([IncludeLaunchDescription(
    PythonLaunchDescriptionSource(file),
    launch_arguments=[argument.split(":=", 1) for argument in arguments])]))
sys.exit(service.run())
"""


def description_of(system):
    path = ROOT / "launch" / f"{system}.launch.py"
    spec = importlib.util.spec_from_file_location(f"{system}_launch", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generate_launch_description()


def words_of(system, **chosen):
    """The command that a launch with these arguments would run."""
    context = LaunchContext()
    context.launch_configurations.update(chosen)
    for entity in description_of(system).entities:
        if isinstance(entity, DeclareLaunchArgument):
            entity.execute(context)
        elif isinstance(entity, OpaqueFunction):
            (process,) = entity.execute(context)
    assert isinstance(process, ExecuteProcess)
    return ["".join(part.perform(context) for part in word) for word in process.cmd]


@pytest.mark.parametrize(
    ("system", "kind"), [("simulation", SimulationOptions), ("hardware", HardwareOptions)]
)
def test_the_launch_arguments_are_the_options_of_softcr_up(system, kind):
    arguments = {each.name for each in description_of(system).get_launch_arguments()}
    assert arguments == {*kind.model_fields, "results", "args"} - {"plugin_settings"}


def test_what_is_chosen_becomes_the_words_of_softcr_up():
    words = words_of(
        "simulation", duration="7", tip_noise_mm="0.5", args="--plant.mass 2", results="here"
    )
    assert words[:5] == [sys.executable, "-m", "softcr_tools.cli", "up", "simulation"]
    assert words[5:] == [
        *("--results=here", "--duration=7", "--tip-noise-mm=0.5", "--plant.mass", "2")
    ]


def test_defaults_are_left_to_softcr_up():
    assert words_of("simulation")[5:] == ["--results=results/sim"]
    texts = {name: str(value) for name, value in SimulationOptions().model_dump().items()}
    texts.pop("plugin_settings")
    assert SimulationOptions.of_options(texts) == SimulationOptions()


def test_the_namespace_is_the_argument_s_or_else_the_pushed_one():
    assert "--namespace=robot1" in words_of("hardware", namespace="robot1")
    # what PushRosNamespace of launch_ros leaves
    assert "--namespace=lab/robot1" in words_of("hardware", ros_namespace="/lab/robot1")
    said = words_of("hardware", ros_namespace="/lab", namespace="robot1")
    assert "--namespace=robot1" in said
    assert not any("namespace" in word for word in words_of("hardware"))


def launched(results, manner, *arguments):
    return subprocess.Popen(
        [
            *(sys.executable, "-c", LAUNCHED, manner, str(ROOT / "launch/simulation.launch.py")),
            *(f"results:={results}", *arguments),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=os.environ | {"PYTHONUNBUFFERED": "1", "COLUMNS": "120"},
        start_new_session=True,
    )


@pytest.mark.parametrize("manner", ["interactive", "noninteractive"])
def test_ctrl_c_ends_the_run_well(tmp_path, manner):
    process = launched(
        tmp_path, manner, "controller:=examples/joint_pid.py:JointPid", "duration:=60",
        "args:=--controller.kp 4e4",
    )  # fmt: skip
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            if "activating" in line:
                break
        time.sleep(3.0)
        if manner == "interactive":  # the terminal tells all of its group
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    told = json.loads((tmp_path / "latest" / "system.json").read_text())
    assert told["ended_by"] == "interrupt", "".join(lines) + rest
    assert told["exit_code"] == 0
    assert (tmp_path / "latest" / "report.html").is_file()


def test_a_wrong_argument_is_told_in_one_line_and_starts_nothing(tmp_path):
    process = launched(tmp_path / "results", "interactive", "population:=3")
    output, _ = process.communicate(timeout=120)
    assert "population = 3: must be a whole number from 8" in output
    assert "Traceback" not in output
    assert not list(tmp_path.glob("results/*"))
