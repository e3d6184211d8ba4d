"""What filters may estimate of a rod: one table, in the order of every vector of parameters.

`packing` says how each of them enters the equations: all do linearly.
"""

from collections.abc import Callable
from typing import NamedTuple

from softcr_models.arguments import Sign
from softcr_models.robots.robot import Robot


class RodParameter(NamedTuple):
    """One of them.

    Attributes:
        name: of the parameter.
        unit: SI.
        sign: that its values must have.
        deviation: of its logarithm where a filter starts, tuned [-]; of what may have any sign, in
            its unit.
        nominal: its value of a robot.
        largest: times its nominal value an estimate reaches [-].
    """

    name: str
    unit: str
    sign: Sign
    deviation: float
    nominal: Callable[[Robot], float]
    largest: float = 2.0


# What is picked up sits beyond the mass of the file, which is spread along the rod, and counts for
# more than it weighs: with 50 g `licher2025` has the inertia of 2.2 times its mass there. Much more
# room than that is worse where something else is wrong: with a slow hose and no pressure chain the
# mass runs away, and the loop with it.
TIP_MASS = "tip_mass"
_TIP_MASS = RodParameter(TIP_MASS, "kg", "not negative", 0.1, lambda of: of.tip_mass, 2.3)
_DAMPING = RodParameter("damping_factor", "-", "positive", 0.05, lambda of: 1.0)
_FORCES = tuple(
    RodParameter(f"tip_force_{axis}", "N", "any", 0.1, lambda of: 0.0) for axis in "xyz"
)
PAYLOAD = RodParameter("payload", "kg", "any", 0.01, lambda of: 0.0)
"""What is carried at the tip cap's outer face; below zero what of the tip mass has gone. Its
deviation is in parts of the robot's own mass: nothing is picked up yet where a filter starts."""


STIFFNESS = RodParameter("curvature_stiffness", "-", "any", 0.1, lambda of: of.curvature_stiffness)
"""Relative change of the bending compliance at a curvature of 15/m, see `stiffening`."""

_NEO_HOOKEAN = RodParameter("neo_hookean", "-", "any", 0.1, lambda of: of.neo_hookean)
STIFFENINGS = (STIFFNESS, _NEO_HOOKEAN)


def nominal_bending(robot: Robot, segment: int) -> float:
    """A segment's bending compliance, the mean of those about x and y [rad/(N m m)]."""
    about_x, about_y = robot.segments[segment].bending_compliances
    return 0.5 * (about_x + about_y)


def _bending(segment: int, suffix: str = "") -> RodParameter:
    name = f"bending_compliance{suffix}"
    return RodParameter(
        name, "rad/(N m m)", "positive", 0.08, lambda of: nominal_bending(of, segment)
    )


def rod_parameters(
    bendings: int = 1, forces: int = 0, payloads: int = 0, stiffenings: int = 0
) -> tuple[RodParameter, ...]:
    """The parameters of a rod.

    Args:
        bendings: 1 for one bending compliance, that of the first segment, in whose proportion those
            of the others change; K for one of each segment.
        forces: 3 for the components of a force at the tip in the base frame, 0 for none.
        payloads: 1 for a payload at the tip, 0 for none.
        stiffenings: 1 for a bending stiffness that changes with the curvature, 2 for one that
            changes with the stretch as well, 0 for none.
    """
    if bendings == 1:
        compliances = [_bending(0)]
    else:
        compliances = [_bending(a, f"_{a + 1}") for a in range(bendings)]
    return (
        *compliances, _TIP_MASS, _DAMPING, *_FORCES[:forces], *[PAYLOAD] * payloads,
        *STIFFENINGS[:stiffenings],
    )  # fmt: skip


def signs_of(bendings: int, forces: int, payloads: int, stiffenings: int) -> dict[str, Sign]:
    """By the names of `rod_parameters`."""
    declared = rod_parameters(bendings, forces, payloads, stiffenings)
    return {each.name: each.sign for each in declared}


ROD_PARAMETERS = rod_parameters()
PARAMETERS = tuple(each.name for each in ROD_PARAMETERS)
SIGNS: dict[str, Sign] = signs_of(1, 0, 0, 0)
