"""The page's 3-D scene: the estimated rod as a tube, lines and dots beside it."""

from typing import Any

import numpy as np
import viser
from scipy.interpolate import CubicHermiteSpline
from scipy.spatial.transform import Rotation, Slerp

from softcr_models.robots.kinds import AnyRobot
from softcr_models.robots.obstacle_files import ObstacleFile, SphereObstacle
from softcr_runtime.console.figure_style import ESTIMATE, LIMIT, MEASURED
from softcr_tools.viewer.body import Tube, parts_of
from softcr_tools.viewer.drawing import (
    DOT_SIZE,
    OBSTACLE_OPACITY,
    dots,
    lines,
    plane_patch,
    rgb,
)
from softcr_tools.viewer.picture import Picture
from softcr_tools.viewer.shape import hangs

ALONG = 24  # rings of a tube
AROUND = 24  # corners of a ring


class Scene:
    """Robot, reference, trail, cameras' tip and, in simulation, the true robot; in metres."""

    def __init__(self, server: viser.ViserServer, robot: AnyRobot) -> None:
        length, self._radius, below = robot.length, robot.radius, hangs(robot)
        self._robot = robot
        self._scene = scene = server.scene
        middle = -0.5 * length if below else 0.5 * length
        scene.set_up_direction("+z")
        scene.configure_default_lights(cast_shadow=False)  # half the work of a weak graphics card
        fine = 0.01 if length < 0.3 else 0.05
        scene.add_grid(
            "/ground", width=4 * length, height=4 * length, cell_size=fine, section_size=5 * fine,
            plane="xy", position=(0.0, 0.0, -1.5 * length if below else 0.0),
        )  # fmt: skip
        scene.add_frame("/base", axes_length=0.3 * length, axes_radius=0.008 * length)
        server.initial_camera.position = (1.5 * length, -1.7 * length, middle + 0.8 * length)
        server.initial_camera.look_at = (0.0, 0.0, middle)
        self._tubes: list[Any] = []
        # one cloud: browsers that are slow move whole objects before they redraw shapes
        self._dots = scene.add_point_cloud(
            "/dots", np.empty((0, 3)), np.empty((0, 3), np.uint8),
            point_size=DOT_SIZE * self._radius, point_shape="circle", precision="float32",
        )  # fmt: skip
        self._nodes: Any = None
        self._lines: dict[str, Any] = {}
        self._obstacles: ObstacleFile | None = None
        self._obstacle_shapes: list[Any] = []
        self._length = length

    def draw(self, picture: Picture, flows: bool) -> None:
        """Move everything to where it is; hide what is not known, grey a rod of the past."""
        self._draw_rod(picture, flows)
        self._draw_obstacles(picture.obstacles)
        known = [dot for dot in dots(picture).values() if dot.position is not None]
        self._dots.points = np.array([dot.position for dot in known]).reshape(-1, 3)
        self._dots.colors = np.array([rgb(dot.colour) for dot in known], np.uint8).reshape(-1, 3)
        drawn = lines(picture)
        for name in self._lines.keys() - drawn.keys():
            self._lines[name].visible = False
        for name, (points, colour, width) in drawn.items():
            if name in self._lines:
                self._lines[name].visible = points is not None
            if points is not None:
                self._draw_line(name, np.stack([points[:-1], points[1:]], axis=1), colour, width)

    def _draw_obstacles(self, obstacles: ObstacleFile | None) -> None:
        if obstacles == self._obstacles:
            return
        self._obstacles = obstacles
        for drawn in self._obstacle_shapes:
            drawn.remove()
        self._obstacle_shapes = []
        if obstacles is None:
            return
        for name, each in zip(obstacles.names, obstacles.obstacles, strict=True):
            place = f"/obstacle_{len(self._obstacle_shapes)}"
            shape: Any
            if isinstance(each, SphereObstacle):
                shape = self._scene.add_icosphere(
                    place, each.radius, rgb(LIMIT), subdivisions=4, opacity=OBSTACLE_OPACITY,
                    cast_shadow=False, position=np.array(each.centre),
                )  # fmt: skip
            else:
                middle, turn = plane_patch(each, self._length)
                shape = self._scene.add_box(
                    place, rgb(LIMIT), (2 * self._length, 2 * self._length, 1e-3),
                    opacity=OBSTACLE_OPACITY, cast_shadow=False, position=middle, wxyz=turn,
                )  # fmt: skip
            self._scene.add_label(f"{place}/name", name)  # goes with its obstacle
            self._obstacle_shapes.append(shape)

    def _draw_rod(self, picture: Picture, flows: bool) -> None:
        estimate = picture.estimate
        if self._nodes is not None:
            self._nodes.visible = estimate is not None
        parts = [] if estimate is None else parts_of(self._robot, estimate, self._radius)
        self._draw_tubes(parts, flows)
        if estimate is None:
            return
        turns = estimate.quaternions[:, [3, 0, 1, 2]]
        if self._nodes is None or len(self._nodes.batched_positions) != len(turns):
            self._nodes = self._scene.add_batched_axes(
                "/nodes", turns, estimate.positions,
                axes_length=0.9 * self._radius, axes_radius=0.03 * self._radius,
            )  # fmt: skip
        self._nodes.batched_wxyzs = turns
        self._nodes.batched_positions = estimate.positions

    def _draw_tubes(self, parts: list[Tube], flows: bool) -> None:
        for number, part in enumerate(parts):
            vertices, faces = tube(part.positions, part.quaternions, part.radius)
            if number == len(self._tubes):
                self._tubes.append(
                    self._scene.add_mesh_simple(
                        f"/rod_{number}" if number else "/rod", vertices, faces, opacity=0.45,
                        side="double", cast_shadow=False, receive_shadow=False,
                    )
                )  # fmt: skip
            mesh = self._tubes[number]
            mesh.vertices, mesh.visible = vertices, True
            mesh.color = rgb(ESTIMATE if flows and not part.rigid else MEASURED)
        for mesh in self._tubes[len(parts) :]:
            mesh.visible = False

    def _draw_line(self, name: str, segments: np.ndarray, colour: str, width: float) -> None:
        if name in self._lines:
            self._lines[name].points = segments
        else:
            self._lines[name] = self._scene.add_line_segments(
                f"/{name}", segments, rgb(colour), thickness=width, thickness_units="screen"
            )


def tube(
    positions: np.ndarray, quaternions: np.ndarray, radius: float
) -> tuple[np.ndarray, np.ndarray]:
    """Surface of a rod with a radius [m] from the poses along it: positions (k, 3) [m], two of them
    at least different, and quaternions (k, 4), x y z w, z along the rod.

    Between two poses the centre line is the cubic that has the directions of their z axes, as long
    as the points are apart; the cross-sections turn evenly. A pose at the same place as the one
    before (both sides of the base) is left out.

    Returns:
        (ALONG * AROUND + 2, 3) vertices [m], the last two the middles of both ends, and
        (2 * AROUND * ALONG, 3) corners of triangles, seen from outside in positive sense.
    """
    apart = np.linalg.norm(np.diff(positions, axis=0), axis=1)
    kept = np.concatenate([[True], apart > 1e-9])
    arc = np.concatenate([[0.0], np.cumsum(apart[apart > 1e-9])])
    poses = Rotation.from_quat(quaternions[kept])
    line = CubicHermiteSpline(arc, positions[kept], poses.apply([0.0, 0.0, 1.0]))
    at = np.linspace(0.0, arc[-1], ALONG)
    angles = np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)
    ring = radius * np.stack([np.cos(angles), np.sin(angles), np.zeros(AROUND)], axis=1)
    turned = np.einsum("aij,rj->ari", Slerp(arc, poses)(at).as_matrix(), ring)
    skin = (line(at)[:, np.newaxis] + turned).reshape(-1, 3)
    return np.concatenate([skin, line(at[[0, -1]])]), _FACES


def _faces() -> np.ndarray:
    corners = np.arange(ALONG * AROUND).reshape(ALONG, AROUND)
    here, there = corners, np.roll(corners, -1, axis=1)
    base, tip = np.full(AROUND, ALONG * AROUND), np.full(AROUND, ALONG * AROUND + 1)
    triangles = (
        (here[:-1], there[:-1], there[1:]),
        (here[:-1], there[1:], here[1:]),
        (there[0], here[0], base),
        (here[-1], there[-1], tip),
    )
    return np.concatenate([np.stack(each, axis=-1).reshape(-1, 3) for each in triangles])


_FACES = _faces()
