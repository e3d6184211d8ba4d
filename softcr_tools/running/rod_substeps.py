"""Sub-steps of filter and controller for a robot: measured before the start, taken, and told."""

from collections.abc import Callable

from softcr_models.errors import UserError
from softcr_models.robots.robot import Robot, load_robot
from softcr_models.rod.cosserat_rod import EquilibriumError
from softcr_models.rod_model.substeps import CHOICES, substep_errors
from softcr_tools.running.roles import settings_of
from softcr_tools.running.run_options import RunOptions

_PERIOD = 1 / 70  # of a tick, as nodes of rods have it [s]

LARGEST_ERROR = {"estimator": 0.02, "controller": 0.05}
"""Of the tip on the way from rest to each limit at its rate, as a share of the length [-], where no
step is done again: a filter corrects its prediction in the next tick, a controller plans anew, and
steps that are judged too long are done again in both."""


def with_needed_substeps(options: RunOptions, tell: Callable[[str], None]) -> RunOptions:
    """Options whose filter and controller take the sub-steps that the robot needs at its limits.

    Those of other models and other robots, and what was given, are left alone.

    Args:
        options: of a run.
        tell: told a line where more sub-steps than usual are taken.

    Raises:
        UserError: no number of sub-steps is enough.
    """
    roles = _roles(options)
    robot = load_robot(options.robot, options.kinds) if roles else None
    if not isinstance(robot, Robot):
        return options
    try:
        errors = substep_errors(
            robot, _PERIOD, enough=min(LARGEST_ERROR.values()), usual=max(roles.values())
        )
    except EquilibriumError as error:
        raise UserError(str(error)) from None
    for role, usual in roles.items():
        most = LARGEST_ERROR[role]
        needed = next((n for n, error in errors.items() if n >= usual and error <= most), None)
        if needed is None:
            raise UserError(
                f"robot {robot.name}: its inputs at their rates move it too fast: with "
                f"{CHOICES[-1]} sub-steps of {1e3 * _PERIOD / CHOICES[-1]:.2g} ms the {role}'s "
                f"tip is off by more than {100 * most:g} % of the length: lower "
                "maximum, or maximum_rate, of its limits"
            )
        if needed > usual:
            options = options.told(role, {"substeps": needed})
            tell(
                f"{role}: {needed} sub-steps in a tick, not {usual}, because robot {robot.name} "
                f"is fast at its limits and rates: {needed / usual:.2g} times the usual computation"
            )
    return options


def _roles(options: RunOptions) -> dict[str, int]:
    """Roles that predict with the exact rod and were not told their sub-steps, and the usual
    number."""
    found: dict[str, int] = {}
    for role in ("estimator", "controller"):
        setting = settings_of(options, role).get("substeps")
        exact = options.model_of(role) == "rod"
        if exact and setting is not None and "substeps" not in options.of(role):
            found[role] = setting.default
    return found
