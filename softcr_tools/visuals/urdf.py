"""A robot as URDF: its frames as links, its rigid ends as cylinders, a payload as a ball, for
RViz's RobotModel.

A soft robot's shape is no chain of joints, so the tip floats: its pose comes from /tf, and what
lies between base and tip from `markers`.
"""

from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from softcr_models.robots.kinds import AnyRobot
from softcr_models.robots.robot import Robot
from softcr_runtime.wire.frames import Frames

_COLOUR = "0.12 0.16 0.20 1"
_PAYLOAD = 0.6  # radius of a payload's ball, whose size no file tells, over the last segment's
_DISC = 0.004  # length of an arm's end discs, which the robot file does not tell [m]


def robot_description(robot: AnyRobot, frames: Frames, base: np.ndarray) -> str:
    """URDF text whose links are named as the frames.

    Args:
        robot: a rod has the links base, force_torque and tip, the others base and tip.
        frames: names.
        base: (4, 4) pose of the base in the world [m].
    """
    urdf = ElementTree.Element("robot", name=robot.name)
    material = ElementTree.SubElement(urdf, "material", name="cap")
    ElementTree.SubElement(material, "color", rgba=_COLOUR)
    _link(urdf, frames.world)
    if isinstance(robot, Robot):
        first, last = (0.5 * robot.segments[place].outer_diameter for place in (0, -1))
        height, end = robot.sensor_to_base_cap, robot.tip_cap_length
        _link(urdf, frames.base, first, height, height + robot.base_cap_length)
        _link(urdf, frames.force_torque)
        carrier = _link(urdf, frames.tip, last, -end, 0.0)
        if robot.payload is not None:
            _ball(carrier, _PAYLOAD * last, np.array(robot.payload.centre_of_mass) - [0, 0, end])
        _joint(urdf, "fixed", frames.base, frames.force_torque, np.eye(4))
        tip = straight_tip(robot)
    else:
        _link(urdf, frames.base, robot.radius, -_DISC, 0.0)
        _link(urdf, frames.tip, robot.radius, -_DISC, 0.0)
        tip = _along_z(robot.length)
    _joint(urdf, "fixed", frames.world, frames.base, base)
    _joint(urdf, "floating", frames.base, frames.tip, tip)
    ElementTree.indent(urdf)
    return ElementTree.tostring(urdf, encoding="unicode", xml_declaration=True)


def straight_tip(robot: Robot) -> np.ndarray:
    """(4, 4) pose of the tip cap's outer face in the base frame [m], nothing bent."""
    pose = _along_z(robot.sensor_to_base_cap + robot.base_cap_length)
    for segment in robot.segments:
        pose = pose @ _along_z(segment.length)
        if segment.connector is not None:
            across = np.eye(4)
            across[:3, :3] = segment.connector.rotation_matrix
            across[:3, 3] = segment.connector.offset
            pose = pose @ across
    return pose @ _along_z(robot.tip_cap_length)


def _along_z(length: float) -> np.ndarray:
    pose = np.eye(4)
    pose[2, 3] = length
    return pose


def _link(
    urdf: ElementTree.Element, name: str, radius: float = 0.0, low: float = 0.0, high: float = 0.0
) -> ElementTree.Element:
    """A link, with a cylinder about z from low to high [m] where that has a length."""
    link = ElementTree.SubElement(urdf, "link", name=name)
    if high > low:
        geometry = _visual(link, np.array([0.0, 0.0, 0.5 * (low + high)]))
        length = f"{high - low:.9g}"
        ElementTree.SubElement(geometry, "cylinder", radius=f"{radius:.9g}", length=length)
    return link


def _ball(link: ElementTree.Element, radius: float, centre: np.ndarray) -> None:
    """A sphere in a link, its centre (3,) in the link's frame [m]."""
    ElementTree.SubElement(_visual(link, centre), "sphere", radius=f"{radius:.9g}")


def _visual(link: ElementTree.Element, centre: np.ndarray) -> ElementTree.Element:
    """The geometry of a new visual of a link, at (3,) [m]."""
    visual = ElementTree.SubElement(link, "visual")
    xyz = " ".join(f"{value:.9g}" for value in centre)
    ElementTree.SubElement(visual, "origin", xyz=xyz, rpy="0 0 0")
    geometry = ElementTree.SubElement(visual, "geometry")
    ElementTree.SubElement(visual, "material", name="cap")
    return geometry


def _joint(urdf: ElementTree.Element, kind: str, parent: str, child: str, pose: np.ndarray) -> None:
    """A joint whose child is at a (4, 4) pose in the parent [m]."""
    name = f"{parent}_to_{child}".replace("/", "_")
    joint = ElementTree.SubElement(urdf, "joint", name=name, type=kind)
    ElementTree.SubElement(joint, "parent", link=parent)
    ElementTree.SubElement(joint, "child", link=child)
    xyz = " ".join(f"{value:.9g}" for value in pose[:3, 3])
    rpy = " ".join(f"{value:.9g}" for value in pin.rpy.matrixToRpy(pose[:3, :3]) + 0.0)
    ElementTree.SubElement(joint, "origin", xyz=xyz, rpy=rpy)
