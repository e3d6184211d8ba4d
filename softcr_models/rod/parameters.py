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
        deviation: of its logarithm where a filter starts, tuned [-].
        nominal: its value of a robot.
    """

    name: str
    unit: str
    sign: Sign
    deviation: float
    nominal: Callable[[Robot], float]


ROD_PARAMETERS = (
    RodParameter(
        "bending_compliance", "rad/(N m m)", "positive", 0.08, lambda of: of.bending_compliance
    ),
    RodParameter("tip_mass", "kg", "not negative", 0.1, lambda of: of.tip_mass),
    RodParameter("damping_factor", "-", "positive", 0.05, lambda of: 1.0),
)
PARAMETERS = tuple(each.name for each in ROD_PARAMETERS)
SIGNS: dict[str, Sign] = {each.name: each.sign for each in ROD_PARAMETERS}
