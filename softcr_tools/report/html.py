"""report.html: one file that shows a run anywhere, without network and without its neighbours."""

import base64
import json
from html import escape
from typing import Any

from softcr_tools.report.figures import ReportFigure
from softcr_tools.report.page import LOOP_COLUMNS, PLANT_WORDS, KeyFigure, ReportPage

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


def render(page: ReportPage, numbers: dict[str, Any], figures: list[ReportFigure]) -> str:
    """The report as one HTML document.

    Args:
        page: what to say.
        numbers: of summary.json.
        figures: embedded in this order; their files must exist.

    Raises:
        OSError: a figure's file cannot be read.
    """
    title = escape(page.headline)
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
<p>{escape(page.settings)}</p>
{_list("deaths", page.deaths)}
<div class="cards">{"".join(map(_card, page.figures))}</div>
{_list("problems", page.problems)}
{_plant(page)}
{"<h2>Safety</h2>" if page.safety else ""}{_list("safety", page.safety)}
<h2>Loops</h2>
<div class="panel">{_table(LOOP_COLUMNS, page.loops)}</div>
{"".join(map(_figure, figures))}
<h2>All numbers</h2>
<div class="panel"><details><summary>summary.json</summary>
<pre>{escape(json.dumps(numbers, indent=2))}</pre></details></div>
</main></body>
</html>
"""


def _card(figure: KeyFigure) -> str:
    name, value, note = map(escape, (figure.name, figure.value, figure.note))
    return f'<div class="card"><span>{name}</span><b>{value}</b><span>{note}</span></div>'


def _plant(page: ReportPage) -> str:
    told = [
        (words, page.plant[name]) for name, words in PLANT_WORDS.items() if page.plant.get(name)
    ]
    parts = (
        f"<p>{words[0].upper()}{words[1:]}:</p>{_list('plant', lines)}" for words, lines in told
    )
    return f"<h2>Plant</h2>{''.join(parts)}" if told else ""


def _list(kind: str, lines: list[str]) -> str:
    if not lines:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<div class="panel {kind}"><ul>{items}</ul></div>'


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _figure(figure: ReportFigure) -> str:
    image = base64.b64encode(figure.path.read_bytes()).decode("ascii")
    title, caption = escape(figure.title), escape(figure.caption)
    return (
        f"<h2>{title}</h2><p>{caption}</p>"
        f'<div class="panel"><img alt="{title}" src="data:image/png;base64,{image}"></div>'
    )
