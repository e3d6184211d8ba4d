"""What the terminal and report.html show of a run; how numbers are written."""

import base64
import json
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

MISSING = "-"
SAFETY_SHOWN = 5
"""Transitions on the terminal; report.html has all."""
LOOP_COLUMNS = {
    "Hz": "{rate_hz:1}", "p50 ms": "{p50_ms:2}", "p99 ms": "{p99_ms:2}", "max ms": "{max_ms:2}",
    "cycles": "{cycles:0}", "missed": "{missed_cycles:0}", "rejected": "{rejected_messages:0}",
}  # fmt: skip
"""Beside the name of the node."""
PLANT_WORDS = {
    "exact": "exact in the simulated plant",
    "differs": "differs from the models",
    "unknown": "not told",
}


class KeyFigure(NamedTuple):
    """One number a reader looks for first, and what to know beside it."""

    name: str
    value: str
    note: str


class ReportFigure(NamedTuple):
    """A figure on disk, with what to say about it."""

    path: Path
    title: str
    caption: str


def terminal_table(numbers: dict[str, Any], cards: Sequence[KeyFigure]) -> RenderableType:
    """A run on one screen, for a rich console: the numbers of summary.json, its key figures."""
    figures = Table.grid(padding=(0, 2))
    for name, value, note in cards:
        figures.add_row(Text(name), Text(value, style="bold"), Text(note))
    loops = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    loops.add_column("node")
    for name in LOOP_COLUMNS:
        loops.add_column(name, justify="right")
    for row in _loops(numbers):
        loops.add_row(*map(Text, row))
    plant = [f"{words}: {'; '.join(lines)}" for words, lines in _plant(numbers)]
    return Group(
        Text(_headline(numbers), style="bold"),
        Text(_settings(numbers), style="dim"),
        *(Text(line, style="dim") for line in reversed(plant)),
        *(Text(line, style="bold red") for line in _deaths(numbers)),
        "",
        figures,
        "",
        loops,
        *(Text(f"safety at {line}", style="dim") for line in _safety(numbers)[-SAFETY_SHOWN:]),
        *(Text(line, style="yellow") for line in numbers["problems"]),
    )


def html_page(
    numbers: dict[str, Any], cards: Sequence[KeyFigure], figures: Sequence[ReportFigure]
) -> str:
    """The report as one HTML document, which needs neither a network nor its neighbours.

    Args:
        numbers: of summary.json.
        cards: the numbers a reader looks for first.
        figures: embedded in this order; their files must exist.

    Raises:
        OSError: a figure's file cannot be read.
    """
    images = [
        (title, caption, base64.b64encode(path.read_bytes()).decode("ascii"))
        for path, title, caption in figures
    ]
    plant = "".join(
        f"<p>{words[0].upper()}{words[1:]}:</p>{_list('plant', lines)}"
        for words, lines in _plant(numbers)
    )
    title, safety = escape(_headline(numbers)), _safety(numbers)
    header = "".join(f"<th>{name}</th>" for name in ("node", *LOOP_COLUMNS))
    loops = _each(f"<tr>{'<td>{}</td>' * (1 + len(LOOP_COLUMNS))}</tr>", _loops(numbers))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body><main>
<h1>{title}</h1>
<p>{escape(_settings(numbers))}</p>
{_list("deaths", _deaths(numbers))}
<div class="cards">{_each(_CARD, cards)}</div>
{_list("problems", numbers["problems"])}
{"<h2>Plant</h2>" if plant else ""}{plant}
{"<h2>Safety</h2>" if safety else ""}{_list("safety", safety)}
<h2>Loops</h2>
<div class="panel"><table><tr>{header}</tr>{loops}</table></div>
{_each(_FIGURE, images)}
<h2>All numbers</h2>
<div class="panel"><details><summary>summary.json</summary>
<pre>{escape(json.dumps(numbers, indent=2))}</pre></details></div>
</main></body>
</html>
"""


def key_figure(name: str, value: str, note: str, **numbers: Any) -> KeyFigure:
    """A key figure from templates.

    `{name:1 mm}` stands for a number with one digit and its unit, `{name}` for a list of numbers; a
    dash for None or for an empty list.
    """
    return KeyFigure(name, _filled(value, numbers), _filled(note, numbers))


class _Words(Formatter):
    def format_field(self, value: Any, spec: str) -> str:
        digits, _, unit = spec.partition(" ")
        if not digits:
            return ", ".join(f"{each:.1f}" for each in value) or MISSING
        return MISSING if value is None else f"{value:.{digits}f} {unit}".rstrip()


def _filled(template: str, numbers: dict[str, Any]) -> str:
    return _Words().vformat(template, (), numbers)


# --- what both show -------------------------------------------------------------------------------


def _headline(numbers: dict[str, Any]) -> str:
    parts = [numbers["robot"] or "unknown robot"]
    parts += [f"{name} {numbers[name]}" for name in ("reference", "mode") if numbers[name]]
    if numbers["duration_s"] is not None:
        parts.append(f"{numbers['duration_s']:.1f} s")
    return ", ".join(parts)


def _settings(numbers: dict[str, Any]) -> str:
    """The settings that matter for comparing runs."""
    parts = []
    if numbers["population"] is not None:
        parts.append(f"population {numbers['population']}, horizon {numbers['horizon']}")
    if numbers.get("payload_kg") is not None:
        parts.append(f"payload {numbers['payload_kg']:g} kg")
    if numbers["seed"] is not None:
        parts.append(f"seed {numbers['seed']}")
    return " · ".join(parts)


def _plant(numbers: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """What there is to say of the plant, under each of `PLANT_WORDS`."""
    told = ((words, numbers["plant"][name]) for name, words in PLANT_WORDS.items())
    return [(words, lines) for words, lines in told if lines]


def _deaths(numbers: dict[str, Any]) -> list[str]:
    """Who ended before it was asked to."""
    lines = []
    for death in numbers["node_deaths"]:
        signal, code = death.get("signal"), death.get("exit_code")
        how = f"exit code {code}" if signal is None else f"signal {signal}"
        lines.append(f"node {death.get('node')} died ({how})")
    return lines


def _safety(numbers: dict[str, Any]) -> list[str]:
    return [f"{row['time_s']:.2f} s: {row['what']}" for row in numbers.get("safety", ())]


def _loops(numbers: dict[str, Any]) -> list[list[str]]:
    """The table of loops: plant, estimator and controller first, the others as heard."""
    first = ("simulator", "estimator", numbers["controller"])
    loops = numbers["loops"]
    nodes = sorted(loops, key=lambda node: first.index(node) if node in first else len(first))
    return [_loop(node, loops[node]) for node in nodes]


def _loop(node: str, loop: dict[str, Any]) -> list[str]:
    told = {name: _filled(template, loop) for name, template in LOOP_COLUMNS.items()}
    if (missed := loop["missed_cycles"]) and (cycles := loop["cycles"]):
        told["missed"] += f" ({100 * missed / cycles:.1f} %)"
    return [node, *told.values()]


# --- HTML -----------------------------------------------------------------------------------------


def _each(template: str, rows: Iterable[Sequence[str]]) -> str:
    """A template filled with the texts of every row, which are escaped."""
    return "".join(template.format(*map(escape, row)) for row in rows)


def _list(kind: str, lines: Sequence[str]) -> str:
    items = _each("<li>{}</li>", zip(lines, strict=True))
    return f'<div class="panel {kind}"><ul>{items}</ul></div>' if lines else ""


_CARD = '<div class="card"><span>{}</span><b>{}</b><span>{}</span></div>'
_FIGURE = (
    '<h2>{0}</h2><p>{1}</p><div class="panel"><img alt="{0}" src="data:image/png;base64,{2}"></div>'
)
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; background: #f5f7fa; margin: 0; }
main { max-width: 1080px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 24px; margin: 0; }
h2 { font-size: 17px; margin: 36px 0 4px; }
p { margin: 2px 0 10px; color: #52606d; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(200px, 1fr)); gap: 12px;
         margin: 20px 0; }
.card, .panel { background: #fff; border: 1px solid #e4e7eb; border-radius: 8px; }
.card { padding: 12px 16px; }
.card b { display: block; font-size: 22px; font-weight: 600; }
.card span { color: #52606d; font-size: 13px; }
.panel { padding: 8px 12px; overflow-x: auto; }
.problems { border-left: 4px solid #e8710a; }
.deaths { border-left: 4px solid #c5221f; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 10px; text-align: right; border-bottom: 1px solid #e4e7eb; }
th { color: #52606d; font-weight: 600; font-size: 13px; }
tr:last-child td { border-bottom: none; }
th:first-child, td:first-child { text-align: left; }
img { width: 100%; height: auto; display: block; }
ul { margin: 6px 0; padding-left: 20px; }
pre { font-size: 12px; margin: 6px 0; }
summary { cursor: pointer; color: #52606d; }
"""
