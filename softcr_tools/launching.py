"""Systems for `ros2 launch`: the same descriptions, in the words of launch_ros.

Needs launch and launch_ros, which come with a ROS 2 installation and not from PyPI. What the
supervisor of `softcr up` does, launch does here by events: one change of state follows from the
last, the end of a node ends the run, and the controller stops first.
"""

import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from diagnostic_msgs.msg import DiagnosticArray
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    ExecuteProcess,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    TimerAction,
)
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown, matches_action
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import LifecycleNode
from launch_ros.event_handlers import OnStateTransition
from launch_ros.events.lifecycle import ChangeState
from launch_ros.ros_adapters import get_ros_node

from softcr_runtime.settings import declared_settings
from softcr_tools.hardware_system import HardwareOptions, hardware_system
from softcr_tools.lifecycle import ACTIVATE, CONFIGURE, DEACTIVATE, Change, says_finished
from softcr_tools.processes import Exit
from softcr_tools.results import new_run_directory, point_latest_to
from softcr_tools.systems import (
    Options,
    SimulationOptions,
    System,
    options_of,
    simulation_system,
)

VENT_TIME = 1.0  # recorded after the controller has stopped, while the chambers empty [s]


def simulation_launch_description() -> LaunchDescription:
    """The closed loop in simulation; its launch arguments are the options of `softcr up`."""
    return _description(SimulationOptions, simulation_system, "results/sim")


def hardware_launch_description() -> LaunchDescription:
    """The closed loop on the bench; its launch arguments are the options of `softcr up`."""
    return _description(HardwareOptions, hardware_system, "results/hardware")


def _description(
    kind: type[Options], system_of: Callable[[Options, Path], System], results: str
) -> LaunchDescription:
    arguments = [
        DeclareLaunchArgument(
            setting.name,
            default_value=str(setting.default),
            description=f"{setting.description}; {setting.allowed}",
        )
        for setting in declared_settings(kind).values()
    ]
    arguments.append(
        DeclareLaunchArgument(
            "results", default_value=results, description="where the run's directory is made"
        )
    )

    def made(context: LaunchContext) -> list[LaunchDescriptionEntity]:
        def chosen(name: str) -> str:
            return LaunchConfiguration(name).perform(context)

        options = options_of(kind, {name: chosen(name) for name in kind.model_fields})
        directory = new_run_directory(Path(chosen("results")))
        point_latest_to(directory)
        system = system_of(options, directory / "bag")
        report = LogInfo(msg=f"for the report afterwards: softcr report {directory}")
        return [*launched(system), report]

    return LaunchDescription([*arguments, OpaqueFunction(function=made)])


def launched(system: System) -> list[LaunchDescriptionEntity]:
    """Everything to launch for a system: its nodes, and what follows from their changes."""
    nodes = {
        node.name: LifecycleNode(
            package="softcr",
            executable=node.name,
            name=node.name,
            namespace="",
            parameters=[dict(node.parameters)],
            output="both",
        )
        for node in system.nodes
    }
    controller = nodes[system.controller]
    way_up = [(nodes[node.name], CONFIGURE) for node in system.nodes]
    way_up += [(nodes[name], ACTIVATE) for name in system.activation]
    handlers = [
        _after(node, change, [_asked(*following)]) for (node, change), following in pairwise(way_up)
    ]
    handlers.append(
        _after(*way_up[-1], [OpaqueFunction(function=_begun, args=[system, controller])])
    )
    handlers += [_after_refusal(node) for node in nodes.values()]
    handlers += [_after_exit(node, controller) for node in nodes.values()]
    return [*handlers, *nodes.values(), _asked(*way_up[0])]


def _asked(node: LifecycleNode, change: Change) -> EmitEvent:
    return EmitEvent(
        event=ChangeState(
            lifecycle_node_matcher=matches_action(node), transition_id=change.transition
        )
    )


def _after(
    node: LifecycleNode, change: Change, actions: list[LaunchDescriptionEntity]
) -> RegisterEventHandler:
    """What to do once a node has made a change."""
    handler = OnStateTransition(
        target_lifecycle_node=node,
        start_state=change.passing,
        goal_state=change.reached,
        entities=actions,
        handle_once=True,
    )
    return RegisterEventHandler(handler)


def _after_refusal(node: LifecycleNode) -> RegisterEventHandler:
    handler = OnStateTransition(
        target_lifecycle_node=node,
        start_state=CONFIGURE.passing,
        goal_state="unconfigured",
        entities=[EmitEvent(event=Shutdown(reason="a node did not configure"))],
    )
    return RegisterEventHandler(handler)


def _after_exit(node: LifecycleNode, controller: LifecycleNode) -> RegisterEventHandler:
    def died(event: ProcessExited, context: LaunchContext) -> list[LaunchDescriptionEntity] | None:
        if context.is_shutdown:
            return None
        reason = f"node {node.node_name.lstrip('/')} died ({Exit.of(event.returncode)})"
        return _end(reason, None if node is controller else controller)

    return RegisterEventHandler(OnProcessExit(target_action=node, on_exit=died))


def _begun(
    context: LaunchContext, system: System, controller: LifecycleNode
) -> list[LaunchDescriptionEntity]:
    """The run, as soon as the services that must agree have; its end, if one of them refuses."""
    if not system.begin:
        return _timed(context, system, controller)
    asking = ExecuteProcess(
        cmd=[sys.executable, "-m", "softcr_tools.beginning", *system.begin], output="both"
    )

    def answered(
        event: ProcessExited, context: LaunchContext
    ) -> list[LaunchDescriptionEntity] | None:
        if context.is_shutdown:
            return None
        if event.returncode != 0:
            return _end("the run did not begin", controller)
        return _timed(context, system, controller)

    return [
        RegisterEventHandler(OnProcessExit(target_action=asking, on_exit=answered)),
        asking,
    ]


def _timed(
    context: LaunchContext, system: System, controller: LifecycleNode
) -> list[LaunchDescriptionEntity]:
    """The end of the run, from its begin on: by this clock, or when the plant says so."""
    if not system.simulated_time:
        end = _end(f"the run of {system.duration:g} s is over", controller)
        return [TimerAction(period=system.duration, actions=end)]

    ended = False

    def end_when_finished(message: DiagnosticArray) -> None:
        nonlocal ended
        if says_finished(message) and not ended:
            ended = True
            over = Shutdown(reason=f"the run of {system.duration:g} s is over")
            context.asyncio_loop.call_soon_threadsafe(context.emit_event_sync, over)

    get_ros_node(context).create_subscription(
        DiagnosticArray, "/diagnostics", end_when_finished, 10
    )
    return []


def _end(reason: str, controller: LifecycleNode | None) -> list[LaunchDescriptionEntity]:
    """Stop the controller, if there is one left, and everything else once the chambers are empty.

    Shutdown sends SIGINT to the nodes, which then deactivate and clean up by themselves.
    """
    stop = [] if controller is None else [_asked(controller, DEACTIVATE)]
    shutdown = EmitEvent(event=Shutdown(reason=reason))
    return [LogInfo(msg=reason), *stop, TimerAction(period=VENT_TIME, actions=[shutdown])]
