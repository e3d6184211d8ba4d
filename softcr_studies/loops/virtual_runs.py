"""Blocks that studies make by hand: a plant, what it is commanded, a filter."""

import numpy as np

from softcr_control.open_loop.scripted_commands import ScriptedCommands
from softcr_estimation.estimator import EstimatorBlock
from softcr_models import Robot
from softcr_models.robots.kinds import AnyRobot
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.blocks.system import Parameters
from softcr_runtime.settings.node_settings import NodeSettings, build_settings
from softcr_simulation.plants import Plant, RodPlant
from softcr_simulation.simulator import Simulator, SimulatorSettings

SIMULATOR, ESTIMATOR, REFERENCE = "simulator", "estimator", "reference"


def common(robot: AnyRobot, rate_hz: float, seed: int = 0) -> Parameters:
    """Parameters of every block."""
    return {"robot": robot.name, "mode": "lockstep", "rate_hz": rate_hz, "seed": seed}


def simulator(robot: AnyRobot, plant: Plant, cycles: int, rate_hz: float, seed: int) -> Simulator:
    """A plant that lives through so many cycles; `robot` is as filter and controller know it."""
    told = common(robot, rate_hz, seed) | {"duration": (cycles - 0.5) / rate_hz}
    return Simulator(robot, build_settings(SimulatorSettings, told), plant)


def open_loop(
    robot: Robot, plant: RodPlant, answers: np.ndarray, cycles: int, rate_hz: float, seed: int
) -> dict[str, BlockBase]:
    """A plant and what it is commanded: `answers` (T, m) [Pa], of which row k is followed from
    cycle k + 1 on, and the last one to the end of the cycles."""
    settings = build_settings(NodeSettings, common(robot, rate_hz))
    return {
        SIMULATOR: simulator(robot, plant, cycles, rate_hz, seed),
        ScriptedCommands.name: ScriptedCommands(robot, settings, answers),
    }


def estimator(robot: Robot, parameters: Parameters) -> EstimatorBlock:
    """The house's filter with parameters of its block."""
    # the robot may be made by hand: no file says of which kind it is
    told: Parameters = {"estimator": "rod", "model": "rod"} | parameters
    return EstimatorBlock(robot, EstimatorBlock.settings_of(told))
