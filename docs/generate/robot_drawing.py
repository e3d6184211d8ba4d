"""A drawing of what the numbers of a robot file mean: frames, caps, chambers, and how it bends."""

import io
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from softcr_models import CosseratRod, Robot, load_robot

_ROBOT = Path(__file__).resolve().parents[2] / "examples" / "upright_four_chambers.yaml"
_PRESSURE = 60e3  # of the chambers at x > 0 in the bent view [Pa]
_BODY, _CAP, _CHAMBER, _AXIS, _INK = "#cfe0f5", "#8a97a6", "#f6c89f", "#c5221f", "#1f2933"


def pages() -> dict[str, Callable[[], str]]:
    """An SVG."""
    return {"robot_drawing.svg": _drawing}


def _drawing() -> str:
    robot = load_robot(_ROBOT)
    settings = {"svg.fonttype": "none", "svg.hashsalt": "softcr", "font.size": 9}
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(10.0, 4.6), layout="constrained")
        side, section, bent = figure.subplots(1, 3, width_ratios=(1.25, 1.0, 1.0))
        _side(side, robot)
        _section(section, robot)
        _bent(bent, robot)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _side(axes: Axes, robot: Robot) -> None:
    """The straight robot, with the lengths that the file gives [mm]."""
    radius = 500.0 * robot.outer_diameter
    pieces = {
        "sensor_to_base_cap": (robot.sensor_to_base_cap, "white"),
        "base_cap_length": (robot.base_cap_length, _CAP),
        "length": (robot.length, _BODY),
        "tip_cap_length": (robot.tip_cap_length, _CAP),
    }
    height = 0.0
    for name, (length, colour) in pieces.items():
        top = height + 1e3 * length
        style = "--" if colour == "white" else "-"
        axes.add_patch(
            Rectangle(
                (-radius, height), 2 * radius, top - height, fc=colour, ec=_INK, lw=0.8, ls=style
            )
        )
        _arrow(axes, (1.5 * radius, height), (1.5 * radius, top), _INK, "<->")
        lift = 8.0 if name.startswith("tip") else -4.0 if name.startswith("sensor") else 0.0
        axes.text(1.8 * radius, (height + top) / 2 + lift, name, va="center", family="monospace")
        height = top
    axes.plot([0, 0], [0, height], ls="-.", lw=0.7, color=_INK)
    _frame(axes, (0.0, 0.0), "base frame = frame of\nthe force-torque sensor")
    _frame(axes, (0.0, height), "tip frame")
    axes.text(0.0, -14.0, "turned in the world by\nbase_orientation", ha="center", va="top")
    axes.set_title("Side view, straight")
    axes.set(xlim=(-5.2 * radius, 6.0 * radius), ylim=(-45.0, height + 35.0))
    axes.set_aspect("equal")
    axes.axis("off")


def _frame(axes: Axes, at: tuple[float, float], name: str) -> None:
    for label, (x, z) in {"x": (24.0, 0.0), "z": (0.0, 24.0)}.items():
        _arrow(axes, at, (at[0] + x, at[1] + z))
        axes.text(at[0] + x, at[1] + z + 2.0, label, color=_AXIS, va="bottom", ha="center")
    axes.text(at[0] - 26.0, at[1], name, ha="right", va="center")


def _arrow(
    axes: Axes,
    start: tuple[float, ...],
    end: tuple[float, ...],
    colour: str = _AXIS,
    style: str = "-|>",
) -> None:
    look = {"arrowstyle": style, "color": colour, "lw": 1.0, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, zorder=1, arrowprops=look)


def _section(axes: Axes, robot: Robot) -> None:
    """The section, seen against z: from the tip towards the base."""
    outer, inner = 500.0 * robot.outer_diameter, 500.0 * robot.inner_diameter
    axes.add_patch(Circle((0, 0), outer, fc=_BODY, ec=_INK, lw=0.8))
    for chamber in robot.chambers:
        centre = 1e3 * chamber.lever_arm * np.array([np.cos(chamber.angle), np.sin(chamber.angle)])
        radius = 1e3 * np.sqrt(chamber.area / np.pi)
        axes.add_patch(Circle(tuple(centre), radius, fc=_CHAMBER, ec=_INK, lw=0.8))
        axes.text(*centre, chamber.name.replace("_", "\n"), ha="center", va="center", size=7)
    axes.add_patch(Circle((0, 0), inner, fc="white", ec=_INK, lw=0.8))
    for label, end in {"x": (1.45 * outer, 0.0), "y": (0.0, 1.45 * outer)}.items():
        _arrow(axes, (0.0, 0.0), end)
        axes.text(1.08 * end[0], 1.08 * end[1], label, color=_AXIS, ha="center", va="center")
    shown = robot.chambers[1]
    turn = np.linspace(0.0, shown.angle, 40)
    circle = 1.2 * outer * np.stack([np.cos(turn), np.sin(turn)])
    axes.plot(*circle, color=_INK, lw=0.8)
    _arrow(axes, tuple(circle[:, -2]), tuple(circle[:, -1]), _INK)
    middle = turn[len(turn) // 2]
    axes.text(1.3 * outer * np.cos(middle), 1.3 * outer * np.sin(middle), "angle",
              family="monospace", va="bottom")  # fmt: skip
    arm = 1e3 * shown.lever_arm * np.array([np.cos(shown.angle), np.sin(shown.angle)])
    axes.plot([0, arm[0]], [0, arm[1]], color=_INK, lw=1.2)
    lowest = 1e3 * robot.chambers[2].lever_arm * np.sin(robot.chambers[2].angle)
    notes = {
        "lever_arm": (0.5 * arm, (-1.75 * outer, 1.4 * outer)),
        "area": ((lowest, lowest), (-1.7 * outer, -1.45 * outer)),
        "inner_diameter": ((0.0, 0.0), (-0.1 * outer, -1.8 * outer)),
        "outer_diameter": ((0.9 * outer, -0.44 * outer), (1.2 * outer, -1.4 * outer)),
    }
    for name, (place, beside) in notes.items():
        axes.annotate(name, place, beside, ha="center", va="center", family="monospace",
                      arrowprops={"arrowstyle": "-", "lw": 0.6})  # fmt: skip
    axes.set_title("Cross-section, z towards you")
    axes.set(xlim=(-2.3 * outer, 2.1 * outer), ylim=(-2.0 * outer, 1.8 * outer))
    axes.set_aspect("equal")
    axes.axis("off")


def _bent(axes: Axes, robot: Robot) -> None:
    """The exact equilibrium with the chambers at x > 0 under pressure: the tip moves away [mm]."""
    rod = CosseratRod(robot, intervals=10)
    places = [chamber.lever_arm * np.cos(chamber.angle) for chamber in robot.chambers]
    inputs = np.where(np.array(places) > 0.0, _PRESSURE, 0.0)
    state = rod.equilibrium(inputs)
    poses = rod.backbone(state, 60)
    line, radius = 1e3 * poses[:, [0, 2], 3], 500.0 * robot.outer_diameter
    side = radius * poses[:, [0, 2], 0]  # the section's x axis in the plane of the drawing
    outline = np.concatenate([line + side, (line - side)[::-1]])
    axes.fill(*outline.T, fc=_BODY, ec=_INK, lw=0.8)
    axes.plot(
        *(line + side * max(places) / (radius / 1e3)).T, color=_CHAMBER, lw=5, solid_capstyle="butt"
    )
    axes.plot(*line.T, ls="-.", lw=0.7, color=_INK)
    axes.plot([-radius, radius], [line[0, 1]] * 2, color=_CAP, lw=4)
    for label, end in {"x": (45.0, 0.0), "z": (0.0, 40.0)}.items():
        _arrow(axes, (0.0, 0.0), end)
        axes.text(1.15 * end[0], 1.1 * end[1], label, color=_AXIS, va="center")
    axes.set_title(f"Both front chambers at {_PRESSURE / 1e3:.0f} kPa")
    x = 1e3 * rod.tip_pose(state)[0, 3]
    axes.text(x / 2, -14.0, f"the tip moves away from the\nchambers, to x = {x:.0f} mm",
              ha="center", va="top")  # fmt: skip
    axes.set(xlim=(1.7 * x, 75.0), ylim=(-45.0, line[:, 1].max() + 35.0))
    axes.set_aspect("equal")
    axes.axis("off")
