"""How far a run is, and whether it is over: by the wall clock, or by the plant's word."""

import time
from collections.abc import Callable

from softcr_runtime.blocks.system import System
from softcr_runtime.ros.executor.heard import Heard
from softcr_runtime.ros.executor.run_record import RunFailure

STALL_TIMEOUT = 60.0
"""Without progress of simulated time, while no node computes [s]: nobody will ever answer."""

_REFUSED_TIMEOUT = 5.0  # likewise, where a node has refused an answer of its class [s]
_LONGEST_LOOK = 1.0  # what counts between two looks: this process was suspended in the rest [s]


class RunProgress:
    """How far a run is."""

    def __init__(
        self,
        heard: Heard,
        system: System,
        tell: Callable[[float], None],
        computes: Callable[[], bool],
    ) -> None:
        """
        Args:
            heard: of the system's nodes.
            system: says how long it runs, on which clock.
            tell: told the time in the run [s].
            computes: whether one of the nodes' processes does, or is suspended.
        """
        self._heard, self._system, self._tell, self._computes = heard, system, tell, computes
        self._began = self._looked = time.monotonic()
        self._seen = self._stalled = 0.0

    def look(self) -> bool:
        """Whether it is over.

        Raises:
            RunFailure: the valves vented, simulated time stands still though no node computes, or
                a node goes on without usable answers.
        """
        now, system = time.monotonic(), self._system
        moment = self._heard.simulated_time if system.simulated_time else now - self._began
        passed, self._looked = min(now - self._looked, _LONGEST_LOOK), now
        if moment > self._seen:
            self._seen, self._stalled = moment, 0.0
        elif not self._computes():
            self._stalled += passed
        if self._heard.disarmed:
            raise RunFailure(f"the valves vented: {self._heard.vented}")
        if self._heard.unusable:
            node, line = next(iter(self._heard.unusable.items()))
            raise RunFailure(f"node {node} gives no usable answer: {line}")
        refused = next(iter(self._heard.refused.items()), None)
        if self._stalled > (STALL_TIMEOUT if refused is None else _REFUSED_TIMEOUT):
            why = "a node does not answer" if refused is None else f"{refused[0]}: {refused[1]}"
            raise RunFailure(f"simulated time stands still at {self._seen:.3f} s: {why}")
        self._tell(min(self._seen, system.duration))
        # In simulated time only the plant knows when its last cycle is complete: it says so.
        timed = not system.simulated_time and self._seen >= system.duration
        return self._heard.finished or timed
