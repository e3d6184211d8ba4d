"""How the figures of a report look: colours, sizes, axes over time, axes in space."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from softcr_tools.report_run import RecordedSystem, Series

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
    "savefig.dpi": 130,
    "savefig.facecolor": "white",
}
"""Settings of matplotlib."""

WIDTH = 10.0
"""Of a figure [inch]."""

CLOSE_UP = 3.0
"""Length of the close-up at the end of a long run [s]."""


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


def rows_over_time(
    extent: tuple[float, float, float], labels: list[str], height: float
) -> tuple[Figure, np.ndarray]:
    """A row of axes for each label, over the whole run and, if that is long, its last seconds.

    Args:
        extent: start of the run, end of its evaluated part, end of the recording [s].
        labels: of the vertical axes.
        height: of a row [inch].

    Returns:
        The figure and its (labels, 1 or 2) axes.
    """
    start, followed_until, end = extent
    spans, titles = [(start, end)], ["whole run"]
    if followed_until - start > 2 * CLOSE_UP:
        spans.append((followed_until - CLOSE_UP, followed_until))
        titles.append(f"the last {CLOSE_UP:.0f} s")
    figure = new_figure(height * len(labels) + 1.1, top=0.6)
    grid = figure.subplots(
        len(labels), len(spans), sharex="col", sharey="row", squeeze=False,
        width_ratios=[5, 3][: len(spans)], gridspec_kw={"wspace": 0.04, "hspace": 0.1},
    )  # fmt: skip
    for column, span, title in zip(grid.T, spans, titles, strict=True):
        column[0].set_xlim(span)
        column[0].set_title(title)
        column[-1].set_xlabel("time [s]")
    for axes, label in zip(grid[:, 0], labels, strict=True):
        axes.set_ylabel(label)
        if followed_until < end:
            axes.axvspan(followed_until, end, color=MEASURED, alpha=0.25, label="not evaluated")
    figure.align_ylabels()
    return figure, grid


def plot_column(
    axes: Axes, run: RecordedSystem, series: Series, column: int, scale: float, **style: Any
) -> None:
    """Draw one column of a series over time, if the series has any sample."""
    if len(series):
        axes.plot(run.seconds(series), scale * series.values[:, column], **style)


def legend_above(figure: Figure, axes: Axes) -> None:
    """The legend of some axes in the figure's upper right corner, each name once."""
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    figure.legend(
        unique.values(), unique.keys(), loc="upper right", ncols=len(unique), markerscale=4,
        borderaxespad=0.2,
    )  # fmt: skip


def scale_equally(axes: Any, points: np.ndarray) -> None:
    """Make a millimetre as long along each of three axes, and none too short for its labels."""
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    extents = np.ptp(points, axis=0)
    half = 0.55 * np.maximum(extents, 0.4 * extents.max() + 1e-6)
    low, high = middle - half, middle + half
    axes.set(xlim3d=(low[0], high[0]), ylim3d=(low[1], high[1]), zlim3d=(low[2], high[2]))
    axes.set_box_aspect(half)
    axes.zaxis.set_major_locator(MaxNLocator(4))
