"""Readings of pressures without most of their noise, from the commands that moved them.

Between two ticks a chamber follows p+ = a p + b u, the lag (32) of Licher et al. (2025), under the
command u that was held meanwhile. A scalar Kalman filter per chamber takes this for its model and
the reading y for its measurement. Its noises follow from the innovations of the readings alone,

    e = y - a y_before - b u,    R = max(0, -E[e e_before] / a),    Q = E[e^2] - (1 + a^2) R,

because noise of the readings makes neighbouring e correlate by -a R (Mehra, IEEE Transactions on
Automatic Control 15, 1970, p. 175). Where the lag is not the file's, they correlate the other way:
R is then 0, and readings stay as they are.
"""

import itertools
import math
from collections import deque

import numpy as np

from softcr_models.chain.pressure import PressureLag

DELAYS = np.arange(0.0, 2.1, 0.5)
"""Ticks from when a command is played until it acts, that are tried. Half of one is the mean of two
neighbouring ticks."""

SILENCE = 5.0
"""Commands that are older than this have stopped [periods]."""

_KEPT = 8  # of commands [periods]
_MEMORY = 100.0  # of the means over innovations [ticks]
_FEWEST = 20  # ticks before which nothing is said of the noise
_BETTER = 3.0  # in logarithmic likelihood another delay has to be [-]
_LEAST = 5.0  # standard deviation that the lag's own noise has at least [Pa]
_LEAST_SHARE = 0.02  # and its variance, of that of the readings [-]
_SAME = 0.25  # two stamps are a period apart to this part of one


class PressureFilter:
    """Filters the readings of m chambers, tick by tick.

        pressures = PressureFilter(lag, period)
        pressures.hear(stamp, command)  # what was played from a stamp on
        filtered = pressures.filtered(reading, stamp)

    All chambers share one lag and their sensors one noise. When a command acts is not told but
    found: that delay counts whose commands explain the readings best.

    Attributes:
        delay: ticks from when a command is played until it acts [-].
        noise: standard deviation of the readings' noise, as found [Pa]; 0: they are left alone.
        follows: whether commands were heard for the last reading; otherwise it stayed as it was.
        unfiltered: readings without commands since the reset, but for those before the first one.
    """

    def __init__(self, lag: PressureLag, period: float) -> None:
        """
        Args:
            lag: of the robot's file.
            period: between readings [s].
        """
        self._period = period
        self._delays = period * DELAYS[:, None]  # [s]
        self._decay = math.exp(-lag.pole * period)
        self._gain = lag.gain / lag.pole * (1.0 - self._decay)
        self.reset()

    def reset(self) -> None:
        """Nothing is known."""
        self._commands: deque[tuple[float, np.ndarray]] = deque()
        self._ticks, self._weight = 0, 0.0
        self._squares, self._products = np.zeros(DELAYS.size), np.zeros(DELAYS.size)
        self._place = 0
        self.noise, self._process = 0.0, _LEAST**2
        self.unfiltered = 0
        self.forget_state()

    def forget_state(self) -> None:
        """The next reading has nothing to do with the last one; what is known of noises stays."""
        self._last: tuple[float, np.ndarray] | None = None  # stamp [s], reading (m,)
        self._errors: np.ndarray | None = None  # (D, m) of the last tick [Pa]
        self._mean: np.ndarray | None = None  # (m,) [Pa]
        self._variance = 0.0  # of it [Pa^2]
        self.follows = False

    @property
    def delay(self) -> float:
        """Ticks from when a command is played until it acts [-]."""
        return float(DELAYS[self._place])

    def hear(self, stamp: float, command: np.ndarray) -> None:
        """A command (m,) [Pa] that is played from a stamp [s] on; one that is no newer than the
        last, or not finite, is passed over."""
        newer = not self._commands or stamp > self._commands[-1][0]
        if newer and np.isfinite(command).all():
            self._commands.append((stamp, np.array(command, float)))
            while self._commands[0][0] < stamp - _KEPT * self._period:
                self._commands.popleft()

    def filtered(self, reading: np.ndarray, stamp: float) -> np.ndarray:
        """(m,) pressures [Pa] at a reading (m,) [Pa] of a stamp [s]; the reading itself where its
        commands are missing, or a period was left out."""
        last, self._last = self._last, (stamp, reading)
        apart = math.inf if last is None else (stamp - last[0]) / self._period
        self.follows = bool(self._commands) and self._is_young(stamp)
        if last is None or not self.follows or abs(apart - 1.0) > _SAME or self._misses(last[0]):
            self.unfiltered += bool(self._commands) and not self.follows
            self._errors, self._mean = None, None
            return reading
        held = self._held(last[0])
        self._learn(reading - self._decay * last[1] - self._gain * held)
        noise = self.noise**2
        if self._mean is None:
            self._mean, self._variance = last[1], noise
        predicted = self._decay * self._mean + self._gain * held[self._place]
        variance = self._decay**2 * self._variance + self._process
        self._mean = reading - noise / (variance + noise) * (reading - predicted)
        self._variance = variance * noise / (variance + noise)
        return self._mean

    def _is_young(self, stamp: float) -> bool:
        return stamp - self._commands[-1][0] < (SILENCE + 0.5) * self._period

    def _misses(self, begin: float) -> bool:
        """Whether commands are missing that may act in the tick that begins at a stamp [s]."""
        stamps = [stamp for stamp, _ in self._commands]
        first = begin - self._delays[-1, 0]
        return any(
            later - stamp > (1.0 + _SAME) * self._period
            for stamp, later in itertools.pairwise(stamps)
            if later > first
        )

    def _held(self, begin: float) -> np.ndarray:
        """(D, m) the mean command of the tick that begins at a stamp [s], for each delay."""
        later = [stamp for stamp, _ in self._commands][1:]
        commands = np.array([command for _, command in self._commands])
        # each command is played from its stamp until the next one's; the first one before it, too
        played = np.array(((-math.inf, *later), (*later, math.inf)))
        edges = begin - self._delays
        shares = np.minimum(edges + self._period, played[1]) - np.maximum(edges, played[0])
        return np.maximum(shares, 0.0, out=shares) @ commands / self._period

    def _learn(self, errors: np.ndarray) -> None:
        """Delay and noises from the innovations (D, m) of one more tick."""
        before, self._errors = self._errors, errors
        if before is None:
            return
        kept = 1.0 - 1.0 / _MEMORY
        self._ticks += 1
        self._weight = kept * self._weight + 1.0
        share = 1.0 / errors.shape[1]
        self._squares = kept * self._squares + share * np.einsum("dm,dm->d", errors, errors)
        self._products = kept * self._products + share * np.einsum("dm,dm->d", errors, before)
        best = int(self._squares.argmin())
        gained = 0.5 * (self._squares[self._place] - self._squares[best]) * errors.shape[1]
        if gained > _BETTER * self._squares[best] / self._weight:
            self._place = best
        if self._ticks < _FEWEST:
            return
        square = self._squares[self._place] / self._weight
        noise = max(0.0, -self._products[self._place] / self._weight / self._decay)
        self.noise = math.sqrt(noise)
        process = square - (1.0 + self._decay**2) * noise
        self._process = max(process, _LEAST**2 + _LEAST_SHARE * noise)
