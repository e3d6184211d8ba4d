"""`softcr emulate DEVICE`: the bench's devices in software, on their real protocols."""

import argparse
import gc
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from rich.console import Console

from softcr_models.errors import UserError
from softcr_runtime.console import complain, ended_by_signals, say, step
from softcr_tools.emulate_parser import parser

if TYPE_CHECKING:
    from softcr_hardware.actuator import EmulatedActuator
    from softcr_hardware.faults import FaultKind

_ROD_PERIOD = 1 / 70  # [s]
_LOG_PERIOD = 1.0  # [s] between lines about the rod
_SWITCH_INTERVAL = 1e-3  # [s] a device computes on while another one is due; Python's own: 5 ms

Log = Callable[[dict[str, Any]], None]


class Device(Protocol):
    """What every emulator can do."""

    def inject(self, kind: "FaultKind") -> None:
        """Begin a fault; raises UserError for one that is none."""
        ...

    def run(self, stop: threading.Event) -> None:
        """Play the device until `stop`."""
        ...


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr emulate`; returns the exit code.

    Raises:
        UserError: an option, a file, a port or the interface cannot be used.
    """
    given = parser().parse_args(arguments)
    console = Console(stderr=True)
    with ExitStack() as stack:
        stop = stack.enter_context(ended_by_signals())
        stream = stack.enter_context(given.log.open("w")) if given.log else sys.stdout
        log = _file_log(stream)
        devices, works = _DEVICES[given.device](given, console, log, stop)
        for device in devices.values():
            if given.fault != "ok":
                device.inject(given.fault)
        _in_background(lambda: _listen(devices))
        _run(devices, works, given.realtime_priority, console, stop)
    return 0


def _run(
    devices: Mapping[str, Device],
    works: Sequence[Callable[[], None]],
    priority: int,
    console: Console,
    stop: threading.Event,
) -> None:
    """The first device in this thread, the rest beside it, all of one priority.

    They share Python's lock: one that had to wait for a processor with it would stop the others.
    """
    from softcr_runtime.realtime import schedule_realtime

    # the collector would look through all that has been loaded: 30 ms in which no device answers
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    if problem := schedule_realtime(priority):
        say(console, f"ordinary scheduling: {problem}")
    first, *others = devices.values()
    threads = [threading.Thread(target=device.run, args=(stop,)) for device in others]
    for thread in threads:
        thread.start()
    for work in works:
        _in_background(work)
    named = "a device and a fault, as optitrack off" if others else "a fault, or ok"
    say(console, f"emulating {', '.join(devices)}; type {named}; Ctrl-C ends")
    first.run(stop)
    for thread in threads:
        thread.join()


# --- devices ------------------------------------------------------------------------------------

Made = tuple[dict[str, Device], list[Callable[[], None]]]


def _ethercat(given: argparse.Namespace, console: Console, log: Log, stop: threading.Event) -> Made:
    actuator = _actuator(given, console, given.rod)
    works = [lambda: _log_rod(actuator, log, stop, moves=True)] if given.rod else []
    return {"ethercat": _terminals(given, actuator, log)}, works


def _optitrack(
    given: argparse.Namespace, console: Console, log: Log, stop: threading.Event
) -> Made:
    actuator = _actuator(given, console, True)
    return {"optitrack": _cameras(given, actuator, log)}, []


def _force_torque(
    given: argparse.Namespace, console: Console, log: Log, stop: threading.Event
) -> Made:
    actuator = _actuator(given, console, True)
    actuator.see(time.monotonic())
    return {"force-torque": _sensor(given, actuator, log)}, []


def _bench(given: argparse.Namespace, console: Console, log: Log, stop: threading.Event) -> Made:
    """All of them on one rod, which the cameras' exposures move on."""
    actuator = _actuator(given, console, True)
    actuator.see(time.monotonic())
    devices: dict[str, Device] = {}
    if given.interface:
        devices["ethercat"] = _terminals(given, actuator, log)
    else:
        say(console, "no --interface: no valves, the rod rests")
    devices["optitrack"] = _cameras(given, actuator, log)
    devices["force-torque"] = _sensor(given, actuator, log)
    works = [lambda: _log_rod(actuator, log, stop, moves=False)]
    if given.truth:
        from softcr_tools.emulated_truth import publish_truth

        works.append(lambda: publish_truth(actuator, stop))
    return devices, works


_DEVICES: dict[str, Callable[[argparse.Namespace, Console, Log, threading.Event], Made]] = {
    "ethercat": _ethercat,
    "optitrack": _optitrack,
    "force-torque": _force_torque,
    "bench": _bench,
}


def _terminals(given: argparse.Namespace, actuator: "EmulatedActuator", log: Log) -> Device:
    from softcr_hardware.ethercat.emulator import EtherCatEmulator
    from softcr_hardware.ethercat.terminals import load_station

    return EtherCatEmulator(given.interface, load_station(_station(given)), actuator, log)


def _cameras(given: argparse.Namespace, actuator: "EmulatedActuator", log: Log) -> Device:
    from softcr_hardware.optitrack.calibration import load_calibration
    from softcr_hardware.optitrack.emulator import MotiveEmulator, MotiveServer
    from softcr_hardware.optitrack.protocol import DATA_PORT

    def tip(moment: float) -> Any:
        return actuator.see(moment).tip_pose

    major, minor = map(int, given.natnet.split("."))
    server = MotiveServer(
        tip,
        load_calibration(given.calibration),
        given.frame_rate,
        (major, minor),
        given.group or "",
        start=time.monotonic(),
    )
    group = (given.group, DATA_PORT) if given.group else None
    return MotiveEmulator(server, given.host, given.command_port, group, log)


def _sensor(given: argparse.Namespace, actuator: "EmulatedActuator", log: Log) -> Device:
    from softcr_hardware.force_torque.emulator import NetFtBox, NetFtEmulator

    def wrench(_: float) -> Any:
        assert actuator.seen is not None  # seen before the box was made
        return actuator.seen.wrench

    box = NetFtBox(wrench, given.record_rate, start=time.monotonic())
    return NetFtEmulator(box, given.host, given.rdt_port, given.http_port, log)


def _actuator(given: argparse.Namespace, console: Console, with_rod: bool) -> "EmulatedActuator":
    from softcr_hardware.actuator import EmulatedActuator
    from softcr_hardware.ethercat.terminals import load_station

    station = load_station(_station(given))
    if not with_rod:
        return EmulatedActuator(station)
    from softcr_hardware.plant import Mismatch, SensorModel, SimulatedPlant
    from softcr_models.robot import load_robot

    with step(console, "preparing the rod"):
        noise = SensorModel(
            tip_noise=1e-3 * getattr(given, "tip_noise_mm", 0.0), seed=getattr(given, "seed", 0)
        )
        mismatch = Mismatch(
            getattr(given, "bending_compliance_factor", 1.0), getattr(given, "tip_mass_factor", 1.0)
        )
        plant = SimulatedPlant(load_robot(given.robot), mismatch, noise)
        plant.advance(_ROD_PERIOD)  # compiles
    return EmulatedActuator(station, plant)


def _station(given: argparse.Namespace) -> str:
    """What is not told: the robot's name."""
    from softcr_models.robot import load_robot

    return getattr(given, "station", None) or load_robot(given.robot).name


def _log_rod(actuator: "EmulatedActuator", log: Log, stop: threading.Event, moves: bool) -> None:
    """Once a second the rod's tip is logged; `moves` when nobody else moves the rod on."""
    logged = 0.0
    while not stop.wait(_ROD_PERIOD if moves else _LOG_PERIOD):
        now = time.monotonic()
        if moves:
            actuator.see(now)
        if (not moves or now - logged >= _LOG_PERIOD) and (measured := actuator.seen) is not None:
            logged = now
            tip = measured.true_tip_pose[:3, 3].round(5).tolist()
            pressures = measured.true_pressures.round(1).tolist()
            log({"time": now, "event": "rod", "tip_m": tip, "pressures_pa": pressures})


# --- the person ---------------------------------------------------------------------------------


def _listen(devices: Mapping[str, Device]) -> None:
    """Faults by name on standard input, one per line, after the device's when there are several."""
    for line in sys.stdin:
        words = line.split()
        try:
            if words:
                _inject(devices, words)
        except UserError as error:
            complain(str(error))


def _inject(devices: Mapping[str, Device], words: Sequence[str]) -> None:
    *device, kind = words
    if not device and len(devices) == 1:
        device = list(devices)
    if len(device) != 1 or device[0] not in devices:
        raise UserError(f"{' '.join(words)!r}: must be DEVICE FAULT, DEVICE {', '.join(devices)}")
    devices[device[0]].inject(kind)  # type: ignore[arg-type]  # what is none is refused there


def _file_log(stream: TextIO) -> Log:
    """A log of one JSON object per line, written at once, but by another thread: disks are slow."""
    events: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def write() -> None:
        while True:
            stream.write(json.dumps(events.get()) + "\n")
            stream.flush()

    _in_background(write)
    return events.put


def _in_background(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()
