"""Pressures by hand: when the page's sliders may command, and what they then say. Pure logic.

A browser page has no deadman's switch and may be slow without anybody seeing it. So the sliders
speak only while nobody else does and nothing is armed; when that changes they let go by themselves,
and must be switched on again by a person. Where another commands they are silent at once: the
chambers are the other's. Otherwise they say one last command of zero, then silence, which ends in a
vent by the valves' own rules.

On the bench the disarmed valves stay vented whatever is commanded: the sliders test the way there.
In simulation, where there are no valves, they move the rod.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from softcr_models.robots.kinds import ShownInput

HAND_RATE = 5e4  # the chambers follow a slider no faster than this [Pa/s]
HAND_TIME = 1.2  # that tendons take from slack to their largest tension, at least [s]
_ENDS = "low", "high"
FOREIGN_AGE = 1.0  # another's command keeps the sliders locked for this long [s]


class Surroundings(NamedTuple):
    """What the sliders depend on."""

    others: tuple[str, ...] = ()  # names of other nodes that offer pressure/command or /plan
    foreign_age: float = math.inf  # of the last command that was not ours [s]; infinite: never
    valves: bool = False  # whether anybody offers safety/state
    enabled: bool | None = None  # what safety/state says of the valves; None: not heard
    simulated_clock: bool = False  # whether anybody offers /clock
    page_open: bool = True  # whether the page that switched the sliders on is still there

    @property
    def taken(self) -> str:
        """Who else commands; empty if nobody does."""
        if self.others:
            return f"{', '.join(self.others)} commands the pressures"
        if not self.foreign_age >= FOREIGN_AGE:  # NaN counts as now
            return "another node commands the pressures"
        return ""

    @property
    def blocker(self) -> str:
        """Why the sliders are locked, in a line; empty if they are not."""
        unknown = self.valves and self.enabled is None
        reasons = {
            self.taken: bool(self.taken),
            "the valves are armed": self.enabled,
            "the valves have not said yet whether they are armed": unknown,
            "simulated time: a lock-step run or a replay is under way": self.simulated_clock,
            "the page that used them was closed": not self.page_open,
        }
        return next((reason for reason, holds in reasons.items() if holds), "")


class HandControl:
    """The sliders' side of pressure/command: whether they are `on`, the `blocker` that locks them,
    as of the last `update`, and their pressures and tensions, `wanted` (m,) [Pa, N]."""

    def __init__(self, inputs: Sequence[ShownInput]):
        """Off, all sliders at the limit next to zero."""
        self.on, self.blocker, self._last_word = False, "nothing is known yet", False
        self._low, self._high = (np.array([getattr(each, end) for each in inputs]) for end in _ENDS)
        is_chamber = np.array([each.quantity == "pressure" for each in inputs], bool)
        self._rate = np.where(is_chamber, HAND_RATE, (self._high - self._low) / HAND_TIME)
        self._rest = np.clip(np.zeros(len(inputs)), self._low, self._high)
        self.wanted, self._said = self._rest.copy(), self._rest.copy()

    def switch(self, on: bool) -> None:
        """A person switches the sliders on, which a blocker forbids, or off."""
        if on and not self.on and not self.blocker:
            self.on = True
            self._rewind()
        elif not on and self.on:
            self._let_go(with_last_word=True)

    def want(self, chamber: int, pressure: float) -> None:
        """A person moves a slider [Pa, N]; what is no number is not heard, the limits hold."""
        if self.on and math.isfinite(pressure):
            self.wanted[chamber] = np.clip(pressure, self._low[chamber], self._high[chamber])

    def update(self, surroundings: Surroundings, passed: float) -> np.ndarray | None:
        """(m,) pressures and tensions [Pa, N] to command now, or None for silence; `passed`: since
        the last call [s]."""
        self.blocker = surroundings.blocker
        if self.on and self.blocker:
            self._let_go(with_last_word=not surroundings.taken)
        if self._last_word:
            self._last_word = False
            return None if surroundings.taken else self._rest.copy()
        if not self.on:
            return None
        step = self._rate * max(passed, 0.0)
        self._said = self._said + np.clip(self.wanted - self._said, -step, step)
        return self._said.copy()

    def _let_go(self, with_last_word: bool) -> None:
        self.on, self._last_word = False, with_last_word
        self._rewind()

    def _rewind(self) -> None:
        self.wanted, self._said = self._rest.copy(), self._rest.copy()
