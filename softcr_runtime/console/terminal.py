"""How the `softcr` command speaks to the person."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console

FAILED = 1
USER_ERROR = 2
INTERRUPTED = 130
"""Exit codes of the command; a node that was told something wrong ends with USER_ERROR, too."""


_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
"""Characters that a terminal obeys instead of showing them, but for line ends and tabs."""


def harmless(text: str) -> str:
    """A text without characters that a terminal obeys: it may come from a bag or the network."""
    return text.translate(_CONTROLS)


def show(text: str) -> None:
    """Print what was asked for on stdout."""
    print(harmless(text), flush=True)


def complain(line: str) -> None:
    """Say what went wrong, in the one form all errors have."""
    print(f"softcr: error: {harmless(line)}", file=sys.stderr, flush=True)


def warn(line: str) -> None:
    """Say on stderr what went wrong and does not matter for what was asked."""
    print(f"softcr: warning: {harmless(line)}", file=sys.stderr, flush=True)


class _Unread:
    """A stream that takes words when nobody reads them any more."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with self._readers_may_leave():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with self._readers_may_leave():
            self._stream.flush()

    @contextmanager
    def _readers_may_leave(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            with open(os.devnull, "w") as nobody:
                os.dup2(nobody.fileno(), self._stream.fileno())


@contextmanager
def readers_may_leave() -> Iterator[None]:
    """Let a run end well whose words nobody reads any more: the program behind a pipe has ended, or
    the terminal was closed."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = cast(TextIO, _Unread(before[0])), cast(TextIO, _Unread(before[1]))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


@contextmanager
def step(console: "Console", what: str) -> Iterator[None]:
    """Show what is being done, and how long it took once it is done."""
    began = time.monotonic()
    with shown(console, what):
        yield
    say(console, f"{what} ... {time.monotonic() - began:.1f} s")


FIRST_WORD = 10.0
"""Of something that is still being done, where no terminal shows it [s]; then after twice as long,
and so on."""


@contextmanager
def shown(console: "Console", what: str) -> Iterator[None]:
    """Show what is being done: on a terminal all the time, elsewhere in a line now and then."""
    if console.is_terminal:
        with console.status(f"{what} ..."):
            yield
        return
    done = threading.Event()

    def tell() -> None:
        waited = FIRST_WORD
        while not done.wait(waited if waited == FIRST_WORD else 0.5 * waited):
            say(console, f"{what}: {waited:.0f} s so far")
            waited *= 2.0

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def say(console: "Console", line: str, style: str = "") -> None:
    """Print a line as it is."""
    console.print(harmless(line), style=style, markup=False, highlight=False, soft_wrap=True)


def compile_kernels(console: "Console", sets: Sequence[str] = ("rod",)) -> None:
    """Compile kernels, once per version and machine, rather than in five nodes at a time.

    Args:
        console: where it is said, with a bar by the kernels' shares of the time.
        sets: of kernels, see `softcr_models.warm_up`.

    Raises:
        UserError: they could not be compiled.
    """
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    from softcr_models.errors import UserError
    from softcr_models.warm_up import ensure_warm, expected_seconds, is_warm

    if is_warm(sets):
        return
    what, began = "compiling the robot's kernels, once on this machine", time.monotonic()
    say(console, f"{what}: about {_rounded(expected_seconds(sets))} s")
    columns = TextColumn("compiling"), BarColumn(), TaskProgressColumn()
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("compiling", total=1.0)
        good = ensure_warm(sets, lambda share: bar.update(task, completed=share))
    if not good:
        raise UserError("the robot's kernels could not be compiled: see above")
    say(console, f"{what} ... {time.monotonic() - began:.1f} s")


def _rounded(seconds: float) -> int:
    """To five seconds, and never nothing."""
    return max(5, 5 * round(seconds / 5.0))


@contextmanager
def ended_by_signals() -> Iterator[threading.Event]:
    """An event that SIGINT, SIGTERM and SIGHUP set."""
    stop = threading.Event()
    with signals_call(lambda _: stop.set()):
        yield stop


@contextmanager
def signals_call(act: Callable[[int], None]) -> Iterator[None]:
    """What SIGINT, SIGTERM and SIGHUP do, each time that one of them, whose number it is given,
    comes."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, lambda number, _: act(number)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            with suppress(TypeError):  # a handler not set by Python
                signal.signal(number, handler)


@contextmanager
def not_ended_by_programs() -> Iterator[None]:
    """Let nothing but Ctrl-C and SIGKILL end this process early; for what takes seconds."""
    before = [signal.signal(each, signal.SIG_IGN) for each in (signal.SIGTERM, signal.SIGHUP)]
    try:
        yield
    finally:
        for number, handler in zip((signal.SIGTERM, signal.SIGHUP), before, strict=True):
            with suppress(TypeError):  # a handler not set by Python
                signal.signal(number, handler)
