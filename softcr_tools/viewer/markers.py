"""The drawing as ROS messages: RViz does not show clouds of float64, as rods travel."""

from typing import Any

import numpy as np

from softcr_runtime.figure_style import ESTIMATE
from softcr_runtime.messages import to_stamp
from softcr_tools.viewer.drawing import DOT_SIZE, dots, lines, rgb
from softcr_tools.viewer.picture import Picture
from softcr_tools.viewer.shape import Shape

_METRES_PER_PIXEL = 5e-4  # markers have no pixels
_ROD_ALPHA = 0.45


def path_message(rod: Shape, frame: str) -> Any:
    """nav_msgs/Path of a robot: the poses along its centre line."""
    from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
    from nav_msgs.msg import Path
    from std_msgs.msg import Header

    header = Header(stamp=to_stamp(rod.stamp), frame_id=frame)
    poses = [
        PoseStamped(
            header=header,
            pose=Pose(
                position=Point(x=x, y=y, z=z), orientation=Quaternion(x=qx, y=qy, z=qz, w=qw)
            ),
        )
        for (x, y, z), (qx, qy, qz, qw) in zip(
            rod.positions.tolist(), rod.quaternions.tolist(), strict=True
        )
    ]
    return Path(header=header, poses=poses)


def markers_message(picture: Picture, radius: float) -> Any:
    """visualization_msgs/MarkerArray of rod, lines and dots; what is not known is taken away.

    Args:
        picture: what is known.
        radius: of the rod [m].
    """
    from visualization_msgs.msg import MarkerArray

    rod = picture.estimate
    shape = None if rod is None else rod.positions
    markers = [_strip("rod", shape, ESTIMATE, 2 * radius, _ROD_ALPHA, picture.stamp)]
    markers += [
        _strip(name, line.points, line.colour, _METRES_PER_PIXEL * line.width, 1.0, picture.stamp)
        for name, line in lines(picture).items()
    ]
    markers += [
        _ball(name, dot.position, dot.colour, DOT_SIZE * radius, picture.stamp)
        for name, dot in dots(picture).items()
    ]
    for marker in markers:
        marker.header.frame_id = picture.frame
    return MarkerArray(markers=markers)


def _strip(
    name: str, points: np.ndarray | None, colour: str, width: float, alpha: float, stamp: int
) -> Any:
    """A line through points, `width` [m]."""
    from geometry_msgs.msg import Point, Vector3
    from visualization_msgs.msg import Marker

    marker = _marker(name, Marker.LINE_STRIP, points is not None, colour, alpha, stamp)
    marker.scale = Vector3(x=width, y=0.0, z=0.0)
    if points is not None:
        marker.points = [Point(x=x, y=y, z=z) for x, y, z in points.tolist()]
    return marker


def _ball(name: str, position: np.ndarray | None, colour: str, width: float, stamp: int) -> Any:
    """A sphere, `width` [m]."""
    from geometry_msgs.msg import Vector3
    from visualization_msgs.msg import Marker

    marker = _marker(name, Marker.SPHERE, position is not None, colour, 1.0, stamp)
    marker.scale = Vector3(x=width, y=width, z=width)
    if position is not None:
        at = marker.pose.position
        at.x, at.y, at.z = position.tolist()
    return marker


def _marker(name: str, kind: int, known: bool, colour: str, alpha: float, stamp: int) -> Any:
    from std_msgs.msg import ColorRGBA, Header
    from visualization_msgs.msg import Marker

    red, green, blue = (value / 255 for value in rgb(colour))
    marker = Marker(
        header=Header(stamp=to_stamp(stamp)),
        ns=name,
        type=kind,
        action=Marker.ADD if known else Marker.DELETE,
        color=ColorRGBA(r=red, g=green, b=blue, a=alpha),
    )
    marker.pose.orientation.w = 1.0
    return marker
