"""The core of the fast cycle: one that is isolated for it, or that a rehearsal shares with nobody.

In a rehearsal the emulated terminals stay on it, too: a frame that wakes another core costs both of
them a third more time on a virtual machine.
"""

import os

CORE = "SOFTCR_VALVES_CORE"
"""Environment: number of the core; empty for any."""


def stay_on_fast_core() -> str:
    """Let the calling thread, and those that it starts, run on that core only, if one is named.

    Returns:
        Why it could not be done; empty if it was, or none is named.
    """
    named = os.environ.get(CORE, "")
    if not named:
        return ""
    try:
        os.sched_setaffinity(0, {int(named)})
    except (OSError, ValueError, OverflowError):
        return f"{CORE}={named}: no core of this machine that may be used"
    return ""
