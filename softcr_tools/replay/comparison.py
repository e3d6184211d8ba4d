"""Recorded run against replayed run: numbers, table, figure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from softcr_runtime.bags.signals import BagSignals, Signal
from softcr_runtime.figure_style import (
    ESTIMATE,
    REFERENCE,
    STYLE,
    THIN_DASHES,
    TRUTH,
    legend_above,
    new_figure,
)
from softcr_runtime.replay.bag_replay import Counts


@dataclass(frozen=True)
class Spread:
    """Mean and largest of some magnitudes."""

    mean: float
    max: float

    @classmethod
    def of(cls, values: np.ndarray, scale: float = 1.0) -> "Spread | None":
        """Of the absolute values times a scale; None of none."""
        return (
            cls(float(scale * np.abs(values).mean()), float(scale * np.abs(values).max()))
            if values.size
            else None
        )


@dataclass(frozen=True)
class Comparison:
    """A replay beside its record; None is what there was no data for.

    Attributes:
        estimates, commands: how many, and how many are equal to the bit.
        tip_difference_mm, shape_difference_mm: between recorded and replayed estimate at equal
            stamps, of the tip and of all nodes.
        compliance_difference: likewise [rad/(N m m)].
        command_difference_kpa: between recorded and replayed commands, over all chambers.
        tip_error_against: what the tip errors are against: the simulator's truth, or mocap.
        recorded_tip_error_mm, replayed_tip_error_mm: at the stamps that both have.
        true_compliance: of the plant [rad/(N m m)].
        recorded_compliance, replayed_compliance: last estimates.
        duration_s: of the replayed stretch of the run.
        real_time_factor: duration over the time the replay took.
        notes: one line for everything to know beside the numbers.
    """

    estimates: Counts
    commands: Counts | None
    tip_difference_mm: Spread | None
    shape_difference_mm: Spread | None
    compliance_difference: Spread | None
    command_difference_kpa: Spread | None
    tip_error_against: str | None
    recorded_tip_error_mm: Spread | None
    replayed_tip_error_mm: Spread | None
    true_compliance: float | None
    recorded_compliance: float | None
    replayed_compliance: float | None
    duration_s: float
    real_time_factor: float
    notes: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)

    def table(self) -> RenderableType:
        """The comparison on one screen."""
        rows = Table.grid(padding=(0, 2))
        for name, value in _rows(self):
            rows.add_row(Text(name), Text(value, style="bold"))
        return Group(rows, *(Text(line, style="yellow") for line in self.notes))


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
    return Comparison(
        estimates=estimates,
        commands=commands,
        tip_difference_mm=Spread.of(tip_difference(recorded, replayed).values, 1e3),
        shape_difference_mm=_shape_difference(recorded, replayed),
        compliance_difference=Spread.of(_compliance(replayed).minus(_compliance(recorded)).values),
        command_difference_kpa=Spread.of(
            replayed.role("commands").minus(recorded.role("commands")).values, 1e-3
        )
        if commands is not None
        else None,
        tip_error_against=_tip_measured_by(recorded),
        recorded_tip_error_mm=Spread.of(_at(before, common).values, 1e3),
        replayed_tip_error_mm=Spread.of(_at(after, common).values, 1e3),
        true_compliance=recorded.true_parameter("bending_compliance"),
        recorded_compliance=_last(_compliance(recorded)),
        replayed_compliance=_last(_compliance(replayed)),
        duration_s=1e-9 * float(stamps[-1] - stamps[0]) if len(stamps) else 0.0,
        real_time_factor=real_time_factor,
        notes=tuple(notes),
    )


def tip_difference(recorded: BagSignals, replayed: BagSignals) -> Signal:
    """(T,) distance of recorded and replayed estimate of the tip at equal stamps [m]."""
    return replayed.role("estimated tip").minus(recorded.role("estimated tip")).norm()


def draw(recorded: BagSignals, replayed: BagSignals, path: Path) -> None:
    """Tip error, difference of the tips and bending compliance over time, as a PNG file.

    Raises:
        OSError: the file cannot be written.
    """
    with rc_context(STYLE):
        figure = new_figure(6.6, top=0.6)
        errors, differences, compliances = figure.subplots(3, 1, sharex=True)
        for run, colour, name in _runs(recorded, replayed):
            error = _tip_error(run)
            _plot(errors, run, error, 1e3, color=colour, label=name)
            _plot(compliances, run, _compliance(run), 1.0, color=colour, label=name)
        difference = tip_difference(recorded, replayed)
        _plot(differences, recorded, difference, 1e3, color=TRUTH)
        if (true := recorded.true_parameter("bending_compliance")) is not None:
            compliances.axhline(true, **THIN_DASHES, label="true")
        errors.set_ylabel("tip error [mm]")
        differences.set_ylabel("replayed - recorded [mm]")
        compliances.set_ylabel("compliance [rad/(N m m)]")
        compliances.set_xlabel("time [s]")
        figure.align_ylabels()
        legend_above(figure, compliances)
        figure.savefig(path)


def _runs(recorded: BagSignals, replayed: BagSignals) -> tuple[tuple[BagSignals, str, str], ...]:
    return (recorded, REFERENCE, "recorded"), (replayed, ESTIMATE, "replayed")


def _plot(axes: Any, run: BagSignals, series: Signal, scale: float, **style: Any) -> None:
    if len(series):
        axes.plot(run.seconds(series), scale * series.values, **style)


def _compliance(run: BagSignals) -> Signal:
    """(T,) estimated bending compliance [rad/(N m m)]."""
    return run.signal("estimate/rod", "parameter.bending_compliance")


def _tip_error(run: BagSignals) -> Signal:
    """(T,) distance of the estimated tip from the true one, or from mocap on hardware [m]."""
    return run.role("estimated tip").minus(run.tip).norm()


def _tip_measured_by(run: BagSignals) -> str | None:
    if len(run.role("true tip")):
        return "the simulator's truth"
    return "mocap, its noise included" if len(run.role("measured tip")) else None


def _at(series: Signal, stamps: np.ndarray) -> Signal:
    inside = np.isin(series.stamps, stamps)
    return Signal(series.stamps[inside], series.values[inside])


def _shape_difference(recorded: BagSignals, replayed: BagSignals) -> Spread | None:
    one, other = (run.role("estimated shape") for run in (recorded, replayed))
    if one.values.shape[1:] != other.values.shape[1:]:  # another number of intervals
        return None
    return Spread.of(other.minus(one).norm().values, 1e3)


def _last(series: Signal) -> float | None:
    return float(series.values[-1]) if len(series) else None


def _rows(comparison: Comparison) -> list[tuple[str, str]]:
    rows = [("estimates", _counted(comparison.estimates))]
    if comparison.commands is not None:
        rows.append(("commands", _counted(comparison.commands)))
    spreads = (
        ("tip, replayed against recorded", comparison.tip_difference_mm, "mm"),
        ("shape, replayed against recorded", comparison.shape_difference_mm, "mm"),
        ("compliance, likewise", comparison.compliance_difference, "rad/(N m m)"),
        ("commands, likewise", comparison.command_difference_kpa, "kPa"),
        ("recorded tip error", comparison.recorded_tip_error_mm, "mm"),
        ("replayed tip error", comparison.replayed_tip_error_mm, "mm"),
    )
    rows += [
        (name, f"mean {spread.mean:.4g}, largest {spread.max:.4g} {unit}")
        for name, spread, unit in spreads
        if spread is not None
    ]
    compliances = {
        "recorded": comparison.recorded_compliance,
        "replayed": comparison.replayed_compliance,
        "true": comparison.true_compliance,
    }
    told = [f"{name} {value:.2f}" for name, value in compliances.items() if value is not None]
    if told:
        rows.append(("bending compliance at the end", ", ".join(told) + " rad/(N m m)"))
    speed = f"{comparison.duration_s:.1f} s at {comparison.real_time_factor:.1f} x real time"
    rows.append(("replayed", speed))
    return rows


def _counted(counts: Counts) -> str:
    equal = f"{counts.identical} of {counts.compared} equal to the bit"
    return f"{counts.replayed} replayed, {counts.recorded} recorded, {equal}"
