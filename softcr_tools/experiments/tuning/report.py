"""What a tuning says: values beside the published ones, and how the search went."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import optuna
from matplotlib.ticker import NullFormatter
from optuna.distributions import FloatDistribution
from optuna.trial import FrozenTrial
from rich import box
from rich.console import Console
from rich.table import Table
from scipy.stats import spearmanr

from softcr_tools.experiments.tuning.space import Parameter, Values


def parameter_table(
    space: Sequence[Parameter], shipped: Values, tuned: Values
) -> list[dict[str, Any]]:
    """A row per parameter: Table VI or VII, ours in the table's units, and ours as set."""
    return [
        {
            "parameter": parameter.symbol or parameter.name,
            "published": parameter.published,
            "shipped": parameter.printed(shipped[parameter.name]),
            "tuned": parameter.printed(tuned[parameter.name]),
            "setting": parameter.name,
            "value": tuned[parameter.name],
        }
        for parameter in space
    ]


def print_parameters(console: Console, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Table VI or VII, ours beside it."""
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("parameter", "published", "shipped", "tuned", "setting", "value"):
        justify = "left" if column in ("parameter", "setting") else "right"
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(_text(value) for value in row.values()))
    console.print(table)


def rank_correlation(search: Sequence[float], final: Sequence[float]) -> float | None:
    """Spearman's, of the costs that the search saw with those at full effort; None: has none."""
    found = float(spearmanr(search, final).statistic) if len(search) > 2 else math.nan
    return round(found, 3) if math.isfinite(found) else None


def draw(path: Path, study: optuna.Study, space: Sequence[Parameter], best: FrozenTrial) -> None:
    """Cost over the trials, and over each parameter; the best in green."""
    trials = [trial for trial in study.get_trials() if trial.value is not None]
    costs = np.array([trial.value for trial in trials], dtype=float)
    finite = np.isfinite(costs)
    rows = 1 + int(np.ceil(len(space) / 4))
    figure = plt.figure(figsize=(12.0, 2.6 * rows))
    grid = figure.add_gridspec(rows, 4, left=0.06, right=0.99, bottom=0.07, top=0.98, hspace=0.45)
    history = figure.add_subplot(grid[0, :])
    numbers = np.arange(len(costs))
    history.plot(numbers[finite], costs[finite], "C0.", label="trial")
    history.step(numbers, np.fmin.accumulate(np.where(finite, costs, np.inf)), "C2", where="post",
                 label="best")  # fmt: skip
    history.set_xlabel("trial")
    history.set_ylabel("cost")
    history.legend()
    top = float(np.quantile(costs[finite], 0.9))
    for number, parameter in enumerate(space):
        axes = figure.add_subplot(grid[1 + number // 4, number % 4])
        values = [trial.params[parameter.name] for trial in trials]
        shown = np.array([str(v) if isinstance(v, bool | str) else v for v in values])
        axes.plot(shown[finite], costs[finite], "C0.", markersize=3)
        chosen = best.params[parameter.name]
        axes.plot(
            str(chosen) if isinstance(chosen, bool | str) else chosen,
            float(best.value or 0.0),
            "C2o",
        )
        if isinstance(parameter.distribution, FloatDistribution) and parameter.distribution.log:
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(costs[finite].min() - 0.05 * (top - costs[finite].min()), top)
        axes.set_xlabel(parameter.name)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)
