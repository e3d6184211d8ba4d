"""The live view in words: HTML of what is known, every foreign text escaped. No ROS, no browser."""

import html
import math

import numpy as np

from softcr_runtime.bags.signals import unit_of
from softcr_runtime.figure_style import ESTIMATE, LIMIT, MEASURED, REFERENCE
from softcr_tools.viewer.picture import HEARD, Picture

GOOD = "#188038"
_LEVELS = {0: GOOD, 1: REFERENCE, 2: LIMIT, 3: MEASURED}
_INPUT_COLOURS = ("#1a73e8", "#188038", "#b8860b", "#7b3fa0", "#c5221f", "#1f2933")
_MEAN_OVER = 1.0  # [s] errors in words are means

HAND_RULES = (
    "Sliders publish `pressure/command`. They are locked while a controller offers it and while "
    "the valves are armed, and let go by themselves when either happens, when this page is closed, "
    "or when time is simulated. Disarmed valves stay vented whatever is commanded; without valves "
    "(simulation) the rod moves."
)


def safety_html(picture: Picture) -> str:
    """The safety state: action, reason and what keeps the valves from being enabled."""
    report = picture.safety
    if report is None and not picture.has_chambers:
        return ""  # no node stands between controller and motors
    if report is None:
        return _pill("no valves", MEASURED) + _small("nothing tells safety/state: a simulation?")
    armed = report.values.get("enabled") is True
    blockers = report.values.get("blockers") or []
    lines = _pill("ARMED" if armed else "disarmed", _level(report.level) if armed else MEASURED)
    lines += f" {_escaped(report.message)}"
    if blockers:
        lines += _small("in the way of arming: " + _escaped(", ".join(map(str, blockers))))
    return lines


def state_html(picture: Picture, now: float, rejected: dict[str, int]) -> str:
    """What is heard, how large the errors are and how the nodes feel.

    Args:
        picture: what is known.
        now: on the clock of `Picture.received` [s].
        rejected: how often messages were refused, by reason.
    """
    heard = "".join(_heard(picture, topic, name, now) for topic, name in _shown(picture))
    nodes = "".join(
        f"<tr><td>{_dot(_level(report.level))} {_escaped(name)}</td>"
        f"<td>{_escaped(report.message)}</td></tr>"
        for name, report in sorted(picture.diagnostics.items())
    )
    refused = "".join(
        _small(f"refused {count} x {_escaped(reason)}") for reason, count in rejected.items()
    )
    return (
        f"{_numbers(picture, now)}{_table(heard)}"
        f"{_table(nodes) if nodes else _small('no node tells its health')}{refused}"
    )


def values_html(picture: Picture, now: float) -> str:
    """What the actuators are asked for and what is measured of them, in the colours of the plot."""
    _, scale, unit = input_unit(picture)
    columns = {
        word: (scale * picture.inputs(topic) * (1.0 if picture.flows(topic, now) else np.nan), unit)
        for word, topic in (
            ("measured", picture.topics.state), ("commanded", picture.topics.command)
        )
    }  # fmt: skip
    if (forces := picture.forces()) is not None and picture.flows(picture.topics.state, now):
        columns["force"] = forces, "N"
    rows = "".join(
        f"<tr><td>{_dot(input_colour(index))} {_escaped(name)}</td>"
        + "".join(f"<td>{_in_unit(values[index], of)}</td>" for values, of in columns.values())
        + "</tr>"
        for index, name in enumerate(picture.actuators)
    )
    return _table(f"<tr><td></td>{''.join(f'<td>{word}</td>' for word in columns)}</tr>{rows}")


def input_unit(picture: Picture) -> tuple[str, float, str]:
    """What the inputs of a robot are, a factor from SI and the unit they are shown in."""
    if picture.has_chambers:
        return "gauge pressures", 1e-3, "kPa"
    return "tendons", 1e3, "mm"


def input_colour(index: int) -> str:
    """Of an actuator's curves and dots."""
    return _INPUT_COLOURS[index % len(_INPUT_COLOURS)]


def _numbers(picture: Picture, now: float) -> str:
    table = picture.table()
    lately = table["time"] >= -_MEAN_OVER
    rows = ""
    for kind, what, colour in (
        ("estimate", "estimated tip to reference", ESTIMATE),
        ("measured", "measured tip to reference", MEASURED),
    ):
        errors = table.get(f"{kind}_error", np.empty(0))[lately]
        known = errors[np.isfinite(errors)]
        topics = picture.tip_topics[kind]
        fresh = len(known) and any(picture.flows(topic, now) for topic in topics)
        text = f"{1e3 * known.mean():.2f} mm" if fresh else "-"
        rows += f"<tr><td>{_dot(colour)} {what}</td><td>{text}</td></tr>"
    return _table(rows + _model_row(picture, now))


def _model_row(picture: Picture, now: float) -> str:
    """What the model of the robot is believed to be: its sections' lengths, or a parameter."""
    lengths, parameters = picture.rest_lengths, picture.parameters
    name, text = "bending compliance" if picture.has_chambers else "section lengths", "-"
    if len(lengths):
        text = ", ".join(f"{1e3 * length:.1f}" for length in lengths) + " mm"
    elif picture.parameter in parameters:
        chosen = picture.parameter
        value, deviation = parameters[chosen]
        name, unit = chosen.replace("_", " "), unit_of(chosen).removeprefix("-")
        text = f"{value:.2f} &plusmn; {2 * deviation:.2f} {unit}".rstrip()
    if not picture.shape_flows(now):
        text = "-"
    return f"<tr><td>{_dot(ESTIMATE)} {_escaped(name)}</td><td>{text}</td></tr>"


def _shown(picture: Picture) -> list[tuple[str, str]]:
    """Topics whose flow is told: those that were heard, and of what is expected the others."""
    heard = [topic for topic in HEARD if topic in picture.received]
    told = {_purpose(topic) for topic in heard}
    missing = [each for each in picture.expected if _purpose(each) not in told]
    return [(topic, word) for topic, word in HEARD.items() if topic in (*heard, *missing)]


def _purpose(topic: str) -> str:
    """Estimates take each other's place, and references; other topics have a place of their own."""
    first = topic.partition("/")[0]
    return first if first in ("estimate", "reference") else topic


def _heard(picture: Picture, topic: str, name: str, now: float) -> str:
    age = now - picture.received.get(topic, -math.inf)
    if picture.flows(topic, now):
        colour, text = GOOD, "flows"
    elif math.isfinite(age):
        colour, text = LIMIT, f"silent for {age:.0f} s"
    else:
        colour, text = MEASURED, "never heard"
    return f"<tr><td>{_dot(colour)} {name}</td><td>{text}</td></tr>"


def _in_unit(value: float, unit: str) -> str:
    return f"{value:.1f} {unit}" if math.isfinite(value) else "-"


def _level(level: int) -> str:
    return _LEVELS.get(level, LIMIT)


def _escaped(text: object) -> str:
    return html.escape(str(text))


def _pill(text: str, colour: str) -> str:
    style = f"background:{colour};color:white;border-radius:0.8em;padding:0.1em 0.7em"
    return f'<span style="{style}"><b>{text}</b></span>'


def _dot(colour: str) -> str:
    return f'<span style="color:{colour}">&#9679;</span>'


def _small(text: str) -> str:
    return f'<div style="font-size:85%;opacity:0.8">{text}</div>'


def _table(rows: str) -> str:
    return f'<table style="width:100%;margin:0.4em 0;font-size:85%;border-spacing:0">{rows}</table>'
