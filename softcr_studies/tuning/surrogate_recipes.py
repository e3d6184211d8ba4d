"""Recipes of training side by side: ours, ours without a part of it, and the published one.

What of our recipe earns its place, and where the published one is after the same time of one core.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from softcr_models import CosseratRod, load_robot
from softcr_studies.study import Cell, Result, Results, Row, Study, StudySettings

if TYPE_CHECKING:  # of an extra: studies are listed without
    from softcr_learning.surrogate.training_settings import TrainingSettings
    from softcr_learning.surrogate.verification import Verification

TICKS = 700  # of a motion: ten seconds
LONG = (100, 1000)  # free motions under the hardest input, and steps of each
RECIPES = (
    "ours", "ours, plain neurons", "ours, without physics residual",
    "increment only, our other losses", "increment only, single steps",
    "published: physics residual alone",
)  # fmt: skip


class RecipeSettings(StudySettings):
    """See StudySettings."""

    robot: str = Field("licher2025", description="name or YAML file of a robot")
    part: float = Field(1.0, gt=0.0, le=100.0, description="of 12 000 iterations")
    motions: int = Field(20, ge=1, le=10_000, description="of 10 s per row")


def settings_of(recipe: str, part: float) -> "TrainingSettings":
    """Of a training as long as the others: `part` 1 is 12 000 iterations, more of shorter ones."""
    from softcr_learning.surrogate.training_settings import (
        Stage,
        TrainingSettings,
        published_settings,
    )
    from softcr_models.surrogate.ddpinn import Architecture

    # as many multiplications as ours, without what is the rod's own in it
    plain = Architecture(neurons=320, activation="silu", directions=False)
    increment = {"inner": 0.0, "physics": 0.0}
    one_step = {"stages": (Stage(steps=1, share=1.0),), "noisy_samples": 0}
    changes: tuple[dict[str, Any], ...] = (
        {}, {"architecture": plain}, {"physics": 0.0}, increment, increment | one_step, {},
    )  # fmt: skip
    number = RECIPES.index(recipe)
    iterations = {4: 30_000, 5: 720}.get(number, 12_000)
    base = published_settings() if number == 5 else TrainingSettings()
    told = {"iterations": max(1, round(iterations * part)), "threads": 1}
    return base.model_copy(update={**told, **changes[number]})


def run(cell: Cell) -> Result:
    """One training, and its network beside the rod."""
    import torch

    from softcr_learning.surrogate import training
    from softcr_learning.surrogate.verification import Verification

    settings = settings_of(cell.method, cell.settings.part)
    path = cell.folder / f"network-{RECIPES.index(cell.method)}"  # a stopped training goes on
    network, card = training.train(load_robot(cell.settings.robot), settings, path)
    torch.set_num_threads(1)
    rod = CosseratRod(load_robot(cell.settings.robot), card.intervals)
    judged = judgement(Verification(rod, network, cell.settings.motions, TICKS))
    return {"minutes": card.seconds["training"] / 60.0, "iterations": card.iterations, **judged}


def judgement(judged: "Verification") -> Result:
    """Time of a step, accuracy and stability of a network."""
    from softcr_learning.surrogate.timing import network_times
    from softcr_learning.surrogate.verification import MOTIONS

    times = network_times(judged.network, judged.rod)
    step = min((time for time in times if time.batch == 147), key=lambda time: time.median_ms)
    result: dict[str, float | str | np.ndarray] = {"way": step.way, "step": step.median_ms}
    all_motions = {family: judged.motions(family) for family in MOTIONS}
    for family, motions in all_motions.items():
        result[family] = np.array(judged.table(motions)[0].position_mm)
    with np.errstate(over="ignore", invalid="ignore"):  # one step may be enough to diverge
        result["noisy"] = judged.from_noisy_states(next(iter(all_motions.values())))
    count, steps = LONG
    bounded, _ = judged.long_motions("raw_full_steps", count, steps)
    return result | {"families": np.array(list(MOTIONS)), "bounded": 100.0 * bounded / count}


def rows(results: Results) -> list[Row]:
    """Of every recipe: time of training and of a step, accuracy, stability."""
    return [row for cell in results.cells for row in _rows(cell, results[cell])]


def _rows(cell: Cell, told: Result) -> list[Row]:
    def row(case: str, quantity: str, mean: float, unit: str, sd: float = 0.0, count: int = 1,
            timing: bool = False, note: str = "") -> Row:  # fmt: skip
        return Row(case, cell.method, quantity, float(mean), float(sd), unit, count, timing=timing,
                   note=note)  # fmt: skip

    return [
        row("training", "time of one core", told["minutes"], "min", timing=True),
        row("training", "iterations", told["iterations"], "-"),
        row("step of 147, one thread", "median", told["step"], "ms", timing=True,
            note=told["way"]),
        *(row(family, "tip position", told[family][0], "mm", told[family][1],
              cell.settings.motions) for family in told["families"].tolist()),
        row("one step, noisy state", "tip position", told["noisy"], "mm"),
        row(f"{LONG[1]} hardest steps", "bounded", told["bounded"], "%", count=LONG[0]),
    ]  # fmt: skip


STUDY = Study(
    name="tuning/surrogate-recipes",
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
