"""Figures of rows of panels with labels, written when they have been drawn."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure


@contextmanager
def panels(
    path: Path, labels: Sequence[str], columns: int = 1, *, x: str = "time / s", title: str = "",
    sharex: bool = True, sharey: bool = False, height: float = 1.8,
) -> Iterator[np.ndarray]:  # fmt: skip
    """Axes to draw into, (rows, columns), or (rows,) of a single column; written afterwards.

    A panel whose lines have names gets a legend.

    Args:
        path: of the figure.
        labels: of the rows.
        columns: how many.
        x: label below the last row.
        title: of the figure.
        sharex, sharey: whether all panels have one x axis, those of a row one y axis.
        height: of a row [inch].
    """
    size = max(4.0 * columns, 8.0), max(height * len(labels) + 0.6, 4.0)
    figure = Figure(figsize=size, layout="constrained")
    grid: np.ndarray = figure.subplots(
        len(labels), columns, sharex=sharex, sharey="row" if sharey else False, squeeze=False
    )
    figure.suptitle(title)
    for axes, label in zip(grid[:, 0], labels, strict=True):
        axes.set_ylabel(label)
    for axes in grid[-1]:
        axes.set_xlabel(x)
    yield grid if columns > 1 else grid[:, 0]
    for axes in grid.flat:
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="upper right", ncols=2)
    figure.savefig(path)


def leave_room(axes: np.ndarray, share: float = 0.6) -> None:
    """Moves the upper limit of linear panels up by a share of their range, for their legends."""
    limits = [(panel, *panel.get_ylim()) for panel in axes.flat]  # panels of a row may share them
    for panel, low, high in limits:
        panel.set_ylim(low, high + share * (high - low))
