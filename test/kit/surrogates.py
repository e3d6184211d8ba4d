"""A small trained network, made once for all tests that need one."""

import functools
import tempfile
from pathlib import Path
from unittest.mock import patch

from softcr_models import load_robot
from softcr_models.surrogate.architecture import Architecture
from softcr_models.surrogate.card import Card
from softcr_models.surrogate.ddpinn import DDPINN
from softcr_papers.licher2025.training import initial_network
from softcr_papers.licher2025.training.training import train
from softcr_papers.licher2025.training.training_settings import Stage, TrainingSettings

SMALL = TrainingSettings(
    architecture=Architecture(neurons=48),
    trajectories=160,
    ticks=80,
    noisy_samples=20_000,
    iterations=300,
    stages=(Stage(steps=1, share=0.7), Stage(steps=3, share=0.3)),
    batch=256,
    loop_batch=64,
    physics_points=16,
    learning_rate=0.01,
    threads=1,
    validate_every=0.5,
)


_DIRECTORY = tempfile.TemporaryDirectory(prefix="softcr_network_")  # gone with the process


def quick_fits():
    """While it lasts, a network begins from a tenth of the samples: plenty for small trainings."""
    few = {"WINDOWS": 20_000, "NOISY": 10_000, "SHAPE_SAMPLES": 200}
    return patch.multiple(initial_network, **few)


@functools.cache
def small_network() -> tuple[DDPINN, Card, Path]:
    """Network, card and the path of their files."""
    path = Path(_DIRECTORY.name) / "small"
    with quick_fits():
        network, card = train(load_robot("licher2025"), SMALL, path)
    return network, card, path
