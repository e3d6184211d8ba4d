"""`softcr emulate DEVICE`: the bench's devices in software, on their real protocols."""

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, Protocol, TextIO, runtime_checkable

from pydantic import BaseModel, Field
from rich.console import Console

from softcr_hardware.emulation.faults import FAULT_KINDS, FaultKind
from softcr_models.errors import UserError
from softcr_models.files.yaml_files import available, validated
from softcr_runtime.console.terminal import complain, ended_by_signals, say, step
from softcr_runtime.settings.command_line import command, new_app
from softcr_runtime.settings.node_settings import Hertz
from softcr_runtime.wire.namespaces import FramePrefix, Namespace, absolute

if TYPE_CHECKING:
    from softcr_hardware.emulation.actuator import EmulatedActuator
    from softcr_hardware.emulation.bench_mistakes import BenchMistakes
    from softcr_hardware.emulation.chambers import ChamberErrors
    from softcr_simulation.plant import Measurement

_TRUTH = "simulation/truth/tip/pose"
_ROD_PERIOD = 1 / 70  # [s]
_LOG_PERIOD = 1.0  # [s] between lines about the rod
_SWITCH_INTERVAL = 1e-3  # [s] a device computes on while another one is due; Python's own: 5 ms

Log = Callable[[dict[str, Any]], None]
_Typed = Mapping[str, Callable[[Sequence[str]], None]]


class Device(Protocol):
    """What every emulator can do."""

    def inject(self, kind: FaultKind) -> None:
        """Begin a fault; raises UserError for one that is none."""
        ...

    def run(self, stop: threading.Event) -> None:
        """Play the device until `stop`."""
        ...


@runtime_checkable
class WithSettings(Protocol):
    """A device whose settings change while it runs."""

    def set(self, name: str, value: str) -> None:
        """Change a setting; raises UserError for one that is none."""
        ...


# --- what the devices are told ------------------------------------------------------------------


class _Common(BaseModel):
    """What every emulation is told."""

    robot: str = Field(
        "licher2025",
        description="name or file of the robot",
        json_schema_extra={"known": list(available("robots"))},
    )
    log: str = Field("", description="file for events, one JSON object per line; empty: stdout")
    realtime_priority: int = Field(
        0, ge=0, le=90, description="SCHED_FIFO priority; 0: the ordinary scheduler"
    )


class _OneDevice(_Common):
    fault: FaultKind = Field("ok", description="fault from the beginning")


class _Valves(BaseModel):
    station: str = Field(
        "", description="name or file of the valve station; empty: the robot's name"
    )
    terminal_faults: str = Field(
        "",
        description="faults of the terminals, separated by commas: POSITION:INDEX:SUBINDEX=VALUE "
        "for a setting that somebody left (3:0x8000:05=2), =refused or =kept for one that cannot "
        "be written, POSITION:control=VALUE for the output sync manager of the EEPROM "
        "(3:control=0x24), POSITION:lost=COUNT for lost CoE answers, POSITION:no-restore, "
        "POSITION:no-watchdog",
    )


class _Chambers(BaseModel):
    pressure_noise: float = Field(  # as emulated_chambers.SENSOR_NOISE, which loads a compiler
        50.0, ge=0.0, le=1e4, description="standard deviation of the pressure sensors' noise [Pa]"
    )
    fill_gain: float = Field(
        1.0, ge=0.1, le=10.0, description="filling flow, relative to the station file"
    )
    exhaust_gain: float = Field(
        1.0, ge=0.1, le=10.0, description="exhausting flow, relative to the station file"
    )
    dead_band_error: float = Field(
        0.0, ge=-1.0, le=1.0, description="error that is added to the station's dead band [V]"
    )
    valve_hysteresis: float = Field(0.0, ge=0.0, le=1.0, description="hysteresis of the valves [V]")
    valve_lag_error: float = Field(
        0.0,
        ge=-0.1,
        le=0.1,
        description="error that is added to the station's lag of the valves [s]",
    )
    leak: float = Field(0.0, ge=0.0, le=1e3, description="leak of each chamber [1/s]")
    supply_factor: float = Field(
        1.0, ge=0.0, le=10.0, description="supply pressure, relative to the station file"
    )
    supply_droop: float = Field(
        0.0,
        ge=0.0,
        le=0.9,
        description="fraction of the supply pressure that is missing while all valves fill",
    )

    def chamber_errors(self) -> "ChamberErrors":
        """How valves and chambers differ from the station file."""
        from softcr_hardware.emulation.chambers import ChamberErrors

        return ChamberErrors(
            fill_gain=self.fill_gain,
            exhaust_gain=self.exhaust_gain,
            dead_band=self.dead_band_error,
            hysteresis=self.valve_hysteresis,
            lag=self.valve_lag_error,
            leak=self.leak,
            supply=self.supply_factor,
            droop=self.supply_droop,
        )


class _Address(BaseModel):
    host: str = Field("127.0.0.1", description="address of this machine to serve on")


class _Cameras(_Address):
    calibration: str = Field("licher2025", description="name or file of the cameras' calibration")
    command_port: int = Field(1510, ge=0, le=65535, description="UDP port of commands")
    group: str = Field("", description="multicast group to stream to, such as 239.255.42.99")
    frame_rate: Hertz = Field(120.0, ge=1.0, le=1000.0, description="frame rate of the cameras")
    natnet: Literal["3.0", "3.1", "4.0", "4.1", "4.2"] = Field(
        "4.1", description="version of the protocol"
    )
    tip_noise_mm: float = Field(0.05, ge=0.0, description="standard deviation of the tip's noise")
    stamps: Literal["mid-exposure", "received", "none"] = Field(
        "mid-exposure",
        description="stamps that the frames carry; received: like those of USB cameras",
    )
    motive_mode: Literal["live", "recording", "edit"] = Field(
        "live", description="Motive's mode; edit plays a recording"
    )
    force_plate: bool = Field(False, description="add a force plate beside the body")


class _Sensor(_Address):
    rdt_port: int = Field(49152, ge=0, le=65535, description="UDP port of the records")
    http_port: int = Field(
        8080, ge=0, le=65535, description="TCP port of the calibration; 80 needs root"
    )
    record_rate: Hertz = Field(1000.0, ge=1.0, le=7000.0, description="rate of the records")
    calibration_serial: str = Field("FT00000", description="serial of the sensor's calibration")
    tool_transform: str = Field(
        "0;0;0;0;0;0", description="tool transform that is set in the box [mm, degrees]"
    )
    sensor_yaw: float = Field(
        0.0, ge=-360.0, le=360.0, description="rotation of the mounted sensor about z [degrees]"
    )
    product_name: Literal["plain", "latin"] = Field(
        "plain", description="product name of the box; latin is not UTF-8"
    )


class _Terminals(_Chambers, _Valves, _OneDevice):
    rod: bool = Field(False, description="also simulate and log the rod")


class _Motive(_Cameras, _OneDevice):
    pass


class _NetFt(_Sensor, _OneDevice):
    pass


class _Bench(_Sensor, _Cameras, _Chambers, _Valves, _Common):
    errors: str = Field(
        "", description="plant errors of the rod and of what is seen, as NAME=VALUE,NAME=VALUE"
    )
    seed: int = Field(0, ge=0, description="seed of all noise")
    mistakes: str = Field(
        "",
        description="mistakes of wiring and mounting: a YAML file, or a seed that draws six "
        "of them",
    )
    truth: bool = Field(
        False, description="publish the true tip on simulation/truth/tip/pose, for a recorder"
    )
    namespace: Namespace = Field("", description="namespace of the true tip; empty: the root")
    frame_prefix: FramePrefix = Field("", description="prefix of the true tip's frame")


# --- commands -----------------------------------------------------------------------------------

app = new_app(
    "emulate",
    "The bench's devices in software, on their real protocols. Faults are typed on standard input, "
    f"one per line: {', '.join(FAULT_KINDS)}; settings as SETTING VALUE: mode edit.",
)


@app.command
@command
def ethercat(*, interface: str, given: _Terminals) -> int:
    """Emulate the valves' terminals on a network interface.

    The emulation answers an EtherCAT master like the terminals of a station file. The valves and
    chambers behind them are simulated, and so is the rod with --rod. To make both ends of a cable
    on one machine (as root): ip link add bench0 type veth peer name bench1 && ip link set bench0 up
    && ip link set bench1 up; then emulate on one end.

    Args:
        interface: network interface, such as bench1.
    """
    with _playing(given) as play:
        actuator = _actuator(given, play.console, given.rod)
        play.typed["pressure"] = _typed_pressure_faults(actuator, play.log)
        play.devices["ethercat"] = _terminals(given, interface, actuator, play.log)
        if given.rod:
            play.works.append(lambda: _log_rod(actuator, play, moves=True))
        return play.run(given.fault)


@app.command
@command
def optitrack(given: _Motive) -> int:
    """Emulate Motive tracking the tip of the resting rod; it answers a NatNet client."""
    with _playing(given) as play:
        play.devices["optitrack"] = _cameras(given, _actuator(given, play.console), play.log)
        return play.run(given.fault)


@app.command
@command
def force_torque(given: _NetFt) -> int:
    """Emulate an ATI Net F/T box below the resting rod.

    It serves records over UDP and its calibration over HTTP, as a Net F/T does.
    """
    with _playing(given) as play:
        actuator = _actuator(given, play.console)
        actuator.see(time.monotonic())
        play.devices["force-torque"] = _sensor(given, actuator, play.log)
        return play.run(given.fault)


@app.command
@command
def bench(*, interface: str = "", given: _Bench) -> int:
    """Emulate all devices on one simulated actuator.

    Cameras and force-torque sensor see the effect of the valves. Type faults as DEVICE FAULT, such
    as optitrack off; those of a pressure sensor, its chamber or its valve as pressure CHAMBER
    FAULT, such as pressure 2 stuck, pressure 1 offset -1 kPa/s, pressure ok. Each exposure of the
    cameras advances the simulation of the rod.

    Args:
        interface: network interface of the valves, see `softcr emulate ethercat --help`;
            without it the rod rests.
    """
    with _playing(given) as play:
        actuator = _actuator(given, play.console)
        actuator.see(time.monotonic())
        play.typed["pressure"] = _typed_pressure_faults(actuator, play.log)
        if interface:
            play.devices["ethercat"] = _terminals(given, interface, actuator, play.log)
            play.devices["air"] = _Air(actuator)
        else:
            say(play.console, "no --interface: no valves, the rod rests")
        play.devices["optitrack"] = _cameras(given, actuator, play.log)
        play.devices["force-torque"] = _sensor(given, actuator, play.log)
        play.works.append(lambda: _log_rod(actuator, play, moves=False))
        if given.truth:
            play.works.append(lambda: _publish_truth(given, actuator, play.stop))
        return play.run()


# --- playing ------------------------------------------------------------------------------------


@contextmanager
def _playing(given: _Common) -> Iterator["_Play"]:
    """An emulation to be filled with devices and run, until a signal comes."""
    with ExitStack() as stack:
        stop = stack.enter_context(ended_by_signals())
        stream = stack.enter_context(Path(given.log).open("w")) if given.log else sys.stdout
        yield _Play(Console(stderr=True), _file_log(stream), stop, given.realtime_priority)


@dataclass(frozen=True)
class _Play:
    """One emulation; `works` are done beside its devices, each in a thread; `typed` are called with
    what a person types behind their names."""

    console: Console
    log: Log
    stop: threading.Event
    priority: int
    devices: dict[str, Device] = field(default_factory=dict)
    works: list[Callable[[], None]] = field(default_factory=list)
    typed: dict[str, Callable[[Sequence[str]], None]] = field(default_factory=dict)

    def run(self, fault: FaultKind = "ok") -> int:
        """Play until `stop`, perhaps with a fault from the beginning.

        The first device runs in this thread, the rest beside it, all of one priority: they share
        Python's lock, and one that had to wait for a processor with it would stop the others.
        """
        from softcr_runtime.ros.realtime import schedule_realtime

        if fault != "ok":
            for device in self.devices.values():
                device.inject(fault)
        _in_background(lambda: _listen(self.devices, self.typed))
        # the collector would look through all that is loaded: 30 ms in which no device answers
        gc.collect()
        gc.freeze()
        sys.setswitchinterval(_SWITCH_INTERVAL)
        if problem := schedule_realtime(self.priority):
            say(self.console, f"ordinary scheduling: {problem}")
        first, *others = self.devices.values()
        threads = [threading.Thread(target=device.run, args=(self.stop,)) for device in others]
        for thread in threads:
            thread.start()
        for work in self.works:
            _in_background(work)
        named = "a device and a fault, as optitrack off" if others else "a fault, or ok"
        say(self.console, f"emulating {', '.join(self.devices)}; type {named}; Ctrl-C ends")
        first.run(self.stop)
        for thread in threads:
            thread.join()
        return 0


@dataclass(frozen=True)
class _Air:
    """The hand valve of the air, typed as `air off` and `air ok`."""

    actuator: "EmulatedActuator"

    def inject(self, kind: FaultKind) -> None:
        """Shut or open."""
        if kind not in ("off", "ok"):
            raise UserError(f"air {kind}: must be off or ok")
        self.actuator.chambers["supply"] = float(kind == "ok")

    def run(self, stop: threading.Event) -> None:
        """Wait until the emulator ends; this device has no thread."""
        stop.wait()


# --- devices ------------------------------------------------------------------------------------


def _terminals(given: _Valves, interface: str, actuator: "EmulatedActuator", log: Log) -> Device:
    from softcr_hardware.ethercat.emulator import EtherCatEmulator
    from softcr_hardware.ethercat.terminal_faults import parse_terminal_faults
    from softcr_hardware.ethercat.terminals import load_station

    station = load_station(_station(given))
    faults = parse_terminal_faults(given.terminal_faults, station)
    return EtherCatEmulator(interface, station, actuator, log, faults)


def _cameras(given: _Cameras, actuator: "EmulatedActuator", log: Log) -> Device:
    from softcr_hardware.optitrack.calibration import load_calibration
    from softcr_hardware.optitrack.emulator import MotiveEmulator, MotiveServer
    from softcr_hardware.optitrack.protocol import DATA_PORT

    calibration, mistakes = load_calibration(given.calibration), _mistakes(given)
    truth = mistakes.calibration(calibration)

    def tip(moment: float) -> Any:
        seen = actuator.see(moment).tip_pose
        assert seen is not None  # this plant loses none
        return calibration.tip(mistakes.streamed(truth.body(seen)))

    major, minor = map(int, given.natnet.split("."))
    server = MotiveServer(
        tip,
        calibration,
        given.frame_rate,
        (major, minor),
        given.group,
        start=time.monotonic(),
    )
    server.set("stamps", given.stamps)
    server.set("mode", given.motive_mode)
    server.set("force-plate", "yes" if given.force_plate else "no")
    group = (given.group, DATA_PORT) if given.group else None
    return MotiveEmulator(server, given.host, given.command_port, group, log)


def _sensor(given: _Sensor, actuator: "EmulatedActuator", log: Log) -> Device:
    from softcr_hardware.force_torque.emulator import NetFtBox, NetFtEmulator

    mistakes = _mistakes(given)

    def wrench(_: float) -> Any:
        assert actuator.seen is not None  # seen before the box was made
        return mistakes.felt(actuator.seen.wrench)

    box = NetFtBox(wrench, given.record_rate, start=time.monotonic())
    box.set("serial", given.calibration_serial)
    box.set("tool-transform", given.tool_transform)
    box.set("yaw", str(given.sensor_yaw))
    box.set("name", given.product_name)
    return NetFtEmulator(box, given.host, given.rdt_port, given.http_port, log)


def _actuator(given: Any, console: Console, with_rod: bool = True) -> "EmulatedActuator":
    from softcr_hardware.emulation.actuator import EmulatedActuator
    from softcr_hardware.emulation.chambers import SENSOR_NOISE
    from softcr_hardware.ethercat.terminals import load_station

    station = load_station(_station(given))
    errors, pressure_noise = None, SENSOR_NOISE
    if isinstance(given, _Chambers):
        errors = given.chamber_errors()
        pressure_noise = given.pressure_noise
    if not with_rod:
        return EmulatedActuator(station, None, errors, pressure_noise)
    from softcr_models.robots.robot import load_robot
    from softcr_simulation.errors.plant_errors import PlantErrors
    from softcr_simulation.errors.presets import errors_in_text
    from softcr_simulation.plant import SimulatedPlant

    with step(console, "preparing the rod"):
        told = PlantErrors.noiseless(tip_noise=1e-3 * getattr(given, "tip_noise_mm", 0.0)).changed()
        told |= errors_in_text(getattr(given, "errors", ""))
        of_plant = validated(PlantErrors, told, "plant errors")
        plant = SimulatedPlant(load_robot(given.robot), of_plant, getattr(given, "seed", 0))
        plant.advance(_ROD_PERIOD)  # compiles
    from softcr_hardware.emulation.bench_mistakes import MistakenActuator

    return MistakenActuator(station, plant, errors, _mistakes(given), pressure_noise)


def _mistakes(given: Any) -> "BenchMistakes":
    from softcr_hardware.emulation.bench_mistakes import mistakes_named
    from softcr_models.robots.robot import load_robot

    named = getattr(given, "mistakes", "")
    return mistakes_named(named, load_robot(given.robot).chamber_names)


def _station(given: Any) -> str:
    """Where none is told: the robot's name."""
    from softcr_models.robots.robot import load_robot

    return getattr(given, "station", "") or load_robot(given.robot).name


def _log_rod(actuator: "EmulatedActuator", play: _Play, moves: bool) -> None:
    """Once a second the rod's tip is logged; `moves` when nobody else moves the rod on."""
    logged = 0.0
    while not play.stop.wait(_ROD_PERIOD if moves else _LOG_PERIOD):
        now = time.monotonic()
        if moves:
            actuator.see(now)
        if (not moves or now - logged >= _LOG_PERIOD) and (measured := actuator.seen) is not None:
            logged = now
            tip = measured.true_tip_pose[:3, 3].round(5).tolist()
            pressures = measured.true_pressures.round(1).tolist()
            play.log({"time": now, "event": "rod", "tip_m": tip, "pressures_pa": pressures})


def _publish_truth(given: _Bench, actuator: "EmulatedActuator", stop: threading.Event) -> None:
    """Publish the true tip at each exposure of the cameras, for a recorder, until `stop`."""
    import rclpy

    from softcr_runtime.ros.context import ros_context
    from softcr_runtime.wire.messages import pose_to_message
    from softcr_runtime.wire.topics import TOPICS, qos

    with ros_context():
        name, frame = f"softcr_emulated_bench_{os.getpid()}", f"{given.frame_prefix}base"
        node = rclpy.create_node(name, namespace=absolute(given.namespace))
        publisher = node.create_publisher(TOPICS[_TRUTH].message_class(), _TRUTH, qos(_TRUTH))

        def tell(measured: "Measurement") -> None:
            stamp = time.time_ns() - (time.monotonic_ns() - measured.stamp)
            publisher.publish(pose_to_message(measured.true_tip_pose, stamp, frame))

        actuator.on_seen = tell
        stop.wait()
        actuator.on_seen = None
        node.destroy_node()


# --- the person ---------------------------------------------------------------------------------


def _listen(devices: Mapping[str, Device], typed: _Typed) -> None:
    """Faults and settings on standard input, one per line, after the device's name when there are
    several."""
    for line in sys.stdin:
        words = line.split()
        try:
            if words:
                _inject(devices, words, typed)
        except UserError as error:
            complain(str(error))


def _inject(devices: Mapping[str, Device], words: Sequence[str], typed: _Typed) -> None:
    first, *rest = words
    if first in typed:
        typed[first](rest)
        return
    if first not in devices and len(devices) == 1:
        (first,), rest = devices, list(words)
    if first not in devices or len(rest) not in (1, 2):
        must = f"DEVICE FAULT or DEVICE SETTING VALUE, DEVICE {', '.join([*devices, *typed])}"
        raise UserError(f"{' '.join(words)!r}: must be {must}")
    device = devices[first]
    if len(rest) == 1:
        device.inject(rest[0])  # type: ignore[arg-type]  # what is none is refused there
    elif isinstance(device, WithSettings):
        device.set(*rest)
    else:
        raise UserError(f"{' '.join(words)!r}: {first} has no settings")


def _typed_pressure_faults(
    actuator: "EmulatedActuator", log: Log
) -> Callable[[Sequence[str]], None]:
    def begin(words: Sequence[str]) -> None:
        actuator.sensors.type(words)
        log({"time": time.monotonic(), "event": "pressure", "fault": " ".join(words)})

    return begin


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
