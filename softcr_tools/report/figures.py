"""The figures of a report: each is drawn where the bag holds the signals it shows.

A figure is a function; its name is that of its file, its docstring says title and caption.
"""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, NullLocator
from matplotlib.transforms import blended_transform_factory

from softcr_models.robots.kinds import ShownInput
from softcr_runtime.bags.signals import Signal
from softcr_runtime.console import figure_style as style
from softcr_runtime.console.figure_style import COMMANDED, ESTIMATE, LIMIT, MEASURED, TRUTH
from softcr_runtime.console.kind_reports import Curves
from softcr_tools.report.page import ReportFigure
from softcr_tools.report.rod_report import COMPLIANCE_SETTLING_TIME
from softcr_tools.report.run import Run
from softcr_tools.report.sections import SETTLING_TIME

SNAPSHOTS = 9  # shapes drawn of a run
CLOSE_UP = 3.0  # length of the close-up at the end of a long run [s]
_COLOURS = (ESTIMATE, COMMANDED, TRUTH, MEASURED)
_BLUE: dict[str, Any] = {"color": ESTIMATE}
_BLACK: dict[str, Any] = {"color": TRUTH}
_BOLD: dict[str, Any] = {"color": TRUTH, "linewidth": 1.8}
_STEPS: dict[str, Any] = {"color": COMMANDED, "drawstyle": "steps-post"}
_LIMITS: dict[str, Any] = {"color": LIMIT, "linestyle": ":", "label": "limits"}

Draw = Callable[[Axes], Any]
Row = tuple[str, list[Draw]]  # the label of an axis over time, and what draws on it
Drawing = tuple[Callable[[Run], Figure | None], str, str]  # what draws, title, caption
Kind = tuple[str, Signal, dict[str, Any]]  # name and look of a curve; units follow from a scale


def draw_figures(run: Run, directory: Path) -> list[ReportFigure]:
    """Draw every figure the run has signals for, as PNG files in a directory, whose parent exists.

    Raises:
        OSError: the directory cannot be written.
    """
    if directory.is_symlink():  # of a folder that came with a bag
        directory.unlink()
    directory.mkdir(exist_ok=True)
    drawn: list[ReportFigure] = []
    for name, (draw, title, caption) in {**_own(), **_of_kind(run)}.items():
        with rc_context(style.STYLE):
            if (figure := draw(run)) is None:
                continue
            path = directory / f"{name}.png"
            path.unlink(missing_ok=True)
            figure.savefig(path)
        drawn.append((path, title, caption[:1].upper() + caption[1:]))
    return drawn


def _own() -> dict[str, Drawing]:
    """The figures of every kind of robot, by the name of their file."""
    found: dict[str, Drawing] = {}
    for draw in _FIGURES:
        title, _, caption = " ".join((draw.__doc__ or "").split()).partition(": ")
        found[draw.__name__] = draw, title, caption
    return found


def _of_kind(run: Run) -> dict[str, Drawing]:
    """The figures that the robot's kind and packages add."""
    told = [figure for each in run.added for figure in each.figures(run).items()]
    return {name: (partial(_told, each), each.title, each.caption) for name, each in told}


def _told(figure: Curves, run: Run) -> Figure | None:
    """What a kind tells as data."""
    rows: list[Row] = []
    for row in figure.rows:
        drawn: list[Draw] = []
        for each in row.curves:
            drawn += _curves(run, [(each.name, each.signal, {**each.look})], row.scale, each.column)
        if row.level is not None:
            name, height = row.level
            drawn.insert(0, _level(row.scale * height, label=name, **style.THIN_DASHES))
        rows.append((row.label, drawn))
    return _over_time(run, rows, figure.height)


def _curves(
    run: Run, kinds: Iterable[Kind], scale: float = 1.0, column: int | None = None
) -> list[Draw]:
    """Draw signals, or a column of each, times a scale over time; nothing of empty ones."""

    def curve(name: str, signal: Signal, look: dict[str, Any]) -> Draw:
        values = signal.values if column is None else signal.values[:, column]
        return lambda axes: axes.plot(run.bag.seconds(signal), scale * values, label=name, **look)

    return [curve(*kind) for kind in kinds if len(kind[1])]


def _columns(
    run: Run, labels: Iterable[str], scale: float | Iterable[float], *kinds: Kind
) -> list[Row]:
    """A row of axes for each column of signals, which may have scales of their own."""
    scales = repeat(scale) if isinstance(scale, float) else scale
    return [
        (label, _curves(run, kinds, own, column))
        for column, (label, own) in enumerate(zip(labels, scales, strict=False))
    ]


def _level(value: float, **look: Any) -> Draw:
    return lambda axes: axes.axhline(value, **look)


def _over_time(run: Run, rows: list[Row], height: float, close_up: bool = True) -> Figure | None:
    """Rows of axes, `height` each [inch], over the whole run and, if that is long and `close_up`,
    its last seconds; None of nothing."""
    if not any(drawn for _, drawn in rows):
        return None
    ends = [run.bag.seconds(s)[-1] for s in (run.tip, run.estimated_tip, run.readings) if len(s)]
    followed_until = end = max([1e-3, *ends])  # of what was measured or estimated
    if run.window is not None:
        followed_until = 1e-9 * (run.window[1] - run.bag.start)
    spans = {"whole run" if close_up else "": (0.0, end)}
    if close_up and followed_until > 2 * CLOSE_UP:
        spans[f"the last {CLOSE_UP:.0f} s"] = followed_until - CLOSE_UP, followed_until
    figure = style.new_figure(height * len(rows) + 1.1, left=1.1, top=0.6)
    grid = figure.subplots(
        len(rows), len(spans), sharex="col", sharey="row", squeeze=False,
        width_ratios=[5, 3][: len(spans)], gridspec_kw={"wspace": 0.04, "hspace": 0.1},
    )  # fmt: skip
    for column, (title, span) in zip(grid.T, spans.items(), strict=True):
        column[0].set(xlim=span, title=title)
        column[-1].set_xlabel("time [s]")
    for line, (label, drawn) in zip(grid, rows, strict=True):
        line[0].set_ylabel(label)
        if followed_until < end:
            line[0].axvspan(followed_until, end, color=MEASURED, alpha=0.25, label="not evaluated")
        for axes in line:
            for draw in drawn:
                draw(axes)
    _align_labels(figure, grid[:, 0])
    style.legend_above(figure, grid[0, 0])
    return figure


def _align_labels(figure: Figure, column: Iterable[Axes]) -> None:
    """Put the labels of a column of axes left of its widest tick labels, as `align_ylabels` does,
    which measures the tick labels of all rows again for each row."""
    rows, renderer = list(column), FigureCanvasAgg(figure).get_renderer()
    lefts = [axes.bbox.x0 for axes in rows]
    for axes in rows:
        low, high = sorted(axes.get_ylim())
        drawn = (each for each in axes.get_yticklabels() if low <= each.get_position()[1] <= high)
        lefts += [each.get_window_extent(renderer).x0 for each in drawn if each.get_text()]
    left = min(lefts) / figure.dpi
    for axes in rows:
        place = blended_transform_factory(figure.dpi_scale_trans, axes.transAxes)
        axes.yaxis.set_label_coords(left - axes.yaxis.labelpad / 72.0, 0.5, place)


def tip_tracking(run: Run) -> Figure | None:
    """Tip and reference: position of the tip in the frame of the robot's base."""
    if not len(run.tip) and not len(run.estimated_tip):
        return None
    rows = _columns(
        run, ["x [mm]", "y [mm]", "z [mm]"], 1e3,
        ("mocap", run.measured_tip, style.DOTS), ("tip", run.true_tip, _BOLD),
        ("estimate", run.estimated_tip, _BLUE), ("reference", run.reference_tip, style.DASHES),
    )  # fmt: skip
    return _over_time(run, rows, height=1.7)


def tip_error(run: Run) -> Figure | None:
    """Errors: distance of the tip from its reference, and of the estimate from the truth, at equal
    stamps."""
    errors = (
        ("tip to reference", run.tracking_error(), TRUTH),
        ("estimated to true tip", run.estimation_error(), ESTIMATE),
    )
    kinds: list[Kind] = [
        (f"{what}: mean {1e3 * error.values.mean():.2f} mm", error, {"color": colour})
        for what, error, colour in errors
        if len(error)
    ]
    if len(settled := run.tracking_error(after=SETTLING_TIME)):
        mean = settled.values.mean()
        label = f"from {SETTLING_TIME:.0f} s on: mean {1e3 * mean:.2f} mm"
        ends = settled.like(settled.stamps[[0, -1]], np.full(2, mean))
        kinds.append((label, ends, style.DASHES))
    rows = [("distance [mm]", _curves(run, kinds, 1e3))]
    figure = _over_time(run, rows, height=2.5, close_up=False)
    if figure is not None:
        axes = figure.axes[0]
        jumps = run.reference_tip.topic == "reference/tip"  # from one setpoint to the next
        axes.set(yscale="log") if jumps else axes.set_ylim(bottom=0)
    return figure


def tip_path(run: Run) -> Figure | None:
    """Path of the tip: the evaluated part of the run."""
    if run.window is None or not len(run.tip):
        return None
    figure = style.new_figure(4.6, left=0.1)
    figure.subplots_adjust(wspace=0.2)
    space: Any = figure.add_subplot(1, 2, 1, projection="3d")
    above = figure.add_subplot(1, 2, 2)
    tip = 1e3 * run.tip.between(*run.window).values
    reference = 1e3 * run.reference_tip.between(*run.window).values
    points = "o" if np.ptp(reference, axis=0).max() == 0.0 else None
    for axes, axis_count in ((space, 3), (above, 2)):
        axes.plot(*reference.T[:axis_count], **style.BROAD, marker=points, label="reference")
        axes.plot(*tip.T[:axis_count], color=TRUTH, linewidth=0.8, label="tip")
        axes.plot(*tip[:1].T[:axis_count], "o", color=TRUTH, markersize=4, label="start")
        axes.set(xlabel="x [mm]", ylabel="y [mm]")
    _scale_equally(space, np.concatenate([tip, reference]))
    space.set(zlabel="z [mm]", title="path of the tip")
    above.set_aspect("equal", adjustable="datalim")
    above.set_title("seen from above")
    above.legend(loc="upper right")
    return figure


def _scale_equally(axes: Any, points: np.ndarray) -> None:
    """Make a millimetre as long along each of three axes, and none too short for its labels."""
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    extents = np.ptp(points, axis=0)
    half = 0.55 * np.maximum(extents, 0.4 * extents.max() + 1e-6)
    low, high = middle - half, middle + half
    axes.set(xlim3d=(low[0], high[0]), ylim3d=(low[1], high[1]), zlim3d=(low[2], high[2]))
    axes.set_box_aspect(half)
    axes.zaxis.set_major_locator(MaxNLocator(4))


def pressures(run: Run) -> Figure | None:
    """Inputs: as commanded by the controller and as measured."""
    names = run.readings.columns or run.commands.columns
    if not names:
        return None
    shown = {each.name: each for each in run.inputs}
    scales = [shown[name].scale if name in shown else 1e-3 for name in names]
    units = [shown[name].unit if name in shown else "kPa" for name in names]
    rows = _columns(
        run, [f"{name}\n[{unit}]" for name, unit in zip(names, units, strict=True)], scales,
        ("commanded", run.commands, _STEPS), ("measured", run.readings, _BLACK),
    )  # fmt: skip
    limits = [_limits(run, shown.get(name)) for name in names]
    limited = zip(limits, rows, strict=True)
    return _over_time(
        run, [(label, lines + drawn) for lines, (label, drawn) in limited], height=1.6
    )


def _limits(run: Run, shown: ShownInput | None) -> list[Any]:
    """Lines at the limits of an input; of one that nothing tells, those of pressures."""
    if shown is None:
        return [_level(1e-3 * bound, **_LIMITS) for bound in run.limits() or ()]
    bounds = [bound for bound in (shown.low, shown.high) if np.isfinite(bound)]
    return [_level(shown.scale * bound, **_LIMITS) for bound in bounds]


def bending_compliance(run: Run) -> Figure | None:
    """Bending compliance: estimate with two of its own standard deviations. Shaded in grey: within
    1 % of the truth."""
    name = "bending_compliance"
    if name not in run.parameters():
        return None
    figure = _over_time(run, [_parameter(run, name)], height=2.5, close_up=False)
    true, time = run.bag.true_parameter(name), run.bag.seconds(run.parameters()[name][0])
    if figure is not None and true is not None:
        span = [min(time[0] + COMPLIANCE_SETTLING_TIME, time[-1]), time[-1]]
        figure.axes[0].fill_between(
            span, 0.99 * true, 1.01 * true, color=TRUTH, alpha=0.12, linewidth=0
        )
    return figure


def parameters(run: Run) -> Figure | None:
    """Parameters: estimates of the model's other parameters, with two of their own standard
    deviations."""
    rows = [_parameter(run, name) for name in run.parameters() if name != "bending_compliance"]
    return _over_time(run, rows, height=1.3, close_up=False)


def _parameter(run: Run, name: str) -> Row:
    signal, std = run.parameters()[name]
    true, drawn = run.bag.true_parameter(name), _curves(run, [("estimate", signal, _BLUE)])
    if len(std) == len(signal):
        low, high = (signal.values + side * 2 * std.values for side in (-1, 1))
        drawn.insert(0, partial(_draw_band, run.bag.seconds(signal), low, high))
    if true is not None:
        drawn.insert(0, _level(true, label="truth", **_BLACK))
    unit = f"[{signal.unit}]" * (signal.unit not in ("", "-"))
    return f"{name.replace('_', chr(10), 1).replace('_', ' ')}\n{unit}", drawn


def _draw_band(time: np.ndarray, low: np.ndarray, high: np.ndarray, axes: Axes) -> None:
    label = "2 standard deviations"
    axes.fill_between(time, low, high, color=ESTIMATE, alpha=0.18, linewidth=0, label=label)


def shape(run: Run) -> Figure | None:
    """Shape: the robot at times that are spread evenly over the run."""
    (true, true_at), (seen, seen_at) = run.shapes(truth=True), run.shapes(truth=False)
    stamps, at = (true, true_at) if len(true) else (seen, seen_at)
    inside = np.arange(len(stamps))
    if run.window is not None:
        inside = inside[(stamps >= run.window[0]) & (stamps <= run.window[1])]
    if not len(inside):
        return None
    picked = inside[np.unique(np.linspace(0, len(inside) - 1, SNAPSHOTS).round().astype(int))]
    times = run.bag.seconds(Signal(stamps[picked], stamps[picked]))
    estimated = {stamp: index for index, stamp in enumerate(seen.tolist())} if len(true) else {}
    colours = ScalarMappable(Normalize(times[0], max(times[-1], times[0] + 1e-9)), "viridis")
    figure = style.new_figure(4.4, right=0.4)
    panels = figure.subplots(1, 2, sharey=True, gridspec_kw={"wspace": 0.08})
    for axes, column, name in zip(panels, (0, 1), "xy", strict=True):
        for index, time in zip(picked.tolist(), times, strict=True):
            points, beside = 1e3 * at(index), estimated.get(int(stamps[index]))
            marks = "." if len(points) < 30 else None
            axes.plot(points[:, column], points[:, 2], marker=marks, color=colours.to_rgba(time))
            if beside is not None:
                model = 1e3 * seen_at(beside)
                axes.plot(model[:, column], model[:, 2], **style.THIN_DASHES)
        axes.set_xlabel(f"{name} [mm]")
        axes.set_aspect("equal", adjustable="datalim")
    panels[0].set(ylabel="z [mm]", title="centre line of the robot")
    kinds = [Line2D([], [], color=TRUTH, label="true" if len(true) else "estimated")]
    if estimated:
        kinds.append(Line2D([], [], **style.THIN_DASHES, label="estimated"))
    panels[1].legend(handles=kinds, loc="best")
    figure.colorbar(colours, ax=panels, label="time [s]", pad=0.02, fraction=0.06)
    return figure


def tick_times(run: Run) -> Figure | None:
    """Cycle times: time from complete input to published output, over the whole run, as the nodes
    report it."""
    told = {node: run.bag.said(node, "tick_time_histogram_ms") for node in run.bag.nodes}
    histograms = {n: t for n, t in told.items() if isinstance(t, dict) and any(t.get("counts", ()))}
    if not histograms:
        return None
    figure = style.new_figure(1.4 * len(histograms) + 0.8, right=1.6)
    figure.subplots_adjust(hspace=0.35)
    rows = figure.subplots(len(histograms), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (node, histogram) in zip(rows, histograms.items(), strict=True):
        axes.stairs(histogram["counts"], histogram["edges"], fill=True, color=ESTIMATE, alpha=0.75)
        for name, colour, line in (
            ("p50", TRUTH, "-"), ("p99", TRUTH, "--"), ("deadline", LIMIT, ":")
        ):  # fmt: skip
            if isinstance(time := run.bag.said(node, f"{name}_ms"), float):
                label = f"{name} {time:.2f} ms"
                axes.axvline(time, color=colour, linestyle=line, label=label)
        axes.set(xscale="log", yscale="log", ylabel="cycles", title=node)
        axes.set_ylim(bottom=0.7)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    rows[-1].set_xlabel("time of a cycle [ms]")
    rows[-1].xaxis.set_major_formatter("{x:g}")
    return figure


_FIGURES: tuple[Callable[[Run], Figure | None], ...] = (
    tip_tracking, tip_error, tip_path, pressures, bending_compliance, parameters,
    shape, tick_times,
)  # fmt: skip
