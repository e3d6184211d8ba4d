"""How far a run is, and whether it is over: by the wall clock, or by the plant's word."""

import time
from collections.abc import Callable

from softcr_runtime.ros_executor.heard import Heard
from softcr_runtime.ros_executor.run_record import RunFailure
from softcr_runtime.system import System

STALL_TIMEOUT = 60.0  # without progress of simulated time [s]


class RunProgress:
    """How far a run is."""

    def __init__(self, heard: Heard, system: System, tell: Callable[[float], None]) -> None:
        """
        Args:
            heard: of the system's nodes.
            system: says how long it runs, on which clock.
            tell: told the time in the run [s].
        """
        self._heard, self._system, self._tell = heard, system, tell
        self._began = self._progressed = time.monotonic()
        self._seen = 0.0

    def look(self) -> bool:
        """Whether it is over.

        Raises:
            RunFailure: the valves vented, or time stands still.
        """
        now, system = time.monotonic(), self._system
        moment = self._heard.simulated_time if system.simulated_time else now - self._began
        if moment > self._seen:
            self._seen, self._progressed = moment, now
        if self._heard.disarmed:
            raise RunFailure(f"the valves vented: {self._heard.vented}")
        if now - self._progressed > STALL_TIMEOUT:
            raise RunFailure(f"simulated time stands still at {self._seen:.3f} s")
        self._tell(min(self._seen, system.duration))
        # In simulated time only the plant knows when its last cycle is complete: it says so.
        timed = not system.simulated_time and self._seen >= system.duration
        return self._heard.finished or timed

    def ends_within(self, time_left: float) -> bool:
        """Whether it ends within a time [s], where its end is known."""
        return not self._system.simulated_time and (self._seen + time_left >= self._system.duration)
