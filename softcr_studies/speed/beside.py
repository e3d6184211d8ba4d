"""Other people's simulators, each in a process of its own that reads an order and answers it."""

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from softcr_studies.speed.timing import Skipped


def answers(
    script: Path, order: Mapping[str, Any], name: str, longest: float, python: str = ""
) -> list[Any]:
    """What a script beside this one answers to an order of plain data.

    Args:
        script: reads the pickled order from stdin and writes a pickled list to stdout.
        order: what it is to do.
        name: of the simulator, for messages.
        longest: how long it may take [s].
        python: program that runs it; this one when empty.

    Raises:
        Skipped: the process failed, or took too long.
    """
    program = python or sys.executable
    try:
        done = subprocess.run(
            [program, str(script)], input=pickle.dumps(order), capture_output=True,
            timeout=longest, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Skipped(f"{name} took longer than {longest:.0f} s") from None
    except OSError as error:
        raise Skipped(f"{name}: {program} cannot be run: {error.strerror}") from None
    if done.returncode:
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise Skipped(f"{name}'s process failed: {last}")
    found: list[Any] = pickle.loads(done.stdout)
    return found
