"""Steady states of a rod by Newton's method on its exact linearisation."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from softcr_models.robots.robot import Robot
from softcr_models.rod import evaluation
from softcr_models.rod.backbone import largest_turn
from softcr_models.rod.point_loads import PointLoad
from softcr_models.rod.twists import LARGEST_TURN

if TYPE_CHECKING:
    from softcr_models.rod.cosserat_rod import CosseratRod

_STEPS = 25
_ROUNDING = 1e-15  # of a length, from which the tension of a stiff tendon follows [-]
_LARGEST_CHANGE = (
    3.0  # of a load's scale in one step of Newton's method: beyond it leaves its reach
)


class EquilibriumError(ArithmeticError):
    """No steady state was found at the inputs asked for."""


def equilibrium(
    rod: "CosseratRod",
    inputs: np.ndarray,
    parameters: np.ndarray | None,
    loads: Sequence[PointLoad],
    near: np.ndarray | None = None,
) -> np.ndarray:
    """The steady state (nx,) reached by raising inputs (m,) and loads slowly from zero, or from
    the state `near` (nx,) at once, where that succeeds.

    Raises:
        EquilibriumError: with the inputs, if there is none, or the rod is pressed to nothing on the
            way, or turns too far for its grid.
    """
    scales = _load_scales(rod, inputs, loads)
    if (
        near is not None
        and (state := _newton(rod, near, inputs, parameters, loads, scales)) is not None
    ):
        _require_possible(rod, state, parameters)
        return state

    def weighed(state, _, fraction):
        return _newton(_lightened(rod, fraction), state, 0.0 * inputs, parameters, (), scales)

    def actuated(state, before, fraction):
        if rod.robot.motors:  # whose tendons a piece makes slack or tight, where none is followed
            jacobian, by_inputs = rod.linearize(
                state, before * inputs, parameters, _scaled(loads, before)
            )
            change = (fraction - before) * (by_inputs @ inputs)
            state = state - np.linalg.solve(jacobian, change)
        return _newton(
            rod, state, fraction * inputs, parameters, _scaled(loads, fraction), scales
        )  # fmt: skip

    def require_possible(state):
        _require_possible(rod, state, parameters)

    state, reached = _followed(weighed, rod.rest_state(), require_possible)
    if reached < 1.0:
        raise EquilibriumError(
            f"no steady state without actuation: followed from a rod without weight, it ends at "
            f"{100.0 * reached:.3g} % of gravity"
        )
    state, reached = _followed(actuated, state, require_possible)
    if reached < 1.0:
        raise EquilibriumError(f"no steady state found at inputs {_told(rod, inputs)}")
    return state


def _followed(
    steady: Callable[[np.ndarray, float, float], np.ndarray | None],
    state: np.ndarray,
    require_possible: Callable[[np.ndarray], None],
) -> tuple[np.ndarray, float]:
    """The last steady state of those at fractions up to 1, in as large pieces as can be, and where.

    Args:
        steady: from the steady state at a fraction of what acts, the one at a larger fraction; None
            if it is not found.
        state: at the fraction 0.
        require_possible: raises EquilibriumError for a state that no rod can have.
    """
    reached, piece = 0.0, 1.0
    while reached < 1.0 and piece >= 1e-3:
        fraction = min(1.0, reached + piece)
        candidate = steady(state, reached, fraction)
        if candidate is None:
            piece *= 0.5
        else:
            require_possible(candidate)
            state, reached, piece = candidate, fraction, 2.0 * piece
    return state, reached


def _require_possible(rod, state, parameters):
    """Refuses a rod that is pressed to nothing, or that its grid does not resolve."""
    grid = rod.grid
    numbers = rod.nominal_parameters if parameters is None else parameters
    point = evaluation.point_of(
        state, np.zeros(rod.input_size), numbers, rod.body, grid, None, None, None
    )
    rows = zip(grid.first_row[:-1], grid.first_row[1:], strict=True)
    for a, (first, beyond) in enumerate(rows):
        stretch = 1.0 + float((point.section.compliance[a, 2] * point.s[first:beyond, 2]).min())
        if not stretch > 0.0:
            raise EquilibriumError(
                f"robot {rod.robot.name}: segment {rod.robot.segment_names[a]} is pressed to "
                f"nothing: its stretch is {stretch:.3g}, must be above 0"
            )
    turn = float(np.sqrt(largest_turn(point.s, point.section, grid)))
    if not turn < LARGEST_TURN:
        raise EquilibriumError(
            f"robot {rod.robot.name}: the rod turns by {turn:.3g} rad in a sub-interval of its "
            f"grid, must be below {LARGEST_TURN:.3g} rad: take more intervals, or "
            "gravity_subintervals"
        )


def _lightened(rod: "CosseratRod", fraction: float) -> "CosseratRod":
    """The rod with a fraction of gravity."""
    lighter = copy(rod)
    lighter.grid = rod.grid._replace(gravity=fraction * rod.grid.gravity)
    return lighter


def _newton(rod, state, inputs, parameters, loads, scales):
    """Newton's method for a steady state; None if it fails. Velocities stay zero."""
    force, moment = scales
    still = 6 * rod.total_intervals
    stiffest = rod.robot.tendon_springs[:, 1].max(initial=0.0)
    enough = max(1e-12, _ROUNDING * stiffest * rod.robot.length / max(force, moment))
    for _ in range(_STEPS):
        jacobian, _ = rod.linearize(state, inputs, parameters, loads)
        rates = rod.derivative(state, inputs, parameters, loads)
        try:
            change = np.linalg.solve(jacobian, rates)
        except np.linalg.LinAlgError:
            return None
        # the whole change by the larger scale: rounding of forces ends up in the moments
        size = np.abs(change[still:]).max() / max(force, moment)
        bent = np.abs(change[still:].reshape(-1, 6)[:, 3:]).max() / moment
        if not np.isfinite(size) or max(size, bent) > _LARGEST_CHANGE:
            return None
        state = state - change
        state[:still] = 0.0
        if size < enough:
            return state
    return None


def _load_scales(
    rod: "CosseratRod", inputs: np.ndarray, loads: Sequence[PointLoad]
) -> tuple[float, float]:
    """The largest force [N] and moment [N m] that actuation, weight or loads can put on the rod.

    Raises:
        EquilibriumError: nothing can.
    """
    robot = rod.robot
    largest = np.maximum(_largest_inputs(robot), np.abs(inputs))
    acting = np.abs(rod.row_actuation).max(axis=0) @ largest
    lengths = np.array([each.length for each in robot.segments])
    mass = float(rod.body.line_density @ lengths) + robot.tip_mass + robot.rigid_mass
    weight = mass * abs(robot.gravity)
    wrenches = [np.asarray(each.wrench) for each in loads]
    pulls = [float(np.linalg.norm(each.force)) for each in loads]
    pulls += [float(np.linalg.norm(each[:3])) for each in wrenches]
    turns = [float(np.linalg.norm(each[3:])) for each in wrenches]
    acting[2] += robot.tendon_springs[:, 2].sum()  # pretension
    force = max(float(acting[:3].max()), weight, *pulls, 0.0)
    if not force > 0.0:
        raise EquilibriumError(
            f"robot {robot.name}: neither its inputs, at most {_told(rod, largest)}, nor its "
            f"weight, {weight:g} N, load it: a steady state has no scale"
        )
    # where nothing bends the rod, any scale of its moments will do
    levers = max(weight, *pulls, 0.0) * robot.length
    return force, max(float(acting[3:].max()), levers, *turns, 0.0) or force * robot.length


def _largest_inputs(robot: Robot) -> np.ndarray:
    """(m,) the largest magnitude that each input may have."""
    return np.array([max(abs(each.minimum), abs(each.maximum)) for each in robot.input_limits])


def _scaled(loads: Sequence[PointLoad], fraction: float) -> list[PointLoad]:
    return [
        replace(
            each,
            force=fraction * np.asarray(each.force),
            wrench=fraction * np.asarray(each.wrench),
        )
        for each in loads
    ]


def _told(rod: "CosseratRod", inputs: np.ndarray) -> str:
    units = rod.robot.input_units
    if len(set(units)) == 1:
        return f"{inputs.tolist()} {units[0]}"
    return ", ".join(f"{value:g} {unit}" for value, unit in zip(inputs, units, strict=True))
