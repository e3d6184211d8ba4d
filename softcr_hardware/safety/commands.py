"""Checks of command packets: which of them are followed, and what is wrong with the others.

A controller limits its commands itself and plans over the delay that it knows of. Whoever sends
others is broken or is no controller: what cannot be a command is refused, and refused commands are
silence, which holds and then vents; what can be one is followed within the limits, and told.
"""

import math
from collections import Counter, deque

import numpy as np

from softcr_hardware.safety.settings import SafetySettings
from softcr_models.robots.robot import PressureLimits
from softcr_runtime.blocks.command_swings import SWINGS, SwingWatch

_REMEMBERED = 1.0
"""What was wrong with a command is told for so long, and rates are counted over it [s]."""
_AHEAD = 0.1  # a stamp may be so far ahead of the present, for clocks differ [s]
_SLOW = 0.85  # of the stated rate
_FEWEST = 10  # commands that make a rate


class CommandJudge:
    """Follows packets of m finite pressures each that are young and not far beyond the limits.

    Attributes:
        refused: packets that were not followed, by reason.
    """

    def __init__(
        self, settings: SafetySettings, limits: PressureLimits, chambers: int, period: float
    ):
        """Nothing heard yet.

        Args:
            settings: what is late, too old, frozen.
            limits: of the pressures; as far again beyond either is no pressure of this robot.
            chambers: m.
            period: between commands [s].
        """
        self.refused: Counter[str] = Counter()
        self._settings, self._limits, self._chambers = settings, limits, chambers
        self._slowest = _SLOW / period
        self._times: deque[float] = deque()
        self._told: dict[str, float] = {}  # what was wrong last, and when
        self._watch = SwingWatch(np.full(chambers, limits.maximum - limits.minimum))
        self._last = np.full(chambers, math.nan)
        self._same_since, self._filling = 0.0, False

    def follows(self, received: float, pressures: np.ndarray, age: float) -> bool:
        """Whether a packet is to be followed.

        Args:
            received: when it came [s].
            pressures: what it asks for, hopefully (N, m) [Pa].
            age: by its stamp, when it came [s].
        """
        reason = self._reason(pressures, age)
        if reason:
            self.refuse(reason, received)
            return False
        if self._watch.swings(received, pressures[0]):
            self.refuse(SWINGS, received)
            return False
        if age > self._settings.command_late:
            self._told["commands late"] = received
        if ((pressures < self._limits.minimum) | (pressures > self._limits.maximum)).any():
            self._told["commands beyond the limits"] = received
        first = pressures[0]
        if not np.array_equal(first, self._last):
            self._last, self._same_since = first, received
            self._filling = bool((first > self._limits.minimum).any())
        self._times.append(received)
        while self._times[0] < received - _REMEMBERED:
            self._times.popleft()
        return True

    def refuse(self, reason: str, received: float) -> None:
        """Count a packet that came at a time [s] and is not followed."""
        self.refused[reason] += 1
        self._told["commands refused"] = received

    def use(self, settings: SafetySettings) -> None:
        """Other numbers."""
        self._settings = settings

    def impaired(self, now: float) -> list[str]:
        """What is wrong with the commands of the last second."""
        told = [what for what, moment in self._told.items() if now - moment < _REMEMBERED]
        if self._rate() < self._slowest:
            told.append("commands slow")
        if self._frozen():
            told.append("commands frozen")
        return told

    def _reason(self, pressures: np.ndarray, age: float) -> str:
        if pressures.shape[1:] != (self._chambers,) or not np.isfinite(pressures).all():
            return "not a finite pressure for each chamber"
        low, high = self._limits.minimum, self._limits.maximum
        if (pressures < 2 * low - high).any() or (pressures > 2 * high - low).any():
            return "far beyond the limits"
        if age < -_AHEAD:
            return "stamped ahead of time"
        return "" if age <= self._settings.command_oldest else "too old"

    def _rate(self) -> float:
        if len(self._times) < _FEWEST:
            return math.inf
        return (len(self._times) - 1) / max(self._times[-1] - self._times[0], 1e-9)

    def _frozen(self) -> bool:
        """A controller's answers to a camera's noise differ; only empty chambers stay so."""
        lasting = self._settings.command_frozen
        return self._filling and 0.0 < lasting < self._times[-1] - self._same_since
