"""A device's clock on ours: when was it here, when it was that moment there? No clock inside.

Every message says when it was sent by the device's clock, or tells a count that is one; we know
when it came. The difference is offset + drift * time + delay, and the delay is never negative: the
line that lies under all of the differences, and as high as it can, is the clock (Moon, Skelly,
Towsley, "Estimation and removal of clock skew from network delay measurements", INFOCOM 1999). It
is the edge of their lower convex hull below their mean. The shortest delay itself cannot be seen
one way and stays in the offset.
"""

from collections import deque
from itertools import pairwise
from typing import TypeVar

import numpy as np

_BINS = 60
_ENOUGH = 5.0  # [s] before which a drift would be noise
_STRAY = 0.5  # [s] from the line: no delay, another clock, or a queue that is let go
_SETTLED = 0.5  # [s] after which another clock is believed


Moment = TypeVar("Moment", float, np.ndarray)


class ServerClock:
    """Offset and drift of a server's clock.

    Attributes:
        epochs: clocks there have been: one more whenever the server started again.
        offset: ours - theirs at the newest message [s].
        drift: by how much ours runs faster than theirs.
        settled: whether that is fitted and not too large.
    """

    def __init__(self, largest_drift: float = 3e-4, remembered: float = 30.0):
        """No message yet.

        Args:
            largest_drift: of two quartz clocks.
            remembered: how far back the shortest delays are known [s].
        """
        self._largest_drift = largest_drift
        self._bin = remembered / _BINS  # [s] of which the shortest delay is kept
        self.epochs = 0
        self.offset = 0.0
        self.forget()

    def forget(self) -> None:
        """Another clock comes."""
        self._bins: deque[tuple[int, float, float]] = deque(
            maxlen=_BINS
        )  # index, theirs, ours - t.
        self._strays: list[tuple[float, float]] = []  # received, ours - theirs
        self._anchor = self._height = self.drift = 0.0
        self.settled = False

    def see(self, sent: float, received: float) -> bool:
        """A message: sent on their clock, received on ours [s].

        Returns:
            Whether it belongs to the clock there is; otherwise do not use its stamps.
        """
        difference = received - sent
        if self._bins and abs(difference - self._line(sent)) > _STRAY:
            self._stray(sent, received)
            return False
        self._strays.clear()
        if not self._bins:
            self.epochs += 1
        self._add(sent, difference)
        self.offset = self._line(sent)
        return True

    def local(self, moment: Moment) -> Moment:
        """A moment of their clock on ours [s], or an array of them."""
        return moment + self._line(moment)

    def _line(self, moment: Moment) -> Moment:
        return self._height + self.drift * (moment - self._anchor)

    def _stray(self, sent: float, received: float) -> None:
        """Another clock, if the strays agree with each other for a while."""
        difference = received - sent
        if self._strays and abs(difference - self._strays[0][1]) > _STRAY:
            self._strays.clear()
        self._strays.append((received, difference))
        if received - self._strays[0][0] >= _SETTLED:
            self.forget()

    def _add(self, sent: float, difference: float) -> None:
        index = int(sent // self._bin)
        known = next((i for i, entry in enumerate(self._bins) if entry[0] == index), None)
        if known is None:
            self._bins.append((index, sent, difference))
        elif difference < self._bins[known][2]:
            self._bins[known] = (index, sent, difference)
        else:
            return
        self._fit()

    def _fit(self) -> None:
        points = np.array([entry[1:] for entry in self._bins])
        self._anchor = float(points[-1, 0])
        times, differences = points[:, 0] - self._anchor, points[:, 1]
        drift = hull_slope(times, differences) if np.ptp(times) >= _ENOUGH else 0.0
        self.drift = float(np.clip(drift, -self._largest_drift, self._largest_drift))
        self.settled = bool(np.ptp(times) >= _ENOUGH and self.drift == drift)
        self._height = float((differences - self.drift * times).min())


def hull_slope(x: np.ndarray, y: np.ndarray) -> float:
    """Slope of the highest line under points (n,): the edge of their lower hull at mean x."""
    order = np.argsort(x)
    hull: list[tuple[float, float]] = []
    for point in zip(x[order].tolist(), y[order].tolist(), strict=True):
        while len(hull) >= 2 and _turns_right(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    middle = float(np.mean(x))
    for (x0, y0), (x1, y1) in pairwise(hull):
        if x0 <= middle <= x1 and x1 > x0:
            return (y1 - y0) / (x1 - x0)
    return 0.0


def _turns_right(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) <= (b[1] - a[1]) * (c[0] - a[0])
