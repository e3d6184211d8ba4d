"""Systems for `ros2 launch`: the options of `softcr up` as launch arguments, and that command.

Needs launch, which comes with a ROS 2 installation and not from PyPI. Lifecycle, order and end are
the supervisor's, as for everybody else.
"""

import shlex
import sys

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration

from softcr_runtime.settings import declared_settings
from softcr_tools.run_options import RunOptions

_END_TIME = 90.0
"""For the way down, bag and report included, after Ctrl-C: a second signal would kill it [s]."""


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
    defaults = {name: str(each.default) for name, each in declared_settings(kind).items()}
    offered = [
        (name, defaults[name], f"{setting.description}; {setting.allowed}")
        for name, setting in declared_settings(kind).items()
    ]
    offered.append(("results", results, "where the run's directory is made"))
    offered.append(("args", "", "more words for softcr up, such as '--controller.kp 3'"))

    def made(context: LaunchContext) -> list[LaunchDescriptionEntity]:
        def chosen(name: str) -> str:
            return LaunchConfiguration(name).perform(context)

        words = [f"--results={chosen('results')}"]
        values = {name: chosen(name) for name in defaults}
        # PushRosNamespace acts on nodes, which this process starts itself
        values["namespace"] = values["namespace"] or pushed_namespace(context)
        for name, default in defaults.items():
            if values[name] != default:
                words.append(f"--{name.replace('_', '-')}={values[name]}")
        return [
            ExecuteProcess(
                cmd=[
                    *(sys.executable, "-m", "softcr_tools.cli", "up", system),
                    *(*words, *shlex.split(chosen("args"))),
                ],
                output="screen",
                additional_env={"PYTHONUNBUFFERED": "1"},
                sigterm_timeout=str(_END_TIME),
                on_exit=Shutdown(reason="the run has ended"),
            )
        ]

    arguments = [
        DeclareLaunchArgument(name, default_value=default, description=said)
        for name, default, said in offered
    ]
    return LaunchDescription([*arguments, OpaqueFunction(function=made)])
