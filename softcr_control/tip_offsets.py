"""Where tips end beside their prediction, learned: offset-free model-predictive control."""

from dataclasses import dataclass

import numpy as np

from softcr_control.costs.rollout import tips_of
from softcr_models.model import Model


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
        gain: of the low-pass, 0 to 1; 0: nothing is learned.
    """

    def __init__(self, model: Model, period: float, ticks: int, gain: float) -> None:
        self._model, self._period, self._ticks, self._gain = model, period, ticks, gain
        self.reset()

    def reset(self) -> None:
        """Nothing is learned."""
        self._past: tuple[Moment, np.ndarray] | None = None  # a tick ago, with its tip (3,) [m]
        # 1, 2, ... ticks ago: states now
        self._begun = np.empty((0, self._model.state.size))
        # [m] after 1, 2, ... ticks; beyond, the last is taken
        self._offsets = np.zeros((self._ticks, 3))

    @property
    def active(self) -> bool:
        """Whether anything is learned."""
        return self._gain > 0.0

    def ahead(self, delay: int, count: int) -> np.ndarray:
        """(count, 3) [m] offsets after delay + 1, delay + 2, ... ticks."""
        return self._offsets[np.minimum(np.arange(delay, delay + count), self._ticks - 1)]

    def learn(self, present: Moment) -> None:
        """Where the tip is beside where the model, begun 1, 2, ... ticks ago, puts it.

        All that were begun move on by one tick in one batch, under the inputs that were read
        meanwhile, so that only the model is judged.
        """
        tip = tips_of(self._model, present.state[None], present.parameters)[0, :, 3]
        past, self._past = self._past, (present, tip)
        if past is None:
            return
        before = past[0]
        if abs(present.stamp - before.stamp - self._period) > 0.5 * self._period:
            self._begun = self._begun[:0]  # ticks are missing
            return
        begun = np.vstack((before.state, self._begun[: self._ticks - 1]))
        count = len(begun)
        begin, end = (np.tile(tick.felt, (count, 1)) for tick in (before, present))
        told = np.tile(present.parameters, (count, 1))
        self._begun = self._model.step(begun, begin, end, told, self._period)
        aside = tip - tips_of(self._model, self._begun, told)[:, :, 3]
        if np.isfinite(aside).all():
            learned = self._offsets[:count]
            learned += self._gain * (aside - learned)
