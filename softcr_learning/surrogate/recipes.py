"""Recipes of training side by side: ours, ours without a part of it, and the published one."""

from dataclasses import dataclass

from softcr_learning.surrogate.training_settings import (
    Stage,
    TrainingSettings,
    published_settings,
)
from softcr_models.surrogate.ddpinn import Architecture

# as many multiplications as ours, without what is the rod's own in it
PLAIN = Architecture(neurons=320, activation="silu", directions=False)


@dataclass(frozen=True)
class Recipe:
    """A way to train.

    Attributes:
        name: in the table.
        settings: of a training as long as the others.
    """

    name: str
    settings: TrainingSettings


def recipes(part: float) -> list[Recipe]:
    """What is compared, at `part` 1 in 12 000 iterations, more where they are shorter."""
    iterations = max(1, round(12_000 * part))
    ours = TrainingSettings(iterations=iterations, threads=1)
    increment = {"inner": 0.0, "physics": 0.0}
    one_step = {"stages": (Stage(steps=1, share=1.0),), "noisy_samples": 0}
    once = max(1, round(30_000 * part))
    return [
        Recipe("ours", ours),
        Recipe("ours, plain neurons", ours.model_copy(update={"architecture": PLAIN})),
        Recipe("ours, without physics residual", ours.model_copy(update={"physics": 0.0})),
        Recipe("increment only, our other losses", ours.model_copy(update=increment)),
        Recipe(
            "increment only, single steps",
            ours.model_copy(update=increment | one_step | {"iterations": once}),
        ),
        Recipe(
            "published: physics residual alone",
            published_settings().model_copy(
                update={"iterations": max(1, round(720 * part)), "threads": 1}
            ),
        ),
    ]
