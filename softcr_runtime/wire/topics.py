"""The one table of topics: name, type, quality of service, meaning.

Names are relative, so a namespace moves a whole system. The table itself needs no ROS.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from softcr_models.robots.kinds import KINDS, Kind
from softcr_runtime.wire.tf_types import TF_MESSAGE, NoWireType, tf_message_class

if TYPE_CHECKING:
    from rclpy.qos import QoSProfile

Profile = Literal[
    "command", "sensor", "reliable", "latched", "diagnostics", "clock", "log", "person"
]


@dataclass(frozen=True)
class Topic:
    """One row of the table.

    Attributes:
        name: relative, or absolute where ROS fixes it.
        type: as in `sensor_msgs/msg/JointState`, the form bags use too.
        profile: quality of service, see `qos`.
        meaning: what it carries, with units.
        kind: of the robots that have it, a name of `KINDS`; empty: every robot.
    """

    name: str
    type: str
    profile: Profile
    meaning: str
    kind: str = ""

    def message_class(self) -> Any:
        """The Python class of the type; imports its ROS package.

        Raises:
            NoWireType: of TFMessage, which not every ROS has; see `softcr_runtime.wire.tf_types`.
        """
        if self.type == TF_MESSAGE:
            return tf_message_class()
        package, _, name = self.type.split("/")
        return getattr(import_module(f"{package}.msg"), name)

    def is_available(self) -> bool:
        """Whether the installed ROS can send and hear it."""
        try:
            self.message_class()
        except NoWireType:
            return False
        return True


TRUTH = "simulation/truth/state"
"""The true state of a simulated robot that is not a rod."""

_ROWS = (
    Topic(
        "mocap/tip/pose",
        "geometry_msgs/msg/PoseStamped",
        "sensor",
        "pose of the tip, as seen by the cameras [m]; stamp = middle of the exposure",
    ),
    Topic(
        "mocap/body/poses",
        "geometry_msgs/msg/PoseArray",
        "sensor",
        "poses of bodies along the robot, all from one frame of the cameras [m]: those that its "
        "file names, base to tip; stamp = middle of the exposure",
    ),
    Topic(
        "tendon/lengths",
        "sensor_msgs/msg/JointState",
        "sensor",
        "lengths of a rod's tendons, each from the rod's base to its end: name = tendons, position "
        "[m]",
        "rod",
    ),
    Topic(
        "force_torque/wrench",
        "geometry_msgs/msg/WrenchStamped",
        "sensor",
        "wrench measured by the sensor below the base, about its origin, in the base's axes [N, "
        "N m]",
        "rod",
    ),
    Topic(
        "estimate/rod",
        "sensor_msgs/msg/PointCloud2",
        "reliable",
        "estimated rod state, one point per node, with estimated parameters and the measured "
        "inputs from which it was computed; for several segments also `segment`, the number of the "
        "segment that a point belongs to, from 0 at the base",
        "rod",
    ),
    Topic(
        "estimate/state",
        "sensor_msgs/msg/PointCloud2",
        "reliable",
        "estimated state of a model that is not a rod, one point: state.GROUP, parameter.NAME (any "
        "number found with it), std.NAME, and input.ACTUATOR (the measured inputs from which it "
        "was computed)",
    ),
    Topic(
        "estimate/tip/pose",
        "geometry_msgs/msg/PoseWithCovarianceStamped",
        "reliable",
        "pose of the tip of the estimated state [m]",
    ),
    Topic(
        "estimate/constant_curvature",
        "sensor_msgs/msg/PointCloud2",
        "reliable",
        "estimated arc, one point: delta_x, delta_y, elongation [m], their rates [m/s], "
        "bending_stiffness [N/m], standard deviations",
        "rod",
    ),
    Topic(
        "reference/tip",
        "geometry_msgs/msg/PoseStamped",
        "reliable",
        "desired pose of the tip now [m]; the orientation (0, 0, 0, 1) asks for none. The node "
        "goal follows it within its speed limits while it is told to; the controller of an arm "
        "uses its position as the setpoint",
    ),
    Topic(
        "goal/pose",
        "geometry_msgs/msg/PoseStamped",
        "person",
        "pose to which the tip goes when goal/go is called [m]; the orientation (0, 0, 0, 1) asks "
        "for none",
    ),
    Topic(
        "goal/path",
        "nav_msgs/msg/Path",
        "person",
        "points through which the tip goes when goal/go is called [m]",
    ),
    Topic(
        "goal/state",
        "diagnostic_msgs/msg/DiagnosticArray",
        "latched",
        "progress towards the goal: one status with state, remaining distance [m] and the desired "
        "position of the tip now [m]",
    ),
    Topic(
        "estimate/shape", "nav_msgs/msg/Path", "reliable", "centre line of the estimated state [m]"
    ),
    Topic(
        "reference/rod",
        "sensor_msgs/msg/PointCloud2",
        "reliable",
        "desired state of the rod: one row per step of the horizon, one point per node; if the "
        "state is NaN, the last point is the desired tip, its orientation NaN if none is wanted",
        "rod",
    ),
    Topic(
        "reference/output",
        "sensor_msgs/msg/PointCloud2",
        "reliable",
        "desired position of the tip of a robot that is not a rod [m]: one point per step of the "
        "horizon, with their period [s]; if asked for, the tip's quaternion; if known, the states "
        "of the controller's model as state.GROUP",
    ),
    Topic(
        "markers",
        "visualization_msgs/msg/MarkerArray",
        "reliable",
        "markers for viewers: the rod, its reference, its trail, tips",
    ),
    Topic(
        "estimate/parameters",
        "sensor_msgs/msg/JointState",
        "reliable",
        "estimated parameters of the robot's model, for plots: name, position = value, effort = "
        "standard deviation, both in the parameter's unit; effort is NaN if unknown",
    ),
    Topic(
        "robot_description",
        "std_msgs/msg/String",
        "latched",
        "URDF of the robot's links base and tip, for RViz",
    ),
    Topic(
        "/tf_static",
        "tf2_msgs/msg/TFMessage",
        "latched",
        "fixed frames: world -> base -> force_torque",
    ),
    Topic("/tf", "tf2_msgs/msg/TFMessage", "diagnostics", "frame of the estimate: base -> tip"),
    Topic(
        "safety/state",
        "diagnostic_msgs/msg/DiagnosticStatus",
        "latched",
        "the action and its cause, what is latched, what prevents enabling",
        "rod",
    ),
    Topic(
        "safety/operator",
        "sensor_msgs/msg/Joy",
        "sensor",
        "signal of the operator: button 0 is the deadman's switch, button 1 vents",
        "rod",
    ),
    Topic(
        "simulation/truth/rod",
        "sensor_msgs/msg/PointCloud2",
        "sensor",
        "true rod state of the simulator, like estimate/rod; for recorder and viewers only",
        "rod",
    ),
    Topic(
        TRUTH,
        "sensor_msgs/msg/PointCloud2",
        "sensor",
        "true state of a simulated robot that is not a rod, like estimate/state; for recorder and "
        "viewers only",
    ),
    Topic(
        "simulation/truth/tip/pose",
        "geometry_msgs/msg/PoseStamped",
        "sensor",
        "true pose of the simulated tip [m]; for recorder and viewers only",
    ),
    Topic(
        "simulation/truth/loads",
        "sensor_msgs/msg/PointCloud2",
        "sensor",
        "scripted loads on the simulated rod, one point each, zero while off: point of application "
        "[m], force [N], moment about that point [N m]; for recorder and viewers only",
        "rod",
    ),
    Topic(
        "simulation/truth/contact/points",
        "sensor_msgs/msg/PointCloud2",
        "sensor",
        "points at which the simulated rod may touch its obstacles (the middles of its intervals "
        "and its last node) [m], and the force on it there [N], zero without contact; for recorder "
        "and viewers only",
        "rod",
    ),
    Topic(
        "simulation/truth/contact/wrench",
        "geometry_msgs/msg/WrenchStamped",
        "sensor",
        "total wrench of the obstacles on the simulated rod, about the origin of the sensor below "
        "the base, in the base's axes [N, N m]; for recorder and viewers only",
        "rod",
    ),
    Topic(
        "/diagnostics",
        "diagnostic_msgs/msg/DiagnosticArray",
        "diagnostics",
        "health of every node, once a second",
    ),
    Topic(
        "ticks",
        "sensor_msgs/msg/PointCloud2",
        "diagnostics",
        "inputs used, inputs missing and computing time of each tick, once a second; frame = node",
    ),
    Topic(
        "configuration",
        "diagnostic_msgs/msg/DiagnosticArray",
        "latched",
        "configuration of each node: its parameters, its robot, and the files that its settings "
        "name, verbatim",
    ),
    Topic("/rosout", "rcl_interfaces/msg/Log", "log", "log of the nodes, kept for 10 s"),
    Topic(
        "/parameter_events",
        "rcl_interfaces/msg/ParameterEvent",
        "diagnostics",
        "parameters that were declared or have changed",
    ),
    Topic("/clock", "rosgraph_msgs/msg/Clock", "clock", "simulated time"),
)


def _of_actuators(kind: Kind) -> tuple[Topic, ...]:
    """Topics of the commands and readings of a kind of robots."""
    quantity, state = kind.quantity, "sensor_msgs/msg/JointState"
    numbers, forces = f"effort = {kind.meaning}", ""
    if kind.field == "positions":
        numbers, forces = f"position = {kind.meaning}", ", effort [N], negative where it pulls"
    return (
        Topic(
            f"{quantity}/command", state, "command",
            "one command of a controller that does not send plans: name = actuators, "
            f"{numbers}; applied on arrival, until the next one",
        ),
        Topic(
            f"{quantity}/plan", "trajectory_msgs/msg/JointTrajectory", "command",
            f"planned commands: joint_names = actuators; for each point, {kind.field} = "
            f"{kind.meaning}, and time_from_start = its due time, counted from the stamp, which is "
            "that of the estimate it answers; applied when due, until a newer plan replaces them",
        ),
        Topic(
            f"{quantity}/reference", "trajectory_msgs/msg/JointTrajectory", "command",
            "inputs of the nominal model in the reference's motion, where they are known: each "
            f"point's {kind.field} is felt at its time; a controller plans with them beyond its "
            "horizon",
        ),
        Topic(
            f"{quantity}/state", state, "sensor",
            f"measured inputs: name = actuators, {numbers}{forces}",
        ),
        Topic(
            f"{quantity}/sent", state, "sensor",
            "inputs that were actually applied from the stamp on, after due times, safety and "
            f"limiter: name = actuators, {numbers}",
        ),
    )  # fmt: skip


ACTUATOR_TOPICS: dict[str, Kind] = {}
"""Topics of commands and readings of actuators, with the first kind of robots that has them."""

TOPICS: dict[str, Topic] = {}
"""All topics by name."""

for _kind in KINDS.values():
    for _topic in _of_actuators(_kind):
        TOPICS.setdefault(_topic.name, _topic)
        ACTUATOR_TOPICS.setdefault(_topic.name, _kind)
TOPICS |= {_topic.name: _topic for _topic in _ROWS}


def carries_packets(topic: str) -> bool:
    """Whether a topic of actuators carries several commands at once, each with its time."""
    return topic.endswith(("/plan", "/reference"))


def topics_of(kind: str) -> dict[str, Topic]:
    """The topics that a robot of a kind may have, by name.

    Args:
        kind: a name of `KINDS`.
    """
    quantity = KINDS[kind].quantity
    return {
        name: topic
        for name, topic in TOPICS.items()
        if topic.kind in ("", kind)
        and (name not in ACTUATOR_TOPICS or ACTUATOR_TOPICS[name].quantity == quantity)
    }


_NEVER_KEPT = ("diagnostics", "clock", "person")
"""Profiles of which no publisher keeps messages: DDS brings no subscriber that asks for kept ones
together with a publisher that keeps none, such as a person's."""

LOCKSTEP_DEPTH = 500
"""Messages of a topic that can be sent once more. A recorder that gets no time for 0.5 s misses
some, because its socket's buffer is full; with 10 kept it lost 36 of 300, with 200 none."""


def qos(topic: str, lockstep: bool = False, offered_period: float | None = None) -> "QoSProfile":
    """Quality of service of a topic.

    On the wall clock the newest value counts: sensor data is best effort, keep last 5; everything
    else reliable, keep last 1. Of plans the last 5 are kept, for each counts until the next one is
    due. In lock-step nothing may be lost: reliable, keep last
    LOCKSTEP_DEPTH, and kept for readers that DDS has not matched yet: one run in ten lost its first
    message without that.

    Args:
        topic: name in `TOPICS`.
        lockstep: whether the system runs in lock-step.
        offered_period: given by publishers, the time between messages [s]. A pressure command then
            promises a new one every two periods and expires after two. A subscriber demands no such
            promise, because DDS would refuse it every publisher that does not make it, a command
            line included; it watches the stamps.

    Raises:
        KeyError: the table does not have this topic.
    """
    from rclpy.duration import Duration
    from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy

    profile = TOPICS[topic].profile
    best_effort = profile == "sensor" and not lockstep
    depths = {"sensor": 5, "diagnostics": 10, "log": 1000}
    kept = 5 if topic.endswith("/plan") else depths.get(profile, 1)
    settings = QoSProfile(
        depth=LOCKSTEP_DEPTH if lockstep else kept,
        reliability=QoSReliabilityPolicy.BEST_EFFORT
        if best_effort
        else QoSReliabilityPolicy.RELIABLE,
        durability=QoSDurabilityPolicy.TRANSIENT_LOCAL
        if profile in ("latched", "log") or (lockstep and profile not in _NEVER_KEPT)
        else QoSDurabilityPolicy.VOLATILE,
    )
    if profile == "command" and offered_period is not None and not lockstep:
        two_periods = Duration(nanoseconds=round(2e9 * offered_period))
        settings.deadline = two_periods
        settings.lifespan = two_periods
    return settings
