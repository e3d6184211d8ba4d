"""A rod before the start: sub-steps of filter and controller, and a rest that is hard to hold.

Which sub-steps a robot needs, measured: each input from rest to its limit at its rate.
"""

import math
from collections.abc import Callable

import numpy as np

from softcr_models.errors import UserError
from softcr_models.robots.robot import Robot, load_robot
from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod, EquilibriumError
from softcr_models.rod.stepper import Retries, Run
from softcr_models.rod_model.rest import STIFFNESS_ERROR, TILT_ERROR, rest_of
from softcr_tools.running.roles import settings_of
from softcr_tools.running.run_options import RunOptions

CHOICES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Sub-steps of a tick that are tried."""

_FINE = 1e-4  # sub-steps of the reference [s]
_SETTLING = 0.1  # after a ramp [s]
_LONGEST = 0.6  # of a trial [s]
_UNJUDGED = 1e9


def substep_errors(
    robot: Robot, period: float, intervals: int = 5, enough: float = 0.0, usual: int = 1
) -> dict[int, float]:
    """How far off the tip is with so many sub-steps in a period, as a share of the length.

    Every input goes alone from zero to its limit at its rate; a reference in sub-steps of 0.1 ms
    with the same grid says where the tip should be. What only retries make finite is infinite.

    Args:
        robot: whose.
        period: of a tick [s].
        intervals: of the rod.
        enough: more sub-steps than the first `usual` or more with this error, as a share of the
            length, are not tried.
        usual: sub-steps.

    Raises:
        EquilibriumError: the robot has no steady state without inputs.
    """
    rod = CosseratRod(robot, intervals)
    start = rod.equilibrium(np.zeros(rod.input_size))
    levels = _ramps(robot, period)
    fine = math.ceil(period / _FINE)
    expected = _tips(rod, start, levels, period, fine)
    errors = {}
    for substeps in CHOICES:
        off = np.linalg.norm(_tips(rod, start, levels, period, substeps) - expected, axis=-1)
        errors[substeps] = float(off.max()) / robot.length if np.isfinite(off).all() else math.inf
        if substeps >= usual and errors[substeps] <= enough:
            break
    return errors


def _ramps(robot: Robot, period: float) -> np.ndarray:
    """(m, T + 1, m) inputs, of each input one candidate."""
    limits = robot.input_limits
    longest = max(each.maximum / each.maximum_rate for each in limits) + _SETTLING
    times = period * np.arange(math.ceil(min(longest, _LONGEST) / period) + 1)
    levels = np.zeros((len(limits), len(times), len(limits)))
    for k, each in enumerate(limits):
        levels[k, :, k] = np.minimum(each.maximum, each.maximum_rate * times)
    return levels


def _tips(rod, start, levels, period, substeps):
    """(m, T, 3) tips [m]; NaN where a rollout is not finite without retries."""
    run = Run.of(
        rod.body, rod.grid, period, substeps, 0, rod.fittings, rod.loads, None, _UNJUDGED
    )  # fmt: skip
    retries = Retries()
    poses = stepper.rollout_tips(
        start[None], levels, rod.nominal_parameters[None], run, retries=retries
    )
    return poses[..., 3] if not retries.candidates else np.full((*poses.shape[:2], 3), np.nan)


LARGEST_ERROR = {"estimator": 0.02, "controller": 0.05}
"""Of the tip on the way from rest to each limit at its rate, as a share of the length [-], where no
step is done again: a filter corrects its prediction in the next tick, a controller plans anew, and
steps that are judged too long are done again in both."""


HARD_TO_HOLD = 0.05
"""A resting tip that errors of stiffness or mounting move farther is told of, as a share of the
length [-]."""


HARDLY_DAMPED = 30.0
"""Swinging that lasts longer is told of, see `Rest.lasts` [s]."""


def with_needed_substeps(options: RunOptions, tell: Callable[[str], None]) -> RunOptions:
    """Options whose filter and controller take the sub-steps that the robot needs at its limits.

    Those of other models and other robots, and what was given, are left alone.

    Args:
        options: of a run.
        tell: told a line where more sub-steps than usual are taken, and where the robot may fall
            or swing.

    Raises:
        UserError: no number of sub-steps is enough.
    """
    roles = _roles(options)
    robot = load_robot(options.robot, options.kinds) if roles else None
    if not isinstance(robot, Robot):
        return options
    try:
        _tell_of_rest(robot, tell)
        errors = _errors(robot, roles)
    except EquilibriumError as error:
        raise UserError(str(error)) from None
    for role, (usual, period) in roles.items():
        most = LARGEST_ERROR[role]
        tried = errors[period].items()
        needed = next((n for n, error in tried if n >= usual and error <= most), None)
        if needed is None:
            raise UserError(
                f"robot {robot.name}: its inputs at their rates move it too fast: with "
                f"{CHOICES[-1]} sub-steps of {1e3 * period / CHOICES[-1]:.2g} ms the {role}'s "
                f"tip is off by more than {100 * most:g} % of the length: lower "
                "maximum, or maximum_rate, of its limits"
            )
        if needed > usual:
            options = options.told(role, {"substeps": needed})
            tell(
                f"{role}: {needed} sub-steps in a tick, not {usual}, because robot {robot.name} "
                f"is fast at its limits and rates for a tick of {1e3 * period:.3g} ms: "
                f"{needed / usual:.2g} times the usual computation"
            )
    return options


def _tell_of_rest(robot: Robot, tell: Callable[[str], None]) -> None:
    """A line where a robot is likely to fall, or to swing, before it does."""
    stays, moved, frequency, lasts = rest_of(robot)
    why = [] if stays else ["it does not stay at rest under its own weight"]
    if moved > HARD_TO_HOLD:
        where = f"by {100 * moved:.0f} % of the length" if moved < 1.0 else "to somewhere else"
        why.append(
            f"{100 * STIFFNESS_ERROR:.0f} % of stiffness, or {TILT_ERROR:g} deg of its base, move "
            f"its resting tip {where}"
        )
    if why:
        tell(f"robot {robot.name} may fall and not be followed: {', and '.join(why)}")
    elif lasts > HARDLY_DAMPED:
        tell(
            f"robot {robot.name} may swing and not be followed: a swing at {frequency:.2g} Hz "
            f"takes {lasts:.0f} s to fade to a third"
        )


def _errors(robot: Robot, roles: dict[str, tuple[int, float]]) -> dict[float, dict[int, float]]:
    """See substep_errors, by the period of a tick [s]."""
    usual: dict[float, int] = {}
    for least, period in roles.values():
        usual[period] = max(usual.get(period, 0), least)
    enough = min(LARGEST_ERROR.values())
    return {each: substep_errors(robot, each, enough=enough, usual=n) for each, n in usual.items()}


def _roles(options: RunOptions) -> dict[str, tuple[int, float]]:
    """Roles that predict with the exact rod and were not told their sub-steps, the usual number,
    and the period of their ticks [s]."""
    found: dict[str, tuple[int, float]] = {}
    for role in ("estimator", "controller"):
        settings, told = settings_of(options, role), options.of(role)
        exact = options.model_of(role) == "rod"
        if exact and "substeps" in settings and "substeps" not in told:
            rate = float(told.get("rate_hz", settings["rate_hz"].default))
            found[role] = settings["substeps"].default, 1.0 / rate
    return found
