"""What the devices of a bench share: the rod, its chambers, and the valves behind their driver."""

import numpy as np

from softcr_hardware.actuator import EmulatedActuator
from softcr_hardware.ethercat.driver import ValveDriver
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.safety_settings import SafetySettings
from softcr_models import Robot
from softcr_runtime.values import Pose
from softcr_tools.experiments.bench.memory_bus import MemoryBus
from softcr_tools.experiments.bench.setups import Bench
from softcr_tools.experiments.tracking.cases import Difference
from softcr_tools.experiments.tracking.plant import plant_of


class World:
    """Chambers and rod live until whoever looks at them is; nobody may look back in time.

    Attributes:
        driver: of the valves.
    """

    def __init__(self, robot: Robot, bench: Bench, seed: int, command_period: float) -> None:
        """Vented, the bus open.

        Args:
            robot: which the plant differs from, as in all experiments.
            bench: its figures.
            seed: of the sensors.
            command_period: of the controller [s].
        """
        station = load_station(robot.name, robot.chamber_names)
        self._now = 0.0
        self._plant = plant_of(robot, Difference(), seed)
        self._data = ProcessData(station)
        self._actuator = EmulatedActuator(station, self._plant)
        self._bus = MemoryBus(
            station, self._data, self._actuator, lambda: self._now, bench.quantised
        )
        self.driver = ValveDriver(
            station, robot.pressure_limits, self._data, self._bus,
            SafetySettings(require_operator=False),
            command_period=command_period, period=1 / bench.cycle_rate,
        )  # fmt: skip
        self.driver.open()

    def cycle(self, now: float) -> None:
        """A cycle of the valves' driver at `now` [s]."""
        self._now = now
        self.driver.tick(now)

    def seen(self, now: float) -> Pose:
        """The tip as the cameras measure it at `now` [s], base frame."""
        self._live(now)
        pose = self._actuator.see(now).tip_pose
        assert pose is not None  # this plant loses none
        return Pose.of(pose)

    def tip(self, now: float) -> Pose:
        """The true tip at `now` [s], base frame."""
        self._live(now)
        return Pose.of(self._plant.rod.tip_pose(self._plant.state))

    def pressures(self, now: float) -> np.ndarray:
        """(m,) what the pressure sensors say at `now` [s], without an exchange [Pa]."""
        self._now = now
        return self._data.pressures(self._bus.read().volts)

    def _live(self, now: float) -> None:
        """Chambers and rod until `now` [s]."""
        self._now = now
        self._bus.read()
        self._actuator.move_rod(now)
