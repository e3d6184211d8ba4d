"""`softcr up SYSTEM`: run a system, record it, report on it."""

import os
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from softcr_models.errors import UserError
from softcr_models.models import model_class
from softcr_models.robots.robot import load_robot
from softcr_runtime.blocks.system import System
from softcr_runtime.console.results import new_run_directory, point_latest_to
from softcr_runtime.console.terminal import (
    FAILED,
    USER_ERROR,
    compile_kernels,
    complain,
    not_ended_by_programs,
    readers_may_leave,
    say,
)
from softcr_runtime.ros.context import require_network, set_environment, whereabouts
from softcr_runtime.ros.executor.run_record import Outcome
from softcr_runtime.ros.log_levels import LogLevels
from softcr_runtime.ros.parent import end_with
from softcr_runtime.settings.command_line import command, new_app
from softcr_simulation.errors.plant_errors import SAME_STRUCTURE
from softcr_tools.running.exchanged_controller import other_controller
from softcr_tools.running.free_cores import on_one_core
from softcr_tools.running.hardware_system import HardwareOptions, hardware_system
from softcr_tools.running.option_checks import left_out_of_preset, where_it_computes
from softcr_tools.running.roles import class_of
from softcr_tools.running.run_options import PlantOptions, RunOptions, SimulationOptions
from softcr_tools.running.simulation_defaults import changes_the_plant
from softcr_tools.running.systems import simulation_system
from softcr_tools.visuals.part import with_visuals

if TYPE_CHECKING:
    from softcr_tools.running.virtual_up import VirtualSystemOf

ENDS_WITH = "SOFTCR_ENDS_WITH"
"""Environment: id of the process that started this one, and that the run is to end with."""

SystemOf = Callable[[Any, Path], System]
"""Makes a system of options and the place of its bag."""

Fit = Callable[[RunOptions, Callable[[str], None]], RunOptions]
"""Makes options fit this machine; told whom to tell what was chosen."""

Execute = Callable[[Any, Path, Console], Outcome]
"""Runs the system of some options, whose results belong into a directory."""

app = new_app("up", "Start a system, record it and report on it.")


@app.command
@command
def simulation(
    options: SimulationOptions, *, results: Path = Path("results/sim"), anyway: bool = False
) -> int:
    """Run the closed loop with a simulated plant.

    This starts simulator, estimator, reference, controller and recorder. Ctrl-C ends the run early,
    with a report; a second Ctrl-C kills it.

    Args:
        results: directory in which the run's directory is made.
        anyway: start even if this machine cannot keep up with the clock.
    """
    return run_simulation(options, results, anyway)


@app.command
@command
def hardware(
    options: HardwareOptions,
    *,
    results: Path = Path("results/hardware"),
    no_deadman_switch: bool = False,
    anyway: bool = False,
) -> int:
    """Run the closed loop on the bench.

    This starts cameras, force-torque sensor, valves, estimator, reference, controller and recorder.
    The run begins when the valves' safety handshake has passed. Ctrl-C vents and ends the run; a
    second Ctrl-C kills it.

    Args:
        results: directory in which the run's directory is made.
        no_deadman_switch: nobody holds button 0 of safety/operator; only Ctrl-C, the vent service
            and the shut-off valve of the air then stop the rod.
        anyway: start and arm even if this machine cannot keep up with the clock.
    """
    if no_deadman_switch:
        options = options.told("valves", {"safety.require_operator": False})

    def fit(options: RunOptions, tell: Callable[[str], None]) -> RunOptions:
        from softcr_tools.running.machine_fit import fitted
        from softcr_tools.running.virtual_rehearsal import around_a_bench

        return fitted(options, around_a_bench, tell, anyway)

    return run_hardware(options, results, fit)


def run_simulation(options: SimulationOptions, results: Path, anyway: bool = False) -> int:
    """The closed loop in simulation, from the first node to the report; returns the exit code.

    Raises:
        UserError: the results directory cannot be written, the system already runs, or it cannot
            keep up with the clock here and is not started `anyway`.
    """
    named = options.of("plant").get("plant_errors", "")
    errors = f", plant errors {named}" if named else ""
    say(Console(), f"robot {options.robot}{errors}, controller {options.controller}")
    if other := changes_the_plant(options):
        say(Console(), other, "yellow")
    if left_out := left_out_of_preset(options):
        say(Console(), f"plant errors {named}: left out: {left_out}", "yellow")
    if options.is_virtual:
        from softcr_tools.running.virtual_up import simulated

        return run_virtual(simulated, options, results)

    def fit(options: RunOptions, tell: Callable[[str], None]) -> RunOptions:
        from softcr_tools.running.machine_fit import fitted
        from softcr_tools.running.virtual_up import simulated

        return fitted(options, simulated, tell, anyway)

    waits = options.mode != "wall"  # for whoever is slow
    return _run_nodes(simulation_system, options, results, None if waits else fit)


def run_virtual(system_of: "VirtualSystemOf", options: PlantOptions, results: Path) -> int:
    """A system on virtual time, from its first block to the report; returns the exit code.

    Raises:
        UserError: the results directory cannot be written, or the system cannot run.
    """
    from softcr_tools.running.virtual_up import run_on_virtual_time

    return _run(partial(run_on_virtual_time, system_of), options, results)


def run_hardware(options: HardwareOptions, results: Path, fit: Fit | None = None) -> int:
    """The closed loop on the bench, from the first node to the report; returns the exit code.

    Raises:
        UserError: the results directory cannot be written, the system already runs, or `fit`
            refuses it.
    """
    if not options.of("valves").get("safety.require_operator", True):
        line = "no deadman's switch: Ctrl-C here, 'valves/vent' or the air's shut-off valve vent"
        say(Console(), line, "yellow")
    else:
        line = "hold the deadman's switch: a joystick's button 0, or 'softcr hold' in a terminal"
        say(Console(), line)
    return _run_nodes(hardware_system, options, results, fit)


def _kernels(options: RunOptions) -> list[str]:
    """The sets that the run's nodes call."""
    from softcr_models.warm_up import ROD, needed_kernels

    finds_force, plant = options.of("estimator").get("tip_force", False), options.of("plant")
    robot = load_robot(options.robot, options.kinds)
    sets = needed_kernels(
        robot,
        loads=bool(plant.get("loads") or finds_force),
        obstacles=bool(plant.get("obstacles")),
    )
    used = [model_class(options.model_of(role)) for role in ("controller", "estimator")]
    for each in (*used, class_of(options, "estimator")):
        sets += [name for name in getattr(each, "kernels", ()) if name not in sets]
    if ROD in sets:
        if plant.get("plant_errors", "") not in ("", SAME_STRUCTURE):
            sets.append("softcr_simulation.warm_up:PLANT")
        sets += ["softcr_estimation.warm_up:FILTER", "softcr_control.warm_up:MINIMUM"]
    return sets


def _run(execute: Execute, options: RunOptions, results: Path) -> int:
    if starter := os.environ.pop(ENDS_WITH, ""):
        end_with(int(starter))
    with readers_may_leave():
        return _run_to_the_end(execute, options, results)


def _run_nodes(
    system_of: SystemOf, options: RunOptions, results: Path, fit: Fit | None = None
) -> int:
    require_network()
    set_environment()
    say(Console(), whereabouts())
    return _run(partial(_supervised, system_of, fit), options, results)


def _supervised(
    system_of: SystemOf, fit: Fit | None, options: RunOptions, directory: Path, console: Console
) -> Outcome:
    """Run a system in processes of its own."""
    from softcr_runtime.ros.executor.supervisor import Supervisor

    bag = directory / "bag"
    if fit is not None:
        options = fit(options, partial(say, console))
    system = with_visuals(system_of(options, bag), options)
    another = other_controller(system, options, lambda each: system_of(each, bag))
    levels = LogLevels.parsed(options.log_level)
    levels.check_names(part.name for part in system.parts)
    supervisor = Supervisor(system, directory, options.model_dump(), console, levels, another)
    with on_one_core() if getattr(options, "processes", "") == "one" else nullcontext():
        return supervisor.run()


def _run_to_the_end(execute: Execute, options: RunOptions, results: Path) -> int:
    console = Console()
    if where := where_it_computes(options):
        say(console, f"device {options.device}: the controller's model computes on {where}")
    directory = new_run_directory(results / options.namespace)
    try:
        # before anything that would compile them in this process
        compile_kernels(console, _kernels(options))
        from softcr_tools.running.rod_substeps import with_needed_substeps  # brings kernels with it

        options = with_needed_substeps(options, partial(say, console, style="yellow"))
        outcome = execute(options, directory, console)
    except (UserError, KeyboardInterrupt):
        with suppress(OSError):  # nothing happened: leave nothing, if nothing is in it
            directory.rmdir()
        raise
    point_latest_to(directory)
    if not outcome.ran:
        say(console, f"the run did not begin; what the nodes said is in {directory / 'log'}")
        return outcome.exit_code
    try:
        with not_ended_by_programs():  # they had told the run to end, and the report is part of it
            from softcr_tools import report

            summary = report.build(directory / "bag", directory)
        console.print(summary.table())
        say(console, f"report: {directory / 'report.html'}")
    except UserError as error:
        complain(str(error))
        return outcome.exit_code or USER_ERROR
    return outcome.exit_code or (FAILED if summary["verdict"]["failed"] else 0)
