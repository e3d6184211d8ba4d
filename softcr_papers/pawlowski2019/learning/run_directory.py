"""The directory of a training that can go on: whose it is."""

from pathlib import Path

from softcr_models.errors import UserError
from softcr_papers.pawlowski2019.learning.training_settings import TrainingSettings

CHECKPOINT = "checkpoint.safetensors"
FILES = (CHECKPOINT, "settings.json")
"""What a training that begins afresh takes away."""


def claim(run: Path, settings: TrainingSettings) -> Path:
    """Makes the directory, which from then on belongs to these settings; samples may differ.

    Returns:
        The file of its checkpoint.

    Raises:
        UserError: it holds a run with other settings.
    """
    sheet = run / "settings.json"
    own = settings.model_dump_json(exclude={"samples"}, indent=1) + "\n"
    if sheet.exists() and sheet.read_text(encoding="utf-8", errors="replace") != own:
        raise UserError(
            f"{run}: holds a training with other settings; name another directory, or train afresh"
        )
    run.mkdir(parents=True, exist_ok=True)
    sheet.write_text(own, encoding="utf-8")
    return run / CHECKPOINT
