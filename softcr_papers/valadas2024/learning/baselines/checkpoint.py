"""Trainings as files: numbers of the weights and of the optimiser (safetensors), a card (JSON).

One file holds both, the card as the file's own metadata; it is there whole or not at all.
"""

import dataclasses
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.baselines.marker_model import MarkerModel
from softcr_papers.valadas2024.learning.baselines.marker_motion import MarkerMotion
from softcr_papers.valadas2024.learning.baselines.training import (
    Progress,
    Trainer,
    TrainingSettings,
)

_SAVED_EVERY = 30.0  # [s]
_NOW, _BEST, _OPTIMISER = "now.", "best.", "optimiser."


def save(trainer: Trainer, path: Path) -> None:
    """Writes a training, finished or not.

    Raises:
        OSError: it cannot be written.
    """
    tensors = {_NOW + name: value for name, value in trainer.model.network.state_dict().items()}
    tensors |= {_BEST + name: value for name, value in trainer.best_weights.items()}
    for number, state in trainer.optimiser.state_dict()["state"].items():
        tensors |= {f"{_OPTIMISER}{number}.{name}": value for name, value in state.items()}
    progress = {"iteration": trainer.iteration, "best": trainer.best}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    contiguous = {name: value.detach().contiguous() for name, value in tensors.items()}
    save_file(contiguous, part, {"card": json.dumps(_card(trainer) | progress)})
    part.replace(path)


def resume(trainer: Trainer, path: Path) -> bool:
    """Goes on where a file's training stopped; returns whether there is such a file.

    Raises:
        UserError: the file cannot be read, or is of another training.
    """
    if not path.is_file():
        return False
    try:
        with safe_open(path, "pt") as file:
            card = json.loads((file.metadata() or {})["card"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: cannot be read as a training: {reason}") from None
    for name, value in _card(trainer).items():
        if card.get(name) != value:
            raise UserError(f"{path}: is of another training: its {name} differs; remove it")
    try:
        trainer.model.network.load_state_dict(_part(tensors, _NOW))
        trainer.best_weights = _part(tensors, _BEST)
        trainer.iteration, trainer.best = int(card["iteration"]), float(card["best"])
        _load_optimiser(trainer.optimiser, _part(tensors, _OPTIMISER))
    except (RuntimeError, KeyError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: does not fit the network: {reason}") from None
    return True


def _card(trainer: Trainer) -> dict[str, Any]:
    """What must be the same for a training to go on, as JSON has it."""
    digest = hashlib.sha256()
    for values in (trainer.motion.poses, trainer.motion.rates, trainer.motion.torques):
        # last bits of a simulated motion differ from machine to machine; -0.0 becomes 0.0
        digest.update((np.round(values, 9) + 0.0).tobytes())
    told = {
        "network": type(trainer.model.network).__name__,
        "units": dataclasses.asdict(trainer.model.units),
        "period": trainer.model.period,
        "settings": dataclasses.asdict(trainer.settings),
        "motion": digest.hexdigest()[:16],
    }
    card: dict[str, Any] = json.loads(json.dumps(told))
    return card


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


def _load_optimiser(optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        number, _, entry = name.partition(".")
        state.setdefault(int(number), {})[entry] = value
    optimiser.load_state_dict(optimiser.state_dict() | {"state": state})


def trained(
    kind: str,
    motion: MarkerMotion,
    settings: TrainingSettings,
    folder: Path,
    report: Callable[[Progress], None] = lambda _: None,
) -> MarkerModel:
    """A network trained to the end; a training that lies in the folder is gone on with.

    Args:
        kind: of the network.
        motion: what it learns from.
        settings: how.
        folder: of the files, each named by what it is trained from and how.
        report: hears of the progress.

    Raises:
        UserError: see `Trainer` and `resume`.
        OSError: a file cannot be written.
    """
    trainer = Trainer(kind, motion, settings)
    digest = hashlib.sha256(json.dumps(_card(trainer), sort_keys=True).encode()).hexdigest()
    path = folder / f"{kind.lower()}-{digest[:12]}.safetensors"
    resume(trainer, path)
    saved = time.monotonic()

    def heard(progress: Progress) -> None:
        nonlocal saved
        if time.monotonic() - saved > _SAVED_EVERY:
            save(trainer, path)
            saved = time.monotonic()
        report(progress)

    if trainer.iteration < settings.iterations:
        trainer.run(heard)
        save(trainer, path)
    return trainer.best_model()
