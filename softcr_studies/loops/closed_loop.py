"""Closed loops on virtual time, from names and settings or from blocks that are made by hand.

The loop is the one of `softcr up simulation`: plant, estimator, reference and controller are the
same blocks, each with random numbers of its own.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from softcr_estimation.estimator import EstimatorBlock
from softcr_models import Robot
from softcr_models.robots.kinds import AnyRobot
from softcr_runtime.blocks.block import BlockBase, Input, Output, Samples
from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.blocks.system import Parameter, Parameters, System
from softcr_runtime.blocks.virtual import Observer
from softcr_runtime.blocks.virtual_run import run_blocks, run_system
from softcr_runtime.settings import registry
from softcr_runtime.settings.node_settings import NodeSettings, build_settings
from softcr_runtime.wire.robot_topics import robot_topics
from softcr_simulation.plants import Plant, RodPlant
from softcr_simulation.simulator import Simulator, SimulatorSettings
from softcr_studies.frame.cell import Cell, Result


class ScriptedCommands(BlockBase):
    """Answers the k-th sample of the actuators with row k, then holds the last one."""

    name = "scripted_commands"
    kinds = None

    def __init__(self, robot: Any, settings: Any, commands: np.ndarray) -> None:
        """See BlockBase.

        Args:
            robot: see BlockBase.
            settings: see BlockBase.
            commands: (T, m) [unit of the robot's inputs]. In lock-step a row is followed from the
                cycle after the one that it answers on.
        """
        super().__init__(robot, settings)
        topics = robot_topics(robot)
        self._plan, self._commands = topics.plan, commands
        self.inputs = (Input(topics.state, "lead"),)
        self.outputs = (topics.plan,)
        self.reset()

    def reset(self) -> None:
        self._ticks = 0

    def tick(self, now: int, samples: Samples) -> Iterable[Output]:
        """The row of this tick."""
        row = min(self._ticks, len(self._commands) - 1)
        self._ticks += 1
        due = now + round(1e9 * self.settings.period)
        return [Output(self._plan, now, CommandPacket.single(due, self._commands[row]))]

    def idle(self, now: int, why: str) -> Iterable[Output]:
        """No pressure; tendons at rest."""
        rest = np.zeros(self._commands.shape[1])
        return [Output(self._plan, now, CommandPacket.single(now, rest))]


SIMULATOR, ESTIMATOR, REFERENCE = "simulator", "estimator", "reference"

_READ: dict[str, tuple[str, Callable[[Any], np.ndarray]]] = {
    "simulation/truth/tip/pose": ("tips", lambda pose: pose.position),
    "estimate/tip/pose": ("estimated", lambda tip: tip.pose().position),
    **dict.fromkeys(
        ("reference/rod", "reference/output"), ("wanted", lambda rows: rows.tip_positions[0])
    ),
    **dict.fromkeys(("pressure/sent", "tendon/sent"), ("commands", np.asarray)),
}
"""Topic -> what `tracked` calls it, and how it is read from a value."""


def closed_loop(
    cell: Cell,
    controller: str,
    reference: str,
    *,
    plant: str = "rod",
    estimator: str = "rod",
    robot: str = "licher2025",
    model: str = "rod",
    rate_hz: float = 70.0,
    duration: float = 10.0,
    of: Mapping[str, Mapping[str, Parameter]] | None = None,
) -> System:
    """A loop in lock-step.

    Args:
        cell: whose random streams plant and controller draw from.
        controller, reference, plant, estimator: names of the registry, `package.module:Class` or
            `path/file.py:Class`.
        robot: name or path of its file.
        model: of estimator and controller.
        rate_hz: of the loop [Hz].
        duration: of the run [s].
        of: "plant", "estimator", "reference" or "controller" -> settings that differ from theirs.

    Raises:
        UserError: a name or a setting cannot be used.
    """
    given = {role: dict(settings) for role, settings in (of or {}).items()}
    common: Parameters = {"robot": robot, "mode": "lockstep", "rate_hz": rate_hz}
    on_model: Parameters = common | {"model": model}
    parts = (
        registry.part(
            "plant", plant,
            common | {"seed": cell.stream("plant"), "duration": duration} | given.get("plant", {}),
        ),
        registry.part("estimator", estimator, on_model | given.get("estimator", {})),
        registry.part(
            "reference", reference,
            on_model | {"duration": duration} | given.get("reference", {}),
        ),
        registry.part(
            "controller", controller,
            on_model | {"seed": cell.stream("controller")} | given.get("controller", {}),
        ),
    )  # fmt: skip
    names = tuple(part.name for part in parts)
    return System(cell.case_name, parts, names, duration, True, parts[-1].name)


def tracked(cell: Cell, system: System) -> Result:
    """Run a loop of a cell, whose bag is written if it wants one; see `followed`."""
    return followed(system, bag=cell.bag)


def followed(
    loop: System | Mapping[str, BlockBase],
    observe: Observer = lambda name, output: None,
    bag: Path | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Result:
    """Run a loop and keep how its tip followed.

    Args:
        loop: a system, or blocks by the names of their nodes, the controller last.
        observe: told of everything that is sent.
        bag: to be written.
        clock: by which ticks are timed [s].

    Returns:
        times (T,) [s]; tips, wanted, estimated (T, 3) true, wanted and estimated tip [m], base
        frame; error (T,) distance of the true tip from the wanted one [m]; commands (T, m), in the
        units of the robot's inputs; ticks (T,) of the controller [s].
    """
    sent: dict[str, dict[int, np.ndarray]] = {name: {} for name, _ in _READ.values()}

    def told(node: str, output: Output) -> None:
        if output.topic in _READ:
            name, read = _READ[output.topic]
            sent[name][output.stamp] = read(output.value)
        observe(node, output)

    if isinstance(loop, System):
        executor = run_system(loop, told, clock=clock, bag=bag)
        controller = loop.controller or loop.parts[-1].name
    else:
        executor, controller = run_blocks(loop, told, clock=clock, bag=bag), [*loop][-1]
    whole = [sent[name] for name in ("tips", "wanted", "commands")]
    stamps = [stamp for stamp in sent["wanted"] if all(stamp in each for each in whole)]
    nothing = np.full(3, np.nan)  # an estimate need not be there
    arrays = {
        name: np.array([values.get(stamp, nothing) for stamp in stamps])
        for name, values in sent.items()
    }
    error = np.linalg.norm(arrays["tips"] - arrays["wanted"], axis=1)
    ticks = np.array(executor.tick_times[controller])
    return arrays | {"times": 1e-9 * np.array(stamps), "error": error, "ticks": ticks}


def mean_error_mm(result: Result, since: float = 0.0) -> float:
    """Mean tip error of what `tracked` returns, from a time on [mm]."""
    return float(1e3 * result["error"][result["times"] >= since].mean())


# --- blocks that are made by hand


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
