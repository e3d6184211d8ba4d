"""What every command of `softcr` says of itself, from its own `--help`."""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cyclopts import App

from softcr_tools.cli import app

_ROOT = Path(__file__).resolve().parents[2]


def pages() -> dict[str, Callable[[], str]]:
    """The page of the command line."""
    return {"commands.md": _commands}


def _commands() -> str:
    with ThreadPoolExecutor(2) as pool:
        helps = list(pool.map(_help, commands := _named(app)))
    parts = [f"```text\n{_help('')}\n```"]
    for command, text in zip(commands, helps, strict=True):
        parts += [f"(command-{command.replace(' ', '-')})=", f"## `softcr {command}`"]
        parts.append(f"```text\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def _named(of: App) -> list[str]:
    """Every command in the order of `--help`; the shorter name of one that has two."""
    names: dict[Callable[..., Any], str] = {}

    def walk(group: App, path: tuple[str, ...]) -> None:
        for name in group:
            if name.startswith("-"):
                continue
            command = group[name]
            if command.default_command is None:
                walk(command, (*path, name))
                continue
            full = " ".join((*path, name))
            told = names.setdefault(command.default_command, full)
            names[command.default_command] = min(told, full, key=len)

    walk(of, ())
    return list(names.values())


def _help(command: str) -> str:
    """What a command prints for --help."""
    done = subprocess.run(
        [sys.executable, "-m", "softcr_tools.cli", *command.split(), "--help"],
        capture_output=True,
        text=True,
        check=False,
        cwd=_ROOT,
        env=os.environ | {"COLUMNS": "84", "NO_COLOR": "1", "TERM": "dumb"},
    )
    if done.returncode:
        raise RuntimeError(f"softcr {command} --help: {done.stderr.strip()}")
    return "\n".join(line.rstrip() for line in done.stdout.splitlines())
