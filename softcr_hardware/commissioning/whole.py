"""A whole commissioning: files, bench and operator, all steps, what is written."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from softcr_hardware.commissioning.bench import Bench, Operator
from softcr_hardware.commissioning.findings import Finding
from softcr_hardware.commissioning.lead import Say, lead
from softcr_hardware.commissioning.operators import (
    Answers,
    ListedOperator,
    TerminalOperator,
    load_answers,
    single_keys,
)
from softcr_hardware.commissioning.options import BenchOptions
from softcr_hardware.commissioning.record import Record, load_record, now_words
from softcr_hardware.commissioning.session import Session, Step
from softcr_hardware.commissioning.steps import STEPS
from softcr_hardware.commissioning.virtual_bench import (
    VirtualBench,
    VirtualOperator,
    differences,
)
from softcr_hardware.commissioning.writing import write_files
from softcr_hardware.emulation.bench_mistakes import mistakes_named
from softcr_hardware.ethercat.station_state import StationState
from softcr_hardware.ethercat.terminals import Station, load_station
from softcr_hardware.force_torque.mounting import Mounting, load_mounting
from softcr_hardware.optitrack.calibration import MocapCalibration, load_calibration
from softcr_models.errors import UserError
from softcr_models.files.yaml_files import available, is_path
from softcr_models.robots.robot import Robot, load_robot
from softcr_runtime.console.terminal import FAILED, say, signals_call, step
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_simulation.plant import SimulatedPlant

_FEW = 2


def table(record: Record, steps: Sequence[Step], daily: bool) -> Table:
    """Steps, whether they are good, and what was found."""
    title = "daily check" if daily else "commissioning"
    page = Table(title=f"{title} of {record.robot}, {record.started}", title_justify="left")
    page.add_column("step")
    page.add_column("")
    page.add_column("found", overflow="fold")
    for each in steps:
        done = record.steps.get(each.name)
        if done is None:
            page.add_row(each.title, Text("not done", style="yellow"), "")
            continue
        bad = [f for f in done.findings if daily or f.mend == "hand"]
        mark = Text("good", style="green")
        if done.findings:
            mark = Text("MEND", style="bold red") if bad else Text("in file", style="yellow")
        few = done.lines if len(done.lines) <= _FEW else ()  # the rest was told on the way
        lines = [_words(finding) for finding in done.findings] or list(few)
        page.add_row(each.title, mark, Text("\n".join(lines)))
    return page


def _words(finding: Finding) -> str:
    could = f" (could also be: {finding.could_be})" if finding.could_be else ""
    return f"{finding.words}{could}"


def good(record: Record, steps: Sequence[Step], daily: bool) -> bool:
    """Whether all steps are done and nothing is to be mended: of a daily check nothing at all."""
    for each in steps:
        done = record.steps.get(each.name)
        if done is None or not done.good or (daily and done.findings):
            return False
    return True


RECORD, DAILY = "record.yaml", "daily.yaml"


@dataclass(frozen=True)
class Asked:
    """What the command line asks for beside the bench; see `command.commission`."""

    output: Path
    daily: bool
    begin: str
    yes: bool
    answers: Path | None
    serials: str


def commissioned(options: BenchOptions, asked: Asked) -> int:
    """Do all steps, write the files and tell the verdict; returns the exit code.

    Raises:
        UserError: files or devices that cannot be used.
    """
    console = Console()

    def tell(line: str, style: str = "") -> None:
        say(console, line, style)

    output, daily = asked.output, asked.daily
    robot = load_robot(options.robot)
    files = _files(options, robot, output, daily)
    record = _record(robot, files, output, daily)
    record.serials = asked.serials or record.serials
    with ExitStack() as stack:
        bench = _bench(options, robot, files, console)
        operator = _operator(options, bench, asked.yes, asked.answers, stack, tell)
        stack.enter_context(_interruptible())
        session = Session(bench, operator, robot, record, files.mounting, daily)
        done = _run(session, output, asked.begin, tell)
    chosen = steps_of(daily)
    console.print(table(record, chosen, daily))
    fine = done and good(record, chosen, daily)
    if done and not daily:
        for line in write_files(session, output):
            tell(line)
    if not isinstance(bench, VirtualBench):
        for station in {Path(files.names["station"]).stem, "station"}:
            if fine:
                _free_latch(station, tell)
            elif done and daily:
                StationState(station).hold(f"the daily check failed: {output / DAILY}")
    if isinstance(bench, VirtualBench) and options.mistakes:
        tell(f"planted: {bench.mistakes.model_dump(mode='json', exclude_defaults=True)}")
    tell(_verdict(fine, done, daily), "bold green" if fine else "bold red")
    return 0 if fine else FAILED


def _free_latch(station: str | Path, tell: Say) -> None:
    """A check has passed, which a held latch of the valves of a station waits for."""
    kept = StationState(station)
    if cause := kept.held():
        kept.forget_latch()
        tell(f"{kept.latch_file}: removed ({cause}); valves/reset forgets it now", "")


def steps_of(daily: bool) -> tuple[Step, ...]:
    """Those of a commissioning, or of the daily check."""
    return tuple(step for step in STEPS if step.daily or not daily)


@dataclass(frozen=True)
class _Files:
    """What is commissioned, by name or path, and read."""

    names: dict[str, str]
    station: Station
    calibration: MocapCalibration
    mounting: Mounting


def _files(options: BenchOptions, robot: Robot, output: Path, daily: bool) -> _Files:
    """Those that are named; else the written ones for a daily check, or the robot's.

    Raises:
        UserError: one is not there, or not as it must be.
    """
    names = {}
    for kind in ("station", "calibration", "mounting"):
        written = output / f"{kind}.yaml"
        if daily and not written.exists() and kind != "mounting":
            raise UserError(f"daily check: {written} is not there; commission first")
        other = str(written) if daily and written.exists() else robot.name
        names[kind] = getattr(options, kind) or other
    known = (
        options.mounting or is_path(names["mounting"]) or robot.name in available("force_torque")
    )
    mounting = load_mounting(names["mounting"]) if known else Mounting()
    station = load_station(names["station"], robot.chamber_names)
    _ = station.flow_valve  # pressure regulators have no flow, dead band and pulses to measure
    return _Files(
        names,
        station,
        load_calibration(names["calibration"]),
        mounting,
    )


def _record(robot: Robot, files: _Files, output: Path, daily: bool) -> Record:
    """The one that is there, or a new one.

    Raises:
        UserError: the one that is there is of other files.
    """
    there = None if daily else load_record(output / RECORD)
    if there is None:
        begun = now_words()
        fields = {"robot": robot.name, "softcr": version("softcr"), "started": begun}
        return Record.model_validate(fields | files.names)
    if (there.station, there.calibration) != (files.names["station"], files.names["calibration"]):
        raise UserError(
            f"{output / RECORD}: is of station {there.station} and calibration "
            f"{there.calibration}; for others choose another --output"
        )
    return there


def _bench(options: BenchOptions, robot: Robot, files: _Files, console: Console) -> Bench:
    """Not open yet.

    Raises:
        UserError: an option that does not fit.
    """
    if options.virtual:
        with step(console, "preparing the virtual bench"):
            return _virtual(options, robot, files)
    if options.mistakes:
        raise UserError("option mistakes: only of a virtual bench; --virtual")
    from softcr_hardware.commissioning.real_bench import RealBench
    from softcr_hardware.optitrack.client import Address

    cameras = box = None
    if options.optitrack:
        port = options.optitrack_port
        cameras = Address(options.optitrack, options.local, command_port=port)
    if options.force_torque:
        ports = options.force_torque_port, options.force_torque_http_port
        box = options.force_torque, *ports
    return RealBench(
        files.station, files.calibration, options.interface, cameras, options.body, box
    )


def _virtual(options: BenchOptions, robot: Robot, files: _Files) -> VirtualBench:
    """With mistakes for practice, its true files those of the robot's name."""
    names = robot.chamber_names
    mistakes = mistakes_named(options.mistakes, names)
    true_station = load_station(robot.name, names)
    errors, offsets = differences(options.seed, names)
    mistakes = mistakes.model_copy(update={"sensor_offsets": offsets | mistakes.sensor_offsets})
    of_plant = PlantErrors.noiseless(
        bending_factor=1.05, tip_mass_factor=1.03, tip_noise=1e-4, force_noise=0.02,
        moment_noise=5e-4,
    )  # fmt: skip
    plant = SimulatedPlant(robot, of_plant, options.seed)
    truth = mistakes.calibration(load_calibration(robot.name))
    return VirtualBench(
        true_station, truth, plant, mistakes, errors, options.seed, files.station, files.calibration
    )


def _operator(
    options: BenchOptions,
    bench: Bench,
    yes: bool,
    answers: Path | None,
    stack: ExitStack,
    tell: Say,
) -> Operator:
    """Who answers.

    Raises:
        UserError: nobody can.
    """
    names = tuple(chamber.name for chamber in bench.station.chambers)
    listed = load_answers(answers) if answers is not None else None
    if isinstance(bench, VirtualBench):
        refuse = listed.refuse if listed is not None else ()
        return VirtualOperator(bench, refuse, lambda line: tell(f"  {line}", "dim"))
    if yes or listed is not None:
        if options.deadman != "none":
            raise UserError("--yes and --answers: nobody holds a switch then; --deadman none")
        return ListedOperator(listed or Answers(), names, lambda line: tell(f"  {line}", ""))
    if not sys.stdin.isatty():
        raise UserError("commissioning asks a person: its input must be a terminal, or --answers")
    stack.enter_context(single_keys(sys.stdin.fileno()))
    return TerminalOperator(lambda line: tell(f"  {line}", "cyan"), options.deadman != "none")


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP end the run as an exception: all chambers exhaust on the way."""

    def end(_: int) -> None:
        raise KeyboardInterrupt

    with signals_call(end):
        yield


def _run(session: Session, output: Path, begin: str, tell: Say) -> bool:
    """All steps that are to be done; whether they were."""
    tell("the air must be shut off now: its hand valve closed, the hoses vented", "bold")
    session.model.bent(0, 1.0)  # compiles, before the bus waits for nobody
    session.bench.open()
    record = output / (DAILY if session.daily else RECORD)
    return lead(session, steps_of(session.daily), begin, record, tell)


def _verdict(fine: bool, done: bool, daily: bool) -> str:
    if fine:
        return "the bench is as its files say" if daily else "the bench is commissioned"
    if not done:
        return "not finished: the same command continues from here"
    return "correct what is marked, then run the same command again"
