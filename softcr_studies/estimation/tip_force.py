"""How small a force at the tip is found, how soon, and how well its direction is known.

An arm rests; then a force begins at once, and the arm swings. The filter is that of the stack,
with a model whose tip may be pulled: `softcr_estimation.tip_force` says when it looks for a force.
"""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from pydantic import Field

from softcr_estimation import ModelEstimatorSettings
from softcr_estimation.context import EstimationContext
from softcr_estimation.model_filter import ModelFilter
from softcr_models import CosseratRod, load_robot
from softcr_models.model import TIP
from softcr_models.prediction import RodPrediction
from softcr_models.rod.description import BASE_WRENCH
from softcr_models.rod_model.tip_force import TIP_FORCE, known_tip_force
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

PERIOD = 1 / 70
INTERVALS, PLANT_INTERVALS = 5, 10
TIP_NOISE, FORCE_NOISE, MOMENT_NOISE = 2e-4, 0.02, 1e-3  # [m], [N], [N m]
REST = 4.0  # before a force begins [s]
PULLED = 2.0  # that a force acts [s]
SOON = 1.0  # within which a force shall be found [s]
QUIET = 20.0  # without a force [s]
SWING, SWING_RATE = 0.6, 0.4  # of the pressures without a force, relative, and [Hz]


@dataclass(frozen=True)
class Arm:
    """An arm at rest.

    Attributes:
        robot: name of its file.
        level: (m,) pressures [Pa].
    """

    robot: str
    level: tuple[float, ...]

    def model(self, intervals: int) -> RodPrediction:
        """Of the arm, with a force at its tip."""
        return _model(self.robot, intervals)

    def pulled(self, force: np.ndarray) -> np.ndarray:
        """(P,) the plant's parameters with a force (3,) at its tip [N]."""
        parameters = self.model(PLANT_INTERVALS).nominal_parameters.copy()
        parameters[-len(TIP_FORCE) :] = force
        return parameters


STRAIGHT, BENT, TWO = "straight", "bent, 40 kPa", "two segments, bent"
CASES: Mapping[str, Arm] = {
    STRAIGHT: Arm("licher2025", (0.0, 0.0, 0.0)),
    BENT: Arm("licher2025", (4e4, 0.0, 0.0)),
    TWO: Arm("two_segments", (5e4, 5e3, 1.5e4, 5e3, 5e4, 1e4)),
}
WITHOUT, WITH = "tip", "tip and base wrench"
FORCES = (0.02, 0.03, 0.05, 0.1, 0.2)  # [N]
FOUND, THRESHOLD = "of {:g} N found within 1 s", "least force found in 95 %"
TIME, ANGLE, SIZE = ("time to find {:g} N", "direction error of {:g} N", "size error of {:g} N")
TOLD = (0.1, 0.2)  # of these time, direction and size are told [N]
SHARE = 0.95


class Settings(StudySettings):
    """See StudySettings."""

    seeds: Seeds = 10
    directions: int = Field(
        2, ge=1, le=100, description="number of random directions of each force in a cell [-]"
    )


@cache
def _model(robot: str, intervals: int) -> RodPrediction:
    rod = CosseratRod(load_robot(robot), intervals, tip_force=True)
    return RodPrediction(rod, single_precision=False)


class Measured:
    """What the sensors read of the plant along pressures, from a steady state."""

    def __init__(
        self, arm: Arm, levels: np.ndarray, force: np.ndarray, noise: np.random.Generator
    ) -> None:
        """
        Args:
            arm: whose plant.
            levels: (T + 1, m) pressures [Pa]; the plant begins at rest under the first, unpulled.
            force: (3,) at the tip from the beginning on [N].
            noise: of the sensors.
        """
        plant, parameters = arm.model(PLANT_INTERVALS), arm.pulled(force)
        start = plant.equilibrium(levels[0], arm.pulled(np.zeros(3)))
        states = plant.rollout(start, levels[None], parameters, PERIOD)[0]
        rows = np.repeat(parameters[None], len(states), axis=0)
        seen = plant.observe((TIP, BASE_WRENCH), states, levels[1:], rows)
        self.levels = levels[1:]
        self.tips = seen[TIP][:, :, 3] + TIP_NOISE * noise.standard_normal((len(states), 3))
        deviations = np.repeat([FORCE_NOISE, MOMENT_NOISE], 3)
        self.wrenches = seen[BASE_WRENCH] + deviations * noise.standard_normal((len(states), 6))


class Follower:
    """The stack's filter over what is measured."""

    def __init__(self, arm: Arm, method: str, level: np.ndarray) -> None:
        """At rest under pressures (m,) [Pa]."""
        self._model = arm.model(INTERVALS)
        context = EstimationContext(load_robot(arm.robot), self._model, PERIOD)
        noises = {
            "position_noise": TIP_NOISE,
            "wrench_force_noise": FORCE_NOISE,
            "wrench_moment_noise": MOMENT_NOISE,
        }
        settings = ModelEstimatorSettings.model_validate(noises)
        self._filter = ModelFilter(context, settings)
        self._with_wrench, self._stamp = method == WITH, 0.0
        self._filter.update(level, {}, 0.0)

    def copy(self) -> "Follower":
        """One that goes on alone from here."""
        return copy.deepcopy(self, {id(self._model): self._model})

    def follow(self, measured: Measured) -> np.ndarray:
        """(T, 3) forces that were known at each sample [N]; NaN where none was."""
        known = np.full((len(measured.levels), 3), np.nan)
        for k, level in enumerate(measured.levels):
            self._stamp += PERIOD
            outputs = {TIP: measured.tips[k]}
            if self._with_wrench:
                outputs[BASE_WRENCH] = measured.wrenches[k]
            estimate = self._filter.update(level, outputs, self._stamp)
            force = known_tip_force(estimate.parameters, estimate.parameters_std)
            if force is not None:
                known[k] = force
        return known


def run(cell: Cell) -> Result:
    """Forces of every size in random directions, and minutes without any."""
    arm = CASES[cell.case]
    level = np.array(arm.level)
    directions, noise = cell.random("force"), cell.random("sensors")
    resting = Follower(arm, cell.method, level)
    resting.follow(Measured(arm, _held(level, REST), np.zeros(3), noise))
    result: dict[str, float] = {}
    for size in FORCES:
        trials = [
            _trial(arm, resting.copy(), size * _direction(directions), noise)
            for _ in range(cell.settings.directions)
        ]
        result |= _told(size, np.array(trials))
    quiet = resting.copy().follow(Measured(arm, _held(level, QUIET), np.zeros(3), noise))
    result["false alarms at rest"] = _alarms(quiet)
    if level.any():
        times = np.arange(round(QUIET / PERIOD) + 1)[:, None] * PERIOD
        phase = 2 * np.pi * (SWING_RATE * times + np.arange(len(level)) / len(level))
        swung = level.max() * 0.5 * (1.0 + SWING * np.sin(phase))
        moving = Follower(arm, cell.method, swung[0])
        result["false alarms in motion"] = _alarms(
            moving.follow(Measured(arm, swung, np.zeros(3), noise))
        )
    return result


def _trial(
    arm: Arm, follower: Follower, force: np.ndarray, noise: np.random.Generator
) -> tuple[float, float, float]:
    """Time until the force was known [s], and over its last second the mean error of its direction
    [deg] and of its size [%]; NaN where it was not known."""
    known = follower.follow(Measured(arm, _held(np.array(arm.level), PULLED), force, noise))
    told = np.flatnonzero(np.isfinite(known[:, 0]))
    late = known[round(SOON / PERIOD) :]
    late = late[np.isfinite(late[:, 0])]
    if not len(told) or not len(late):
        return np.nan, np.nan, np.nan
    sizes, size = np.linalg.norm(late, axis=1), np.linalg.norm(force)
    cosines = np.clip(late @ force / (sizes * size), -1.0, 1.0)
    angle = float(np.degrees(np.arccos(cosines)).mean())
    return (told[0] + 1) * PERIOD, angle, 100.0 * float(np.abs(sizes / size - 1.0).mean())


def _told(size: float, trials: np.ndarray) -> dict[str, float]:
    times = trials[:, 0]
    result = {FOUND.format(size): 100.0 * float(np.mean(times <= SOON))}
    if size in TOLD and np.isfinite(times).any():
        means = np.nanmean(trials, axis=0).tolist()
        result |= dict(zip((each.format(size) for each in (TIME, ANGLE, SIZE)), means, strict=True))
    return result


def _held(level: np.ndarray, duration: float) -> np.ndarray:
    return np.tile(level, (round(duration / PERIOD) + 1, 1))


def _direction(random: np.random.Generator) -> np.ndarray:
    vector = random.standard_normal(3)
    return vector / np.linalg.norm(vector)


def _alarms(known: np.ndarray) -> float:
    """Forces that were told although there was none [1/min]."""
    told = np.isfinite(known[:, 0])
    begun = int(np.count_nonzero(told[1:] & ~told[:-1])) + int(told[0])
    return 60.0 * begun / (len(known) * PERIOD)


def thresholds(results: Results) -> Iterable[Row]:
    """The least force that, as every greater one, was found in 95 % of the trials."""
    for (case, method), found in results.by_method().items():
        shares = [np.mean([each[FOUND.format(size)] for each in found]) for size in FORCES]
        enough = [share >= 100.0 * SHARE for share in shares]
        least = next((s for k, s in enumerate(FORCES) if all(enough[k:])), np.nan)
        note = "" if np.isfinite(least) else "none of the forces tried"
        yield Row(case, method, THRESHOLD, float(least), 0.0, "N", len(found), note=note)


def _metrics() -> Iterable[Metric]:
    for size in FORCES:
        yield Metric(FOUND.format(size), "%", FOUND.format(size))
    for quantity, unit in ((TIME, "s"), (ANGLE, "deg"), (SIZE, "%")):
        for size in TOLD:
            yield Metric(quantity.format(size), unit, quantity.format(size))
    yield Metric("false alarms at rest", "1/min", "false alarms at rest")
    yield Metric("false alarms in motion", "1/min", "false alarms in motion")


STUDY = Study(
    name="estimation/tip-force",
    source="",
    summary="how small a force at the tip is found, and how well",
    run=run,
    cases=tuple(CASES),
    methods=(WITHOUT, WITH),
    settings=Settings,
    metrics=tuple(_metrics()),
    musts=(
        Must(TIME.format(0.2), 1.0, case=BENT, method=WITH),
        Must(ANGLE.format(0.2), 15.0, case=BENT, method=WITH),
        Must(TIME.format(0.1), 1.0, case=BENT, method=WITH),
        Must(ANGLE.format(0.1), 15.0, case=BENT, method=WITH),
        Must(TIME.format(0.2), 1.0, case=TWO, method=WITH),
        Must(ANGLE.format(0.2), 15.0, case=TWO, method=WITH),
    ),
    further_rows=thresholds,
    exact="Plant and model share their equations and all numbers but one: the plant has 10 "
    "intervals in each segment, the model 5. The tip is measured with 0.2 mm of noise in each "
    "coordinate, the base wrench with 20 mN and 1 mN m, pressures with none. A force begins at "
    "once on an arm at rest, in a random direction; direction and size are those of the second "
    "second. False alarms are counted over 20 s of each seed; in motion the pressures swing at "
    "0.4 Hz.",
    about={
        "robots": {case: arm.robot for case, arm in CASES.items()},
        "pressures_pa": {case: list(arm.level) for case, arm in CASES.items()},
        "forces_n": list(FORCES),
    },
)
