"""Ending with the process that started this one, however that ended (prctl(2), Linux)."""

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def end_with(parent: int, number: signal.Signals = signal.SIGTERM) -> None:
    """Let the kernel send this process a signal when its parent dies; ends it where that is dead.

    The kernel takes the end of the thread that started this process for the parent's death.

    Args:
        parent: id of the process that started this one.
        number: the signal.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it died before the kernel was told
        os._exit(1)
