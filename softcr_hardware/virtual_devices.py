"""The devices of a bench on virtual time: blocks around one emulated bench, each on its own clock.

The valves' driver, terminals, chambers and rod are those behind `softcr emulate`, without a wire.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from softcr_hardware.actuator import EmulatedActuator
from softcr_hardware.ethercat.driver import ValveDriver
from softcr_hardware.ethercat.memory_bus import MemoryBus
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.plant import SimulatedPlant
from softcr_hardware.safety_settings import SafetySettings
from softcr_models.errors import UserError
from softcr_models.robot import Robot
from softcr_runtime.block import CLOCK, BlockBase, Input, Output, Samples
from softcr_runtime.settings import NodeSettings, build_settings
from softcr_runtime.values import Pose

COMMANDS, PRESSURES, POSES = "pressure/command", "pressure/state", "mocap/tip/pose"


class EmulatedBench:
    """Chambers and rod live until whoever looks at them is; nobody may look back in time.

    Attributes:
        robot: as its file has it.
        driver: of the valves, its bus open.
    """

    def __init__(
        self,
        robot: Robot,
        plant: SimulatedPlant,
        command_period: float,
        cycle_rate: float = 1000.0,
        quantised: bool = True,
    ) -> None:
        """Vented.

        Args:
            robot: whose station the valves are of.
            plant: the rod that the chambers bend.
            command_period: of the commands [s].
            cycle_rate: of the valves' driver [Hz].
            quantised: whether volts are counts of 16 bits; else they are exact.
        """
        station = load_station(robot.name, robot.chamber_names)
        self.robot, self._plant, self._now = robot, plant, 0.0
        self._data = ProcessData(station)
        self._actuator = EmulatedActuator(station, plant)
        self._bus = MemoryBus(station, self._data, self._actuator, lambda: self._now, quantised)
        self.driver = ValveDriver(
            station, robot.pressure_limits, self._data, self._bus,
            SafetySettings(require_operator=False),
            command_period=command_period, period=1 / cycle_rate,
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


class Device(BlockBase):
    """A device of a bench, led by a clock of its own."""

    inputs: tuple[Input, ...] = (Input(CLOCK, "lead"),)

    def __init__(self, bench: EmulatedBench, rate: float) -> None:
        """`rate` is of its clock [Hz]."""
        super().__init__(bench.robot, build_settings(NodeSettings, {"rate_hz": rate}))
        self._bench = bench


class FastCycle(Device):
    """The cycle of the valves' driver; all it knows it is told through the bench."""

    name = "fast_cycle"

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """See BlockBase."""
        self._bench.cycle(1e-9 * now)
        return ()


class Valves(Device):
    """What the valves' node does in a cycle: commands and signs of life in, pressures out."""

    name = "valves"
    inputs = (
        Input(CLOCK, "lead"),
        Input(COMMANDS, "all", needed=False),
        Input(POSES, "all", needed=False),
    )
    outputs = (PRESSURES,)
    actions = ("enable",)

    def __init__(
        self, bench: EmulatedBench, rate: float, command_age: float = 0.0, early: float = 0.0
    ) -> None:
        """
        Args:
            bench: whose driver is told.
            rate: of its clock [Hz].
            command_age: of a command when the pressures begin to follow it [s]; 0: at once.
            early: stamps of pressures are earlier than the truth by so much [s].
        """
        super().__init__(bench, rate)
        self._age, self._early = command_age or -math.inf, early

    def act(self, action: str) -> str:
        """`enable`: asks for it; agrees once the valves are enabled."""
        driver = self._bench.driver
        if not driver.report.decision.enabled:
            driver.enable()
            raise UserError(f"valves not enabled: {', '.join(driver.report.decision.blockers)}")
        return "enabled"

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """See BlockBase."""
        heard: Any = samples  # tuples of all since the last tick
        driver = self._bench.driver
        for each in heard[POSES]:
            driver.hear("mocap", 1e-9 * each.stamp)
        for each in heard[COMMANDS]:
            stamped, due = 1e-9 * each.stamp, 1e-9 * each.stamp + self._age
            driver.hear("command", each.received, each.value, each.received - stamped, due)
        report = driver.report
        if self.outputs and np.isfinite(report.pressures).all():
            yield Output(PRESSURES, round(1e9 * (report.time - self._early)), report.pressures)


class Cameras(Device):
    """Exposures of the tip; their stamps are later than the truth by `late` [s]."""

    name = "cameras"
    outputs = (POSES,)
    late = 0.0

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """See BlockBase."""
        return [Output(POSES, now + round(1e9 * self.late), self._bench.seen(1e-9 * now))]
