"""The figures of a report: functions of the run, None where it has nothing to show."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from matplotlib import rc_context
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from softcr_tools.report_arc import true_arc
from softcr_tools.report_axes import (
    BROAD,
    COMMANDED,
    DASHES,
    DOTS,
    ESTIMATE,
    LIMIT,
    STYLE,
    THIN_DASHES,
    TRUTH,
    legend_above,
    new_figure,
    plot_column,
    rows_over_time,
    scale_equally,
)
from softcr_tools.report_run import RecordedSystem, Run, Series
from softcr_tools.report_summary import (
    COMPLIANCE_SETTLING_TIME,
    SETTLING_TIME,
    estimation_error,
    evaluated_window,
    pressure_limits_kpa,
    tracking_error,
    true_compliance,
)

SNAPSHOTS = 9
"""Shapes drawn of a run."""


@dataclass(frozen=True)
class ReportFigure:
    """A figure on disk, with what to say about it."""

    path: Path
    title: str
    caption: str


def draw_figures(run: Run, directory: Path) -> list[ReportFigure]:
    """Draw every figure the run has data for.

    Args:
        run: what was recorded.
        directory: for the PNG files; its parent must exist.

    Raises:
        OSError: the directory cannot be written.
    """
    return drawn_figures(run, directory, _FIGURES)


SystemRun = TypeVar("SystemRun", bound=RecordedSystem)
Figures = Mapping[str, tuple[str, str, Callable[[SystemRun], Figure | None]]]
"""Title, caption and what draws it, by the name of the file."""


def drawn_figures(
    run: SystemRun, directory: Path, figures: Figures[SystemRun]
) -> list[ReportFigure]:
    """Draw those of some figures that the run has data for; as `draw_figures`."""
    directory.mkdir(exist_ok=True)
    drawn = []
    for name, (title, caption, draw) in figures.items():
        with rc_context(STYLE):
            figure = draw(run)
            if figure is None:
                continue
            path = directory / f"{name}.png"
            figure.savefig(path)
        drawn.append(ReportFigure(path, title, caption))
    return drawn


def _tip_tracking(run: Run) -> Figure | None:
    if not len(run.tip) and not len(run.estimated_tip):
        return None
    figure, grid = rows_over_time(_extent(run), [f"{axis} [mm]" for axis in "xyz"], height=1.7)
    for axis, row in enumerate(grid):
        for axes in row:
            plot_column(axes, run, run.measured_tip, axis, 1e3, **DOTS, label="mocap")
            plot_column(
                axes, run, run.truth_tip, axis, 1e3, color=TRUTH, linewidth=1.8, label="tip"
            )
            plot_column(axes, run, run.estimated_tip, axis, 1e3, color=ESTIMATE, label="estimate")
            plot_column(axes, run, run.reference_tip, axis, 1e3, **DASHES, label="reference")
    legend_above(figure, grid[0, 0])
    return figure


def _extent(run: Run) -> tuple[float, float, float]:
    """Start of the run, end of its evaluated part, end of the recording [s]."""
    series = (run.tip, run.estimated_tip, run.measured_pressures)
    end = max((float(run.seconds(s)[-1]) for s in series if len(s)), default=0.0)
    window = evaluated_window(run)
    followed_until = 1e-9 * (window[1] - run.start) if window else end
    return 0.0, followed_until, max(end, 1e-3)


def _tip_path(run: Run) -> Figure | None:
    window = evaluated_window(run)
    if window is None or not len(run.tip):
        return None
    figure = new_figure(4.6, left=0.1)
    figure.subplots_adjust(wspace=0.2)
    space = figure.add_subplot(1, 2, 1, projection="3d")
    above = figure.add_subplot(1, 2, 2)
    tip = 1e3 * run.tip.between(*window).values
    reference = 1e3 * run.reference_tip.between(*window).values
    for axes, axis_count in ((space, 3), (above, 2)):
        axes.plot(*reference.T[:axis_count], **BROAD, label="reference")
        axes.plot(*tip.T[:axis_count], color=TRUTH, linewidth=0.8, label="tip")
        axes.plot(*tip[:1].T[:axis_count], "o", color=TRUTH, markersize=4, label="start")
        axes.set_xlabel("x [mm]")
        axes.set_ylabel("y [mm]")
    space.set_zlabel("z [mm]")
    scale_equally(space, np.concatenate([tip, reference]))
    space.set_title("path of the tip in the base frame")
    above.set_aspect("equal", adjustable="datalim")
    above.set_title("seen from above")
    above.legend(loc="upper right")
    return figure


def _tip_error(run: Run) -> Figure | None:
    tracking, estimation = tracking_error(run), estimation_error(run)
    settled = tracking_error(run, after=SETTLING_TIME)
    if not len(tracking) and not len(estimation):
        return None
    figure = new_figure(3.4, top=0.35)
    axes = figure.subplots()
    for error, colour, what in (
        (tracking, TRUTH, "tip to reference"),
        (estimation, ESTIMATE, "estimated to true tip"),
    ):
        if len(error):
            label = f"{what}: mean {1e3 * error.values.mean():.2f} mm"
            axes.plot(run.seconds(error), 1e3 * error.values, color=colour, label=label)
    if len(settled):
        mean = 1e3 * settled.values.mean()
        label = f"tip to reference, mean from {SETTLING_TIME:.0f} s on: {mean:.2f} mm"
        axes.hlines(mean, *run.seconds(settled)[[0, -1]], **DASHES, label=label)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time [s]")
    axes.set_ylabel("distance [mm]")
    legend_above(figure, axes)
    return figure


def _pressures(run: Run) -> Figure | None:
    if not run.chambers:
        return None
    figure, grid = rows_over_time(
        _extent(run), [f"{name}\n[kPa]" for name in run.chambers], height=1.6
    )
    for chamber, row in enumerate(grid):
        for axes in row:
            for limit in pressure_limits_kpa(run) or ():
                axes.axhline(limit, color=LIMIT, linestyle=":", label="limits")
            plot_column(
                axes, run, run.commanded_pressures, chamber, 1e-3,
                color=COMMANDED, drawstyle="steps-post", label="commanded",
            )  # fmt: skip
            plot_column(
                axes, run, run.measured_pressures, chamber, 1e-3, color=TRUTH, label="measured"
            )
    legend_above(figure, grid[0, 0])
    return figure


def _bending_compliance(run: Run) -> Figure | None:
    estimate = run.estimated_compliance
    if not len(estimate):
        return None
    figure = new_figure(3.4, top=0.35)
    axes = figure.subplots()
    time, two_sigma = run.seconds(estimate), 2 * run.compliance_std.values
    axes.fill_between(
        time, estimate.values - two_sigma, estimate.values + two_sigma,
        color=ESTIMATE, alpha=0.18, linewidth=0, label="2 standard deviations",
    )  # fmt: skip
    axes.plot(time, estimate.values, color=ESTIMATE, label="estimate")
    true = true_compliance(run)
    if true is not None:
        axes.axhline(true, color=TRUTH, label=f"truth: {true:.2f}")
        start = min(time[0] + COMPLIANCE_SETTLING_TIME, time[-1])
        axes.fill_between(
            [start, time[-1]], 0.99 * true, 1.01 * true,
            color=TRUTH, alpha=0.12, linewidth=0, label="within 1 %",
        )  # fmt: skip
    axes.set_xlabel("time [s]")
    axes.set_ylabel("bending compliance [rad/(N m m)]")
    legend_above(figure, axes)
    return figure


def _arc(run: Run) -> Figure | None:
    if not len(run.arc):
        return None
    labels = ["$\\Delta_x$ [mm]", "$\\Delta_y$ [mm]", "$\\delta L$ [mm]", "stiffness\n[N/m]"]
    figure, grid = rows_over_time(_extent(run), labels, height=1.5)
    truth = true_arc(run)
    for row, (column, scale) in enumerate(((0, 1e3), (1, 1e3), (2, 1e3), (6, 1.0))):
        for axes in grid[row]:
            if truth is not None and column < 6:
                plot_column(
                    axes, run, truth, column, scale, color=TRUTH, linewidth=1.8, label="true arc"
                )
            plot_column(axes, run, run.arc, column, scale, color=ESTIMATE, label="estimate")
    legend_above(figure, grid[0, 0])
    return figure


def _shape(run: Run) -> Figure | None:
    shapes = run.truth_backbone if len(run.truth_backbone) else run.estimated_backbone
    if window := evaluated_window(run):
        shapes = shapes.between(*window)
    if not len(shapes):
        return None
    picked = np.unique(np.linspace(0, len(shapes) - 1, SNAPSHOTS).round().astype(int))
    shown = Series(shapes.stamps[picked], shapes.values[picked])
    estimates = dict(zip(run.estimated_backbone.stamps, run.estimated_backbone.values, strict=True))
    times = run.seconds(shown)
    reach = 1.05e3 * max(np.abs(shown.values[..., :2]).max(), np.ptp(shown.values[..., 2]) / 2)
    colours = ScalarMappable(Normalize(times[0], max(times[-1], times[0] + 1e-9)), "viridis")

    figure = new_figure(3.6, right=0.4)
    panels = figure.subplots(1, 2, sharey=True, gridspec_kw={"wspace": 0.08})
    for axes, column, name in zip(panels, (0, 1), "xy", strict=True):
        for stamp, time, shape in zip(shown.stamps, times, 1e3 * shown.values, strict=True):
            axes.plot(shape[:, column], shape[:, 2], ".-", color=colours.to_rgba(time))
            if len(run.truth_backbone) and stamp in estimates:
                estimate = 1e3 * estimates[stamp]
                axes.plot(estimate[:, column], estimate[:, 2], **THIN_DASHES)
        axes.set_xlabel(f"{name} [mm]")
        axes.set_xlim(-reach, reach)
        axes.set_aspect("equal")
    panels[0].set_ylabel("z [mm]")
    panels[0].set_title("centre line of the rod")
    drawn = "true" if len(run.truth_backbone) else "estimated"
    kinds = [Line2D([], [], color=TRUTH, marker=".", label=drawn)]
    if len(run.truth_backbone) and estimates:
        kinds.append(Line2D([], [], **THIN_DASHES, label="estimated"))
    panels[1].legend(handles=kinds, loc="best")
    figure.colorbar(colours, ax=panels, label="time [s]", pad=0.02, fraction=0.06)
    return figure


def tick_times(run: RecordedSystem) -> Figure | None:
    """How long the cycles of every node took, as it says itself."""
    histograms = {node: histogram for node in run.nodes if (histogram := _histogram(run, node))}
    if not histograms:
        return None
    figure = new_figure(1.4 * len(histograms) + 0.8, right=1.6)
    figure.subplots_adjust(hspace=0.35)
    rows = figure.subplots(len(histograms), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (node, (edges, counts)) in zip(rows, histograms.items(), strict=True):
        axes.stairs(counts, edges, fill=True, color=ESTIMATE, alpha=0.75)
        for name, style in (("p50", "-"), ("p99", "--")):
            quantile = run.said(node, f"{name}_ms")
            if isinstance(quantile, float):
                label = f"{name} {quantile:.2f} ms"
                axes.axvline(quantile, color=TRUTH, linestyle=style, label=label)
        deadline = run.said(node, "deadline_ms")
        if isinstance(deadline, float):
            axes.axvline(deadline, color=LIMIT, linestyle=":", label=f"deadline {deadline:.2f} ms")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.7)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_ylabel("cycles")
        axes.set_title(node)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    rows[-1].set_xlabel("time of a cycle [ms]")
    rows[-1].xaxis.set_major_formatter("{x:g}")
    return figure


def _histogram(run: RecordedSystem, node: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Edges [ms] and counts of a node's cycle times; None when it told none."""
    told = run.said(node, "tick_time_histogram_ms")
    if not isinstance(told, dict) or not any(told.get("counts", ())):
        return None
    return np.array(told["edges"]), np.array(told["counts"])


_FIGURES: Figures[Run] = {
    "tip_tracking": (
        "Tip and reference",
        "Position of the tip in the base frame.",
        _tip_tracking,
    ),
    "tip_error": (
        "Errors",
        "Distance of the tip from its reference, and of the estimated from the true tip, "
        "at equal stamps.",
        _tip_error,
    ),
    "tip_path": ("Path of the tip", "The evaluated part of the run.", _tip_path),
    "pressures": (
        "Pressures",
        "Gauge pressures of the chambers: what the controller asked for and what was measured.",
        _pressures,
    ),
    "bending_compliance": (
        "Bending compliance",
        "What the estimator believes, with its own uncertainty.",
        _bending_compliance,
    ),
    "constant_curvature": (
        "Constant curvature",
        "The arc that is estimated from the sensor under the base, and the one from the rod's true "
        "base to its true tip. The stiffness takes up what constant curvature leaves out.",
        _arc,
    ),
    "shape": ("Shape", "The rod at times spread evenly over the run.", _shape),
    "tick_times": (
        "Cycle times",
        "From complete input to published output, over the whole run, as the nodes report it.",
        tick_times,
    ),
}
