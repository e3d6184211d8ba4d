"""A robot's parameters from recordings, Licher et al. 2025, Sec. III-I: statics, damping, lag.

As in the paper, the errors of each group (tip position, base force, base moment) are weighted by
the inverse of their mean length at the first guess. Instead of a particle swarm (kept for
comparison in `particle_swarm`) this is least squares: at a steady state x, f(x, q) = 0, a changed
parameter moves x by one Newton step of the changed rod; along a motion, sensitivities are
differences. Parameters are estimated as logarithms, so they stay positive; those of a
`pressure_chain`, which may be zero, as they are. Their names are those of `identifiable`.

The search runs on a coarse rod. Its outputs are corrected by what the fine rod's differ by at the
best parameters so far, until these no longer change (output space mapping, Bandler et al. 2004,
"Space mapping: the state of the art"). The residual that is minimised is the fine rod's, at the
cost of a few evaluations of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares
from scipy.special import ndtri

from softcr_models.chain.chain_model import ChainModel
from softcr_models.chain.pressure import PressureLag
from softcr_models.identification.identifiable import (
    chosen_of,
    names_of,
    parameters_of,
    with_parameters,
)
from softcr_models.identification.measured_groups import Group, groups_of, seen
from softcr_models.prediction import RodPrediction
from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod, EquilibriumError
from softcr_models.rod.description import rod_inputs
from softcr_models.rod.discretise import share_intervals
from softcr_models.rod_model.rod_model import RodModel

CONFIDENCE = 0.95
NOT_EXCITED = 0.2  # a relative interval wider than this says nothing
LARGEST_FACTOR = (
    4.0  # between a first guess and what is found: rods far beyond have no steady state
)
COARSE_INTERVALS, COARSE_SUBSTEPS = 6, 2
SUBSTEPS = 8
"""Of a motion's step: with three the scheme's own damping is 2 % of the rod's, with eight 0.1 %."""
_STEP = 1e-6  # of a logarithm, for differences
_MOTION_STEP = 1e-5  # likewise, along a motion
_CORRECTIONS = 6  # of the coarse rod, at most
_SETTLED = 1e-3  # of a standard deviation: what a correction changes no more
_EVALUATIONS = 30  # of a search, at most: what has not settled by then runs along a valley


@dataclass(frozen=True, eq=False)
class Recording:
    """What was measured, a row per configuration (statics) or per sample (motion).

    Attributes:
        inputs: (T, m) in the order of the robot's actuators: gauge pressures [Pa], tensions [N].
        outputs: (T, 3) by the names of `measured_groups` [their units]; NaN where a sensor was
            silent.
        period: between samples [s]; 0 for statics.
        run_in: samples at the beginning of a motion that the model follows and is not judged by: it
            begins at rest, and where the robot did not, the difference has to die away.
    """

    inputs: np.ndarray
    outputs: Mapping[str, np.ndarray]
    period: float = 0.0
    run_in: int = 0

    def __len__(self) -> int:
        return len(self.inputs)

    def rows(self, chosen: slice | np.ndarray, run_in: int = 0) -> "Recording":
        """Some of the rows; the first `run_in` of them are not judged."""
        outputs = {name: values[chosen] for name, values in self.outputs.items()}
        return Recording(self.inputs[chosen], outputs, self.period, run_in)


class Work:
    """How far a search has come, in seconds on a usual machine.

    Attributes:
        done: so many are done.
        expected: so many are needed, as far as can be told.
    """

    def __init__(self, tell: Callable[["Work"], None] = lambda work: None) -> None:
        """Work that is told to `tell` whenever some of it is done."""
        self.done = self.expected = 0.0
        self._tell = tell

    def expect(self, seconds: float) -> None:
        """So much is still to be done."""
        self.expected = self.done + seconds
        self._tell(self)

    def spend(self, seconds: float) -> None:
        """So much was done."""
        self.done += seconds
        self.expected = max(self.expected, self.done)
        self._tell(self)


@dataclass(frozen=True, eq=False)
class Fit:
    """Parameters found.

    Attributes:
        names: (P,).
        values: (P,) in SI units.
        intervals: (P,) half widths of the 95 % confidence intervals, relative to the values; of a
            number of a chain in its `Identifiable.scale`.
        correlation: (P, P) of the estimates; 0 beside a parameter that changed nothing.
        robot: with the values in it.
        evaluations: models evaluated on the whole recording.
    """

    names: tuple[str, ...]
    values: np.ndarray
    intervals: np.ndarray
    correlation: np.ndarray
    robot: Robot
    evaluations: int

    @property
    def not_excited(self) -> tuple[str, ...]:
        """Names of the parameters that the recording says next to nothing about, and of those that
        went LARGEST_FACTOR away from the first guess: beyond would have been better still."""
        pairs = zip(self.names, self.intervals, strict=True)
        return tuple(name for name, width in pairs if not width < NOT_EXCITED)


def static_configurations(robot: Robot, levels: int = 6) -> np.ndarray:
    """(K, m) inputs [Pa, N]: each actuator, each pair, all of them, at evenly spaced levels.

    For three chambers and six levels the 42 of the paper. The highest level is 60 % of the range
    for one actuator alone, so that no configuration buckles.
    """
    count, limits = len(robot.actuators), rod_inputs(robot)
    masks = [np.eye(count)[i] for i in range(count)]
    masks += [np.eye(count)[i] + np.eye(count)[j] for i in range(count) for j in range(i)]
    if count > 1:
        masks.append(np.ones(count))
    highest = 0.6 * (limits.high - limits.low)
    steps = highest * np.arange(1, levels + 1)[:, None] / levels
    return limits.low + np.array([step * mask for mask in masks for step in steps])


def identify_static(
    robot: Robot,
    recording: Recording,
    intervals: int = 10,
    names: tuple[str, ...] | None = None,
    start: Mapping[str, float] | None = None,
    work: Work | None = None,
) -> Fit:
    """Lengths, mass at the tip, bending and dilatation compliances from configurations at rest.

    Args:
        robot: the first guess; what is not identified stays.
        recording: statics.
        intervals: of the model's rod, of each segment on average.
        names: those of the stage `rest` that are identified; None: all.
        start: values by name where the search begins; None: the first guess.
        work: is told what was done.

    Raises:
        EquilibriumError: a configuration has no steady state at the beginning.
    """
    inputs, chosen = recording.inputs, names_of(robot, "rest") if names is None else names
    groups = fitted_groups(robot, recording)

    def level(count: int) -> _Level:
        own, rests = _with_grid(robot, count), _Rests(inputs, count)
        return _Level(
            own,
            lambda candidate: rests.seen(candidate, groups),
            lambda values: _steady_sensitivities(own, chosen, values, groups, rests),
            _seconds_at_rest(robot, len(inputs), count),
        )

    levels = [level(count) for count in _fineness(intervals)]
    return _fit(robot, chosen, stacked(groups, recording.outputs), levels, start, work)


def identify_motion(
    robot: Robot,
    recording: Recording,
    intervals: int = 10,
    names: tuple[str, ...] | None = None,
    start: Mapping[str, float] | None = None,
    work: Work | None = None,
) -> Fit:
    """Bending relaxation times, or what `names` tells, from a motion; see `identify_static`.

    Raises:
        ValueError: the model diverges at the beginning of the search.
        EquilibriumError: the motion begins where the robot has no steady state.
    """
    groups, judged = fitted_groups(robot, recording), slice(recording.run_in, None)

    def level(count: int, substeps: int) -> _Level:
        return _Level(
            _with_grid(robot, count),
            lambda candidate: stacked(
                groups, in_motion(candidate, recording, groups, count, substeps)
            )[judged],
            None,
            _seconds_in_motion(robot, len(recording), count, substeps),
        )

    levels = [level(min(intervals, COARSE_INTERVALS), COARSE_SUBSTEPS), level(intervals, SUBSTEPS)]
    measured = stacked(groups, recording.outputs)[judged]
    chosen = names_of(robot, "motion") if names is None else names
    return _fit(robot, chosen, measured, levels, start, work)


def expected_work(robot: Robot, recording: Recording, intervals: int, names: int) -> float:
    """Seconds on a usual machine that a fit of so many parameters is expected to take."""
    count = min(intervals, COARSE_INTERVALS)
    if recording.period:
        coarse = _seconds_in_motion(robot, len(recording), count, COARSE_SUBSTEPS)
        fine = _seconds_in_motion(robot, len(recording), intervals, SUBSTEPS)
        return 9.0 * (names + 1) * coarse + 4.0 * fine
    coarse, fine = (_seconds_at_rest(robot, len(recording), n) for n in (count, intervals))
    return 9.0 * 2.5 * coarse + 4.0 * fine


def identify_excited(
    identify: Callable[[tuple[str, ...], Mapping[str, float]], Fit], names: tuple[str, ...]
) -> tuple[Fit | None, tuple[str, ...]]:
    """A fit of what a recording says something about, and the names of all else.

    What is not excited would take any value and spoil the others: the least known is left at its
    first guess and the rest is fitted again, until all that remains is known.

    Args:
        identify: names, and values where the search begins -> their fit.
        names: of everything that is looked for.
    """
    left_out: tuple[str, ...] = ()
    start: dict[str, float] = {}
    while names:
        fit = identify(names, start)
        if not fit.not_excited:
            return fit, left_out
        width = dict(zip(fit.names, np.nan_to_num(fit.intervals, nan=np.inf), strict=True))
        worst = max(names, key=lambda name: width[name])
        left_out = (*left_out, worst)
        names = tuple(name for name in names if name != worst)
        # what is as little known may be anywhere
        known = zip(fit.names, fit.values.tolist(), fit.intervals.tolist(), strict=True)
        start = {name: value for name, value, wide in known if wide < NOT_EXCITED}
    return None, left_out


def identify_lag(
    robot: Robot,
    commands: np.ndarray,
    inputs: np.ndarray,
    period: float,
    names: tuple[str, ...] | None = None,
    start: Mapping[str, float] | None = None,
) -> Fit:
    """Gain and pole of the lag (32) of the inputs behind their commands.

    Args:
        robot: the first guess; it has a lag.
        commands: (T, m) each held for a period [Pa, N].
        inputs: (T + 1, m) measured at the beginning of each period and at the end [Pa, N].
        period: [s].
        names: those of the stage `lag` that are identified; None: both.
        start: values by name where the search begins; None: the first guess.
    """
    limits = rod_inputs(robot)
    span = limits.high - limits.low

    def predicted(candidate: Robot) -> np.ndarray:
        path = lag_of(candidate).trajectory(inputs[0], commands[None], period)[0]
        return (path / span)[:, None]

    chosen = names_of(robot, "lag") if names is None else names
    return _fit(robot, chosen, (inputs / span)[:, None], [_Level(robot, predicted)], start)


def lag_of(robot: Robot) -> PressureLag:
    """Of a robot's inputs behind their commands; raises ValueError for one without."""
    lag = rod_inputs(robot).lag
    if not isinstance(lag, PressureLag):
        raise ValueError(f"robot {robot.name} has no lag")
    return lag


def static_cost(
    robot: Robot, recording: Recording, intervals: int = 10
) -> Callable[[np.ndarray], float]:
    """(P,) logarithms of all of the stage `rest` -> the squares `identify_static` minimises.

    Where a rod has no steady state the cost is inf.
    """
    groups, names = fitted_groups(robot, recording), names_of(robot, "rest")
    measured = stacked(groups, recording.outputs)

    def predicted(candidate: Robot) -> np.ndarray:
        return stacked(groups, at_rest(candidate, recording.inputs, groups, intervals)[0])

    weights = _weights(measured, predicted(robot))

    def cost(logarithms: np.ndarray) -> float:
        candidate = with_parameters(robot, names, np.exp(logarithms).tolist())
        try:
            found = predicted(candidate)
        except EquilibriumError:
            return np.inf
        return float(np.nansum((weights * (found - measured)) ** 2))

    return cost


def fitted_groups(robot: Robot, recording: Recording) -> tuple[Group, ...]:
    """The groups of a recording that parameters are fitted to."""
    return tuple(
        each for each in groups_of(robot) if each.fitted and each.name in recording.outputs
    )


def stacked(groups: Sequence[Group], values: Mapping[str, np.ndarray]) -> np.ndarray:
    """(T, G, 3) of groups by name."""
    return np.stack([values[each.name] for each in groups], axis=1)


def at_rest(
    robot: Robot, inputs: np.ndarray, groups: Sequence[Group], intervals: int
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """What is seen of a robot at rest.

    Args:
        robot: that rests.
        inputs: (K, m) [Pa, N].
        groups: that are looked at.
        intervals: of its rod, of each segment on average.

    Returns:
        (K, 3) by name of group, and (K, nx) states.

    Raises:
        EquilibriumError: a configuration has no steady state.
    """
    rod, states = _Rests(inputs, intervals).of(robot)
    return seen(_model(rod), groups, states, inputs), states


class _Rests:
    """Rests under inputs (K, m), on so many intervals of each segment. Those of the last robot are
    kept: a search asks for what is seen of it and then for the sensitivities."""

    def __init__(self, inputs: np.ndarray, intervals: int) -> None:
        self.inputs, self.intervals = inputs, intervals
        self._last: tuple[CosseratRod, np.ndarray] | None = None

    def of(self, robot: Robot) -> tuple[CosseratRod, np.ndarray]:
        """The rod and its states (K, nx); raises EquilibriumError."""
        if self._last is None or self._last[0].robot != robot:
            rod = CosseratRod(robot, self.intervals)
            self._last = rod, np.array([rod.equilibrium(row) for row in self.inputs])
        return self._last

    def seen(self, robot: Robot, groups: Sequence[Group]) -> np.ndarray:
        """(K, G, 3) of groups."""
        rod, states = self.of(robot)
        return stacked(groups, seen(_model(rod), groups, states, self.inputs))


def in_motion(
    robot: Robot,
    recording: Recording,
    groups: Sequence[Group],
    intervals: int,
    substeps: int = SUBSTEPS,
) -> dict[str, np.ndarray]:
    """What is seen of a robot along a motion from rest; inputs are linear between samples.

    Args:
        robot: that moves.
        recording: its inputs and their period.
        groups: that are looked at.
        intervals: of its rod, of each segment on average.
        substeps: of each step.

    Returns:
        (T, 3) by name of group; NaN from where the model diverges.

    Raises:
        EquilibriumError: the motion begins where the robot has no steady state.
    """
    rod, inputs = CosseratRod(robot, intervals), recording.inputs
    model: RodModel = _model(rod, substeps)
    if robot.pressure_chain is not None:
        model = ChainModel(model, robot.pressure_chain)
        if (memory := model.inputs.memory) is not None:
            (past,) = memory.along(memory.begin(inputs[0]), inputs[None], recording.period)
            inputs = np.hstack((inputs, past))
    parameters = model.nominal_parameters
    start = model.equilibrium(inputs[0], parameters)
    later = model.rollout(start, inputs[None], parameters, recording.period)[0]
    return seen(model, groups, np.vstack([start, later]), inputs)


class _Level(NamedTuple):
    """A model of one fineness.

    Attributes:
        robot: the first guess, with a grid that stays when lengths change.
        predicted: a robot -> (T, G, 3).
        sensitivities: (P,) coordinates -> (T, G, 3, P); None: differences.
        seconds: that an evaluation takes on a usual machine.
    """

    robot: Robot
    predicted: Callable[[Robot], np.ndarray]
    sensitivities: Callable[[np.ndarray], np.ndarray] | None = None
    seconds: float = 0.0


def _fit(
    robot: Robot,
    names: tuple[str, ...],
    measured: np.ndarray,
    levels: Sequence[_Level],
    start: Mapping[str, float] | None,
    work: Work | None = None,
) -> Fit:
    """Weighted least squares over logarithms.

    Args:
        measured: (T, G, width) groups of numbers, each group with a weight of its own; NaN is not
            judged.
        levels: one, or a coarse one to search in and a fine one that corrects it.
    """
    numbers, work = _Coordinates(robot, names), work or Work()
    coarse, fine = levels[0], levels[-1]
    evaluations = 0

    def predicted(level: _Level, coordinates: np.ndarray) -> np.ndarray:
        nonlocal evaluations
        evaluations += 1
        found = level.predicted(with_parameters(level.robot, names, numbers.values(coordinates)))
        work.spend(level.seconds)
        return found

    def corrected(coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of the fine level, and what it adds to the coarse one."""
        if len(levels) == 1:
            return predicted(coarse, coordinates), np.zeros(())
        best = predicted(fine, coordinates)
        return best, best - predicted(coarse, coordinates)

    point = numbers.coordinates(start or {})
    best, correction = corrected(point)
    if not np.isfinite(best).all():
        raise ValueError("the model diverges at the first guess")
    scale = _weights(measured, best)

    def residual(coordinates: np.ndarray) -> np.ndarray:
        try:
            found = predicted(coarse, coordinates)
        except EquilibriumError:
            return np.full(measured.size, np.nan)  # the search turns back
        return _known(scale * (found + correction - measured), measured).ravel()

    def jacobian(coordinates: np.ndarray) -> np.ndarray:
        nonlocal evaluations
        if coarse.sensitivities is not None:
            evaluations += 1
            found = coarse.sensitivities(coordinates)
            work.spend(1.5 * coarse.seconds)
            known = np.isfinite(measured)[..., None]
            return np.where(known, scale[..., None] * found, 0.0).reshape(-1, len(names))
        here = residual(coordinates)
        steps = numbers.inwards(coordinates, _MOTION_STEP)
        columns = [(residual(coordinates + step) - here) / step.sum() for step in np.diag(steps)]
        return np.array(columns).T

    for _ in range(_CORRECTIONS):
        found = least_squares(
            residual, point, jac=jacobian, x_scale=0.1, xtol=1e-9, ftol=1e-6, gtol=1e-12,
            bounds=numbers.bounds, max_nfev=_EVALUATIONS,
        )  # fmt: skip
        change, point = found.x - point, found.x
        best, correction = corrected(point)
        left = _known(scale * (best - measured), measured)
        covariance = _covariance(found.jac, left.ravel(), measured)
        deviation = np.sqrt(covariance.diagonal())
        small = np.maximum(_SETTLED * np.nan_to_num(deviation, posinf=1.0), 1e-8)
        if len(levels) == 1 or (np.abs(change) < small).all():
            break
    # what would go farther than that is no value that was found
    deviation[numbers.at_bounds(point)] = np.inf
    with np.errstate(invalid="ignore"):
        correlation = np.nan_to_num(covariance / np.outer(deviation, deviation))
    values = numbers.values(point)
    return Fit(
        names,
        np.array(values),
        ndtri(0.5 + CONFIDENCE / 2) * deviation,
        correlation,
        with_parameters(robot, names, values),
        evaluations,
    )


class _Coordinates:
    """What is looked for: logarithms, and numbers that may be zero in units of their scale."""

    def __init__(self, robot: Robot, names: tuple[str, ...]) -> None:
        chosen, values = chosen_of(robot, names), parameters_of(robot, names)
        self._names = names
        self._linear = np.array([each.scale is not None for each in chosen], bool)
        self._scales = np.array([each.scale or 1.0 for each in chosen])
        low = np.array([each.low for each in chosen]) / self._scales
        high = np.array([each.high for each in chosen]) / self._scales
        logarithms = np.log(np.where(self._linear, 1.0, values))
        self.start = np.where(self._linear, values / self._scales, logarithms)
        reach = np.log(LARGEST_FACTOR)
        self.bounds = (
            np.where(self._linear, low, self.start - reach),
            np.where(self._linear, high, self.start + reach),
        )

    def coordinates(self, start: Mapping[str, float]) -> np.ndarray:
        """(P,) of the first guess, and of values that are given by name, within the bounds."""
        given = np.array([start.get(name, np.nan) for name in self._names])
        logarithms = np.log(np.where(self._linear, 1.0, given))
        found = np.where(self._linear, given / self._scales, logarithms)
        low, high = self.bounds
        edge = 1e-6 * np.where(np.isfinite(high - low), high - low, 1.0)
        inside: np.ndarray = np.clip(found, low + edge, high - edge)
        return np.where(np.isfinite(found), inside, self.start)

    def inwards(self, coordinates: np.ndarray, step: float) -> np.ndarray:
        """(P,) steps that stay within the bounds."""
        return np.where(coordinates + step < self.bounds[1], step, -step)

    def values(self, coordinates: np.ndarray) -> list[float]:
        """(P,) in SI units."""
        exponents = np.where(self._linear, 0.0, coordinates)
        found = np.where(self._linear, self._scales * coordinates, np.exp(exponents))
        return [float(each) for each in found]

    def at_bounds(self, coordinates: np.ndarray) -> np.ndarray:
        """(P,) whether a coordinate is within a hundredth of the way to a bound."""
        low, high = self.bounds
        near = 0.005 * (high - low)
        return np.asarray((coordinates < low + near) | (coordinates > high - near))


def _weights(measured: np.ndarray, first: np.ndarray) -> np.ndarray:
    """(1, G, 1): of each group the inverse of its mean length of error at the first guess."""
    lengths = np.nanmean(np.linalg.norm(first - measured, axis=2), axis=0)
    weights = 1.0 / np.maximum(lengths, 1e-9 * np.nanmax(np.abs(measured)))
    return weights[None, :, None]


def _known(residual: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """The residual, and 0 where nothing was measured."""
    return np.where(np.isfinite(measured), residual, 0.0)


def _covariance(jacobian: np.ndarray, residual: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """(P, P) of the estimates: each group's noise is estimated from what it is left with."""
    counted = np.isfinite(measured)
    rows = counted.any(axis=2).sum(axis=0)
    left = np.where(counted, residual.reshape(measured.shape), np.nan)
    spread = np.nanvar(left, axis=(0, 2)) * rows / np.maximum(rows - 1, 1)
    noise = np.broadcast_to(spread[None, :, None], measured.shape).ravel()
    left, sizes, right = np.linalg.svd(jacobian, full_matrices=False)
    seen_in = sizes > 1e-9 * sizes[0]
    gain = right[seen_in].T @ (left[:, seen_in] / sizes[seen_in]).T
    covariance: np.ndarray = (gain * noise) @ gain.T
    # nothing is known along the directions that change nothing
    blind = (np.abs(right[~seen_in]) > 1e-6).any(axis=0)
    covariance[blind, blind] = np.inf
    return covariance


def _fineness(intervals: int) -> tuple[int, ...]:
    """Numbers of intervals to search in and to correct by."""
    coarse = min(intervals, COARSE_INTERVALS)
    return (coarse, intervals) if coarse < intervals else (coarse,)


def _seconds_at_rest(robot: Robot, rows: int, intervals: int) -> float:
    return 3e-5 * rows * (intervals * len(robot.segments)) ** 2


def _seconds_in_motion(robot: Robot, rows: int, intervals: int, substeps: int) -> float:
    return 3e-7 * rows * intervals * len(robot.segments) * (substeps + 5)


def _model(rod: CosseratRod, substeps: int = SUBSTEPS) -> RodPrediction:
    return RodPrediction(rod, substeps=substeps, single_precision=False)


def _with_grid(robot: Robot, intervals: int) -> Robot:
    """The robot whose segments keep their numbers of intervals when their lengths change."""
    if len(robot.segments) == 1:
        return robot
    counts = share_intervals(robot, intervals)
    parts = [
        {**each.model_dump(), "intervals": count}
        for each, count in zip(robot.segments, counts, strict=True)
    ]
    return robot.replace(segments=parts)


def _steady_sensitivities(
    robot: Robot,
    names: tuple[str, ...],
    logarithms: np.ndarray,
    groups: Sequence[Group],
    rests: _Rests,
) -> np.ndarray:
    """(K, G, 3, P) of the outputs at rest by the logarithms."""

    def changed(values: np.ndarray) -> Robot:
        return with_parameters(robot, names, np.exp(values).tolist())

    moved = [
        CosseratRod(changed(logarithms + _STEP * unit), rests.intervals)
        for unit in np.eye(len(logarithms))
    ]
    inputs, (rod, states) = rests.inputs, rests.of(changed(logarithms))
    shifted = np.empty((len(moved), *states.shape))
    for row, (state, acting) in enumerate(zip(states, inputs, strict=True)):
        rates = np.array([other.derivative(state, acting) for other in moved])
        jacobian, _ = rod.linearize(state, acting)
        shifted[:, row] = state - np.linalg.solve(jacobian, rates.T).T
    here = stacked(groups, seen(_model(rod), groups, states, inputs))
    there = [
        stacked(groups, seen(_model(other), groups, each, inputs))
        for other, each in zip(moved, shifted, strict=True)
    ]
    return np.stack([(each - here) / _STEP for each in there], axis=-1)
