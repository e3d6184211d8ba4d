"""The live view in words: HTML of what is known, every foreign text escaped. No ROS, no browser."""

import html
import math

import numpy as np

from softcr_tools.report_axes import ESTIMATE, LIMIT, MEASURED, REFERENCE
from softcr_tools.viewer.arm_picture import ArmPicture
from softcr_tools.viewer.picture import LivePicture, Picture

GOOD = "#188038"
_LEVELS = {0: GOOD, 1: REFERENCE, 2: LIMIT, 3: MEASURED}
_CHAMBER_COLOURS = ("#1a73e8", "#188038", "#b8860b", "#7b3fa0", "#c5221f", "#1f2933")
_MEAN_OVER = 1.0  # [s] errors in words are means

HAND_RULES = (
    "Sliders publish `pressure/command`. They are locked while a controller offers it and while "
    "the valves are armed, and let go by themselves when either happens, when this page is closed, "
    "or when time is simulated. Disarmed valves stay vented whatever is commanded; without valves "
    "(simulation) the rod moves."
)


def safety_html(picture: LivePicture) -> str:
    """The safety state: action, reason and what keeps the valves from being enabled."""
    report = picture.safety
    if report is None and isinstance(picture, ArmPicture):
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


def state_html(picture: LivePicture, now: float, rejected: dict[str, int]) -> str:
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


def values_html(picture: LivePicture, now: float) -> str:
    """What the actuators are asked for and what is measured of them."""
    if isinstance(picture, ArmPicture):
        return tendons_html(picture, now)
    return pressures_html(picture, now) if isinstance(picture, Picture) else ""


def tendons_html(picture: ArmPicture, now: float) -> str:
    """Wanted and measured changes of each tendon's length, and its force."""
    wanted, measured, forces = picture.tendons()
    commands = 1.0 if picture.flows("tendon/command", now) else np.nan
    states = 1.0 if picture.flows("tendon/state", now) else np.nan
    columns = (1e3 * commands * wanted, 1e3 * states * measured, states * forces)
    rows = "".join(
        f"<tr><td>{_escaped(tendon)}</td>"
        + "".join(
            f"<td>{_in_unit(column[index], unit)}</td>"
            for column, unit in zip(columns, ("mm", "mm", "N"), strict=True)
        )
        + "</tr>"
        for index, tendon in enumerate(picture.arm.tendon_names)
    )
    return _table("<tr><td></td><td>wanted</td><td>measured</td><td>force</td></tr>" + rows)


def pressures_html(picture: Picture, now: float) -> str:
    """Measured and commanded gauge pressures of each chamber, in the colours of the plot."""
    columns = [
        picture.pressures(topic) * (1.0 if picture.flows(topic, now) else np.nan)
        for topic in ("pressure/state", "pressure/command")
    ]
    rows = "".join(
        f"<tr><td>{_dot(chamber_colour(index))} {_escaped(chamber)}</td>"
        + "".join(f"<td>{_kpa(column[index])}</td>" for column in columns)
        + "</tr>"
        for index, chamber in enumerate(picture.chambers)
    )
    return _table("<tr><td></td><td>measured</td><td>commanded</td></tr>" + rows)


def chamber_colour(index: int) -> str:
    """Of a chamber's curves and dots."""
    return _CHAMBER_COLOURS[index % len(_CHAMBER_COLOURS)]


def _numbers(picture: LivePicture, now: float) -> str:
    table = picture.table()
    lately = table["time"] >= -_MEAN_OVER
    rows = ""
    for name, topic, what, colour in (
        ("estimate_error", picture.estimate_topic, "estimated tip to reference", ESTIMATE),
        ("measured_error", picture.measured_topic, "measured tip to reference", MEASURED),
    ):
        errors = table[name][lately]
        known = errors[np.isfinite(errors)]
        fresh = len(known) and picture.flows(topic, now)
        text = f"{1e3 * known.mean():.2f} mm" if fresh else "-"
        rows += f"<tr><td>{_dot(colour)} {what}</td><td>{text}</td></tr>"
    return _table(rows + _model_row(picture, now))


def _model_row(picture: LivePicture, now: float) -> str:
    """What the model of the robot is believed to be."""
    name, text = "bending compliance", "-"
    if isinstance(picture, ArmPicture):
        name = "section lengths"
        if picture.shape_flows(now):
            text = ", ".join(f"{1e3 * length:.1f}" for length in picture.rest_lengths) + " mm"
    elif isinstance(picture, Picture) and picture.shape_flows(now):
        value, deviation = picture.compliance
        text = f"{value:.2f} &plusmn; {2 * deviation:.2f} rad/(N m m)"
    return f"<tr><td>{_dot(ESTIMATE)} {name}</td><td>{text}</td></tr>"


def _shown(picture: LivePicture) -> list[tuple[str, str]]:
    """Topics whose flow is told: of those that tell the shape, the ones that were heard."""
    shapes = [t for t in picture.shape_topics if t in picture.received]
    hidden = {*picture.shape_topics} - {*(shapes or picture.shape_topics[:1])}
    return [(topic, name) for topic, name in picture.heard_topics if topic not in hidden]


def _heard(picture: LivePicture, topic: str, name: str, now: float) -> str:
    age = now - picture.received.get(topic, -math.inf)
    if picture.flows(topic, now):
        colour, text = GOOD, "flows"
    elif math.isfinite(age):
        colour, text = LIMIT, f"silent for {age:.0f} s"
    else:
        colour, text = MEASURED, "never heard"
    return f"<tr><td>{_dot(colour)} {name}</td><td>{text}</td></tr>"


def _kpa(pressure: float) -> str:
    return _in_unit(1e-3 * pressure, "kPa")


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
