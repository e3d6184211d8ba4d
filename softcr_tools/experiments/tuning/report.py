"""What a tuning says: values beside the published ones, how the search went, a page of both."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullFormatter
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from rich import box
from rich.console import Console
from rich.table import Table
from scipy.stats import spearmanr

from softcr_tools.experiments.tuning.space import Parameter, Values

Record = Mapping[str, Any]
"""What `study.write_record` keeps of a study."""

COLUMNS = ("parameter", "published", "range", "shipped", "tuned", "importance", "setting", "value")


def parameter_table(
    space: Sequence[Parameter], shipped: Values, tuned: Values, importance: Values
) -> list[dict[str, Any]]:
    """A row per parameter: Table VI or VII, ours in the table's units, and ours as set."""
    return [
        dict(
            zip(
                COLUMNS,
                (
                    parameter.symbol or parameter.name,
                    parameter.published,
                    _range(parameter),
                    parameter.printed(shipped[parameter.name]),
                    parameter.printed(tuned[parameter.name]),
                    importance.get(parameter.name),
                    parameter.name,
                    tuned[parameter.name],
                ),
                strict=True,
            )
        )
        for parameter in space
    ]


def print_parameters(console: Console, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Table VI or VII, ours beside it."""
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    for column in COLUMNS:
        justify = "left" if column in ("parameter", "setting") else "right"
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(_text(value) for value in row.values()))
    console.print(table)


def rank_correlation(search: Sequence[float], final: Sequence[float]) -> float | None:
    """Spearman's, of the costs that the search saw with those at full effort; None: has none."""
    found = float(spearmanr(search, final).statistic) if len(search) > 2 else math.nan
    return round(found, 3) if math.isfinite(found) else None


def draw(path: Path, record: Record) -> None:
    """Cost over the trials, what the parameters matter, cost over each of them; the best green."""
    trials, parameters = record["trials"], record["parameters"]
    costs = np.array([math.inf if trial[0] is None else trial[0] for trial in trials])
    finite = np.isfinite(costs)
    best = record["chosen"]
    rows = 1 + math.ceil(len(parameters) / 4)
    figure = plt.figure(figsize=(11.0, 2.3 * rows), layout="constrained")
    grid = figure.add_gridspec(rows, 4)
    history = figure.add_subplot(grid[0, :2])
    history.plot(np.flatnonzero(finite), costs[finite], "C0.", markersize=3, label="trial")
    history.step(range(len(costs)), np.minimum.accumulate(costs), "C2", where="post", label="best")
    low, top = costs[finite].min(), float(np.quantile(costs[finite], 0.9))
    history.set(xlabel="trial", ylabel="cost", ylim=(low - 0.05 * (top - low), top))
    history.legend()
    shares = figure.add_subplot(grid[0, 2:])
    names = [row["parameter"] for row in parameters]
    shares.bar(range(len(names)), [row["importance"] or 0.0 for row in parameters])
    shares.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7)
    shares.set_ylabel("importance")
    for number, row in enumerate(parameters):
        axes = figure.add_subplot(grid[1 + number // 4, number % 4])
        values = [_drawn(trial[1 + number]) for trial in trials]
        axes.plot(np.array(values)[finite], costs[finite], "C0.", markersize=3)
        axes.plot(values[best], costs[best], "C2o")
        if row["range"].endswith("log"):
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set(xlabel=row["setting"], ylim=history.get_ylim())
    figure.savefig(path, dpi=75)
    plt.close(figure)


def page(name: str, record: Record) -> str:
    """The study in Markdown: Table VI or VII, the figure, the judgement."""
    machine, trials = record["machine"], record["trials"]
    finals = ", ".join(f"{trial} {cost}" for trial, cost in record["cost at full effort"].items())
    lines = [
        f"# Study `{name}`",
        "",
        f"`{record['command']}`, {machine['time'][:10]}: {len(trials)} trials; the first, which the"
        f" search began with, cost {trials[0][0]:.4g}, the best {_best(trials):.4g}. At full effort"
        f" (seeds {record['seeds at full effort']}): {finals}; rank correlation with the search"
        f" {record['rank correlation']}. Tuned: trial {record['chosen']}."
        f" Made by `softcr tune pages` from `config/studies/{name}.json`.",
        "",
        f"![cost over trials and parameters]({name}.png)",
        "",
        *markdown(COLUMNS, [[_text(row[key]) for key in COLUMNS] for row in record["parameters"]]),
    ]
    if record["judged"]:
        lines += ["", "Judged on seeds and motions that the search never saw (mean and SD):", ""]
        lines += _judgement(record["judged"])
    return "\n".join(lines) + "\n"


def _judgement(judged: Sequence[Sequence[Any]]) -> list[str]:
    """A line for each case and quantity, a column for each contender."""
    methods = list(dict.fromkeys(row[1] for row in judged))
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for case, method, quantity, mean, sd, unit in judged:
        ratio = unit == "-"
        cell = "lost" if mean is None else f"{mean:.3g}" + ("" if ratio else f" ({sd:.2g})")
        known = [key for key in lines if key[0] == case and key[1].startswith(f"{quantity} [")]
        key = known[0] if ratio else (case, f"{quantity} [{unit}]")
        lines.setdefault(key, {})[method] = cell
    cells = [[*key, *(found.get(method, "") for method in methods)] for key, found in lines.items()]
    return markdown(["case", "quantity", *methods], cells)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""
    rule = ["---"] * len(head)
    return ["| " + " | ".join(cells) + " |" for cells in (head, rule, *rows)]


def _best(trials: Sequence[Sequence[Any]]) -> float:
    return min(float(trial[0]) for trial in trials if trial[0] is not None)


def _range(parameter: Parameter) -> str:
    kind = parameter.distribution
    if isinstance(kind, CategoricalDistribution):
        return ", ".join(str(choice) for choice in kind.choices)
    assert isinstance(kind, FloatDistribution | IntDistribution)
    low, high = parameter.printed(kind.low), parameter.printed(kind.high)
    return f"{low:.3g} ... {high:.3g}" + (", log" if kind.log else "")


def _drawn(value: Any) -> Any:
    """Words and truths stand on an axis as words."""
    return str(value) if isinstance(value, bool | str) else value


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)
