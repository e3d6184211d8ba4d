"""The live view in words: HTML of what is known, every foreign text escaped. No ROS, no browser."""

import math
from collections.abc import Iterable
from html import escape

import numpy as np

from softcr_runtime.bags.signals import unit_of
from softcr_runtime.console.figure_style import ESTIMATE, LIMIT, MEASURED, REFERENCE
from softcr_runtime.wire.safety_state import SafetyState
from softcr_tools.viewer.drawing import LOAD
from softcr_tools.viewer.picture import HEARD, Picture

GOOD = "#188038"
_LEVELS = {0: GOOD, 1: REFERENCE, 3: MEASURED}
_INPUT_COLOURS = ("#1a73e8", "#188038", "#b8860b", "#7b3fa0", "#c5221f", "#1f2933")
_SILENT = 3.0  # without a status, of which there is one a second [s]
_MEAN_OVER = 1.0  # [s] errors in words are means

HAND_RULES = (
    "Sliders publish `pressure/command`. They are locked while a controller offers it, or "
    "`pressure/plan`, and while the valves are armed, and let go by themselves when either "
    "happens, when this page is closed, or when time is simulated. Disarmed valves stay vented "
    "whatever is commanded; without valves (simulation) the rod moves."
)


def latched(picture: Picture) -> str:
    """What a vent has latched, in words; empty for nothing."""
    return "" if picture.safety is None else SafetyState.of(picture.safety).latched


def safety_html(picture: Picture) -> str:
    """The safety state: action, reason, latch and what keeps the valves from being enabled."""
    report = picture.safety
    if report is None:  # between an arm's controller and its motors no node stands
        silence = _pill("no valves", MEASURED) + _small(
            "no valves publish their state; a simulation has none"
        )
        return silence if picture.has_valves else ""
    state, colour = SafetyState.of(report), _LEVELS.get(report.level, LIMIT)
    lines = _pill("disarmed", MEASURED)
    if state.enabled:
        lines = _pill("ARMED", colour)
    elif state.testing:
        lines = _pill("ARMING TEST", colour)
    elif state.latch:
        lines = _pill(f"LATCHED {escape(state.latch)}", LIMIT)
    lines += f" {escape(report.message)}"
    if state.blockers:
        lines += _small("in the way of arming: " + escape(", ".join(state.blockers)))
    if state.counts and not state.latch and not state.enabled:
        lines += _small("good samples: " + escape(_counted(state.counts)))
    if state.owner:
        lines += _small(f"commanded by {escape(state.owner)}")
    return lines


def _health(picture: Picture, name: str, now: float) -> tuple[str, str]:
    """What a node said of itself last, or for how long it has said nothing."""
    report, age = picture.diagnostics[name], now - picture.told.get(name, now)
    if age > _SILENT:
        return _dotted(MEASURED, name), f"silent for {age:.0f} s"
    return _dotted(_LEVELS.get(report.level, LIMIT), name), escape(report.message)


def _counted(counts: dict[str, tuple[int, int]]) -> str:
    return ", ".join(f"{name} {count} of {needed}" for name, (count, needed) in counts.items())


def state_html(picture: Picture, now: float, rejected: dict[str, int]) -> str:
    """What is heard, how large the errors are and how the nodes feel; `now` on the clock of
    `Picture.received` [s], `rejected`: how often messages were refused, by reason."""
    health = [_health(picture, name, now) for name in sorted(picture.diagnostics)]
    errors = (_error(picture, kind, now) for kind in ("estimate", "measured"))
    return "".join((
        _table([*errors, _model(picture, now), *_forces(picture)]),
        _table(_flow(picture, topic, now) for topic in _shown(picture)),
        _table(health) if health else _small("no node reports its health"),
        *(_small(f"refused {count} x {escape(reason)}") for reason, count in rejected.items()),
    ))  # fmt: skip


def values_html(picture: Picture, now: float) -> str:
    """What the actuators are asked for and what is measured of them, in the colours of the plot."""
    topics, (_, scales, units) = picture.topics, input_units(picture)
    columns = {
        word: (topic, scales * picture.inputs(topic), units)
        for word, topic in (("measured", topics.state), ("commanded", topics.sent))
    }
    if (forces := picture.forces()) is not None and picture.flows(topics.state, now):
        columns["force"] = topics.state, forces, ["N"] * len(forces)
    rows = [
        (
            _dotted(input_colour(index), name),
            *(
                _in_unit(values[index] if picture.flows(topic, now) else math.nan, of[index])
                for topic, values, of in columns.values()
            ),
        )
        for index, name in enumerate(picture.actuators)
    ]
    return _table([("", *columns), *rows])


def input_units(picture: Picture) -> tuple[dict[str, str], np.ndarray, list[str]]:
    """What the inputs of a robot are, by unit, factors (m,) from SI and the units (m,) they are
    shown in."""
    words = {each.unit: f"{each.quantity}s" for each in picture.inputs_shown}
    scales = np.array([each.scale for each in picture.inputs_shown])
    return words, scales, [each.unit for each in picture.inputs_shown]


def input_colour(index: int) -> str:
    """Of an actuator's curves and dots."""
    return _INPUT_COLOURS[index % len(_INPUT_COLOURS)]


def _error(picture: Picture, kind: str, now: float) -> tuple[str, str]:
    table = picture.table()
    errors = table[f"{kind}_error"][table["time"] >= -_MEAN_OVER]
    known = errors[np.isfinite(errors)]
    fresh = len(known) and any(picture.flows(topic, now) for topic in picture.tip_topics[kind])
    what, colour = ("estimated", ESTIMATE) if kind == "estimate" else ("measured", MEASURED)
    text = f"{1e3 * known.mean():.2f} mm" if fresh else "-"
    return _dotted(colour, f"{what} tip to reference"), text


def _model(picture: Picture, now: float) -> tuple[str, str]:
    """What the model of the robot is believed to be: a parameter, or several of one name."""
    shown = picture.parameters_shown
    found = [picture.parameters[name] for name in shown if name in picture.parameters]
    if not found or not picture.shape_flows(now):
        return _dotted(ESTIMATE, "model"), "-"
    unit = unit_of(shown[0]).removeprefix("-")
    if len(shown) > 1:
        text = ", ".join(f"{value:.4g}" for value, _ in found)
    else:
        text = f"{found[0][0]:.2f} &plusmn; {2 * found[0][1]:.2f}"
    name = shown[0].rstrip("_0123456789") if len(shown) > 1 else shown[0]
    return _dotted(ESTIMATE, name.replace("_", " ")), f"{text} {unit}".rstrip()


def _forces(picture: Picture) -> list[tuple[str, str]]:
    """The largest load on the simulated robot, the total force of its obstacles, and the force that
    is estimated at the tip."""
    rows = []
    if picture.loads is not None:
        largest = np.linalg.norm(picture.loads.wrenches[:, :3], axis=1).max(initial=0.0)
        rows.append((_dotted(LOAD, "largest load"), f"{largest:.2f} N"))
    if picture.contact is not None:
        total = np.linalg.norm(picture.contact.wrenches[:, :3].sum(axis=0))
        rows.append((_dotted(LIMIT, "contact"), f"{total:.2f} N"))
    if picture.tip_force is not None:
        estimated = np.linalg.norm(picture.tip_force.wrenches[0, :3])
        told = f"{estimated:.2f} N" if estimated > 0.0 else "none"
        rows.append((_dotted(ESTIMATE, "estimated force at the tip"), told))
    return rows


def _shown(picture: Picture) -> list[str]:
    """Topics whose flow is told: those that were heard, and of what is expected the others."""
    heard = [topic for topic in HEARD if topic in picture.received]
    told = {_purpose(topic) for topic in heard}
    missing = [topic for topic in picture.expected if _purpose(topic) not in told]
    return [topic for topic in HEARD if topic in (*heard, *missing)]


def _purpose(topic: str) -> str:
    """Estimates take each other's place, and references; other topics have a place of their own."""
    first = topic.partition("/")[0]
    return first if first in ("estimate", "reference") else topic


def _flow(picture: Picture, topic: str, now: float) -> tuple[str, str]:
    if picture.flows(topic, now):
        return _dotted(GOOD, HEARD[topic]), "flows"
    if topic in picture.received:
        age = now - picture.received[topic]
        return _dotted(LIMIT, HEARD[topic]), f"silent for {age:.0f} s"
    return _dotted(MEASURED, HEARD[topic]), "never received"


def _in_unit(value: float, unit: str) -> str:
    return f"{value:.1f} {unit}" if math.isfinite(value) else "-"


def _pill(text: str, colour: str) -> str:
    style = f"background:{colour};color:white;border-radius:0.8em;padding:0.1em 0.7em"
    return f'<span style="{style}"><b>{text}</b></span>'


def _dotted(colour: str, text: str) -> str:
    return f'<span style="color:{colour}">&#9679;</span> {escape(text)}'


def _small(text: str) -> str:
    return f'<div style="font-size:85%;opacity:0.8">{text}</div>'


def _table(rows: Iterable[Iterable[str]]) -> str:
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<table style="width:100%;margin:0.4em 0;font-size:85%;border-spacing:0">{lines}</table>'
    )
