"""Beyond the thesis: A-PCC on an arm that does not bend with constant curvature.

The controller is that of the study of Robot II with feedback of poses, its model three sections
from rack to rack. The plant is an arm of just these sections, Robot II with its six bodies, or an
exact rod of the same material with shear and torsion, whose nine tendons pull as the arm's do. Of
that rod lengths are wrong, a payload hangs at its tip, or tendons follow with hysteresis: one error
at a time, then all of them. Tendon loops are those of the thesis's simulations in all plants.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import Field

from softcr_papers.constant_curvature.kinematics import coverage_of
from softcr_papers.dalenberg2024.apcc import Apcc
from softcr_papers.dalenberg2024.apcc.inverse_kinematics import elongation_cost
from softcr_papers.dalenberg2024.arm import Arm, load_arm
from softcr_papers.dalenberg2024.arm_plant import ArmPlant
from softcr_papers.dalenberg2024.studies.robot_2 import ARRANGEMENTS
from softcr_papers.dalenberg2024.studies.robots import LAWS, LOOPS, setpoints
from softcr_papers.dalenberg2024.studies.setpoint_run import FIXED, LOST, PERIOD, law
from softcr_papers.driven_beam import DrivenBeam, Hysteresis, Sections
from softcr_runtime.settings.node_settings import Seconds
from softcr_studies.frame.study import (
    Cell,
    Metric,
    Must,
    Result,
    Results,
    Row,
    Study,
    StudySettings,
)

_GIVEN = ARRANGEMENTS[0]
_STEP, _LONGEST = 0.004, 0.015  # of the rod [s], of its elements [m]
_SETTLING, _LAST = 3.0, 1.0  # before a run, and what counts of it [s]
_PLACES = np.linspace(0.0, 1.0, 101)  # of E_shape, over the length
_METHODS = FIXED, "A-PCC, Γ / 1000"


@dataclass(frozen=True)
class Plant:
    """A case.

    Attributes:
        name: in the table.
        exact: whether it is an exact rod.
        factors: of the lengths from rack to rack over those that the controller knows.
        payload: at its tip [kg].
        hysteresis: share of the tendons' lengths that plays carry [-]; the widest play is of 5 mm.
        sections: whether the arm's bodies are the model's sections.
    """

    name: str
    exact: bool = True
    factors: tuple[float, float, float] = (1.0, 1.0, 1.0)
    payload: float = 0.0
    hysteresis: float = 0.0
    sections: bool = False


_FACTORS, _PAYLOAD, _HYSTERESIS, _WIDEST = (1.1, 0.9, 1.05), 0.25, 0.16, 0.005
OWN = Plant("arm of the model's sections", exact=False, sections=True)
OTHERS = (
    Plant("Robot II, six bodies", exact=False),
    Plant("exact rod"),
    Plant("exact rod, lengths +10 %, -10 %, +5 %", factors=_FACTORS),
    Plant("exact rod, payload 250 g", payload=_PAYLOAD),
    Plant("exact rod, hysteresis 16 %", hysteresis=_HYSTERESIS),
    Plant("exact rod, all of these", True, _FACTORS, _PAYLOAD, _HYSTERESIS),
)
GONE, TIP, MEAN = "runs lost", "tip error, last second", "tip error, mean of the run"
SHAPE, COST, LENGTHS = "E_shape, mean of the run", "Psi, mean of the run", "length error"
RATIO = "{} over that of the model's own arm"


class Settings(StudySettings):
    """See StudySettings."""

    seeds: int = Field(10, ge=1, le=100, description="number of setpoints")
    seconds: Seconds = Field(10.0, ge=2.0, le=100.0, description="length of a run")


class SectionArm:
    """An arm of constant-curvature bodies; poses and points are in the world."""

    def __init__(self, plant: Plant, arm: Arm) -> None:
        bodies = tuple(arm.model_lengths.tolist()) if plant.sections else arm.bodies
        self._arm = arm.model_copy(update={"bodies": bodies})
        self._plant = ArmPlant(self._arm, plant.payload, gains=LOOPS)

    def racks(self) -> np.ndarray:
        """(3, 4, 4) poses."""
        self._seen = self._plant.sensed(0)
        return self._seen.poses

    def points(self) -> np.ndarray:
        """(101, 3) of the backbone at equal parts of its rest length [m], when racks were seen."""
        lengths = self._arm.rest_lengths
        coverage = coverage_of(_PLACES * lengths.sum(), lengths)
        return self._arm.chain.position(self._seen.q, lengths, coverage)

    def advance(self, tendons: np.ndarray) -> None:
        """A period in which motors follow lengths (9,) [m]."""
        self._plant.follow(tendons)
        self._plant.advance(PERIOD)


class ExactArm:
    """An exact rod with the arm's tendons; see `SectionArm`."""

    def __init__(self, plant: Plant, arm: Arm) -> None:
        self._base, gravity = arm.base, np.array([0.0, 0.0, -arm.gravity])
        parts = rod_sections(arm, arm.model_lengths * plant.factors)
        self.beam = DrivenBeam(parts, self._base[:3, :3].T @ gravity, plant.payload, _LONGEST)
        tendons = parts.actuation.shape[2]
        self._hysteresis = Hysteresis(plant.hysteresis, np.full(tendons, _WIDEST))
        known = arm.tendons().actuation(arm.model_lengths)
        # from the loops' outputs to tendon forces, see TendonGains
        self._shaping, self._integral = np.linalg.pinv(known.T @ known), np.zeros(tendons)
        for _ in range(round(_SETTLING / PERIOD)):
            self.advance(np.zeros(tendons))

    def racks(self) -> np.ndarray:
        poses = np.tile(np.eye(4), (len(self.beam.first) - 1, 1, 1))
        poses[:, :3] = self.beam.poses[self.beam.first[1:]]
        return self._base @ poses

    def points(self) -> np.ndarray:
        places = np.r_[0.0, np.cumsum(self.beam.lengths)]
        columns = (self.beam.poses[:, :, 3] @ self._base[:3, :3].T).T
        return np.column_stack([np.interp(_PLACES * places[-1], places, each) for each in columns])

    def advance(self, tendons: np.ndarray) -> None:
        acting = self._hysteresis.acting(tendons)
        springs, dampers = LOOPS.proportional * self._shaping, LOOPS.derivative * self._shaping
        for _ in range(round(PERIOD / _STEP)):
            self._integral += _STEP * (acting - self.beam.conjugates())
            held = LOOPS.proportional * acting + LOOPS.integral * self._integral
            self.beam.follow(self._shaping @ held, springs, dampers, _STEP)


def rod_sections(arm: Arm, lengths: np.ndarray) -> Sections:
    """An arm's material and tendons as those of an exact rod whose racks are (r,) lengths apart.

    It shears and twists as an incompressible material does, G = E / 3. A tendon at (x, y) of the
    cross-section pulls it along z, and turns it with that lever, in all sections before its rack.
    """
    area = np.pi * arm.radius**2
    second = 0.25 * area * arm.radius**2
    young, shear = arm.youngs_modulus, arm.youngs_modulus / 3.0
    stiffness = np.array(
        [shear * area, shear * area, young * area, young * second, young * second,
         shear * 2.0 * second]
    )  # fmt: skip
    inertia = arm.density * np.array([area] * 3 + [second, second, 2.0 * second])
    told, count = arm.tendons(), len(lengths)
    actuation = np.zeros((count, 6, len(told)))
    for part, begin in enumerate(np.r_[0.0, arm.racks[:-1]]):
        runs = (told.begins <= begin + 1e-9) & (told.ends > begin + 1e-9)
        x, y = told.offsets.T
        actuation[part, 2:5] = runs * np.stack([np.ones(len(told)), y, -x])
    rows = np.tile(stiffness, (count, 1))
    return Sections(lengths, rows, arm.relaxation_time * rows, np.tile(inertia, (count, 1)),
                    actuation)  # fmt: skip


def run(cell: Cell) -> Result:
    """One setpoint, which differs for every seed."""
    plant: Plant = cell.case
    arm = load_arm(_GIVEN.robot)
    target = setpoints(_GIVEN, arm, 2, cell.seed)[1]
    scale, state = LAWS[cell.method]
    settings = law(_GIVEN.gain, scale * _GIVEN.adaptation, _GIVEN.feedback, state)
    controller = Apcc(
        arm.model, arm.model_lengths, np.array(arm.racks), arm.tendons("coupled"), settings
    )
    try:
        robot = (ExactArm if plant.exact else SectionArm)(plant, arm)
        found = _steered(robot, controller, arm, target, cell.settings.seconds)
    except (ArithmeticError, np.linalg.LinAlgError):
        return {GONE: 100.0}
    errors, shapes, costs = 1e3 * found
    last, true = round(_LAST / PERIOD), arm.model_lengths * plant.factors
    return {
        GONE: 0.0, TIP: errors[-last:].mean(), MEAN: errors.mean(), SHAPE: shapes.mean(),
        COST: costs.mean(), LENGTHS: 1e3 * np.abs(controller.rest_lengths - true).max(),
    }  # fmt: skip


def _steered(
    robot: Any, controller: Apcc, arm: Arm, target: np.ndarray, seconds: float
) -> np.ndarray:
    """(3, T) of every tick the tip's distance from its target, E_shape and Psi [m].

    What is decided at a tick acts from the next one on.

    Raises:
        ArithmeticError: the tip got lost.
    """
    tendons, rows = np.zeros(len(arm.actuators)), []
    for tick in range(round(seconds / PERIOD)):
        lengths = controller.rest_lengths
        found = controller.tick(tick * PERIOD, robot.racks(), target)
        error = float(np.linalg.norm(found.error))
        if not error < LOST:
            raise ArithmeticError("the tip got lost")
        q, coverage = found.inference.configuration, coverage_of(_PLACES * lengths.sum(), lengths)
        apart = np.linalg.norm(arm.model.position(q, lengths, coverage) - robot.points(), axis=1)
        rows.append((error, apart.mean(), elongation_cost(q)))
        robot.advance(tendons)
        tendons = found.tendons
    return np.array(rows).T


def rows(results: Results) -> Iterator[Row]:
    """Each seed's errors over those of the arm of the model's sections."""
    for plant in OTHERS:
        for method in _METHODS:
            pairs = [
                (other, own)
                for other, own in zip(
                    results.of(plant.name, method), results.of(OWN.name, method), strict=True
                )
                if TIP in other and TIP in own
            ]
            for quantity in (TIP, MEAN) if pairs else ():
                name, ratios = RATIO.format(quantity), [a[quantity] / b[quantity] for a, b in pairs]
                asked = STUDY.asked(plant.name, method, name)
                yield Row.of(plant.name, method, name, ratios, "-", **asked)


_UNITS = {GONE: "%", TIP: "mm", MEAN: "mm", SHAPE: "mm", COST: "mm", LENGTHS: "mm"}
STUDY = Study(
    name="dalenberg2024/other-plants",
    source="",
    summary="setpoints of arms that do not bend with constant curvature",
    run=run,
    cases=(OWN, *OTHERS),
    methods=_METHODS,
    settings=Settings,
    metrics=tuple(Metric(name, unit, name) for name, unit in _UNITS.items()),
    further_rows=rows,
    musts=(
        *(Must(GONE, 0.0, method=method) for method in _METHODS),
        *(Must(RATIO.format(name), 2.0, 1.3) for name in (TIP, MEAN)),
    ),
    exact="RECONSTRUCTED arm, absolute figures mean little: compare plants. The controller knows "
    "Robot II's lengths from rack to rack, sees poses without noise 50 times a second, takes the "
    "tendons for coupled, and its answer acts from the next frame on. The arm of the model's "
    "sections shares the model's kinematics, and has mass, gravity and the tendons' loops besides; "
    "Robot II has more sections. The exact rod shares its material and where tendons run, and no "
    "equation. The printed gains of the adaptation are not tried: with them the lengths run away "
    "on the model's own arm, too (dalenberg2024/robot-2).",
    about={
        "lengths": "165, 135 and 157.5 mm, known as 150 mm each",
        "hysteresis": "ten plays of the tendons' lengths, the widest of 5 mm",
    },
    quick={"seconds": 2.0},
)
