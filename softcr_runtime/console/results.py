"""Where runs leave their results: one directory per run, `latest` points to the newest."""

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from softcr_models.errors import UserError
from softcr_runtime.console.terminal import warn


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
    """Let `latest`, beside the run's directory, point to it.

    The link is a convenience: where it cannot be made, as on a FAT or exFAT drive, which has no
    symbolic links, a warning says so and the results stay as they are.
    """
    latest = directory.parent / "latest"
    draft = directory.parent / f".latest-{os.getpid()}"
    try:
        draft.symlink_to(directory.name)
        os.replace(draft, latest)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        warn(f"{latest} does not point to {directory.name}: {error.strerror or error}")


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
