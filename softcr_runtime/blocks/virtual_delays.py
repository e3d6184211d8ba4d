"""When something that a part computes is done, and which messages of a wire are missing."""

import math

import numpy as np

from softcr_runtime.blocks.system import Computing, Missing


class Processor:
    """What a part computes with on virtual time.

    Attributes:
        stops: (begin, end) of each time during which it stands still, in order [ns].
    """

    def __init__(self, computing: Computing) -> None:
        """At the beginning of a run."""
        self._shortest, self._range = computing.shortest, 0.0
        if computing.longest is not None:
            self._range = computing.longest - computing.shortest
        self._random = np.random.default_rng(computing.seed)
        self.stops = [
            (round(1e9 * each.at), round(1e9 * (each.at + each.seconds)))
            for each in sorted(computing.stops, key=lambda stop: stop.at)
        ]

    def done(self, now: int) -> int:
        """When what begins now is done [ns]; draws how long it takes."""
        left = self._shortest
        if self._range:
            left += self._range * self._random.random()
        end = now + round(1e9 * left)
        for begin, over in self.stops:
            if now < over and begin < end:
                end += over - max(begin, now)
                now = over
        return end


class Gaps:
    """Which messages of one wire are missing; asked about each of them, in order."""

    def __init__(self, missing: tuple[Missing, ...]) -> None:
        """None of them was sent yet."""
        self._missing = missing
        self._burst = [-1] * len(missing)  # the last that has begun
        self._left = [0] * len(missing)  # of it

    def take(self, sent: int) -> bool:
        """Whether the message that was sent at a time [ns] is missing."""
        found = False
        for k, each in enumerate(self._missing):
            since = 1e-9 * sent - each.at + _ROUNDING
            if since >= 0.0:
                burst = math.floor(since / each.every) if each.every else 0
                if burst > self._burst[k]:
                    self._burst[k], self._left[k] = burst, each.count
            if self._left[k]:
                self._left[k] -= 1
                found = True
        return found


_ROUNDING = 5e-10  # half a nanosecond [s]
