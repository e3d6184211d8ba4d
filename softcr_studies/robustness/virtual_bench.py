"""The closed loop of `softcr up hardware` on virtual time: its blocks among emulated devices.

The reference begins to move at the first tick after the valves have been enabled.
"""

from dataclasses import dataclass, replace

import numpy as np

from softcr_control.controller import ControllerBlock
from softcr_control.observation import ControlContext, Controller
from softcr_estimation.estimator import EstimatorBlock
from softcr_hardware import virtual_devices
from softcr_hardware.plants import RodPlant, RodPlantSettings
from softcr_hardware.virtual_devices import POSES, SENT, TRUE_TIP, DeviceFigures, EmulatedBench
from softcr_models import Robot, load_robot
from softcr_runtime import registry
from softcr_runtime.block import BlockBase
from softcr_runtime.plugin_settings import plugin_settings
from softcr_runtime.registry import GRADIENT_MPC, NEMPC
from softcr_runtime.system import Parameters, Part, System
from softcr_runtime.virtual import block_of
from softcr_studies.cell import Cell, Result
from softcr_studies.virtual_runs import Log, run_system

ROBOT = "licher2025"
PERIOD = DeviceFigures.command_period
POPULATION = 64
"""Candidates of the NEMPC, as in a rehearsal."""
PLANT: Parameters = {
    "intervals": 20, "bending_compliance_factor": 0.95, "tip_mass_factor": 1.1,
    "tip_noise": 2e-4, "pressure_noise": 0.0, "force_noise": 0.0, "moment_noise": 0.0,
}  # fmt: skip
"""How the plant differs from the robot file: as in the tracking studies."""
_PATIENCE = 2.5  # of the estimator on a bench [periods]
_ENDLESS = 1e6  # [s]
_REFERENCE = "reference/rod"


@dataclass(frozen=True)
class Bench(DeviceFigures):
    """The loop of `softcr up hardware`, with the figures of its shipped settings."""

    controller: str = GRADIENT_MPC
    ramped: bool = True  # whether the controller plans over the valves' ramps as ramps; else steps
    # of an estimate and its answer, half of it for each: they are made side by side [s]
    computing: float = 0.003


def emulated(bench: Bench, seed: int) -> EmulatedBench:
    """What the devices of a bench stand around; `seed` is of the sensors."""
    robot = load_robot(ROBOT)
    plant = RodPlant(robot, RodPlantSettings.model_validate(PLANT), seed).simulated
    return EmulatedBench(robot, plant, bench)


def loop_parts(bench: Bench, seed: int, duration: float) -> tuple[Part, Part, Part]:
    """Reference, estimator, controller as `softcr up hardware` sets them, for a motion of so long.

    `seed` is the controller's, `duration` in seconds.
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
    """Let a rod at rest, vented, follow the motion of the tracking studies for `duration` [s].

    Returns:
        from the motion's beginning on, a row per tick: tips, wanted (T, 3) [m], base frame; error
        (T,) their distance [m], NaN where the valves vented meanwhile: such a run has no tip error;
        sent (T, m) setpoint of the valves [Pa]; predicted_only, estimates whose pose did not come
        in time.

    Raises:
        UserError: the valves were not enabled.
    """
    ticks, devices = round(duration / PERIOD), emulated(bench, cell.stream("plant"))
    probe = virtual_devices.part_of(virtual_devices.Probe(devices, ticks))
    made = [*virtual_devices.devices_of(devices, cell.random("wires")), probe]
    blocks: dict[str, BlockBase] = {part.name: device for part, device in made}
    reference, estimator, controller = loop_parts(bench, cell.stream("controller"), duration + 1.0)
    poses = {POSES: made[1][0].wires[POSES]}
    parts = (
        *(part for part, _ in made), reference,
        replace(estimator, wires=poses, computing=0.5 * bench.computing),
        replace(controller, computing=0.5 * bench.computing),
    )  # fmt: skip
    blocks[controller.name] = _controller(devices.robot, controller, bench.ramped)
    begin = "valves/enable", f"{reference.name}/start", "probe/start"
    names = tuple(part.name for part in parts)
    system = System("bench", parts, names, _ENDLESS, False, controller.name, begin)
    log = Log(TRUE_TIP, SENT, _REFERENCE)
    executor = run_system(
        system, log, bag=cell.bag, make=lambda part: blocks.get(part.name) or block_of(part),
        guarded=False,
    )  # fmt: skip
    tips = np.array([pose.position for pose in log.values(TRUE_TIP)[-ticks:]])
    wanted = np.array([rows.tip_positions[0] for rows in log.values(_REFERENCE)[-ticks:]])
    enabled = devices.driver.report.decision.enabled
    return {
        "tips": tips,
        "wanted": wanted,
        "error": np.linalg.norm(tips - wanted, axis=1) if enabled else np.full(ticks, np.nan),
        "sent": np.array(log.values(SENT)[-ticks:]),
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
