"""The browser page: viser's scene and controls, drawn from a `Picture`. No ROS."""

import html
import io
import queue
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import viser
from viser import uplot

from softcr_models.robot import Robot
from softcr_tools.report_axes import ESTIMATE, MEASURED, REFERENCE, TRUTH
from softcr_tools.viewer.hand import HandControl
from softcr_tools.viewer.picture import WINDOW, Picture
from softcr_tools.viewer.tube import tube
from softcr_tools.viewer.words import (
    HAND_RULES,
    chamber_colour,
    pressures_html,
    safety_html,
    state_html,
)

PLOT_PERIOD = 0.25
"""Between two drawings of plots and words [s]; the rod is drawn on every call."""

TRAIL = 8.0
"""How long the tip's trail is [s]."""

_PLOT_HEIGHT = 215  # pixels
_PANEL_WIDTH = 370  # pixels


@dataclass(frozen=True)
class Switched:
    """A person switched the sliders on or off, on the page of `client`."""

    on: bool
    client: int


@dataclass(frozen=True)
class Slid:
    """A person moved the slider of a chamber to a pressure [Pa]."""

    chamber: int
    pressure: float


class Page:
    """The page and what persons do on it.

    Attributes:
        events: what persons did with the sliders, oldest first.
        url: where a browser finds the page.
    """

    def __init__(
        self, robot: Robot, host: str, port: int, vent: Callable[[], None], with_hand: bool
    ):
        """Serve the page.

        Args:
            robot: whose radius, chambers and limits are drawn.
            host: address to listen on.
            port: must be free.
            vent: called in a thread of its own when somebody presses the button.
            with_hand: whether there are sliders at all.
        """
        self.events: queue.SimpleQueue[Switched | Slid] = queue.SimpleQueue()
        self.url = f"http://{host}:{port}"
        self._robot = robot
        with redirect_stdout(io.StringIO()):  # a banner that cannot be switched off
            self._server = viser.ViserServer(host, port, label="softcr", verbose=False)
        self._scene = _Scene(self._server, robot)
        self._drawn = -np.inf
        gui = self._server.gui
        # sharing would open a tunnel through somebody else's machine
        gui.configure_theme(show_logo=False, show_share_button=False)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(_PANEL_WIDTH)
        self._safety = gui.add_html("")
        button = gui.add_button("Vent", color="red", icon=viser.Icon.WIND)
        button.on_click(lambda _: vent())
        self._answer = gui.add_html("")
        self._state = gui.add_html("")
        self._hand = _HandPanel(self._server, robot, self.events) if with_hand else None
        self._plots = _Plots(self._server, robot)

    def close(self) -> None:
        """Stop serving."""
        with redirect_stdout(io.StringIO()):
            self._server.stop()

    def clients(self) -> set[int]:
        """Who has the page open."""
        return set(self._server.get_clients())

    def say(self, line: str) -> None:
        """Show the answer to a press of the button."""
        _assign(self._answer, "content", _padded(html.escape(line)))

    def draw(
        self, picture: Picture, hand: HandControl, rejected: dict[str, int], now: float
    ) -> None:
        """Bring the page up to date.

        Args:
            picture: what is known.
            hand: whether the sliders are locked.
            rejected: how often messages were refused, by reason.
            now: on the clock of `Picture.received` [s].
        """
        with self._server.atomic():
            self._scene.draw(picture, picture.flows("estimate/rod", now))
            if now - self._drawn < PLOT_PERIOD:
                return
            self._drawn = now
            _assign(self._safety, "content", _padded(safety_html(picture)))
            state = state_html(picture, now, rejected) + pressures_html(picture, now)
            _assign(self._state, "content", _padded(state))
            self._plots.draw(picture)
            if self._hand is not None:
                self._hand.draw(hand)


class _HandPanel:
    """A switch and a slider per chamber."""

    def __init__(
        self, server: viser.ViserServer, robot: Robot, events: "queue.SimpleQueue[Switched | Slid]"
    ):
        self._events = events
        low, high = 1e-3 * robot.pressure_limits.minimum, 1e-3 * robot.pressure_limits.maximum
        with server.gui.add_folder("Pressures by hand"):
            self._why = server.gui.add_html("")
            self._switch = server.gui.add_checkbox("command by hand", False, disabled=True)
            self._switch.on_update(self._switched)
            rest = min(max(0.0, low), high)
            self._sliders = [
                server.gui.add_slider(
                    f"{name} [kPa]", low, high, 0.1 if high - low <= 1e3 else 1.0, rest,
                    disabled=True,
                )
                for name in robot.chamber_names
            ]  # fmt: skip
            for chamber, slider in enumerate(self._sliders):
                slider.on_update(partial(self._slid, chamber))
            server.gui.add_markdown(HAND_RULES)

    def draw(self, hand: HandControl) -> None:
        """Lock, unlock and show the pressures that the sliders stand for."""
        why = hand.blocker or ("commanding" if hand.on else "may be switched on")
        text = f"<b>locked:</b> {html.escape(why)}" if hand.blocker else why
        _assign(self._why, "content", _padded(text))
        _assign(self._switch, "disabled", bool(hand.blocker))
        for slider, wanted in zip(self._sliders, hand.wanted, strict=True):
            _assign(slider, "disabled", not hand.on)
            if not hand.on:  # a slider that is being moved is its owner's
                _assign(slider, "value", 1e-3 * float(wanted))
        _assign(self._switch, "value", hand.on)

    def _switched(self, event: Any) -> None:
        if event.client is not None:  # a person, not `draw`
            self._events.put(Switched(bool(event.target.value), event.client.client_id))

    def _slid(self, chamber: int, event: Any) -> None:
        if event.client is not None:
            self._events.put(Slid(chamber, 1e3 * float(event.target.value)))


class _Plots:
    """Errors, compliance and pressures over the last seconds, in a panel of their own."""

    def __init__(self, server: viser.ViserServer, robot: Robot):
        self._chambers = robot.chamber_names
        panel = server.gui.add_panel()
        with panel.add_tab("Plots"):
            self._error = _plot(
                server, "tip to reference [mm]", [("estimated", ESTIMATE), ("measured", MEASURED)]
            )
            self._compliance = _plot(
                server,
                "bending compliance [rad/(N m m)]",
                [("estimate", ESTIMATE), ("+ 2 sd", "#a8c7fa"), ("- 2 sd", "#a8c7fa")],
            )
            colours = [chamber_colour(index) for index in range(len(self._chambers))]
            self._pressures = _plot(
                server,
                "gauge pressures [kPa], dashed: commanded",
                [*zip(self._chambers, colours, strict=True)],
                [*zip(self._chambers, colours, strict=True)],
            )
        panel.dock_left()
        panel.set_width(_PANEL_WIDTH)

    def draw(self, picture: Picture) -> None:
        """Replace the curves."""
        table = picture.table()
        time = table["time"]
        if not len(time):
            return
        self._error.data = (time, 1e3 * table["estimate_error"], 1e3 * table["measured_error"])
        value, band = table["compliance"], 2.0 * table["compliance_std"]
        self._compliance.data = (time, value, value + band, value - band)
        self._pressures.data = (
            time,
            *(1e-3 * table[f"measured_{chamber}"] for chamber in self._chambers),
            *(1e-3 * table[f"commanded_{chamber}"] for chamber in self._chambers),
        )


class _Scene:
    """Rod, reference, trail, cameras' tip and, in simulation, the true rod; in metres."""

    def __init__(self, server: viser.ViserServer, robot: Robot):
        self._scene = scene = server.scene
        self._radius = 0.5 * robot.outer_diameter
        length = robot.length
        scene.set_up_direction("+z")
        scene.add_grid(
            "/ground", width=4 * length, height=4 * length, cell_size=0.01, section_size=0.05,
            plane="xy",
        )  # fmt: skip
        scene.add_frame("/base", axes_length=0.3 * length, axes_radius=0.008 * length)
        camera = server.initial_camera
        camera.position, camera.look_at = (1.5 * length, -1.7 * length, 1.3 * length), (
            0.0, 0.0, 0.5 * length,
        )  # fmt: skip
        dots = {
            "target": (REFERENCE, 0.16),
            "tip": (ESTIMATE, 0.12),
            "measured": (MEASURED, 0.12),
        }
        self._dots = {
            name: scene.add_icosphere(
                f"/{name}", size * self._radius, color=_rgb(colour), visible=False
            )
            for name, (colour, size) in dots.items()
        }
        self._tube: Any = None
        self._nodes: Any = None
        self._lines: dict[str, Any] = {}

    def draw(self, picture: Picture, flows: bool) -> None:
        """Move everything to where it is; hide what is not known, grey a rod of the past."""
        self._draw_rod(picture)
        if self._tube is not None:
            _assign(self._tube, "color", _rgb(ESTIMATE if flows else MEASURED))
        reference, truth = picture.reference, picture.truth
        wanted = None if reference is None else reference.tip_positions
        shape = None if reference is None else reference.positions[0]
        if shape is not None and not np.isfinite(shape).all():
            shape = None  # only the tip is wanted
        self._place("target", None if wanted is None else wanted[0])
        self._place("tip", picture.estimated_tip)
        self._place("measured", picture.measured_tip)
        self._line("reference", shape, REFERENCE, 3.0)
        self._line("horizon", wanted, REFERENCE, 2.0)
        self._line("truth", None if truth is None else truth.positions, TRUTH, 2.0)
        self._line("trail", _trail(picture), ESTIMATE, 1.5)

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
                "/rod", vertices, faces, color=_rgb(ESTIMATE), opacity=0.45, side="double",
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

    def _place(self, name: str, position: np.ndarray | None) -> None:
        self._dots[name].visible = position is not None
        if position is not None:
            self._dots[name].position = position

    def _line(self, name: str, points: np.ndarray | None, colour: str, pixels: float) -> None:
        known = points is not None and len(points) >= 2
        line = self._lines.get(name)
        if line is not None:
            line.visible = known
        if points is None or not known:
            return
        segments = np.stack([points[:-1], points[1:]], axis=1).astype(np.float32)
        if line is None:
            self._lines[name] = self._scene.add_line_segments(
                f"/{name}", segments, _rgb(colour), thickness=pixels, thickness_units="screen"
            )
        else:
            line.points = segments


def _trail(picture: Picture) -> np.ndarray | None:
    """(k, 3) where the estimated tip has been lately [m]."""
    table = picture.table()
    points = np.stack([table["tip_x"], table["tip_y"], table["tip_z"]], axis=1)
    kept = (table["time"] >= -TRAIL) & np.isfinite(points).all(axis=1)
    return points[kept] if kept.any() else None


def _plot(
    server: viser.ViserServer,
    title: str,
    solid: list[tuple[str, str]],
    dashed: list[tuple[str, str]] | None = None,
) -> Any:
    """An empty plot over the last seconds: (label, colour) of its curves."""
    series: list[uplot.Series] = [uplot.Series(label="s")]
    series += [uplot.Series(label=label, stroke=colour, width=2) for label, colour in solid]
    series += [
        uplot.Series(label=f"{label}, commanded", stroke=colour, width=1, dash=(4.0, 4.0))
        for label, colour in dashed or []
    ]
    return server.gui.add_uplot(
        data=tuple(np.array([-WINDOW, 0.0]) if i == 0 else np.full(2, np.nan)
                   for i in range(len(series))),
        series=tuple(series),
        scales={"x": uplot.Scale(time=False, range=(-WINDOW, 0.0))},
        axes=(uplot.Axis(label="time [s]", labelSize=18, size=28), uplot.Axis(size=48)),
        title=title,
        legend=uplot.Legend(show=False),
        height=_PLOT_HEIGHT,
        padding=(10, 20, 0, 0),
    )  # fmt: skip


def _assign(element: Any, name: str, value: Any) -> None:
    """Change a property of an element only if it changes: each change is sent to every browser."""
    if getattr(element, name) != value:
        setattr(element, name, value)


def _padded(content: str) -> str:
    return f'<div style="padding:0 0.7em">{content}</div>'


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
