"""Systems of blocks that experiments make by hand, run on virtual time."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from softcr_control.scripted_commands import ScriptedCommands
from softcr_estimation import EstimatorSettings
from softcr_estimation.estimator import EstimatorBlock
from softcr_estimation.model_filter import ModelFilter
from softcr_hardware.plants import Plant, RodPlant
from softcr_hardware.simulator import Simulator, SimulatorSettings
from softcr_models import Robot
from softcr_models.constant_curvature.arm import Arm
from softcr_runtime.bags.virtual_recording import VirtualRecording
from softcr_runtime.block import BlockBase, Output
from softcr_runtime.settings import NodeSettings, build_settings
from softcr_runtime.system import Parameters, Part, System
from softcr_runtime.virtual import Observer, VirtualExecutor

SIMULATOR, ESTIMATOR, REFERENCE = "simulator", "estimator", "reference"


class Log:
    """An observer that keeps what was sent on some topics."""

    def __init__(self, *topics: str) -> None:
        """Nothing sent yet."""
        self._outputs: dict[str, list[Output]] = {topic: [] for topic in topics}

    def __call__(self, name: str, output: Output) -> None:
        """Keep an output."""
        if output.topic in self._outputs:
            self._outputs[output.topic].append(output)

    def values(self, topic: str) -> list:
        """What was sent on a topic, in order."""
        return [output.value for output in self._outputs[topic]]


def common(robot: Robot | Arm, rate_hz: float, seed: int = 0) -> Parameters:
    """Parameters of every block."""
    return {"robot": robot.name, "mode": "lockstep", "rate_hz": rate_hz, "seed": seed}


def simulator(
    robot: Robot | Arm, plant: Plant, cycles: int, rate_hz: float, seed: int
) -> Simulator:
    """A plant that lives through so many cycles.

    Args:
        robot: as filter and controller know it.
        plant: that is simulated.
        cycles: of the run.
        rate_hz: of them.
        seed: of the plant's sensors.
    """
    told = common(robot, rate_hz, seed) | {"duration": (cycles - 0.5) / rate_hz}
    return Simulator(robot, build_settings(SimulatorSettings, told), plant)


def open_loop(
    robot: Robot, plant: RodPlant, answers: np.ndarray, cycles: int, rate_hz: float, seed: int
) -> dict[str, BlockBase]:
    """A plant and what it is commanded.

    Args:
        robot: as its file has it.
        plant: that is simulated.
        answers: (T, m) [Pa]; row k is followed from cycle k + 1 on, the last one to the end.
        cycles: of the run.
        rate_hz: of them.
        seed: of the plant's sensors.
    """
    settings = build_settings(NodeSettings, common(robot, rate_hz))
    return {
        SIMULATOR: simulator(robot, plant, cycles, rate_hz, seed),
        ScriptedCommands.name: ScriptedCommands(robot, settings, answers),
    }


def estimator(
    robot: Robot, parameters: Parameters, numbers: EstimatorSettings | None = None
) -> EstimatorBlock:
    """The house's filter.

    Args:
        robot: as it knows it.
        parameters: of the block.
        numbers: of the filter, what it estimates among them; None: the shipped ones.
    """
    # the robot may be made by hand: no file says of which kind it is
    told: Parameters = {"estimator": "rod", "model": "rod"} | parameters
    if numbers is None:
        return EstimatorBlock(robot, EstimatorBlock.settings_of(told))
    told |= {"filter": numbers.filter, "parameters": list(numbers.parameters or ())}
    settings = EstimatorBlock.settings_of(told)
    return EstimatorBlock(robot, settings, lambda context: ModelFilter.of(context, numbers))


def run_blocks(
    blocks: Mapping[str, BlockBase],
    observe: Observer,
    progress: Callable[[int], None] = lambda cycles: None,
    clock: Callable[[], float] | None = None,
    bag: Path | None = None,
) -> VirtualExecutor:
    """Run blocks until one of them has finished; what one of them raises ends the run.

    Args:
        blocks: by the names of their nodes.
        observe: told of every output.
        progress: told of every cycle.
        clock: to measure ticks with [s].
        bag: to be written; None: none is.

    Raises:
        UserError: the bag cannot be written.
    """
    parts = tuple(
        Part(name, f"{type(block).__module__}:{type(block).__qualname__}")
        for name, block in blocks.items()
    )
    names = tuple(blocks)
    system = System("study", parts, names, _ENDLESS, simulated_time=True, controller=names[-1])
    return run_system(
        system, observe, progress, clock, bag, make=lambda part: blocks[part.name], guarded=False
    )


def run_system(
    system: System,
    observe: Observer,
    progress: Callable[[int], None] = lambda cycles: None,
    clock: Callable[[], float] | None = None,
    bag: Path | None = None,
    **options: Any,
) -> VirtualExecutor:
    """Run a system on virtual time, on one thread of BLAS; arguments as `run_blocks`.

    Args:
        options: of VirtualExecutor.
    """
    recording = VirtualRecording() if bag else None

    def told(name: str, output: Output) -> None:
        observe(name, output)
        if recording:
            recording.observe(name, output)

    note = recording.note if recording else None
    executor = VirtualExecutor(system, told if recording else observe, note, clock=clock, **options)
    # as every node does: more threads give other bits, and the matrices are small
    with threadpool_limits(limits=1, user_api="blas"):
        executor.run(progress=lambda time: progress(1))
    if recording and bag:
        bag.parent.mkdir(parents=True, exist_ok=True)
        recording.write(bag, executor)
    return executor


_ENDLESS = 1e6  # the simulator says when it has finished [s]
