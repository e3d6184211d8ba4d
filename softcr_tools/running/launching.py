"""Systems for `ros2 launch`: the options of `softcr up` as launch arguments, and that command.

Needs launch, which comes with a ROS 2 installation and not from PyPI. Kernels, lifecycle, timeouts,
order and end are the supervisor's, as for everybody else: a launch ends when its run ends, and
returns 1 where the run failed. (Launch knows no other code of a failure.)
"""

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    ExecuteProcess,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
    TimerAction,
)
from launch.event_handlers import OnProcessIO
from launch.events.process import ProcessExited, ProcessIO
from launch.substitutions import LaunchConfiguration

from softcr_models.errors import UserError
from softcr_models.files.config import config_directory
from softcr_runtime.settings.node_settings import declared_settings
from softcr_runtime.wire.namespaces import absolute, frame_prefix, in_namespace
from softcr_tools.running.run_options import RunOptions
from softcr_tools.running.up import ENDS_WITH


def rviz_command(namespace: str, prefix: str, simulated_time: bool) -> list[str]:
    """The words that start RViz for one robot.

    Args:
        namespace: of the robot; empty: the root.
        prefix: of its frames; empty: the namespace and a slash; `/` for none.
        simulated_time: whether RViz has the time of the robot's /clock.

    Raises:
        UserError: there is no rviz2.
    """
    program = shutil.which("rviz2")
    if program is None:
        raise UserError("rviz: no rviz2 on PATH; it comes with a ROS 2 installation (desktop)")
    layout = config_directory() / "layouts" / "softcr.rviz"
    frames = prefix.lstrip("/") if prefix else frame_prefix(namespace)
    remapped = [
        word
        for topic in layout_topics(layout)
        for word in ("-r", f"{topic}:={absolute(namespace, topic[1:])}")
        if namespace
    ]
    return [
        *(program, "-d", str(layout), "-f", f"{frames}base"),
        *("--ros-args", *in_namespace(namespace), *remapped),
        *("-p", f"use_sim_time:={str(simulated_time).lower()}"),
    ]


def layout_topics(layout: Path) -> list[str]:
    """The absolute topics that the displays of an RViz layout subscribe to."""
    displays = yaml.safe_load(layout.read_text(encoding="utf-8"))["Visualization Manager"]
    return sorted(set(_topics(displays["Displays"])))


def _topics(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _topics(each)
    elif isinstance(node, dict):
        for name, value in node.items():
            if name.endswith("Topic") and isinstance(value, dict):
                yield value["Value"]
            else:
                yield from _topics(value)


_ALONE_TIME = 30.0
"""From Ctrl-C to SIGTERM, which does nothing to a run that is ending: the terminal told the run,
too, but whoever sends SIGINT to the launch alone, as scripts do, tells it so [s]."""

_END_TIME = 90.0
"""For the way down, bag and report included, from SIGTERM to SIGKILL [s]."""

_LAST_WORDS_TIME = 0.2
"""For what the run said last: launch may hear of its end before it has read all of it [s]."""

_ERROR = "softcr: error: "
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def pushed_namespace(context: LaunchContext) -> str:
    """The namespace of the PushRosNamespace actions around a launch file; empty for none."""
    return str(context.launch_configurations.get("ros_namespace", "")).strip("/")


def launch_description(system: str, kind: type[RunOptions], results: str) -> LaunchDescription:
    """`softcr up SYSTEM` with the launch arguments that differ from their defaults.

    Args:
        system: "simulation" or "hardware".
        kind: its options.
        results: directory for the results where no other one is given.
    """
    settings = declared_settings(kind)
    defaults = {name: str(each.default) for name, each in settings.items()}
    offered = [
        (name, defaults[name], f"{setting.description}; {setting.allowed}")
        for name, setting in settings.items()
    ]
    offered += [
        ("results", results, "where the run's directory is made"),
        ("rviz", "false", "whether rviz2 shows the robot; true or false"),
        (
            "use_sim_time",
            "false",
            "true: simulated time, as mode:=lockstep"
            if "mode" in settings
            else "must be false: the bench has the time of this machine",
        ),
        ("args", "", "more words for softcr up, such as '--controller.kp 3'"),
    ]

    def made(context: LaunchContext) -> list[LaunchDescriptionEntity]:
        values = {name: LaunchConfiguration(name).perform(context) for name, _, _ in offered}
        # PushRosNamespace acts on nodes, which this process starts itself
        values["namespace"] = values["namespace"] or pushed_namespace(context)
        with_rviz = _chosen(values, "rviz")
        if _chosen(values, "use_sim_time"):
            if "mode" not in settings:
                raise RuntimeError("use_sim_time := true: the bench has the time of this machine")
            values["mode"] = "lockstep"
        if with_rviz and values["visuals"] == defaults["visuals"]:
            values["visuals"] = "on"
        words = [f"--results={values['results']}"]
        for name, default in defaults.items():
            if values[name] != default:
                words.append(f"--{name.replace('_', '-')}={values[name]}")
        viewers = _viewers(values) if with_rviz else []
        return [*_run(system, [*words, *shlex.split(values["args"])]), *viewers]

    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=said)
        for name, default, said in offered
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=made)])


def _chosen(values: dict[str, str], name: str) -> bool:
    """Whether a switch among the arguments is on."""
    value = _BOOLEANS.get(values[name].lower())
    if value is None:
        raise RuntimeError(f"{name} := {values[name]!r}: must be true or false")
    return value


def _run(system: str, words: list[str]) -> list[LaunchDescriptionEntity]:
    """The process of `softcr up`, whose end is the launch's."""
    complaints: list[str] = []

    def heard(said: ProcessIO) -> None:
        lines = said.text.decode(errors="replace").splitlines()
        complaints.extend(line[len(_ERROR) :] for line in lines if line.startswith(_ERROR))

    def fail(_: LaunchContext, code: int) -> None:
        # an exception is what makes launch return an exit code that is not 0
        why = f": {complaints[0]}" if complaints else ""
        raise RuntimeError(f"softcr up {system} failed (exit code {code}){why}")

    def ended(exited: ProcessExited, _: LaunchContext) -> LaunchDescriptionEntity:
        if exited.returncode == 0:
            return Shutdown(reason="the run has ended")
        failing = OpaqueFunction(function=fail, args=[exited.returncode])
        return TimerAction(period=_LAST_WORDS_TIME, actions=[failing], cancel_on_shutdown=False)

    process = ExecuteProcess(
        cmd=[sys.executable, "-m", "softcr_tools.cli", "up", system, *words],
        name="softcr",
        output="screen",
        additional_env={"PYTHONUNBUFFERED": "1", ENDS_WITH: str(os.getpid())},
        sigterm_timeout=str(_ALONE_TIME),
        sigkill_timeout=str(_END_TIME),
        on_exit=ended,
    )
    listening = OnProcessIO(target_action=process, on_stdout=heard, on_stderr=heard)
    return [RegisterEventHandler(listening), process]


def _viewers(values: dict[str, str]) -> list[LaunchDescriptionEntity]:
    """RViz, which may be closed while the run goes on, and ends with it."""
    simulated = values.get("mode") == "lockstep"
    command = rviz_command(values["namespace"], values["frame_prefix"], simulated)
    return [ExecuteProcess(cmd=command, output="log")]
