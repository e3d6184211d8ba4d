"""Where tips end beside their prediction, learned: offset-free model-predictive control."""

from dataclasses import dataclass

import numpy as np

from softcr_control.costs.rollout import tips_of
from softcr_models.model import Model

EVERY = 3
"""Ticks from one prediction that is begun to the next: a third of the work, and as good, because
an offset that is worth learning changes slowly."""


@dataclass(frozen=True, eq=False)
class Moment:
    """What was known at a tick.

    Attributes:
        stamp: [s].
        state: (nx,) estimated.
        felt: (m,) what the model feels of its inputs [their unit].
        parameters: (P,) of the model.
    """

    stamp: float
    state: np.ndarray
    felt: np.ndarray
    parameters: np.ndarray


class TipOffsets:
    """One offset for every number of ticks ahead: added to predictions, they are free of the
    model's steady errors.

    Args:
        model: that predicts.
        period: of a tick [s].
        ticks: the longest that is predicted ahead.
        gain: of the low-pass, 0 to 1 in a tick; 0: nothing is learned.
    """

    def __init__(self, model: Model, period: float, ticks: int, gain: float) -> None:
        self._model, self._period, self._ticks = model, period, ticks
        self._gain = 1.0 - (1.0 - gain) ** EVERY  # each offset is looked at every so many ticks
        self.reset()

    def reset(self) -> None:
        """Nothing is learned."""
        self._past: Moment | None = None  # a tick ago
        # [m] after 1, 2, ... ticks; beyond, the last is taken
        self._offsets = np.zeros((self._ticks, 3))
        self._begin_anew()

    def _begin_anew(self) -> None:
        """No prediction is under way."""
        self._begun = np.empty((0, self._model.state.size))  # states now of those under way
        self._ages = np.zeros(0, int)  # ticks since they were begun
        self._until_next = 0  # ticks

    @property
    def active(self) -> bool:
        """Whether anything is learned."""
        return self._gain > 0.0

    def ahead(self, delay: int, count: int) -> np.ndarray:
        """(count, 3) [m] offsets after delay + 1, delay + 2, ... ticks."""
        return self._offsets[np.minimum(np.arange(delay, delay + count), self._ticks - 1)]

    def learn(self, present: Moment) -> None:
        """Where the tip is beside where the model, begun some ticks ago, puts it.

        All predictions under way move on by one tick in one batch, under the inputs that were read
        meanwhile, so that only the model is judged.
        """
        before, self._past = self._past, present
        if before is None:
            return
        if abs(present.stamp - before.stamp - self._period) > 0.5 * self._period:
            self._begin_anew()  # ticks are missing
            return
        self._begin_and_end(before.state)
        count = len(self._begun)
        told = np.tile(present.parameters, (count + 1, 1))
        begin, end = (np.tile(tick.felt, (count, 1)) for tick in (before, present))
        self._begun = self._model.step(self._begun, begin, end, told[1:], self._period)
        self._ages += 1
        tips = tips_of(self._model, np.vstack((present.state, self._begun)), told)[:, :, 3]
        aside = tips[0] - tips[1:]
        if np.isfinite(aside).all():
            rows = self._ages - 1
            self._offsets[rows] += self._gain * (aside - self._offsets[rows])

    def _begin_and_end(self, state: np.ndarray) -> None:
        """Predictions that are over are dropped; one is begun from (nx,) if it is time."""
        goes_on = self._ages < self._ticks
        self._begun, self._ages = self._begun[goes_on], self._ages[goes_on]
        if self._until_next == 0:
            self._begun = np.vstack((state, self._begun))
            self._ages = np.concatenate(([0], self._ages))
            self._until_next = EVERY
        self._until_next -= 1
