"""`softcr commission`: the command."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from pydantic import BaseModel, ConfigDict, Field
from rich.console import Console

from softcr_hardware.bench_mistakes import mistakes_named
from softcr_hardware.commissioning.bench import Bench, Operator
from softcr_hardware.commissioning.virtual_bench import (
    VirtualBench,
    VirtualOperator,
    differences,
)
from softcr_hardware.ethercat.kept_state import KeptState
from softcr_hardware.ethercat.terminals import Station, load_station
from softcr_hardware.force_torque.client import HTTP_PORT, RDT_PORT
from softcr_hardware.force_torque.mounting import Mounting, load_mounting
from softcr_hardware.optitrack.calibration import MocapCalibration, load_calibration
from softcr_hardware.optitrack.protocol import COMMAND_PORT
from softcr_hardware.plant import Mismatch, SensorModel, SimulatedPlant
from softcr_models.errors import UserError
from softcr_models.robot import Robot, load_robot
from softcr_models.yaml_files import available, is_path
from softcr_runtime.command_line import command
from softcr_runtime.console import FAILED, say, signals_call, step
from softcr_tools.commission.lead import Say, lead
from softcr_tools.commission.operators import (
    Answers,
    ListedOperator,
    TerminalOperator,
    load_answers,
    single_keys,
)
from softcr_tools.commission.page import good, table
from softcr_tools.commission.record import Record, load_record, now_words
from softcr_tools.commission.session import Session, Step
from softcr_tools.commission.steps import STEPS
from softcr_tools.commission.writing import write_files

RECORD, DAILY = "record.yaml", "daily.yaml"


class BenchOptions(BaseModel):
    """The bench and its files."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    robot: str = Field("licher2025", description="name or file")
    station: str = Field("", description="of the valves, name or file; empty: the robot's name")
    calibration: str = Field("", description="of the cameras, likewise")
    mounting: str = Field("", description="of the force-torque sensor, likewise")
    interface: str = Field("eth1", min_length=1, description="network interface of the terminals")
    optitrack: str = Field("", description="IP address of Motive's machine; empty: no cameras")
    optitrack_port: int = Field(COMMAND_PORT, ge=1, le=65535, description="its command port")
    local: str = Field("0.0.0.0", min_length=1, description="IP address of our interface to it")
    body: str = Field("tip", min_length=1, description="the tip's rigid body, name or id")
    force_torque: str = Field("", description="IP address of the Net F/T box; empty: none")
    force_torque_port: int = Field(RDT_PORT, ge=1, le=65535, description="of its records (UDP)")
    force_torque_http_port: int = Field(
        HTTP_PORT, ge=1, le=65535, description="of its settings (TCP)"
    )
    deadman: Literal["keyboard", "none"] = Field(
        "keyboard", description="the space bar of this terminal is held while there is air"
    )
    virtual: bool = Field(False, description="a bench on virtual time instead, for practice")
    mistakes: str = Field(
        "", description="of the virtual bench: a YAML file, or a seed for six of them"
    )
    seed: int = Field(0, ge=0, description="of the virtual bench: what the files have not told yet")


@command
def commission(
    options: BenchOptions,
    *,
    output: Path = Path("commissioning"),
    daily: bool = False,
    begin: Annotated[str, Parameter(name="--from")] = "",
    yes: bool = False,
    answers: Path | None = None,
    serials: str = "",
) -> int:
    """Commission a bench: find what is wired or mounted wrong, measure it, write its files.

    Leads through the steps, on the real bench or with --virtual on one in memory. What each step
    found is kept in the output directory: the same command goes on where it ended. The last step
    writes station, calibration and mounting files; files that were there are kept under another
    name. The exit code is 1 while something is to be mended by hand.

    Args:
        output: directory of the record and of the written files.
        daily: check the files of the output directory against the bench in two minutes; nothing is
            written but the record of the day.
        begin: step to begin at: devices, zero, sensors, exhaust, survey, wiring, slope, leak, flow,
            base, force_torque, watchdog or deadman; empty for the first that is not done.
        yes: answer every question with yes, and hold no switch: on a bench where nobody is near.
        answers: YAML file with answers: gauge (kPa by chamber of the output), refuse (questions).
        serials: of the parts, in words, for the record.

    Raises:
        UserError: files or devices that cannot be used.
    """
    console = Console()

    def tell(line: str, style: str = "") -> None:
        say(console, line, style)

    robot = load_robot(options.robot)
    files = _files(options, robot, output, daily)
    record = _record(robot, files, output, daily)
    record.serials = serials or record.serials
    with ExitStack() as stack:
        bench = _bench(options, robot, files, console)
        operator = _operator(options, bench, yes, answers, stack, tell)
        stack.enter_context(_interruptible())
        session = Session(bench, operator, robot, record, files.mounting, daily)
        done = _run(session, output, begin, tell)
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
                KeptState(station).hold(f"the daily check failed: {output / DAILY}")
    if isinstance(bench, VirtualBench) and options.mistakes:
        tell(f"planted: {bench.mistakes.model_dump(mode='json', exclude_defaults=True)}")
    tell(_verdict(fine, done, daily), "bold green" if fine else "bold red")
    return 0 if fine else FAILED


def _free_latch(station: str | Path, tell: Say) -> None:
    """A check has passed, which a held latch of the valves of a station waits for."""
    kept = KeptState(station)
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
    from softcr_hardware.optitrack.client import Address
    from softcr_tools.commission.real_bench import RealBench

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
    noise = SensorModel(tip_noise=1e-4, force_noise=0.02, moment_noise=5e-4, seed=options.seed)
    plant = SimulatedPlant(robot, Mismatch(1.05, 1.03), noise)
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
        return "not finished: the same command goes on where it ended"
    return "mend what is marked, then run the same command again"
