"""Experiment 2 of Licher et al. 2025, Sec. IV-C: the surrogate beside its rod, Tables IV and V.

What `softcr verify-surrogate` computes, as a table over seeds: ten-second motions that the network
runs freely, compliance +-20 % from motion to motion. The paper's measurement has no counterpart
without a bench: in its place stands a rod of 20 intervals, so "rod of 20 intervals" says how far
the rod that was learned is from a finer one. Times are of whole batches, on one thread of this
machine and on its GPU if it has one (the paper: Matlab on a laptop's CPU, PyTorch on its GPU).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field

from softcr_learning.surrogate import figures
from softcr_learning.surrogate.timing import step_times
from softcr_learning.surrogate.verification import (
    ASKED,
    FINER,
    HORIZONS,
    MOTIONS,
    QUANTITIES,
    TICKS,
    Verification,
    load_network,
)
from softcr_models import CosseratRod, load_robot
from softcr_runtime.bags.motion_bag import write_motion_bag
from softcr_studies.study import Cell, Metric, Must, Published, Result, Results, Row, Study
from softcr_studies.table import Kind
from softcr_studies.tracking_study import Settings

FIRST_SEED = 200  # neither of the training nor of verify-surrogate
FAMILY = "smooth 70 %"  # the motions that stand for the paper's trajectory
NETWORK, TIMES = "network", "time of a step"
PUBLISHED_SD = (0.377, 0.00433, 0.177, 1.18)
PUBLISHED_MODEL_MM = 2.42  # simulation against measurement
# Table V: the network (batch 1: CPU; the others: GPU, printed per candidate), and ode23s
PUBLISHED_BATCH_MS = {1: 1.23, 147: 147 * 3.30e-3, 1000: 1000 * 0.802e-3}
PUBLISHED_ODE_MS = 35.9


class SurrogateSettings(Settings):
    """See Settings."""

    motions: int = Field(4, ge=1, le=1000, description="of 10 s, for each family and seed")
    network: str = Field("", description="path of the network without ending; empty: the shipped")


def _verification(settings: SurrogateSettings, seed: int) -> Verification:
    """The network beside its rod; each seed has motions of its own."""
    torch.set_num_threads(1)  # small batches, on cores that others use too
    robot = load_robot(settings.robot)
    network, card = load_network(robot, settings.network)
    rod = CosseratRod(robot, card.intervals)
    return Verification(rod, network, settings.motions, TICKS, FIRST_SEED + seed)


def run(cell: Cell) -> Result:
    """One family of motions, or the times of steps."""
    verification = _verification(cell.settings, cell.seed)
    if cell.case == TIMES:
        times = step_times(verification.network, verification.rod)
        return {
            "way": [each.way for each in times],
            "batch": [each.batch for each in times],
            "median_ms": [each.median_ms for each in times],
        }
    return compared(cell, verification)


def compared(cell: Cell, verification: Verification) -> Result:
    """A family of motions.

    Returns:
        mean and, with ", SD", deviation of each of QUANTITIES; of FAMILY finer_mm (2,): distances
        of network and rod from a finer rod. Of the first seed horizons_mm: after HORIZONS steps,
        and states, rod_states (T, nx) of a motion.
    """
    motions = verification.motions(cell.case)
    deviation, states = verification.table(motions)
    result: dict[str, Any] = {}
    for quantity, _, attribute in QUANTITIES:
        result[quantity], result[f"{quantity}, SD"] = getattr(deviation, attribute)
    if cell.case == FAMILY:
        result["finer_mm"] = np.array(verification.from_finer_rod(motions, states, FINER))
    if cell.seed:
        return result
    result["horizons_mm"] = np.array(verification.over_horizon(motions, HORIZONS))
    result["states"], result["rod_states"] = states[0], motions.states[0, 1:]
    if cell.bag:
        write_motion_bag(
            cell.bag, verification.rod, motions.parameters[0],
            motions.levels.end[0, : states.shape[1]], motions.states[0, 1:].astype(float),
            states[0].astype(float), verification.network.period,
        )  # fmt: skip
    return result


def times_alone(results: Results) -> list[Cell]:
    """Times are measured once, when no other cell runs."""
    return [Cell(TIMES, NETWORK, 0, results.settings)]


def _asked() -> Iterator[Must | Published]:
    for case, bounds in ASKED.items():
        for (quantity, *_), (paper, must, goal), sd in zip(
            QUANTITIES, bounds, PUBLISHED_SD, strict=True
        ):
            if must is not None:
                yield Must(quantity, must, goal, case)
            if paper is not None:
                yield Published(quantity, paper, "simulation", case)
                yield Published(f"{quantity}, SD", sd, "simulation", case)


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


def _draw(results: Results, directory: Path) -> None:
    first = {name: results.first(name, NETWORK) for name in MOTIONS}
    verification, shown = _verification(results.settings, 0), first[FAMILY]
    figures.draw_states(shown["states"], shown["rod_states"], verification, directory)
    horizons = {name: list(found["horizons_mm"]) for name, found in first.items()}
    figures.draw_horizons(HORIZONS, horizons, directory)


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
        for quantity, unit, _ in QUANTITIES
        for more in ("", ", SD")
    ],
    published=[each for each in _asked() if isinstance(each, Published)],
    musts=[each for each in _asked() if isinstance(each, Must)],
    exact="The network is compared with the rod that it was trained on, without noise; a rod of 20 "
    "intervals stands in the place of the paper's measurement (published, bench). Published times "
    "are of the authors' computers.",
    further_rows=further_rows,
    draw=_draw,
    later=times_alone,
)
