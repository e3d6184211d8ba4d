"""What of the cores of this machine can be had: quotas and other programs count."""

import hashlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from softcr_runtime.blocks.virtual import CORES
from softcr_runtime.ros.realtime import schedule_realtime

PRIORITY = 1
"""Of threads that measure, where the system permits it: nodes have it, too."""
_LOOK = 0.4  # at all cores [s]
_GLANCE = 0.1  # at one of them [s]
_OWN = 0.9  # share of a core that nobody else uses
_TRIED = 8  # cores at most
_BUFFER = bytes(1 << 16)


def cores_that_can_be_had() -> float:
    """How many cores this process gets, in the nodes' kind of scheduling; quotas count."""
    got = [0.0] * CORES

    def compute(core: int) -> None:
        got[core] = _share(_LOOK)

    schedule_realtime(PRIORITY)  # where the system permits it
    try:
        threads = [threading.Thread(target=compute, args=(core,)) for core in range(CORES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        schedule_realtime(0)
    return min(sum(got), float(CORES))


@contextmanager
def on_one_core() -> Iterator[None]:
    """Processes that are started inside keep to one core, if there is one that nobody else uses.

    Threads of one interpreter compute one after the other; on several cores they wake each other
    up across them. Measured with a loop of 50 Hz: 0.66 of a core in place of 0.82.
    """
    before = os.sched_getaffinity(0)
    try:
        for core in sorted(before)[:_TRIED]:
            os.sched_setaffinity(0, {core})
            if _share(_GLANCE) > _OWN:
                break
        else:
            os.sched_setaffinity(0, before)
        yield
    finally:
        os.sched_setaffinity(0, before)


def _share(seconds: float) -> float:
    """Of a core that the calling thread gets for some time."""
    begin, end = time.thread_time(), time.perf_counter() + seconds
    while time.perf_counter() < end:
        hashlib.sha256(_BUFFER)  # lets other threads compute meanwhile
    return (time.thread_time() - begin) / seconds
