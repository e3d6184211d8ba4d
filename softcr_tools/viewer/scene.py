"""The page's 3-D scene: the estimated rod as a tube, lines and dots beside it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import viser

from softcr_runtime.figure_style import ESTIMATE, MEASURED
from softcr_tools.viewer.drawing import DOT_SIZE, Dot, Line, dots, lines, rgb
from softcr_tools.viewer.picture import Picture
from softcr_tools.viewer.tube import tube


@dataclass(frozen=True)
class Size:
    """Of what is drawn: `length`, `radius` [m]; `hangs` below its base, or stands on it."""

    length: float
    radius: float
    hangs: bool = False


class Scene:
    """Robot, reference, trail, cameras' tip and, in simulation, the true robot; in metres."""

    def __init__(self, server: viser.ViserServer, size: Size):
        self._scene = scene = server.scene
        self._radius, length = size.radius, size.length
        middle = -0.5 * length if size.hangs else 0.5 * length
        scene.set_up_direction("+z")
        scene.configure_default_lights(cast_shadow=False)  # half the work of a weak graphics card
        fine = 0.01 if length < 0.3 else 0.05
        scene.add_grid(
            "/ground", width=4 * length, height=4 * length, cell_size=fine, section_size=5 * fine,
            plane="xy", position=(0.0, 0.0, -1.5 * length if size.hangs else 0.0),
        )  # fmt: skip
        scene.add_frame("/base", axes_length=0.3 * length, axes_radius=0.008 * length)
        server.initial_camera.position = (1.5 * length, -1.7 * length, middle + 0.8 * length)
        server.initial_camera.look_at = (0.0, 0.0, middle)
        self._dots: Any = None
        self._tube: Any = None
        self._nodes: Any = None
        self._lines: dict[str, Any] = {}

    def draw(self, picture: Picture, flows: bool) -> None:
        """Move everything to where it is; hide what is not known, grey a rod of the past."""
        self._draw_rod(picture)
        if self._tube is not None:
            colour = rgb(ESTIMATE if flows else MEASURED)
            if self._tube.color != colour:  # each change is sent to every browser
                self._tube.color = colour
        self._draw_dots([dot for dot in dots(picture).values() if dot.position is not None])
        for name, line in lines(picture).items():
            self._draw_line(name, line)

    def _draw_rod(self, picture: Picture) -> None:
        estimate = picture.estimate
        for part in (self._tube, self._nodes):
            if part is not None:
                part.visible = estimate is not None
        if estimate is None:
            return
        vertices, faces = tube(estimate.positions, estimate.quaternions, self._radius)
        turns = estimate.quaternions[:, [3, 0, 1, 2]]
        if self._tube is None:
            self._tube = self._scene.add_mesh_simple(
                "/rod", vertices, faces, color=rgb(ESTIMATE), opacity=0.45, side="double",
                cast_shadow=False, receive_shadow=False,
            )  # fmt: skip
        if self._nodes is None or len(self._nodes.batched_positions) != len(turns):
            self._nodes = self._scene.add_batched_axes(
                "/nodes", turns, estimate.positions,
                axes_length=0.9 * self._radius, axes_radius=0.03 * self._radius,
            )  # fmt: skip
        self._tube.vertices = vertices
        self._nodes.batched_wxyzs = turns
        self._nodes.batched_positions = estimate.positions

    def _draw_dots(self, known: list[Dot]) -> None:
        """As one cloud: browsers that are slow move whole objects before they redraw shapes."""
        points = np.array([dot.position for dot in known], np.float32).reshape(-1, 3)
        colours = np.array([rgb(dot.colour) for dot in known], np.uint8).reshape(-1, 3)
        if self._dots is None:
            self._dots = self._scene.add_point_cloud(
                "/dots",
                points,
                colours,
                point_size=DOT_SIZE * self._radius,
                point_shape="circle",
                precision="float32",
            )
        self._dots.points, self._dots.colors = points, colours

    def _draw_line(self, name: str, line: Line) -> None:
        drawn = self._lines.get(name)
        if drawn is not None:
            drawn.visible = line.points is not None
        if line.points is None:
            return
        segments = np.stack([line.points[:-1], line.points[1:]], axis=1).astype(np.float32)
        if drawn is None:
            self._lines[name] = self._scene.add_line_segments(
                f"/{name}", segments, rgb(line.colour), thickness=line.width,
                thickness_units="screen",
            )  # fmt: skip
        else:
            drawn.points = segments
