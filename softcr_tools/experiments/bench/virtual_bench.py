"""The closed loop of `softcr up hardware` on virtual time: its blocks among emulated devices.

The reference begins to move at the first tick after the valves have been enabled.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from softcr_control.controller import ControllerBlock
from softcr_control.observation import ControlContext, Controller
from softcr_control.reference_block import ReferenceBlock
from softcr_control.references import SampledReference
from softcr_estimation.estimator import EstimatorBlock
from softcr_models import Robot
from softcr_runtime import registry
from softcr_runtime.block import BlockBase, Output
from softcr_runtime.plugin_settings import plugin_settings
from softcr_runtime.settings import NodeSettings, build_settings
from softcr_runtime.system import Parameters, Part, System, Wire
from softcr_runtime.virtual import VirtualExecutor
from softcr_studies.virtual_runs import Log
from softcr_tools.experiments.bench.devices import (
    COMMANDS,
    POSES,
    SENT,
    TRUE_TIP,
    Cameras,
    FastCycle,
    Probe,
    Valves,
)
from softcr_tools.experiments.bench.setups import POPULATION, Bench
from softcr_tools.experiments.bench.world import World
from softcr_tools.experiments.tracking.loop import PERIOD
from softcr_tools.hardware_system import HardwareOptions, hardware_system

_REFERENCE = "reference/rod"
_NO_WIRES: Mapping[str, Wire] = {}
_ENDLESS = 1e6  # [s]


@dataclass(frozen=True, eq=False)
class BenchTrace:
    """One run from the motion's beginning on, a row per tick.

    Attributes:
        tips, reference_tips: (T, 3) true and wanted [m], base frame.
        sent: (T, m) setpoint of the valves [Pa].
        predicted_only: estimates whose pose did not come in time.
        enabled: whether the valves still were at the end.
    """

    tips: np.ndarray
    reference_tips: np.ndarray
    sent: np.ndarray
    predicted_only: int
    enabled: bool

    @property
    def error(self) -> np.ndarray:
        """(T,) distance of the true tip from the reference [m]."""
        return np.linalg.norm(self.tips - self.reference_tips, axis=1)


def run_bench(
    robot: Robot,
    bench: Bench,
    source: SampledReference,
    seed: int,
    duration: float,
    progress: Callable[[int], None] = lambda ticks: None,
) -> BenchTrace:
    """Let a rod at rest, vented, follow a reference.

    Args:
        robot: as estimator and controller know it.
        bench: its figures.
        source: the motion.
        seed: of all that is random.
        duration: of the motion [s].
        progress: told of ticks since the motion began.

    Raises:
        UserError: the valves were not enabled.
    """
    ticks = round(duration / PERIOD)
    system = bench_system(bench, seed)
    world = World(robot, bench, seed, PERIOD)
    probe = Probe(robot, _clocked(1 / PERIOD), world, ticks, _early(bench, at_ticks=True))

    def make(part: Part) -> BlockBase:
        if part.name == probe.name:
            return probe
        if part.name == system.controller:
            return _controller(robot, part, bench.ramped)
        if part.name == ReferenceBlock.name:
            return ReferenceBlock(robot, ReferenceBlock.settings_of(part.parameters), source)
        if part.name == EstimatorBlock.name:
            return EstimatorBlock(robot, EstimatorBlock.settings_of(part.parameters))
        found = device(part, robot, bench, world)
        assert found is not None  # there are no other parts
        return found

    log = Log(TRUE_TIP, SENT, _REFERENCE)

    def observe(name: str, output: Output) -> None:
        log(name, output)
        if output.topic == TRUE_TIP and probe.begun:
            progress(1)

    executor = VirtualExecutor(system, observe, make=make, guarded=False)
    executor.run()
    return BenchTrace(
        tips=np.array([pose.position for pose in log.values(TRUE_TIP)[-ticks:]]),
        reference_tips=np.array(
            [rows.tip_positions[0] for rows in log.values(_REFERENCE)[-ticks:]]
        ),
        sent=np.array(log.values(SENT)[-ticks:]),
        predicted_only=executor.block(EstimatorBlock.name).describe()["predicted_only"],
        enabled=world.driver.report.decision.enabled,
    )


def bench_system(bench: Bench, seed: int) -> System:
    """The loop's parts as `softcr up hardware` sets them, but for what the bench says.

    Phases of the devices to each other and to the ticks are random, as on a bench; so is what wires
    lose and delay.

    Args:
        bench: its figures.
        seed: of phases, wires and controller.
    """
    random = np.random.default_rng(seed)
    frames, commands = random.integers(2**31, size=2).tolist()
    camera = Wire(bench.camera_latency, lost=bench.frames_lost, seed=frames)
    command = Wire(jitter=bench.jitter, lost=bench.answers_lost, seed=commands)
    fast = _part(FastCycle, phase=random.uniform(0.0, 1 / bench.cycle_rate))
    valves = _part(
        Valves,
        phase=random.uniform(0.0, 1 / bench.pressure_rate),
        wires={COMMANDS: command, POSES: camera},
    )
    phase = random.uniform(0.0, 1 / bench.camera_rate)
    cameras = _part(Cameras, phase=0.0 if bench.poses_at_ticks else phase)
    estimator, reference, controller = _loop(bench, seed)
    parts = (
        fast, valves, cameras, _part(Probe), reference,
        replace(estimator, wires={POSES: camera}, computing=0.5 * bench.computing),
        replace(controller, computing=0.5 * bench.computing),
    )  # fmt: skip
    return System(
        name="bench",
        parts=parts,
        activation=tuple(part.name for part in parts),
        duration=_ENDLESS,  # the probe says when the motion is over
        simulated_time=False,
        controller=controller.name,
        begin=(f"{valves.name}/enable", f"{reference.name}/start", f"{Probe.name}/start"),
    )


def device(part: Part, robot: Robot, bench: Bench, world: World) -> BlockBase | None:
    """The block of a device in the world; None for any other part."""
    if part.name == FastCycle.name:
        return FastCycle(robot, _clocked(bench.cycle_rate), world)
    if part.name == Valves.name:
        age = bench.delay * PERIOD + bench.valves_late if bench.delay else -math.inf
        early = _early(bench, at_ticks=False)
        return Valves(robot, _clocked(bench.pressure_rate), world, age, early)
    if part.name == Cameras.name:
        rate = 1 / PERIOD if bench.poses_at_ticks else bench.camera_rate
        return Cameras(robot, _clocked(rate), world, bench.poses_late)
    return None


def _loop(bench: Bench, seed: int) -> tuple[Part, Part, Part]:
    """Estimator, reference and controller."""
    chosen = {"controller": bench.controller, "seed": seed}
    if bench.controller == "nempc":
        chosen["population"] = POPULATION
    system = hardware_system(build_settings(HardwareOptions, chosen), Path())
    age: Parameters = {"command_age": bench.delay * PERIOD}
    controller = system.part(system.controller).with_parameters(age)
    return system.part(EstimatorBlock.name), system.part(ReferenceBlock.name), controller


def _part(
    block: type[BlockBase], phase: float = 0.0, wires: Mapping[str, Wire] = _NO_WIRES
) -> Part:
    place = f"{block.__module__}:{block.__qualname__}"
    return Part(block.name, place, phase=phase, wires=wires)


def _clocked(rate: float) -> NodeSettings:
    """Of a block with a clock of this rate [Hz]."""
    return build_settings(NodeSettings, {"rate_hz": rate})


def _early(bench: Bench, at_ticks: bool) -> float | None:
    """How much too early pressures are stamped that are, or are not, read at the ticks [s]; None
    where they are not read so."""
    return bench.pressures_early if bench.pressures_at_ticks == at_ticks else None


def _controller(robot: Robot, part: Part, ramped: bool) -> ControllerBlock:
    """As a node has it, but for what it plans over: ramps, or steps."""
    settings = ControllerBlock.settings_of(part.parameters)
    named = registry.resolve("controller", settings.controller)
    made = getattr(named, "made", named)

    def make(context: ControlContext) -> Controller:
        return made(replace(context, ramped=ramped), plugin_settings(settings, named))

    return ControllerBlock(robot, settings, make)
