"""State and parameters of any model, from its inputs and whatever of its outputs is measured."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from softcr_estimation.estimator_settings import ModelEstimatorSettings
from softcr_estimation.filters.filters import elapsed, make_filter, suited
from softcr_estimation.filters.gaussian import Measure
from softcr_estimation.filters.joint_vector import JointVector
from softcr_estimation.filters.lasting_error import LastingError
from softcr_estimation.filters.reopening import (
    CALM,
    FAST_SHARE,
    SLOW_RAMP,
    TRIED,
    InnovationColour,
    limited,
)
from softcr_estimation.sensors.measurements import Measurement, Measurements, checked, positions
from softcr_models.model import TIP, Model

HELD = 1e-6
"""Standard deviation of parameters that are held: a covariance must stay positive definite [-]."""

RECENT = 1.0
"""Over how long `recent_updates` and `recent_gated` count [s]."""

GATED_SHARE = 0.5
"""A filter that gates more than this share of the recent measurements is warned of [-]."""

FARTHEST = 300.0
"""A number that lies farther from zero after a step is that of a step that diverged: sound ones
reach 130 with rods and 250 with the rates of tendon-driven arms [scale]."""

_KNOWN, _UNKNOWN = 4, 6
"""Steps between two stamps in which inputs are nearly linear in time, and further ones after which
the state is known no better than at the start."""

_FEWEST = 10  # measurements that are worth a warning: the first ones of a cold start are gated


@dataclass(frozen=True)
class ModelEstimate:
    """What is known at one stamp. SI units, base frame.

    Attributes:
        stamp: time of the estimate [s].
        state: (nx,) state of the model.
        factor: (n, n) upper triangular square root of the filter's covariance, see `covariance`.
        units: (n,) what a small change by 1 of each of its numbers means [their units].
        parameters: name -> value of every parameter of the model, and of what is estimated of the
            inputs' sensors.
        parameters_std: name -> standard deviation; 0 for parameters that are not estimated.
        tip_position: (3,) the model's and `tip_offset` [m].
        tip_position_covariance: (3, 3) the filter's and `tip_lasting_covariance` [m^2].
        nis: normalised innovation squared [-], of several outputs their sum; NaN without a
            measurement.
        gated: whether a measurement was believed less than its noise says.
        predicted_only: whether no measurement was used.
        repairs: numerical repairs since the last start.
        recent_updates, recent_gated: with how many of the last second's stamps there was a
            measurement, and for how many of these it was gated. A filter that gates most of them is
            wrong, whatever its covariance says.
        at_bounds: names of estimated parameters that stand at a bound: there the model cannot be
            made to fit, or not by them.
        innovations: by output that was measured, whitened: standard normal and independent where
            the model is right [-].
        opened_fast, opened_slow: how far the parameters are opened because the innovations are
            coloured, 0 to 1, see `InnovationColour`.
        innovation_correlation: mean product of neighbouring innovations over their variance, 0 on
            average where the model is right [-].
        fallbacks: how often the opened parameters explained nothing, since the last start: the
            filter then began anew with parameters of the file.
        is_safe: whether it has not opened them again since: structure is not estimated meanwhile.
        lasting_correlation: the mean over five seconds [-].
        lasts: whether that is far beyond chance: then parameters may be wrong by many times their
            standard deviations.
        tip_lasting_covariance: (3, 3) of an error of the tip that lasts beside `tip_offset`, see
            `LastingError`; zeros where the tip is not measured [m^2]. `covariance` knows nothing of
            it.
        tip_offset: (3,) how the measured tip lasts beside the model's [m].
    """

    stamp: float
    state: np.ndarray
    factor: np.ndarray
    units: np.ndarray
    parameters: dict[str, float]
    parameters_std: dict[str, float]
    tip_position: np.ndarray
    tip_position_covariance: np.ndarray
    nis: float
    gated: bool
    predicted_only: bool
    repairs: int
    recent_updates: int = 0
    recent_gated: int = 0
    at_bounds: tuple[str, ...] = ()
    innovations: Mapping[str, np.ndarray] = field(default_factory=dict)
    opened_fast: float = 0.0
    opened_slow: float = 0.0
    innovation_correlation: float = 0.0
    fallbacks: int = 0
    is_safe: bool = False
    lasting_correlation: float = 0.0
    lasts: bool = False
    tip_lasting_covariance: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    tip_offset: np.ndarray = field(default_factory=lambda: np.zeros(3))

    @property
    def covariance(self) -> np.ndarray:
        """(nx + ne, nx + ne) of the state and then of the estimated parameters; computed where it
        is asked for."""
        rows = self.factor * self.units
        return rows.T @ rows

    @property
    def is_opened(self) -> bool:
        """Whether parameters walk faster than usual."""
        return self.opened_fast > 0.0 or self.opened_slow > 0.0

    def warnings(self) -> list[str]:
        """What an operator should know of: signs that the model does not fit the robot."""
        told = []
        enough = self.recent_updates >= _FEWEST
        if enough and self.recent_gated > GATED_SHARE * self.recent_updates:
            told.append(
                f"{self.recent_gated} of the last {self.recent_updates} measurements gated: "
                "the estimate does not explain them"
            )
        if self.is_safe:
            told.append(
                f"fell back to safe parameters (fallbacks so far: {self.fallbacks}): raising the "
                "uncertainty of parameters explained nothing; the robot differs from its model in "
                "a way that is not estimated"
            )
        if self.opened_fast or self.innovation_correlation > SLOW_RAMP[0]:
            told.append(
                f"innovations are coloured, correlation {self.innovation_correlation:.2g}: the "
                "model does not fit; uncertainty of parameters raised by "
                f"{self.opened_fast:.2g} (fast), {self.opened_slow:.2g} (slow)"
            )
        elif self.lasts:
            told.append(
                f"innovations stay coloured, correlation {self.lasting_correlation:.2g} over five "
                "seconds: estimated parameters compensate for what the model lacks, and may be "
                "wrong by many of their standard deviations"
            )
        if self.at_bounds:
            told.append(f"at their bounds: {', '.join(self.at_bounds)}")
        return told


@dataclass(frozen=True, eq=False)
class Numbers:
    """Some parameters as the filter holds them, to be given back to it later.

    Attributes:
        mean: (k,) in the filter's coordinates.
        rows: (r, k) square root of their covariance.
    """

    mean: np.ndarray
    rows: np.ndarray


class _Recent:
    """Counts of the last updates.

    Attributes:
        updates: how many there were.
        gated: how many of them were gated.
    """

    def __init__(self) -> None:
        self._all: deque[tuple[float, bool]] = deque()
        self.updates = self.gated = 0

    def add(self, stamp: float, gated: bool) -> None:
        self._all.append((stamp, gated))
        self.updates += 1
        self.gated += gated

    @property
    def most_gated(self) -> bool:
        """Whether enough were made to tell, and most of them were gated."""
        return self.updates >= _FEWEST and self.gated > GATED_SHARE * self.updates

    def forget_before(self, stamp: float) -> None:
        while self._all and self._all[0][0] <= stamp:
            self.updates -= 1
            self.gated -= self._all.popleft()[1]


class ModelEstimator:
    """Joint filter of state and parameters over a model, Licher et al. (2025), Sec. V-A.

    What the filter holds, and in which units, says `JointVector`. `kind` says which filter it is.

        estimator = ModelEstimator(model)
        estimator.start(inputs, stamp)
        estimate = estimator.update(inputs, {"tip": position, "base_wrench": wrench}, stamp)
    """

    def __init__(
        self,
        model: Model,
        settings: ModelEstimatorSettings | None = None,
        period: float = 1 / 70,
    ) -> None:
        """
        Args:
            model: of state, parameters and outputs.
            settings: numbers of the filter; None for the defaults.
            period: length of a tick [s]; longer gaps take several steps.

        Raises:
            EstimatorError: the settings name something that the model does not have.
            UserError: begins_with is not name=number,name=number,...
        """
        numbers = settings or ModelEstimatorSettings()
        self.kind = suited(numbers.filter, model)
        self._model, self._settings = model, numbers.model_copy(update={"filter": self.kind})
        self._period = period
        self._vector = JointVector(model, self._settings)
        self._measurements = Measurements(model.outputs, self._settings)
        self._first = self._vector.at_values(self._settings.initial_values)
        bounds = self._vector.low, self._vector.high
        self._filter = make_filter(
            self._settings, self._predict, self._tip_positions, self._vector.noise, bounds,
            farthest=FARTHEST,
        )  # fmt: skip
        self._stamp = math.nan
        self._inputs, self._remembered = np.zeros(model.inputs.size), np.zeros(0)
        self._recent = _Recent()
        self._colour, self._lasting = InnovationColour(), LastingError()
        # none where the filter finds how the marker is offset: that says the same
        follows = not any(each.startswith("marker_offset") for each in self._vector.names)
        self._follows_offset, self._offset = follows, np.zeros(3)
        self._opened = 0.0, 0.0
        self._safe_until: float | None = None
        self._begun, self._fallbacks = -math.inf, 0
        self._held: set[str] = set()

    def prepared(self, settings: ModelEstimatorSettings) -> Callable[[], None]:
        """What makes it go on with the noises and the gate of other settings.

        Args:
            settings: of the same filter and the same parameters.

        Raises:
            EstimatorError: the settings name something that the model does not have.
        """
        vector = JointVector(self._model, settings)
        measurements = Measurements(self._model.outputs, settings)

        def use() -> None:
            self._settings, self._vector, self._measurements = settings, vector, measurements
            self._use_noise()

        return use

    @property
    def estimated(self) -> tuple[str, ...]:
        """Names of the parameters that are estimated, those that are held among them."""
        return self._vector.names

    @property
    def initial(self) -> dict[str, float]:
        """Name -> value of all parameters where it begins, as in `ModelEstimate`."""
        return self._vector.values(self._first, self._vector.parameters(self._first[None])[0])

    def numbers(self, names: Sequence[str]) -> Numbers:
        """What is known of some estimated parameters now."""
        return Numbers(*self._filter.part(self._vector.places(names)))

    def hold(self, names: Sequence[str], mean: np.ndarray) -> None:
        """Some estimated parameters stand still from now on, as if they were known.

        Args:
            names: of k of them.
            mean: (k,) where, as in `Numbers`; zeros are the nominal values.
        """
        places = self._vector.places(names)
        self._filter.replace_part(places, mean, HELD * np.eye(len(places)))
        self._held |= {*names}
        self._use_noise()

    def free(self, names: Sequence[str], numbers: Numbers) -> None:
        """Some parameters are estimated from now on, beginning with what is said of them."""
        self._filter.replace_part(self._vector.places(names), numbers.mean, numbers.rows)
        self._held -= {*names}
        self._use_noise()

    def _use_noise(self) -> None:
        """As the settings have it, and more while the filter finds that it is wrong."""
        vector, (fast, slow) = self._vector, self._opened
        noise = vector.noise.copy()
        if fast or slow:
            opened = FAST_SHARE * fast * vector.opened_fast**2 + slow * vector.opened_slow**2
            noise = np.sqrt(noise**2 + self._settings.opening_factor**2 * opened)
        noise[self._vector.places(self._held)] = 0.0
        self._filter.use(noise, self._settings.gate_probability)

    def start(
        self, inputs: np.ndarray, stamp: float, state: np.ndarray | None = None
    ) -> ModelEstimate:
        """Begin, or begin again, with the parameters that the settings say.

        Args:
            inputs: (m,) as read [inputs' unit].
            stamp: time of the inputs [s].
            state: (nx,) around which to begin; None: the steady state under the inputs.
        """
        inputs = self._checked_inputs(inputs)
        if state is None:
            state = self._at_rest(inputs, self._first)
        else:
            state = checked("state", state, (self._model.state.size,))
        self._inputs, self._stamp = inputs, float(stamp)
        if self._model.inputs.memory is not None:
            self._remembered = self._model.inputs.memory.begin(inputs)
        self._recent = _Recent()
        self._colour.restart()
        self._lasting.restart()
        self._offset = np.zeros(3)
        self._begun = -math.inf
        self._opened, self._safe_until, self._fallbacks = (0.0, 0.0), None, 0
        self._held.clear()
        self._use_noise()
        begin = self._vector.moved(self._first[None], state)[0]
        self._filter.start(begin, np.diag(self._vector.deviation**2))
        return self._estimate(None, math.nan, False, True)

    def update(
        self, inputs: np.ndarray, measurements: Mapping[str, np.ndarray], stamp: float
    ) -> ModelEstimate:
        """Advance to `stamp` and take in what was measured there.

        Between the last stamp and this one the inputs are taken as linear in time. Outputs are
        taken in one after the other, each with its own gate, so that a sensor that lies costs the
        others nothing; the tip comes last.

        Args:
            inputs: (m,) as read at `stamp` [inputs' unit].
            measurements: output -> what was measured, of its shape; of a pose also (4, 4), or (3,):
                the position alone. Empty: predict only.
            stamp: later than the last one [s].

        Raises:
            EstimatorError: not started; a stamp that is not later than the last one, or too much
                later; an unknown output; an array of wrong shape or with non-finite numbers. The
                estimator is left as it was.
        """
        inputs = self._checked_inputs(inputs)
        # `sorted` keeps the order of what is equal.
        names = sorted(measurements, key=lambda name: name == TIP)
        measured = [(name, self._measurements.of(name, measurements[name])) for name in names]
        passed = elapsed(self._stamp, stamp, self._settings.longest_gap)
        self._advance(inputs, passed)
        self._stamp = float(stamp)
        tip_covariance, nis, gated = None, 0.0, False
        innovations: dict[str, np.ndarray] = {}
        for name, measurement in measured:
            correction = self._filter.update(
                measurement.values, measurement.noise, self._measure(name, measurement)
            )
            innovations[name] = correction.innovation
            nis += correction.nis
            gated |= correction.gated
            if name == TIP:
                tip_covariance = correction.measured_covariance[:3, :3]
                left = limited(correction.difference[:3], correction.nis) - self._offset
                self._lasting.add(left)
        self._recent.forget_before(self._stamp - RECENT)
        if not measured:
            return self._estimate(None, math.nan, False, True)
        self._recent.add(self._stamp, gated)
        if TIP in innovations and self._follows_offset:
            self._follow_offset(measurements[TIP], passed)
        if self._judge(innovations):
            self._fall_back()
            tip_covariance = None
        return self._estimate(tip_covariance, nis, gated, False, innovations)

    def _follow_offset(self, measured: np.ndarray, passed: float) -> None:
        """Goes on with the offset of the tip from what was measured of it and the time since the
        last stamp [s]: a first-order low-pass."""
        position = np.asarray(measured, float)
        position = position if position.ndim == 1 else position[:3, 3]
        beside = position - self._tip_positions(self._filter.mean[None])[0]
        share = -math.expm1(-passed / self._settings.tip_offset_time)
        self._offset += share * (beside - self._offset)

    def _judge(self, innovations: Mapping[str, np.ndarray]) -> bool:
        """Open the parameters, or close them, after what was measured at a stamp.

        The tip decides where it is measured: another sensor that lies shall open nothing.

        Returns:
            Whether the filter is lost.
        """
        told, colour = innovations.get(TIP), self._colour
        colour.add(np.concatenate(list(innovations.values())) if told is None else told)
        if self._safe_until is not None:
            self._leave_safety()
        opens = self._settings.reopening and self._safe_until is None
        before, self._opened = self._opened, (colour.fast, colour.slow) if opens else (0.0, 0.0)
        if self._opened != before:
            self._use_noise()
        return self._settings.reopening and self._is_lost()

    def _is_lost(self) -> bool:
        """Whether the innovations stay coloured although the parameters have been open for most of
        a second: most of what is measured lies outside the gate, or a parameter is at a bound."""
        if not self._colour.is_lost or self._stamp < self._begun + TRIED:
            return False
        at_bound = bool(self._vector.at_bounds(self._filter.mean))
        return self._recent.most_gated or (at_bound and self._safe_until is None)

    def _fall_back(self) -> None:
        """Begin anew with parameters of the file, and leave their structure alone.

        From the shape at rest where the measurements lie outside the gate, because nothing is then
        known of the state either; otherwise from the state that explains them.
        """
        safe = np.zeros(self._vector.size)
        state = self._vector.states(self._filter.mean[None])[0]
        if self._recent.most_gated:
            with suppress(ArithmeticError):  # there may be no shape at rest
                state = self._at_rest(self._inputs, safe)
        self._fallbacks += 1
        self._recent = _Recent()
        self._colour.restart()
        self._lasting.restart()
        self._safe_until, self._opened = self._stamp + CALM, (0.0, 0.0)
        self._begun = self._stamp
        self._held |= {*self._vector.structural}
        deviation = self._vector.deviation.copy()
        deviation[self._vector.places(self._held)] = HELD
        self._filter.start(self._vector.moved(safe[None], state)[0], np.diag(deviation**2))
        self._use_noise()

    def _at_rest(self, inputs: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """(nx,) state under inputs as read, with the parameters of a vector (n,)."""
        (acting,) = self._vector.acting(numbers[None], inputs)
        return self._model.equilibrium(acting[0], self._vector.parameters(numbers[None])[0])

    def _leave_safety(self) -> None:
        """Once the innovations have been white for long."""
        assert self._safe_until is not None
        if not self._colour.is_white:
            self._safe_until = self._stamp + CALM
        elif self._stamp > self._safe_until:
            self._safe_until = None
            names = self._vector.structural
            places = self._vector.places(names)
            self.free(
                names, Numbers(np.zeros(len(places)), np.diag(self._vector.deviation[places]))
            )

    def _advance(self, inputs: np.ndarray, duration: float) -> None:
        # A tenth of a period is jitter of the stamps, not worth one more step.
        steps = max(1, math.ceil(duration / self._period - 0.1))
        change = (inputs - self._inputs) / steps
        for step in range(steps):
            begin = self._inputs + step * change
            ramp = self._remembering(begin, begin + change, duration / steps)
            self._filter.predict(ramp, duration / steps)
        self._inputs = inputs
        if steps > _KNOWN:
            # what the inputs did meanwhile is not known: no parameter shall explain it
            share = min(1.0, (steps - _KNOWN) / _UNKNOWN)
            unknown = np.zeros(self._vector.size)
            part = self._vector.state_part
            unknown[part] = share * self._vector.deviation[part]
            self._filter.widen(unknown)

    def _remembering(
        self, begin: np.ndarray, end: np.ndarray, dt: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Readings (m,) at the ends of a step, with what the model remembers behind each."""
        memory = self._model.inputs.memory
        if memory is None:
            return begin, end
        before = self._remembered
        self._remembered = memory.along(before, np.stack((begin, end))[None], dt)[0, 1]
        return np.concatenate((begin, before)), np.concatenate((end, self._remembered))

    def _predict(
        self, points: np.ndarray, ramp: tuple[np.ndarray, np.ndarray], dt: float
    ) -> np.ndarray:
        vector = self._vector
        begin, end = vector.acting(points, *ramp)
        states = self._model.step(vector.states(points), begin, end, vector.parameters(points), dt)
        return vector.moved(points, states)

    def _measure(self, name: str, measurement: Measurement) -> Measure:
        vector = self._vector

        def measure(points: np.ndarray) -> np.ndarray:
            states, parameters = vector.states(points), vector.parameters(points)
            return measurement.compared(self._observed(name, points, states, parameters))

        return measure

    def _tip_positions(self, points: np.ndarray) -> np.ndarray:
        states, parameters = self._vector.states(points), self._vector.parameters(points)
        return positions(self._observed(TIP, points, states, parameters))

    def _observed(
        self, name: str, points: np.ndarray, states: np.ndarray, parameters: np.ndarray
    ) -> np.ndarray:
        """(B, ...) an output, under the inputs of the last stamp."""
        acting = None
        if self._model.outputs[name].needs_inputs:
            felt = np.concatenate((self._inputs, self._remembered))
            (acting,) = self._vector.acting(points, felt)
        return self._model.observe((name,), states, acting, parameters)[name]

    def _estimate(
        self,
        tip_covariance: np.ndarray | None,
        nis: float,
        gated: bool,
        predicted_only: bool,
        innovations: Mapping[str, np.ndarray] = MappingProxyType({}),
    ) -> ModelEstimate:
        vector, mean = self._vector, self._filter.mean
        if tip_covariance is None:
            tip_covariance = self._filter.observe().covariance
        states, parameters = vector.states(mean[None]), vector.parameters(mean[None])
        values = vector.values(mean, parameters[0])
        factor, units = self._filter.factor, vector.units(values)
        estimated = slice(vector.state_part.stop, None)
        of_estimated = factor[:, estimated]
        squares = np.einsum("ij,ij->j", of_estimated, of_estimated)
        found = (units[estimated] * np.sqrt(squares)).tolist()
        return ModelEstimate(
            stamp=self._stamp,
            state=states[0],
            factor=factor,
            units=units,
            parameters=values,
            parameters_std=dict.fromkeys(values, 0.0) | dict(zip(vector.names, found, strict=True)),
            tip_position=positions(self._observed(TIP, mean[None], states, parameters))[0]
            + self._offset,
            tip_position_covariance=tip_covariance + self._lasting.covariance,
            nis=nis,
            gated=gated,
            predicted_only=predicted_only,
            repairs=self._filter.repairs,
            recent_updates=self._recent.updates,
            recent_gated=self._recent.gated,
            at_bounds=vector.at_bounds(mean),
            innovations=innovations,
            opened_fast=self._opened[0],
            opened_slow=self._opened[1],
            innovation_correlation=self._colour.correlation,
            fallbacks=self._fallbacks,
            is_safe=self._safe_until is not None,
            lasting_correlation=self._colour.lasting,
            lasts=self._colour.lasts,
            tip_lasting_covariance=self._lasting.covariance,
            tip_offset=self._offset.copy(),
        )

    def _checked_inputs(self, inputs: np.ndarray) -> np.ndarray:
        described = self._model.inputs
        return checked(f"{described.quantity}s", inputs, (described.size,))
