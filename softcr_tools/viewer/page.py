"""The browser page: viser's scene and controls, drawn from a `Picture`. No ROS."""

import html
import io
import queue
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import viser

from softcr_models.robots.kinds import AnyRobot, ShownInput
from softcr_runtime.wire.topics import topics_of
from softcr_tools.viewer.door import Door
from softcr_tools.viewer.hand import HandControl
from softcr_tools.viewer.picture import Picture
from softcr_tools.viewer.plots import PANEL_WIDTH, Plots
from softcr_tools.viewer.scene import Scene
from softcr_tools.viewer.words import HAND_RULES, latched, safety_html, state_html, values_html

SCENE_PERIOD = 1 / 15  # between two drawings of the rod, at least [s]
PLOT_PERIOD = 0.25  # between two drawings of plots and words, at least [s]
_STEPS = (1.0, 0.001), (10.0, 0.01), (1e3, 0.1)  # range of a slider, at most, and its step


class Switched(NamedTuple):
    """A person switched the sliders on or off, on the page of `client`."""

    on: bool
    client: int


class Slid(NamedTuple):
    """A person moved the slider of an actuator to a pressure [Pa] or a tension [N]."""

    chamber: int
    pressure: float


Events = queue.SimpleQueue[Switched | Slid]


class Page:
    """The page, and what persons do with its sliders: `events`. A browser is let in by `url`, which
    holds the token of this run."""

    def __init__(
        self,
        robot: AnyRobot,
        host: str,
        port: int,
        vent: Callable[[], None],
        with_hand: bool,
        reset: Callable[[], None] = lambda: None,
    ):
        """Serve the page of a robot on an address and a free port; an arm has neither the buttons,
        which call `vent` and `reset` in a thread of their own, nor sliders."""
        self.events: Events = queue.SimpleQueue()
        door, place = Door(port), f"[{host}]" if ":" in host else host
        self.url = f"http://{place}:{port}/?token={door.token}"
        # a banner cannot be switched off
        with redirect_stdout(io.StringIO()), door.installed():
            self._server = viser.ViserServer(host, port, label="softcr", verbose=False)
        self._vent, self._reset, self._with_hand = vent, reset, with_hand
        self._latched = False
        self.show(robot)

    def show(self, robot: AnyRobot) -> None:
        """Make the page that of another robot, whose numbers of the past are none of this one's."""
        self._server.scene.reset()
        self._server.gui.reset()
        self._scene = Scene(self._server, robot)
        self._scene_drawn = self._plots_drawn = -np.inf
        gui = self._server.gui
        # sharing would open a tunnel through somebody else's machine
        gui.configure_theme(show_logo=False, show_share_button=False)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(PANEL_WIDTH)
        self._safety = gui.add_html("")
        self._hand: _HandPanel | None = None
        self._answer: Any = None
        self._reset_button: Any = None
        has_valves = "safety/state" in topics_of(robot.type)
        if has_valves:
            button = gui.add_button("Vent", color="red", icon=viser.Icon.WIND)
            button.on_click(lambda _: self._vent())
            self._reset_button = gui.add_button("Reset the latch", disabled=True)
            self._reset_button.on_click(lambda _: self._pressed_reset())
            self._answer = gui.add_html("")
        self._state = gui.add_html("")
        if has_valves and self._with_hand:
            self._hand = _HandPanel(self._server, robot, self.events)
        self._plots = Plots(self._server)

    def close(self) -> None:
        """Stop serving."""
        with redirect_stdout(io.StringIO()):
            self._server.stop()

    def clients(self) -> set[int]:
        """Who has the page open."""
        return set(self._server.get_clients())

    def say(self, line: str) -> None:
        """Show the answer to a press of a button."""
        if self._answer is not None:
            self._answer.content = _padded(html.escape(line))

    def draw(
        self, picture: Picture, hand: HandControl, rejected: dict[str, int], now: float
    ) -> None:
        """Bring the page up to date; viser sends the browsers what differs. `rejected`: how often
        messages were refused, by reason; `now` on the clock of `Picture.received` [s]."""
        if now - self._scene_drawn < SCENE_PERIOD:
            return
        self._scene_drawn = now
        with self._server.atomic():
            self._scene.draw(picture, picture.shape_flows(now))
            if now - self._plots_drawn < PLOT_PERIOD:
                return
            self._plots_drawn = now
            self._safety.content = _padded(safety_html(picture))
            if self._reset_button is not None:
                self._latched = bool(latched(picture))
                self._reset_button.disabled = not self._latched
            state = state_html(picture, now, rejected) + values_html(picture, now)
            self._state.content = _padded(state)
            self._plots.draw(picture, now)
            if self._hand is not None:
                self._hand.draw(hand)

    def _pressed_reset(self) -> None:
        if self._latched:  # `disabled` holds in the browser alone
            self._reset()


class _HandPanel:
    """A switch and a slider per actuator."""

    def __init__(self, server: viser.ViserServer, robot: AnyRobot, events: Events):
        self._events, gui = events, server.gui
        self._inputs = robot.shown_inputs
        quantities = dict.fromkeys(f"{each.quantity}s" for each in self._inputs)
        with gui.add_folder(f"{' and '.join(quantities)} by hand".capitalize()):
            self._why = gui.add_html("")
            self._switch: Any = gui.add_checkbox("command by hand", False, disabled=True)
            self._switch.on_update(self._switched)
            self._sliders: list[Any] = [_slider(gui, each) for each in self._inputs]
            for chamber, slider in enumerate(self._sliders):
                slider.on_update(partial(self._slid, chamber))
            gui.add_markdown(HAND_RULES)

    def draw(self, hand: HandControl) -> None:
        """Lock, unlock and show the pressures that the sliders stand for."""
        text = "commanding" if hand.on else "may be switched on"
        if hand.blocker:
            text = f"<b>locked:</b> {html.escape(hand.blocker)}"
        self._why.content = _padded(text)
        self._switch.disabled = bool(hand.blocker)
        rows = zip(self._sliders, self._inputs, hand.wanted.tolist(), strict=True)
        for slider, shown, wanted in rows:
            slider.disabled = not hand.on
            if not hand.on:  # a slider that is being moved is its owner's
                slider.value = shown.scale * wanted
        self._switch.value = hand.on

    def _switched(self, event: Any) -> None:
        if event.client is not None:  # a person, not `draw`
            self._events.put(Switched(bool(event.target.value), event.client.client_id))

    def _slid(self, chamber: int, event: Any) -> None:
        if event.client is not None:
            value = float(event.target.value) / self._inputs[chamber].scale
            self._events.put(Slid(chamber, value))


def _slider(gui: Any, shown: ShownInput) -> Any:
    low, high = shown.scale * shown.low, shown.scale * shown.high
    step = next((step for most, step in _STEPS if high - low <= most), 1.0)
    label, rest = f"{shown.name} [{shown.unit}]", min(max(0.0, low), high)
    return gui.add_slider(label, low, high, step, rest, disabled=True)


def _padded(content: str) -> str:
    return f'<div style="padding:0 0.7em">{content}</div>'
