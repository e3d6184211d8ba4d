"""The columns of Table 4.1 of Pawlowski (2019) that are predictive controllers, as ours."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from softcr_models.prediction import RodPrediction
from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_papers.pawlowski2019.reference.reference_model import ReferenceModel, ReferenceSettings
from softcr_papers.pawlowski2019.studies.robots import floating

TICK = 0.01  # of the loop [s]
INTERVALS, SUBSTEPS = 5, 2  # of the rod that predicts; of a tick
STIFFER = 1e-2  # compliances of shear and extension of a Kirchhoff rod, of the Cosserat rod's


@dataclass(frozen=True)
class Column:
    """A controller, how long its steps are and how many it looks ahead.

    Attributes:
        name: as the tables say it.
        controller: of the registry.
        ticks: of a step.
        steps: looked ahead.
        far: steps that are looked ahead where a point is to be reached once.
        blocks: of these steps, changed together; the last number repeats. None: each by itself.
        kirchhoff: whether its model neither shears nor stretches.
        numbers: of the controller that differ.
        tick: of the loop [s].
        implicit: whether model and plant are one, the thesis's implicit scheme with this tick as
            its time step; otherwise they are rods of the house.
    """

    name: str
    controller: str
    ticks: int
    steps: int
    far: int = 6
    blocks: tuple[int, ...] = ()
    kirchhoff: bool = False
    numbers: Mapping[str, Any] = field(default_factory=dict)
    tick: float = TICK
    implicit: bool = False

    @property
    def period(self) -> float:
        """Of a step [s]."""
        return self.ticks * self.tick

    @property
    def settings(self) -> dict[str, Any]:
        """Of the controller, by dotted name."""
        return {"horizon": self.ticks * self.steps, "step_ticks": self.ticks, **self.numbers}

    def model(self) -> RodPrediction | ReferenceModel:
        """With which it predicts."""
        if self.implicit:
            return ReferenceModel(self.robot, ReferenceSettings(longest_step=self.tick))
        return RodPrediction(CosseratRod(self.robot, INTERVALS), SUBSTEPS, single_precision=False)

    @property
    def robot(self) -> Robot:
        """As the controller knows it."""
        return kirchhoff(floating()) if self.kirchhoff else floating()


def kirchhoff(robot: Robot) -> Robot:
    """A rod that hardly shears or stretches: (3.45), as the limit of stiff springs.

    The relaxation times stay, so that these motions are damped as before.
    """
    names = "shear_compliance", "dilatation_compliance"
    return robot.replace(**{name: STIFFER * getattr(robot, name) for name in names})


_NEAR_ONCE: dict[str, Any] = {
    "costs.tip_position": 0.0,
    "costs.input_rate": 1e-3,
    "costs.terms": [
        {"class": "softcr_papers.pawlowski2019.studies.reach:NearOnce", "scale": 0.015}
    ],
}


def far_sighted(column: Column) -> Column:
    """The column where a point is to be reached once: other steps, another cost."""
    blocks = {"blocks": column.blocks} if column.blocks else {}
    return replace(column, steps=column.far, numbers={**column.numbers, **_NEAR_ONCE, **blocks})


COLUMNS = (
    Column("NLSQ, 0.01 s", "nlsq", 1, 8, 20, (1, 1, 1, 1, 4), numbers={"iterations": 1}),
    Column("NLSQ, 0.05 s", "nlsq", 5, 4),
    Column("NLSQ, 0.1 s", "nlsq", 10, 3, 4),
    # it hardly lowers the tip by pulling all tendons, and would try: weights choose the least
    Column(
        "NLSQ, Kirchhoff, 0.05 s",
        "nlsq",
        5,
        4,
        kirchhoff=True,
        numbers={"costs.input_level": 1e-3},
    ),
    Column("LQR, 0.05 s", "lqr", 5, 4),
    Column("iLQR, 0.05 s", "ilqr", 5, 4, 8),
)

IMPLICIT = (
    Column("NLSQ, implicit scheme, 0.05 s", "nlsq", 1, 2, 6, tick=0.05, implicit=True),
    Column("NLSQ, implicit scheme, 0.1 s", "nlsq", 1, 2, 4, tick=0.1, implicit=True),
)
"""The thesis's own scheme; it prints no steps but those of its one real-time setting, one."""
