"""A force at the tip, looked for only while the measurements say that there is one.

A rod at rest does not tell a force at its tip from a softer, heavier or differently driven rod, so
force and parameters are never estimated together. The force is held at zero until the innovations
of the filter shift, by Crosier's multivariate CUSUM (Technometrics 30, 1988, p. 291). From then on
the parameters stand still where they were before the shift, and the force is a random walk. When it
cannot be told from zero any longer, it is held at zero again and the parameters go on.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from softcr_estimation.filters.gaussian import chi_square_quantile
from softcr_estimation.model_estimator import ModelEstimate, ModelEstimator, Numbers
from softcr_models.rod_model.tip_force import TIP_FORCE, known_tip_force

ALLOWANCE = 1.5
"""Shift of the innovations per sample that is put up with, as that of a model's errors [-]."""

SETTLING = 3.0
"""After its start a filter finds its parameters; its innovations tell nothing of forces [s]."""

QUIET = 1.0
"""A force that was not known for so long has vanished [s]."""

PRIOR = 0.5
"""Standard deviation of each component of a force that has just been noticed [N]."""

_LARGEST = 0.9999  # quantile that an innovation counts for at most: one outlier is no force


class ShiftTest:
    """Crosier's CUSUM of vectors: s = (s + v) (1 - k / C) with C = |s + v|, and 0 where C <= k.

    Attributes:
        magnitude: of the sum; 0 at the start [-].
    """

    def __init__(self, threshold: float) -> None:
        """A test that says "shifted" above a threshold of the sum's magnitude [-]."""
        self.threshold = threshold
        self.restart()

    def restart(self) -> None:
        """Nothing has been added."""
        self._sums: dict[str, np.ndarray] = {}
        self.magnitude = 0.0

    @property
    def shifted(self) -> bool:
        """Whether the mean of what was added is not zero."""
        return self.magnitude > self.threshold

    def add(self, innovations: Mapping[str, np.ndarray]) -> None:
        """Add whitened innovations of one stamp, by output; what was not measured stays."""
        for name, innovation in innovations.items():
            before = self._sums.get(name, np.zeros(innovation.size))
            self._sums[name] = before + _limited(innovation)
        length = math.sqrt(sum(float(each @ each) for each in self._sums.values()))
        self.magnitude = max(0.0, length - ALLOWANCE)
        share = self.magnitude / length if length > 0.0 else 0.0
        self._sums = {name: share * each for name, each in self._sums.items()}


def _limited(innovation: np.ndarray) -> np.ndarray:
    """The same direction, no longer than an outlier counts."""
    longest = _longest(innovation.size)
    length = float(np.linalg.norm(innovation))
    return innovation if length <= longest else innovation * (longest / length)


@cache
def _longest(size: int) -> float:
    return math.sqrt(chi_square_quantile(_LARGEST, size))


class TipForceSearch:
    """Says to a filter what it shall estimate: its parameters, or the force at the tip.

    Attributes:
        found: how often a force was looked for since the start.
    """

    def __init__(self, estimator: ModelEstimator, threshold: float) -> None:
        """
        Args:
            estimator: over a model with `TIP_FORCE` among its estimated parameters.
            threshold: of the innovations' sum [-], see `ShiftTest`.
        """
        self._estimator = estimator
        self._others = [name for name in estimator.estimated if name not in TIP_FORCE]
        self._test = ShiftTest(threshold)
        self._prior = PRIOR * np.eye(len(TIP_FORCE))
        self.found = 0

    def begin(self, stamp: float) -> None:
        """The estimator has just been started, at a stamp [s]."""
        self._test.restart()
        self._searches_from = stamp + SETTLING
        self._known_at = stamp
        self._estimator.hold(TIP_FORCE, np.zeros(len(TIP_FORCE)))
        self._before: Numbers | None = None  # the parameters before a shift
        self._acting = False
        self.found = 0

    @property
    def threshold(self) -> float:
        """[-]"""
        return self._test.threshold

    @threshold.setter
    def threshold(self, value: float) -> None:
        self._test.threshold = value

    def take(self, estimate: ModelEstimate) -> None:
        """Go on after an update of the estimator, whose estimate this is."""
        if estimate.stamp < self._searches_from:
            return
        if self._acting:
            self._let_go(estimate)
            return
        self._test.add(estimate.innovations)
        if self._test.shifted:
            self._look(estimate.stamp)
        elif self._test.magnitude < 0.5 * self._test.threshold or self._before is None:
            self._before = self._estimator.numbers(self._others)

    def _look(self, stamp: float) -> None:
        self._before = self._before or self._estimator.numbers(self._others)
        self._acting, self._known_at = True, stamp
        self._estimator.hold(self._others, self._before.mean)
        self._estimator.free(TIP_FORCE, Numbers(np.zeros(len(TIP_FORCE)), self._prior))
        self.found += 1

    def _let_go(self, estimate: ModelEstimate) -> None:
        if known_tip_force(estimate.parameters, estimate.parameters_std) is not None:
            self._known_at = estimate.stamp
        elif estimate.stamp - self._known_at > QUIET:
            assert self._before is not None
            self._estimator.hold(TIP_FORCE, np.zeros(len(TIP_FORCE)))
            self._estimator.free(self._others, self._before)
            self._acting, self._before = False, None
            self._test.restart()


def estimates_tip_force(names: Sequence[str]) -> bool:
    """Whether a force at the tip is among some parameters."""
    return set(TIP_FORCE) <= set(names)
