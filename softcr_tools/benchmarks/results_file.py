"""The bench's results as a file."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from softcr_models.errors import UserError
from softcr_tools.benchmarks.row import Row


def create_folder(folder: Path) -> None:
    """Makes the folder, before minutes are spent.

    Raises:
        UserError: it cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(folder, error) from None
    if not os.access(folder, os.W_OK):
        raise UserError(f"results directory {folder}: cannot be written: no permission")


def write_results(path: Path, machine: dict[str, Any], rows: Sequence[Row]) -> None:
    """Writes machine and rows as JSON; the file is there complete or not at all.

    Raises:
        UserError: it cannot be written.
    """
    content = {"machine": machine, "rows": [row.as_dict() for row in rows]}
    draft = path.with_suffix(f".{os.getpid()}.draft")
    try:
        draft.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:
        raise _not_writable(path.parent, error) from None


def _not_writable(folder: Path, error: OSError) -> UserError:
    return UserError(f"results directory {folder}: cannot be written: {error.strerror or error}")
