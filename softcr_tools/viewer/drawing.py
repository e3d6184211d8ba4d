"""What is drawn beside the rod, as lines and dots: for the browser page, and as messages for RViz,
which does not show clouds of float64, as rods travel."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_models.robots.obstacle_files import PlaneObstacle, SphereObstacle
from softcr_runtime.blocks.values import PointForces, Pose
from softcr_runtime.console.figure_style import ESTIMATE, LIMIT, MEASURED, REFERENCE, TRUTH
from softcr_runtime.wire.messages import header, pose_to_message
from softcr_tools.viewer.body import most_parts, parts_of
from softcr_tools.viewer.picture import Picture
from softcr_tools.viewer.shape import Shape

TRAIL = 8.0  # how long the tip's trail is [s]
DOT_SIZE = 0.15  # width of a dot over the rod's radius
ARROW = 0.05
"""Length of a force's arrow [m/N]."""
LONGEST_ARROW = 0.1
"""Of a force's arrow [m]."""
LOAD = "#7b3fa0"
OBSTACLE_OPACITY = 0.35
_PLANE_THICKNESS = 1e-3  # as it is drawn [m]
_MOST_POINTS = 100  # of a line for RViz
_LEAST_FORCE = 1e-4  # that is drawn [N]
_METRES_PER_PIXEL = 5e-4  # markers have no pixels
_ROD_ALPHA = 0.45


class Line(NamedTuple):
    """(k, 3) points [m] in the picture's frame, k >= 2, or None; `width` in pixels."""

    points: np.ndarray | None
    colour: str
    width: float


class Dot(NamedTuple):
    """(3,) position [m] in the picture's frame, or None."""

    position: np.ndarray | None
    colour: str


def lines(picture: Picture) -> dict[str, Line]:
    """Every line by name; those of which nothing is known have no points."""
    reference, truth = picture.reference, picture.truth
    trail = picture.trail(TRAIL)
    tendons = picture.tendons
    ahead = np.empty((0, 3)) if reference is None else reference.tip_positions
    return {
        "reference": Line(picture.reference_shape, REFERENCE, 3.0),
        "horizon": Line(ahead if len(ahead) > 1 else None, REFERENCE, 2.0),
        "truth": Line(None if truth is None else truth.positions, TRUTH, 2.0),
        "trail": Line(trail if len(trail) > 1 else None, ESTIMATE, 1.5),
        **{
            f"tendon {name}": Line(tendons.get(name), MEASURED, 2.0)
            for name in picture.tendon_names
        },
        **_arrows("load", picture.loads, LOAD),
        **_arrows("contact", picture.contact, LIMIT),
        **_arrows("estimated force", picture.tip_force, ESTIMATE),
    }


def _arrows(word: str, forces: PointForces | None, colour: str) -> dict[str, Line]:
    """An arrow for each force, that ends where the force acts; none of a force of zero."""
    if forces is None:
        return {}
    both = zip(forces.points, forces.wrenches[:, :3], strict=True)
    return {
        f"{word} {number}": Line(arrow(point, force), colour, 3.0)
        for number, (point, force) in enumerate(both, start=1)
    }


def arrow(point: np.ndarray, force: np.ndarray) -> np.ndarray | None:
    """(5, 3) shaft and head of an arrow that ends at a point (3,) [m], `ARROW` long for each
    newton, at most `LONGEST_ARROW`; None of a force of zero [N]."""
    size = float(np.linalg.norm(force))
    if not size > _LEAST_FORCE:
        return None
    along = force / size
    length = min(ARROW * size, LONGEST_ARROW)
    across = np.cross(along, np.eye(3)[int(np.argmin(np.abs(along)))])
    across *= 0.12 * length / np.linalg.norm(across)
    neck = point - 0.25 * length * along
    return np.stack((point - length * along, point, neck + across, point, neck - across))


def dots(picture: Picture) -> dict[str, Dot]:
    """Every dot by name; those of which nothing is known have no position."""
    reference = picture.reference
    return {
        "target": Dot(None if reference is None else reference.tip_positions[0], REFERENCE),
        "tip": Dot(picture.estimated_tip[1], ESTIMATE),
        "measured": Dot(picture.measured_tip[1], MEASURED),
    }


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green, blue from 0 to 255 of #rrggbb."""
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue


def path_message(rod: Shape, frame: str) -> Any:
    """nav_msgs/Path of a robot: the poses along its centre line."""
    from nav_msgs.msg import Path

    places = map(Pose, rod.positions, rod.quaternions)
    poses = [pose_to_message(pose, rod.stamp, frame) for pose in places]
    return Path(header=header(rod.stamp, frame), poses=poses)


def markers_message(picture: Picture, radius: float) -> Any:
    """visualization_msgs/MarkerArray of a robot's body, lines and dots; what is not known is taken
    away. A radius [m] is that of dots, and of a body whose parts are not told."""
    from visualization_msgs.msg import Marker, MarkerArray

    shape, strip, ball = picture.estimate, Marker.LINE_STRIP, Marker.SPHERE
    parts = [] if shape is None else parts_of(picture.robot, shape, radius)
    markers = []
    for number in range(most_parts(picture.robot)):
        part = parts[number] if number < len(parts) else None
        points, wide = (None, radius) if part is None else (part.positions, part.radius)
        colour = MEASURED if part is not None and part.rigid else ESTIMATE
        name = f"rod {number}" if number else "rod"
        markers.append(_marker(picture, name, strip, points, colour, 2 * wide))
        markers[-1].color.a = _ROD_ALPHA
    for name, (points, colour, pixels) in lines(picture).items():
        if points is not None and len(points) > _MOST_POINTS:  # each is an object of its own
            step = -(-len(points) // _MOST_POINTS)
            points = points[(len(points) - 1) % step :: step]  # the newest is among them
        markers.append(_marker(picture, name, strip, points, colour, _METRES_PER_PIXEL * pixels))
    for name, (position, colour) in dots(picture).items():
        markers.append(_marker(picture, name, ball, position, colour, DOT_SIZE * radius))
    return MarkerArray(markers=[*markers, *_obstacle_markers(picture)])


def _obstacle_markers(picture: Picture) -> Iterator[Any]:
    """Balls, and patches of planes as wide as the robot is long to either side."""
    from visualization_msgs.msg import Marker

    obstacles, length = picture.obstacles, picture.robot.length
    if obstacles is None:
        return
    for name, each in zip(obstacles.names, obstacles.obstacles, strict=True):
        if isinstance(each, SphereObstacle):
            place, wide = np.array(each.centre), 2 * each.radius
        else:
            (place, turn), wide = plane_patch(each, length), 2 * length
        marker = _marker(picture, f"obstacle {name}", Marker.SPHERE, place, LIMIT, wide)
        marker.color.a = OBSTACLE_OPACITY
        if not isinstance(each, SphereObstacle):
            marker.type, marker.scale.z = Marker.CUBE, _PLANE_THICKNESS
            q = marker.pose.orientation
            q.w, q.x, q.y, q.z = turn.tolist()
        yield marker


def plane_patch(plane: PlaneObstacle, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Where a plane is drawn: (3,) the point of it nearest to the middle of the straight robot with
    a length [m], and the quaternion (4,), w x y z, that turns z into its normal."""
    normal = np.array(plane.normal) / np.linalg.norm(plane.normal)
    middle = np.array([0.0, 0.0, 0.5 * length])
    foot = middle - plane.distance(middle[None])[0] * normal
    turn = Rotation.align_vectors(normal[None], [[0.0, 0.0, 1.0]])[0]
    return foot, turn.as_quat()[[3, 0, 1, 2]]


def _marker(
    picture: Picture, name: str, kind: int, points: np.ndarray | None, colour: str, width: float
) -> Any:
    """A line through points (k, 3), or a sphere at a point (3,); `width` [m]."""
    from geometry_msgs.msg import Point, Vector3
    from std_msgs.msg import ColorRGBA
    from visualization_msgs.msg import Marker

    depth = width if kind == Marker.SPHERE else 0.0
    red, green, blue = (value / 255 for value in rgb(colour))
    marker = Marker(
        header=header(picture.stamp, picture.frame),
        ns=name,
        type=kind,
        action=Marker.DELETE if points is None else Marker.ADD,
        color=ColorRGBA(r=red, g=green, b=blue, a=1.0),
        scale=Vector3(x=width, y=depth, z=depth),
    )
    marker.pose.orientation.w = 1.0
    places = () if points is None else np.atleast_2d(points).tolist()
    marker.points = [Point(x=x, y=y, z=z) for x, y, z in places]
    if kind == Marker.SPHERE and places:
        marker.pose.position = marker.points.pop()
    return marker
