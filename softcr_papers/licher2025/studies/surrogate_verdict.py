"""Table IV, Table V, Fig. 8 of Licher et al. (2025) and maps of one network."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numba
import numpy as np
import torch
from rich.console import Console

from softcr_models import CosseratRod, load_robot
from softcr_models.surrogate.card import Card
from softcr_papers.licher2025.studies import surrogate_accuracy as study
from softcr_papers.licher2025.studies.surrogate_steps import FAST, StepTime, step_times
from softcr_papers.licher2025.training.verification import (
    MOTIONS,
    QUANTITIES,
    Verification,
    load_network,
)
from softcr_runtime.console.results import new_run_directory, point_latest_to
from softcr_runtime.console.terminal import say, step
from softcr_studies.frame.machine import describe_machine
from softcr_studies.frame.table import Row, print_table, write_table

COMPLIANCES = np.linspace(0.8, 1.2, 5)
PRESSURE_PARTS = np.linspace(0.2, 1.0, 5)
LONG = (32, 10_000)  # motions, and steps of each, under the hardest input
STABILITY = {"lagged_steps": 400, "raw_full_steps": 300, "constant": 150, "white_noise": 150}
ASKED_MS = {147: (0.8, 0.3), 1000: (5.5, 2.0)}  # must and goal of a step of a batch


def judged(robot: str, network: str, motions: int, only_times: bool, results: Path) -> int:
    """Judge a network and write what was found; arguments and errors as `verify_surrogate`."""
    matplotlib.use("Agg")
    described = load_robot(robot)
    loaded, card = load_network(described, network)
    # small batches: a second thread gains little, and stalls for 100 ms where the cores are busy
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    rod = CosseratRod(described, card.intervals)
    console = Console()
    if only_times:
        for time in step_times(loaded, card, rod):
            say(console, _time_line(time))
        return 0
    directory = new_run_directory(results)
    rows, found = _verified(
        Verification(rod, loaded, motions, study.TICKS), card, directory, console
    )
    found |= {"machine": describe_machine(), "card": card.model_dump(mode="json")}
    write_table(directory / "table.json", {"network": card.robot, "motions": motions}, rows)
    (directory / "verification.json").write_text(json.dumps(found, indent=1) + "\n")
    point_latest_to(directory)
    print_table(console, f"surrogate of {described.name}, {motions} motions of 10 s a row", rows)
    for line in _lines(found):
        say(console, line)
    say(console, f"figures and numbers: {directory}")
    return 0


def _verified(
    verification: Verification, card: Card, directory: Path, console: Console
) -> tuple[list[Row], dict[str, Any]]:
    """All figures of a network: rows of the table, and what else was found; draws into a folder."""
    rows: list[Row] = []
    found: dict[str, Any] = {}
    horizons: dict[str, list[float]] = {}
    for name in MOTIONS:
        with step(console, name):
            motions = verification.motions(name)
            table, states = verification.table(motions)
            horizons[name] = verification.over_horizon(motions, study.HORIZONS)
        rows += [
            Row(name, study.NETWORK, quantity, *table[quantity], unit, verification.count,
                **study.STUDY.asked(name, study.NETWORK, quantity))
            for quantity, unit in QUANTITIES.items()
        ]  # fmt: skip
        if name == study.FAMILY:
            for mark, mm in zip(
                ("t_s/3", "2 t_s/3", "t_s"), verification.inside_step(motions), strict=True
            ):
                rows.append(_one_step(mark, mm, goal=0.1))
            rows.append(_one_step("noisy state", verification.from_noisy_states(motions), goal=0.2))
            study.draw_states(
                states[0], motions.states[0, 1:], verification.network.period, directory
            )
        if name == "smooth 100 %":
            ours, theirs = verification.from_finer_rod(motions, states)
            found["from a rod of 20 intervals [mm]"] = {"network": ours, "its rod": theirs}
    found["tip over horizon [mm]"] = {"steps": study.HORIZONS, **horizons}
    study.draw_horizons(study.HORIZONS, horizons, directory)

    with step(console, "stability"):
        found["spectral radius of the linear part"] = verification.network.spectral_radius()
        runs = [(family, count, 1000) for family, count in STABILITY.items()]
        found["bounded"] = {}
        for family, count, steps in [*runs, ("raw_full_steps", *LONG)]:
            good, largest = verification.long_motions(family, count, steps)
            found["bounded"][f"{family}, {steps} steps"] = [good, count, largest]
    with step(console, "map of pressure and compliance"):
        pressures = verification.rod.robot.pressure_limits.maximum * PRESSURE_PARTS
        cells = verification.map(pressures, COMPLIANCES, directions=8, ticks=350)
        found["tip map [mm]"] = {
            "pressures [Pa]": pressures.tolist(),
            "compliance factors": COMPLIANCES.tolist(),
            "mean": cells.tolist(),
        }
        _draw_map(pressures, cells, directory)
    with step(console, "time of a step"):
        times = step_times(verification.network, card, verification.rod)
    found["times"] = [asdict(time) for time in times]
    for time in times:
        if time.way == FAST and time.batch in ASKED_MS:
            must, goal = ASKED_MS[time.batch]
            rows.append(
                Row(f"batch {time.batch}", time.way, "step, one thread", time.median_ms, 0.0, "ms",
                    1, must=must, goal=goal, timing=True)
            )  # fmt: skip
    return rows, found


def _one_step(what: str, mm: float, goal: float) -> Row:
    return Row(
        f"one step, {what}", study.NETWORK, "tip position", mm, 0.0, "mm", 1, must=0.5, goal=goal
    )


def _draw_map(pressures: np.ndarray, cells: np.ndarray, directory: Path) -> None:
    """Tip error (P, C) over highest pressure [Pa] and COMPLIANCES."""
    figure, axis = plt.subplots(figsize=(6.5, 5.0))
    image = axis.imshow(cells, origin="lower", aspect="auto", cmap="viridis")
    axis.set_xticks(range(len(COMPLIANCES)), [f"{100 * (c - 1):+.0f}" for c in COMPLIANCES])
    axis.set_yticks(range(len(pressures)), [f"{1e-3 * p:.0f}" for p in pressures])
    axis.set(xlabel="bending compliance [% off nominal]", ylabel="pressures up to [kPa]")
    for (row, column), error in np.ndenumerate(cells):
        axis.text(column, row, f"{error:.2f}", ha="center", va="center", color="w")
    figure.colorbar(image, label="mean tip distance [mm]")
    figure.tight_layout()
    figure.savefig(directory / "map.png", dpi=120)
    plt.close(figure)


def _lines(found: dict[str, Any]) -> list[str]:
    lines = [f"{name}: {good} of {count} stay bounded, largest coordinate {largest:.0f}"
             for name, (good, count, largest) in found["bounded"].items()]  # fmt: skip
    radius = found["spectral radius of the linear part"]
    lines.append(f"spectral radius of the linear part {radius:.4f}: below 1, nothing can grow")
    finer = found["from a rod of 20 intervals [mm]"]
    lines.append(f"from a rod of 20 intervals: network {finer['network']:.2f} mm, "
                 f"the rod it stands for {finer['its rod']:.2f} mm")  # fmt: skip
    return lines + [_time_line(StepTime(**row)) for row in found["times"]]


def _time_line(time: StepTime) -> str:
    return (
        f"{time.way}, batch {time.batch}: median {time.median_ms:.3f} ms, p99 {time.p99_ms:.3f} ms"
    )
