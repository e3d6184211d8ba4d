"""The closed loop of `softcr up hardware` on virtual time: its blocks among emulated devices.

The devices are blocks around one `World`, each with a clock of its own. The reference begins to
move at the first tick after the valves have been enabled.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softcr_control.controller import ControllerBlock
from softcr_control.observation import ControlContext, Controller
from softcr_estimation.estimator import EstimatorBlock
from softcr_hardware.actuator import EmulatedActuator
from softcr_hardware.ethercat.driver import ValveDriver
from softcr_hardware.ethercat.memory_bus import MemoryBus
from softcr_hardware.ethercat.process_data import ProcessData
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.plants import RodPlant, RodPlantSettings
from softcr_hardware.safety_settings import SafetySettings
from softcr_models import Robot, load_robot
from softcr_models.errors import UserError
from softcr_runtime import registry
from softcr_runtime.block import CLOCK, BlockBase, Input, Output, Samples
from softcr_runtime.plugin_settings import plugin_settings
from softcr_runtime.registry import GRADIENT_MPC, NEMPC
from softcr_runtime.settings import NodeSettings, build_settings
from softcr_runtime.system import Parameters, Part, System, Wire
from softcr_runtime.values import Pose
from softcr_runtime.virtual import block_of
from softcr_studies.cell import Cell, Result
from softcr_studies.virtual_runs import Log, run_system

ROBOT = "licher2025"
PERIOD = 1 / 70
POPULATION = 64
"""Candidates of the NEMPC, as in a rehearsal."""
PLANT: Parameters = {
    "intervals": 20, "bending_compliance_factor": 0.95, "tip_mass_factor": 1.1,
    "tip_noise": 2e-4, "pressure_noise": 0.0, "force_noise": 0.0, "moment_noise": 0.0,
}  # fmt: skip
"""How the plant differs from the robot file: as in the tracking studies."""
_PATIENCE = 2.5  # of the estimator on a bench [periods]
_ENDLESS = 1e6  # [s]
_COMMANDS, _PRESSURES, _POSES = "pressure/command", "pressure/state", "mocap/tip/pose"
_TRUE_TIP, _SENT, _REFERENCE = "simulation/truth/tip/pose", "pressure/sent", "reference/rod"


@dataclass(frozen=True)
class Bench:
    """The loop of `softcr up hardware`, with the figures of its shipped settings.

    Attributes:
        controller: its name.
        delay: age of a command when the valves begin to follow it [periods]; 0: they follow what
            they see at once, and the controller aims at that.
        ramped: whether the controller plans over the valves' ramps as ramps; else as steps.
        quantised: whether volts, to valves and from sensors, are counts of 16 bits.
        cycle_rate: of the valves' loop [Hz].
        pressure_rate: of published pressures, which is how often the valves' node looks for
            commands as well [Hz].
        pressures_at_ticks: whether pressures are published at the ticks instead, of the moment.
        pressures_early: stamps of pressures are earlier than the truth by so much [s].
        camera_rate: of exposures [Hz].
        poses_at_ticks: whether exposures are at the ticks instead.
        poses_late: stamps of poses are later than the truth by so much [s].
        frames_lost: share of the frames that do not come.
        camera_latency: from an exposure to its pose [s].
        computing: for an estimate and its answer, half of it for each: they are made side by side
            [s].
        valves_late: the valves begin later than told by so much, which nobody knows [s].
        jitter: mean of what a command takes to the valves' node, exponential [s].
        answers_lost: share of the controller's answers.
    """

    controller: str = GRADIENT_MPC
    delay: int = 2
    ramped: bool = True
    quantised: bool = True
    cycle_rate: float = 1000.0
    pressure_rate: float = 200.0
    pressures_at_ticks: bool = False
    pressures_early: float = 0.0
    camera_rate: float = 120.0
    poses_at_ticks: bool = False
    poses_late: float = 0.0
    frames_lost: float = 0.0
    camera_latency: float = 0.005
    computing: float = 0.003
    valves_late: float = 0.0
    jitter: float = 0.0
    answers_lost: float = 0.0


class World:
    """Chambers and rod live until whoever looks at them is; nobody may look back in time.

    Attributes:
        robot: which the plant differs from.
        bench: its figures.
        driver: of the valves.
    """

    def __init__(self, robot: Robot, bench: Bench, seed: int) -> None:
        """Vented, the bus open; `seed` is of the sensors."""
        self.robot, self.bench = robot, bench
        station = load_station(robot.name, robot.chamber_names)
        self._now = 0.0
        self._plant = RodPlant(robot, RodPlantSettings.model_validate(PLANT), seed).simulated
        self._data = ProcessData(station)
        self._actuator = EmulatedActuator(station, self._plant)
        self._bus = MemoryBus(
            station, self._data, self._actuator, lambda: self._now, bench.quantised
        )
        self.driver = ValveDriver(
            station, robot.pressure_limits, self._data, self._bus,
            SafetySettings(require_operator=False),
            command_period=PERIOD, period=1 / bench.cycle_rate,
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
    """A device of the bench: a block around the world that its own clock leads."""

    inputs: tuple[Input, ...] = (Input(CLOCK, "lead"),)

    def __init__(self, world: World, rate: float) -> None:
        """`rate` is of its clock [Hz]."""
        super().__init__(world.robot, build_settings(NodeSettings, {"rate_hz": rate}))
        self._world, self._bench = world, world.bench

    def part(self, phase: float = 0.0, wires: Mapping[str, Wire] | None = None) -> Part:
        """Of the system; `phase` of the clock [s]."""
        place = f"{type(self).__module__}:{type(self).__qualname__}"
        return Part(self.name, place, phase=phase, wires=wires or {})


class FastCycle(Device):
    """The cycle of the valves' driver; all it knows it is told in the `World`."""

    name = "fast_cycle"

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """See BlockBase."""
        self._world.cycle(1e-9 * now)
        return ()


class Valves(Device):
    """What the valves' node does in a cycle: commands and signs of life in, pressures out."""

    name = "valves"
    inputs = (
        Input(CLOCK, "lead"),
        Input(_COMMANDS, "all", needed=False),
        Input(_POSES, "all", needed=False),
    )
    actions = ("enable",)

    def __init__(self, world: World, rate: float) -> None:
        """See Device."""
        super().__init__(world, rate)
        bench = self._bench
        self._age = bench.delay * PERIOD + bench.valves_late if bench.delay else -math.inf
        self.outputs = () if bench.pressures_at_ticks else (_PRESSURES,)

    def act(self, action: str) -> str:
        """`enable`: asks for it; agrees once the valves are enabled."""
        driver = self._world.driver
        if not driver.report.decision.enabled:
            driver.enable()
            raise UserError(f"valves not enabled: {', '.join(driver.report.decision.blockers)}")
        return "enabled"

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """See BlockBase."""
        heard: Any = samples  # tuples of all since the last tick
        driver = self._world.driver
        for each in heard[_POSES]:
            driver.hear("mocap", 1e-9 * each.stamp)
        for each in heard[_COMMANDS]:
            stamped, due = 1e-9 * each.stamp, 1e-9 * each.stamp + self._age
            driver.hear("command", each.received, each.value, each.received - stamped, due)
        report = driver.report
        if self.outputs and np.isfinite(report.pressures).all():
            stamp = round(1e9 * (report.time - self._bench.pressures_early))
            yield Output(_PRESSURES, stamp, report.pressures)


class Cameras(Device):
    """Exposures of the tip."""

    name = "cameras"
    outputs = (_POSES,)

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """See BlockBase."""
        late = round(1e9 * self._bench.poses_late)
        return [Output(_POSES, now + late, self._world.seen(1e-9 * now))]


class Probe(Device):
    """The true tip and the valves' setpoint at the controller's ticks; ends the motion."""

    name = "probe"
    actions = ("start",)

    def __init__(self, world: World, ticks: int) -> None:
        """`ticks` are those of the motion, after which the run is over."""
        super().__init__(world, 1 / PERIOD)
        self._left, self._begun = ticks, False
        pressures = (_PRESSURES,) if self._bench.pressures_at_ticks else ()
        self.outputs = (_TRUE_TIP, _SENT, *pressures)

    def act(self, action: str) -> str:
        """`start`: the next tick is the motion's first."""
        self._begun = True
        return "started"

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """See BlockBase."""
        seconds = 1e-9 * now
        if self._bench.pressures_at_ticks:
            stamp = now - round(1e9 * self._bench.pressures_early)
            yield Output(_PRESSURES, stamp, self._world.pressures(seconds))
        yield Output(_TRUE_TIP, now, self._world.tip(seconds))
        yield Output(_SENT, now, self._world.driver.report.sent.copy())
        self._left -= self._begun
        self.finished = self._left <= 0


def devices(world: World, random: np.random.Generator) -> list[tuple[Part, Device]]:
    """Valves and cameras, each with its part of the system.

    Phases of the devices to each other and to the ticks are random, as on a bench; so is what wires
    lose and delay.
    """
    bench = world.bench
    frames, commands = random.integers(2**31, size=2).tolist()
    camera = Wire(bench.camera_latency, lost=bench.frames_lost, seed=frames)
    command = Wire(jitter=bench.jitter, lost=bench.answers_lost, seed=commands)
    fast, valves = FastCycle(world, bench.cycle_rate), Valves(world, bench.pressure_rate)
    cameras = Cameras(world, 1 / PERIOD if bench.poses_at_ticks else bench.camera_rate)
    phases = [random.uniform(0.0, each.settings.period) for each in (fast, valves, cameras)]
    return [
        (fast.part(phases[0]), fast),
        (valves.part(phases[1], {_COMMANDS: command, _POSES: camera}), valves),
        (cameras.part(0.0 if bench.poses_at_ticks else phases[2]), cameras),
    ]


def loop_parts(bench: Bench, seed: int, duration: float) -> tuple[Part, Part, Part]:
    """Reference, estimator and controller as `softcr up hardware` sets them.

    Args:
        bench: its figures.
        seed: of the controller.
        duration: of the motion [s].
    """
    common: Parameters = {"robot": ROBOT, "mode": "wall", "sampling": "separate"}
    chosen: Parameters = {"seed": seed, "command_age": bench.delay * PERIOD}
    chosen |= {"population": POPULATION} if bench.controller == NEMPC else {}
    motion: Parameters = {"reference": "trajectory", "start": "service", "duration": duration}
    motion |= {"trajectory_intervals": PLANT["intervals"]}
    return (
        Part("reference", "softcr_control.reference_block:ReferenceBlock", common | motion),
        registry.part("estimator", "rod", common | {"patience": _PATIENCE}),
        registry.part("controller", bench.controller, common | chosen),
    )


def run_bench(cell: Cell, bench: Bench, duration: float) -> Result:
    """Let a rod at rest, vented, follow the motion of the tracking studies.

    Args:
        cell: whose random streams sensors, wires and controller draw from.
        bench: its figures.
        duration: of the motion [s].

    Returns:
        from the motion's beginning on, a row per tick: tips, wanted (T, 3) [m], base frame; error
        (T,) their distance [m], NaN where the valves vented meanwhile: such a run has no tip error;
        sent (T, m) setpoint of the valves [Pa]; predicted_only, estimates whose pose did not come
        in time.

    Raises:
        UserError: the valves were not enabled.
    """
    ticks = round(duration / PERIOD)
    world = World(load_robot(ROBOT), bench, cell.stream("plant"))
    probe = Probe(world, ticks)
    made = [*devices(world, cell.random("wires")), (probe.part(), probe)]
    blocks = {part.name: device for part, device in made}
    reference, estimator, controller = loop_parts(bench, cell.stream("controller"), duration + 1.0)
    computing = 0.5 * bench.computing
    parts = (
        *(part for part, _ in made), reference,
        replace(estimator, wires={_POSES: made[1][0].wires[_POSES]}, computing=computing),
        replace(controller, computing=computing),
    )  # fmt: skip
    names = tuple(part.name for part in parts)
    begin = tuple(f"{name}/{action}" for name, action in (
        (Valves.name, "enable"), (reference.name, "start"), (Probe.name, "start")))  # fmt: skip
    system = System("bench", parts, names, _ENDLESS, False, controller.name, begin)

    def make(part: Part) -> BlockBase:
        if part.name == controller.name:
            return _controller(world.robot, part, bench.ramped)
        return blocks[part.name] if part.name in blocks else block_of(part)

    log = Log(_TRUE_TIP, _SENT, _REFERENCE)
    executor = run_system(system, log, bag=cell.bag, make=make, guarded=False)
    tips = np.array([pose.position for pose in log.values(_TRUE_TIP)[-ticks:]])
    wanted = np.array([rows.tip_positions[0] for rows in log.values(_REFERENCE)[-ticks:]])
    enabled = world.driver.report.decision.enabled
    return {
        "tips": tips,
        "wanted": wanted,
        "error": np.linalg.norm(tips - wanted, axis=1) if enabled else np.full(ticks, np.nan),
        "sent": np.array(log.values(_SENT)[-ticks:]),
        "predicted_only": executor.block(EstimatorBlock.name).describe()["predicted_only"],
    }


def _controller(robot: Robot, part: Part, ramped: bool) -> ControllerBlock:
    """As a node has it, but for what it plans over: ramps, or steps."""
    settings = ControllerBlock.settings_of(part.parameters)
    named = registry.resolve("controller", settings.controller)
    made = getattr(named, "made", named)

    def make(context: ControlContext) -> Controller:
        return made(replace(context, ramped=ramped), plugin_settings(settings, named))

    return ControllerBlock(robot, settings, make)
