"""A plant whose rod, sensors and valves differ from their file, each by a stated number."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from softcr_models import Robot
from softcr_models.chain.pressure import PressureLag
from softcr_simulation.plant import Mismatch, SensorModel, SimulatedPlant
from softcr_simulation.plants import RodPlant, rod_values


@dataclass(frozen=True)
class Difference:
    """How plant and sensors differ from what filter and controller know.

    Attributes:
        mismatch: of the rod.
        intervals: of the plant's rod.
        lever_factor: on the lever arm of its first chamber.
        lag_pole: of its pressure lag [1/s], steady gain as in the file; None: the file's.
        pressure_bias, pressure_gain: the sensors read gain * pressure + bias (m,) [Pa], and the
            valves bring the reading to the command. A bias of zeros is that of any robot.
        tip_noise: standard deviation of each measured coordinate [m].
        pressure_noise: standard deviation of each reading [Pa].
        dropout: chance that a tip pose is missing.
        latency: ticks by which commands act later than the usual one, which controllers know.
    """

    mismatch: Mismatch = field(default=Mismatch(0.95, 1.1))
    intervals: int = 20
    lever_factor: float = 1.0
    lag_pole: float | None = None
    pressure_bias: tuple[float, ...] = (0.0, 0.0, 0.0)
    pressure_gain: float = 1.0
    tip_noise: float = 2e-4
    pressure_noise: float = 0.0
    dropout: float = 0.0
    latency: int = 0


def plant_of(robot: Robot, difference: Difference, seed: int) -> SimulatedPlant:
    """The plant that differs from the robot file, its sensors seeded."""
    first, *others = robot.actuators
    lever = first.model_copy(update={"lever_arm": difference.lever_factor * first.lever_arm})
    changes: dict[str, Any] = {"actuators": (lever, *others)}
    if difference.lag_pole is not None:
        lag = robot.pressure_lag
        pole = difference.lag_pole
        changes["pressure_lag"] = PressureLag(lag.gain / lag.pole * pole, pole)
    sensors = SensorModel(
        tip_noise=difference.tip_noise, pressure_noise=difference.pressure_noise, seed=seed
    )
    return SimulatedPlant(
        robot.replace(**changes), difference.mismatch, sensors, difference.intervals
    )


class DifferentPlant(RodPlant):
    """The plant of a difference: its pressure sensors and lost poses, too."""

    simulated: SimulatedPlant

    def __init__(
        self, robot: Robot, difference: Difference, seed: int, valves_read: bool = True
    ) -> None:
        """
        Args:
            robot: as its file has it.
            difference: between plant and file.
            seed: of the sensors and, in a stream of their own, of the poses that are lost.
            valves_read: whether valves bring the sensors' reading to the command, and not the
                pressure itself.
        """
        self._difference, self._seed, self._valves_read = difference, seed, valves_read
        self._use(robot, plant_of(robot, difference, seed))
        self._begin()

    def reset(self) -> None:
        super().reset()
        self._begin()

    def follow(self, command: np.ndarray) -> None:
        super().follow(self._aimed_at(command))

    def measure(self, stamp: int) -> dict[str, Any]:
        difference, measured = self._difference, self.simulated.measure(stamp)
        read = difference.pressure_gain * measured.pressures + self._bias
        lost = self._poses_lost.random() < difference.dropout
        return rod_values(
            self.simulated.rod,
            replace(measured, pressures=read, tip_pose=None if lost else measured.tip_pose),
        )

    def describe(self) -> dict[str, Any]:
        """See RodPlant; what is as in the file is 0."""
        told, difference = super().describe(), self._difference
        told["plant_mismatch"] |= {
            "lever_arm_1": round(difference.lever_factor - 1.0, 12),
            "pressure_gain": round(difference.pressure_gain - 1.0, 12),
            "missing_poses": difference.dropout,
        }
        if difference.lag_pole is not None:
            told["plant_mismatch"]["lag_pole"] = difference.lag_pole
        for chamber, bias in enumerate(self._bias.tolist(), start=1):
            told["plant_mismatch"][f"pressure_bias_{chamber}_pa"] = bias
        return told

    def _begin(self) -> None:
        self._poses_lost = np.random.default_rng([self._seed, 1])
        rest = np.zeros(len(self._robot.actuators))
        super().follow(self._aimed_at(rest))

    def _aimed_at(self, sent: np.ndarray) -> np.ndarray:
        """(m,) true pressures [Pa] that valves aim at."""
        if not self._valves_read:
            return sent
        return (sent - self._bias) / self._difference.pressure_gain

    @property
    def _bias(self) -> np.ndarray:
        """(m,) [Pa]."""
        bias = self._difference.pressure_bias
        return np.array(bias) if any(bias) else np.zeros(len(self._robot.actuators))
