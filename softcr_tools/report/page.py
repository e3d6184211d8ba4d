"""What the terminal and report.html show of a run; how numbers are written."""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Formatter
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from softcr_runtime.console.terminal import harmless

MISSING = "-"
SAFETY_SHOWN = 5  # transitions on the terminal; report.html has all
CHANGES_SHOWN = 5  # of parameters, in the same way
LOOP_COLUMNS = {
    "Hz": "{rate_hz:1}", "p50 ms": "{p50_ms:2}", "p99 ms": "{p99_ms:2}", "max ms": "{max_ms:2}",
    "cycles": "{cycles:0}", "missed": "{missed_cycles:0}", "rejected": "{rejected_messages:0}",
    "retried": "{retried_predictions:0}",
}  # fmt: skip
PLANT_WORDS = {
    "exact": "exact in the simulated plant",
    "differs": "differs from the models",
    "unknown": "not told",
}


KeyFigure = tuple[str, ...]  # name, value and note of what a reader looks for first
ReportFigure = tuple[Path, str, str]  # a figure on disk, its title and its caption


@dataclass(frozen=True)
class Summary:
    """One run: the content of `summary.json`, see the sections for the keys, and key figures."""

    numbers: dict[str, Any]
    figures: Sequence[KeyFigure]

    def __getitem__(self, key: str) -> Any:
        return self.numbers[key]

    @property
    def is_good(self) -> bool:
        """See `report.verdict`."""
        return bool(self["verdict"]["good"])

    def table(self) -> RenderableType:
        """The summary on one screen, to be printed on a rich console."""
        figures = Table.grid(padding=(0, 2))
        for place, (name, value, note) in enumerate(self.figures):
            style = "bold red" if self._is_bad(place) else "bold"
            shown = Text.assemble((harmless(value), style), f"   {harmless(note)}")
            figures.add_row(_text(name), shown)
        loops = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
        loops.add_column("node")
        for name in LOOP_COLUMNS:
            loops.add_column(name, justify="right")
        for row in self._loops():
            loops.add_row(*map(_text, row))
        plant = [f"{words}: {'; '.join(lines)}" for words, lines in self._plant()]
        safety = [f"safety at {line}" for line in self._safety()[-SAFETY_SHOWN:]]
        changes = [f"changed at {line}" for line in self._told("parameter_changes")]
        return Group(
            _text(self["verdict"]["line"], style="bold green" if self.is_good else "bold red"),
            _text(self._headline(), style="bold"),
            *(_text(line, style="dim") for line in (*self._settings(), *reversed(plant))),
            *(_text(line, style="bold red") for line in self._deaths()),
            "",
            figures,
            *(_text(line, style="yellow") for line in self["problems"]),
            "",
            loops,
            *(_text(line, style="dim") for line in safety),
            *(_text(line, style="dim") for line in changes[-CHANGES_SHOWN:]),
        )

    def html(
        self, figures: Sequence[ReportFigure], code: Sequence[tuple[str, str, str]] = ()
    ) -> str:
        """The report with its figures as one HTML document, which needs neither a network nor its
        neighbours, and with the code that the run was made with: where it is from, its digest
        and its text. OSError: a figure's file cannot be read."""
        plant = "".join(
            f"<p>{words[0].upper()}{words[1:]}:</p>{_list('plant', lines)}"
            for words, lines in self._plant()
        )
        safety = _list("safety", self._safety())
        changes = _list("changes", self._told("parameter_changes"))
        row = f"<tr>{'<td>{}</td>' * (1 + len(LOOP_COLUMNS))}</tr>"
        header = row.replace("td>", "th>").format("node", *LOOP_COLUMNS)
        images = (
            (title, caption, base64.b64encode(path.read_bytes()).decode("ascii"))
            for path, title, caption in figures
        )
        words = self["plant_in_words"]
        title = escape(self._headline() + (f", plant {words}" if words else ""))
        cards = _each(_CARD, ((self._card(k), *each) for k, each in enumerate(self.figures)))
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
<p class="{"good" if self.is_good else "deaths"}">{escape(self["verdict"]["line"])}</p>
{"".join(f"<p>{escape(line)}</p>" for line in (*self._settings(), *self._origin()))}
{_list("deaths", self._deaths())}
<div class="cards">{cards}</div>
{_list("problems", self["problems"])}
{"<h2>Plant</h2>" if plant else ""}{plant}
{"<h2>Safety</h2>" if safety else ""}{safety}
{"<h2>Parameters changed during the run</h2>" if changes else ""}{changes}
<h2>Loops</h2>
<div class="panel"><table>{header}{_each(row, self._loops())}</table></div>
{_each(_FIGURE, images)}
{"<h2>Code of the run</h2>" if code else ""}{_each(_CODE, code)}
<h2>All numbers</h2>
<div class="panel"><details><summary>summary.json</summary>
<pre>{escape(json.dumps(self.numbers, indent=2))}</pre></details></div>
</main></body>
</html>
"""

    def _is_bad(self, place: int) -> bool:
        """Whether a figure is that of the tip's error, and the robot did not follow."""
        return place == 0 and not self["verdict"]["follows"]

    def _card(self, place: int) -> str:
        return "card bad" if self._is_bad(place) else "card"

    def _headline(self) -> str:
        """What runs differ in: robot, controller, reference, pace and length."""
        parts = [self["robot"] or "unknown robot"]
        parts += [
            f"{name} {self[name]}" for name in ("controller", "reference", "mode") if self[name]
        ]
        if self["duration_s"] is not None:
            parts.append(f"{self['duration_s']:.1f} s")
        return ", ".join(parts)

    def _origin(self) -> list[str]:
        """When, by what and by which command the run was made, as far as it was told."""
        started = str(self["started"] or "").partition(".")[0].replace("T", " ")
        about = [f"started {started} UTC"] * bool(started)
        about += [f"softcr {self['softcr']}"] * bool(self["softcr"])
        return [line for line in (", ".join(about), self["command"]) if line]

    def _settings(self) -> list[str]:
        """The settings that matter for comparing runs, in a line; none where none are told."""
        templates = {
            "population": "population {population}, horizon {horizon}",
            "candidates_least": "candidates evaluated: median {candidates_median:.0f}, "
            "least {candidates_least:.0f}",
            "payload_kg": "payload {payload_kg:g} kg",
            "seed": "seed {seed}",
        }
        told = (text for name, text in templates.items() if self.numbers.get(name) is not None)
        line = " · ".join(text.format(**self.numbers) for text in told)
        return [line] if line else []

    def _plant(self) -> list[tuple[str, list[str]]]:
        """What there is to say of the plant, under each of `PLANT_WORDS`."""
        return [(word, self["plant"][n]) for n, word in PLANT_WORDS.items() if self["plant"][n]]

    def _deaths(self) -> list[str]:
        """Who ended before it was asked to."""
        lines = []
        for death in self["node_deaths"]:
            signal, code = death.get("signal"), death.get("exit_code")
            how = f"exit code {code}" if signal is None else f"signal {signal}"
            lines.append(f"node {death.get('node')} died ({how})")
        return lines

    def _safety(self) -> list[str]:
        return self._told("safety")

    def _told(self, key: str) -> list[str]:
        """Rows of what happened when."""
        return [f"{row['time_s']:.2f} s: {row['what']}" for row in self.numbers.get(key, ())]

    def _loops(self) -> list[list[str]]:
        """The table of loops: plant, estimator and controller first, the others as heard."""
        first = {"simulator": 0, "estimator": 1, self["controller"]: 2}
        rows = []
        for node in sorted(self["loops"], key=lambda node: first.get(node, 3)):
            loop = self["loops"][node]
            told = dict(zip(LOOP_COLUMNS, filled(loop, *LOOP_COLUMNS.values()), strict=True))
            if (missed := loop["missed_cycles"]) and (cycles := loop["cycles"]):
                told["missed"] += f" ({100 * missed / cycles:.1f} %)"
            rows.append([node, *told.values()])
        return rows


def _text(words: str, style: str = "") -> Text:
    return Text(harmless(words), style=style)


class _Words(Formatter):
    def format_field(self, value: Any, spec: str) -> str:
        digits, _, unit = spec.partition(" ")
        if isinstance(value, str):
            return value
        if not digits:
            return ", ".join(f"{each:.1f}" for each in value) or MISSING
        if value is None:
            return MISSING
        text = f"{value:.{digits}f}"
        if float(text) == 0.0:
            text = text.removeprefix("-")
        return f"{text} {unit}".rstrip()


def filled(numbers: Mapping[str, Any], *templates: str) -> list[str]:
    """Templates with numbers in their places: `{name:1 mm}` stands for a number with one digit and
    its unit, `{name}` for a list of numbers or for words; None and an empty list become a dash. Of
    several clauses with a semicolon between them those are left out whose numbers are all None."""
    return ["; ".join(_clauses(template, numbers)) or MISSING for template in templates]


def _clauses(template: str, numbers: Mapping[str, Any]) -> Iterator[str]:
    clauses = template.split("; ")
    for clause in clauses:
        fields = [name for _, name, _, _ in Formatter().parse(clause) if name]
        if len(clauses) == 1 or not fields or any(numbers[name] is not None for name in fields):
            yield _Words().vformat(clause, (), numbers)


def times(count: int) -> str:
    """How often something came, in words."""
    return "once" if count == 1 else f"{count} times"


def _each(template: str, rows: Iterable[Sequence[str]]) -> str:
    """A template filled with the texts of every row, which are escaped."""
    return "".join(template.format(*map(escape, row)) for row in rows)


def _list(kind: str, lines: Sequence[str]) -> str:
    items = _each("<li>{}</li>", zip(lines, strict=True))
    return f'<div class="panel {kind}"><ul>{items}</ul></div>' if lines else ""


_CARD = '<div class="{}"><span>{}</span><b>{}</b><span>{}</span></div>'
_CODE = '<div class="panel"><details><summary>{}, SHA-256 {}</summary><pre>{}</pre></details></div>'
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
.bad { border-left: 4px solid #c5221f; }
.bad b { color: #c5221f; }
.card b { display: block; font-size: 22px; font-weight: 600; }
.card span { color: #52606d; font-size: 13px; }
.panel { padding: 8px 12px; overflow-x: auto; }
.problems { border-left: 4px solid #e8710a; }
.good { border-left: 4px solid #188038; }
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
