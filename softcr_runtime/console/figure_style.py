"""How figures of runs look: one colour with one meaning, sizes, an empty figure, its legend."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

# One colour, one meaning, in every figure.
TRUTH = "#1f2933"
REFERENCE = "#e8710a"
ESTIMATE = "#1a73e8"
MEASURED = "#9aa5b1"
COMMANDED = "#7b3fa0"
LIMIT = "#c5221f"

# Kinds of lines: keyword arguments of matplotlib's plot.
DASHES: dict[str, Any] = {"color": REFERENCE, "linestyle": (0, (4, 2))}
THIN_DASHES: dict[str, Any] = {"color": TRUTH, "linestyle": (0, (3, 2)), "linewidth": 0.8}
BROAD: dict[str, Any] = {"color": REFERENCE, "linewidth": 3, "alpha": 0.5}
DOTS: dict[str, Any] = {"color": MEASURED, "linestyle": "none", "marker": ".", "markersize": 2}

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": "#3e4c59",
    "axes.edgecolor": "#9aa5b1",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e7eb",
    "grid.linewidth": 0.7,
    "xtick.color": "#52606d",
    "ytick.color": "#52606d",
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.2,
    "figure.dpi": 130,
    "savefig.facecolor": "white",
}
"""Settings of matplotlib."""

WIDTH = 10.0
"""Of a figure [inch]."""


def new_figure(height: float, left: float = 0.75, right: float = 0.15, top: float = 0.3) -> Figure:
    """An empty figure with margins for its labels: a layout engine would double the drawing time.

    Args:
        height: of the figure [inch].
        left, right, top: margins [inch].
    """
    figure = Figure(figsize=(WIDTH, height))
    figure.subplots_adjust(
        left=left / WIDTH, right=1 - right / WIDTH, bottom=0.5 / height, top=1 - top / height
    )
    return figure


def legend_above(figure: Figure, axes: Axes) -> None:
    """The legend of some axes in the figure's upper right corner, each name once."""
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    figure.legend(
        unique.values(), unique.keys(), loc="upper right", ncols=len(unique), markerscale=4,
        borderaxespad=0.2,
    )  # fmt: skip
