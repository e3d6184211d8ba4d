"""The figures of an arm's report: functions of the run, None where it has nothing to show."""

from pathlib import Path

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from softcr_tools.arm_report.run import ArmRun
from softcr_tools.arm_report.summary import shape_errors, tracking_error
from softcr_tools.report_axes import (
    COMMANDED,
    DASHES,
    DOTS,
    ESTIMATE,
    MEASURED,
    THIN_DASHES,
    TRUTH,
    legend_above,
    new_figure,
    plot_column,
    rows_over_time,
)
from softcr_tools.report_figures import SNAPSHOTS, Figures, ReportFigure, drawn_figures, tick_times
from softcr_tools.report_run import Series

_POINTS = 40  # of a drawn backbone
_COLOURS = (ESTIMATE, COMMANDED, TRUTH, MEASURED)


def draw_arm_figures(run: ArmRun, directory: Path) -> list[ReportFigure]:
    """Draw every figure the run has data for.

    Args:
        run: what was recorded.
        directory: for the PNG files; its parent must exist.

    Raises:
        OSError: the directory cannot be written.
    """
    return drawn_figures(run, directory, _FIGURES)


def _extent(run: ArmRun) -> tuple[float, float, float]:
    """Start of the run, end of its evaluated part, end of the recording [s]."""
    ends = (run.seconds(s)[-1] for s in (run.tip, run.lengths, run.commanded) if len(s))
    end = max(max(ends, default=0.0), 1e-3)
    return 0.0, end, end


def _tip_tracking(run: ArmRun) -> Figure | None:
    if not len(run.tip):
        return None
    figure, grid = rows_over_time(_extent(run), [f"{axis} [mm]" for axis in "xyz"], height=1.7)
    seen = Series(run.measured.stamps, run.measured.values[:, -1])
    for axis, row in enumerate(grid):
        for axes in row:
            plot_column(axes, run, seen, axis, 1e3, **DOTS, label="mocap")
            plot_column(axes, run, run.true_tip, axis, 1e3, color=TRUTH, linewidth=1.8, label="tip")
            plot_column(axes, run, run.estimated_tip, axis, 1e3, color=ESTIMATE, label="model")
            plot_column(axes, run, run.target, axis, 1e3, **DASHES, label="setpoint")
    legend_above(figure, grid[0, 0])
    return figure


def _errors(run: ArmRun) -> Figure | None:
    tracking, shape = tracking_error(run), shape_errors(run)
    if not len(tracking) and not len(shape):
        return None
    figure = new_figure(3.4, top=0.35)
    axes = figure.subplots()
    for error, colour, what in (
        (tracking, TRUTH, "tip to setpoint"),
        (shape, ESTIMATE, "model's to arm's backbone (E_shape)"),
    ):
        if len(error):
            axes.plot(run.seconds(error), 1e3 * error.values, color=colour, label=what)
    axes.set_yscale("log")
    axes.set_xlabel("time [s]")
    axes.set_ylabel("distance [mm]")
    legend_above(figure, axes)
    return figure


def _section_lengths(run: ArmRun) -> Figure | None:
    if not len(run.rest_lengths):
        return None
    sections = run.rest_lengths.values.shape[1]
    labels = [f"section {k + 1}\n[mm]" for k in range(sections)]
    figure, grid = rows_over_time(_extent(run), labels, height=1.5)
    whole = Series(
        run.rest_lengths.stamps, run.rest_lengths.values + run.estimated_q.values[:, 2::3]
    )
    for section, row in enumerate(grid):
        for axes in row:
            plot_column(axes, run, whole, section, 1e3, color=MEASURED, label="with elongation")
            plot_column(
                axes, run, run.rest_lengths, section, 1e3, color=ESTIMATE, label="rest length"
            )
            if run.arm is not None:
                axes.axhline(
                    1e3 * run.arm.model_lengths[section], **THIN_DASHES, label="between racks"
                )
    legend_above(figure, grid[0, 0])
    return figure


def _tendon_lengths(run: ArmRun) -> Figure | None:
    return _tendon_rows(
        run, "[mm]", 1e3, ((run.commanded, "wanted", "--"), (run.lengths, "measured", "-"))
    )


def _tendon_forces(run: ArmRun) -> Figure | None:
    return _tendon_rows(run, "[N]", 1.0, ((run.forces, "force", "-"),))


def _tendon_rows(
    run: ArmRun, unit: str, scale: float, kinds: tuple[tuple[Series, str, str], ...]
) -> Figure | None:
    """A row of axes per rack, a colour per tendon of it, a line style per kind."""
    if not run.tendons or not any(len(series) for series, _, _ in kinds):
        return None
    racks = [1] * len(run.tendons) if run.arm is None else [t.rack for t in run.arm.actuators]
    labels = [f"rack {k + 1}\n{unit}" for k in range(max(racks))]
    figure, grid = rows_over_time(_extent(run), labels, height=1.7)
    for rack, row in enumerate(grid):
        for axes in row:
            columns = [column for column, fixed_at in enumerate(racks) if fixed_at == rack + 1]
            for number, column in enumerate(columns):
                colour = _COLOURS[number % len(_COLOURS)]
                for series, what, style in kinds:
                    plot_column(
                        axes, run, series, column, scale,
                        color=colour, linestyle=style, label=f"tendon {number + 1}, {what}",
                    )  # fmt: skip
    legend_above(figure, grid[0, 0])
    return figure


def _shape(run: ArmRun) -> Figure | None:
    if run.arm is None or not (len(run.true_q) or len(run.estimated_q)):
        return None
    arm = run.arm
    shapes = run.true_q if len(run.true_q) else run.estimated_q
    picked = np.unique(np.linspace(0, len(shapes) - 1, SNAPSHOTS).round().astype(int))
    stamps = shapes.stamps[picked]
    times = run.seconds(Series(stamps, stamps))
    colours = ScalarMappable(Normalize(times[0], max(times[-1], times[0] + 1e-9)), "viridis")
    figure = new_figure(4.4, right=0.4)
    panels = figure.subplots(1, 2, sharey=True, gridspec_kw={"wspace": 0.08})
    estimates = {
        stamp: 1e3 * arm.model.backbone(q, lengths, _POINTS)[:, :3, 3]
        for stamp, q, lengths in zip(
            run.estimated_q.stamps, run.estimated_q.values, run.rest_lengths.values, strict=True
        )
        if stamp in stamps
    }
    for index, (stamp, time) in enumerate(zip(stamps, times, strict=True)):
        lines = []
        if len(run.true_q):
            true = arm.chain.backbone(run.true_q.values[picked[index]], arm.rest_lengths, _POINTS)
            lines.append((1e3 * true[:, :3, 3], {"color": colours.to_rgba(time)}))
        if stamp in estimates:
            lines.append((estimates[stamp], THIN_DASHES))
        for axes, column in zip(panels, (0, 1), strict=True):
            for points, style in lines:
                axes.plot(points[:, column], points[:, 2], **style)
    for axes, name in zip(panels, "xy", strict=True):
        axes.set_xlabel(f"{name} [mm]")
        axes.set_aspect("equal", adjustable="datalim")
    panels[0].set_ylabel("z [mm]")
    panels[0].set_title("backbone of the arm")
    kinds = [Line2D([], [], color=TRUTH, label="true")] * bool(len(run.true_q))
    panels[1].legend(handles=[*kinds, Line2D([], [], **THIN_DASHES, label="model")], loc="best")
    figure.colorbar(colours, ax=panels, label="time [s]", pad=0.02, fraction=0.06)
    return figure


_FIGURES: Figures[ArmRun] = {
    "tip_tracking": (
        "Tip and setpoint",
        "Position of the tip in the frame of the arm's base, with the world's axes.",
        _tip_tracking,
    ),
    "errors": (
        "Errors",
        "Distance of the tip from its setpoint, and mean distance of the model's backbone from the "
        "arm's.",
        _errors,
    ),
    "section_lengths": (
        "Section lengths",
        "What the controller takes the sections' lengths for, without and with their elongation.",
        _section_lengths,
    ),
    "tendon_lengths": (
        "Tendon lengths",
        "Changes against the zero state: what the controller asked for and what was measured.",
        _tendon_lengths,
    ),
    "tendon_forces": ("Tendon forces", "Negative where a tendon pulls.", _tendon_forces),
    "shape": ("Shape", "The arm at times spread evenly over the run.", _shape),
    "tick_times": (
        "Cycle times",
        "From complete input to published output, over the whole run, as the nodes report it.",
        tick_times,
    ),
}
