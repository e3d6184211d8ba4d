"""The directory of a training that can go on: whose it is, and what it has learned so far.

A checkpoint of stable-baselines3's algorithms holds numbers and containers alone. That of our own
learners is pickled, because it holds whole learners: only a directory that a training of one's own
wrote may be given.
"""

import pickle
from pathlib import Path
from typing import Any

from softcr_learning.policy.training_settings import TrainingSettings
from softcr_models.errors import UserError

CHECKPOINT, ROUNDS_FILE = "checkpoint.pt", "checkpoint_rounds.pkl"
FILES = (CHECKPOINT, ROUNDS_FILE, "settings.json")
"""What a training that begins afresh takes away."""


def claim(run: Path, settings: TrainingSettings) -> None:
    """Makes the directory, which from then on belongs to these settings; samples may differ.

    Raises:
        UserError: it holds a run with other settings.
    """
    sheet = run / "settings.json"
    own = settings.model_dump_json(exclude={"samples"}, indent=1) + "\n"
    if sheet.exists() and sheet.read_text(encoding="utf-8") != own:
        raise UserError(
            f"{run}: holds a training with other settings; name another directory, or train afresh"
        )
    run.mkdir(parents=True, exist_ok=True)
    sheet.write_text(own, encoding="utf-8")


def save_checkpoint(run: Path, content: dict[str, Any]) -> None:
    """Writes a checkpoint, whole or not at all."""
    import torch

    part = run / f"{CHECKPOINT}.part"
    torch.save(content, part)
    part.replace(run / CHECKPOINT)


def saved_checkpoint(run: Path) -> dict[str, Any]:
    """What `save_checkpoint` wrote last; nothing where there is none.

    Raises:
        UserError: it cannot be read, or holds more than numbers and containers.
    """
    import torch

    file = run / CHECKPOINT
    if not file.exists():
        return {}
    try:
        found: dict[str, Any] = torch.load(file, weights_only=True)
    except (OSError, RuntimeError, pickle.UnpicklingError, EOFError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{file}: cannot be read as a checkpoint: {reason}") from None
    return found


def save_rounds(run: Path, content: dict[str, Any]) -> None:
    """Writes a checkpoint of a learner in rounds, whole or not at all."""
    part = run / f"{ROUNDS_FILE}.part"
    part.write_bytes(pickle.dumps(content))
    part.replace(run / ROUNDS_FILE)


def saved_rounds(run: Path) -> dict[str, Any]:
    """What `save_rounds` wrote last; nothing where there is none."""
    file = run / ROUNDS_FILE
    found: dict[str, Any] = pickle.loads(file.read_bytes()) if file.exists() else {}
    return found
