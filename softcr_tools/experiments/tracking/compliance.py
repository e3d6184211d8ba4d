"""Experiment 3 of Licher et al. 2025: the filter alone finds the bending compliance."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softcr_control import signals
from softcr_hardware.plant import Mismatch
from softcr_models import Robot
from softcr_studies.virtual_runs import (
    ESTIMATOR,
    Log,
    common,
    estimator,
    open_loop,
    run_blocks,
)
from softcr_tools.experiments.results import Row
from softcr_tools.experiments.tracking.cases import RATE_HZ, Difference
from softcr_tools.experiments.tracking.loop import MODEL_INTERVALS, PERIOD
from softcr_tools.experiments.tracking.plant import DifferentPlant

TRUE_COMPLIANCE = 45.0  # [rad/(N m m)]; the file says 49.9
DURATION = 100.0  # [s]
FREQUENCY = 0.5  # of the rotating bending direction [Hz]
BAND = 0.02  # "found" is when the estimate stays this close [-]
WARM_UP = 20.0  # after which the error counts, as in the paper [s]


@dataclass(frozen=True, eq=False)
class Search:
    """One run: the estimated compliance (T,) and its standard deviation [rad/(N m m)]."""

    times: np.ndarray
    compliance: np.ndarray
    deviation: np.ndarray

    @property
    def relative_error(self) -> np.ndarray:
        """(T,) |estimate / truth - 1|."""
        return np.abs(self.compliance / TRUE_COMPLIANCE - 1.0)

    @property
    def time_to_band(self) -> float:
        """When the estimate entered the band for good [s]; inf if it did not."""
        outside = np.flatnonzero(self.relative_error > BAND)
        if not outside.size:
            return 0.0
        return float(self.times[outside[-1] + 1]) if outside[-1] + 1 < len(self.times) else np.inf


def difference_of(robot: Robot) -> Difference:
    """Between plant and file."""
    factor = TRUE_COMPLIANCE / robot.bending_compliance
    return Difference(Mismatch(bending_compliance_factor=factor, tip_mass_factor=1.1))


def search(
    robot: Robot,
    seed: int,
    duration: float,
    progress: Callable[[int], None] = lambda cycles: None,
    bag: Path | None = None,
) -> Search:
    """The plant bends round and round under known pressures, the filter starts from the file."""
    times = signals.time_grid(duration, PERIOD)[:-1]
    phase = signals.circle_phase(times, FREQUENCY)
    pressures = signals.rotating_inputs(phase, len(robot.actuators), 35e3, 20e3)
    pressures = signals.soft_start(pressures, np.zeros(len(robot.actuators)), times, 1.0)
    plant = DifferentPlant(robot, difference_of(robot), seed)
    blocks = open_loop(robot, plant, pressures[1:], len(times), RATE_HZ, seed)
    told = common(robot, RATE_HZ) | {"intervals": MODEL_INTERVALS}
    blocks[ESTIMATOR] = estimator(robot, told)
    log = Log("estimate/rod")
    run_blocks(blocks, log, progress, bag=bag)
    estimates = log.values("estimate/rod")
    found = [estimate.parameters["bending_compliance"] for estimate in estimates]
    deviation = [estimate.parameters_std["bending_compliance"] for estimate in estimates]
    return Search(times, np.array(found), np.array(deviation))


def rows_of(searches: list[Search]) -> list[Row]:
    """Error and time, over the seeds."""
    count = len(searches)
    first = min(WARM_UP, 0.5 * searches[0].times[-1])
    errors = np.array([100 * s.relative_error[s.times >= first].mean() for s in searches])
    times = np.array([s.time_to_band for s in searches])
    case = "true 45, file 49.9 rad/(N m m)"
    return [
        Row(
            case, "UKF on the rod", "compliance error", 1.2,
            errors.mean(), errors.std(), "%", count, 0.5, 0.2,
        ),
        Row(
            case, "UKF on the rod", "time to 2 %", 20.0,
            times.mean(), times.std(), "s", count, 3.0, 1.0,
        ),
    ]  # fmt: skip
