"""What every command of `softcr` says of itself, from its own `--help`."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
COMMANDS: tuple[str, ...] = (
    "up simulation", "up hardware", "report", "replay", "view", "hold", "doctor", "commission",
    "ros", "run", "nodes", "lifecycle get", "lifecycle set", "topics", "echo", "call", "goal",
    "param list", "param get", "param set",
    "plan", "identify", "emulate ethercat", "emulate optitrack", "emulate force-torque",
    "emulate bench", "rehearse", "train", "learn strain", "learn policy", "verify-surrogate",
    "study list", "study run", "study page", "study compare",
)  # fmt: skip
"""Every command, in the order of the page."""


def pages() -> dict[str, str]:
    """The page of the command line."""
    with ThreadPoolExecutor(2) as pool:
        helps = list(pool.map(_help, COMMANDS))
    parts = [f"```text\n{_help('')}\n```"]
    for command, text in zip(COMMANDS, helps, strict=True):
        if text:
            parts += [f"(command-{command.replace(' ', '-')})=", f"## `softcr {command}`"]
            parts.append(f"```text\n{text}\n```")
    return {"commands.md": "\n\n".join(parts) + "\n"}


def _help(command: str) -> str:
    """What a command prints for --help; nothing for one that this version does not have."""
    done = subprocess.run(
        [sys.executable, "-m", "softcr_tools.cli", *command.split(), "--help"],
        capture_output=True,
        text=True,
        check=False,
        cwd=_ROOT,
        env=os.environ | {"COLUMNS": "84", "NO_COLOR": "1", "TERM": "dumb"},
    )
    return (
        "\n".join(line.rstrip() for line in done.stdout.splitlines()) if not done.returncode else ""
    )
