"""The page that says what to calibrate first on a bench, from the robustness map's table."""

from collections.abc import Mapping, Sequence
from typing import Any

from softcr_tools.experiments.tracking.cases import CONTROLLERS
from softcr_tools.experiments.tracking.robustness import UNAIDED

FIGURE = "robustness.png"  # of the map, beside the page
_METHODS = (UNAIDED, *CONTROLLERS)
_INTRODUCTION = """# What to calibrate first

`softcr experiment report` makes this page from the table of `softcr experiment robustness`
({seeds} seeds, {day}). The plant follows the reference of experiment 4a, to 1.5 Hz.

"Lost" is the mean tip error at the worst of the errors on the line, less that without the error,
in mm. The order is that of a controller that estimates nothing, on a plant with that error alone:
what costs most there is what a filter has to find first, and what is wrong until it has. The other
columns are the shipped controllers with their filter, and the rival, on the experiments' usual
plant (bending compliance -5 %, tip mass +10 %, tip noise 0.2 mm, n = 20 against 5), which the
rival has learned from: an error is there what has changed since.
"""


def page(table: Mapping[str, Any]) -> str:
    """Markdown.

    Args:
        table: of `softcr experiment robustness`, as its table.json holds it.
    """
    lost = {axis["name"]: _losses(axis, table["rows"]) for axis in table["axes"]}
    chosen = [axis for axis in table["axes"] if axis["calibration"]]
    ranked = sorted(chosen, key=lambda axis: -lost[axis["name"]][UNAIDED])
    others = [axis for axis in table["axes"] if not axis["calibration"]]
    day = table["machine"]["time"][:10]
    heads = [f"{method} [mm]" for method in _METHODS]
    first = [
        [str(rank), axis["name"], _range(axis, table["rows"]), *_cells(lost[axis["name"]]),
         axis["calibration"]]
        for rank, axis in enumerate(ranked, start=1)
    ]  # fmt: skip
    second = [
        [axis["name"], _range(axis, table["rows"]), *_cells(lost[axis["name"]])[1:]]
        for axis in others
    ]
    return "\n".join(
        [
            _INTRODUCTION.format(seeds=table["seeds"], day=day),
            *_table(["", "what", "error", *(f"lost, {head}" for head in heads), "how"], first),
            "\nNothing to calibrate, but to know:\n",
            *_table(["what", "values", *(f"lost, {head}" for head in heads[1:])], second),
            f"\nMean tip error and its SD over the seeds:\n\n![heat maps]({FIGURE})\n",
            *_table(["what", "value", *heads], _all(table)),
            "",
        ]
    )


def _all(table: Mapping[str, Any]) -> list[list[str]]:
    """A line per axis and value, a cell per method."""
    found = {(row["case"], row["quantity"], row["method"]): row for row in table["rows"]}
    values = dict.fromkeys((case, quantity) for case, quantity, _ in found)
    return [
        [*value, *(_figure(found.get((*value, method))) for method in _METHODS)] for value in values
    ]


def _figure(row: Mapping[str, Any] | None) -> str:
    return "" if row is None else f"{row['mean']:.3g} ({row['sd']:.2g})"


def _losses(axis: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Method -> worst mean tip error on an axis, less that without the axis' error [mm]."""
    lost = {}
    for method in _METHODS:
        found = {
            row["quantity"]: row["mean"]
            for row in rows
            if row["case"] == axis["name"] and row["method"] == method
        }
        if found:
            without = axis["exact"] if method == UNAIDED else axis["usual"]
            lost[method] = max(found.values()) - found[without]
    return lost


def _range(axis: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str:
    values = list(dict.fromkeys(row["quantity"] for row in rows if row["case"] == axis["name"]))
    return f"{values[0]} ... {values[-1]}, usually {axis['usual']}"


def _cells(lost: Mapping[str, float]) -> list[str]:
    return [f"{lost[method]:.2f}" if method in lost else "" for method in _METHODS]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    rule = ["---"] * len(head)
    return ["| " + " | ".join(cells) + " |" for cells in (head, rule, *rows)]
