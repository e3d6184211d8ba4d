"""Pages of results: one section for each study, made from its newest table."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from softcr_models.errors import UserError
from softcr_studies.table import Row, heads, published_kinds, read_table, row_notes

PAGE = "page.md"  # a study's section; other texts beside it become part of it
_KEPT = ("*.png", "*.md", "trials.json")
_INDEX = """# Results

`softcr study run NAME` wrote every table on these pages, and `softcr study page` the pages. Each
says what was run, on which machine, with how many seeds, what plant and model share, and what was
published. Figures from simulations and from benches stand in columns of their own; a bound that
was missed is marked MISS.

All figures of ours are from simulations whose plant shares the structure of its equations with the
model, unless a study says otherwise. They say how a method deals with wrong parameters, noise,
delay and a coarser grid; they do not say how it deals with physics that the model lacks.

| source | study | what it measures |
|---|---|---|
{lines}

```{{toctree}}
:maxdepth: 2

{groups}
```
"""
_HIDDEN = {"experiment", "source", "summary", "exact", "machine", "code", "load_average_at_end"}


def study_section(about: Mapping[str, Any], rows: Sequence[Row], directory: Path) -> str:
    """A study in Markdown: what it is, how it was run, its table and figures.

    Args:
        about: what stands beside the rows in table.json.
        rows: of the table.
        directory: with the figures, beside the page that is made.
    """
    name = about["experiment"]
    figures = [f"![{path.stem.replace('_', ' ')}]({path.relative_to(directory)})"
               for path in sorted(directory.glob("*.png"))]  # fmt: skip
    notes = [path.read_text(encoding="utf-8") for path in sorted(directory.glob("*.md"))
             if path.name != PAGE]  # fmt: skip
    return "\n\n".join(
        part
        for part in (
            f"## {name}",
            f"{about['summary'][:1].upper()}{about['summary'][1:]}."
            + (f" Source: {about['source']}." if about["source"] else " Nothing was published."),
            about["exact"],
            f"`softcr study run {name}` on {_when(about)}: {_settings(about)}.",
            "\n".join(_table(rows)),
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
        lines = []
        for path in sorted((output / "tables").glob("*/*/table.json")):
            about, rows = read_table(path)
            section = study_section(about, rows, path.parent)
            pictures = f"tables/{about['experiment']}/"
            groups.setdefault(path.parent.parent.name, []).append(
                section.replace("](", f"]({pictures}") if "](" in section else section
            )
            source = about["source"] or "(nothing was published)"
            link = f"[{about['experiment']}]({path.parent.parent.name}.md)"
            lines.append(f"| {source} | {link} | {about['summary']} |")
        if not groups:
            raise UserError(f"{output}: no study has been run; see `softcr study list`")
        pages = {output / f"{group}.md": f"# {group}\n\n" + "\n".join(sections)
                 for group, sections in groups.items()}  # fmt: skip
        pages[output / "index.md"] = _INDEX.format(
            lines="\n".join(sorted(lines)), groups="\n".join(groups)
        )
        for path, text in pages.items():
            path.write_text(text, encoding="utf-8")
        return list(pages)
    except OSError as error:
        raise UserError(f"{error.filename}: cannot be written: {error.strerror}") from None


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


def _table(rows: Sequence[Row]) -> list[str]:
    """A line for the heads, one for their alignment, one for each row."""
    kinds = published_kinds(rows)
    columns = heads(kinds)
    rule = ["---:" if number else "---" for number in columns.values()]
    cells = [[cell.replace("|", "\\|") for cell in line]
             for line in (columns, rule, *(row.cells(kinds) for row in rows))]  # fmt: skip
    return ["| " + " | ".join(line) + " |" for line in cells]
