"""One offline replay from bag to report: the new bag, and recorded run against replayed run."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from rich.console import Console, Group, RenderableType
from rich.progress import Progress
from rich.table import Table
from rich.text import Text
from threadpoolctl import threadpool_limits

from softcr_models.errors import UserError
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import BagSignals, Signal, read_signals
from softcr_runtime.console import figure_style as look
from softcr_runtime.console.terminal import compile_kernels, harmless, say, step
from softcr_runtime.replay.bag_replay import BagReplay, Counts, ReplayTask


@dataclass(frozen=True)
class Spread:
    """Mean and largest of some magnitudes."""

    mean: float
    max: float

    @classmethod
    def of(cls, values: np.ndarray, scale: float = 1.0) -> "Spread | None":
        """Of the absolute values times a scale; None of none."""
        if not values.size:
            return None
        return cls(float(scale * np.abs(values).mean()), float(scale * np.abs(values).max()))


@dataclass(frozen=True)
class Comparison:
    """A replay beside its record; None is what there was no data for.

    Differences are between recorded and replayed values at equal stamps, of all nodes or chambers;
    the tip errors are at the stamps that both runs have.
    """

    estimates: Counts
    commands: Counts | None
    tip_difference_mm: Spread | None  # of the estimated tip
    shape_difference_mm: Spread | None  # of the estimated nodes
    compliance_difference: Spread | None  # of the estimate [rad/(N m m)]
    command_difference_kpa: Spread | None  # of pressures
    command_difference: Spread | None  # of others, in `command_unit`
    command_unit: str
    tip_error_against: str | None  # the simulator's truth, or mocap
    recorded_tip_error_mm: Spread | None
    replayed_tip_error_mm: Spread | None
    true_compliance: float | None  # of the plant [rad/(N m m)]
    recorded_compliance: float | None  # the last estimate
    replayed_compliance: float | None
    duration_s: float  # of the replayed stretch of the run
    real_time_factor: float  # duration over the time the replay took
    notes: Sequence[str]  # one line for everything to know beside the numbers

    def table(self) -> RenderableType:
        """The comparison on one screen."""
        rows = Table.grid(padding=(0, 2))
        for name, value in _rows(self):
            rows.add_row(Text(name), Text(value, style="bold"))
        return Group(rows, *(Text(harmless(line), style="yellow") for line in self.notes))


def replay(bag: Bag, task: ReplayTask, output: Path, console: Console) -> Comparison:
    """Replay a bag into a directory: a bag, comparison.json and comparison.png.

    Raises:
        UserError: a needed topic is missing, a parameter is not allowed, the output exists.
    """
    if output.exists():
        raise UserError(f"{output} exists already: remove it or choose another --output")
    compile_kernels(console)
    # as every node does: more threads give other bits, and the matrices are small
    threadpool_limits(limits=1, user_api="blas")
    with step(console, "preparing"):
        again = BagReplay(bag, task, partial(say, console))
    try:
        with Progress(console=console) as progress:
            bar = progress.add_task("replaying", total=again.lead_count)
            factor = again.play(output, lambda: progress.advance(bar))
            progress.update(bar, completed=again.lead_count)
        with step(console, "comparing"):
            return _reported(bag, again, output, factor)
    except BaseException:
        shutil.rmtree(output, ignore_errors=True)
        raise


def _reported(bag: Bag, again: BagReplay, output: Path, factor: float) -> Comparison:
    recorded, replayed = read_signals(bag), read_signals(Bag(output))
    estimates = again.estimates
    notes = [*([bag.damage] if bag.damage else []), *again.notes]
    if estimates.compared < estimates.recorded:
        missing = estimates.recorded - estimates.compared
        notes.append(f"{missing} recorded estimates were not replayed: their samples are missing")
    if bag.doubt:
        notes.append(bag.doubt)
    comparison = compare(recorded, replayed, estimates, again.commands, factor, notes)
    content = {"bag": str(bag.path), "settings": again.settings, **asdict(comparison)}
    try:
        (output / "comparison.json").write_text(
            json.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8"
        )
        draw(recorded, replayed, output / "comparison.png")
    except OSError as error:
        raise UserError(f"cannot write the comparison to {output}: {error.strerror}") from None
    return comparison


# --- the numbers --------------------------------------------------------------------------------


def compare(
    recorded: BagSignals,
    replayed: BagSignals,
    estimates: Counts,
    commands: Counts | None,
    real_time_factor: float,
    notes: Sequence[str],
) -> Comparison:
    """The numbers of a replay.

    Args:
        recorded, replayed: read from the two bags.
        estimates, commands: counted while replaying; commands are None without a controller.
        real_time_factor: likewise.
        notes: lines that belong to the report.
    """
    before, after = _tip_error(recorded), _tip_error(replayed)
    common = np.intersect1d(before.stamps, after.stamps) if len(before) else after.stamps
    stamps = replayed.role("estimated tip").stamps
    command_difference = replayed.role("plans").minus(recorded.role("plans"))
    of_pressures = command_difference.unit in ("Pa", "")
    told = commands is not None
    measured = "mocap, its noise included" if len(recorded.role("measured tip")) else None
    return Comparison(
        estimates=estimates,
        commands=commands,
        tip_difference_mm=Spread.of(_tip_difference(recorded, replayed).values, 1e3),
        shape_difference_mm=_shape_difference(recorded, replayed),
        compliance_difference=Spread.of(_compliance(replayed).minus(_compliance(recorded)).values),
        command_difference_kpa=Spread.of(command_difference.values, 1e-3)
        if told and of_pressures
        else None,
        command_difference=Spread.of(command_difference.values)
        if told and not of_pressures
        else None,
        command_unit=command_difference.unit,
        tip_error_against="the simulator's truth" if len(recorded.role("true tip")) else measured,
        recorded_tip_error_mm=Spread.of(before.values[np.isin(before.stamps, common)], 1e3),
        replayed_tip_error_mm=Spread.of(after.values[np.isin(after.stamps, common)], 1e3),
        true_compliance=recorded.true_parameter("bending_compliance"),
        recorded_compliance=_last(_compliance(recorded)),
        replayed_compliance=_last(_compliance(replayed)),
        duration_s=1e-9 * float(stamps[-1] - stamps[0]) if len(stamps) else 0.0,
        real_time_factor=real_time_factor,
        notes=tuple(notes),
    )


def _tip_difference(recorded: BagSignals, replayed: BagSignals) -> Signal:
    """(T,) distance of recorded and replayed estimate of the tip at equal stamps [m]."""
    return replayed.role("estimated tip").minus(recorded.role("estimated tip")).norm()


def _compliance(run: BagSignals) -> Signal:
    """(T,) estimated bending compliance [rad/(N m m)]."""
    return run.signal("estimate/rod", "parameter.bending_compliance")


def _tip_error(run: BagSignals) -> Signal:
    """(T,) distance of the estimated tip from the true one, or from mocap on hardware [m]."""
    return run.role("estimated tip").minus(run.tip).norm()


def _shape_difference(recorded: BagSignals, replayed: BagSignals) -> Spread | None:
    one, other = (run.role("estimated shape") for run in (recorded, replayed))
    if one.values.shape[1:] != other.values.shape[1:]:  # another number of intervals
        return None
    return Spread.of(other.minus(one).norm().values, 1e3)


def _last(series: Signal) -> float | None:
    return float(series.values[-1]) if len(series) else None


# --- as figure and table ------------------------------------------------------------------------


def draw(recorded: BagSignals, replayed: BagSignals, path: Path) -> None:
    """Tip error, difference of the tips and bending compliance over time, as a PNG file.

    Raises:
        OSError: the file cannot be written.
    """
    with rc_context(look.STYLE):
        figure = look.new_figure(6.6, top=0.6)
        errors, differences, compliances = figure.subplots(3, 1, sharex=True)
        runs = (recorded, look.REFERENCE, "recorded"), (replayed, look.ESTIMATE, "replayed")
        for run, colour, name in runs:
            error = _tip_error(run)
            _plot(errors, run, error, 1e3, color=colour, label=name)
            _plot(compliances, run, _compliance(run), 1.0, color=colour, label=name)
        difference = _tip_difference(recorded, replayed)
        _plot(differences, recorded, difference, 1e3, color=look.TRUTH)
        if (true := recorded.true_parameter("bending_compliance")) is not None:
            compliances.axhline(true, **look.THIN_DASHES, label="true")
        errors.set_ylabel("tip error [mm]")
        differences.set_ylabel("replayed - recorded [mm]")
        compliances.set_ylabel("compliance [rad/(N m m)]")
        compliances.set_xlabel("time [s]")
        figure.align_ylabels()
        look.legend_above(figure, compliances)
        figure.savefig(path)


def _plot(axes: Any, run: BagSignals, series: Signal, scale: float, **style: Any) -> None:
    if len(series):
        axes.plot(run.seconds(series), scale * series.values, **style)


def _rows(found: Comparison) -> list[tuple[str, str]]:
    spreads = (
        ("difference of the tip", found.tip_difference_mm, "mm"),
        ("difference of the shape", found.shape_difference_mm, "mm"),
        ("difference of the compliance", found.compliance_difference, "rad/(N m m)"),
        ("difference of the commands", found.command_difference_kpa, "kPa"),
        ("difference of the commands", found.command_difference, found.command_unit),
        ("recorded tip error", found.recorded_tip_error_mm, "mm"),
        ("replayed tip error", found.replayed_tip_error_mm, "mm"),
    )
    compliances = {
        "recorded": found.recorded_compliance,
        "replayed": found.replayed_compliance,
        "true": found.true_compliance,
    }
    told = [f"{name} {value:.2f}" for name, value in compliances.items() if value is not None]
    at_the_end = ", ".join(told) + " rad/(N m m)"
    speed = f"{found.duration_s:.1f} s at {found.real_time_factor:.1f} x real time"
    return [
        ("estimates", _counted(found.estimates)),
        *([("commands", _counted(found.commands))] if found.commands else []),
        *(
            (name, f"mean {spread.mean:.4g}, largest {spread.max:.4g} {unit}")
            for name, spread, unit in spreads
            if spread is not None
        ),
        *([("bending compliance at the end", at_the_end)] if told else []),
        ("replayed", speed),
    ]


def _counted(counts: Counts) -> str:
    equal = f"{counts.identical} of {counts.compared} equal to the bit"
    return f"{counts.replayed} replayed, {counts.recorded} recorded, {equal}"
