"""How the `softcr` command speaks to the person."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

FAILED = 1
USER_ERROR = 2
"""Exit codes of the command; a node that was told something wrong ends with USER_ERROR, too."""


def complain(line: str) -> None:
    """Say what went wrong, in the one form all errors have."""
    print(f"softcr: error: {line}", file=sys.stderr, flush=True)


@contextmanager
def step(console: "Console", what: str) -> Iterator[None]:
    """Show what is being done, and how long it took once it is done."""
    began = time.monotonic()
    with console.status(f"{what} ..."):
        yield
    say(console, f"{what} ... {time.monotonic() - began:.1f} s")


def say(console: "Console", line: str, style: str = "") -> None:
    """Print a line as it is."""
    console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)


def compile_kernels(console: "Console") -> None:
    """Compile the rod's kernels, once per version and machine, rather than in five nodes at a time.

    Raises:
        UserError: they could not be compiled.
    """
    from softcr_models.errors import UserError
    from softcr_models.warm_up import ensure_warm, is_warm

    if not is_warm():
        with step(console, "compiling the rod's kernels, once on this machine"):
            if not ensure_warm():
                raise UserError("the rod's kernels could not be compiled: see above")


@contextmanager
def ended_by_signals() -> Iterator[threading.Event]:
    """An event that SIGINT, SIGTERM and SIGHUP set."""
    stop = threading.Event()
    with signals_call(stop.set):
        yield stop


@contextmanager
def signals_call(act: Callable[[], None]) -> Iterator[None]:
    """What SIGINT, SIGTERM and SIGHUP do, each time that one of them comes."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, lambda *_: act()) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            with suppress(TypeError):  # a handler not set by Python
                signal.signal(number, handler)
