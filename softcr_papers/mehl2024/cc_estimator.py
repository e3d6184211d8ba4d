"""The motion of one constant-curvature section from the force-torque sensor under its base.

Mehl et al., Sec. II-C: the joint filter of x = [q_r, q_r', k_theta], seven states, with the
semi-implicit Euler step (8) and base force and torque (9) as the measurement. No camera is needed.

The estimated bending stiffness has no meaning of its own: it takes up what the assumption of
constant curvature leaves out, the arm's sag under its weight above all (Sec. V).
"""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from softcr_estimation.errors import EstimatorError
from softcr_estimation.estimator_settings import FilterSettings
from softcr_estimation.filters.filters import elapsed, make_filter
from softcr_estimation.filters.gaussian import SquareRootFilter
from softcr_estimation.sensors.measurements import checked
from softcr_papers.constant_curvature.kernel import kernels
from softcr_papers.mehl2024.dynamics import ConstantCurvatureModel

_Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
_NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
_SIZE = 7
_POSITION, _RATE, _STIFFNESS = slice(0, 3), slice(3, 6), 6


CcEstimatorError = EstimatorError


class CcEstimatorSettings(FilterSettings):
    """Numbers of a CcEstimator.

    Process noises are standard deviations of random walks: over dt seconds a walk adds noise^2 dt
    to the variance.

    In the paper Q and R say that model and sensor are nearly perfect, and P_0 = Q that the arm
    surely starts straight with a known stiffness; two of its ten simulated parts did not converge.
    Here the start is open, and the noises leave room for what is not constant curvature. They are
    for a model that fits base force and base moment ("mass shared" in the study
    `mehl2024/base-sensor-filter`), and were chosen on another run of its plant: there the tip's
    error stays the same if the stiffness is 15 % wrong. Far larger force and moment noises look
    better as long as the model is right, because they leave the model alone with the pressures, and
    are lost when it is not.
    """

    longest_step: _Positive = Field(
        default=0.005, description="largest Euler step; stable below about 8 ms [s]"
    )
    coordinate_noise: _NonNegative = Field(
        default=1.4e-4, description="process noise of Delta and dL, Mehl et al. [m/sqrt(s)]"
    )
    rate_noise: _NonNegative = Field(
        default=0.1, description="process noise of their rates [m/s/sqrt(s)]"
    )
    stiffness_noise: _NonNegative = Field(
        default=20.0, description="random walk of the bending stiffness [N/m/sqrt(s)]"
    )
    force_noise: _Positive = Field(
        default=1e-2, description="standard deviation of each measured force [N]"
    )
    moment_noise: _Positive = Field(
        default=1e-3, description="standard deviation of each measured moment [N m]"
    )
    coordinate_deviation: _Positive = Field(
        default=0.02, description="initial standard deviation around the straight pose [m]"
    )
    rate_deviation: _Positive = Field(
        default=0.2, description="initial standard deviation around rest [m/s]"
    )
    stiffness_deviation: _Positive = Field(
        default=20.0, description="initial standard deviation of the bending stiffness [N/m]"
    )
    stiffness_range: Annotated[float, Field(gt=1.0, le=100.0)] = Field(
        default=5.0, description="the stiffness stays within nominal / range, nominal * range [-]"
    )
    beta: Annotated[float, Field(ge=0.0, le=10.0)] = Field(
        default=2.0, description="ukf: centre [-]"
    )


@dataclass(frozen=True, eq=False)
class CcEstimate:
    """What is known at one stamp. SI units, frame of the sensor.

    Attributes:
        stamp: time of the estimate [s].
        coordinates: (3,) Delta_x, Delta_y, dL [m].
        rates: (3,) their rates [m/s].
        bending_stiffness: k_theta [N/m].
        covariance: (7, 7) of coordinates, rates and stiffness.
        tip_position: (3,) end of the arc [m].
        tip_velocity: (3,) [m/s].
        tip_position_covariance: (3, 3) [m^2].
        nis: normalised innovation squared [-]; NaN without a measurement.
        gated: whether the measurement was believed less than its noise says.
        repairs: numerical repairs since the last start.
    """

    stamp: float
    coordinates: np.ndarray
    rates: np.ndarray
    bending_stiffness: float
    covariance: np.ndarray
    tip_position: np.ndarray
    tip_velocity: np.ndarray
    tip_position_covariance: np.ndarray
    nis: float
    gated: bool
    repairs: int


class CcEstimator:
    """Sees a pneumatic section through the sensor it stands on.

    estimator = CcEstimator(ConstantCurvatureModel.of_robot(robot), base_height)
    estimator.start(stamp)
    estimate = estimator.update(pressures, wrench, stamp)

    """

    def __init__(
        self,
        model: ConstantCurvatureModel,
        base_height: float = 0.0,
        settings: CcEstimatorSettings | None = None,
    ) -> None:
        """
        Args:
            model: the section; its bending stiffness is where the estimate starts.
            base_height: from the sensor's origin up to the arc's base [m].
            settings: of the filter.
        """
        self._model, self._settings = model, settings or CcEstimatorSettings()
        self._base = np.array([0.0, 0.0, base_height])
        self._filter = self._make_filter()
        self._stamp = math.nan
        kernels()  # no tick may wait for a compiler

    def start(self, stamp: float) -> CcEstimate:
        """Begin, or begin again, straight and at rest, at `stamp` [s]."""
        settings = self._settings
        mean = np.zeros(_SIZE)
        mean[_STIFFNESS] = self._model.bending_stiffness
        deviations = _vector(
            settings.coordinate_deviation, settings.rate_deviation, settings.stiffness_deviation
        )
        self._filter.start(mean, np.diag(deviations**2))
        self._stamp = float(stamp)
        return self._estimate(math.nan, False)

    def update(self, pressures: np.ndarray, wrench: np.ndarray | None, stamp: float) -> CcEstimate:
        """Advance to `stamp` and take in what was measured there.

        Args:
            pressures: (chambers,) measured gauge pressures [Pa]; (8) holds them over the step.
            wrench: (6,) force [N], then moment [N m], that the robot puts on the sensor, without
                offset; None: predict only.
            stamp: later than the last one [s].

        Raises:
            CcEstimatorError: not started; a stamp that is not later than the last one, or too much
                later; an array of wrong shape or with non-finite numbers. The estimator is left as
                it was.
        """
        pressures = checked("pressures", pressures, self._model.actuation.shape[1:])
        if wrench is not None:
            wrench = checked("wrench", wrench, (6,))
        duration = elapsed(self._stamp, stamp, self._settings.longest_gap)
        steps = max(1, math.ceil(duration / self._settings.longest_step - 0.1))
        for _ in range(steps):
            self._filter.predict(pressures, duration / steps)
        self._stamp = float(stamp)
        if wrench is None:
            return self._estimate(math.nan, False)
        correction = self._filter.update(
            wrench, self._measurement_noise, lambda points: self._wrenches(points, pressures)
        )
        return self._estimate(correction.nis, correction.gated)

    # -- the model in discrete time ---------------------------------------------------------------

    def _step(self, points: np.ndarray, pressures: np.ndarray, dt: float) -> np.ndarray:
        """(8): first the coordinates, then the rates with what holds at the new coordinates."""
        images = points.copy()
        images[:, _POSITION] += dt * points[:, _RATE]
        acceleration, _ = self._motion(images, pressures)
        images[:, _RATE] += dt * acceleration
        return images

    def _wrenches(self, points: np.ndarray, pressures: np.ndarray) -> np.ndarray:
        """(B, 6) of (9): against the base reaction, and about the sensor's origin."""
        _, reaction = self._motion(points, pressures)
        wrenches: np.ndarray = -reaction
        wrenches[:, 3] -= self._base[2] * wrenches[:, 1]
        wrenches[:, 4] += self._base[2] * wrenches[:, 0]
        return wrenches

    def _motion(self, points: np.ndarray, pressures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._model.motion(
            points[:, _POSITION], points[:, _RATE], pressures, points[:, _STIFFNESS]
        )

    # -- inner workings ---------------------------------------------------------------------------

    def _make_filter(self) -> SquareRootFilter:
        settings, model = self._settings, self._model
        noise = _vector(settings.coordinate_noise, settings.rate_noise, settings.stiffness_noise)
        self._measurement_noise = np.repeat([settings.force_noise, settings.moment_noise], 3)
        # A bend of half a turn, half the length, a few metres per second: beyond is no robot.
        high = np.array([*[np.pi * model.radius] * 2, 0.5 * model.rest_length, *[5.0] * 3, np.inf])
        low = -high
        low[_STIFFNESS] = model.bending_stiffness / settings.stiffness_range
        high[_STIFFNESS] = model.bending_stiffness * settings.stiffness_range
        scale = np.array([*[model.radius] * 3, *[0.3] * 3, model.bending_stiffness])
        # `update` gives the measurement function anew, with its pressures.
        return make_filter(settings, self._step, _no_measurement, noise, (low, high), scale)

    def _estimate(self, nis: float, gated: bool) -> CcEstimate:
        mean = self._filter.mean
        coordinates, rates = mean[_POSITION].copy(), mean[_RATE].copy()
        tip, jacobian = self._model.tip_and_jacobian(coordinates)
        factor = self._filter.factor
        spread = factor[:, _POSITION] @ jacobian.T
        return CcEstimate(
            stamp=self._stamp,
            coordinates=coordinates,
            rates=rates,
            bending_stiffness=float(mean[_STIFFNESS]),
            covariance=factor.T @ factor,
            tip_position=tip + self._base,
            tip_velocity=jacobian @ rates,
            tip_position_covariance=spread.T @ spread,
            nis=nis,
            gated=gated,
            repairs=self._filter.repairs,
        )


def _vector(coordinates: float, rates: float, stiffness: float) -> np.ndarray:
    return np.array([*[coordinates] * 3, *[rates] * 3, stiffness])


def _no_measurement(points: np.ndarray) -> np.ndarray:
    raise NotImplementedError("the base wrench depends on the pressures: give `measure`")
