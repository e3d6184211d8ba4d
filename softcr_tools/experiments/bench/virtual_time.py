"""Time that passes from event to event: equal events give equal runs, however fast the machine."""

import heapq
import itertools
from collections.abc import Callable

Event = Callable[[], None]


class VirtualTime:
    """Events in the order of their times; of one time, in the order they were asked for.

    Attributes:
        now: [s].
    """

    def __init__(self) -> None:
        """At 0, with nothing to come."""
        self.now = 0.0
        self._coming: list[tuple[float, int, Event]] = []
        self._number = itertools.count()

    def at(self, moment: float, event: Event) -> None:
        """Let an event happen at a moment [s]; one that has passed is now."""
        heapq.heappush(self._coming, (max(moment, self.now), next(self._number), event))

    def every(self, period: float, first: float, event: Event) -> None:
        """Let an event happen at `first` and every `period` [s] from then on, for ever."""

        def happen(count: int) -> None:
            self.at(first + (count + 1) * period, lambda: happen(count + 1))
            event()

        self.at(first, lambda: happen(0))

    def pass_until(self, moment: float, come: Callable[[], bool]) -> None:
        """Let time pass until `come` is true, or the moment [s] has come."""
        while not come():
            if not self._coming or self._coming[0][0] > moment:
                self.now = max(self.now, moment)
                return
            self.now, _, event = heapq.heappop(self._coming)
            event()
