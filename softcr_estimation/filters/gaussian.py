"""What unscented and extended filter share: a square-root Gaussian, gate and repairs."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.special import gammaincinv

from softcr_estimation.filters.square_root import downdated, factor_of, factor_of_sum

Predict = Callable[[np.ndarray, Any, float], np.ndarray]
Measure = Callable[[np.ndarray], np.ndarray]

_NEARER = 0.05
"""Part of a point's deviation at which its function is tried again. A start of 0.5 state scales has
points at 4 to 7 of them, and a rod's step is sound at a few tenths [-]."""


def chi_square_quantile(probability: float, size: int) -> float:
    """What a chi-square number of `size` degrees of freedom does not exceed with a probability, as
    `scipy.stats` has it, whose import would take as long as all else of a filter's start."""
    return 2.0 * float(gammaincinv(size / 2, probability))


@dataclass(frozen=True)
class Moments:
    """A Gaussian sent through a function: covariance = rows^T rows - removed^T removed.

    Attributes:
        mean: (m,) mean of the images.
        rows: (r, m) deviations.
        removed: (k, m) deviations that count negative; k = 0 but for negative weights.
    """

    mean: np.ndarray
    rows: np.ndarray
    removed: np.ndarray

    @property
    def covariance(self) -> np.ndarray:
        """(m, m) covariance of the images."""
        return self.rows.T @ self.rows - self.removed.T @ self.removed


@dataclass(frozen=True)
class Correction:
    """What a measurement update did.

    Attributes:
        nis: normalised innovation squared, before any inflation [-].
        innovation: (nz,) whitened by its own covariance, before any inflation: standard normal
            where the model is right [-].
        difference: (nz,) what was measured minus what was expected [the measurement's unit].
        gated: whether the gate inflated the measurement's covariance.
        measured_covariance: (nz, nz) covariance, after the update, of the measured quantity without
            its noise.
    """

    nis: float
    innovation: np.ndarray
    difference: np.ndarray
    gated: bool
    measured_covariance: np.ndarray


class SquareRootFilter(ABC):
    """A nonlinear Kalman filter with additive noise whose covariance is P = R^T R, R triangular.

    Functions see batches only: `predict` and `measure` are called once per update with all points.

    Robustness:
        - a non-finite image of a point is replaced (`_completed`) and counted in `repairs`, and so
          is a prediction that lies farther away than anything of a state can;
        - a downdate that turns indefinite becomes an eigenvalue cut and is counted in `repairs`;
        - an innovation outside the gate is believed less, not thrown away: the covariance of the
          innovation is inflated by k = sqrt(NIS / gate) (Huber's weight), so that the step is at
          most sqrt(gate) standard deviations long, and a filter that is wrong finds back however
          wrong it is;
        - points and means are clipped to the bounds.

    Attributes:
        mean: (n,) estimate.
        factor: (n, n) upper triangular R.
        repairs: how often something had to be replaced since the last start.
    """

    def __init__(
        self,
        predict: Predict,
        measure: Measure,
        process_noise: np.ndarray,
        *,
        bounds: tuple[np.ndarray, np.ndarray] | None = None,
        gate_probability: float = 0.9999,
        farthest: float = math.inf,
    ) -> None:
        """
        Args:
            predict: (points (B, n), inputs, dt [s]) -> (B, n) points after dt; inputs as given to
                the filter's predict.
            measure: (points (B, n)) -> (B, nz) noise-free measurements.
            process_noise: (n,) standard deviations [unit of the state / sqrt(s)]: a step of dt adds
                variances process_noise^2 dt.
            bounds: (n,) lowest and (n,) highest allowed values, -inf and inf where free.
            gate_probability: the gate is the chi-square quantile of this probability.
            farthest: magnitude beyond which a predicted number is as good as not finite: the steps
                of a point far from the mean can diverge to 1e30, whose square would still be a
                covariance.
        """
        self._predict, self._measure, self._farthest = predict, measure, farthest
        self._gate_probability, self._gates = 0.0, dict[int, float]()
        self.use(process_noise, gate_probability)
        size = self._process_noise.size
        low, high = bounds or (np.full(size, -np.inf), np.full(size, np.inf))
        # Only the columns from the first to the last bounded one are clipped: most are free.
        bounded = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
        self._bounded = slice(bounded[0], bounded[-1] + 1) if bounded.size else slice(0)
        self._low, self._high = low[self._bounded], high[self._bounded]
        self.repairs = 0
        self.mean, self.factor = np.full(size, np.nan), np.full((size, size), np.nan)

    def use(self, process_noise: np.ndarray, gate_probability: float) -> None:
        """Go on with another noise and another gate; see `__init__` (ValueError likewise)."""
        noise = np.asarray(process_noise, float)
        if not (np.isfinite(noise).all() and (noise >= 0).all()):
            raise ValueError(f"process_noise: must be finite and >= 0, found {process_noise}")
        if not 0.0 < gate_probability < 1.0:
            raise ValueError(f"gate_probability: must be in (0, 1), found {gate_probability}")
        if gate_probability != self._gate_probability:
            self._gate_probability, self._gates = gate_probability, {}
        self._process_noise = noise

    def start(self, mean: np.ndarray, covariance: np.ndarray) -> None:
        """Begin from mean (n,) and covariance (n, n), positive definite (ValueError otherwise)."""
        self.factor = factor_of(np.asarray(covariance, float))
        self.repairs = 0
        self.mean = self._clipped(np.array(mean, float))

    @property
    def covariance(self) -> np.ndarray:
        """(n, n) covariance of the estimate."""
        return self.factor.T @ self.factor

    def predict(self, inputs: Any, dt: float) -> None:
        """Time update over dt [s]."""
        moments = self._through(lambda points: self._kept(self._predict(points, inputs, dt)))
        self.mean = self._clipped(moments.mean)
        self.factor = self._factor_of(math.sqrt(dt) * self._process_noise, moments)

    def widen(self, deviations: np.ndarray) -> None:
        """Independent errors of standard deviations (n,) add to those of the estimate."""
        self.factor = factor_of_sum(deviations, self.factor)

    def observe(self, measure: Measure | None = None) -> Moments:
        """Mean and covariance of the measured quantity, noise-free, at the present estimate."""
        return self._through(measure or self._measure)

    def update(
        self, measurement: np.ndarray, noise: np.ndarray, measure: Measure | None = None
    ) -> Correction:
        """Measurement update.

        Args:
            measurement: (nz,) finite.
            noise: (nz,) standard deviations of the independent measurement noises, > 0.
            measure: another measurement function for this update alone, e.g. of another sensor.
        """
        moments = self._through(measure or self._measure)
        factor = self._factor_of(np.asarray(noise, float), moments)
        # Everything below is whitened by the innovation's factor: innovation, gain, covariance.
        covariance = moments.covariance
        difference = measurement - moments.mean
        size = self.mean.size
        right_sides = np.empty((difference.size, 1 + size + difference.size), order="F")
        right_sides[:, 0], right_sides[:, 1 + size :] = difference, covariance
        right_sides[:, 1 : 1 + size] = self._cross_rows(moments)
        whitened = lapack.dtrtrs(factor, right_sides, trans=True, overwrite_b=True)[0]
        whitened = np.ascontiguousarray(whitened)
        innovation, gain = whitened[:, 0], whitened[:, 1 : 1 + size]
        explained = whitened[:, 1 + size :]
        nis = float(innovation @ innovation)
        inflation = max(1.0, math.sqrt(nis / self._gate(innovation.size)))
        self.mean = self._clipped(self.mean + innovation @ gain / inflation)
        self.factor = self._downdated(self.factor, gain / math.sqrt(inflation))
        left = covariance - explained.T @ explained / inflation
        return Correction(nis, innovation.copy(), difference, inflation > 1.0, left)

    def part(self, places: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Mean (k,) and a square root (r, k) of the covariance of some of the numbers."""
        return self.mean[list(places)], self.factor[:, list(places)]

    def replace_part(self, places: Sequence[int], mean: np.ndarray, rows: np.ndarray) -> None:
        """Some numbers become independent of the others, which keep mean and covariance.

        Args:
            places: of k numbers.
            mean: (k,) their new one.
            rows: (r, k) square root of their new covariance, which must be positive definite.
        """
        chosen = list(places)
        deviations = np.vstack((self.factor, np.zeros((len(rows), self.mean.size))))
        deviations[:, chosen] = 0.0
        deviations[len(self.factor) :, chosen] = rows
        self.mean[chosen] = mean
        self.mean = self._clipped(self.mean)
        self.factor = factor_of_sum(np.zeros(self.mean.size), deviations)

    @abstractmethod
    def _points(self) -> np.ndarray:
        """(1 + k, n) points: the mean, then k others."""

    @abstractmethod
    def _moments(self, points: np.ndarray, images: np.ndarray) -> Moments:
        """Moments of the images (1 + k, m) of the points."""

    @abstractmethod
    def _cross_rows(self, moments: Moments) -> np.ndarray:
        """(m, n) covariance between the images whose moments these are and the state."""

    def _through(self, function: Measure) -> Moments:
        points = self._clipped(self._points())
        images = np.asarray(function(points))
        # A sum is finite in a third of the time, and where it is not some summand mostly is not.
        if not np.isfinite(images.sum()):
            images = self._completed(function, points, images)
        return self._moments(points, images)

    def _kept(self, images: np.ndarray) -> np.ndarray:
        """Images (B, n) of a step, those that went too far replaced by NaN."""
        if math.isinf(self._farthest):
            return images
        images = np.asarray(images)
        # minimum and maximum skip the copy that np.abs would make of every point
        low, high = images.min(), images.max()
        if -self._farthest <= low and high <= self._farthest:
            return images
        too_far = ~(np.abs(images) <= self._farthest).all(axis=1)
        return np.where(too_far[:, None], np.nan, images)

    def _completed(self, function: Measure, points: np.ndarray, images: np.ndarray) -> np.ndarray:
        """Images (1 + k, m) with every non-finite row replaced, each one counted as a repair.

        The centre falls back on the mean of the others. A point is tried again much nearer to the
        centre, and how far its image then lies from the centre's is scaled up again: the function
        is taken as linear on the way. Where that fails too, it takes the mirror image of its
        opposite, which keeps the spread; where there is none, the centre's image, inflated for a
        time update by the deviation the point had before; without any image nothing moves.
        """
        lost = ~np.isfinite(images).all(axis=1)
        self.repairs += int(lost.sum())
        images = images.copy()
        if not lost[0]:
            images[lost] = _from_nearer(function, points[0], points[lost], images[0])
            lost = ~np.isfinite(images).all(axis=1)
        same_space = images.shape == points.shape
        if lost.all():
            return points.copy() if same_space else np.zeros_like(images)
        if lost[0]:
            images[0] = images[~lost].mean(axis=0)
        rows = 1 + np.flatnonzero(lost[1:])
        images[rows] = images[0] + (points[rows] - points[0] if same_space else 0.0)
        self._mirror(images, lost)
        return images

    def _mirror(self, images: np.ndarray, lost: np.ndarray) -> None:  # noqa: B027
        """Images (1 + k, m) of lost points, (1 + k,) which, from those of their opposites, in
        place; a filter whose points have none leaves them."""

    def _factor_of(self, noise: np.ndarray, moments: Moments) -> np.ndarray:
        factor = factor_of_sum(noise, moments.rows)
        return self._downdated(factor, moments.removed) if len(moments.removed) else factor

    def _downdated(self, factor: np.ndarray, rows: np.ndarray) -> np.ndarray:
        factor, definite = downdated(factor, rows)
        self.repairs += not definite
        return factor

    def _clipped(self, points: np.ndarray) -> np.ndarray:
        """The same array (..., n), clipped in place."""
        bounded = points[..., self._bounded]
        np.maximum(bounded, self._low, out=bounded)
        np.minimum(bounded, self._high, out=bounded)
        return points

    def _gate(self, size: int) -> float:
        if size not in self._gates:
            self._gates[size] = chi_square_quantile(self._gate_probability, size)
        return self._gates[size]


def _from_nearer(
    function: Measure, centre: np.ndarray, points: np.ndarray, image: np.ndarray
) -> np.ndarray:
    """(k, m) images of points (k, n), from nearer to the centre (n,), whose image (m,) is."""
    nearer = centre + _NEARER * (points - centre)
    images: np.ndarray = image + (np.asarray(function(nearer)) - image) / _NEARER
    return images
