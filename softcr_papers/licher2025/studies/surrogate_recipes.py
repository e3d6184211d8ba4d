"""Recipes of training side by side: ours, ours without a part of it, and the published one.

What of our recipe earns its place, and where the published one is after the same time of one core.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from softcr_models import CosseratRod, load_robot
from softcr_studies.frame.study import Cell, Result, Results, Row, Study, StudySettings

if TYPE_CHECKING:  # of an extra: studies are listed without
    from softcr_papers.licher2025.training.training_settings import TrainingSettings

TICKS = 700  # of a motion: ten seconds
LONG = (100, 1000)  # free motions under the hardest input, and steps of each
OURS, PUBLISHED = "ours", "published: physics residual alone"
RECIPES = (
    OURS, "ours, plain neurons", "ours, without physics residual",
    "increment only, our other losses", "increment only, single steps", PUBLISHED,
)  # fmt: skip


class RecipeSettings(StudySettings):
    """See StudySettings."""

    robot: str = Field("licher2025", description="name or YAML file of a robot")
    part: float = Field(
        1.0, gt=0.0, le=100.0, description="length of a training, relative to 12 000 iterations"
    )
    motions: int = Field(20, ge=1, le=10_000, description="number of motions of 10 s per row")


def settings_of(recipe: str, part: float) -> "TrainingSettings":
    """Of a training as long as the others: `part` 1 is 12 000 iterations, more of shorter ones."""
    from softcr_models.surrogate.architecture import Architecture
    from softcr_papers.licher2025.training.training_settings import (
        Stage,
        TrainingSettings,
        published_settings,
    )

    # as many multiplications as ours, without what is the rod's own in it
    plain = Architecture(neurons=320, activation="silu", directions=False)
    increment = {"inner": 0.0, "physics": 0.0}
    one_step = {"stages": (Stage(steps=1, share=1.0),), "noisy_samples": 0, "iterations": 30_000}
    changes: dict[str, dict[str, Any]] = dict(zip(
        RECIPES,
        ({}, {"architecture": plain}, {"physics": 0.0}, increment, increment | one_step,
         {"iterations": 720}),
        strict=True,
    ))  # fmt: skip
    base = published_settings() if recipe == PUBLISHED else TrainingSettings()
    told = {"iterations": 12_000, "threads": 1} | changes[recipe]
    return base.model_copy(update=told | {"iterations": max(1, round(told["iterations"] * part))})


def run(cell: Cell) -> Result:
    """One training, and its network beside the rod: time of a step, accuracy and stability."""
    import torch

    from softcr_papers.licher2025.studies.surrogate_steps import network_times
    from softcr_papers.licher2025.training import training
    from softcr_papers.licher2025.training.verification import MOTIONS, Verification

    robot, settings = load_robot(cell.settings.robot), settings_of(cell.method, cell.settings.part)
    path = cell.folder / f"network-{RECIPES.index(cell.method)}"  # a stopped training goes on
    network, card = training.train(robot, settings, path)
    torch.set_num_threads(1)
    rod = CosseratRod(robot, card.intervals)
    times = [time for time in network_times(network, rod) if time.batch == 147]
    step = min(times, key=lambda time: time.median_ms)
    judged = Verification(rod, network, cell.settings.motions, TICKS)
    motions = {family: judged.motions(family) for family in MOTIONS}
    errors = {family: judged.table(each)[0]["tip position"] for family, each in motions.items()}
    with np.errstate(over="ignore", invalid="ignore"):  # one step may be enough to diverge
        noisy = judged.from_noisy_states(next(iter(motions.values())))
    bounded, _ = judged.long_motions("raw_full_steps", *LONG)
    return {
        "minutes": card.seconds["training"] / 60.0, "iterations": card.iterations,
        "way": step.way, "step": step.median_ms, "noisy": noisy,
        "families": list(MOTIONS), **errors, "bounded": 100.0 * bounded / LONG[0],
    }  # fmt: skip


def rows(results: Results) -> list[Row]:
    """Of every recipe: time of training and of a step, accuracy, stability."""
    return [
        Row(case, cell.method, quantity, float(mean), float(sd), unit, count,
            timing=unit in ("min", "ms"), note=note)
        for cell in results.cells
        for case, quantity, unit, mean, sd, count, note in _figures(results[cell], cell.settings)
    ]  # fmt: skip


def _figures(told: Result, settings: RecipeSettings) -> list[tuple]:
    """(case, quantity, unit, mean, deviation, count, note) of each row of a recipe."""
    return [
        ("training", "time of one core", "min", told["minutes"], 0, 1, ""),
        ("training", "iterations", "-", told["iterations"], 0, 1, ""),
        ("step of 147, one thread", "median", "ms", told["step"], 0, 1, told["way"]),
        *((family, "tip position", "mm", *told[family][:2], settings.motions, "")
          for family in told["families"].tolist()),
        ("one step, noisy state", "tip position", "mm", told["noisy"], 0, 1, ""),
        (f"{LONG[1]} hardest steps", "bounded", "%", told["bounded"], 0, LONG[0], ""),
    ]  # fmt: skip


STUDY = Study(
    name="licher2025/surrogate-recipes",
    source="",
    summary="the surrogate's training beside the same without a part of it and the published one",
    run=run,
    cases=("training",),
    methods=RECIPES,
    settings=RecipeSettings,
    further_rows=rows,
    seeded=False,
    exact="Networks learn from motions of the exact rod and are judged on other motions of the "
    "same rod; the published recipe has no data, only the rod's equations.",
)
