"""A robot's parameters from recordings, Licher et al. 2025, Sec. III-I: statics, damping, lag.

As in the paper, lengths of the errors of tip, force and moment are weighted by the inverse of what
the first guess leaves. Instead of a particle swarm (kept for comparison in `particle_swarm`), least
squares with exact sensitivities: at a steady state x, f(x, q) = 0, a changed parameter moves it by
one Newton step of the changed rod. Parameters are estimated as logarithms, so they stay positive;
those of a `pressure_chain`, which may be zero, as they are.
Their names are those of `identifiable`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import norm

from softcr_models.chain.chain_model import ChainModel
from softcr_models.identifiable import chosen_of, names_of, parameters_of, with_parameters
from softcr_models.model import TIP
from softcr_models.prediction import RodPrediction
from softcr_models.pressure import PressureLag
from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod, EquilibriumError
from softcr_models.rod.description import BASE_WRENCH, rod_inputs
from softcr_models.rod.discretise import share_intervals
from softcr_models.rod_model import RodModel

CONFIDENCE = 0.95
NOT_EXCITED = 0.2  # a relative interval wider than this says nothing
LARGEST_FACTOR = (
    4.0  # between a first guess and what is found: rods far beyond have no steady state
)
_STEP = 1e-6  # of a logarithm, for differences


@dataclass(frozen=True, eq=False)
class Recording:
    """What was measured, a row per configuration (statics) or per sample (motion).

    Attributes:
        inputs: (T, m) in the order of the robot's actuators: gauge pressures [Pa], tensions [N].
        tips: (T, 3) [m], base frame.
        wrenches: (T, 6) of the force-torque sensor, force [N], then moment [N m].
        period: between samples [s]; 0 for statics.
        run_in: samples at the begin of a motion that the model follows and is not judged by: it
            begins at rest, and where the robot did not, the difference has to die away.
    """

    inputs: np.ndarray
    tips: np.ndarray
    wrenches: np.ndarray
    period: float = 0.0
    run_in: int = 0


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
) -> Fit:
    """Lengths, mass at the tip, bending and dilatation compliances from configurations at rest.

    Args:
        robot: the first guess; what is not identified stays.
        recording: statics.
        intervals: of the model's rod, of each segment on average.
        names: those of the stage `rest` that are identified; None: all.

    Raises:
        EquilibriumError: a configuration has no steady state on the way.
    """
    inputs, chosen = recording.inputs, names_of(robot, "rest") if names is None else names
    shared = _with_grid(robot, intervals)
    return _fit(
        robot,
        chosen,
        _stacked(recording),
        lambda candidate: _steady(candidate, inputs, intervals)[0],
        lambda values: _steady_sensitivities(shared, chosen, values, inputs, intervals),
        shared,
    )


def identify_motion(
    robot: Robot,
    recording: Recording,
    intervals: int = 10,
    names: tuple[str, ...] | None = None,
) -> Fit:
    """Bending relaxation times, or what `names` tells, from a motion."""
    judged = slice(recording.run_in, None)
    return _fit(
        robot,
        names_of(robot, "motion") if names is None else names,
        _stacked(recording)[judged],
        lambda candidate: _moved(candidate, recording, intervals)[judged],
        shared=_with_grid(robot, intervals),
    )


def identify_excited(
    identify: Callable[[tuple[str, ...]], Fit], names: tuple[str, ...]
) -> tuple[Fit | None, tuple[str, ...]]:
    """A fit of what a recording says something about, and the names of all else.

    What is not excited would take any value and spoil the others: the least known is left at its
    first guess and the rest is fitted again, until all that remains is known.

    Args:
        identify: names -> their fit.
        names: of everything that is looked for.
    """
    left_out: tuple[str, ...] = ()
    while names:
        fit = identify(names)
        if not fit.not_excited:
            return fit, left_out
        width = dict(zip(fit.names, np.nan_to_num(fit.intervals, nan=np.inf), strict=True))
        worst = max(names, key=lambda name: width[name])
        left_out = (*left_out, worst)
        names = tuple(name for name in names if name != worst)
    return None, left_out


def identify_lag(
    robot: Robot,
    commands: np.ndarray,
    inputs: np.ndarray,
    period: float,
    names: tuple[str, ...] | None = None,
) -> Fit:
    """Gain and pole of the lag (32) of the inputs behind their commands.

    Args:
        robot: the first guess; it has a lag.
        commands: (T, m) each held for a period [Pa, N].
        inputs: (T + 1, m) measured at the begin of each period and at the end [Pa, N].
        period: [s].
        names: those of the stage `lag` that are identified; None: both.
    """
    limits = rod_inputs(robot)
    span = limits.high - limits.low

    def predicted(candidate: Robot) -> np.ndarray:
        path = lag_of(candidate).trajectory(inputs[0], commands[None], period)[0]
        return (path / span)[:, None]

    chosen = names_of(robot, "lag") if names is None else names
    return _fit(robot, chosen, (inputs / span)[:, None], predicted)


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
    measured, names = _stacked(recording), names_of(robot, "rest")
    weights = _weights(measured, _steady(robot, recording.inputs, intervals)[0])

    def cost(logarithms: np.ndarray) -> float:
        candidate = with_parameters(robot, names, np.exp(logarithms).tolist())
        try:
            found, _ = _steady(candidate, recording.inputs, intervals)
        except EquilibriumError:
            return np.inf
        return float(np.sum((weights * (found - measured)) ** 2))

    return cost


def predicted_motion(robot: Robot, recording: Recording, intervals: int) -> np.ndarray:
    """(T, 3) tips of the model under the recorded inputs [m]."""
    return _moved(robot, recording, intervals)[:, 0]


def _fit(
    robot: Robot,
    names: tuple[str, ...],
    measured: np.ndarray,
    predicted: Callable[[Robot], np.ndarray],
    sensitivities: Callable[[np.ndarray], np.ndarray] | None = None,
    shared: Robot | None = None,
) -> Fit:
    """Weighted least squares over logarithms.

    Args:
        measured: (T, G, width) groups of numbers, each group with a weight of its own; what
            `predicted` gives of a robot has the same shape.
        sensitivities: (P,) logarithms -> (T, G, width, P); None: differences.
        shared: the robot whose grid all evaluated robots have; None: `robot` itself.
    """
    evaluated = shared or robot
    numbers = _Coordinates(robot, names)
    scale = _weights(measured, predicted(evaluated))
    evaluations = 0

    def residual(coordinates: np.ndarray) -> np.ndarray:
        nonlocal evaluations
        evaluations += 1
        candidate = with_parameters(evaluated, names, numbers.values(coordinates))
        return (scale * (predicted(candidate) - measured)).ravel()

    def jacobian(coordinates: np.ndarray) -> np.ndarray:
        nonlocal evaluations
        if sensitivities is not None:
            evaluations += 1
            found = sensitivities(coordinates)
            return (scale[..., None] * found).reshape(-1, len(names))
        columns = []
        for change in 1e-4 * np.eye(len(names)):
            up, down = residual(coordinates + change), residual(coordinates - change)
            columns.append((up - down) / 2e-4)
        return np.array(columns).T

    found = least_squares(
        residual, numbers.start, jac=jacobian, x_scale=0.1, xtol=1e-9, bounds=numbers.bounds
    )
    covariance = _covariance(found.jac, found.fun.reshape(measured.shape), measured.shape)
    deviation = np.sqrt(covariance.diagonal())
    # what would go farther than that is no value that was found
    deviation[numbers.at_bounds(found.x)] = np.inf
    with np.errstate(invalid="ignore"):
        correlation = np.nan_to_num(covariance / np.outer(deviation, deviation))
    values = numbers.values(found.x)
    return Fit(
        names,
        np.array(values),
        norm.ppf(0.5 + CONFIDENCE / 2) * deviation,
        correlation,
        with_parameters(robot, names, values),
        evaluations,
    )


class _Coordinates:
    """What is looked for: logarithms, and numbers that may be zero in units of their scale."""

    def __init__(self, robot: Robot, names: tuple[str, ...]) -> None:
        chosen, values = chosen_of(robot, names), parameters_of(robot, names)
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
    lengths = np.linalg.norm(first - measured, axis=2).mean(axis=0)
    weights = 1.0 / np.maximum(lengths, 1e-9 * np.abs(measured).max())
    return weights[None, :, None]


def _covariance(jacobian: np.ndarray, residual: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """(P, P) of the estimates: each group's noise is estimated from what it is left with."""
    spread = residual.var(axis=(0, 2)) * residual.shape[0] / max(residual.shape[0] - 1, 1)
    noise = np.broadcast_to(spread[None, :, None], shape).ravel()
    left, sizes, right = np.linalg.svd(jacobian, full_matrices=False)
    seen = sizes > 1e-9 * sizes[0]
    gain = right[seen].T @ (left[:, seen] / sizes[seen]).T
    covariance: np.ndarray = (gain * noise) @ gain.T
    # nothing is known along the directions that change nothing
    blind = (np.abs(right[~seen]) > 1e-6).any(axis=0)
    covariance[blind, blind] = np.inf
    return covariance


def _stacked(recording: Recording) -> np.ndarray:
    """(T, 3, 3): tip [m], force [N], moment [N m]."""
    parts = np.concatenate((recording.tips, recording.wrenches), axis=1)
    return parts.reshape(-1, 3, 3)


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


def _outputs(rod: CosseratRod, state: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    wrench = rod.base_wrench(state, inputs)
    return np.concatenate((rod.tip_pose(state)[:3, 3], wrench)).reshape(3, 3)


def _steady(robot: Robot, inputs: np.ndarray, intervals: int) -> tuple[np.ndarray, np.ndarray]:
    """(K, 3, 3) outputs and (K, nx) states at rest."""
    rod = CosseratRod(robot, intervals)
    states = np.array([rod.equilibrium(row) for row in inputs])
    pairs = zip(states, inputs, strict=True)
    return np.array([_outputs(rod, state, row) for state, row in pairs]), states


def _steady_sensitivities(
    robot: Robot,
    names: tuple[str, ...],
    logarithms: np.ndarray,
    inputs: np.ndarray,
    intervals: int,
) -> np.ndarray:
    """(K, 3, 3, P) of the outputs at rest by the logarithms."""

    def rod_at(values: np.ndarray) -> CosseratRod:
        changed = with_parameters(robot, names, np.exp(values).tolist())
        return CosseratRod(changed, intervals)

    rod = rod_at(logarithms)
    moved = [rod_at(logarithms + _STEP * unit) for unit in np.eye(len(logarithms))]
    result = np.empty((len(inputs), 3, 3, len(logarithms)))
    for row, acting in enumerate(inputs):
        state = rod.equilibrium(acting)
        jacobian, _ = rod.linearize(state, acting)
        here = _outputs(rod, state, acting)
        for column, other in enumerate(moved):
            shifted = state - np.linalg.solve(jacobian, other.derivative(state, acting))
            result[row, :, :, column] = (_outputs(other, shifted, acting) - here) / _STEP
    return result


def _moved(robot: Robot, recording: Recording, intervals: int) -> np.ndarray:
    """(T, 3, 3) outputs along a motion from rest; inputs are linear between samples."""
    rod, inputs = CosseratRod(robot, intervals), recording.inputs
    # with three sub-steps the scheme's own damping costs 2 % of the rod's, with eight 0.1 %
    model: RodModel = RodPrediction(rod, substeps=8, single_precision=False)
    if robot.pressure_chain is not None:
        model = ChainModel(model, robot.pressure_chain)
        if (memory := model.inputs.memory) is not None:
            (past,) = memory.along(memory.begin(inputs[0]), inputs[None], recording.period)
            inputs = np.hstack((inputs, past))
    parameters = model.nominal_parameters
    start = model.equilibrium(inputs[0], parameters)
    later = model.rollout(start, inputs[None], parameters, recording.period)[0]
    states = np.vstack([start, later])
    seen = model.observe((TIP, BASE_WRENCH), states, inputs, parameters[None])
    return np.concatenate((seen[TIP][:, :, 3], seen[BASE_WRENCH]), axis=1).reshape(-1, 3, 3)
