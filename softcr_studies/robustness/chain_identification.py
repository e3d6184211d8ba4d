"""The numbers of a pressure chain from a recording of a plant whose errors are known."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from softcr_control.reference import signals
from softcr_estimation.identification.stretches import PERIOD
from softcr_models import Robot, load_robot
from softcr_models.chain.identification import identify_chain
from softcr_models.identification.measured_groups import TIP_POSITION
from softcr_models.identification.rod_identification import Recording
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.structural_plant import StructuralPlant
from softcr_studies.frame.study import Cell, Result, Results, Row, Study, StudySettings

PLANT_INTERVALS, MODEL_INTERVALS = 20, 10
SECONDS, FREQUENCIES = 12.0, (0.1, 0.5, 1.0)
HOSE_POLE, HOSE_TIME, PLAY, ANGLE = 60.0, 0.025, 1000.0, 3.0 * np.pi / 180.0
CHAIN = {
    "hysteresis_radii": (300.0, PLAY, 3000.0), "hose_time": HOSE_TIME, "chamber_angles": True,
    "curvature_stiffness": True, "marker_offset": True,
}  # fmt: skip
METHOD = "least squares"


class Truth(NamedTuple):
    """A plant's error and the number of the chain that stands for it."""

    name: str
    errors: dict[str, Any]
    parameter: str
    value: float
    unit: str
    factor: float = 1.0


TRUTHS = (
    Truth("play +-1 kPa", {"play_half_width": PLAY}, "hysteresis_2", 1.0, "-"),
    Truth("hose, pole 60 1/s", {"hose_pole": HOSE_POLE}, "hose_1", 1e3 / HOSE_POLE, "ms",
          1e3 * HOSE_TIME),
    Truth("chamber 2 angle +3 deg", {"chamber_angle_error": (0.0, ANGLE, 0.0)}, "chamber_angle_2",
          3.0, "deg", 180.0 / np.pi),
    Truth("compliance -10 % at 15/m", {"stiffness_curvature": -0.1}, "curvature_stiffness", -0.1,
          "-"),
    Truth("marker 1 mm along the rod", {"marker_offset": (0.0, 0.0, 1e-3)}, "marker_offset_z", 1.0,
          "mm", 1e3),
)  # fmt: skip
ALL = "all at once"
CASES = (*(each.name for each in TRUTHS), ALL)


class Settings(StudySettings):
    """Of which robot."""

    robot: str = Field(
        "licher2025", min_length=1, description="name or file of a rod with chambers"
    )


def recorded(robot: Robot, errors: PlantErrors, seed: int) -> Recording:
    """Sines from rest, then a step to ambient pressure, of the structural plant."""
    plant = StructuralPlant(robot, errors, seed, PLANT_INTERVALS)
    times, count = signals.time_grid(SECONDS, PERIOD), len(robot.actuators)
    commands = signals.sines(times, count, 30e3, 25e3, FREQUENCIES)
    commands = signals.soft_start(commands, np.zeros(count), times, 1.0)
    commands[times > SECONDS - 1.0] = 0.0
    read, tips = [], []
    for command in commands:
        measured = plant.measure(0)
        assert measured.tip_pose is not None
        read.append(measured.pressures)
        tips.append(measured.tip_pose[:3, 3])
        plant.follow(command)
        plant.advance(PERIOD)
    return Recording(np.array(read), {TIP_POSITION: np.array(tips)}, PERIOD)


def run(cell: Cell) -> Result:
    """Values and half widths of what was found, by name, and the tip's distance [m]."""
    robot = load_robot(cell.settings.robot)
    chosen = [each for each in TRUTHS if cell.case in (each.name, ALL)]
    errors: dict[str, Any] = {"tip_noise": 2e-4}
    for each in chosen:
        errors |= each.errors
    recording = recorded(robot, PlantErrors(**errors), cell.stream("plant"))
    fit = identify_chain(robot.replace(pressure_chain=CHAIN), recording, MODEL_INTERVALS)
    return {
        "names": list(fit.names),
        "values": fit.values,
        "widths": fit.intervals,
        "not_excited": len(fit.not_excited),
        "error": fit.error,
    }


def rows(results: Results) -> Iterable[Row]:
    """What was found beside the truth; where a play is looked for, of its weight."""
    for case in CASES:
        found = results.of(case, METHOD)
        for truth in TRUTHS:
            if case not in (truth.name, ALL):
                continue
            told = [_told(result, truth) for result in found]
            value, width = np.array(told).T
            what = truth.parameter if truth.unit != "ms" else "hose_1, weight times time"
            yield Row.of(case, METHOD, f"{what}, true", np.array([truth.value]), truth.unit)
            yield Row.of(case, METHOD, what, value, truth.unit)
            yield Row.of(case, METHOD, f"{what}, 95 % interval, half", width, truth.unit)
            off = 100.0 * np.abs(value / truth.value - 1.0)
            yield Row.of(case, METHOD, f"{what}, error", off, "%", must=10.0, goal=5.0)
        left = np.array([result["error"] for result in found])
        yield Row.of(case, METHOD, "tip beside the recorded one", 1e3 * left, "mm")
        count = np.array([float(result["not_excited"]) for result in found])
        yield Row.of(case, METHOD, "not excited", count, "parameters")


def _told(result: Result, truth: Truth) -> tuple[float, float]:
    """Value and half width in the truth's unit; 0 and infinity of what was not excited."""
    names = [str(name) for name in result["names"]]
    if truth.parameter not in names:
        return 0.0, np.inf
    k = names.index(truth.parameter)
    return truth.factor * float(result["values"][k]), truth.factor * float(result["widths"][k])


STUDY = Study(
    name="robustness/chain-identification",
    source="",
    summary="the numbers of a pressure chain from a recording of a plant whose errors are known",
    run=run,
    cases=CASES,
    methods=(METHOD,),
    settings=Settings,
    further_rows=rows,
    exact=f"The plant is a chain of {PLANT_INTERVALS} beam elements, the identified model a rod of "
    f"{MODEL_INTERVALS} intervals; what a row does not name is as in the file. Compliance, tip "
    "mass and damping are found with the chain, lengths are known. The tip has 0.2 mm of noise in "
    "each coordinate, pressures have none. A chain knows no play beyond a weight of 0.95 in sum; a "
    "hose is a weight of a fixed lag of 25 ms, so that their product is compared with 1 / pole.",
    about={"plant_intervals": PLANT_INTERVALS, "model_intervals": MODEL_INTERVALS,
           "tip_noise_mm": 0.2, "seconds": SECONDS},
)  # fmt: skip
