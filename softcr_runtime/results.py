"""Where runs leave their results: one directory per run, `latest` points to the newest."""

import os
from datetime import datetime
from pathlib import Path

from softcr_models.errors import UserError


def new_run_directory(results: Path) -> Path:
    """Make `results/<YYYYmmdd-HHMMSS>`.

    Raises:
        UserError: the directory cannot be made or written.
    """
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    try:
        results.mkdir(parents=True, exist_ok=True)
        return _first_free(results, stamp)
    except OSError as error:
        raise UserError(
            f"results directory {results}: cannot be written: {error.strerror or error}"
        ) from None


def point_latest_to(directory: Path) -> None:
    """Let `latest`, beside the run's directory, point to it."""
    draft = directory.parent / f".latest-{os.getpid()}"
    draft.symlink_to(directory.name)
    os.replace(draft, directory.parent / "latest")


def _first_free(results: Path, stamp: str) -> Path:
    """Runs started within one second get a suffix."""
    number = 1
    while True:
        directory = results / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            directory.mkdir()
            return directory
        except FileExistsError:
            number += 1
