"""Emulated devices in a process of their own, the terminals at the far end of a virtual cable."""

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from softcr_models.errors import UserError

PRIORITY = 60
"""Of the devices: real ones wait for nobody; below the valves' cycle, which waits for them."""

_START_TIME = 120.0  # of the emulator: it may compile [s]
_END_TIME = 5.0  # [s]
_COMMAND = "import sys; from softcr_tools.cli import main; sys.exit(main())"


def what_a_wire_lacks() -> str:
    """Why there can be no emulated terminals here, with what to do; empty where there can."""
    if os.geteuid() != 0:
        return "needs root, for a virtual cable and raw frames: sudo"
    if shutil.which("ip") is None:
        return "needs the ip command: sudo apt install iproute2"
    if importlib.util.find_spec("pysoem") is None:
        return "needs pysoem (GPL-3.0 or commercial): pip install 'softcr[ethercat]'"
    return ""


@contextmanager
def cable() -> Iterator[tuple[str, str]]:
    """A virtual cable of names of its own; both ends up, removed afterwards.

    Raises:
        UserError: the system refuses it.
    """
    near, far = (f"scr{os.getpid() % 10**7}{end}" for end in "ab")
    steps = (
        ("link", "add", near, "type", "veth", "peer", "name", far),
        ("link", "set", near, "up"),
        ("link", "set", far, "up"),
    )
    try:
        for words in steps:
            made = subprocess.run(["ip", *words], capture_output=True, text=True)
            if made.returncode != 0:
                raise UserError(f"ip {' '.join(words)}: {made.stderr.strip()}")
        yield near, far
    finally:
        subprocess.run(["ip", "link", "del", near], capture_output=True)


@contextmanager
def emulation(words: Sequence[object]) -> Iterator[None]:
    """`softcr emulate WORDS` from when it is ready until the end of the block.

    Raises:
        UserError: it did not start; with what it said.
    """
    command = [sys.executable, "-c", _COMMAND, "emulate", *map(str, words)]
    command += ["--realtime-priority", str(PRIORITY)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is the run's, which ends the devices last
    ) as process:
        try:
            _wait_until_ready(process)
            yield
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_TIME)
            process.kill()


def _wait_until_ready(process: "subprocess.Popen[str]") -> None:
    assert process.stderr is not None  # a pipe
    deadline, said = time.monotonic() + _START_TIME, ""
    for line in process.stderr:  # its own words, few lines
        if "emulating" in line:
            return
        said = line.strip() or said
        if time.monotonic() > deadline:
            break
    raise UserError(f"the emulated devices did not start: {said}")
