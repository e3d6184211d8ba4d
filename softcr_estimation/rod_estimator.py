"""State and parameters of a rod from pressures and tip position, by any prediction model."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field
from scipy.spatial.transform import Rotation

from softcr_estimation.extended import ExtendedFilter
from softcr_estimation.gaussian import Correction, SquareRootFilter
from softcr_estimation.unscented import UnscentedFilter
from softcr_models.errors import UserError
from softcr_models.prediction import PredictionModel
from softcr_models.pressure import PRESSURE_GAIN, PRESSURE_OFFSET, chamber_names
from softcr_models.state_groups import by_group

_Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
_NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
# In settings.parameters: an offset, a gain for each chamber.
ALL_OFFSETS, ALL_GAINS = "pressure_offsets", "pressure_gains"
# Offsets are estimated in kPa, so that all estimated numbers are near 1.
_OFFSET_SCALE = 1e3


class EstimatorError(UserError, ValueError):
    """An input the estimator refuses; `str(error)` is the one line that says why."""


class EstimatorSettings(BaseModel):
    """Numbers of a RodEstimator.

    Noises are standard deviations of random walks: over dt seconds a walk adds noise^2 dt to the
    variance. States are measured in `prediction.state_scale`, positive parameters relative to their
    value (the filter holds their logarithm).

    The defaults were tuned for the rod of five intervals at 70 Hz on plants of ten and twenty, with
    5 % less compliance, 10 % more tip mass and 0.2 mm noise. The compliance alone would take up the
    error in the tip mass (2 to 4 % at 0.5 to 1.5 Hz), so mass, damping and the pressure sensors'
    offsets and gains are estimated with it; offsets and gains have a narrow start, because a rod
    that rests does not tell them from the compliance. A moving one does: a gain 5 % off, sixteen
    times that, costs 1.2 mm in the first second and nothing from the third on.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    filter: Literal["ukf", "ekf"] = Field(
        default="ukf", description="unscented or extended Kalman filter"
    )
    parameters: tuple[str, ...] = Field(
        default=("bending_compliance", "tip_mass", "damping_factor", ALL_OFFSETS, ALL_GAINS),
        description="estimated parameters: names of the prediction's, pressure_offset_1 to _m, "
        "pressure_gain_1 to _m; pressure_offsets or pressure_gains for all of these",
    )
    period: _Positive = Field(
        default=1 / 70, description="a tick; longer gaps take several steps [s]"
    )
    longest_gap: _Positive = Field(
        default=2.0, description="longest time bridged without a restart [s]"
    )

    state_noise: _Positive = Field(
        default=0.01, description="of states without a noise of their own [state scale/sqrt(s)]"
    )
    velocity_noise: _Positive | None = Field(
        default=None, description="of linear velocities; none: state_noise [state scale/sqrt(s)]"
    )
    angular_velocity_noise: _Positive | None = Field(
        default=None, description="of angular velocities, likewise"
    )
    force_noise: _Positive | None = Field(default=None, description="of shear forces, likewise")
    force_z_noise: _Positive | None = Field(default=None, description="of axial forces, likewise")
    torque_noise: _Positive | None = Field(default=None, description="of moments, likewise")
    bending_compliance_noise: _NonNegative = Field(
        default=5e-4, description="random walk [1/sqrt(s)]"
    )
    tip_mass_noise: _NonNegative = Field(default=5e-4, description="random walk [1/sqrt(s)]")
    damping_factor_noise: _NonNegative = Field(default=5e-4, description="random walk [1/sqrt(s)]")
    pressure_offset_noise: _NonNegative = Field(default=1.0, description="random walk [Pa/sqrt(s)]")
    pressure_gain_noise: _NonNegative = Field(default=2e-4, description="random walk [1/sqrt(s)]")
    tip_position_noise: _Positive = Field(
        default=2e-4, description="of each measured coordinate [m]"
    )
    tip_rotation_noise: _Positive = Field(
        default=5e-3, description="of each measured rotation angle [rad]"
    )

    initial_state_deviation: _Positive = Field(
        default=0.5, description="around the static shape at the start [state scale]"
    )
    bending_compliance_deviation: _Positive = Field(default=0.08, description="at the start [-]")
    tip_mass_deviation: _Positive = Field(default=0.1, description="at the start [-]")
    damping_factor_deviation: _Positive = Field(default=0.05, description="at the start [-]")
    pressure_offset_deviation: _Positive = Field(default=100.0, description="at the start [Pa]")
    pressure_gain_deviation: _Positive = Field(default=0.003, description="at the start [-]")

    parameter_range: Annotated[float, Field(gt=1.0, le=10.0)] = Field(
        default=2.0, description="parameters stay within nominal / range and nominal * range [-]"
    )
    pressure_offset_limit: _Positive = Field(
        default=2e4, description="largest estimated offset [Pa]"
    )
    gate_probability: Annotated[float, Field(gt=0.5, lt=1.0)] = Field(
        default=0.9999,
        description="innovations beyond this chi-square quantile are believed less [-]",
    )
    alpha: Annotated[float, Field(gt=0.0, le=10.0)] = Field(
        default=1.0, description="ukf: spread [-]"
    )
    beta: Annotated[float, Field(ge=0.0, le=10.0)] = Field(
        default=0.0, description="ukf: centre [-]"
    )
    kappa: Annotated[float, Field(ge=0.0, le=100.0)] = Field(
        default=0.0, description="ukf: spread [-]"
    )


@dataclass(frozen=True)
class Estimate:
    """What is known at one stamp. SI units, base frame.

    Attributes:
        stamp: time of the estimate [s].
        state: (nx,) state of the rod.
        covariance: (nx + ne, nx + ne) of the state and then of the estimated parameters.
        parameters: name -> value of every parameter of the prediction and every estimated offset.
        parameters_std: name -> standard deviation; 0 for parameters that are not estimated.
        tip_position: (3,) [m].
        tip_position_covariance: (3, 3) [m^2].
        nis: normalised innovation squared [-]; NaN without a measurement.
        gated: whether the measurement was believed less than its noise says.
        predicted_only: whether no measurement was used.
        repairs: numerical repairs since the estimator was made.
    """

    stamp: float
    state: np.ndarray
    covariance: np.ndarray
    parameters: dict[str, float]
    parameters_std: dict[str, float]
    tip_position: np.ndarray
    tip_position_covariance: np.ndarray
    nis: float
    gated: bool
    predicted_only: bool
    repairs: int

    @property
    def bending_compliance(self) -> float:
        """[rad/(N m m)]"""
        return self.parameters["bending_compliance"]

    @property
    def bending_compliance_std(self) -> float:
        """Standard deviation [rad/(N m m)]."""
        return self.parameters_std["bending_compliance"]


class RodEstimator:
    """Joint filter of state and parameters over a prediction model, Licher et al., Sec. V-A.

    The filter's vector is the state in units of `prediction.state_scale`, then for each estimated
    parameter the logarithm of value / nominal, for each pressure offset its value in kPa, for each
    pressure gain its logarithm. A gain stands for a wrong sensor and for a wrong lever arm of its
    chamber: the rod bends by their product.

        estimator = RodEstimator(RodPrediction(CosseratRod(robot)))
        estimator.start(pressures, stamp)
        estimate = estimator.update(pressures, tip_position, stamp)
    """

    def __init__(
        self, prediction: PredictionModel, settings: EstimatorSettings | None = None
    ) -> None:
        """Raises EstimatorError where settings.parameters names something that does not exist."""
        self._prediction, self._settings = prediction, settings or EstimatorSettings()
        self._offsets = chamber_names(PRESSURE_OFFSET, prediction.input_size)
        self._gains = chamber_names(PRESSURE_GAIN, prediction.input_size)
        self._names = self._ordered_names()
        known = prediction.parameter_names
        self._parameter_indices = [i for i, name in enumerate(known) if name in self._names]
        self._offset_indices = [i for i, name in enumerate(self._offsets) if name in self._names]
        self._gain_indices = [i for i, name in enumerate(self._gains) if name in self._names]
        # Dividing the points by the scale would take four times as long.
        self._inverse_scale = 1.0 / prediction.state_scale
        # The filter's vector: states, logarithms of parameters, offsets, logarithms of gains.
        self._filter_size = prediction.state_size + len(self._names)
        offsets_begin = prediction.state_size + len(self._parameter_indices)
        gains_begin = offsets_begin + len(self._offset_indices)
        self._state_part = slice(prediction.state_size)
        self._parameter_part = slice(prediction.state_size, offsets_begin)
        self._offset_part = slice(offsets_begin, gains_begin)
        self._gain_part = slice(gains_begin, self._filter_size)
        self._filter = self._make_filter()
        self._stamp = math.nan
        self._pressures = np.zeros(prediction.input_size)

    def start(self, pressures: np.ndarray, stamp: float) -> Estimate:
        """Begin, or begin again, at the static shape under the measured pressures.

        Args:
            pressures: (m,) measured gauge pressures [Pa].
            stamp: time of the pressures [s].
        """
        pressures = self._checked("pressures", pressures, (self._prediction.input_size,))
        state = self._prediction.equilibrium(pressures, self._prediction.nominal_parameters)
        self._pressures, self._stamp = pressures, float(stamp)
        deviations = self._deviations(self._settings.initial_state_deviation, "deviation")
        mean = np.zeros(self._filter_size)
        mean[self._state_part] = state * self._inverse_scale
        self._filter.start(mean, np.diag(deviations**2))
        return self._estimate(self._filter.observe().covariance, math.nan, False, True)

    def update(
        self,
        pressures: np.ndarray,
        tip_position: np.ndarray | None,
        stamp: float,
        tip_rotation: np.ndarray | None = None,
    ) -> Estimate:
        """Advance to `stamp` and take in what was measured there.

        Between the last stamp and this one the pressures are taken as linear in time.

        Args:
            pressures: (m,) measured gauge pressures at `stamp` [Pa].
            tip_position: (3,) measured tip in the base frame [m], or None: predict only.
            stamp: later than the last one [s].
            tip_rotation: (3, 3) measured rotation matrix of the tip in the base frame, or None.

        Raises:
            EstimatorError: not started; a stamp that is not later than the last one, or too much
                later; an array of wrong shape or with non-finite numbers. The estimator is left as
                it was.
        """
        pressures = self._checked("pressures", pressures, (self._prediction.input_size,))
        if tip_position is not None:
            tip_position = self._checked("tip_position", tip_position, (3,))
        if tip_rotation is not None:
            tip_rotation = self._checked_rotation(tip_rotation)
        self._advance(pressures, self._elapsed(stamp))
        self._stamp = float(stamp)
        if tip_position is None:
            return self._estimate(self._filter.observe().covariance, math.nan, False, True)
        correction = self._correct(tip_position, tip_rotation)
        covariance = correction.measured_covariance[:3, :3]
        return self._estimate(covariance, correction.nis, correction.gated, False)

    def _advance(self, pressures: np.ndarray, elapsed: float) -> None:
        # A tenth of a period is jitter of the stamps, not worth one more step.
        steps = max(1, math.ceil(elapsed / self._settings.period - 0.1))
        change = (pressures - self._pressures) / steps
        for step in range(steps):
            begin = self._pressures + step * change
            self._filter.predict((begin, begin + change), elapsed / steps)
        self._pressures = pressures

    def _correct(self, tip_position: np.ndarray, tip_rotation: Rotation | None) -> Correction:
        noise = np.full(3, self._settings.tip_position_noise)
        if tip_rotation is None:
            return self._filter.update(tip_position, noise)

        def measure(points: np.ndarray) -> np.ndarray:
            return self._positions_and_rotations(points, tip_rotation)

        noise = np.concatenate([noise, np.full(3, self._settings.tip_rotation_noise)])
        return self._filter.update(np.concatenate([tip_position, np.zeros(3)]), noise, measure)

    def _positions_and_rotations(self, points: np.ndarray, reference: Rotation) -> np.ndarray:
        """(B, 6) tip positions and rotation vectors from a reference, in its tangent space."""
        poses = self._tip_poses(points)
        finite = np.isfinite(poses).all(axis=(1, 2))
        result = np.full((len(points), 6), np.nan)
        rotations = reference.inv() * Rotation.from_matrix(poses[finite, :, :3])
        result[finite] = np.hstack([poses[finite, :, 3], rotations.as_rotvec()])
        return result

    def _elapsed(self, stamp: float) -> float:
        if math.isnan(self._stamp):
            raise EstimatorError("estimator: update before start; call start first")
        elapsed = stamp - self._stamp
        if not 0.0 < elapsed <= self._settings.longest_gap:
            raise EstimatorError(
                f"stamp: {stamp} s after {self._stamp} s; must be later, by at most "
                f"{self._settings.longest_gap} s"
            )
        return elapsed

    def _estimate(
        self, tip_covariance: np.ndarray, nis: float, gated: bool, predicted_only: bool
    ) -> Estimate:
        prediction, point = self._prediction, self._filter.mean[None]
        states, parameters = self._states(point), self._parameters(point)
        offsets = (_OFFSET_SCALE * point[0, self._offset_part]).tolist()
        values = dict(zip(prediction.parameter_names, parameters[0].tolist(), strict=True))
        gains = np.exp(point[0, self._gain_part])
        values |= {self._offsets[i]: v for i, v in zip(self._offset_indices, offsets, strict=True)}
        values |= {self._gains[i]: float(v) for i, v in zip(self._gain_indices, gains, strict=True)}
        # A small change of a logarithm, times the value, is the change of the value.
        units = np.full(self._filter_size, _OFFSET_SCALE)
        units[self._state_part] = prediction.state_scale
        units[self._parameter_part] = parameters[0, self._parameter_indices]
        units[self._gain_part] = gains
        factor = self._filter.factor * units
        covariance = factor.T @ factor
        found = np.sqrt(covariance.diagonal()[prediction.state_size :]).tolist()
        return Estimate(
            stamp=self._stamp,
            state=states[0],
            covariance=covariance,
            parameters=values,
            parameters_std=dict.fromkeys(values, 0.0) | dict(zip(self._names, found, strict=True)),
            tip_position=prediction.tip_poses(states, parameters)[0, :, 3],
            tip_position_covariance=tip_covariance,
            nis=nis,
            gated=gated,
            predicted_only=predicted_only,
            repairs=self._filter.repairs,
        )

    def _make_filter(self) -> SquareRootFilter:
        settings = self._settings
        high = np.full(self._filter_size, np.inf)
        high[self._parameter_part] = math.log(settings.parameter_range)
        high[self._gain_part] = math.log(settings.parameter_range)
        high[self._offset_part] = settings.pressure_offset_limit / _OFFSET_SCALE
        common: dict[str, Any] = {
            "bounds": (-high, high),
            "gate_probability": settings.gate_probability,
        }
        noise = self._deviations(self._state_noise(), "noise")
        functions = (self._predict, self._tip_positions, noise)
        if settings.filter == "ekf":
            return ExtendedFilter(*functions, **common)
        weights: dict[str, Any] = {
            "alpha": settings.alpha,
            "beta": settings.beta,
            "kappa": settings.kappa,
        }
        return UnscentedFilter(*functions, **weights, **common)

    def _predict(
        self, points: np.ndarray, ramp: tuple[np.ndarray, np.ndarray], dt: float
    ) -> np.ndarray:
        gains = np.ones((len(points), self._prediction.input_size))
        gains[:, self._gain_indices] = np.exp(points[:, self._gain_part])
        offsets = np.zeros_like(gains)
        offsets[:, self._offset_indices] = _OFFSET_SCALE * points[:, self._offset_part]
        begin, end = (gains * pressures + offsets for pressures in ramp)
        states = self._prediction.step(
            self._states(points), begin, end, self._parameters(points), dt
        )
        images = points.copy()
        np.multiply(states, self._inverse_scale, out=images[:, self._state_part])
        return images

    def _tip_positions(self, points: np.ndarray) -> np.ndarray:
        return self._tip_poses(points)[:, :, 3]

    def _tip_poses(self, points: np.ndarray) -> np.ndarray:
        return self._prediction.tip_poses(self._states(points), self._parameters(points))

    def _states(self, points: np.ndarray) -> np.ndarray:
        return points[:, self._state_part] * self._prediction.state_scale

    def _parameters(self, points: np.ndarray) -> np.ndarray:
        logarithms = np.zeros((len(points), self._prediction.nominal_parameters.size))
        logarithms[:, self._parameter_indices] = points[:, self._parameter_part]
        return self._prediction.nominal_parameters * np.exp(logarithms)

    def _state_noise(self) -> np.ndarray:
        """(nx,) of every state [state scale/sqrt(s)]."""
        chosen = self._settings
        groups = (
            chosen.velocity_noise,
            chosen.angular_velocity_noise,
            chosen.force_noise,
            chosen.force_z_noise,
            chosen.torque_noise,
        )
        size = self._prediction.state_size
        if all(noise is None for noise in groups):  # then the model need not be a rod's
            return np.full(size, chosen.state_noise)
        return by_group(size, *(chosen.state_noise if n is None else n for n in groups))

    def _deviations(self, of_states: float | np.ndarray, kind: str) -> np.ndarray:
        """(n,) "noise" or initial "deviation" of the filter's vector, in its coordinates."""
        deviations = np.empty(self._filter_size)
        deviations[self._state_part] = of_states
        for column, name in enumerate(self._names, self._prediction.state_size):
            if name in self._offsets:
                in_pascal = getattr(self._settings, f"pressure_offset_{kind}")
                deviations[column] = in_pascal / _OFFSET_SCALE
            elif name in self._gains:
                deviations[column] = getattr(self._settings, f"pressure_gain_{kind}")
            else:
                deviations[column] = getattr(self._settings, f"{name}_{kind}")
        return deviations

    def _ordered_names(self) -> tuple[str, ...]:
        """Names of the estimated parameters in the filter's order: prediction's, offsets, gains."""
        known = (*self._prediction.parameter_names, *self._offsets, *self._gains)
        groups = {ALL_OFFSETS: self._offsets, ALL_GAINS: self._gains}
        names: list[str] = []
        for name in self._settings.parameters:
            names.extend(groups.get(name, (name,)))
        for name in names:
            if name not in known:
                raise EstimatorError(
                    f"parameters: {name!r} unknown; known are {', '.join((*known, *groups))}"
                )
        if len(set(names)) != len(names):
            raise EstimatorError(f"parameters: {', '.join(names)} holds a name twice")
        return tuple(name for name in known if name in names)

    @staticmethod
    def _checked(name: str, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        array = np.array(values, float)
        if array.shape != shape or not np.isfinite(array).all():
            raise EstimatorError(f"{name}: {array.tolist()} must be {shape} finite numbers")
        return array

    def _checked_rotation(self, matrix: np.ndarray) -> Rotation:
        matrix = self._checked("tip_rotation", matrix, (3, 3))
        if not np.allclose(matrix @ matrix.T, np.eye(3), atol=1e-3) or np.linalg.det(matrix) < 0.0:
            raise EstimatorError(f"tip_rotation: {matrix.tolist()} must be a rotation matrix")
        return Rotation.from_matrix(matrix)
