"""Pictures of the systems, drawn from their descriptions: who says what to whom.

A column is a node, a row is a topic: a dot where it is published, an arrow head where it is heard.
"""

from collections.abc import Callable
from functools import partial
from html import escape
from pathlib import Path

from generate.nodes import all_nodes
from softcr_models import load_robot
from softcr_models.plugins import load_class
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.blocks.system import Part, System
from softcr_runtime.wire.topics import TOPICS
from softcr_tools.running.hardware_system import HardwareOptions, hardware_system
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

_COLUMN, _ROW, _TOP, _LEFT = 142, 34, 62, 190
_ORDER = (
    "optitrack", "force_torque", "simulator", "valves", "estimator", "cc_estimator", "reference",
    "tip_reference", "controller", "nempc_controller", "rod_mpc", "feedforward", "apcc_controller",
)  # fmt: skip
"""Of the columns: along the way from a measurement to a command."""


_BAG = Path("bag")
_SYSTEMS: dict[str, Callable[[], System]] = {
    "simulation": lambda: simulation_system(SimulationOptions.of_options({}), _BAG),
    "hardware": lambda: hardware_system(HardwareOptions(), _BAG),
    "arm": lambda: simulation_system(
        SimulationOptions.of_options({"robot": "dalenberg_robot1"}), _BAG
    ),
}


def pages() -> dict[str, Callable[[], str]]:
    """An SVG of each system, and a page that shows it."""
    drawings = {f"system_{name}.svg": partial(_drawing, name) for name in _SYSTEMS}
    return drawings | {f"system_{name}.md": partial(_shown, name) for name in _SYSTEMS}


def _shown(name: str) -> str:
    return f"```{{image}} ../_generated/system_{name}.svg\n:alt: nodes and topics of {name}\n```\n"


def _drawing(name: str) -> str:
    system = _SYSTEMS[name]()
    parts = sorted(
        (part for part in system.parts if part.name != "recorder"),
        key=lambda part: _ORDER.index(part.name),
    )
    talks = {part.name: _talk(part) for part in parts}
    heard = {topic for hears, _ in talks.values() for topic in hears}
    said = {topic for _, says in talks.values() for topic in says}
    columns = {part.name: _LEFT + _COLUMN * (i + 0.5) for i, part in enumerate(parts)}
    rows = [topic for topic in TOPICS if topic in heard & said]
    rows += [topic for topic in TOPICS if topic in said - heard]
    height = _TOP + _ROW * len(rows) + 16
    shapes = [
        f'<line x1="{x}" y1="{_TOP - 8}" x2="{x}" y2="{height - 10}" stroke="#b9c6d6"/>'
        for x in columns.values()
    ]
    shapes += [_box(part, columns[part.name]) for part in parts]
    shapes += [
        _topic(topic, _TOP + _ROW * (i + 0.6), columns, talks) for i, topic in enumerate(rows)
    ]
    width = _LEFT + _COLUMN * len(parts) + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="13">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def _talk(part: Part) -> tuple[set[str], set[str]]:
    """Topics that a part hears and says."""
    if part.is_block:
        kind: type[BlockBase] = load_class(part.runs, "block", BlockBase)
        settings = kind.settings_of(part.parameters)
        block = kind(load_robot(settings.robot, kind.kinds), settings)
        return {each.topic for each in block.inputs}, set(block.outputs)
    node = next(each for each in all_nodes() if each.name == part.name)
    return {name for name, _ in node.inputs}, set(node.outputs)


def _box(part: Part, x: float) -> str:
    width = _COLUMN - 12
    return (
        f'<rect x="{x - width / 2}" y="8" width="{width}" height="46" rx="8" fill="#e8f1fb" '
        'stroke="#2f6db3" stroke-width="1.5"/>'
        f'<text x="{x}" y="29" text-anchor="middle" font-weight="bold">{escape(part.name)}</text>'
        f'<text x="{x}" y="45" text-anchor="middle" fill="#555" font-size="11">'
        f"{escape(part.runs.rpartition(':')[2].rpartition('.')[2])}</text>"
    )


def _topic(
    topic: str, y: float, columns: dict[str, float], talks: dict[str, tuple[set[str], set[str]]]
) -> str:
    says = [columns[name] for name, (_, said) in talks.items() if topic in said]
    hears = [columns[name] for name, (heard, _) in talks.items() if topic in heard]
    ends = says + hears
    colour = "#2f6db3" if hears else "#8a8a8a"
    shapes = [
        f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end" fill="{colour}">'
        f"{escape(topic)}</text>",
        f'<line x1="{min(ends)}" y1="{y}" x2="{max(ends)}" y2="{y}" stroke="{colour}" '
        'stroke-width="2"/>',
    ]
    shapes += [f'<circle cx="{x}" cy="{y}" r="5" fill="{colour}"/>' for x in says]
    for x in hears:
        side = -9 if any(speaker < x for speaker in says) else 9
        shapes.append(
            f'<path d="M{x} {y}L{x + side} {y - 6}L{x + side} {y + 6}z" fill="{colour}"/>'
        )
    return "".join(shapes)
