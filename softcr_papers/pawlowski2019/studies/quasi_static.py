"""Figs. 4.1 and 4.2 of Pawlowski (2019): points and circles by the Jacobian of the statics."""

from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import numpy as np
from pydantic import Field

from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_papers.pawlowski2019.quasi_static import static_change, static_jacobian, static_tip
from softcr_papers.pawlowski2019.studies.robots import floating
from softcr_papers.pawlowski2019.studies.targets import (
    LENGTH,
    RADII,
    circle,
    model,
    share_of,
    static_points,
)
from softcr_studies.frame.study import (
    Cell,
    Metric,
    Must,
    Published,
    Result,
    Seeds,
    Study,
    StudySettings,
)

GAIN, LEVEL = 0.2, 1e-5  # of (4.11) [-]; of inputs at their range from rest, as an error [m]
NEAR = 0.01  # of the length
MOST = 200  # steps to a point
POINTS = "100 random points"
BOXED, CLIPPED = "least squares in the box", "pseudo-inverse, then cut off"
EXACT, OTHER = "the model itself", "finer, 5 % stiffer"


@dataclass(frozen=True)
class Lap:
    """How a circle is followed.

    Attributes:
        samples: of the reference in a lap.
        gain: of the error, in an update [-].
        updates: after every sample.
        led: whether the reference's motion to the next sample is added to the last of them.
        plant: what rests after an update.
    """

    samples: int = 100
    gain: float = GAIN
    updates: int = 1
    led: bool = False
    plant: str = EXACT

    @property
    def name(self) -> str:
        """As the tables say it."""
        often = "one update" if self.updates == 1 else f"{self.updates} updates each"
        led = ", the reference's motion added" if self.led else ""
        plant = "" if self.plant == EXACT else f", {self.plant}"
        return f"{self.samples} samples, gain {self.gain:g}, {often}{led}{plant}"


LITERAL = Lap()
SLOW, ITERATED, NEWTON = Lap(samples=500), Lap(updates=5), Lap(gain=1.0)
LED = Lap(led=True)
LAPS = {lap.name: lap for lap in (LITERAL, SLOW, ITERATED, NEWTON, LED, replace(LED, plant=OTHER))}


class Settings(StudySettings):
    """See StudySettings."""

    seeds: Seeds = 10
    points: int = Field(
        100, ge=1, le=10_000, description="number of random points of the static workspace"
    )


class Arm:
    """A robot that rests after every step, and the model whose Jacobian leads it."""

    def __init__(self, kind: str) -> None:
        self.model = model()
        robot = floating()
        softer = robot.replace(bending_compliance=robot.bending_compliance / 1.05)
        other = RodPrediction(CosseratRod(softer, 20), single_precision=False)
        self._plant = self.model if kind == EXACT else other
        self.inputs = self.model.inputs.rest

    @property
    def tip(self) -> np.ndarray:
        """(3,) where it stands [m]."""
        return static_tip(self._plant, self.inputs, self._plant.nominal_parameters)

    def move(self, wish: np.ndarray, method: str) -> None:
        """One step that is to move the tip by (3,) [m]."""
        rod = self.model
        jacobian = static_jacobian(rod, self.inputs, rod.nominal_parameters)[1]
        if method == CLIPPED:
            wanted = self.inputs + np.linalg.pinv(jacobian) @ wish
            self.inputs = np.clip(wanted, rod.inputs.low, rod.inputs.high)
        else:
            self.inputs = self.inputs + static_change(rod, self.inputs, jacobian, wish, LEVEL)


def run(cell: Cell) -> Result:
    """Steps to every point, or the errors along a circle."""
    if cell.case == POINTS:
        points = _points(cell.settings.points, cell.stream("points"))
        steps = np.array([_steps(point, cell.method) for point in points])
        reached = steps < MOST
        return {
            "steps": steps[reached].mean(), "spread": steps[reached].std(),
            "reached": 100.0 * reached.mean(), "distance": share_of(_away(points)).mean(),
        }  # fmt: skip
    arrived, left = (share_of(each) for each in _along(RADII[cell.case], LAPS[cell.method]))
    return {"error": arrived.mean(), "largest": arrived.max(), "left": left.mean()}


@cache  # of both methods
def _points(count: int, seed: int) -> np.ndarray:
    return static_points(count, np.random.default_rng(seed))


def _steps(point: np.ndarray, method: str) -> int:
    """Until the tip is as near as 1 % of the length; `MOST`: never."""
    arm = Arm(EXACT)
    for step in range(MOST):
        error = arm.tip - point
        if np.linalg.norm(error) < NEAR * LENGTH:
            return step
        arm.move(-GAIN * error, method)
    return MOST


def _away(points: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points - Arm(EXACT).tip, axis=1)


@cache  # no seed changes it
def _along(radius: float, lap: Lap) -> tuple[np.ndarray, np.ndarray]:
    """(samples,) errors [m] when a sample comes, and (samples,) after its updates.

    Before the lap the tip comes to rest a tenth of it earlier.
    """
    arm, before = Arm(lap.plant), lap.samples // 10
    wanted = circle(radius, np.arange(-before, lap.samples + 1) / lap.samples)
    for _ in range(40):
        arm.move(-GAIN * (arm.tip - wanted[0]), BOXED)
    errors = []
    for here, there in pairwise(wanted):
        arrived = arm.tip - here
        for update in range(lap.updates):
            last = update == lap.updates - 1
            ahead = there - here if lap.led and last else 0.0
            arm.move(ahead - lap.gain * (arm.tip - here), BOXED)
        errors.append((np.linalg.norm(arrived), np.linalg.norm(arm.tip - here)))
    at_once, left = np.array(errors[before:]).T
    return at_once, left


STEPS, ERROR = "steps to 1 % of the length", "mean tip error"
LEFT = "mean tip error after the updates"
STUDY = Study(
    name="pawlowski2019/quasi-static",
    source="Pawlowski, MSc thesis, Sec. 4.1, Figs. 4.1 and 4.2",
    summary="points and circles by the Jacobian of the statics, the robot at rest after every step",
    run=run,
    cases=(POINTS, *RADII),
    methods=lambda case: (BOXED, CLIPPED) if case == POINTS else tuple(LAPS),
    settings=Settings,
    metrics=(
        Metric(STEPS, "-", "steps"),
        Metric("standard deviation of the steps", "-", "spread"),
        Metric("points that were reached", "%", "reached"),
        Metric("mean distance of the points from the straight rod's tip", "%", "distance"),
        Metric(ERROR, "%", "error"),
        Metric("largest tip error", "%", "largest"),
        Metric(LEFT, "%", "left"),
    ),
    published=(
        Published(STEPS, 9.33, "simulation", POINTS),
        Published("standard deviation of the steps", 3.24, "simulation", POINTS),
        *(Published(ERROR, 1.0, "simulation", case) for case in RADII),
    ),
    musts=(
        Must(STEPS, 9.33, None, POINTS, BOXED),
        *(
            Must(ERROR, 1.0, 0.3, case, lap.name)
            for case in RADII
            for lap in (LITERAL, SLOW, NEWTON, LED)
        ),
        *(Must(LEFT, 1.0, 0.3, case, ITERATED.name) for case in RADII),
    ),
    exact="Errors are in per cent of the length of 10 cm. The robot is the model's equilibrium; of "
    "the rows with another plant it has 20 intervals instead of 5 and is 5 % stiffer. Points "
    "are uniform in the static box of curvature and stretch, those left out that no tension "
    "reaches; every search begins with slack tendons. The thesis does not say how many "
    "tendons it has, how it inverts the Jacobian of them, what keeps tensions above zero, nor"
    " how many samples a circle has, how many updates each of them gets, and when its error "
    "is read; it prints that errors on circles are less than 1 %, and grow with the circle "
    "since it is swept faster. With one update of gain 0.2 for each sample the tip lags "
    "behind by what the reference moves in five: less than 1 % of the length on the largest "
    "circle needs 480 samples or more. Sec. 4.1 allows more than that: q is updated when the "
    "target changes or iteratively until the configuration is reached, of which five updates "
    "are a reading, read after them; and the gain is there for targets that are far, which "
    "the next sample of a circle is not: with gain 1 the error is one sample's motion. That "
    "the reference's motion is added is ours.",
    quick={"points": 10},
)  # fmt: skip
