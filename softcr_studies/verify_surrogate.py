"""`softcr verify-surrogate`: Table IV, Table V, Fig. 8 and maps of one network."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numba
import numpy as np
import torch
from pydantic import Field
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from softcr_learning.surrogate import figures, timing
from softcr_learning.surrogate.verification import (
    ASKED,
    FINER,
    HORIZONS,
    MOTIONS,
    QUANTITIES,
    TICKS,
    Deviation,
    Verification,
    load_network,
)
from softcr_models import CosseratRod, load_robot
from softcr_runtime.command_line import command
from softcr_runtime.console import say
from softcr_runtime.results import new_run_directory, point_latest_to
from softcr_studies.machine import describe_machine
from softcr_studies.table import Kind, Row, print_table, write_table

COMPLIANCES = np.linspace(0.8, 1.2, 5)
PRESSURE_PARTS = np.linspace(0.2, 1.0, 5)
LONG = (32, 10_000)  # motions, and steps of each, under the hardest input
STABILITY = {"lagged_steps": 400, "raw_full_steps": 300, "constant": 150, "white_noise": 150}


@command
def verify_surrogate(
    *,
    robot: str = "licher2025",
    network: str = "",
    motions: Annotated[int, Field(ge=1)] = 20,
    only_times: bool = False,
    results: Path = Path("results/surrogates/verification"),
) -> int:
    """Judge a network: free-running motions beside the rod it stands for.

    Args:
        robot: name or YAML file.
        network: path without ending; empty for the robot's shipped one.
        motions: of 10 s per row.
        only_times: Table V alone: steps and ticks on this processor and, where one is, its GPU.
        results: where a folder is made.

    Raises:
        UserError: the robot or the network cannot be used.
    """
    described = load_robot(robot)
    judged, card = load_network(described, network)
    # small batches: a second thread gains little, and stalls for 100 ms where the cores are busy
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    rod = CosseratRod(described, card.intervals)
    console = Console()
    if only_times:
        for time in timing.step_times(judged, rod):
            say(console, _time_line(time))
        return 0
    directory = new_run_directory(results)
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=9)

        def tell(what: str) -> None:
            bar.update(task, description=f"{what:30}", advance=1)

        verification = Verification(rod, judged, motions, TICKS)
        rows, found = verify(verification, directory, tell)
    found |= {"machine": describe_machine(), "card": card.model_dump(mode="json")}
    write_table(directory / "table.json", {"network": card.robot, "motions": motions}, rows)
    (directory / "verification.json").write_text(json.dumps(found, indent=1) + "\n")
    point_latest_to(directory)
    print_table(console, f"surrogate of {described.name}, {motions} motions of 10 s a row", rows)
    for line in _lines(found):
        say(console, line)
    say(console, f"figures and numbers: {directory}")
    return 0


def verify(
    verification: Verification, directory: Path, tell: Any = lambda _: None
) -> tuple[list[Row], dict[str, Any]]:
    """All figures of a network: rows of the table, and what else was found; draws into a folder."""
    rows: list[Row] = []
    found: dict[str, Any] = {}
    horizons: dict[str, list[float]] = {}
    for name in MOTIONS:
        tell(name)
        motions = verification.motions(name)
        deviation, states = verification.table(motions)
        rows += _table_rows(name, deviation, verification.count)
        horizons[name] = verification.over_horizon(motions, HORIZONS)
        if name == "smooth 70 %":
            inside = verification.inside_step(motions)
            for mark, value in zip(("t_s/3", "2 t_s/3", "t_s"), inside, strict=True):
                rows.append(_row(f"one step, {mark}", "tip position", value, "mm", 0.5, 0.1))
            noisy = verification.from_noisy_states(motions)
            rows.append(_row("one step, noisy state", "tip position", noisy, "mm", 0.5, 0.2))
            figures.draw_states(states[0], motions.states[0, 1:], verification, directory)
        if name == "smooth 100 %":
            ours, theirs = verification.from_finer_rod(motions, states, FINER)
            found["from a rod of 20 intervals [mm]"] = {"network": ours, "its rod": theirs}
    found["tip over horizon [mm]"] = {"steps": HORIZONS, **horizons}
    figures.draw_horizons(HORIZONS, horizons, directory)

    tell("stability")
    found["spectral radius of the linear part"] = verification.network.spectral_radius()
    found["bounded"] = {}
    for family, count in STABILITY.items():
        good, largest = verification.long_motions(family, count, 1000)
        found["bounded"][f"{family}, 1000 steps"] = [good, count, largest]
    count, steps = LONG
    good, largest = verification.long_motions("raw_full_steps", count, steps)
    found["bounded"][f"raw_full_steps, {steps} steps"] = [good, count, largest]
    tell("map of pressure and compliance")
    top = verification.rod.robot.pressure_limits.maximum
    cells = verification.map(top * PRESSURE_PARTS, COMPLIANCES, directions=8, ticks=350)
    found["tip map [mm]"] = {
        "pressures [Pa]": (top * PRESSURE_PARTS).tolist(),
        "compliance factors": COMPLIANCES.tolist(),
        "mean": cells.tolist(),
    }
    figures.draw_map(top * PRESSURE_PARTS, COMPLIANCES, cells, directory)
    tell("time of a step")
    times = timing.step_times(verification.network, verification.rod)
    found["times"] = [asdict(row) for row in times]
    for time in times:
        if time.way == timing.FAST and time.batch > 1:
            must, goal = {147: (0.8, 0.3), 1000: (5.5, 2.0)}[time.batch]
            rows.append(
                Row(f"batch {time.batch}", time.way, "step, one thread", time.median_ms, 0.0, "ms",
                    1, must=must, goal=goal, timing=True)
            )  # fmt: skip
    tell("done")
    return rows, found


def _table_rows(name: str, deviation: Deviation, count: int) -> list[Row]:
    rows = []
    for (quantity, unit, field), asked in zip(QUANTITIES, ASKED[name], strict=True):
        paper, must, goal = asked
        mean, spread = getattr(deviation, field)
        published: dict[Kind, float] = {} if paper is None else {"simulation": paper}
        rows.append(
            Row(name, "network", quantity, mean, spread, unit, count, published, must, goal)
        )
    return rows


def _row(case: str, quantity: str, value: float, unit: str, must: float, goal: float) -> Row:
    return Row(case, "network", quantity, value, 0.0, unit, 1, must=must, goal=goal)


def _lines(found: dict[str, Any]) -> list[str]:
    lines = [f"{name}: {good} of {count} stay bounded, largest coordinate {largest:.0f}"
             for name, (good, count, largest) in found["bounded"].items()]  # fmt: skip
    radius = found["spectral radius of the linear part"]
    lines.append(f"spectral radius of the linear part {radius:.4f}: below 1, nothing can grow")
    finer = found["from a rod of 20 intervals [mm]"]
    lines.append(f"from a rod of {FINER} intervals: network {finer['network']:.2f} mm, "
                 f"the rod it stands for {finer['its rod']:.2f} mm")  # fmt: skip
    return lines + [_time_line(timing.StepTime(**row)) for row in found["times"]]


def _time_line(time: timing.StepTime) -> str:
    return (
        f"{time.way}, batch {time.batch}: median {time.median_ms:.3f} ms, p99 {time.p99_ms:.3f} ms"
    )
