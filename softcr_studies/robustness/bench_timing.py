"""What the tip error owes to each figure of a bench: stamps, rates, delays, losses.

Tracking to 1.5 Hz in the simulation's loop, on the bench as it is shipped, and on benches that
differ from it in one figure: the loop of `softcr up hardware`, its blocks among emulated devices.
Time is virtual: equal seeds give equal runs, however slow the machine.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pydantic import Field, model_validator

from softcr_control.controller import ControllerBlock
from softcr_control.observation import ControlContext, Controller
from softcr_estimation.estimator import EstimatorBlock
from softcr_hardware.emulation.virtual_bench import bench_system
from softcr_hardware.emulation.virtual_devices import (
    PLANS,
    POSES,
    PRESSURES,
    SENT,
    TRUE_TIP,
    DeviceFigures,
    EmulatedBench,
)
from softcr_models import Robot, load_robot
from softcr_models.errors import UserError
from softcr_runtime.blocks.system import Computing, Missing, Parameters, Part, System, Wire
from softcr_runtime.blocks.virtual import block_of
from softcr_runtime.blocks.virtual_run import Log, run_system
from softcr_runtime.settings import registry
from softcr_runtime.settings.node_settings import Seconds
from softcr_runtime.settings.plugin_settings import plugin_settings
from softcr_runtime.settings.registry import GRADIENT_MPC, NEMPC
from softcr_simulation.plant import SimulatedPlant
from softcr_simulation.plants import RodPlant, RodPlantSettings
from softcr_studies.frame.study import Cell, Metric, Result, Seeds, Study, StudySettings
from softcr_studies.loops.closed_loop import closed_loop, mean_error_mm, tracked

SETTLED = 2.0  # from here on the motion has faded in [s]
ROBOT = "licher2025"
PERIOD = DeviceFigures.command_period
POPULATION = 64  # candidates of the NEMPC, as in a rehearsal
PLANT: Parameters = {
    "intervals": 20,
    "errors": "bending_factor=0.95,tip_mass_factor=1.1,tip_noise=2e-4,pressure_noise=0,"
    "force_noise=0,moment_noise=0",
}
"""How the plant differs from the robot file: as in the tracking studies."""
_PATIENCE = 2.5  # of the estimator on a bench [periods]
_REFERENCE = "reference/rod"


@dataclass(frozen=True)
class Bench(DeviceFigures):
    """The loop of `softcr up hardware`, with the figures of its shipped settings."""

    controller: str = GRADIENT_MPC
    ramped: bool = True  # whether the controller plans over the valves' ramps as ramps; else steps
    delay: int = 1  # ticks from a sample to the pressures that answer it, at least
    # of an estimate and its answer, half of it for each: they are made side by side [s]
    computing: float = 0.003
    answering: Computing | None = None  # of the controller, where it is not the half of that
    # topic -> messages on it that nobody hears
    missing: Mapping[str, tuple[Missing, ...]] = field(default_factory=dict)
    lost: float = 0.0  # share of all messages, at random


@dataclass(frozen=True)
class Simulation:
    """The loop of `make sim`: all sensors are read at the ticks, pressures follow the lag."""

    controller: str = GRADIENT_MPC
    delay: int = 1  # ticks from a sample to the pressures that answer it, 1 or 2


@dataclass(frozen=True)
class Variation:
    """A setup and its names."""

    key: str  # for `--only`
    what: str  # in words
    setup: Simulation | Bench

    @property
    def name(self) -> str:
        """Of the case."""
        return "simulation" if isinstance(self.setup, Simulation) else "bench"


def _bench(key: str, what: str, **differs: Any) -> Variation:
    return Variation(key, what, Bench(**differs))


VARIATIONS = (
    Variation("simulation", "as shipped", Simulation()),
    Variation("simulation-2", "answers after two periods", Simulation(delay=2)),
    _bench("bench", "as shipped"),
    _bench("delay-3", "answers after three periods", delay=3),
    _bench("delay-4", "answers after four periods", delay=4),
    _bench("ideal-sensors", "sensors exact, read at the ticks",
           quantised=False, pressures_at_ticks=True, poses_at_ticks=True),
    _bench("exact-volts", "volts not quantised", quantised=False),
    _bench("pressures-at-ticks", "pressures read at the ticks, not at 200 Hz",
           pressures_at_ticks=True),
    _bench("poses-at-ticks", "exposures at the ticks, not at 120 Hz", poses_at_ticks=True),
    _bench("cameras-240", "cameras at 240 Hz", camera_rate=240.0),
    _bench("frames-lost", "10 % of the frames lost", frames_lost=0.1),
    _bench("poses-late", "poses stamped 0.11 ms late", poses_late=0.11e-3),
    _bench("poses-later", "poses stamped 1 ms late", poses_late=1e-3),
    _bench("pressures-early", "pressures stamped 0.2 ms early", pressures_early=0.2e-3),
    _bench("pressures-earlier", "pressures stamped 2 ms early", pressures_early=2e-3),
    _bench("valves-late", "valves begin 1 ms late", valves_late=1e-3),
    _bench("valves-later", "valves begin 3 ms late", valves_late=3e-3),
    _bench("steps", "ramps planned over as steps", ramped=False),
    _bench("early-steps", "ramps planned over as steps, begun half a period early",
           ramped=False, valves_late=-0.5 * PERIOD),
    _bench("jitter", "commands 5 ms on their way, exponential", jitter=5e-3),
    _bench("slow-cameras", "poses 20 ms old when they come", camera_latency=20e-3),
    _bench("slow-answers", "13 ms for an estimate and its answer", computing=13e-3),
    _bench("answers-lost", "5 % of the answers lost", answers_lost=0.05),
    _bench("more-lost", "20 % of the answers lost", answers_lost=0.2),
    Variation("simulation-nempc", f"NEMPC, {POPULATION} candidates", Simulation(NEMPC)),
    _bench("bench-nempc", f"NEMPC, {POPULATION} candidates", controller=NEMPC),
)  # fmt: skip
"""What is run; every bench differs from "bench" in what its words say."""
_KEYS = tuple(each.key for each in VARIATIONS)


class Settings(StudySettings):
    """How long, and which variations."""

    seeds: Seeds = 3
    duration: Seconds = Field(12.0, gt=SETTLED, le=3600.0, description="duration of a run")
    only: str = Field(
        "", description=f"run these alone, separated by commas; allowed are {', '.join(_KEYS)}"
    )  # fmt: skip

    @property
    def chosen(self) -> list[str]:
        """Keys of the variations."""
        return [word for word in map(str.strip, self.only.split(",")) if word] or list(_KEYS)

    @model_validator(mode="after")
    def _known(self) -> "Settings":
        for word in self.chosen:
            if word not in _KEYS:
                raise UserError(f"option --only: {word!r}: allowed are {', '.join(_KEYS)}")
        return self


def run(cell: Cell) -> Result:
    """One run of a variation."""
    setup, duration = cell.case.setup, cell.settings.duration
    if isinstance(setup, Bench):
        return run_bench(cell, setup, duration)
    control: Parameters = {"least_delay": setup.delay}
    control |= {"population": POPULATION} if setup.controller == NEMPC else {}
    system = closed_loop(
        cell, setup.controller, "trajectory", duration=duration,
        of={
            "plant": PLANT, "controller": control,
            "reference": {"trajectory_intervals": PLANT["intervals"], "duration": duration + 1.0},
        },
    )  # fmt: skip
    return tracked(cell, system)


def emulated(bench: Bench, seed: int) -> EmulatedBench:
    """What the devices of a bench stand around; `seed` is of the sensors."""
    robot = load_robot(ROBOT)
    plant = RodPlant(robot, RodPlantSettings.model_validate(PLANT), seed).simulated
    assert isinstance(plant, SimulatedPlant)  # of the same structure
    return EmulatedBench(robot, plant, bench)


def loop_parts(bench: Bench, seed: int, duration: float) -> tuple[Part, Part, Part]:
    """Reference, estimator, controller as `softcr up hardware` sets them, for a motion of so long.

    `seed` is the controller's, `duration` in seconds.
    """
    common: Parameters = {"robot": ROBOT, "mode": "wall", "sampling": "separate"}
    chosen: Parameters = {"seed": seed, "least_delay": bench.delay}
    chosen |= {"population": POPULATION} if bench.controller == NEMPC else {}
    motion: Parameters = {"reference": "trajectory", "start": "service", "duration": duration}
    motion |= {"trajectory_intervals": PLANT["intervals"]}
    return (
        Part("reference", "softcr_control.reference.block:ReferenceBlock", common | motion),
        registry.part("estimator", "rod", common | {"patience": _PATIENCE}),
        registry.part("controller", bench.controller, common | chosen),
    )


def run_bench(cell: Cell, bench: Bench, duration: float) -> Result:
    """Let a rod at rest, vented, follow the motion of the tracking studies for `duration` [s].

    Returns:
        from the motion's beginning on, a row per tick: times (T,) [s]; tips, wanted (T, 3) [m],
        base frame; error (T,) their distance [m], NaN where the valves vented meanwhile: such a run
        has no tip error; sent (T, m) setpoint of the valves [Pa]; predicted_only, estimates whose
        pose did not come in time.

    Raises:
        UserError: the valves were not enabled.
    """
    ticks, devices = round(duration / PERIOD), emulated(bench, cell.stream("plant"))
    reference, estimator, controller = loop_parts(bench, cell.stream("controller"), duration + 1.0)
    computing = Computing(0.5 * bench.computing)
    loop = (
        reference,
        replace(estimator, computing=computing),
        replace(controller, computing=bench.answering or computing),
    )
    system, blocks = bench_system(devices, loop, cell.random("wires"), duration)
    system = _with_gaps(system, bench, cell.stream("lost"))
    blocks[controller.name] = _controller(devices.robot, controller, bench.ramped)
    log = Log(TRUE_TIP, SENT, _REFERENCE)
    executor = run_system(
        system, log, bag=cell.bag, make=lambda part: blocks.get(part.name) or block_of(part),
        guarded=False,
    )  # fmt: skip
    tips = np.array([pose.position for pose in log.values(TRUE_TIP)[-ticks:]])
    wanted = np.array([rows.tip_positions[0] for rows in log.values(_REFERENCE)[-ticks:]])
    enabled = devices.driver.report.decision.enabled
    found = executor.block(controller.name).describe()
    return {
        "times": PERIOD * np.arange(ticks),
        "vented": not enabled,
        "delay": found["delay"],
        "tips": tips,
        "wanted": wanted,
        "error": np.linalg.norm(tips - wanted, axis=1) if enabled else np.full(ticks, np.nan),
        "sent": np.array(log.values(SENT)[-ticks:]),
        "predicted_only": executor.block(EstimatorBlock.name).describe()["predicted_only"],
    }


def _with_gaps(system: System, bench: Bench, seed: int) -> System:
    """With the messages that a bench loses on purpose: of a topic the same ones for everybody."""
    if not (bench.missing or bench.lost):
        return system

    def heard(part: Part, topic: str) -> Wire:
        wire = part.wires.get(topic, Wire(seed=seed + zlib.crc32(topic.encode())))
        lost = max(wire.lost, bench.lost)
        return replace(wire, missing=bench.missing.get(topic, ()), lost=lost)

    topics = (PLANS, PRESSURES, POSES, "estimate/rod", "reference/rod", SENT)
    parts = tuple(
        replace(part, wires={**part.wires, **{topic: heard(part, topic) for topic in topics}})
        for part in system.parts
    )
    return replace(system, parts=parts)


def _controller(robot: Robot, part: Part, ramped: bool) -> ControllerBlock:
    """As a node has it, but for what it plans over: ramps, or steps."""
    settings = ControllerBlock.settings_of(part.parameters)
    named = registry.resolve("controller", settings.controller)
    made = getattr(named, "made", named)

    def make(context: ControlContext) -> Controller:
        return made(replace(context, ramped=ramped), plugin_settings(settings, named))

    return ControllerBlock(robot, settings, make)


STUDY = Study(
    name="robustness/bench-timing",
    source="",
    summary="what the tip error owes to each figure of a bench",
    run=run,
    cases=lambda settings: [each for each in VARIATIONS if each.key in settings.chosen],
    methods=lambda variation: (variation.what,),
    settings=Settings,
    metrics=(
        Metric("mean tip error", "mm", mean_error_mm),
        Metric("settled tip error", "mm", lambda result: mean_error_mm(result, since=SETTLED)),
    ),
    exact="The plant has the model's equations on 20 intervals instead of 5, its bending "
    "compliance is 5 % lower and its tip mass 10 % higher; it makes no other error, and the "
    "reference is a motion of the nominal rod on 20 intervals. The tip is measured with 0.2 mm of "
    "noise, pressures with 50 Pa on a bench, where volts have 16 bits, valves and chambers follow "
    "the emulators' flow law, and devices fail in nothing but what is told.",
    about={"rate_hz": 70.0, "reference": "trajectory to 1.5 Hz", "settled_after_s": SETTLED},
)
