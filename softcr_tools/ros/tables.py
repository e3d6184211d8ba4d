"""Tables of names on the terminal, never cut off: what a program reads is as wide as it must be."""

import sys
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from softcr_runtime.console.terminal import harmless

_UNLIMITED = 10_000
"""Columns of a file or pipe."""


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows of texts below the names of their columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for number, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=number == 0)
    for row in rows:
        table.add_row(*(Text(harmless(text)) for text in row))
    terminal = sys.stdout.isatty()
    Console(width=None if terminal else _UNLIMITED).print(table)
