"""What a joint filter of state and parameters holds in its vector, over any model."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numba
import numpy as np

from softcr_estimation.errors import EstimatorError
from softcr_estimation.estimator_settings import EVERYTHING, ModelEstimatorSettings
from softcr_models.model import (
    SENSOR_DEVIATION,
    Inputs,
    Layout,
    Model,
    Parameter,
    nominal_parameters,
)

# Where nothing else is known, offsets are in units of a hundredth of the inputs' range.
_PASCAL_SCALE, _RANGE_SHARE = 1e3, 0.01
_OFFSET_LIMIT = 20.0  # [scale]
_GAIN_RANGE = 2.0
_DEVIATION = 0.5  # of states at the start, where the settings name none [state scale]
# Random walks while the filter finds that it is wrong [1/sqrt(s)].
_OFFSET_OPENED, _GAIN_OPENED = 1.0, 0.03
_NEAR_BOUND = 0.01  # [distance of the bounds]
_ROUNDING = 1e-6  # of a number that was written down and read again [-]


@dataclass(frozen=True)
class Sensors:
    """What may be estimated about the sensors of a model's inputs.

    An input that acts is gain * reading + offset. A gain stands for a wrong sensor and for a wrong
    lever arm of its actuator alike: what moves the robot is their product.

    Attributes:
        offsets: one for each input, linear: of pressures in kPa.
        gains: one for each input, logarithmic.
        groups: names that stand for all offsets, for all gains.
    """

    offsets: tuple[Parameter, ...]
    gains: tuple[Parameter, ...]
    groups: Mapping[str, tuple[Parameter, ...]]

    @classmethod
    def of(cls, inputs: Inputs, settings: ModelEstimatorSettings) -> "Sensors":
        """Of all inputs; names begin with the inputs' quantity."""
        scales = np.full(inputs.size, _PASCAL_SCALE)
        if inputs.unit != "Pa":
            scales = _RANGE_SHARE * inputs.range
        limit, spread = settings.offset_limit, settings.parameter_range or _GAIN_RANGE
        bounds = [_OFFSET_LIMIT * scale if limit is None else limit for scale in scales.tolist()]
        offsets = tuple(
            Parameter(
                name, inputs.unit, 0.0, -bound, bound, "linear",
                noise=1e-3, deviation=0.1, scale=scale, opened=_OFFSET_OPENED,
            )
            for name, bound, scale in zip(
                inputs.offset_names, bounds, scales.tolist(), strict=True
            )
        )  # fmt: skip
        gains = tuple(
            Parameter(
                name, "-", 1.0, 1.0 / spread, spread,
                noise=2e-4, deviation=inputs.gain_deviation, opened=_GAIN_OPENED,
            )
            for name in inputs.gain_names
        )  # fmt: skip
        groups = {f"{inputs.quantity}_offsets": offsets, f"{inputs.quantity}_gains": gains}
        return cls(offsets, gains, groups)


class JointVector:
    """Which number of a filter's vector stands for what.

    First the state / `model.state.scale`; then each estimated parameter of the model, ln(value /
    nominal) or (value - nominal) / scale by its transform; then estimated offsets of the inputs'
    sensors / scale, in kPa for pressures; then logarithms of estimated gains.

    Attributes:
        size: n, of the vector.
        names: of all estimated parameters, in the vector's order.
        state_part: where the state stands.
        noise, deviation: (n,) of the random walks [1/sqrt(s)], at the start [-].
        opened_fast, opened_slow: (n,) random walks of the parameters that either finding opens, as
            long as the filter finds that it is wrong [1/sqrt(s)].
        low, high: (n,) bounds, infinite for states.
    """

    def __init__(self, model: Model, settings: ModelEstimatorSettings) -> None:
        """See ModelEstimator; raises EstimatorError where the settings name something that does not
        exist."""
        self._model = model
        sensors = Sensors.of(model.inputs, settings)
        known = (*model.parameters, *sensors.offsets, *sensors.gains)
        chosen = _chosen(model, sensors, settings)
        self._estimated = tuple(each for each in known if each.name in chosen)
        self.names = tuple(each.name for each in self._estimated)

        states, parameters = model.state.size, _places(model.parameters, chosen)
        self._all_names = tuple(p.name for p in model.parameters) + self.names[len(parameters) :]
        offsets, gains = _places(sensors.offsets, chosen), _places(sensors.gains, chosen)
        self._offset_scale = np.array([sensors.offsets[i].scale for i in offsets])
        ends = np.cumsum([states, len(parameters), len(offsets), len(gains)]).tolist()
        self.state_part = slice(ends[0])
        self._offset_part, self._gain_part = map(slice, ends[1:-1], ends[2:])
        self.size = ends[-1]
        self._parameters = _Numbers.of(model.parameters, chosen, states)
        self._sensors = _Numbers.of((*sensors.offsets, *sensors.gains), chosen, ends[1])
        # Dividing the points by the scale would take four times as long.
        self._inverse_scale = 1.0 / model.state.scale

        noises = _by_name(settings.noises, "noises", known, sensors)
        deviations = _by_name(settings.deviations, "deviations", known, sensors)
        state_noise = _by_group(model.state, settings.state_noises, "state_noises",
                                settings.state_noise)  # fmt: skip
        state_deviation = _by_group(model.state, settings.state_deviations, "state_deviations",
                                    settings.initial_state_deviation or _DEVIATION)  # fmt: skip
        factor = settings.parameter_noise_factor
        self.noise = self._filled(
            state_noise,
            (factor * _number(p, noises, p.noise) for p in self._estimated),
        )
        self.deviation = self._filled(
            state_deviation, (_number(p, deviations, p.deviation) for p in self._estimated)
        )
        openings = _by_name(settings.openings, "openings", known, sensors)
        opened = [_opened(p, openings.get(p.name, p.opened)) for p in self._estimated]
        walks = zip(*opened, strict=True) if opened else ((), ())
        self.opened_fast, self.opened_slow = (
            self._filled(np.zeros(states), each) for each in walks
        )
        free = np.full(states, np.inf)
        bounds = [_bounds(each, settings.parameter_range) for each in self._estimated]
        self.low = self._filled(-free, (low for low, _ in bounds))
        self.high = self._filled(free, (high for _, high in bounds))
        self._units = self._filled(model.state.scale, (each.scale for each in self._estimated))
        self._logarithms = [
            (i, p.name) for i, p in enumerate(self._estimated, states) if p.transform == "log"
        ]
        low, high = self.low[states:], self.high[states:]
        margin = _NEAR_BOUND * np.where(np.isfinite(high - low), high - low, 0.0)
        # A payload of none stands at its bound and is what the model expects.
        self._near_low = np.where(low + margin < 0.0, low + margin, -np.inf)
        self._near_high = np.where(high - margin > 0.0, high - margin, np.inf)

    def states(self, points: np.ndarray) -> np.ndarray:
        """(B, nx) states of points (B, n)."""
        return points[:, self.state_part] * self._model.state.scale

    def parameters(self, points: np.ndarray) -> np.ndarray:
        """(B, P) parameters of the model."""
        return self._parameters.at(points)

    def acting(self, points: np.ndarray, *readings: np.ndarray) -> tuple[np.ndarray, ...]:
        """For each reading (m,) of the inputs' sensors what then acts, (B, m) [inputs' unit].

        What is remembered behind a reading, (m + k,), stays as it is: (B, m + k).
        """
        sensors, count = self._sensors.at(points), self._model.inputs.size
        acting = tuple(np.empty((len(points), reading.size)) for reading in readings)
        for each, reading in zip(acting, readings, strict=True):
            _feel(sensors, reading, count, each)
        return acting

    def moved(self, points: np.ndarray, states: np.ndarray) -> np.ndarray:
        """(B, n) the points with other states (B, nx)."""
        images = points.copy()
        np.multiply(states, self._inverse_scale, out=images[:, self.state_part])
        return images

    def at_values(self, values: Mapping[str, float]) -> np.ndarray:
        """(n,) of estimated parameters by name [their units], everything else nominal, states zero.

        Raises:
            EstimatorError: a name is not estimated, or its value lies outside its bounds.
        """
        vector = np.zeros(self.size)
        known = {p.name: (i, p) for i, p in enumerate(self._estimated, self.state_part.stop)}
        for name, value in values.items():
            if name not in known:
                raise EstimatorError(
                    f"begins_with: {name!r} is not estimated; allowed are {', '.join(known)}"
                )
            place, parameter = known[name]
            number, ends = _coordinate(parameter, value), (self.low[place], self.high[place])
            if not ends[0] - _ROUNDING <= number <= ends[1] + _ROUNDING:
                low, high = (_value(parameter, end) for end in ends)
                raise EstimatorError(
                    f"begins_with: {name} = {value:g} is outside its bounds: must be from {low:g} "
                    f"to {high:g}"
                )
            vector[place] = np.clip(number, *ends)
        return vector

    def values(self, mean: np.ndarray, parameters: np.ndarray) -> dict[str, float]:
        """Name -> value of all parameters (P,) of the model, then of the estimated sensors."""
        offsets = (self._offset_scale * mean[self._offset_part]).tolist()
        gains = np.exp(mean[self._gain_part]).tolist()
        return dict(zip(self._all_names, (*parameters.tolist(), *offsets, *gains), strict=True))

    def units(self, values: Mapping[str, float]) -> np.ndarray:
        """(n,) what a small change by 1 of each number means, at parameters of these values."""
        # A small change of a logarithm, times the value, is the change of the value.
        units = self._units.copy()
        for place, name in self._logarithms:
            units[place] = values[name]
        return units

    def at_bounds(self, mean: np.ndarray) -> tuple[str, ...]:
        """Names of parameters closer to a bound than a hundredth of the way between their bounds.

        Not those on a bound exactly: sigma points are clipped, which draws their mean inwards.
        """
        numbers = mean[self.state_part.stop :]
        near = (numbers <= self._near_low) | (numbers >= self._near_high)
        return tuple(self.names[i] for i in near.nonzero()[0].tolist())

    def places(self, names: Iterable[str]) -> list[int]:
        """Of estimated parameters, in the vector; ValueError where one is not estimated."""
        return [self.state_part.stop + self.names.index(name) for name in names]

    @property
    def structural(self) -> tuple[str, ...]:
        """Names of the estimated parameters that the slow finding opens."""
        return tuple(each.name for each in self._estimated if each.opened and each.opens == "slow")

    def _filled(self, of_states: np.ndarray, of_parameters: Iterable[float]) -> np.ndarray:
        vector = np.empty(self.size)
        vector[self.state_part] = of_states
        vector[self.state_part.stop :] = tuple(of_parameters)
        return vector


@dataclass(frozen=True, eq=False)
class _Numbers:
    """How some numbers follow from a filter's vector.

    Attributes:
        places: (k,) in the vector; -1 of what is not estimated.
        nominal: (k,) their values there.
        scale: (k,) of linear ones; 0 of those whose logarithm the vector holds.
    """

    places: np.ndarray
    nominal: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, parameters: Sequence[Parameter], chosen: Sequence[str], first: int) -> "_Numbers":
        """Of parameters, the chosen ones of which stand in the vector from `first` on."""
        places = np.full(len(parameters), -1)
        estimated = _places(parameters, chosen)
        places[estimated] = first + np.arange(len(estimated))
        scales = (0.0 if each.transform == "log" else each.scale for each in parameters)
        return cls(places, nominal_parameters(parameters), np.array([*scales]))

    def at(self, points: np.ndarray) -> np.ndarray:
        """(B, k) at points (B, n)."""
        found = np.empty((len(points), self.places.size))
        _read(points, self.places, self.nominal, self.scale, found)
        return found


@numba.njit(cache=True, error_model="numpy")
def _read(points, places, nominal, scale, found):
    """Fills `found` (B, k); see `_Numbers`."""
    for b in range(found.shape[0]):
        for i in range(places.shape[0]):
            found[b, i] = nominal[i]
            if places[i] >= 0:
                number = points[b, places[i]]
                if scale[i] == 0.0:
                    found[b, i] *= math.exp(number)
                else:
                    found[b, i] += scale[i] * number


@numba.njit(cache=True, error_model="numpy")
def _feel(sensors, reading, count, found):
    """Fills `found` (B, m + k) with what acts of a reading (m + k,), by the m offsets and then the
    m gains of sensors (B, 2 m)."""
    for b in range(found.shape[0]):
        for i in range(count):
            found[b, i] = sensors[b, count + i] * reading[i] + sensors[b, i]
        for i in range(count, reading.shape[0]):
            found[b, i] = reading[i]


def _coordinate(parameter: Parameter, value: float) -> float:
    """In the filter's vector, of a value in the parameter's unit."""
    if parameter.transform == "linear":
        return (value - parameter.nominal) / parameter.scale
    ratio = value / parameter.nominal
    return math.log(ratio) if ratio > 0.0 else -math.inf


def _value(parameter: Parameter, coordinate: float) -> float:
    """Value in the parameter's unit, of its coordinate in the filter's vector."""
    if parameter.transform == "linear":
        return parameter.nominal + parameter.scale * coordinate
    return parameter.nominal * math.exp(coordinate)


def _places(parameters: Sequence[Parameter], chosen: Sequence[str]) -> list[int]:
    return [i for i, each in enumerate(parameters) if each.name in chosen]


def _chosen(model: Model, sensors: Sensors, settings: ModelEstimatorSettings) -> list[str]:
    """Names of what is estimated, each once."""
    asked = settings.parameters
    if asked == (EVERYTHING,):
        inputs = model.inputs
        of_sensors = tuple(sensors.groups) if inputs.quantity == "pressure" else ()
        if not of_sensors and inputs.gain_deviation > SENSOR_DEVIATION:
            of_sensors = (f"{inputs.quantity}_gains",)
        asked = (*(each.name for each in model.parameters), *of_sensors)
    names: list[str] = []
    for name in asked:
        members = sensors.groups.get(name)
        names += [name] if members is None else [each.name for each in members]
    known = [p.name for p in (*model.parameters, *sensors.offsets, *sensors.gains)]
    for name in names:
        if name not in known:
            raise EstimatorError(
                f"parameters: {name!r} unknown; known are {', '.join((*known, *sensors.groups))}"
            )
    if len(set(names)) != len(names):
        raise EstimatorError(f"parameters: {', '.join(names)} holds a name twice")
    return names


def _by_name(
    numbers: Mapping[str, float], setting: str, known: Sequence[Parameter], sensors: Sensors
) -> dict[str, float]:
    """A name's own number counts before its group's."""
    names = [each.name for each in known]
    for name in numbers:
        if name not in names and name not in sensors.groups:
            raise EstimatorError(
                f"{setting}: {name!r} unknown; known are {', '.join((*names, *sensors.groups))}"
            )
    of_groups = {
        each.name: numbers[group]
        for group, members in sensors.groups.items()
        if group in numbers
        for each in members
    }
    return of_groups | {name: number for name, number in numbers.items() if name in names}


def _number(parameter: Parameter, given: Mapping[str, float], default: float) -> float:
    """In the filter's coordinates; given in the parameter's unit where that is linear."""
    if parameter.name not in given:
        return default
    number = given[parameter.name]
    return number if parameter.transform == "log" else number / parameter.scale


def _opened(parameter: Parameter, walk: float) -> tuple[float, float]:
    """Random walk while the filter is wrong, by the fast and by the slow finding [1/sqrt(s)]."""
    return (walk, 0.0) if parameter.opens == "fast" else (0.0, walk)


def _by_group(
    layout: Layout, numbers: Mapping[str, float], setting: str, default: float
) -> np.ndarray:
    try:
        return layout.by_group(numbers, default)
    except KeyError as error:
        raise EstimatorError(f"{setting}: {error.args[0]}") from None


def _bounds(parameter: Parameter, spread: float | None) -> tuple[float, float]:
    """In the filter's coordinates; `spread` is settings.parameter_range."""
    if parameter.transform == "log" and spread is not None:
        return -math.log(spread), math.log(spread)
    return _coordinate(parameter, parameter.low), _coordinate(parameter, parameter.high)
