"""Files that are written as a whole or not at all, and of which the one before is kept."""

import datetime as dt
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from softcr_models.errors import UserError


def write_whole(path: Path, content: str, backup: bool = False) -> Path | None:
    """Put a text into a file, which exists as a whole at every moment.

    Args:
        path: of the file; its directory is made.
        content: of it.
        backup: whether a file that is there is kept under another name.

    Returns:
        Where the file before is kept; None where there was none, or the same.

    Raises:
        UserError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = _kept(path, content) if backup else None
        number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent, text=True)
        try:
            with os.fdopen(number, "w", encoding="utf-8") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            with suppress(OSError):  # a FAT drive has no modes
                Path(name).chmod(0o644)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
    return kept


def _kept(path: Path, content: str) -> Path | None:
    """A copy of what is there, unless it is the same."""
    if not path.exists() or path.read_text(encoding="utf-8") == content:
        return None
    stamp = dt.datetime.now().strftime("%Y%m%d-%H%M%S")
    kept = path.with_name(f"{path.stem}.before-{stamp}{path.suffix}")
    number = 1
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.stem}.before-{stamp}-{number}{path.suffix}")
    kept.write_bytes(path.read_bytes())
    return kept
