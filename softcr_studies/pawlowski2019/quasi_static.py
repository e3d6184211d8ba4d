"""Figs. 4.1 and 4.2 of Pawlowski (2019): points and circles by the Jacobian of the statics."""

from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import numpy as np
from pydantic import Field

from softcr_control.quasi_static import static_change, static_jacobian, static_tip
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_studies.pawlowski2019.robots import floating
from softcr_studies.pawlowski2019.targets import (
    LENGTH,
    RADII,
    circle,
    model,
    share_of,
    static_points,
)
from softcr_studies.study import (
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
LAPS = (100, 400)  # steps of a circle
POINTS = "100 random points"
BOXED, CLIPPED = "least squares in the box", "pseudo-inverse, then cut off"
PLAIN, LED = "gain alone", "gain and the reference's motion"
EXACT, OTHER = "the model itself", "finer, 5 % stiffer"


class Settings(StudySettings):
    """See StudySettings."""

    seeds: Seeds = 3
    points: int = Field(100, ge=1, le=10_000, description="random points of the static workspace")


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
    count, led, plant = cell.method.split(", ", 2)
    errors = share_of(_along(RADII[cell.case], int(count.split()[0]), led == LED, plant))
    return {"error": errors.mean(), "largest": errors.max()}


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
def _along(radius: float, count: int, led: bool, plant: str) -> np.ndarray:
    """(count,) errors [m] of a lap; before it the tip comes to rest a tenth of a lap earlier."""
    arm, before = Arm(plant), count // 10
    wanted = circle(radius, np.arange(-before, count + 1) / count)
    for _ in range(40):
        arm.move(-GAIN * (arm.tip - wanted[0]), BOXED)
    errors = []
    for here, there in pairwise(wanted):
        error = arm.tip - here
        errors.append(np.linalg.norm(error))
        arm.move((there - here if led else 0.0) - GAIN * error, BOXED)
    return np.array(errors[before:])


def _methods(case: str) -> Iterator[str]:
    if case == POINTS:
        yield from (BOXED, CLIPPED)
        return
    for count in LAPS:
        for led in (PLAIN, LED):
            yield f"{count} steps, {led}, {EXACT}"
    yield f"{LAPS[0]} steps, {LED}, {OTHER}"


STEPS, ERROR = "steps to 1 % of the length", "mean tip error"
STUDY = Study(
    name="pawlowski2019/quasi-static",
    source="Pawlowski, MSc thesis, Sec. 4.1, Figs. 4.1 and 4.2",
    summary="points and circles by the Jacobian of the statics, the robot at rest after every step",
    run=run,
    cases=(POINTS, *RADII),
    methods=lambda case: list(_methods(case)),
    settings=Settings,
    metrics=(
        Metric(STEPS, "-", "steps"),
        Metric("standard deviation of the steps", "-", "spread"),
        Metric("points that were reached", "%", "reached"),
        Metric("mean distance of the points from the straight rod's tip", "%", "distance"),
        Metric(ERROR, "%", "error"),
        Metric("largest tip error", "%", "largest"),
    ),
    published=(
        Published(STEPS, 9.33, "simulation", POINTS),
        Published("standard deviation of the steps", 3.24, "simulation", POINTS),
        *(Published(ERROR, 1.0, "simulation", case) for case in RADII),
    ),
    musts=(
        Must(STEPS, 10.33, None, POINTS, BOXED),
        *(
            Must(ERROR, 1.0, 0.3, case, f"{LAPS[0]} steps, {LED}, {EXACT}")
            for case in RADII
        ),
    ),
    exact="Errors are in per cent of the length of 10 cm. The robot is the model's equilibrium; of "
    "the rows with another plant it has 20 intervals instead of 5 and is 5 % stiffer. Points are "
    "uniform in the static box of curvature and stretch, those left out that no tension reaches; "
    "every search begins with slack tendons. The thesis does not say how many tendons it has, how "
    "it inverts the Jacobian of them, what keeps tensions above zero, nor how many steps a circle "
    "has; it prints that errors on circles are less than 1 %. With the gain alone the tip lags "
    "behind a moving reference by what that moves in five steps.",
    seeded=True,
)  # fmt: skip
