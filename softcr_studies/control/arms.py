"""An arm of two segments in the closed loop: a tip in motion, poses, and a ball in the way."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_control.reference.references import SampledReference
from softcr_control.reference.settings import ReferenceSettings
from softcr_models import CosseratRod, Robot, load_robot
from softcr_models.robots.obstacle_files import load_obstacles
from softcr_models.rod_model.rows import interval_counts
from softcr_runtime.blocks.block import Output
from softcr_runtime.blocks.system import Parameters
from softcr_runtime.settings.registry import GRADIENT_MPC, NEMPC
from softcr_studies.frame.cell import Cell, Result
from softcr_studies.frame.study import Metric, Must, Seeds, Study, StudySettings
from softcr_studies.loops.closed_loop import mean_error_mm
from softcr_studies.loops.tracking_loop import (
    MODEL_INTERVALS,
    PERIOD,
    SETTLED,
    Case,
    reference_of,
    run_loop,
)
from softcr_studies.loops.tracking_study import settled

ROBOT, BALL = "two_segments", "ball"
PLANT_INTERVALS = 2 * MODEL_INTERVALS
POPULATION = 256
CLEARANCE = 5e-3  # [m]
LAST = 1.0  # of a run at a pose: what counts [s]
SHARES = 0.05, 0.7  # of the range of the pressures that poses are made of
RADIUS, HEIGHT, FREQUENCY = 0.03, 0.2, 0.5  # of the circle round the ball [m], [m], [Hz]

METHODS: dict[str, Parameters] = {
    f"{NEMPC}, {POPULATION} candidates": {"controller": NEMPC, "population": POPULATION},
    GRADIENT_MPC: {"controller": GRADIENT_MPC},
}

TIP, AXIS, TURN, GAP = "tip error", "angle of the tip's axis", "angle of the tip", "nearest skin"


def _pose(robot: Robot, cell: Cell) -> SampledReference:
    """Of an equilibrium of the nominal rod on the plant's grid, another one for each seed."""
    rod = CosseratRod(robot, PLANT_INTERVALS)
    limits = robot.pressure_limits
    shares = cell.random("pose").uniform(*SHARES, rod.input_size)
    held = limits.minimum + shares * (limits.maximum - limits.minimum)
    pose = rod.tip_pose(rod.equilibrium(held))
    return SampledReference(PERIOD, None, pose[None, :3, 3], pose[None, :3, :3])


MOVING = Case(
    "trajectory to 1 Hz",
    ReferenceSettings(kind="trajectory", frequencies=(0.5, 1.0)),
    8.0,
    plant_intervals=PLANT_INTERVALS,
)
POSES = replace(
    MOVING,
    name="position and axis of the tip",
    reference=ReferenceSettings(kind="setpoint"),
    duration=4.0,
)
ROUND = Case(
    "circle through a ball",
    ReferenceSettings(kind="tip_circle", radius=RADIUS, height=HEIGHT, frequency=FREQUENCY),
    6.0,
    plant_intervals=PLANT_INTERVALS,
)
KEEPS_AWAY: Parameters = {"costs.obstacles": BALL, "costs.clearance": CLEARANCE}


def run(cell: Cell) -> Result:
    """See `run_loop`; poses of the true tip (T, 3, 4) and gap (T,) of the true skin to the ball [m]
    beside."""
    robot, case = load_robot(ROBOT), cell.case
    poses: list[np.ndarray] = []
    places: list[np.ndarray] = []

    def observe(_: str, output: Output) -> None:
        if output.topic == "simulation/truth/tip/pose":
            poses.append(output.value.matrix[:3])
        if output.topic == "simulation/truth/rod" and case.name == ROUND.name:
            places.append(output.value.poses()[1:, :3, 3])

    source = _pose(robot, cell) if case.name == POSES.name else reference_of(robot, case)
    told = METHODS[cell.method] | (KEEPS_AWAY if case.name == ROUND.name else {})
    found = dict(
        run_loop(
            robot, case, source, str(told["controller"]),
            (cell.stream("plant"), cell.stream("controller")),
            parameters=told, observe=observe, bag=cell.bag,
        )
    )  # fmt: skip
    found["poses"] = np.array(poses)
    if source.tip_orientations is not None:
        found["wanted_orientation"] = source.tip_orientations[0]
    if places:
        found["gap"] = _gaps(robot, np.array(places))
    return found


def _gaps(robot: Robot, places: np.ndarray) -> np.ndarray:
    """(T,) smallest distance of the skin at rows (T, R, 3) from the obstacles [m]."""
    counts = np.array(interval_counts(CosseratRod(robot, PLANT_INTERVALS))) + 1
    thick = np.repeat([0.5 * each.outer_diameter for each in robot.segments], counts)
    points = places.reshape(-1, 3)
    away = [each.distance(points) for each in load_obstacles(BALL).obstacles]
    gaps: np.ndarray = np.min(away, axis=0).reshape(places.shape[:2]) - thick
    return gaps.min(axis=1)


def _held(result: Result, values: np.ndarray) -> float | None:
    """Mean of the last rows of a run at a pose."""
    if "wanted_orientation" not in result:
        return None
    return float(values[-round(LAST / PERIOD) :].mean())


def _axis_deg(result: Result) -> float | None:
    if "wanted_orientation" not in result:
        return None
    along = result["poses"][:, :, 2] @ result["wanted_orientation"][:, 2]
    return _held(result, np.degrees(np.arccos(np.clip(along, -1.0, 1.0))))


def _turn_deg(result: Result) -> float | None:
    if "wanted_orientation" not in result:
        return None
    wanted = Rotation.from_matrix(result["wanted_orientation"])
    apart = wanted.inv() * Rotation.from_matrix(result["poses"][:, :, :3])
    return _held(result, np.degrees(apart.magnitude()))


def _tip_mm(result: Result) -> float | None:
    if "wanted_orientation" in result:
        return _held(result, 1e3 * result["error"])
    return None if "gap" in result else mean_error_mm(result)


def _gap_mm(result: Result) -> float | None:
    return float(1e3 * result["gap"].min()) if "gap" in result else None


def _tick_ms(percentile: float) -> Callable[[Result], float]:
    return lambda result: float(1e3 * np.percentile(settled(result, "ticks"), percentile))


class Settings(StudySettings):
    """See StudySettings."""

    seeds: Seeds = 3


STUDY = Study(
    name="control/arms",
    source="",
    summary="both predictive controllers on an arm of two segments: motion, poses, an obstacle",
    run=run,
    cases=(MOVING, POSES, ROUND),
    methods=tuple(METHODS),
    settings=Settings,
    metrics=(
        Metric(TIP, "mm", _tip_mm),
        Metric("largest tip error, from 2 s on", "mm",
               lambda result: None if "gap" in result else 1e3 * settled(result, "error").max()),
        Metric(AXIS, "deg", _axis_deg),
        Metric(TURN, "deg", _turn_deg),
        Metric(GAP, "mm", _gap_mm),
        Metric("filter's tip error", "mm",
               lambda result: 1e3 * np.linalg.norm(
                   settled(result, "estimated") - settled(result, "tips"), axis=1).mean()),
        Metric("tick, median", "ms", _tick_ms(50.0), timing=True),
        Metric("tick, 99 %", "ms", _tick_ms(99.0), timing=True),
    ),
    musts=(
        Must(TIP, 1.0, 0.3, case=MOVING.name),
        Must(TIP, 0.5, 0.2, case=POSES.name),
        Must(AXIS, 1.0, 0.3, case=POSES.name),
        Must(GAP, 1e3 * CLEARANCE - 1.0, 1e3 * CLEARANCE - 0.5, case=ROUND.name, at_least=True),
    ),
    exact="Plant and model share equations, time integrator, material law, pressure lag and "
    "geometry. The plant has twice the model's intervals; its bending compliance is 5 % smaller "
    "and its payload 10 % heavier; the tip's position is measured with 0.2 mm of noise in each "
    "coordinate, its orientation is not used, pressures are read without noise. Time is simulated, "
    "in lock-step: a command acts one tick after its sample however long the tick has taken, so "
    "that a tick must be shorter than the period, 14.3 ms, for a real loop to do as well. "
    "Poses are equilibria of the nominal rod on the plant's grid, a new one for each seed, of "
    "pressures between 5 and 70 % of their range; errors are means of the last second of four. "
    "The angle of the tip counts the turn about its axis, too, which the controllers leave free. "
    "The circle leads the tip through a ball that the plant does not feel; the body is asked to "
    "keep 5 mm away from it.",
    about={"robot": ROBOT, "settled_from_s": SETTLED, "clearance_mm": 1e3 * CLEARANCE},
)  # fmt: skip
