"""`softcr experiment apcc-feedback`: Dalenberg's experiments on hardware, on a simulated arm.

The arm is the reconstructed Robot I with the hardware's independent routing, while the controller
takes its tendons for coupled, as in the thesis; motors hold tendon lengths, so the loops are stiff.

Experiment I (Sec. VI-A, Table I): tendons are pulled along eight printed paths; Algorithm 2 says
which shape that makes, from positions or poses, with the true section lengths or the printed random
ones. Experiment II (Sec. VI-B): adaptive against fixed to a setpoint, until the tip is within 1 mm.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from softcr_control.apcc import ApccSettings, InferenceSettings, infer
from softcr_models.constant_curvature.arm import Arm
from softcr_models.constant_curvature.arm_dynamics import ArmDynamics, TendonGains
from softcr_models.constant_curvature.kinematics import coverage_of
from softcr_models.constant_curvature.shape_error import shape_error
from softcr_models.robot import load_arm
from softcr_tools.experiments.apcc.published import PUBLISHED, Published, change_label
from softcr_tools.experiments.apcc.robot_run import RobotTrace, Setting, run_robot
from softcr_tools.experiments.apcc.sensors_table import Numbers, sensor_rows
from softcr_tools.experiments.results import Row

MOTORS = TendonGains(proportional=1e5, integral=0.0, derivative=1e3)
SETPOINT = np.array([0.0, 0.15, -0.5])
INPUTS = 40
"""Steps from the zero state to the printed tendon differentials; the thesis says n."""

_HELD, _STEP = 0.1, 4e-3  # [s]

# Table I: tendon differentials [mm], pulled, then pi and its random estimate [mm].
TABLE_ONE = np.array(
    [
        [12, 6, 6, 40, 30, 24, 70, 70, 50, 114, 246, 245, 127, 245, 252],
        [4, 27, 14, 34, 9, 68, 4, 4, 49, 114, 246, 245, 94, 253, 226],
        [29, 18, 13, 66, 46, 52, 5, 4, 70, 105, 245, 245, 102, 255, 259],
        [26, 13, 2, 47, 46, 8, 28, 23, 74, 106, 244, 245, 100, 218, 231],
        [27, 18, 22, 30, 35, 25, 32, 52, 43, 105, 245, 245, 103, 271, 259],
        [3, 23, 13, 11, 1, 74, 12, 3, 17, 105, 245, 245, 125, 255, 267],
        [21, 21, 11, 15, 15, 28, 7, 37, 14, 65, 244, 244, 79, 257, 270],
        [31, 3, 12, 48, 31, 24, 37, 55, 60, 66, 245, 245, 84, 254, 260],
    ]
)
MODES = tuple(
    (lengths, feedback) for lengths in ("true π", "random π̂") for feedback in ("position", "pose")
)


def arm_of(lengths: np.ndarray) -> Arm:
    """Robot I with racks at the ends of these sections [m], the outer two of two bodies each."""
    first, second, third = (float(length) for length in lengths)
    changes = {
        "bodies": (first, second / 2, second / 2, third / 2, third / 2),
        "racks": tuple(float(end) for end in np.cumsum(lengths)),
        "routing": "independent",
    }
    return load_arm("dalenberg_robot1").model_copy(update=changes)


# -- Experiment I ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Inferred:
    """What Algorithm 2 made of a path in one mode, at INPUTS tendon inputs.

    Attributes:
        linear, angular: (INPUTS, 3) errors of the sensors [m], [rad].
        shapes: (INPUTS,) E_shape [m].
    """

    linear: np.ndarray
    angular: np.ndarray
    shapes: np.ndarray


def infer_run(run: np.ndarray, tick: Callable[[], None]) -> dict[tuple[str, str], Inferred]:
    """One row of Table I in all modes."""
    pulled, true, random = -1e-3 * run[:9], 1e-3 * run[9:12], 1e-3 * run[12:]
    arm = arm_of(true)
    plant, sensors = ArmDynamics(arm), np.array(arm.racks)
    state, coverage = plant.rest(), coverage_of(sensors, arm.rest_lengths)
    guesses = {mode: np.zeros(9) for mode in MODES}
    found: dict[tuple[str, str], list[tuple[np.ndarray, np.ndarray, float]]] = {
        mode: [] for mode in MODES
    }
    for part in np.arange(1, INPUTS + 1) / INPUTS:
        plant.advance(state, part * pulled, _HELD, MOTORS, _STEP)
        poses = plant.chain.pose(state.q, arm.rest_lengths, coverage)
        for mode in MODES:
            lengths = true if mode[0] == "true π" else random
            seen = infer(
                arm.model,
                lengths,
                coverage_of(sensors, lengths),
                poses,
                guesses[mode],
                InferenceSettings.model_validate({"feedback": mode[1]}),
            )
            guesses[mode] = seen.configuration
            guess = arm.model, seen.configuration, lengths
            shape = shape_error(plant.chain, state.q, arm.rest_lengths, *guess)
            found[mode].append((seen.linear, seen.angular, shape))
        tick()
    return {
        mode: Inferred(*(np.array(each) for each in zip(*values, strict=True)))
        for mode, values in found.items()
    }


def rows_of_inference(runs: list[dict[tuple[str, str], Inferred]]) -> list[Row]:
    """Means over runs, inputs and sensors. The thesis prints no numbers beside its figures."""
    rows = []
    for mode in MODES:
        method = f"{mode[1]}, {mode[0]}"
        for quantity, unit, scale, values in (
            ("sensors' distance", "cm", 1e2, [run[mode].linear.mean() for run in runs]),
            ("sensors' angle", "crad", 1e2, [run[mode].angular.mean() for run in runs]),
            ("E_shape", "mm", 1e3, [run[mode].shapes.mean() for run in runs]),
        ):
            mean, sd = scale * float(np.mean(values)), scale * float(np.std(values))
            rows.append(Row("Experiment I", method, quantity, None, mean, sd, unit, 1))
    return rows


# -- Experiment II --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """One run of Experiment II.

    Attributes:
        case: in the table.
        feedback: what Algorithm 2 is given.
        payload: gripper left out, it is not known [kg].
        fixed_gain, adaptive_gain: K [1/s].
        adaptation: the printed Gamma [1/m].
        cost, mapping, duration: numbers among PUBLISHED.
        sensors: numbers of the sensors' differences, see `sensor_rows`.
    """

    case: str
    feedback: str
    payload: float
    fixed_gain: float
    adaptive_gain: float
    adaptation: float
    cost: str
    mapping: str
    duration: str
    sensors: Numbers = field(default_factory=dict)


TRIALS = (
    Trial("II, run I: position", "position", 0.0, 1.5, 1.5, 40.0, "R20", "R21", "R22"),
    Trial("II, run II: pose", "pose", 0.0, 1.5, 1.5, 40.0, "R24", "R25", "R23",
          {"distance": "R26"}),
    Trial("II, run III: 0.21 kg", "pose", 0.21, 2.0, 1.5, 30.0, "R29", "R30", "R27",
          {"distance": "R32", "distance tip": "R32 tip", "angle": "R31"}),
)  # fmt: skip
SCALES = {"A-PCC, Γ printed": 1.0, "A-PCC, Γ / 1000": 0.001}
FIXED, WEAK = "fixed lengths", "fixed lengths, A-PCC's K"
"""WEAK is R28: where the gains differ, the fixed controller with the adaptive one's."""


def controllers_of(trial: Trial) -> dict[str, tuple[float, float]]:
    """K and Gamma of a trial's controllers."""
    weak = {WEAK: (trial.adaptive_gain, 0.0)} if trial.fixed_gain != trial.adaptive_gain else {}
    adaptive = {
        name: (trial.adaptive_gain, scale * trial.adaptation) for name, scale in SCALES.items()
    }
    return {FIXED: (trial.fixed_gain, 0.0), **weak, **adaptive}


def run_trial(trial: Trial, seconds: float, tick: Callable[[], None]) -> dict[str, RobotTrace]:
    """The fixed controller and the adaptive ones."""
    arm = load_arm("dalenberg_robot1").model_copy(update={"routing": "independent"})
    setting = Setting(arm, trial.payload, SETPOINT, MOTORS, seconds, within=1e-3)
    traces = {}
    for name, (gain, adaptation) in controllers_of(trial).items():
        law = ApccSettings.model_validate(
            {
                "gain": gain,
                "jacobian_state": "inferred",
                "objective": "norm",
                "adaptation": {"gains": (adaptation,)},
                "inference": {"feedback": trial.feedback},
            }
        )
        traces[name] = run_robot(setting, law, tick)
    return traces


def rows_of_trial(trial: Trial, traces: dict[str, RobotTrace], seconds: float) -> list[Row]:
    """Psi, E_mapping, the sensors' errors and time, and changes against the fixed controller."""
    rows = []
    for name, trace in traces.items():

        def row(
            quantity: str, value: float, unit: str, paper: float | None = None, name: str = name
        ) -> Row:
            return Row(trial.case, name, quantity, paper, value, 0.0, unit, 1)

        if trace.lost:
            rows.append(row("lost after", float(trace.times[-1]), "s"))
            continue
        rival = None if name == FIXED or traces[FIXED].lost else traces[FIXED]
        for quantity, unit, measure, number in (
            ("Psi² mean", "cm²", _cost, trial.cost),
            ("E_mapping mean", "cm", _mapping, trial.mapping),
        ):
            value, published = measure(trace), _published(number, name)
            paper = published.fixed if name == FIXED else published.adaptive
            rows.append(row(f"{quantity} ({number})", value, unit, paper))
            if rival is not None:
                change = 100.0 * (value / measure(rival) - 1.0)
                label = change_label(change, published.change)
                rows.append(row(label, change, "%", published.change))
        rows += sensor_rows(row, trace, rival, {} if name == WEAK else trial.sensors)
        arrived = bool(trace.errors[-1] < 1e-3)
        number = "R28" if name == WEAK else trial.duration
        published = _published(number, name)
        paper = published.fixed if name == FIXED else published.adaptive
        duration = float(trace.times[-1]) if arrived else np.nan
        rows.append(row(f"time to 1 mm ({number})", duration, "s", paper))
        if not arrived:
            rows.append(row(f"tip error at {seconds:g} s", 1e3 * float(trace.errors[-1]), "mm"))
    return rows


def _published(number: str, name: str) -> Published:
    """The thesis prints no figures for the fixed controller with the adaptive one's gain."""
    return Published(None, None, None) if name == WEAK else PUBLISHED[number]


def _cost(trace: RobotTrace) -> float:
    """Mean of Psi^2 [cm^2]."""
    return 1e4 * float(np.mean(trace.costs**2))


def _mapping(trace: RobotTrace) -> float:
    """Mean E_mapping [cm]."""
    return 1e2 * float(trace.mapping.mean())
