"""Pages of results, made from the newest table of each study: of a paper first what it claims and
what of it is reproduced, then a section for each study."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from softcr_models.errors import UserError
from softcr_studies.frame.catalogue import claims_of, study_files
from softcr_studies.frame.claims import claims_table
from softcr_studies.frame.code_version import code_version
from softcr_studies.frame.table import (
    Row,
    has_spread,
    heads,
    published_kinds,
    read_table,
    row_notes,
)

PAGE = "page.md"  # a study's section; other texts beside it become part of it
_KEPT = ("*.png", "*.md", "trials.json")
_INDEX = """# Results

A good place to start is the study `robustness/fair`, which compares the method of Licher et al.
(2025) with ours on plants that differ from the model, and on one that does not.

The tables on these pages are the output of `softcr study run NAME`, and `softcr study page` makes
the pages. Each study states its command, the machine, the number of seeds, what plant and model
have in common, and published figures if there are any, in separate columns for simulations and
benches. A bound that was missed is marked MISS.

All our figures are from simulations. Unless a study says otherwise, the plant has the same
equations as the model: such a figure shows how a method copes with wrong parameters, noise, delay
and a coarser grid, but not with physics that the model lacks.

{tables}

```{{toctree}}
:maxdepth: 1

{groups}
```
"""
_PAPERS = {
    "dalenberg2024": "Dalenberg (2024)",
    "licher2025": "Licher et al. (2025)",
    "mehl2024": "Mehl et al. (2024)",
    "pawlowski2019": "Pawlowski (2019)",
    "valadas2024": "Valadas et al. (2024)",
}
"""Titles of groups that repeat a publication; others are titled by their names."""

_OTHER_CODE = """```{{warning}}
Other code than this version of softcr made these tables: {studies}. `softcr study run NAME` makes
them anew.
```"""
_CLAIMS = """Each line is computed from the tables below. *Yes*: our figures are at least as good as
the published ones in the worst seed of every row that the claim is about. *Partly*: in some of
these rows, or in the mean alone."""

Table = tuple[Mapping[str, Any], Sequence[Row]]
"""What stands beside the rows of a table, and the rows."""

_HIDDEN = {
    "experiment",
    "source",
    "summary",
    "exact",
    "machine",
    "code",
    "load_average_at_end",
    "left_out",
    "ours",
}


def study_section(about: Mapping[str, Any], rows: Sequence[Row], directory: Path) -> str:
    """A study in Markdown: what it is, how it was run, its table and figures.

    Args:
        about: what stands beside the rows in table.json.
        rows: of the table.
        directory: with the figures, beside the page that is made.
    """
    name, left_out = about["experiment"], about.get("left_out")
    figures = [f"![{path.stem.replace('_', ' ')}]({path.relative_to(directory)})"
               for path in sorted(directory.glob("*.png"))]  # fmt: skip
    notes = [path.read_text(encoding="utf-8") for path in sorted(directory.glob("*.md"))
             if path.name != PAGE]  # fmt: skip
    return "\n\n".join(
        part
        for part in (
            f"## {name}",
            f"{about['summary'][:1].upper()}{about['summary'][1:]}."
            + (f" Source: {about['source']}." if about["source"] else ""),
            about["exact"],
            f"LEFT OUT of a quick run: {left_out}." if left_out else "",
            f"`softcr study run {name}` on {_when(about)}: {_settings(about)}.",
            "\n".join(_table(rows, about.get("ours", "simulation"))),
            "\n".join(f"- {'; '.join(who)}: {note}" for note, who in row_notes(rows).items()),
            *notes,
            *figures,
        )
        if part
    ) + "\n"  # fmt: skip


def write_pages(tables: Sequence[Path], output: Path) -> list[Path]:
    """A page for each group of studies, an index, and a copy of every table and figure.

    A study without a new table keeps the one that the output holds.

    Args:
        tables: of runs, with their figures beside them.
        output: directory of the pages.

    Returns:
        The pages.

    Raises:
        UserError: a table cannot be read, there is none, or the pages cannot be written.
    """
    try:
        for path in tables:
            about, _ = read_table(path)
            _copy(path, output / "tables" / about["experiment"])
        groups: dict[str, list[str]] = {}
        tables_of: dict[str, dict[str, Table]] = {}
        lines: dict[str, list[str]] = {}
        for path in sorted((output / "tables").glob("*/*/table.json")):
            about, rows = read_table(path)
            section = study_section(about, rows, path.parent)
            pictures = f"tables/{about['experiment']}/"
            groups.setdefault(path.parent.parent.name, []).append(
                section.replace("](", f"]({pictures}") if "](" in section else section
            )
            group = path.parent.parent.name
            tables_of.setdefault(group, {})[about["experiment"]] = about, rows
            link = f"[{about['experiment']}]({group}.md)"
            lines.setdefault(group, []).append(
                f"| {link} | {about['summary']} | {about['source']} |"
            )
        if not groups:
            raise UserError(f"{output}: no study has been run; see `softcr study list`")
        ordered = sorted(groups, key=lambda group: (group in _PAPERS, group))
        pages = {output / f"{group}.md": f"# {_title(group)}\n\n{_opening(group, tables_of[group])}"
                 + "\n".join(groups[group]) for group in ordered}  # fmt: skip
        tables_of_groups = [
            f"## {_title(group)}\n\n| study | what it measures | source |\n|---|---|---|\n"
            + "\n".join(lines[group])
            for group in ordered
        ]
        pages[output / "index.md"] = _INDEX.format(
            tables="\n\n".join(tables_of_groups), groups="\n".join(ordered)
        )
        for path, text in pages.items():
            # what is as it was keeps its time, so that sphinx reads only what has changed
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
        return list(pages)
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be written: {error.strerror}") from None


def _opening(group: str, tables: Mapping[str, Table]) -> str:
    """What a page begins with: which tables another code made, and the claims of a paper."""
    parts = [_OTHER_CODE.format(studies=", ".join(f"`{name}`" for name in old))
             for old in [other_code(tables)] if old]  # fmt: skip
    if claims := claims_of(group):
        rows_of = {name: rows for name, (_, rows) in tables.items()}.get
        parts += ["## What is reproduced", _CLAIMS, claims_table(claims, rows_of)]
    return "\n\n".join((*parts, ""))


def other_code(tables: Mapping[str, Table]) -> list[str]:
    """Names of the studies whose tables were made by other code than is installed."""
    known = study_files()
    return [
        name for name, (about, _) in tables.items()
        if name not in known or about.get("code") != code_version(known[name])
    ]  # fmt: skip


def _title(group: str) -> str:
    return _PAPERS.get(group, group.capitalize())


def _copy(table: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in (table, *(path for kind in _KEPT for path in table.parent.glob(kind))):
        if path.name != PAGE:
            shutil.copy(path, folder)


def _when(about: Mapping[str, Any]) -> str:
    """Day, processor and load: computing times are worth little without."""
    machine = about["machine"]
    if "cores" not in machine:  # of a run from before the machine was noted
        return f"{machine['time'][:10]}, {machine['processor']}"
    load = machine["load_average_at_start"][0]
    gpu = f", {machine['gpu']}" if machine.get("gpu") else ""
    return (f"{machine['time'][:10]}, {machine['processor']}, {machine['cores']} cores at load "
            f"{load:g}{gpu}, code {about['code']}")  # fmt: skip


def _settings(about: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {value}"
        for name, value in about.items()
        if name not in _HIDDEN
        and value not in (None, "", [])
        and not isinstance(value, dict | list)
    )


def _table(rows: Sequence[Row], ours: str) -> list[str]:
    """A line for the heads, one for their alignment, one for each row; of what `ours` are."""
    shown = published_kinds(rows), has_spread(rows)
    columns = heads(*shown, ours)
    rule = ["---:" if number else "---" for number in columns.values()]
    cells = [[cell.replace("|", "\\|") for cell in line]
             for line in (columns, rule, *(row.cells(*shown) for row in rows))]  # fmt: skip
    return ["| " + " | ".join(line) + " |" for line in cells]
