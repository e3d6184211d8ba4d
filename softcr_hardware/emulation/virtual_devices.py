"""The devices of a bench on virtual time: blocks around one emulated bench, each on its own clock.

The valves' driver, terminals, chambers and rod are those behind `softcr emulate`, without a wire.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcr_hardware.emulation.actuator import EmulatedActuator
from softcr_hardware.emulation.chambers import SENSOR_NOISE, ChamberErrors
from softcr_hardware.emulation.sensors import EmulatedSensors
from softcr_hardware.ethercat.driver import ValveDriver
from softcr_hardware.ethercat.memory_bus import MemoryBus
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.safety.settings import SafetySettings
from softcr_models.errors import UserError
from softcr_models.robots.robot import Robot
from softcr_runtime.blocks.block import CLOCK, BlockBase, Input, Output, Samples
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.blocks.system import Part, Wire
from softcr_runtime.blocks.values import Pose
from softcr_runtime.settings.node_settings import NodeSettings, build_settings
from softcr_simulation.plant import SimulatedPlant

PLANS, PRESSURES, POSES = "pressure/plan", "pressure/state", "mocap/tip/pose"
TRUE_TIP, SENT = "simulation/truth/tip/pose", "pressure/sent"


@dataclass(frozen=True)
class DeviceFigures:
    """Figures of the devices, as `softcr up hardware` and `softcr emulate` have them."""

    command_period: float = 1 / 70  # of the commands, which are the ticks of the loop [s]
    valves_late: float = 0.0  # the valves begin later than told, which nobody knows [s]
    quantised: bool = True  # whether volts, to valves and from sensors, are counts of 16 bits
    cycle_rate: float = 1000.0  # of the valves' loop [Hz]
    # of published pressures, which is how often the valves' node looks for commands as well [Hz]
    pressure_rate: float = 200.0
    pressures_at_ticks: bool = False  # published at the ticks instead, of the moment
    pressures_early: float = 0.0  # their stamps are earlier than the truth by so much [s]
    camera_rate: float = 120.0  # of exposures [Hz]
    poses_at_ticks: bool = False  # exposures at the ticks instead
    poses_late: float = 0.0  # stamps of poses are later than the truth by so much [s]
    frames_lost: float = 0.0  # share of the frames that do not come
    camera_latency: float = 0.005  # from an exposure to its pose [s]
    jitter: float = 0.0  # mean of what a command takes to the valves' node, exponential [s]
    answers_lost: float = 0.0  # share of the controller's answers
    pressure_noise: float = SENSOR_NOISE  # of the pressure sensors, standard deviation [Pa]


class EmulatedBench:
    """Chambers and rod live until whoever looks at them is; nobody may look back in time.

    Attributes:
        robot: as its file has it.
        figures: of the devices.
        driver: of the valves, its bus open.
    """

    def __init__(
        self,
        robot: Robot,
        plant: SimulatedPlant,
        figures: DeviceFigures,
        errors: ChamberErrors | None = None,
    ) -> None:
        """Vented; the chambers bend the rod and differ from the station by `errors`."""
        # pulses before the run would bend the rod that is to begin at rest; the bus in memory
        # converts when it is asked
        station = load_station(robot.name, robot.chamber_names).model_copy(
            update={"arming_test": False, "sample_age": 0.0}
        )
        self.robot, self.figures, self._plant, self._now = robot, figures, plant, 0.0
        self._data = ProcessData(station)
        self._actuator = EmulatedActuator(station, plant, errors)
        self._bus = MemoryBus(
            station, self._data, self._actuator, lambda: self._now, figures.quantised,
            figures.pressure_noise,
        )  # fmt: skip
        self.driver = ValveDriver(
            station, robot.pressure_limits, self._data, self._bus,
            SafetySettings(require_operator=False),
            command_period=figures.command_period, period=1 / figures.cycle_rate,
            averaged=max(round(figures.cycle_rate / figures.pressure_rate), 1),
        )  # fmt: skip
        self.driver.open()

    def cycle(self, now: float) -> None:
        """A cycle of the valves' driver at `now` [s]."""
        self._now = now
        self.driver.tick(now)

    @property
    def sensors(self) -> EmulatedSensors:
        """Of the chambers' pressures; faults of sensors, chambers, valves are typed into them."""
        return self._actuator.sensors

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
        self._bench.cycle(1e-9 * now)
        return ()


class Valves(Device):
    """What the valves' node does in a cycle: commands and signs of life in, pressures out."""

    name = "valves"
    inputs = (
        Input(CLOCK, "lead"),
        Input(PLANS, "all", needed=False),
        Input(POSES, "all", needed=False),
    )
    actions = ("enable",)

    def __init__(self, bench: EmulatedBench) -> None:
        figures = bench.figures
        super().__init__(bench, figures.pressure_rate)
        self.outputs = () if figures.pressures_at_ticks else (PRESSURES,)
        self._late = round(1e9 * figures.valves_late)  # [ns]

    def act(self, action: str) -> str:
        """`enable`: asks for it; agrees once the valves are enabled."""
        driver = self._bench.driver
        if not driver.report.decision.enabled:
            driver.enable()
            raise UserError(f"valves not enabled: {', '.join(driver.report.decision.blockers)}")
        return "enabled"

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        heard: Any = samples  # tuples of all since the last tick
        driver = self._bench.driver
        for each in heard[POSES]:
            driver.hear("mocap", 1e-9 * each.stamp)
        for each in heard[PLANS]:
            late = tuple(due + self._late for due in each.value.due)
            packet = CommandPacket(late, each.value.commands)
            driver.hear("command", each.received, packet, each.received - 1e-9 * each.stamp)
        report = driver.report
        if self.outputs and np.isfinite(report.pressures).all():
            stamp = round(1e9 * (report.measured - self._bench.figures.pressures_early))
            yield Output(PRESSURES, stamp, report.pressures)


class Cameras(Device):
    """Exposures of the tip."""

    name = "cameras"
    outputs = (POSES,)

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        late = round(1e9 * self._bench.figures.poses_late)
        return [Output(POSES, now + late, self._bench.seen(1e-9 * now))]


class Probe(Device):
    """The true tip and the valves' setpoint at the ticks of the loop; ends the motion."""

    name = "probe"
    actions = ("start",)

    def __init__(self, bench: EmulatedBench, ticks: int) -> None:
        """`ticks` are those of the motion, after which the run is over."""
        super().__init__(bench, 1 / bench.figures.command_period)
        self._left, self._begun = ticks, False
        pressures = (PRESSURES,) if bench.figures.pressures_at_ticks else ()
        self.outputs = (TRUE_TIP, SENT, *pressures)

    def act(self, action: str) -> str:
        """`start`: the next tick is the motion's first."""
        self._begun = True
        return "started"

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        seconds, bench = 1e-9 * now, self._bench
        if PRESSURES in self.outputs:
            stamp = now - round(1e9 * bench.figures.pressures_early)
            yield Output(PRESSURES, stamp, bench.pressures(seconds))
        yield Output(TRUE_TIP, now, bench.tip(seconds))
        yield Output(SENT, now, bench.driver.report.sent.copy())
        self._left -= self._begun
        self.finished = self._left <= 0


def devices_of(bench: EmulatedBench, random: np.random.Generator) -> list[tuple[Part, Device]]:
    """Valves and cameras, each with its part of a system.

    Phases of the devices to each other and to the ticks are random, as on a bench; so is what wires
    lose and delay.
    """
    figures = bench.figures
    frames, commands = random.integers(2**31, size=2).tolist()
    camera = Wire(figures.camera_latency, lost=figures.frames_lost, seed=frames)
    command = Wire(jitter=figures.jitter, lost=figures.answers_lost, seed=commands)
    ticks = 1 / figures.command_period
    fast, valves = FastCycle(bench, figures.cycle_rate), Valves(bench)
    cameras = Cameras(bench, ticks if figures.poses_at_ticks else figures.camera_rate)
    phases = [random.uniform(0.0, each.settings.period) for each in (fast, valves, cameras)]
    return [
        part_of(fast, phase=phases[0]),
        part_of(valves, phase=phases[1], wires={PLANS: command, POSES: camera}),
        part_of(cameras, phase=0.0 if figures.poses_at_ticks else phases[2]),
    ]


def part_of(device: Device, **options: Any) -> tuple[Part, Device]:
    """A device with its part of a system, see Part."""
    return Part(device.name, f"{__name__}:{type(device).__name__}", **options), device
