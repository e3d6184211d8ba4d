"""Dalenberg's experiments on hardware, Sec. VI, on a simulated arm.

The arm is the reconstructed Robot I with the hardware's independent routing, while the controller
takes its tendons for coupled, as in the thesis; motors hold tendon lengths, so the loops are stiff.

Experiment I (Sec. VI-A, Table I): tendons are pulled along eight printed paths; Algorithm 2 says
which shape that makes, from positions or poses, with the true section lengths or the printed random
ones. Experiment II (Sec. VI-B): adaptive against fixed to a setpoint, until the tip is within 1 mm.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from pydantic import Field

from softcr_papers.constant_curvature.kinematics import coverage_of
from softcr_papers.dalenberg2024.apcc import InferenceSettings, infer
from softcr_papers.dalenberg2024.arm import Arm, load_arm
from softcr_papers.dalenberg2024.arm_dynamics import ArmDynamics, TendonGains
from softcr_papers.dalenberg2024.shape_error import shape_error
from softcr_papers.dalenberg2024.studies.published import Comparison
from softcr_papers.dalenberg2024.studies.setpoint_run import FIXED, draw_runs, law, steer
from softcr_runtime.settings.node_settings import Seconds
from softcr_studies.frame.study import Cell, Metric, Result, Results, Row, Study, StudySettings

MOTORS = TendonGains(proportional=1e5, integral=0.0, derivative=1e3)
SETPOINT = np.array([0.0, 0.15, -0.5])
INPUTS = 40  # steps from the zero state to the printed tendon differentials; the thesis says n

INFERRED = {"sensors' distance": "cm", "sensors' angle": "crad", "E_shape": "mm"}
ASTRAY = 0.2  # E_mapping from which the model is lost, a third of the arm's length [m]
_ASTRAY = "lost, not timed: the tip passes by the setpoint, while that of the model is elsewhere"
_HELD, _STEP = 0.1, 4e-3  # [s]
_WITHIN = 1e-3  # of the setpoint, where a run of Experiment II ends [m]

# Table I: tendon differentials [mm], pulled, then pi and its random estimate [mm].
TABLE_ONE = (
    (12, 6, 6, 40, 30, 24, 70, 70, 50, 114, 246, 245, 127, 245, 252),
    (4, 27, 14, 34, 9, 68, 4, 4, 49, 114, 246, 245, 94, 253, 226),
    (29, 18, 13, 66, 46, 52, 5, 4, 70, 105, 245, 245, 102, 255, 259),
    (26, 13, 2, 47, 46, 8, 28, 23, 74, 106, 244, 245, 100, 218, 231),
    (27, 18, 22, 30, 35, 25, 32, 52, 43, 105, 245, 245, 103, 271, 259),
    (3, 23, 13, 11, 1, 74, 12, 3, 17, 105, 245, 245, 125, 255, 267),
    (21, 21, 11, 15, 15, 28, 7, 37, 14, 65, 244, 244, 79, 257, 270),
    (31, 3, 12, 48, 31, 24, 37, 55, 60, 66, 245, 245, 84, 254, 260),
)
MODES = tuple(
    f"{feedback}, {lengths}"
    for lengths in ("true π", "random π̂") for feedback in ("position", "pose")
)  # fmt: skip


@dataclass(frozen=True)
class Pulled:
    """A row of Table I; the table's rows are means over all of them."""

    row: tuple[int, ...]
    name: str = "Experiment I"


@dataclass(frozen=True)
class Trial:
    """One run of Experiment II."""

    name: str
    feedback: str  # what Algorithm 2 is given
    payload: float  # gripper left out, it is not known [kg]
    fixed_gain: float  # K [1/s]
    adaptive_gain: float
    adaptation: float  # the printed Gamma [1/m]
    cost: str  # a number among PRINTED, as the next two
    mapping: str
    duration: str
    # numbers of the sensors' differences, see Comparison
    sensors: Mapping[str, str] = field(default_factory=dict)


TRIALS = (
    Trial("II, run I: position", "position", 0.0, 1.5, 1.5, 40.0, "R20", "R21", "R22"),
    Trial("II, run II: pose", "pose", 0.0, 1.5, 1.5, 40.0, "R24", "R25", "R23",
          {"distance": "R26"}),
    Trial("II, run III: 0.21 kg", "pose", 0.21, 2.0, 1.5, 30.0, "R29", "R30", "R27",
          {"distance": "R32", "distance tip": "R32 tip", "angle": "R31"}),
)  # fmt: skip
WEAK = "fixed lengths, A-PCC's K"
"""R28: where the gains differ, the fixed controller with the adaptive one's."""
SCALES = {FIXED: 0.0, WEAK: 0.0, "A-PCC, Γ printed": 1.0, "A-PCC, Γ / 1000": 0.001}


class Settings(StudySettings):
    """See StudySettings."""

    runs: int = Field(
        len(TABLE_ONE), ge=1, le=len(TABLE_ONE), description="number of runs of Experiment I"
    )
    seconds: Seconds = Field(
        20.0, ge=1.0, le=100.0, description="longest duration of a run of Experiment II"
    )


def methods(case: Pulled | Trial) -> list[str]:
    """Ways to infer, or controllers."""
    if isinstance(case, Pulled):
        return list(MODES)
    same = case.fixed_gain == case.adaptive_gain
    return [name for name in SCALES if not (same and name == WEAK)]


def run(cell: Cell) -> Result:
    """One path in one way, or one controller's run."""
    case = cell.case
    if isinstance(case, Pulled):
        return infer_along(case.row, cell.method)
    gain = case.fixed_gain if cell.method == FIXED else case.adaptive_gain
    settings = law(gain, SCALES[cell.method] * case.adaptation, case.feedback)
    arm = load_arm("dalenberg_robot1").model_copy(update={"routing": "independent"})
    return steer(arm, SETPOINT, settings, MOTORS, payload=case.payload, within=_WITHIN,
                 seconds=cell.settings.seconds, bag=cell.bag)  # fmt: skip


def arm_of(lengths: np.ndarray) -> Arm:
    """Robot I with racks at the ends of these sections [m], the outer two of two bodies each."""
    first, second, third = (float(length) for length in lengths)
    changes = {
        "bodies": (first, second / 2, second / 2, third / 2, third / 2),
        "racks": tuple(float(end) for end in np.cumsum(lengths)),
        "routing": "independent",
    }
    return load_arm("dalenberg_robot1").model_copy(update=changes)


@lru_cache(maxsize=1)
def _pulled(row: tuple[int, ...]) -> tuple[Arm, list[np.ndarray]]:
    """The arm of a row of Table I, and its configurations at INPUTS parts of the tendons' way."""
    pulled, lengths = -1e-3 * np.array(row[:9]), 1e-3 * np.array(row[9:12])
    plant = ArmDynamics(arm_of(lengths))
    state, found = plant.rest(), []
    for part in np.arange(1, INPUTS + 1) / INPUTS:
        plant.advance(state, part * pulled, _HELD, MOTORS, _STEP)
        found.append(state.q.copy())
    return plant.arm, found


def infer_along(row: tuple[int, ...], mode: str) -> dict[str, float]:
    """What Algorithm 2 makes of a row of Table I.

    Returns:
        Mean errors of the sensors, "sensors' distance" [cm] and "sensors' angle" [crad]; "E_shape",
        its mean [mm].
    """
    feedback, told = mode.split(", ")
    lengths = 1e-3 * np.array(row[9:12] if told == "true π" else row[12:])
    settings = InferenceSettings.model_validate({"feedback": feedback})
    arm, configurations = _pulled(row)
    sensors, guess, found = np.array(arm.racks), np.zeros(9), []
    coverage, assumed = (coverage_of(sensors, each) for each in (arm.rest_lengths, lengths))
    for q in configurations:
        poses = arm.chain.pose(q, arm.rest_lengths, coverage)
        seen = infer(arm.model, lengths, assumed, poses, guess, settings)
        guess = seen.configuration
        shape = shape_error(arm.chain, q, arm.rest_lengths, arm.model, guess, lengths)
        found.append((1e2 * seen.linear.mean(), 1e2 * seen.angular.mean(), 1e3 * shape))
    return dict(zip(INFERRED, np.mean(found, axis=0), strict=True))


def rows(results: Results) -> list[Row]:
    """Experiment II: Psi, E_mapping, the sensors' errors and time, and changes."""
    found = []
    for trial in TRIALS:
        fixed = results.first(trial.name, FIXED)
        for method in methods(trial):
            found += _rows_of(trial, method, results.first(trial.name, method), fixed)
    return found


def _rows_of(trial: Trial, method: str, own: Result, fixed: Result) -> list[Row]:
    """Of one controller; the thesis prints no figures for WEAK."""
    table = Comparison(trial.name, method, "bench", method == FIXED, method != WEAK)
    if own["lost"]:
        table.add("lost after", float(own["times"][-1]), "s")
        return table.closed()
    runs = [own] if fixed["lost"] else [own, fixed]
    squares = [1e4 * float(np.mean(run["costs"] ** 2)) for run in runs]
    table.add_numbered("Psi² mean", trial.cost, squares, "cm²")
    mappings = [1e2 * float(run["mapping"].mean()) for run in runs]
    table.add_numbered("E_mapping mean", trial.mapping, mappings, "cm")
    if len(runs) > 1:
        table.add_ratio("Psi² mean", trial.cost, [squares[0] / squares[1]])
        table.add_ratio("E_mapping mean", trial.mapping, [mappings[0] / mappings[1]])
    table.add_sensors(runs, trial.sensors)
    number = "R28" if method == WEAK else trial.duration
    passes = bool(own["mapping"][-1] > ASTRAY)
    arrived = bool(own["errors"][-1] < _WITHIN) and not passes
    time = float(own["times"][-1]) if arrived else np.nan
    table.add(f"time to 1 mm ({number})", time, "s", table.figure(number), note=_ASTRAY * passes)
    if not arrived:
        table.add("tip error at the end", 1e3 * float(own["errors"][-1]), "mm")
    return table.closed()


def draw(results: Results, directory: Path) -> None:
    """Every run of Experiment II."""
    for number, trial in enumerate(TRIALS, 1):
        runs = {method: results.first(trial.name, method) for method in methods(trial)}
        draw_runs(runs, directory / f"experiment_2_run_{number}.png")


STUDY = Study(
    name="dalenberg2024/hardware-experiments",
    source="Dalenberg, MSc thesis, Sec. VI",
    summary="Algorithm 2 along pulled tendons, and adaptive against fixed lengths, simulated",
    run=run,
    cases=lambda settings: [*map(Pulled, TABLE_ONE[: settings.runs]), *TRIALS],
    methods=methods,
    settings=Settings,
    metrics=tuple(Metric(name, unit, name) for name, unit in INFERRED.items()),
    exact="SIMULATED, RECONSTRUCTED arm instead of the thesis's hardware, so absolute figures mean "
    "little. Plant and controller share the equations of piecewise constant curvature; the plant "
    "has more sections, mass, gravity, a payload, stiff motors and tendons that run otherwise than "
    "the controller takes them for. Gripper, friction and slack are missing; poses have no noise.",
    further_rows=rows,
    draw=draw,
    seeded=False,
)  # fmt: skip
