"""Tables of Markdown."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar inside a cell is written as its entity."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "&#124;") or " "


def code(text: str) -> str:
    """Text in code style; nothing for no text."""
    return f"`{text}`" if text else ""


def first_paragraph(docstring: str | None) -> str:
    """The first paragraph of a docstring in one line."""
    return " ".join((docstring or "").split("\n\n")[0].split())
