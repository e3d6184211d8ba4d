"""Unknowns of a recorded arm at rest: their most probable values, Levenberg-Marquardt with priors.

Each unknown has a normal prior about the first guess, so that what a recording does not tell stays
there instead of taking any value, and all can be looked for at once. The noise of each group is
estimated from what the best values so far leave of it: real arms are off by their model and their
memory, not by their cameras. Sensitivities follow from f(x, q) = 0: a changed unknown moves the
state by one Newton step.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from softcr_models.errors import UserError
from softcr_models.identification.first_guesses import turned
from softcr_models.identification.measured_groups import Group, known_mean, seen
from softcr_models.identification.rod_identification import Recording, stacked
from softcr_models.identification.unknowns import Fit, Recorded, Unknown, recorded_as
from softcr_models.prediction import RodPrediction
from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod, EquilibriumError
from softcr_models.rod.description import rod_inputs

INTERVALS = 2
"""Of each segment, at least, and so many of the whole rod that it has `_LEAST`."""
_LEAST = 12
_ROUNDS = 4  # of estimated noise
_STEPS = 30  # of a search
_TRIES = 8  # of a step, each shorter
_STEP = 1e-4  # of a deviation, for differences
_DONE = 1e-4  # of the cost: a smaller gain ends a search
_FINEST = 1e-6  # noise that is believed [m, N, N m]
_RESTLESS = 0.5  # of the rod's length: error of a row in which the rod has no steady state


@dataclass(frozen=True, eq=False)
class PriorFit(Fit):
    """What was found at rest.

    Attributes:
        recorded: robot and recording at these values.
        lost: rows in which the rod has no steady state.
    """

    recorded: Recorded
    lost: int


def prior_fit(
    robot: Robot,
    recording: Recording,
    groups: Sequence[Group],
    unknowns: Sequence[Unknown],
    tell: Callable[[float], None] = lambda share: None,
) -> PriorFit:
    """The most probable values of unknowns.

    Args:
        robot: the first guess.
        recording: at rest.
        groups: of it that are fitted to.
        unknowns: that are looked for.
        tell: told the share that is done.
    """
    search = _Search(robot, recording, tuple(groups), tuple(unknowns))
    values = search.first()
    for number in range(_ROUNDS):
        # rows that were lost get another chance
        values, states = search.best(values, search.states(values, None))
        search.estimate_noise(values, states)
        tell((number + 1.0) / _ROUNDS)
    jacobian = search.jacobian(values, states)
    found = search.by_name(values)
    return PriorFit(
        search.unknowns,
        found,
        np.linalg.inv(jacobian.T @ jacobian),
        {each.name: float(n) for each, n in zip(search.groups, search.noise, strict=True)},
        recorded_as(robot, found),
        int((~np.isfinite(states).all(axis=1)).sum()),
    )


def next_rest(
    robot: Robot, fit: PriorFit, groups: Sequence[Group]
) -> tuple[np.ndarray, np.ndarray]:
    """What to record next: readings (m,) of the rest, of one actuator or two that are pulled or
    pressed half or fully, that would tell most, and the deviations (P,) that it would leave.

    It tells most where the volume of the unknowns' covariance shrinks most.

    Raises:
        UserError: the robot has no steady state at any.
    """
    limits = rod_inputs(robot)
    low, span = np.asarray(limits.low), np.asarray(limits.high) - limits.low
    count = len(low)
    shares = [
        share * np.isin(np.arange(count), pair)
        for pair in combinations_with_replacement(range(count), 2)
        for share in (0.5, 1.0)
    ]
    readings = low + span * np.array(shares)
    nothing = Recording(readings, {each.name: np.zeros((len(readings), 3)) for each in groups})
    search = _Search(robot, nothing, tuple(groups), fit.unknowns)
    search.noise = np.array([fit.noise[each.name] for each in groups])
    values = np.array([fit.values[each.name] for each in fit.unknowns])
    states = search.states(values, None)
    rows = search.jacobian(values, states)[: -len(values)].reshape(len(readings), -1, len(values))
    known = np.isfinite(states).all(axis=1)
    if not known.any():
        raise UserError(f"robot {robot.name}: has no steady state at any input that was tried")
    left = np.linalg.inv(np.linalg.inv(fit.covariance) + rows.transpose(0, 2, 1) @ rows)
    volumes = np.where(known, np.linalg.slogdet(left)[1], np.inf)
    best = int(np.argmin(volumes))
    return readings[best], np.sqrt(left[best].diagonal())


def predicted_at_rest(
    recorded: Recorded, inputs: np.ndarray, groups: Sequence[Group]
) -> dict[str, np.ndarray]:
    """(T, 3) by name of group, as recorded, of readings (T, m); NaN without a steady state."""
    rod = _rod(recorded.robot)
    states = _steady(rod, recorded.acting(inputs), None)
    return _as_recorded(recorded, rod, states, recorded.acting(inputs), groups)


def centre_lines(recorded: Recorded, inputs: np.ndarray, points: int) -> np.ndarray:
    """(T, points, 3) evenly along the rod, base to tip, in the frame of the recording [m], of
    readings (T, m); NaN without a steady state."""
    rod = _rod(recorded.robot)
    lines = np.full((len(inputs), points, 3), np.nan)
    for line, state in zip(lines, _steady(rod, recorded.acting(inputs), None), strict=True):
        if np.isfinite(state).all():
            line[:] = recorded.placed(rod.backbone(state, points)[:, :3, 3])
    return lines


class _Search:
    """Cost and derivative of one fit.

    Attributes:
        unknowns: (P,).
        groups: (G,).
        noise: (G,) of a number [unit of the group].
        centre: (P,) of the priors.
    """

    def __init__(
        self, robot: Robot, recording: Recording, groups: tuple[Group, ...],
        unknowns: tuple[Unknown, ...],
    ) -> None:  # fmt: skip
        self.unknowns, self.groups = unknowns, groups
        self._robot, self._inputs = robot, recording.inputs
        self._measured = stacked(groups, recording.outputs)
        self._priors = np.array([each.deviation for each in unknowns])
        self.centre = np.zeros(len(unknowns))
        known = self._measured.reshape(-1, len(groups), 3)
        extent = np.sqrt(known_mean((known - known_mean(known, (0,))) ** 2, (0, 2)))
        self._lost = _RESTLESS * robot.length * np.array([each.unit == "m" for each in groups])
        self._lost = np.maximum(self._lost, extent)
        self.noise = np.maximum([max(each.noise, _FINEST) for each in groups], 0.05 * extent)

    def by_name(self, values: np.ndarray) -> dict[str, float]:
        """Of values (P,)."""
        names = (each.name for each in self.unknowns)
        return dict(zip(names, values.tolist(), strict=True))

    def first(self) -> np.ndarray:
        """(P,) where a search should begin: at the guess, or turned as the recording says."""
        begin = np.zeros(len(self.unknowns))
        group = next((each for each in self.groups if each.unit == "m"), None)
        if group is None:
            return begin
        measured = self._measured.reshape(len(self._inputs), len(self.groups), 3)
        seen_at = measured[:, self.groups.index(group)]
        model, costs = RodPrediction(_rod(self._robot), single_precision=False), []
        with suppress(EquilibriumError):
            begin = turned(model, group, self._inputs, seen_at, self.unknowns)
        if not begin.any():
            return begin
        for values in (begin, 0.0 * begin):
            self.centre = values
            residual = self._residual(values, self.states(values, None))
            costs.append(residual @ residual)
        self.centre = begin if costs[0] < costs[1] else 0.0 * begin
        return self.centre

    def estimate_noise(self, values: np.ndarray, states: np.ndarray) -> None:
        """From what values (P,) leave of each group, at states (T, nx)."""
        off = self._seen(values, states) - self._measured
        rms = np.sqrt(np.nanmean(off**2, axis=(0, 2)))
        self.noise = np.maximum(rms, [max(each.noise, _FINEST) for each in self.groups])

    def best(self, values: np.ndarray, states: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Values (P,) of the least cost, and states (T, nx) there, from other ones."""
        states = self.states(values, states)
        residual, damping = self._residual(values, states), 1e-3
        for _ in range(_STEPS):
            jacobian = self.jacobian(values, states)
            square, gradient = jacobian.T @ jacobian, jacobian.T @ residual
            cost = residual @ residual
            for _ in range(_TRIES):
                damped = square + damping * np.diag(square.diagonal())
                tried = values - np.linalg.solve(damped, gradient)
                with suppress(UserError):  # no robot is like that: a shorter step
                    there = self.states(tried, states)
                    left = self._residual(tried, there)
                    if left @ left < cost:
                        break
                damping *= 5.0
            else:
                break
            values, states, residual = tried, there, left
            damping = max(0.2 * damping, 1e-6)
            if cost - left @ left < _DONE * cost:
                break
        return values, states

    def jacobian(self, values: np.ndarray, states: np.ndarray) -> np.ndarray:
        """(R, P) of the residual by the values; rows without a steady state do not change."""
        here = recorded_as(self._robot, self.by_name(values))
        rod, inputs = _rod(here.robot), here.acting(self._inputs)
        known = np.isfinite(states).all(axis=1)
        factors = [
            lu_factor(rod.linearize(state, acting)[0])
            for state, acting in zip(states[known], inputs[known], strict=True)
        ]
        seen_here, columns = self._seen(values, states), []
        for place, unknown in enumerate(self.unknowns):
            there, step = self._beside(values, place, _STEP * unknown.deviation)
            other, acting, shifted = _rod(there.robot), there.acting(self._inputs), states.copy()
            for row, factor in zip(np.flatnonzero(known), factors, strict=True):
                shifted[row] -= lu_solve(factor, other.derivative(states[row], acting[row]))
            change = (self._stacked(there, other, shifted, acting) - seen_here) / step
            columns.append(self._whitened(np.where(known[:, None, None], change, 0.0)))
        return np.vstack((np.array(columns).T, np.diag(1.0 / self._priors)))

    def _beside(self, values: np.ndarray, place: int, step: float) -> tuple[Recorded, float]:
        """At a changed value, and the step to it: backward at the edge of what can be."""
        moved = values.copy()
        moved[place] += step
        try:
            return recorded_as(self._robot, self.by_name(moved)), step
        except UserError:
            moved[place] = values[place] - step
            return recorded_as(self._robot, self.by_name(moved)), -step

    def states(self, values: np.ndarray, near: np.ndarray | None) -> np.ndarray:
        """(T, nx) at rest, from states near them; NaN where there is none, or none was near."""
        recorded = recorded_as(self._robot, self.by_name(values))
        return _steady(_rod(recorded.robot), recorded.acting(self._inputs), near)

    def _residual(self, values: np.ndarray, states: np.ndarray) -> np.ndarray:
        off = self._seen(values, states) - self._measured
        lost = ~np.isfinite(states).all(axis=1)
        off[lost] = np.where(np.isfinite(self._measured[lost]), self._lost[:, None], np.nan)
        return np.concatenate((self._whitened(off), (values - self.centre) / self._priors))

    def _seen(self, values: np.ndarray, states: np.ndarray) -> np.ndarray:
        recorded = recorded_as(self._robot, self.by_name(values))
        return self._stacked(recorded, _rod(recorded.robot), states, recorded.acting(self._inputs))

    def _stacked(
        self, recorded: Recorded, rod: CosseratRod, states: np.ndarray, inputs: np.ndarray
    ) -> np.ndarray:
        return stacked(self.groups, _as_recorded(recorded, rod, states, inputs, self.groups))

    def _whitened(self, off: np.ndarray) -> np.ndarray:
        scaled = (off / self.noise[:, None]).ravel()
        return np.where(np.isfinite(self._measured.ravel()), scaled, 0.0)


def _rod(robot: Robot) -> CosseratRod:
    return CosseratRod(robot, max(INTERVALS, -(-_LEAST // len(robot.segments))))


def _steady(rod: CosseratRod, inputs: np.ndarray, near: np.ndarray | None) -> np.ndarray:
    """(T, nx) steady states under acting inputs (T, m), from states near them, if any are told; NaN
    without one, or near a NaN."""
    states = np.full((len(inputs), rod.state_size), np.nan)
    for row, acting in enumerate(inputs):
        close = None if near is None else near[row]
        if close is None or np.isfinite(close).all():
            with suppress(EquilibriumError):
                states[row] = rod.equilibrium(acting, near=close)
    return states


def _as_recorded(
    recorded: Recorded,
    rod: CosseratRod,
    states: np.ndarray,
    inputs: np.ndarray,
    groups: Sequence[Group],
) -> dict[str, np.ndarray]:
    known = np.isfinite(states).all(axis=1)
    model = RodPrediction(rod, single_precision=False)
    found = {each.name: np.full((len(states), 3), np.nan) for each in groups}
    if known.any():
        values = seen(model, groups, states[known], inputs[known])
        for each in groups:
            found[each.name][known] = recorded.as_recorded(each, values[each.name])
    return found
