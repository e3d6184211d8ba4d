"""Real-time scheduling and memory of a process, where the system permits it."""

import ctypes
import os
import resource
from contextlib import suppress
from pathlib import Path

_CURRENT, _FUTURE, _ON_FAULT = 1, 2, 4  # of mlockall(2)
_LOW = 5  # of ordinary priorities: a third of what a process of nice 0 gets
_claims: dict[int, int] = {}  # of this process, whose threads wait for each other


def claim_realtime(claimant: object, priority: int) -> str:
    """Schedule this process by the highest priority that is claimed in it.

    Args:
        claimant: who claims; a later claim of the same one takes the place of the last.
        priority: as in `schedule_realtime`; 0: no longer any.

    Returns:
        As `schedule_realtime`.
    """
    _claims.pop(id(claimant), None)
    if priority:
        _claims[id(claimant)] = priority
    return schedule_realtime(max(_claims.values(), default=0))


def schedule_realtime(priority: int) -> str:
    """Give every thread of this process a fixed priority (SCHED_FIFO); later threads inherit it.

    On cores shared by a chain of processes the ordinary scheduler lets a woken thread wait for the
    end of another's slice, milliseconds each time; with priorities along the chain it runs at once.

    Args:
        priority: 1 (lowest) to 99; 0 for the ordinary scheduler.

    Returns:
        Why it could not be done; empty if it was.
    """
    policy = os.SCHED_FIFO if priority else os.SCHED_OTHER
    try:
        for thread in Path("/proc/self/task").iterdir():
            with suppress(ProcessLookupError):  # ended meanwhile
                os.sched_setscheduler(int(thread.name), policy, os.sched_param(priority))
    except PermissionError:
        return f"priority {priority} needs root, or rtprio in /etc/security/limits.conf"
    except OSError as error:
        return str(error)
    return ""


def give_way() -> None:
    """Let every other process of this machine go first: a low ordinary priority (nice 5) for
    every thread of this process, later ones inherit it, and for its session, within which alone the
    scheduler of a desktop compares those of threads."""
    for thread in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # ended meanwhile
            os.setpriority(os.PRIO_PROCESS, int(thread.name), _LOW)
    with suppress(OSError):  # not of this kernel
        Path("/proc/self/autogroup").write_text(str(_LOW))


def lock_memory() -> str:
    """Keep in memory what this process touches, now and later: a page that was swapped out, or
    written back to its file, costs a cycle milliseconds.

    Returns:
        Why it could not be done; empty if it was.
    """
    most, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    # with a limit, the first allocation beyond it would fail
    if most != resource.RLIM_INFINITY and os.geteuid() != 0:
        return "memory is not locked: needs root, or memlock unlimited in /etc/security/limits.conf"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_CURRENT | _FUTURE | _ON_FAULT) == 0:
        return ""
    return f"memory is not locked: {os.strerror(ctypes.get_errno())}"
