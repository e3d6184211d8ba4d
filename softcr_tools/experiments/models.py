"""NEMPC and filter on the exact rod and on its surrogate: error, time of a tick, calm of commands.

The plant is the experiments' own: a rod of 20 intervals, bending compliance -5 %, tip mass +10 %.
"""

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from softcr_control.control_loop import NempcControllerSettings
from softcr_models import load_robot
from softcr_models.models import ModelChoice, ModelName, prediction_model
from softcr_models.runtime.settings import build_settings
from softcr_tools.benchmarks.machine import describe_machine
from softcr_tools.console import say
from softcr_tools.experiments.results import Row, print_table, write_table
from softcr_tools.experiments.tracking.cases import EXPERIMENTS, SETTLED
from softcr_tools.experiments.tracking.loop import (
    MODEL_INTERVALS,
    PERIOD,
    Trace,
    run_loop,
    sampled_reference,
)
from softcr_tools.results import new_run_directory, point_latest_to

POPULATIONS = (150, 400, 1000)
# of the controller, of the filter
MODELS: tuple[tuple[ModelName, ModelName], ...] = (
    ("rod", "rod"),
    ("ddpinn", "rod"),
    ("ddpinn", "ddpinn"),
)
NAMES = {
    ("rod", "rod"): "exact rod",
    ("ddpinn", "rod"): "surrogate, filter exact",
    ("ddpinn", "ddpinn"): "surrogate in both",
}
ALLOWED = 1.3  # a surrogate's error over the exact rod's

Traces = dict[tuple[ModelName, ModelName, int], list[Trace]]  # and the population


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr experiment models`; returns the exit code.

    Raises:
        UserError: there is no network for the robot, or the results cannot be written.
    """
    given = _parser().parse_args(arguments)
    directory = new_run_directory(given.results / "models")
    console = Console()
    runs = [(m, p, s) for m in MODELS for p in POPULATIONS for s in range(given.seeds)]
    columns = TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    traces: Traces = {}
    with threadpool_limits(1, user_api="blas"), Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=len(runs))
        for (model, filter_model), population, seed in runs:
            trace = run(model, filter_model, population, seed, given.network)
            traces.setdefault((model, filter_model, population), []).append(trace)
            bar.advance(task)
    rows = table(traces, given.seeds)
    about = {"seeds": given.seeds, "machine": describe_machine(), "load": os.getloadavg()[0]}
    write_table(directory, about, rows)
    point_latest_to(directory)
    print_table(console, "NEMPC and filter on the exact rod and on its surrogate", rows)
    say(console, f"numbers: {directory}")
    return 0


def run(
    model: ModelName, filter_model: ModelName, population: int, seed: int, network: str = ""
) -> Trace:
    """Experiment 4a with the controller on one model and the filter on one."""
    robot = load_robot("licher2025")
    (case,) = EXPERIMENTS["4a"]
    values: dict[str, Any] = {
        "seed": seed,
        "intervals": MODEL_INTERVALS,
        "population": population,
    }
    if model == "ddpinn":
        values |= {"model": model, "network": network, "threads": 1}
    settings = build_settings(NempcControllerSettings, values)
    choice = ModelChoice(
        model=filter_model,
        network=network if filter_model == "ddpinn" else "",
        intervals=MODEL_INTERVALS,
        single_precision=False,
    )
    source = sampled_reference(robot, case.reference)
    return run_loop(
        robot, case, source, "nempc", seed, time.perf_counter, settings=settings,
        filter_model=prediction_model(robot, choice),
    )  # fmt: skip


def table(traces: Traces, seeds: int) -> list[Row]:
    """Rows by model and population; a surrogate's bound is the exact rod's error."""
    rows = []
    for population in POPULATIONS:
        exact = np.mean([tip_error_mm(trace) for trace in traces["rod", "rod", population]])
        for models in MODELS:
            chosen = traces[(*models, population)]
            case = f"population {population}"
            limit = ALLOWED * float(exact) if "ddpinn" in models else None
            for quantity, unit, values, bound in (
                ("tip error", "mm", [tip_error_mm(trace) for trace in chosen], limit),
                ("tick, median", "ms", [1e3 * np.median(t.tick_times) for t in chosen], None),
                ("change of a command", "kPa", [command_change_kpa(t) for t in chosen], None),
            ):
                mean, spread = float(np.mean(values)), float(np.std(values))
                rows.append(
                    Row(case, NAMES[models], quantity, None, mean, spread, unit, seeds, bound)
                )
    return rows


def tip_error_mm(trace: Trace) -> float:
    """Mean distance of the tip from its reference once the motion has faded in [mm]."""
    return float(1e3 * trace.error[round(SETTLED / PERIOD) :].mean())


def command_change_kpa(trace: Trace) -> float:
    """Root mean square of what a chamber's command changes from tick to tick [kPa]."""
    changes = np.diff(trace.commands[round(SETTLED / PERIOD) :], axis=0)
    return float(1e-3 * np.sqrt((changes**2).mean()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr experiment models",
        description="Tracking to 1.5 Hz (experiment 4a) by the NEMPC on either model.",
    )
    parser.add_argument("--seeds", type=int, default=3, help="runs per row (%(default)s)")
    parser.add_argument("--network", default="", help="path without ending (the robot's shipped)")
    parser.add_argument(
        "--results", type=Path, default=Path("results/experiments"), help="(%(default)s)"
    )
    return parser
