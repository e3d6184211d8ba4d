"""A robot as URDF: its frames as links, its rigid ends as cylinders, for RViz's RobotModel.

A soft robot's shape is no chain of joints, so the tip floats: its pose comes from /tf, and what
lies between base and tip from `markers`.
"""

from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from softcr_models.constant_curvature.arm import Arm
from softcr_models.robot import Robot
from softcr_runtime.frames import Frames

_COLOUR = "0.12 0.16 0.20 1"
_DISC = 0.004  # length of an arm's end discs, which the robot file does not tell [m]


def robot_description(robot: Robot | Arm, frames: Frames, base: np.ndarray) -> str:
    """URDF text whose links are named as the frames.

    Args:
        robot: a rod has the links base, force_torque and tip, an arm base and tip.
        frames: names.
        base: (4, 4) pose of the base in the world [m].
    """
    urdf = ElementTree.Element("robot", name=robot.name)
    material = ElementTree.SubElement(urdf, "material", name="cap")
    ElementTree.SubElement(material, "color", rgba=_COLOUR)
    _link(urdf, frames.world)
    if isinstance(robot, Robot):
        radius, cap = 0.5 * robot.outer_diameter, robot.base_cap_length
        height, end = robot.sensor_to_base_cap, robot.tip_cap_length
        _link(urdf, frames.base, radius, height, height + cap)
        _link(urdf, frames.force_torque)
        _link(urdf, frames.tip, radius, -end, 0.0)
        _joint(urdf, "fixed", frames.base, frames.force_torque, np.eye(4))
        straight = height + cap + robot.length + end
    else:
        _link(urdf, frames.base, robot.radius, -_DISC, 0.0)
        _link(urdf, frames.tip, robot.radius, -_DISC, 0.0)
        straight = float(sum(robot.bodies))
    _joint(urdf, "fixed", frames.world, frames.base, base)
    tip = np.eye(4)
    tip[2, 3] = straight
    _joint(urdf, "floating", frames.base, frames.tip, tip)
    ElementTree.indent(urdf)
    return ElementTree.tostring(urdf, encoding="unicode", xml_declaration=True)


def _link(
    urdf: ElementTree.Element, name: str, radius: float = 0.0, low: float = 0.0, high: float = 0.0
) -> None:
    """A link, with a cylinder about z from low to high [m] where that has a length."""
    link = ElementTree.SubElement(urdf, "link", name=name)
    if high <= low:
        return
    visual = ElementTree.SubElement(link, "visual")
    ElementTree.SubElement(visual, "origin", xyz=f"0 0 {0.5 * (low + high):.9g}", rpy="0 0 0")
    geometry = ElementTree.SubElement(visual, "geometry")
    length = f"{high - low:.9g}"
    ElementTree.SubElement(geometry, "cylinder", radius=f"{radius:.9g}", length=length)
    ElementTree.SubElement(visual, "material", name="cap")


def _joint(urdf: ElementTree.Element, kind: str, parent: str, child: str, pose: np.ndarray) -> None:
    """A joint whose child is at a (4, 4) pose in the parent [m]."""
    name = f"{parent}_to_{child}".replace("/", "_")
    joint = ElementTree.SubElement(urdf, "joint", name=name, type=kind)
    ElementTree.SubElement(joint, "parent", link=parent)
    ElementTree.SubElement(joint, "child", link=child)
    xyz = " ".join(f"{value:.9g}" for value in pose[:3, 3])
    rpy = " ".join(f"{value:.9g}" for value in pin.rpy.matrixToRpy(pose[:3, :3]) + 0.0)
    ElementTree.SubElement(joint, "origin", xyz=xyz, rpy=rpy)
