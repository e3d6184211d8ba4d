"""The rehearsal on virtual time: the bench's loop around emulated devices, without their wires."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from softcr_hardware.emulation.virtual_bench import bench_system
from softcr_hardware.emulation.virtual_devices import DeviceFigures, EmulatedBench
from softcr_hardware.ethercat.memory_cycle import memory_cycle
from softcr_models.robots.robot import load_robot
from softcr_runtime.blocks.virtual import block_of
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.errors.presets import errors_of
from softcr_simulation.plant import SimulatedPlant
from softcr_tools.running.hardware_system import HardwareOptions, hardware_system
from softcr_tools.running.machine_speed import typical_cycle
from softcr_tools.running.virtual_up import VirtualSystem

if TYPE_CHECKING:
    from softcr_tools.running.rehearse import RehearsalOptions

_OF_VALVES = 0.0  # noise of the plant's pressures [Pa]: the valves' sensors have their own


def rehearsed(options: "RehearsalOptions") -> VirtualSystem:
    """The loop of `softcr up hardware` around an emulated bench.

    Nothing plays the role of the plant: the bench's devices have clocks of their own, and the
    valves' cycle is in time.

    Raises:
        UserError: a block cannot be made, or there are no valves for the robot.
    """
    found = errors_of(load_robot(options.robot), "", str(options.of("plant")["errors"])).errors
    return _around(options, found.model_copy(update={"pressure_noise": _OF_VALVES}))


def around_a_bench(options: HardwareOptions) -> VirtualSystem:
    """The loop of `softcr up hardware` around an emulated bench whose robot is as its file says;
    otherwise as `rehearsed`."""
    # beside the loop: the valves' cycle of 1 kHz; what the sensors' nodes take is not known here
    drivers = typical_cycle(memory_cycle()) * 1e3
    return replace(_around(options, PlantErrors(pressure_noise=_OF_VALVES)), others=drivers)


def _around(options: HardwareOptions, errors: PlantErrors) -> VirtualSystem:
    system = hardware_system(options, Path())
    estimator, reference, controller = (part for part in system.parts if part.is_block)
    robot = load_robot(options.robot)
    bench = EmulatedBench(robot, SimulatedPlant(robot, errors, options.seed), DeviceFigures())
    loop = reference, estimator, controller
    random = np.random.default_rng(options.seed)
    system, blocks = bench_system(bench, loop, random, options.duration)
    blocks |= {part.name: block_of(part) for part in loop}
    roles = {"controller": controller.name, "estimator": estimator.name}

    def failure() -> str:
        decision = bench.driver.report.decision
        return "" if decision.enabled else f"the valves vented: {decision.cause or decision.reason}"

    return VirtualSystem(system, blocks, roles | {"reference": reference.name}, failure)
