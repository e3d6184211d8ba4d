"""Beyond the thesis: its controllers on rods that are not their model.

A predictive controller (NLSQ) follows the middle circle, a policy for any point (GPS, from a short
training) reaches points of the strict box, both in the whole loop: the filter of the house finds
the state from the measured tip and tensions. The plant is a rod with the model's equations on a
finer grid, which is theirs, or an exact beam that shares none of them. Of that beam the length is
wrong, a payload hangs at its tip, or tensions act with hysteresis: one error at a time, then all.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from softcr_control.reference.references import SampledReference
from softcr_control.reference.settings import ReferenceSettings
from softcr_estimation import ModelEstimatorSettings
from softcr_models.robots.robot import Robot
from softcr_papers.driven_beam import Hysteresis
from softcr_papers.pawlowski2019.learning.judging import Judging
from softcr_papers.pawlowski2019.learning.plant import Plant as Lanes
from softcr_papers.pawlowski2019.learning.plant_settings import PlantSettings
from softcr_papers.pawlowski2019.learning.tasks import Reaching
from softcr_papers.pawlowski2019.learning.training import train
from softcr_papers.pawlowski2019.learning.training_settings import TrainingSettings
from softcr_papers.pawlowski2019.policy.policy_file import files_of, save_policy
from softcr_papers.pawlowski2019.studies import mpc
from softcr_papers.pawlowski2019.studies.columns import COLUMNS, INTERVALS, SUBSTEPS, TICK
from softcr_papers.pawlowski2019.studies.known_state import PLANT_INTERVALS
from softcr_papers.pawlowski2019.studies.learning import ROUGH, STRICT
from softcr_papers.pawlowski2019.studies.robots import floating
from softcr_papers.pawlowski2019.studies.targets import RADII, share_of
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.plant_effects.acting_pressures import ActingPressures
from softcr_simulation.plants import RodPlant
from softcr_simulation.structural_plant import StructuralPlant
from softcr_studies.frame.study import (
    Cell,
    Metric,
    Must,
    Result,
    Results,
    Row,
    Seeds,
    Study,
    StudySettings,
)
from softcr_studies.loops import tracking_loop
from softcr_studies.loops.closed_loop import followed

NLSQ, POLICY = "NLSQ, 0.05 s", "GPS"
_COLUMN = next(column for column in COLUMNS if column.name == NLSQ)
_CIRCLE, _SINCE, _REACH = 6.0, 2.0, 2.0  # of a run on the circle, what counts of it, a reach [s]
_WIDEST = 0.05  # half width of the widest play [N], a tenth of the range


@dataclass(frozen=True)
class Plant:
    """A case.

    Attributes:
        name: in the table.
        errors: of the beam; None: the plant has the model's equations.
        hysteresis: share of the tensions that plays carry [-].
    """

    name: str
    errors: dict[str, Any] | None = field(default_factory=dict)
    hysteresis: float = 0.0


_LONGER, _PAYLOAD, _HYSTERESIS = {"length_factor": 1.01}, {"payload_mass": 0.001}, 0.16
OWN = Plant("the model's equations", None)
OTHERS = (
    Plant("exact beam"),
    Plant("exact beam, length +1 %", _LONGER),
    Plant("exact beam, payload 1 g", _PAYLOAD),
    Plant("exact beam, hysteresis 16 %", {}, _HYSTERESIS),
    Plant("exact beam, all of these", _LONGER | _PAYLOAD, _HYSTERESIS),
)
GONE, AROUND = "runs lost", "circle, mean tip error"
REACHED, LEAST = "points reached", "points, smallest distance"
RATIO = "{} over that of the model's equations"


class Settings(StudySettings):
    """See StudySettings."""

    seeds: Seeds = 3
    samples: int = Field(40_000, ge=100, description="number of samples of a training")
    points: int = Field(5, ge=1, le=100, description="points to reach, others for every seed")


class Friction(ActingPressures):
    """Between the tensions at the spools, which sensors see, and those that act on the rod."""

    def __init__(self, robot: Robot, share: float) -> None:
        """Slack.

        Args:
            robot: whose tendons they are.
            share: of the tensions that plays carry [-].
        """
        self._share = share
        super().__init__(PlantErrors(), robot)
        self.reset()

    def reset(self) -> None:
        """Slack."""
        super().reset()
        self._hysteresis = Hysteresis(self._share, np.full(len(self.chambers), _WIDEST))

    def levels(self, levels: np.ndarray, dt: float) -> np.ndarray:
        """(S + 1, m) what acts [N], of tensions (S + 1, m) at the spools, whatever `dt` is."""
        return np.array([self._hysteresis.acting(row) for row in levels])


class FrictionPlant(StructuralPlant):
    """A beam whose tendons rub: what acts of a tension follows with hysteresis."""

    def __init__(self, robot: Robot, errors: PlantErrors, seed: int, share: float) -> None:
        """See StructuralPlant, and Friction for `share`."""
        super().__init__(robot, errors, seed, PLANT_INTERVALS)
        self._acting = Friction(robot, share)


def run(cell: Cell) -> Result:
    """Errors of a controller on a plant."""
    try:
        return _circle(cell) if cell.method == NLSQ else _points(cell)
    except (ArithmeticError, ValueError):
        return {GONE: 100.0}


def _circle(cell: Cell) -> Result:
    """The middle circle from a phase of the seed, as in pawlowski2019/mpc."""
    path = mpc.around(RADII["middle circle"], float(cell.random("phase").uniform()))
    wanted = path(TICK * np.arange(round((_CIRCLE + 2.0) / TICK)))
    told = {"substeps": SUBSTEPS, **_COLUMN.settings}
    error = _loop(cell, _COLUMN.controller, wanted, _CIRCLE, told)
    return {GONE: 0.0, AROUND: share_of(error[round(_SINCE / TICK) :]).mean()}


def _points(cell: Cell) -> Result:
    """Points of the strict box, each from rest."""
    policy = f"policy:{_policy(cell)}"
    points = STRICT.box.sample(cell.settings.points, cell.random("points"))
    least = []
    for point in points:
        wanted = np.tile(point, (round((_REACH + 2.0) / TICK), 1))
        least.append(share_of(_loop(cell, policy, wanted, _REACH, {})).min())
    reached = 100.0 * np.mean(np.array(least) < 100.0 * mpc.NEAR)
    return {GONE: 0.0, REACHED: reached, LEAST: np.mean(least)}


def _policy(cell: Cell) -> Path:
    """Where the policy of a seed lies, which its first cell trains."""
    path = cell.folder / f"gps_{cell.seed}"
    if all(file.is_file() for file in files_of(path)):
        return path
    rough = PlantSettings(largest_error=ROUGH)
    learnt, watched = Lanes(floating(), rough), Lanes(floating(), rough.finer())
    task, samples = Reaching(learnt, STRICT), cell.settings.samples
    settings = TrainingSettings.of("gps", seed=cell.seed, samples=samples)
    trained = train(learnt, task, settings, Judging(watched, task, max(1, samples // 6), 256))
    save_policy(trained.policy, path)
    return path


def _loop(
    cell: Cell, controller: str, wanted: np.ndarray, seconds: float, told: dict[str, Any]
) -> np.ndarray:
    """(T,) distance of the true tip from the wanted one (T, 3) in every tick [m]."""
    plant: Plant = cell.case
    robot, seeds = floating(), (cell.stream("plant"), cell.stream("controller"))
    errors = PlantErrors(**(plant.errors or {}))
    case = tracking_loop.Case(
        plant.name, ReferenceSettings(kind="tip_circle"), seconds, errors, PLANT_INTERVALS,
        rate_hz=mpc.RATE_HZ, model_intervals=INTERVALS,
    )  # fmt: skip
    body = None
    if plant.errors is not None:
        beam = FrictionPlant(robot, errors, seeds[0], plant.hysteresis)
        body = RodPlant.of(robot, beam)
    blocks = tracking_loop.loop_blocks(
        robot, case, SampledReference(TICK, None, wanted), controller, seeds, plant=body,
        known=_COLUMN.robot, parameters=told, filter_settings=ModelEstimatorSettings(),
    )  # fmt: skip
    error: np.ndarray = followed(blocks, clock=time.thread_time)["error"]
    if not np.isfinite(error).all():
        raise ArithmeticError("the tip was lost")
    return error


def rows(results: Results) -> Iterator[Row]:
    """Each seed's error over that on the plant with the model's equations."""
    for plant in OTHERS:
        for method, quantity in ((NLSQ, AROUND), (POLICY, LEAST)):
            pairs = zip(results.of(plant.name, method), results.of(OWN.name, method), strict=True)
            ratios = [other[quantity] / own[quantity] for other, own in pairs
                      if quantity in other and quantity in own]  # fmt: skip
            if ratios:
                name = RATIO.format(quantity)
                asked = STUDY.asked(plant.name, method, name)
                yield Row.of(plant.name, method, name, ratios, "-", **asked)


STUDY = Study(
    name="pawlowski2019/other-plants",
    source="",
    summary="NLSQ and a policy on exact beams that their model is not",
    run=run,
    cases=(OWN, *OTHERS),
    methods=(NLSQ, POLICY),
    settings=Settings,
    metrics=(
        Metric(GONE, "%", GONE),
        Metric(AROUND, "% of L", AROUND),
        Metric(REACHED, "%", REACHED),
        Metric(LEAST, "% of L", LEAST),
    ),
    musts=(
        Must(GONE, 0.0),
        *(Must(RATIO.format(name), 2.0, 1.3) for name in (AROUND, LEAST)),
    ),
    further_rows=rows,
    exact="L is 10 cm. All plants share the robot file, without gravity; that of the model's "
    "equations is a rod of 20 intervals of the house, where filter and controllers have 5, the "
    "others are chains of 20 geometrically exact elements with an integrator of their own. The tip "
    "is measured every 0.01 s with 0.2 mm of noise in each coordinate, tensions at the spools with "
    "5 mN; state and parameters are the filter's. Commands act a tick after their sample. A policy "
    "learns on rods of 10 intervals with a known state and a quarter of the samples of "
    "pawlowski2019/learning, so that it is less good than there; a point counts as reached "
    "where the tip comes within 5 % of L of it in 2 s.",
    about={
        "length": "101 mm, known as 100 mm",
        "payload": "1 g, an eighth of the rod's mass",
        "hysteresis": "ten plays of the tensions, the widest of 0.05 N",
    },
    quick={"samples": 2000, "points": 1},
)
