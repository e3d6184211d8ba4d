"""Every filter and every controller on every model: the tip follows a circle, on virtual time.

The plant is of the model's own kind, made anew with finer steps and other numbers: the first
parameter differs by 5 %, for the rod the compliance by -5 %, the tip mass by +5 % and the grid. The
tip is measured with the noise of the plant's cameras, inputs without noise. Nothing is published
about this; it shows that the seams hold.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress

from softcr_models.model import TIP, nominal_parameters
from softcr_models.models import make_model
from softcr_models.robot import load_robot
from softcr_runtime import registry
from softcr_runtime.block import Output
from softcr_runtime.console import say
from softcr_runtime.results import new_run_directory, point_latest_to
from softcr_runtime.system import Parameters, Part, System
from softcr_runtime.virtual import run_system
from softcr_tools.benchmarks.machine import describe_machine
from softcr_tools.experiments.results import TABLE_WIDTH, Row, print_table, write_table

RADIUS, FREQUENCY = 0.015, 0.5  # of the circle [m], [Hz]
DURATION = 5.0  # [s]
LIMIT_MM = 2.0  # of the mean tip error, its beginning included
FILTERS, CONTROLLERS = ("ukf", "ekf"), (registry.NEMPC, registry.GRADIENT_MPC)
_POPULATION = 64
_FILLED = 0.3  # of the pressures' range: how far chambers stretch the robot up to the circle
_RAISED = 0.01  # of a hanging arm, whose tip is lowest at rest [m]


@dataclass(frozen=True)
class Case:
    """One model and its plant.

    Attributes:
        model: its name.
        robot: that it is of.
        rate_hz: of the loop [Hz].
        plant: name of the plant and its settings.
        controller: settings of both controllers that differ from their own.
    """

    model: str
    robot: str
    rate_hz: float
    plant: Parameters
    controller: Parameters = field(default_factory=dict)


def _of_the_kind(model: str) -> Parameters:
    return {"plant": "model", "plant_model": model, "parameter_factor": 1.05}


CASES = (
    Case(
        "rod", "licher2025", 70.0,
        {"plant": "rod", "bending_compliance_factor": 0.95, "tip_mass_factor": 1.05},
    ),
    Case("ddpinn", "licher2025", 70.0, _of_the_kind("ddpinn")),
    Case("constant_curvature", "licher2025", 70.0, _of_the_kind("constant_curvature")),
    # nine tendons serve three coordinates of the tip: calm commands choose among them
    Case("arm", "dalenberg_robot1", 50.0, _of_the_kind("arm"), {"costs.input_rate": 1.0}),
)  # fmt: skip


def circle_height(case: Case) -> float:
    """z of a circle that the tip can follow [m], in the frame of the model's tip."""
    model = make_model(case.model, load_robot(case.robot, kinds=("rod", "arm")))
    inputs, nominal = model.inputs, nominal_parameters(model.parameters)
    hangs = inputs.quantity != "pressure"
    held = inputs.rest if hangs else inputs.low + _FILLED * inputs.range
    state = model.equilibrium(held, nominal)[None]
    tip = model.observe((TIP,), state, held[None], nominal[None])[TIP][0, :, 3]
    return float(tip[2]) + (_RAISED if hangs else 0.0)


def system_of(case: Case, filter_name: str, controller: str, seed: int, duration: float) -> System:
    """Plant, filter, reference and controller of one cell of the matrix."""
    common: Parameters = {"robot": case.robot, "mode": "lockstep", "rate_hz": case.rate_hz}
    on_model: Parameters = common | {"model": case.model}
    numbers = case.controller | (
        {"population": _POPULATION} if controller == registry.NEMPC else {}
    )
    plant = dict(case.plant)
    circle: Parameters = {
        "reference": "tip_circle",
        "radius": RADIUS,
        "height": circle_height(case),
        "frequency": FREQUENCY,
        "duration": duration,
    }
    parts = (
        registry.part(
            "plant", str(plant.pop("plant")), common | plant | {"seed": seed, "duration": duration}
        ),
        registry.part("estimator", "rod", on_model | {"filter": filter_name}),
        Part("reference", "softcr_control.reference_block:ReferenceBlock", on_model | circle),
        registry.part("controller", controller, on_model | numbers | {"seed": seed}),
    )
    names = tuple(part.name for part in parts)
    return System("any model", parts, names, duration, True, parts[-1].name)


def tip_errors(system: System) -> np.ndarray:
    """(T,) distances of the true tip from its reference [m], from the first tick on."""
    tips: dict[int, np.ndarray] = {}
    wanted: dict[int, np.ndarray] = {}

    def observe(_: str, output: Output) -> None:
        if output.topic == "simulation/truth/tip/pose":
            tips[output.stamp] = output.value.position
        elif output.topic in ("reference/rod", "reference/output"):
            wanted[output.stamp] = output.value.tip_positions[0]

    run_system(system, observe=observe)
    return np.array([np.linalg.norm(tips[stamp] - tip) for stamp, tip in wanted.items()])


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr experiment any-model`; returns the exit code.

    Raises:
        UserError: the results directory cannot be written.
    """
    given = _parser().parse_args(arguments)
    console = Console()
    if not console.is_terminal:
        console.width = TABLE_WIDTH
    about = {"experiment": "any-model", "seeds": given.seeds, "machine": describe_machine()}
    directory = new_run_directory(given.results / "experiments" / "any-model")
    cells = [(case, f, c) for case in CASES for f in FILTERS for c in CONTROLLERS]
    rows = []
    with Progress(console=console) as progress:
        for case, filter_name, controller in progress.track(cells, description="cells"):
            errors = [
                1e3 * tip_errors(system_of(case, filter_name, controller, seed, DURATION)).mean()
                for seed in range(1, 1 + given.seeds)
            ]
            rows.append(
                Row(
                    case.model, f"{filter_name}, {controller}", "mean tip error", None,
                    float(np.mean(errors)), float(np.std(errors)), "mm", given.seeds, LIMIT_MM,
                )
            )  # fmt: skip
    write_table(directory, about, rows)
    point_latest_to(directory)
    title = f"a tip circle of {1e3 * RADIUS:g} mm at {FREQUENCY:g} Hz, {DURATION:g} s"
    print_table(console, title, rows)
    say(console, f"table: {directory / 'table.json'}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr experiment any-model",
        description="Every filter and every controller on every model, on plants of its kind.",
        allow_abbrev=False,
    )
    parser.add_argument("--seeds", type=int, choices=range(1, 101), default=3, metavar="N",
                        help="of sensors and controller (default: %(default)s)")  # fmt: skip
    parser.add_argument(
        "--results", type=Path, default=Path("results"), help="directory (default: %(default)s)"
    )
    return parser
