"""Every filter and every controller on every model: the tip follows a circle.

The plant is of the model's own kind, made anew with finer steps and other numbers: the first
parameter differs by 5 %, for the rod the compliance by -5 %, the tip mass by +5 % and the grid.
"""

from dataclasses import dataclass, field
from itertools import product

from softcr_models.model import TIP, nominal_parameters
from softcr_models.models import make_model
from softcr_models.robots.robot import load_robot
from softcr_runtime.blocks.system import Parameters, System
from softcr_runtime.settings.registry import GRADIENT_MPC, NEMPC
from softcr_studies.frame.study import Cell, Metric, Must, Seeds, Study, StudySettings
from softcr_studies.loops.closed_loop import closed_loop, mean_error_mm, tracked

RADIUS, FREQUENCY = 0.015, 0.5  # of the circle [m], [Hz]
DURATION = 5.0  # [s]
LIMIT_MM = 2.0
METHODS = tuple(f"{each}, {controller}" for each, controller in
                product(("ukf", "ekf"), (NEMPC, GRADIENT_MPC)))  # fmt: skip
_POPULATION = 64
_FILLED = 0.3  # of the pressures' range: how far chambers stretch the robot up to the circle
_RAISED = 0.01  # of a hanging arm, whose tip is lowest at rest [m]


@dataclass(frozen=True)
class Case:
    """One model and its plant."""

    name: str  # of the model
    robot: str
    plant: Parameters  # name of the plant and its settings
    rate_hz: float = 70.0
    controller: Parameters = field(default_factory=dict)  # settings of both that differ


def _of_the_kind(model: str) -> Parameters:
    return {"plant": "model", "plant_model": model, "parameter_factor": 1.05}


_SOFTER_ROD: Parameters = {
    "plant": "rod",
    "errors": "bending_factor=0.95,tip_mass_factor=1.05",
}
CASES = (
    Case("rod", "licher2025", _SOFTER_ROD),
    Case("ddpinn", "licher2025", _of_the_kind("ddpinn")),
    Case("constant_curvature", "licher2025", _of_the_kind("constant_curvature")),
    # nine tendons serve three coordinates of the tip: calm commands choose among them
    Case("arm", "dalenberg_robot1", _of_the_kind("arm"), 50.0, {"costs.input_rate": 1.0}),
)


def circle_height(case: Case) -> float:
    """z of a circle that the tip can follow [m], in the frame of the model's tip."""
    model = make_model(case.name, load_robot(case.robot, kinds=None))
    inputs, nominal = model.inputs, nominal_parameters(model.parameters)
    hangs = inputs.quantity != "pressure"
    held = inputs.rest if hangs else inputs.low + _FILLED * inputs.range
    state = model.equilibrium(held, nominal)[None]
    tip = model.observe((TIP,), state, held[None], nominal[None])[TIP][0, :, 3]
    return float(tip[2]) + (_RAISED if hangs else 0.0)


def system_of(cell: Cell, duration: float) -> System:
    """Plant, filter, reference and controller of a cell."""
    case: Case = cell.case
    filter_name, controller = cell.method.split(", ")
    population: Parameters = {"population": _POPULATION} if controller == NEMPC else {}
    plant = dict(case.plant)
    circle: Parameters = {"radius": RADIUS, "height": circle_height(case), "frequency": FREQUENCY}
    return closed_loop(
        cell, controller, "tip_circle", plant=str(plant.pop("plant")), robot=case.robot,
        model=case.name, rate_hz=case.rate_hz, duration=duration,
        of={"plant": plant, "estimator": {"filter": filter_name}, "reference": circle,
            "controller": case.controller | population},
    )  # fmt: skip


class Settings(StudySettings):
    """See StudySettings."""

    seeds: Seeds = 3


STUDY = Study(
    name="control/any-model",
    source="",
    summary="every filter and every controller on every model, on plants of its kind",
    run=lambda cell: tracked(cell, system_of(cell, DURATION)),
    cases=CASES,
    methods=METHODS,
    settings=Settings,
    metrics=(
        Metric("mean tip error", "mm", mean_error_mm),
        Metric("settled tip error", "mm", lambda result: mean_error_mm(result, since=2.0)),
    ),
    musts=(Must("mean tip error", LIMIT_MM),),
    exact="The plant has the model's own equations, with 5 % other parameters and finer steps; the "
    "tip is measured with the noise of its cameras, inputs without noise.",
    about={"radius_mm": 1e3 * RADIUS, "frequency_hz": FREQUENCY, "duration_s": DURATION},
)
