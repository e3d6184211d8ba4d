"""Beyond the paper: P-satI-D of Fig. 8 on robots that are not chains of constant strain.

The law, its gains, setpoints and the model of its feed-forward are those of valadas2024/control:
the model is learned from 4 s of noisy poses of the paper's robot, and is not changed. The plant is
that robot, or an exact rod of its material, whose strains vary along each segment under its own
weight. Of that rod lengths are wrong, a payload hangs at its tip, or torques act with hysteresis:
one error at a time, then all of them.

What the controller sees of the rod are its strains averaged along each segment, on which the
torques do work: the law's proof needs that. Strains by the inverse kinematics of the segments'
ends are the same only where they are constant.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import Field

from softcr_papers.driven_beam import DrivenBeam, Hysteresis, Sections
from softcr_papers.valadas2024.learning.learn import LearnSettings, learn_dynamics
from softcr_papers.valadas2024.learning.shape_fit import PoseNoise
from softcr_papers.valadas2024.shape_regulator import ShapeRegulator
from softcr_papers.valadas2024.strain.dynamics import StrainDynamics
from softcr_papers.valadas2024.strain.kinematics import StrainKinematics, planar_poses
from softcr_papers.valadas2024.strain.numbers import StrainNumbers
from softcr_papers.valadas2024.strain_references import LARGEST
from softcr_papers.valadas2024.studies import control
from softcr_papers.valadas2024.studies.robots import CASES
from softcr_runtime.console.panels import leave_room, panels
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

_STEP = 0.004  # of the rod and of the integral; a quarter changes errors by a hundredth [s]
_LONGEST = 0.01  # element of the rod; half of it moves the tip by 0.1 mm [m]
_SEEN = 0.02  # between strains that count [s]
_ROBOT = CASES[1]
_GRAVITY = 9.81


@dataclass(frozen=True)
class Plant:
    """A case.

    Attributes:
        name: in the table.
        lengths: of the rod's segments over those that the controller knows.
        payload: at its tip [kg].
        hysteresis: share of the torques that plays carry [-]; the widest play has a half width of
            a tenth of the torque that holds the largest setpoint.
    """

    name: str
    lengths: tuple[float, float] = (1.0, 1.0)
    payload: float = 0.0
    hysteresis: float = 0.0


_LENGTHS, _PAYLOAD, _HYSTERESIS = (1.05, 0.95), 0.02, 0.16
OWN = Plant("the paper's robot")
OTHERS = (
    Plant("exact rod"),
    Plant("exact rod, lengths +5 %, -5 %", lengths=_LENGTHS),
    Plant("exact rod, payload 20 g", payload=_PAYLOAD),
    Plant("exact rod, hysteresis 16 %", hysteresis=_HYSTERESIS),
    Plant("exact rod, all of these", _LENGTHS, _PAYLOAD, _HYSTERESIS),
)
LOST, SHAPE, TIP = "runs that are lost", "strain error, last second", "tip error, last second"
RATIO = "strain error over that of the paper's robot"
_KINDS = ("bending", "shear", "axial strain")


class Settings(StudySettings):
    """See StudySettings."""

    seeds: int = Field(10, ge=1, le=100, description="draws of setpoints, torques and noise")
    hold: Seconds = Field(5.0, ge=2.0, le=20.0, description="time for each setpoint")


def run(cell: Cell) -> Result:
    """Errors over the last second of each setpoint, mean over setpoints."""
    shapes, hold = control.setpoints(cell), cell.settings.hold
    chain = StrainKinematics(_ROBOT.arm.lengths)
    if cell.case == OWN:
        settings = control.Settings(seeds=1, hold=hold)
        found = control.run(Cell(_ROBOT.name, cell.method, cell.seed, settings))
        if "strains" not in found:
            return {LOST: 100.0}
        strains = found["strains"].reshape(len(shapes), -1, 6)
        tips = chain.tip(strains)
    else:
        try:
            strains, tips = _controlled(exact_rod(cell.case), _regulator(cell), shapes, hold)
        except (ArithmeticError, np.linalg.LinAlgError):
            return {LOST: 100.0}
    last = slice(-round(1.0 / _SEEN), None)
    errors = 100.0 * np.abs(strains - shapes[:, None])[:, last] / LARGEST
    apart = (tips[:, last] - chain.tip(shapes)[:, None])[..., :2]
    return {
        LOST: 0.0, SHAPE: errors.mean(), TIP: 1e3 * np.linalg.norm(apart, axis=-1).mean(),
        **{name: errors[..., k::3].mean() for k, name in enumerate(_KINDS)},
        "strains": strains.reshape(-1, 6), "setpoints": shapes,
    }  # fmt: skip


def exact_rod(plant: Plant) -> DrivenBeam:
    """The rod of a case, straight and still."""
    numbers = _ROBOT.arm.numbers
    parts = sections(numbers, numbers.lengths * plant.lengths)
    across, along = _GRAVITY * numbers.down
    widest = 0.1 * numbers.stiffness * LARGEST
    hysteresis = Hysteresis(plant.hysteresis, widest)
    return DrivenBeam(parts, (across, 0.0, along), plant.payload, _LONGEST, hysteresis)


def sections(numbers: StrainNumbers, lengths: np.ndarray) -> Sections:
    """The material of a chain of constant strain as that of an exact rod, in lengths (S,) [m].

    Valadas et al.'s stiffness is of a whole segment, the rod's of a section: under the same inputs
    both have the same strains where these are constant, of which bending is about -y, shear along x
    and stretch along z. Out of the plane, where nothing moves it, the rod is as stiff as in it.
    """
    count, known = len(lengths), numbers.lengths[:, None]
    stiffness, damping = (each.reshape(count, 3) / known
                          for each in (numbers.stiffness, numbers.damping))  # fmt: skip
    actuation = np.zeros((count, 6, 3 * count))
    for i, length in enumerate(numbers.lengths):
        for strain, (row, sign) in enumerate(((4, -1.0), (0, 1.0), (2, 1.0))):
            actuation[i, row, 3 * i + strain] = sign / length
    inertia = np.column_stack([*[numbers.mass] * 3, *[numbers.inertia] * 2, 2.0 * numbers.inertia])
    order = [1, 1, 2, 0, 0, 0]
    return Sections(lengths, stiffness[:, order], damping[:, order], inertia, actuation)


def _regulator(cell: Cell) -> ShapeRegulator:
    """As that of valadas2024/control: a model from noisy poses, the segments known."""
    motion = _ROBOT.training(cell.stream("plant")).motion
    seen = motion.with_noise(*_ROBOT.noise, cell.random("camera"))
    settings = LearnSettings(noise=PoseNoise(*_ROBOT.noise), limits=None)
    numbers = learn_dynamics(seen, None, _ROBOT.arm.lengths, settings).regression.numbers
    return ShapeRegulator(StrainDynamics(numbers), control.GAINS)


def _controlled(
    rod: DrivenBeam, regulator: ShapeRegulator, shapes: np.ndarray, hold: float
) -> tuple[np.ndarray, np.ndarray]:
    """Strains (7, K, 6) that the controller sees, and poses (7, K, 3) of the tip, every 20 ms.

    Springs and dampers of the feedback, Eq. (11), are in the rod's steps; its integral, Eq. (12),
    goes on with every step.
    """
    gains, every = regulator.gains, round(_SEEN / _STEP)
    springs, dampers = np.diag(gains.proportional), np.diag(gains.derivative)
    strains, tips = [], []
    for wanted in shapes:
        held = regulator.feedforward(wanted) + gains.proportional * wanted
        for step in range(1, round(hold / _STEP) + 1):
            force = held + gains.integral * regulator.integral
            rod.follow(force, springs, dampers, _STEP)
            regulator.integrate(rod.conjugates(), wanted, _STEP)
            if step % every == 0:
                strains.append(rod.conjugates())
                tips.append(planar_poses(rod.poses)[-1])
    return np.reshape(strains, (len(shapes), -1, 6)), np.reshape(tips, (len(shapes), -1, 3))


def rows(results: Results) -> Iterator[Row]:
    """Each seed's error over that of the paper's robot."""
    own = results.of(OWN.name, control.LEARNED)
    for plant in OTHERS:
        found = results.of(plant.name, control.LEARNED)
        ratios = [other[SHAPE] / mine[SHAPE] for other, mine in zip(found, own, strict=True)
                  if SHAPE in other and SHAPE in mine]  # fmt: skip
        if ratios:
            asked = STUDY.asked(plant.name, control.LEARNED, RATIO)
            yield Row.of(plant.name, control.LEARNED, RATIO, ratios, "-", **asked)


def draw(results: Results, directory: Path) -> None:
    """Strains of the first seed over time."""
    names = [f"{kind} {segment}" for segment in (1, 2) for kind in _KINDS]
    with panels(directory / "strains.png", names, x="time [s], first seed") as axes:
        for number, plant in enumerate((OWN, OTHERS[0], OTHERS[-1])):
            found = results.first(plant.name, control.LEARNED)
            if "strains" not in found:
                continue
            times = _SEEN * np.arange(1, len(found["strains"]) + 1)
            for panel, strain, wanted in zip(
                axes, found["strains"].T, found["setpoints"].T, strict=True
            ):
                if not number:
                    edges = np.linspace(0.0, times[-1], len(wanted) + 1)
                    panel.stairs(wanted, edges, baseline=None, color="k", label="setpoint")
                panel.plot(times, strain, f"C{number}", label=plant.name, linewidth=1.0)
        leave_room(axes)


STUDY = Study(
    name="valadas2024/other-plants",
    source="",
    summary="setpoints of the shape on exact rods that the controller's model is not",
    run=run,
    cases=(OWN, *OTHERS),
    methods=(control.LEARNED,),
    settings=Settings,
    metrics=(
        Metric(LOST, "%", LOST),
        Metric(SHAPE, "%", SHAPE),
        *(Metric(f"of it, {name}", "%", name) for name in _KINDS),
        Metric(TIP, "mm", TIP),
    ),
    musts=(Must(LOST, 0.0), Must(RATIO, 2.0, 1.3)),
    further_rows=rows,
    draw=draw,
    exact="Errors of strains are in per cent of the largest setpoint, mean over strains; that of "
    "the tip is its distance from where constant strains of the setpoint would have it, which an "
    "exact rod keeps only in part. Model, law and setpoints are those of valadas2024/control. The "
    "exact rod has the same material, and the same weight, stiffness and inputs of each segment; "
    "what differs is its equations. Strains are seen without noise and delay, as averages along "
    "each segment of the length that the controller knows, and are 0 at rest.",
    about={
        "lengths": "73.5 and 95 mm, known as 70 and 100 mm",
        "hysteresis": "ten plays, the widest of a tenth of the torque that holds the largest "
        "setpoint",
    },
    quick={"hold": 2.0},
)  # fmt: skip
