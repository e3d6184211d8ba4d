"""What filters may estimate of a rod: one table, in the order of every vector of parameters.

`stepper` and `CosseratRod` say how each of them enters the equations: all three do linearly.
"""

from collections.abc import Callable
from typing import NamedTuple

from softcr_models.arguments import Sign
from softcr_models.robot import Robot


class RodParameter(NamedTuple):
    """One of them.

    Attributes:
        name: of the parameter.
        unit: SI.
        sign: that its values must have.
        nominal: its value, of a robot.
        deviation: of its logarithm where a filter starts, tuned [-].
    """

    name: str
    unit: str
    sign: Sign
    nominal: Callable[[Robot], float]
    deviation: float


ROD_PARAMETERS = (
    RodParameter(
        "bending_compliance", "rad/(N m m)", "positive", lambda robot: robot.bending_compliance, 0.08
    ),
    RodParameter("tip_mass", "kg", "not negative", lambda robot: robot.tip_mass, 0.1),
    RodParameter("damping_factor", "-", "positive", lambda robot: 1.0, 0.05),
)
PARAMETERS = tuple(each.name for each in ROD_PARAMETERS)
SIGNS: dict[str, Sign] = {each.name: each.sign for each in ROD_PARAMETERS}
