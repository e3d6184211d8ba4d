"""The closed loop of `softcr up hardware` on virtual time: its blocks among emulated devices.

The reference begins to move at the first tick after the valves have been enabled.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softcr_control.controller import ControllerBlock
from softcr_control.observation import ControlContext, Controller
from softcr_estimation.estimator import EstimatorBlock
from softcr_hardware import virtual_devices as devices
from softcr_hardware.plants import RodPlant, RodPlantSettings
from softcr_hardware.virtual_devices import COMMANDS, POSES, PRESSURES, EmulatedBench
from softcr_models import Robot, load_robot
from softcr_runtime import registry
from softcr_runtime.block import BlockBase, Output, Samples
from softcr_runtime.plugin_settings import plugin_settings
from softcr_runtime.registry import GRADIENT_MPC, NEMPC
from softcr_runtime.system import Parameters, Part, System, Wire
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
_TRUE_TIP, _SENT, _REFERENCE = "simulation/truth/tip/pose", "pressure/sent", "reference/rod"


@dataclass(frozen=True)
class Bench:
    """The loop of `softcr up hardware`, with the figures of its shipped settings."""

    controller: str = GRADIENT_MPC
    # age of a command when the valves begin to follow it [periods]; 0: they follow what they see
    # at once, and the controller aims at that
    delay: int = 2
    ramped: bool = True  # whether the controller plans over the valves' ramps as ramps; else steps
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
    # of an estimate and its answer, half of it for each: they are made side by side [s]
    computing: float = 0.003
    valves_late: float = 0.0  # the valves begin later than told, which nobody knows [s]
    jitter: float = 0.0  # mean of what a command takes to the valves' node, exponential [s]
    answers_lost: float = 0.0  # share of the controller's answers


class Probe(devices.Device):
    """The true tip and the valves' setpoint at the controller's ticks; ends the motion."""

    name = "probe"
    actions = ("start",)

    def __init__(self, world: EmulatedBench, bench: Bench, ticks: int) -> None:
        """`ticks` are those of the motion, after which the run is over."""
        super().__init__(world, 1 / PERIOD)
        self._left, self._begun = ticks, False
        self._early = round(1e9 * bench.pressures_early)
        self.outputs = (_TRUE_TIP, _SENT, *((PRESSURES,) if bench.pressures_at_ticks else ()))

    def act(self, action: str) -> str:
        """`start`: the next tick is the motion's first."""
        self._begun = True
        return "started"

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """See BlockBase."""
        seconds, world = 1e-9 * now, self._bench
        if PRESSURES in self.outputs:
            yield Output(PRESSURES, now - self._early, world.pressures(seconds))
        yield Output(_TRUE_TIP, now, world.tip(seconds))
        yield Output(_SENT, now, world.driver.report.sent.copy())
        self._left -= self._begun
        self.finished = self._left <= 0


def world_of(bench: Bench, seed: int) -> EmulatedBench:
    """What the devices of a bench stand around; `seed` is of the sensors."""
    robot = load_robot(ROBOT)
    plant = RodPlant(robot, RodPlantSettings.model_validate(PLANT), seed).simulated
    return EmulatedBench(robot, plant, PERIOD, bench.cycle_rate, bench.quantised)


def devices_of(
    world: EmulatedBench, bench: Bench, random: np.random.Generator
) -> list[tuple[Part, BlockBase]]:
    """Valves and cameras, each with its part of the system.

    Phases of the devices to each other and to the ticks are random, as on a bench; so is what wires
    lose and delay.
    """
    frames, commands = random.integers(2**31, size=2).tolist()
    camera = Wire(bench.camera_latency, lost=bench.frames_lost, seed=frames)
    command = Wire(jitter=bench.jitter, lost=bench.answers_lost, seed=commands)
    age = bench.delay * PERIOD + bench.valves_late if bench.delay else 0.0
    fast = devices.FastCycle(world, bench.cycle_rate)
    valves = devices.Valves(world, bench.pressure_rate, age, bench.pressures_early)
    if bench.pressures_at_ticks:
        valves.outputs = ()
    cameras = devices.Cameras(world, 1 / PERIOD if bench.poses_at_ticks else bench.camera_rate)
    cameras.late = bench.poses_late
    phases = [random.uniform(0.0, each.settings.period) for each in (fast, valves, cameras)]
    return [
        _part(fast, phase=phases[0]),
        _part(valves, phase=phases[1], wires={COMMANDS: command, POSES: camera}),
        _part(cameras, phase=0.0 if bench.poses_at_ticks else phases[2]),
    ]


def _part(block: BlockBase, **options: Any) -> tuple[Part, BlockBase]:
    place = f"{type(block).__module__}:{type(block).__qualname__}"
    return Part(block.name, place, **options), block


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
    ticks, world = round(duration / PERIOD), world_of(bench, cell.stream("plant"))
    made = [*devices_of(world, bench, cell.random("wires")), _part(Probe(world, bench, ticks))]
    blocks = {part.name: device for part, device in made}
    reference, estimator, controller = loop_parts(bench, cell.stream("controller"), duration + 1.0)
    poses = {POSES: made[1][0].wires[POSES]}
    parts = (
        *(part for part, _ in made), reference,
        replace(estimator, wires=poses, computing=0.5 * bench.computing),
        replace(controller, computing=0.5 * bench.computing),
    )  # fmt: skip
    blocks[controller.name] = _controller(world.robot, controller, bench.ramped)
    begin = "valves/enable", f"{reference.name}/start", "probe/start"
    names = tuple(part.name for part in parts)
    system = System("bench", parts, names, _ENDLESS, False, controller.name, begin)
    log = Log(_TRUE_TIP, _SENT, _REFERENCE)
    executor = run_system(
        system, log, bag=cell.bag, make=lambda part: blocks.get(part.name) or block_of(part),
        guarded=False,
    )  # fmt: skip
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
