"""Experiment 2 of Licher et al. 2025, Sec. IV-C: the surrogate beside its rod, Tables IV and V.

What `softcr verify-surrogate` computes, as a table over seeds: ten-second motions that the network
runs freely, compliance +-20 % from motion to motion. The paper's measurement has no counterpart
without a bench: in its place stands a rod of 20 intervals, so "rod of 20 intervals" says how far
the rod that was learned is from a finer one. Times are of whole batches, on one thread of this
machine and on its GPU if it has one (the paper: Matlab on a laptop's CPU, PyTorch on its GPU).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field

from softcr_models import CosseratRod, load_robot
from softcr_models.rod.state import RodState
from softcr_papers.licher2025.studies.motion_bag import write_motion_bag
from softcr_papers.licher2025.studies.surrogate_steps import step_times
from softcr_papers.licher2025.training.verification import (
    FINER,
    MOTIONS,
    QUANTITIES,
    Verification,
    load_network,
)
from softcr_runtime.console.panels import panels
from softcr_studies.frame.study import Cell, Metric, Must, Published, Result, Results, Row, Study
from softcr_studies.frame.table import Kind
from softcr_studies.loops.tracking_study import Settings

FIRST_SEED = 200  # neither of the training nor of verify-surrogate
TICKS = 700  # of a motion: ten seconds
HORIZONS = [1, 2, 4, 8, 16, 30, 70, 150, 300, 1000]
FAMILY = "smooth 70 %"  # the motions that stand for the paper's trajectory
NETWORK, TIMES = "network", "time of a step"
TABLE_IV = {  # mean and standard deviation
    "tip position": (0.549, 0.377),
    "tip rotation": (0.0063, 0.00433),
    "base force": (0.259, 0.177),
    "base moment": (2.03, 1.18),
}
PUBLISHED_MODEL_MM = 2.42  # simulation against measurement
# Table V: the network (batch 1: CPU; the others: GPU, printed per candidate), and ode23s
PUBLISHED_BATCH_MS = {1: 1.23, 147: 147 * 3.30e-3, 1000: 1000 * 0.802e-3}
PUBLISHED_ODE_MS = 35.9


class SurrogateSettings(Settings):
    """See Settings."""

    motions: int = Field(
        4, ge=1, le=1000, description="number of motions of 10 s for each family and seed"
    )
    network: str = Field(
        "", description="path of the network without ending; empty: the shipped one"
    )


def run(cell: Cell) -> Result:
    """One family of motions, or the times of steps.

    Returns:
        Of a family: mean and, with ", SD", deviation of each of QUANTITIES; of FAMILY finer_mm
        (2,): distances of network and rod from a finer rod. Of the first seed horizons_mm: after
        HORIZONS steps; period [s] and states, rod_states (T, nx) of a motion.
    """
    torch.set_num_threads(1)  # small batches, on cores that others use too
    settings = cell.settings
    robot = load_robot(settings.robot)
    network, card = load_network(robot, settings.network)
    rod = CosseratRod(robot, card.intervals)
    if cell.case == TIMES:
        times = step_times(network, card, rod)
        return {name: [getattr(each, name) for each in times]
                for name in ("way", "batch", "median_ms")}  # fmt: skip
    verification = Verification(rod, network, settings.motions, TICKS, FIRST_SEED + cell.seed)
    motions = verification.motions(cell.case)
    table, states = verification.table(motions)
    result: dict[str, Any] = {}
    for quantity, figures in table.items():
        result[quantity], result[f"{quantity}, SD"] = figures
    if cell.case == FAMILY:
        result["finer_mm"] = np.array(verification.from_finer_rod(motions, states))
    if cell.seed:
        return result
    result["horizons_mm"] = np.array(verification.over_horizon(motions, HORIZONS))
    result["states"], result["rod_states"] = states[0], motions.states[0, 1:]
    result["period"] = network.period
    if cell.bag:
        write_motion_bag(
            cell.bag, rod, motions.parameters[0], motions.levels[1, 0],
            motions.states[0, 1:].astype(float), states[0].astype(float), network.period,
        )  # fmt: skip
    return result


def times_alone(results: Results) -> list[Cell]:
    """Times are measured once, when no other cell runs."""
    return [Cell(TIMES, NETWORK, 0, results.settings)]


def further_rows(results: Results) -> Iterator[Row]:
    """Distances from a finer rod, and Table V."""
    case = f"{FAMILY}, from a rod of {FINER} intervals"
    network, rod = np.array([each["finer_mm"] for each in results.of(FAMILY, NETWORK)]).T
    yield Row.of(case, NETWORK, "tip position", network, "mm")
    paper: dict[Kind, float] = {"bench": PUBLISHED_MODEL_MM}
    yield Row.of(case, "its rod", "tip position", rod, "mm", published=paper)
    times = results.first(TIMES, NETWORK)
    for way, batch, median in zip(times["way"], times["batch"], times["median_ms"], strict=True):
        yield Row.of(
            f"batch {batch}", str(way), "median time", [median], "ms", timing=True,
            published=published_ms(way, batch),
        )  # fmt: skip


def published_ms(way: str, batch: int) -> dict[Kind, float]:
    """Of single steps: ode23s beside the exact rod, the network beside the network."""
    if way.startswith("exact rod, ") and batch == 1:
        return {"simulation": PUBLISHED_ODE_MS}
    if way.startswith(NETWORK) and "steps" not in way:
        return {"simulation": PUBLISHED_BATCH_MS[batch]}
    return {}


def draw_states(states: np.ndarray, rod_states: np.ndarray, period: float, directory: Path) -> None:
    """Fig. 8: the last node and the base in states (T, nx) of network and rod, over one motion."""
    network, rod = RodState(states), RodState(rod_states)
    times = period * np.arange(1, len(states) + 1)
    shown = {
        "tip velocity [m/s]": lambda of: of.velocities[:, -1, :3],
        "tip angular velocity [rad/s]": lambda of: of.velocities[:, -1, 3:],
        "base force [N]": lambda of: of.wrenches[:, 0, :3],
        "base moment [N m]": lambda of: of.wrenches[:, 0, 3:],
    }
    title = "network (colours) and rod (dashed), free running"
    with panels(directory / "states.png", list(shown), x="time [s]", title=title) as axes:
        for axis, part in zip(axes, shown.values(), strict=True):
            axis.plot(times, part(network), linewidth=1.0, label=list("xyz"))
            axis.plot(times, part(rod), "k--", linewidth=0.6)


def draw_horizons(
    steps: Sequence[int], errors: Mapping[str, Sequence[float]], directory: Path
) -> None:
    """Tip error [mm] against the number of steps run freely, by name of the motions."""
    path, label = directory / "horizons.png", "mean tip distance from the rod [mm]"
    with panels(path, [label], x="free-running steps [-]") as (axis,):
        for name, values in errors.items():
            axis.loglog(steps, values, "o-", label=name)


def _draw(results: Results, directory: Path) -> None:
    first = {name: results.first(name, NETWORK) for name in MOTIONS}
    shown = first[FAMILY]
    draw_states(shown["states"], shown["rod_states"], shown["period"], directory)
    horizons = {name: found["horizons_mm"] for name, found in first.items()}
    draw_horizons(HORIZONS, horizons, directory)


STUDY = Study(
    name="licher2025/surrogate-accuracy",
    source="Licher et al. 2025, Sec. IV-C, Experiment 2, Tables IV and V",
    summary="the surrogate beside its rod: free-running motions, and the time of a step",
    run=run,
    cases=tuple(MOTIONS),
    methods=(NETWORK,),
    settings=SurrogateSettings,
    metrics=[
        Metric(quantity + more, unit, quantity + more)
        for quantity, unit in QUANTITIES.items()
        for more in ("", ", SD")
    ],
    published=[
        Published(quantity + more, value, "simulation", FAMILY)
        for quantity, figures in TABLE_IV.items()
        for more, value in zip(("", ", SD"), figures, strict=True)
    ],
    musts=(
        Must("tip position", 0.27, 0.10, FAMILY),
        Must("tip rotation", 0.003, case=FAMILY),
        Must("base force", 0.06, case=FAMILY),
        Must("base moment", 1.0, case=FAMILY),
        Must("tip position", 0.55, 0.25, "smooth 100 %"),
        Must("tip position", 0.9, 0.5, "lagged steps 100 %"),
    ),
    exact="The network is compared with the rod that it was trained on, without noise; a rod of 20 "
    "intervals stands in the place of the paper's measurement (published, bench). Published times "
    "are of the authors' computers.",
    further_rows=further_rows,
    draw=_draw,
    later=times_alone,
)
