"""`softcr emulate DEVICE`: the bench's devices in software, on their real protocols."""

import argparse
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from softcr_models.errors import UserError
from softcr_tools.console import complain, say, step

if TYPE_CHECKING:
    from softcr_hardware.actuator import EmulatedActuator
    from softcr_hardware.ethercat.terminals import Station

_ROD_PERIOD = 1 / 70  # [s]


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr emulate`; returns the exit code.

    Raises:
        UserError: an option, a file or the interface cannot be used.
    """
    given = _parser().parse_args(arguments)
    return _ethercat(given)


def _ethercat(given: argparse.Namespace) -> int:
    from softcr_hardware.ethercat.emulator import EtherCatEmulator, file_log
    from softcr_hardware.ethercat.terminals import load_station
    from softcr_models.robot import load_robot
    from softcr_models.runtime.realtime import schedule_realtime

    console = Console(stderr=True)
    robot = load_robot(given.robot)
    station = load_station(given.station or robot.name)
    with ExitStack() as stack:
        stop = stack.enter_context(_ended_by_signals())
        stream = stack.enter_context(given.log.open("w")) if given.log else sys.stdout
        actuator = _actuator(station, given.robot, given.rod, console)
        log = file_log(stream)
        emulator = EtherCatEmulator(given.interface, station, actuator, log)
        if given.fault != "ok":
            emulator.inject(given.fault)
        if given.rod:
            _in_background(lambda: _move_rod(actuator, log, stop))
        _in_background(lambda: _listen(emulator.inject))
        if problem := schedule_realtime(given.realtime_priority):
            say(console, f"ordinary scheduling: {problem}")
        names = ", ".join(terminal.name for terminal in station.terminals)
        say(console, f"emulating {names} on {given.interface}; type a fault, or ok; Ctrl-C ends")
        emulator.run(stop)
    return 0


def _actuator(
    station: "Station", robot_name: str, with_rod: bool, console: Console
) -> "EmulatedActuator":
    from softcr_hardware.actuator import EmulatedActuator

    if not with_rod:
        return EmulatedActuator(station)
    from softcr_hardware.plant import Mismatch, SensorModel, SimulatedPlant
    from softcr_models.robot import load_robot

    with step(console, "preparing the rod"):
        plant = SimulatedPlant(load_robot(robot_name), Mismatch(), SensorModel())
        plant.impose(plant.pressures, _ROD_PERIOD)  # compiles
    return EmulatedActuator(station, plant)


def _move_rod(
    actuator: "EmulatedActuator", log: Callable[[dict[str, Any]], None], stop: threading.Event
) -> None:
    """The rod in step with the clock; once a second its tip is logged."""
    logged = 0.0
    while not stop.wait(_ROD_PERIOD):
        now = time.monotonic()
        actuator.move_rod(now)
        if now - logged >= 1.0 and (measured := actuator.measure(time.time_ns())) is not None:
            logged = now
            tip = measured.true_tip_pose[:3, 3].round(5).tolist()
            pressures = measured.true_pressures.round(1).tolist()
            log({"time": now, "event": "rod", "tip_m": tip, "pressures_pa": pressures})


def _listen(inject: Callable[..., None]) -> None:
    """Faults by name on standard input, one per line."""
    for line in sys.stdin:
        try:
            if line.strip():
                inject(line.strip())
        except UserError as error:
            complain(str(error))


def _in_background(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()


@contextmanager
def _ended_by_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set."""
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stop.set()) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            with contextlib.suppress(TypeError):  # a handler not set by Python
                signal.signal(number, handler)


def _parser() -> argparse.ArgumentParser:
    from softcr_hardware.faults import FAULT_KINDS

    parser = argparse.ArgumentParser(
        prog="softcr emulate",
        description="The bench's devices in software, on their real protocols.",
    )
    devices = parser.add_subparsers(dest="device", required=True, metavar="DEVICE")
    ethercat = devices.add_parser(
        "ethercat",
        help="the valves' terminals on a network interface",
        description="Answers an EtherCAT master as the terminals of a station file would; valves "
        "and chambers behind them are simulated, and so is the rod with --rod. Faults are typed "
        f"on standard input, one per line: {', '.join(FAULT_KINDS)}.",
        epilog="Two ends of a cable on one machine (root): ip link add bench0 type veth peer name "
        "bench1 && ip link set bench0 up && ip link set bench1 up; then emulate on one end.",
    )
    ethercat.add_argument("--interface", required=True, help="network interface, as bench1")
    ethercat.add_argument("--robot", default="licher2025", help="name or file (default licher2025)")
    ethercat.add_argument("--station", help="name or file (default: the robot's name)")
    ethercat.add_argument("--rod", action="store_true", help="simulate and log the rod, too")
    ethercat.add_argument("--fault", choices=FAULT_KINDS, default="ok", help="from the beginning")
    ethercat.add_argument(
        "--log", type=Path, help="file for events, a JSON object per line (default: stdout)"
    )
    ethercat.add_argument(
        "--realtime-priority", type=int, default=0, choices=range(91), metavar="0..90",
        help="SCHED_FIFO; 0 (default) for the ordinary scheduler",
    )  # fmt: skip
    return parser
