"""Figures of the tracking experiments: one page per case, a column per controller."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from softcr_tools.experiments.tracking.compliance import TRUE_COMPLIANCE, Search
from softcr_tools.experiments.tracking.loop import Trace

AXES = "xyz"


def draw_case(path: Path, title: str, traces: dict[str, Trace]) -> None:
    """Tip against reference, error, commands, of one seed of each controller."""
    figure, grid = plt.subplots(
        3, len(traces), figsize=(6.0 * len(traces), 8.0), sharex=True, sharey="row", squeeze=False
    )
    for column, (controller, trace) in zip(grid.T, traces.items(), strict=True):
        tip, error, command = column
        for axis, name in enumerate(AXES):
            colour = f"C{axis}"
            tip.plot(trace.times, 1e3 * trace.tips[:, axis], colour, label=name)
            tip.plot(trace.times, 1e3 * trace.reference_tips[:, axis], "k--", linewidth=0.8)
        error.semilogy(trace.times, 1e3 * np.maximum(trace.error, 1e-6), "C3")
        for chamber, pressures in enumerate(trace.commands.T):
            command.plot(trace.times, 1e-3 * pressures, label=f"chamber {chamber + 1}")
        tip.set_title(f"{title}: {controller}")
        command.set_xlabel("time [s]")
        for axes in column:
            axes.grid(alpha=0.3)
    for axes, label in zip(
        grid[:, 0], ("tip (reference dashed) [mm]", "tip error [mm]", "command [kPa]"), strict=True
    ):
        axes.set_ylabel(label)
    grid[0, 0].legend(loc="upper right")
    grid[2, 0].legend(loc="upper right")
    _save(figure, path)


def draw_searches(path: Path, searches: Sequence[Search]) -> None:
    """The estimated compliance of every seed, with the first seed's two-sigma band."""
    figure, axes = plt.subplots(figsize=(8.0, 4.0))
    for search in searches:
        axes.plot(search.times, search.compliance, linewidth=0.8)
    first = searches[0]
    low, high = (first.compliance + sign * 2 * first.deviation for sign in (-1, 1))
    axes.fill_between(first.times, low, high, alpha=0.2, label="2 sigma, first seed")
    axes.axhline(TRUE_COMPLIANCE, color="k", linestyle="--", label="true")
    axes.set_xlabel("time [s]")
    axes.set_ylabel("bending compliance [rad/(N m m)]")
    axes.grid(alpha=0.3)
    axes.legend()
    _save(figure, path)


def _save(figure: plt.Figure, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)
