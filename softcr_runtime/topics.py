"""The one table of topics: name, type, quality of service, meaning.

Names are relative, so a namespace moves a whole system. The table itself needs no ROS.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from softcr_runtime.wire_types import TF_MESSAGE, NoWireType, tf_message_class

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
        former: types that it had, as in bags of older releases.
    """

    name: str
    type: str
    profile: Profile
    meaning: str
    former: tuple[str, ...] = ()

    def message_class(self) -> Any:
        """The Python class of the type; imports its ROS package.

        Raises:
            NoWireType: of TFMessage, which not every ROS has; see `softcr_runtime.wire_types`.
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


_ROWS = (
    Topic(
        "pressure/command",
        "sensor_msgs/msg/JointState",
        "command",
        "inputs wanted of a controller that tells one command at a time: name = actuators, effort "
        "= gauge pressure [Pa] or tension [N]; followed when it comes, until the next one",
    ),
    Topic(
        "pressure/plan",
        "trajectory_msgs/msg/JointTrajectory",
        "command",
        "inputs planned: joint_names = actuators, of each point effort = gauge pressure [Pa] or "
        "tension [N], time_from_start = when it is due, counted from the stamp, which is that of "
        "the estimate it answers; followed when they are due, until a newer plan overrides them",
    ),
    Topic(
        "pressure/state",
        "sensor_msgs/msg/JointState",
        "sensor",
        "inputs measured: name = actuators, effort = gauge pressure [Pa] or tension [N]",
    ),
    Topic(
        "pressure/sent",
        "sensor_msgs/msg/JointState",
        "sensor",
        "inputs that were really played, behind due times, safety and limiter, from the stamp on: "
        "name = actuators, effort = gauge pressure [Pa] or tension [N]",
    ),
    Topic(
        "mocap/tip/pose",
        "geometry_msgs/msg/PoseStamped",
        "sensor",
        "tip seen by the cameras [m]; stamp = middle of the exposure",
    ),
    Topic(
        "mocap/body/poses",
        "geometry_msgs/msg/PoseArray",
        "sensor",
        "rigid bodies along a rod seen by the cameras [m], in the order of the pose sensors in the "
        "robot's file, or all markers of a planar strain robot, base to tip; stamp = middle of the "
        "exposure",
    ),
    Topic(
        "tendon/lengths",
        "sensor_msgs/msg/JointState",
        "sensor",
        "lengths of a rod's tendons, each from the rod's base to its end: name = tendons, position "
        "[m]",
    ),
    Topic(
        "force_torque/wrench",
        "geometry_msgs/msg/WrenchStamped",
        "sensor",
        "what the sensor below the base reads, about its own origin, in the base's axes [N, N m]",
    ),
    Topic(
        "estimate/rod",
        "sensor_msgs/msg/PointCloud2",
        "reliable",
        "estimated rod state, one point per node, with estimated parameters and the measured "
        "inputs that it was made with; of several segments also `segment`, the number of the "
        "segment that a point belongs to, from 0 at the base",
    ),
    Topic(
        "estimate/state",
        "sensor_msgs/msg/PointCloud2",
        "reliable",
        "estimated state of a model that is no rod, one point: state.GROUP, parameter.NAME, "
        "std.NAME, and input.ACTUATOR: the measured inputs that it was made with",
    ),
    Topic(
        "estimate/tip/pose",
        "geometry_msgs/msg/PoseWithCovarianceStamped",
        "reliable",
        "tip of the estimated state [m]",
    ),
    Topic(
        "estimate/constant_curvature",
        "sensor_msgs/msg/PointCloud2",
        "reliable",
        "estimated arc, one point: delta_x, delta_y, elongation [m], their rates [m/s], "
        "bending_stiffness [N/m], standard deviations",
    ),
    Topic(
        "mocap/arm/poses",
        "geometry_msgs/msg/PoseArray",
        "sensor",
        "rigid bodies along a tendon-driven arm, base to tip, all of one frame of the cameras [m]",
    ),
    Topic(
        "reference/tip",
        "geometry_msgs/msg/PoseStamped",
        "reliable",
        "where the tip should be now [m], orientation (0, 0, 0, 1) asks for none: followed by the "
        "node goal while it is asked to, at its speed limits; by an arm's controller, which "
        "follows positions alone, as its setpoint",
        former=("geometry_msgs/msg/PointStamped",),
    ),
    Topic(
        "goal/pose",
        "geometry_msgs/msg/PoseStamped",
        "person",
        "where the tip is to go when goal/go is called [m]; an orientation may be asked for that "
        "the tip has there, (0, 0, 0, 1) asks for none",
    ),
    Topic(
        "goal/path",
        "nav_msgs/msg/Path",
        "person",
        "points through which the tip is to go when goal/go is called [m]",
    ),
    Topic(
        "goal/state",
        "diagnostic_msgs/msg/DiagnosticArray",
        "latched",
        "how it stands with the goal: one status with state, distance of the way that is left [m], "
        "tip wanted now [m]",
    ),
    Topic(
        "tendon/command",
        "sensor_msgs/msg/JointState",
        "command",
        "tendon lengths wanted against the zero state: name = tendons, position [m]; followed when "
        "they come",
    ),
    Topic(
        "tendon/plan",
        "trajectory_msgs/msg/JointTrajectory",
        "command",
        "tendon lengths planned, as pressure/plan: of each point positions [m]",
    ),
    Topic(
        "tendon/sent",
        "sensor_msgs/msg/JointState",
        "sensor",
        "tendon lengths that are followed from the stamp on: name = tendons, position [m]",
    ),
    Topic(
        "tendon/state",
        "sensor_msgs/msg/JointState",
        "sensor",
        "tendons measured: name, position = length against the zero state [m], effort [N], "
        "negative where it pulls",
    ),
    Topic(
        "torque/command",
        "sensor_msgs/msg/JointState",
        "command",
        "generalised forces wanted on the strains of a planar strain robot: name = strains, effort "
        "= [N m] on bending, [N] on shear and axial strain; followed when they come",
    ),
    Topic(
        "torque/plan",
        "trajectory_msgs/msg/JointTrajectory",
        "command",
        "generalised forces planned, as pressure/plan: of each point effort as torque/command",
    ),
    Topic(
        "torque/sent",
        "sensor_msgs/msg/JointState",
        "sensor",
        "generalised forces that are played from the stamp on: name, effort as torque/command",
    ),
    Topic(
        "torque/state",
        "sensor_msgs/msg/JointState",
        "sensor",
        "generalised forces on the strains, measured: name, effort as torque/command",
    ),
    Topic(
        "estimate/arm",
        "sensor_msgs/msg/PointCloud2",
        "reliable",
        "model of a tendon-driven arm, one point: coordinates and rest lengths of its sections "
        "[m], what is left of each sensor's error [m], [rad]",
    ),
    Topic(
        "estimate/shape", "nav_msgs/msg/Path", "reliable", "centre line of the estimated state [m]"
    ),
    Topic(
        "reference/rod",
        "sensor_msgs/msg/PointCloud2",
        "reliable",
        "where the rod should be: one row per step of the horizon, one point per node; where the "
        "state is NaN the last point is the wanted tip, its orientation NaN where none is asked",
    ),
    Topic(
        "reference/output",
        "sensor_msgs/msg/PointCloud2",
        "reliable",
        "where the tip of a robot that is no rod should be [m]: one point per step of the horizon, "
        "with their period [s] and, where one is asked for, the tip's quaternion; where they are "
        "known, the states of the controller's model as state.GROUP",
    ),
    Topic(
        "markers",
        "visualization_msgs/msg/MarkerArray",
        "reliable",
        "what viewers draw: the rod, its reference, its trail, tips",
    ),
    Topic(
        "estimate/parameters",
        "sensor_msgs/msg/JointState",
        "reliable",
        "what is estimated of the robot's model, to be plotted: name, position = value, effort = "
        "standard deviation, both in the parameter's unit; effort is NaN where none is known",
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
        "frames that stand still: world -> base -> force_torque",
    ),
    Topic("/tf", "tf2_msgs/msg/TFMessage", "diagnostics", "base -> tip, of the estimate"),
    Topic(
        "safety/state",
        "diagnostic_msgs/msg/DiagnosticStatus",
        "latched",
        "action taken and why, what is latched, what is in the way of enabling",
    ),
    Topic(
        "safety/operator",
        "sensor_msgs/msg/Joy",
        "sensor",
        "the operator is there: button 0 is the deadman's switch, button 1 vents",
    ),
    Topic(
        "simulation/truth/rod",
        "sensor_msgs/msg/PointCloud2",
        "sensor",
        "true rod state of the simulator, as estimate/rod; for recorder and viewers only",
    ),
    Topic(
        "simulation/truth/arm",
        "sensor_msgs/msg/PointCloud2",
        "sensor",
        "true coordinates and rest lengths of the simulated arm's bodies [m], as estimate/arm; for "
        "recorder and viewers only",
    ),
    Topic(
        "simulation/truth/strains",
        "sensor_msgs/msg/PointCloud2",
        "sensor",
        "true strains of the simulated robot by name [rad/m] of bending, [-] of shear and axial "
        "strain, and their rates NAME_rate [1/s]; for recorder and viewers only",
    ),
    Topic(
        "simulation/truth/tip/pose",
        "geometry_msgs/msg/PoseStamped",
        "sensor",
        "true tip of the simulator [m]; for recorder and viewers only",
    ),
    Topic(
        "simulation/truth/loads",
        "sensor_msgs/msg/PointCloud2",
        "sensor",
        "loads that a script puts on the simulated rod, one point for each, zero while it is off: "
        "place [m], force [N], moment about the place [N m]; for recorder and viewers only",
    ),
    Topic(
        "simulation/truth/contact/points",
        "sensor_msgs/msg/PointCloud2",
        "sensor",
        "where the simulated rod may touch its obstacles, the middles of its intervals and its "
        "last node [m], and the force on it there [N], zero where it does not touch; for recorder "
        "and viewers only",
    ),
    Topic(
        "simulation/truth/contact/wrench",
        "geometry_msgs/msg/WrenchStamped",
        "sensor",
        "total of the obstacles' forces on the simulated rod, about the origin of the sensor below "
        "the base, in the base's axes [N, N m]; for recorder and viewers only",
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
        "what each tick of a node used, lacked and took, once a second; frame = node",
    ),
    Topic(
        "configuration",
        "diagnostic_msgs/msg/DiagnosticArray",
        "latched",
        "what each node was configured with: its parameters, its robot, and the files that its "
        "settings name, word for word",
    ),
    Topic("/rosout", "rcl_interfaces/msg/Log", "log", "what nodes log, kept for 10 s"),
    Topic(
        "/parameter_events",
        "rcl_interfaces/msg/ParameterEvent",
        "diagnostics",
        "parameters that were declared or have changed",
    ),
    Topic("/clock", "rosgraph_msgs/msg/Clock", "clock", "simulated time"),
)

TOPICS: dict[str, Topic] = {topic.name: topic for topic in _ROWS}
"""All topics by name."""


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
