"""The facts of this machine, as the checks want them. Reads, asks and tries; changes nothing."""

import ctypes
import http.client
import importlib.metadata
import importlib.util
import os
import resource
import shutil
import socket
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from softcr_models.errors import UserError
from softcr_tools.doctor.machine import HIGHEST_PRIORITY, ClockFacts, RealtimeFacts, SpaceFacts
from softcr_tools.doctor.network import DdsFacts, DeviceFacts, InterfaceFacts, TerminalFacts
from softcr_tools.doctor.software import CacheFacts, CalibrationFacts, PackageFacts

ANSWER_TIME = 1.0
"""How long a device is given to answer [s]."""

_WATCHED = 0.1  # how long both clocks are watched [s]
_TIME_ERROR = 5  # of adjtimex: nobody keeps the clock (linux/timex.h)
_ASSUMED = "[D]"  # mark of values in configuration files that nobody measured
_TIMEX_BYTES = 1024  # more than struct timex has
_ROS_MODULES = (
    *("rclpy", "builtin_interfaces", "diagnostic_msgs", "geometry_msgs", "lifecycle_msgs"),
    *("nav_msgs", "rosgraph_msgs", "sensor_msgs", "std_msgs", "std_srvs", "visualization_msgs"),
)


# --- adapters, ports, devices -------------------------------------------------------------------


def interface_facts(name: str) -> InterfaceFacts:
    """Of a network adapter."""
    there = tuple(found for _, found in socket.if_nameindex())
    if name not in there:
        return InterfaceFacts(name, there, raw_error=_raw_error(None))
    place = Path("/sys/class/net") / name
    return InterfaceFacts(
        name,
        there,
        wireless=(place / "wireless").exists(),
        up=bool(int(_text(place / "flags") or "0", 16) & 1),  # IFF_UP
        carrier=_text(place / "carrier") == "1",
        raw_error=_raw_error(name),
    )


def terminal_facts(interface: str, station: str) -> TerminalFacts:
    """Of the terminals on an adapter, unless they have a master: he would find foreign frames."""
    from softcr_hardware.ethercat.interfaces import own_interface
    from softcr_hardware.ethercat.roll_call import count_terminals
    from softcr_hardware.ethercat.terminals import load_station

    expected: tuple[str, ...] = ()
    with suppress(UserError):  # told of beside its file
        expected = tuple(terminal.name for terminal in load_station(station).terminals)
    try:
        with own_interface(interface):
            return TerminalFacts(expected, count_terminals(interface))
    except UserError as error:
        return TerminalFacts(expected, why_not=str(error), in_use=True)
    except OSError as error:
        return TerminalFacts(expected, why_not=error.strerror or str(error))


def port_error(kind: int, address: str, port: int) -> str:
    """Why a port cannot be had; empty if it can.

    Args:
        kind: socket.SOCK_STREAM or SOCK_DGRAM.
        address: to listen on.
        port: its number.
    """
    try:
        with socket.socket(socket.AF_INET, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def optitrack_facts(address: str, port: int | None = None) -> DeviceFacts:
    """Of Motive: asks it who it is."""
    name, option = "OptiTrack server", "--optitrack"
    if not address:
        return DeviceFacts(name, option)
    try:
        from softcr_hardware.optitrack.protocol import (
            COMMAND_PORT,
            CONNECT,
            ProtocolError,
            ServerInfo,
            read,
            request,
        )

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.settimeout(ANSWER_TIME)
            asking.connect((address, COMMAND_PORT if port is None else port))
            asking.send(request(CONNECT))
            try:
                server = read(asking.recv(65536), None)
            except ProtocolError as error:
                return DeviceFacts(name, option, address, error=f"answers nonsense: {error}")
    except (OSError, ImportError) as error:
        return DeviceFacts(name, option, address, error=_why(error))
    if not isinstance(server, ServerInfo):
        return DeviceFacts(name, option, address, error="answers, but not who it is")
    version = ".".join(map(str, server.version))
    return DeviceFacts(name, option, address, f"{server.name}, NatNet {version}")


def force_torque_facts(address: str, port: int | None = None) -> DeviceFacts:
    """Of the Net F/T box: asks for its configuration, which it serves as a page."""
    name, option = "force-torque sensor", "--force-torque"
    if not address:
        return DeviceFacts(name, option)
    url = f"http://{address}{'' if port is None else f':{port}'}/netftapi2.xml"
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_TIME) as answer:
            page = answer.read(1 << 16)
    except (OSError, ValueError, http.client.HTTPException) as error:
        return DeviceFacts(name, option, address, error=_why(error))
    if b"<cfgcpf>" not in page:  # counts per force: without it counts are not newtons
        return DeviceFacts(name, option, address, error="serves no calibration: not a Net F/T?")
    return DeviceFacts(name, option, address, "serves its calibration")


def dds_facts() -> DdsFacts:
    """Of the environment of ROS 2."""
    low, high = (_text(Path("/proc/sys/net/ipv4/ip_local_port_range")) or "32768 60999").split()
    return DdsFacts(
        os.environ.get("ROS_DOMAIN_ID"),
        os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE"),
        os.environ.get("ROS_LOCALHOST_ONLY"),
        (int(low), int(high)),
    )


def _raw_error(interface: str | None) -> str:
    from softcr_hardware.ethercat.roll_call import ETHERCAT

    try:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERCAT)) as probe:
            if interface is not None:
                probe.bind((interface, ETHERCAT))
    except OSError as error:
        return error.strerror or str(error)
    return ""


# --- the machine --------------------------------------------------------------------------------


def clock_facts() -> ClockFacts:
    """Of the clocks, watched for a moment."""
    monotonic, system = time.monotonic(), time.time()
    time.sleep(_WATCHED)
    monotonic_passed, system_passed = time.monotonic() - monotonic, time.time() - system
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    return ClockFacts(
        monotonic_passed, system_passed, time.gmtime().tm_year, _synchronised(), _text(source)
    )


def realtime_facts() -> RealtimeFacts:
    """Of what the kernel allows; tries it in a thread that ends at once."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    unlimited = soft == resource.RLIM_INFINITY or os.geteuid() == 0
    return RealtimeFacts(
        priority_error=_priority_error(),
        locked_memory=None if unlimited else soft,
        preempt_rt=_text(Path("/sys/kernel/realtime")) == "1" or "PREEMPT_RT" in os.uname().version,
        kernel=os.uname().release,
        governor=_text(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        cores=len(os.sched_getaffinity(0)),
    )


def space_facts(directory: Path) -> SpaceFacts:
    """Of the disk that holds a directory, which need not be there yet, and of shared memory."""
    there = _existing(directory)
    shared = Path("/dev/shm")
    return SpaceFacts(
        directory=str(directory),
        free=shutil.disk_usage(there).free,
        writable=os.access(there, os.W_OK),
        segments=sum(1 for _ in shared.glob("*fastrtps*")) if shared.is_dir() else 0,
        shared_free=shutil.disk_usage(shared).free if shared.is_dir() else 0,
    )


def _synchronised() -> bool | None:
    """What the kernel says of its clock; asks only, so everybody may."""
    answer = -1
    with suppress(AttributeError, OSError):
        answer = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    return None if answer < 0 else answer != _TIME_ERROR


def _priority_error() -> str:
    said: list[str] = []

    def attempt() -> None:
        try:  # 0 is the calling thread
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(HIGHEST_PRIORITY))
        except OSError as error:
            said.append(error.strerror or str(error))

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return said[0] if said else ""


# --- software and files -------------------------------------------------------------------------


def package_facts() -> PackageFacts:
    """Of what is installed beside softcr, by its own metadata."""
    needed: list[Requirement] = []
    extras: dict[str, list[Requirement]] = {}
    declared = importlib.metadata.metadata("softcr").get_all("Provides-Extra") or []
    for text in importlib.metadata.requires("softcr") or []:
        requirement = Requirement(text)
        if requirement.name.startswith("ros-"):
            continue  # wheels, or packages of a workspace: see ros_missing
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            needed.append(requirement)
        for extra in declared:
            if requirement.marker is not None and requirement.marker.evaluate({"extra": extra}):
                extras.setdefault(extra, []).append(requirement)
    return PackageFacts(
        missing=_missing(needed),
        ros_missing=tuple(name for name in _ROS_MODULES if importlib.util.find_spec(name) is None),
        extra_missing={extra: _missing(extras.get(extra, [])) for extra in declared},
    )


def cache_facts() -> CacheFacts:
    """Of the compiled kernels."""
    from softcr_models.rod.compilation import cache_directory
    from softcr_models.warm_up import is_warm

    directory = cache_directory()
    return CacheFacts(is_warm(), str(directory), os.access(_existing(directory), os.W_OK))


def robot_facts(robot: str) -> CalibrationFacts:
    """Of a robot file."""
    from softcr_models.robot import load_robot

    facts = _file_facts("robot", robot, "robots", lambda: load_robot(robot), "")
    return replace(facts, assumed=False)  # there the mark stands for data sheets


def station_facts(station: str, robot: str) -> CalibrationFacts:
    """Of the valves' station file."""
    from softcr_hardware.ethercat.terminals import load_station
    from softcr_models.robot import load_robot

    how = (
        "measure them; zeros with the chambers vented: "
        "ros2 service call /valves/calibrate_zero std_srvs/srv/Trigger"
    )

    def load() -> object:
        return load_station(station, load_robot(robot).chamber_names)

    return _file_facts("valve station", station, "ethercat", load, how)


def mocap_facts(calibration: str) -> CalibrationFacts:
    """Of the mocap-to-base file."""

    def load() -> object:
        from softcr_hardware.optitrack.calibration import load_calibration

        return load_calibration(calibration)

    how = (
        "with the rod vented: ros2 service call /optitrack/calibrate_base std_srvs/srv/Trigger, "
        "into a file of your own"
    )
    return _file_facts("cameras to base", calibration, "optitrack", load, how)


def _file_facts(
    what: str, name: str, folder: str, load: Callable[[], object], how: str
) -> CalibrationFacts:
    """Of a file in a folder of config/, or at a path; `load` raises what is wrong with it."""
    from softcr_models.config import config_directory

    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        path = config_directory() / folder / f"{name}.yaml"
    try:
        load()
    except (UserError, ImportError) as error:
        return CalibrationFacts(what, str(path), str(error), False, how)
    return CalibrationFacts(what, str(path), "", _ASSUMED in path.read_text(), how)


def _missing(requirements: list[Requirement]) -> tuple[str, ...]:
    return tuple(str(needed).split(";")[0] for needed in requirements if not _is_there(needed))


def _is_there(needed: Requirement) -> bool:
    try:
        installed = importlib.metadata.version(needed.name)
        return needed.specifier.contains(installed, prereleases=True)
    except (importlib.metadata.PackageNotFoundError, InvalidRequirement):
        return False


# --- inside -------------------------------------------------------------------------------------


def _existing(path: Path) -> Path:
    """The path or the nearest directory above it that is there."""
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


def _text(path: Path) -> str:
    """Content of a small file of the kernel; empty where there is none."""
    try:
        return path.read_text().strip()
    except OSError:  # carrier of an adapter that is down, too
        return ""


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError) or "timed out" in str(error):
        return f"no answer within {ANSWER_TIME:g} s"
    reason = getattr(error, "reason", error)
    return str(getattr(reason, "strerror", None) or reason)
