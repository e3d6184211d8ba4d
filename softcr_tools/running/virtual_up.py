"""A whole run on virtual time: one process, no nodes, with a bag and a report like any other."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from softcr_runtime.blocks.block import BlockBase, Output
from softcr_runtime.blocks.system import System
from softcr_runtime.blocks.virtual import block_of
from softcr_runtime.blocks.virtual_run import run_system
from softcr_runtime.console.terminal import FAILED, complain, say, signals_call, step
from softcr_runtime.ros.executor.run_record import Outcome, RunRecord
from softcr_tools.running.run_options import PlantOptions, SimulationOptions
from softcr_tools.running.systems import RECORDER, simulation_system

_COMPLAINTS_SHOWN = 5


@dataclass(frozen=True)
class VirtualSystem:
    """A system that runs on virtual time.

    Attributes:
        system: all of its parts are blocks.
        blocks: of all parts, by name.
        roles: controller, estimator, plant, reference: the names of the parts that play them.
        failure: asked after the run what went wrong, in one line; empty for nothing.
        others: cores that programs of the real system take which are none of its parts.
    """

    system: System
    blocks: Mapping[str, BlockBase]
    roles: Mapping[str, str]
    failure: Callable[[], str] = lambda: ""
    others: float = 0.0


VirtualSystemOf = Callable[[Any], VirtualSystem]
"""Makes a system of options."""


def simulated(options: SimulationOptions) -> VirtualSystem:
    """The system of `softcr up simulation`, whose bag the executor writes itself.

    Raises:
        UserError: a block cannot be made.
    """
    system = simulation_system(options, Path())
    parts = tuple(part for part in system.parts if part.runs != RECORDER)
    names = [part.name for part in parts]
    system = dataclasses.replace(system, parts=parts, activation=tuple(names))
    plant, *others = names
    played = zip(("controller", "reference", "estimator"), reversed(others), strict=False)
    blocks = {part.name: block_of(part) for part in parts}
    return VirtualSystem(system, blocks, {**dict(played), "plant": plant})


def run_on_virtual_time(
    system_of: VirtualSystemOf, options: PlantOptions, directory: Path, console: Console
) -> Outcome:
    """Run a system as fast as it computes and write its bag; Ctrl-C ends the run early and well.

    Args:
        system_of: makes the system.
        options: what it is made from, and what is late, stops and is lost in it.
        directory: for bag and system.json.
        console: where the person reads along.

    Raises:
        UserError: an option is without effect, a block cannot be made, the system does not begin,
            or the bag cannot be written.
        KeyboardInterrupt: Ctrl-C twice.
    """
    with step(console, "preparing"):
        made = system_of(options)
    system = late_system(made, options)
    say(console, f"on virtual time; {options.virtual.in_words(made.roles)}")
    names = [part.name for part in system.parts]
    record = RunRecord(directory / "system.json", system.name, options.model_dump(), names)
    wishes = 0

    def wish_to_end(_: int) -> None:
        nonlocal wishes
        wishes += 1
        if wishes > 1:
            raise KeyboardInterrupt

    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[at]}")
    shown = Progress(*columns, TimeRemainingColumn(), console=console)
    with signals_call(wish_to_end), shown as bar:
        task = bar.add_task("running", total=options.duration, at="")

        def progress(now: float) -> bool:
            reached = min(now, options.duration)  # a bench begins when its valves are enabled
            bar.update(task, completed=reached, at=f"{reached:.1f} of {options.duration:.1f} s")
            return not wishes

        executor = run_system(
            system, _nobody, bag=directory / "bag", progress=progress,
            make=lambda part: made.blocks[part.name],
        )  # fmt: skip
        if not wishes:
            bar.update(task, completed=options.duration)
    for line in executor.complaints[:_COMPLAINTS_SHOWN]:
        say(console, line, "yellow")
    if more := executor.complaints[_COMPLAINTS_SHOWN:]:
        say(console, f"and {len(more)} lines more of that kind", "yellow")
    failure = made.failure()
    if failure:
        complain(failure)
    record.error = failure or None
    record.ended_by = "interrupt" if wishes else "failure" if failure else "duration"
    record.exit_code = FAILED if failure else 0
    record.write()
    if record.unwritten:
        complain(record.unwritten)
    return Outcome(record.exit_code, ran=True)


def late_system(made: VirtualSystem, options: PlantOptions) -> System:
    """A system with what is late, stops and is lost in it.

    Raises:
        UserError: an option is without effect in it.
    """
    heard = {each.topic for block in made.blocks.values() for each in block.inputs}
    options.virtual.refuse_without_effect(set(made.roles), heard)
    role_of = {name: role for role, name in made.roles.items()}
    parts = tuple(
        options.virtual.late(part, made.blocks[part.name], role_of.get(part.name, ""), options.seed)
        for part in made.system.parts
    )
    return dataclasses.replace(made.system, parts=parts)


def _nobody(name: str, output: Output) -> None:
    """Hears nothing; the bag has it all."""
