"""Rows of the tracking experiments, from their traces."""

from collections.abc import Mapping, Sequence

import numpy as np

from softcr_runtime.registry import GRADIENT_MPC
from softcr_tools.experiments.results import Row
from softcr_tools.experiments.tracking.cases import MODEL_BASED, SETTLED, Case
from softcr_tools.experiments.tracking.loop import Trace

Traces = Mapping[tuple[str, str], Sequence[Trace]]
"""(name of the case, controller) -> a trace per seed."""


TICK_BOUNDS = {GRADIENT_MPC: {"tick, median": (1.0, 0.4), "tick, 99 %": (3.0, 1.0)}}
"""Must and goal of a tick on one core [ms]."""


def settled_error_mm(trace: Trace) -> float:
    """Mean tip error after SETTLED [mm]."""
    return float(1e3 * trace.error[trace.times >= SETTLED].mean())


def rows_of(cases: Sequence[Case], traces: Traces) -> list[Row]:
    """What was asked for first, then what explains it."""
    rows = []
    for case in cases:
        for controller in case.controllers:
            runs = traces[case.name, controller]
            paper, (must, goal) = case.published(controller), case.bound(controller)
            tip = [settled_error_mm(run) for run in runs]
            rows.append(_row(case, controller, "tip error", tip, "mm", paper, must, goal))
            asked = TICK_BOUNDS.get(controller, {})
            rows += [
                _row(case, controller, name, values, unit, None, *asked.get(name, (None, None)))
                for name, values, unit in (
                    ("largest, from 2 s on", [_largest_mm(run) for run in runs], "mm"),
                    ("filter's tip error", [_filter_mm(run) for run in runs], "mm"),
                    ("compliance error, at the end", [_compliance(run) for run in runs], "%"),
                    ("command travel", [_travel(run) for run in runs], "kPa/s"),
                    ("tick, median", [_tick_ms(run, 50.0) for run in runs], "ms"),
                    ("tick, 99 %", [_tick_ms(run, 99.0) for run in runs], "ms"),
                )
            ]
    return rows


def adaptation_rows(traces: Traces) -> list[Row]:
    """Experiment 6: by how much adapting the compliance lowers the error."""
    rows = []
    for controller in MODEL_BASED:
        errors = {
            name: np.array([settled_error_mm(run) for run in traces[name, controller]])
            for name in ("adaptive", "fixed compliance")
        }
        ratio = errors["adaptive"] / errors["fixed compliance"]
        case, published = "adaptive / fixed", 1.69 / 5.10
        mean, sd = float(ratio.mean()), float(ratio.std())
        quantity = "ratio of tip errors"
        rows.append(
            Row(case, controller, quantity, published, mean, sd, "-", len(ratio), 1 / 5, 1 / 10)
        )
    return rows


def _row(
    case: Case,
    controller: str,
    quantity: str,
    values: Sequence[float],
    unit: str,
    paper: float | None = None,
    must: float | None = None,
    goal: float | None = None,
) -> Row:
    mean, sd = float(np.mean(values)), float(np.std(values))
    return Row(case.name, controller, quantity, paper, mean, sd, unit, len(values), must, goal)


def _largest_mm(trace: Trace) -> float:
    return float(1e3 * trace.error[trace.times >= SETTLED].max())


def _filter_mm(trace: Trace) -> float:
    error = np.linalg.norm(trace.estimated_tips - trace.tips, axis=1)
    return float(1e3 * error[trace.times >= SETTLED].mean())


def _compliance(trace: Trace) -> float:
    return float(100 * abs(trace.compliance[-1] / trace.true_compliance - 1.0))


def _travel(trace: Trace) -> float:
    """How far the commands move per second, all chambers, after SETTLED [kPa/s]."""
    settled = trace.commands[trace.times >= SETTLED]
    period = trace.times[1] - trace.times[0]
    return float(1e-3 * np.abs(np.diff(settled, axis=0)).sum(axis=1).mean() / period)


def _tick_ms(trace: Trace, percentile: float) -> float:
    """Of the controller's ticks after SETTLED [ms]."""
    return float(1e3 * np.percentile(trace.tick_times[trace.times >= SETTLED], percentile))
