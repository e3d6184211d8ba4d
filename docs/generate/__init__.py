"""What the documentation says of the code, written anew by every build: `docs/_generated`.

Each module of this folder has `pages()`, which returns what writes each of its files, by name.
Nothing here is part of the packages.
"""

import sys
from pathlib import Path

from generate import (
    commands,
    interfaces,
    pictures,
    plant_errors,
    robot_drawing,
    robot_schema,
    sample_path,
    settings_tables,
)  # fmt: skip


class PageError(RuntimeError):
    """A file that could not be generated."""


_MODULES = (
    interfaces, settings_tables, robot_schema, robot_drawing, plant_errors, commands, pictures,
    sample_path,
)  # fmt: skip
FOLDER = Path(__file__).resolve().parents[1] / "_generated"


def write_all(folder: Path = FOLDER) -> list[str]:
    """Write every generated file; returns their names. A file of an earlier build is removed.

    Raises:
        PageError: a file could not be generated; the message names it.
    """
    folder.mkdir(exist_ok=True)
    made: dict[str, str] = {}
    for module in _MODULES:
        for name, write in module.pages().items():
            print(f"generating {name}", file=sys.stderr)
            try:
                made[name] = write()
            except Exception as error:
                told = f"{type(error).__name__}: {error}"
                raise PageError(f"docs/_generated/{name} ({module.__name__}): {told}") from error
    for old in folder.iterdir():
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        path = folder / name
        # what is as it was keeps its time, so that sphinx reads only what has changed
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return sorted(made)
