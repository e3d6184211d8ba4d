"""Controllers and filter on rod and surrogate: error, time of a tick, calm of commands.

The plant is the experiments' own: a rod of 20 intervals, bending compliance -5 %, tip mass +10 %.
"""

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from threadpoolctl import threadpool_limits

from softcr_models import load_robot
from softcr_models.devices import resolve_device
from softcr_models.models import DeviceName, ModelName
from softcr_runtime.console import say
from softcr_runtime.registry import GRADIENT_MPC
from softcr_runtime.results import new_run_directory, point_latest_to
from softcr_runtime.system import Parameters
from softcr_studies.machine import describe_machine
from softcr_tools.experiments.results import Row, print_table, write_table
from softcr_tools.experiments.tracking.cases import EXPERIMENTS, SETTLED
from softcr_tools.experiments.tracking.loop import (
    MODEL_INTERVALS,
    PERIOD,
    Trace,
    run_loop,
    sampled_reference,
)

ALLOWED = 1.3  # a surrogate's error over the exact rod's


@dataclass(frozen=True)
class Way:
    """Who controls on which model.

    Attributes:
        controller: its name.
        model, filter_model: of controller and filter.
        population: candidates; None: the gradient MPC has none.
        device: of the controller's model.
    """

    controller: str
    model: ModelName
    filter_model: ModelName = "rod"
    population: int | None = None
    device: DeviceName = "cpu"

    @property
    def name(self) -> str:
        """As the table says it."""
        model = "exact rod" if self.model == "rod" else "network"
        model += ", filter too" if self.filter_model == "ddpinn" else ""
        return f"{self.controller}, {model}" + (", GPU" if self.device == "cuda" else "")

    @property
    def case(self) -> str:
        """Of the table."""
        return "gradient" if self.population is None else f"population {self.population}"

    @property
    def exact(self) -> "Way":
        """The same on the exact rod."""
        return replace(self, model="rod", filter_model="rod", device="cpu")


def ways() -> list[Way]:
    """What is compared; with GPU rows where there is one."""
    devices: list[DeviceName] = ["cpu"]
    if "cuda" in (resolve_device("auto", "torch"), resolve_device("auto", "numba")):
        devices.append("cuda")
    listed = [
        Way("nempc", model, population=population, device=device)
        for population in (64, 96, 150, 400, 1000)
        for device in devices
        for model in ("rod", "ddpinn")
    ]
    listed.append(Way("nempc", "ddpinn", "ddpinn", 400))
    return [*listed, Way(GRADIENT_MPC, "rod"), Way(GRADIENT_MPC, "ddpinn")]


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr experiment models`; returns the exit code.

    Raises:
        UserError: there is no network for the robot, or the results cannot be written.
    """
    given = _parser().parse_args(arguments)
    directory = new_run_directory(given.results / "experiments" / "models")
    console = Console()
    runs = [(way, seed) for way in ways() for seed in range(given.seeds)]
    columns = TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    traces: dict[Way, list[Trace]] = {}
    with threadpool_limits(1, user_api="blas"), Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=len(runs))
        for way, seed in runs:
            traces.setdefault(way, []).append(run(way, seed, given.network))
            bar.advance(task)
    rows = table(traces, given.seeds)
    about = {"seeds": given.seeds, "machine": describe_machine(), "load": os.getloadavg()[0]}
    write_table(directory, about, rows)
    point_latest_to(directory)
    print_table(console, "controllers and filter on the exact rod and on its network", rows)
    say(console, f"numbers: {directory}")
    return 0


def run(way: Way, seed: int, network: str = "") -> Trace:
    """Experiment 4a in one way; every prediction on one thread."""
    robot = load_robot("licher2025")
    (case,) = EXPERIMENTS["4a"]
    told: Parameters = {"controller": way.controller, "intervals": MODEL_INTERVALS, "threads": 1}
    told |= _model(way.model, network) | {"device": way.device}
    told |= {} if way.population is None else {"population": way.population}
    return run_loop(
        robot, case, sampled_reference(robot, case.reference), way.controller, seed,
        time.perf_counter, parameters=told, filter_parameters=_model(way.filter_model, network),
    )  # fmt: skip


def _model(name: ModelName, network: str) -> Parameters:
    chosen: Parameters = {"model": name}
    return chosen | ({"network": network} if name != "rod" and network else {})


def table(traces: dict[Way, list[Trace]], seeds: int) -> list[Row]:
    """Rows by way; a network's bound is the exact rod's error with the same controller."""
    rows = []
    for way, chosen in traces.items():
        limit = None
        if way != way.exact:
            limit = ALLOWED * float(np.mean([tip_error_mm(t) for t in traces[way.exact]]))
        ticks = [1e3 * float(np.median(trace.tick_times)) for trace in chosen]
        figures = [
            ("tip error", "mm", [tip_error_mm(trace) for trace in chosen], limit),
            ("tick, median", "ms", ticks, None),
            ("change of a command", "kPa", [command_change_kpa(t) for t in chosen], None),
        ]
        if way.population is not None:
            each = [1e3 * tick / way.population for tick in ticks]
            figures.append(("tick per candidate", "us", each, None))
        for quantity, unit, values, bound in figures:
            mean, spread = float(np.mean(values)), float(np.std(values))
            rows.append(Row(way.case, way.name, quantity, None, mean, spread, unit, seeds, bound))
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
        description="Tracking to 1.5 Hz (experiment 4a) by NEMPC and gradient MPC on either model.",
    )
    parser.add_argument("--seeds", type=int, default=3, help="runs per row (%(default)s)")
    parser.add_argument("--network", default="", help="path without ending (the robot's shipped)")
    parser.add_argument("--results", type=Path, default=Path("results"), help="(%(default)s)")
    return parser
