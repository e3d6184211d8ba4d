"""Which checks belong to which system, in the order a person would mend things."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from softcr_tools.doctor import gather
from softcr_tools.doctor.finding import FAIL, WARN, Finding
from softcr_tools.doctor.machine import (
    check_clock_kept,
    check_clock_rate,
    check_clock_source,
    check_disk,
    check_kernel,
    check_locked_memory,
    check_processor,
    check_realtime_priority,
    check_shared_memory,
)
from softcr_tools.doctor.network import (
    LARGEST_DOMAIN,
    PortFacts,
    check_device,
    check_discovery_range,
    check_domain,
    check_interface,
    check_port,
    check_raw_frames,
    check_terminals,
)
from softcr_tools.doctor.software import (
    check_cache,
    check_calibration,
    check_extra,
    check_packages,
    check_ros,
)
from softcr_tools.viewer.command import PORT

INTERFACE = "eth1"
"""As the valves node has it by default."""

_DISCOVERY_PORT = 7400  # of DDS in domain 0; 250 further for each domain


class Patient(BaseModel):
    """The files, addresses and places of a system."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    robot: str = Field("licher2025", description="name or file")
    station: str = Field("", description="of the valves, name or file; empty: the robot's name")
    calibration: str = Field("", description="of the cameras, likewise")
    interface: str = Field(INTERFACE, description="network adapter of the EtherCAT terminals")
    optitrack: str = Field("", description="address of Motive's machine, to ask it")
    force_torque: str = Field(
        "", description="address of the Net F/T box, as HOST or HOST:PORT, to ask it"
    )
    view_port: int = Field(PORT, ge=1, le=65535, description="of the live view")
    results: Path = Field(Path("results"), description="directory where runs are recorded to")


def examine(patient: Patient, hardware: bool) -> Iterator[Finding]:
    """Every check, of the bench too if it is `hardware`; one that fails to run is a finding."""
    for subject, look in _looks(patient, hardware):
        try:
            yield from look()
        except Exception as error:
            yield Finding(
                subject, FAIL, f"cannot be checked: {type(error).__name__}: {error}",
                "see the message; if it is a mistake of softcr's, tell its authors",
            )  # fmt: skip


def _looks(patient: Patient, hardware: bool) -> list[tuple[str, Callable[[], list[Finding]]]]:
    looks: list[tuple[str, Callable[[], list[Finding]]]] = [
        ("packages", lambda: _packages(hardware)),
        ("compiled kernels", lambda: [check_cache(gather.cache_facts())]),
        ("robot", lambda: [check_calibration(gather.robot_facts(patient.robot))]),
        ("space", lambda: _each(gather.space_facts(patient.results), _SPACE)),
        ("clocks", lambda: _each(gather.clock_facts(), _CLOCKS)),
        ("real time", lambda: _each(gather.realtime_facts(), _REAL_TIME)),
        ("discovery", _discovery),
        ("ports", lambda: [check_port(_view_port(patient.view_port))]),
    ]
    if hardware:
        force_torque = gather.force_torque_facts
        looks += [
            ("EtherCAT", lambda: _ethercat(patient)),
            ("OptiTrack", lambda: _optitrack(patient)),
            ("force and torque", lambda: [check_device(force_torque(patient.force_torque))]),
        ]
    return looks


_SPACE = (check_disk, check_shared_memory)
_CLOCKS = (check_clock_rate, check_clock_kept, check_clock_source)
_REAL_TIME = (check_realtime_priority, check_locked_memory, check_kernel, check_processor)


def _each(facts: Any, checks: tuple[Callable[[Any], Finding], ...]) -> list[Finding]:
    return [check(facts) for check in checks]


def _packages(hardware: bool) -> list[Finding]:
    facts = gather.package_facts()
    found = [check_packages(facts), check_ros(facts)]
    if hardware:
        found.append(check_extra(facts, "ethercat", "the valves", FAIL))
    return [*found, check_extra(facts, "view", "softcr view", WARN)]


def _discovery() -> list[Finding]:
    facts = gather.dds_facts()
    found = [check_domain(facts), check_discovery_range(facts)]
    text = facts.domain or ""
    domain = int(text) if text.isdecimal() else 0
    if domain <= LARGEST_DOMAIN:
        found.append(check_port(_discovery_port(_DISCOVERY_PORT + 250 * domain)))
    return found


def _ethercat(patient: Patient) -> list[Finding]:
    facts = gather.interface_facts(patient.interface)
    station = patient.station or patient.robot
    terminals = gather.terminal_facts(patient.interface, station)
    return [
        check_interface(facts),
        check_raw_frames(facts),
        check_terminals(terminals),
        check_calibration(gather.station_facts(station, patient.robot)),
    ]


def _optitrack(patient: Patient) -> list[Finding]:
    return [
        check_device(gather.optitrack_facts(patient.optitrack)),
        check_port(_stream_port()),
        check_calibration(gather.mocap_facts(patient.calibration or patient.robot)),
    ]


# --- ports: who needs them, and what to do when somebody else has them ----------------------------


def _view_port(port: int) -> PortFacts:
    error = gather.port_error(socket.SOCK_STREAM, "127.0.0.1", port)
    mend = f"softcr view --port {port + 1}, unless a view runs there already"
    return PortFacts("live view", f"tcp {port}", error, WARN, mend)


def _discovery_port(port: int) -> PortFacts:
    error = gather.port_error(socket.SOCK_DGRAM, "0.0.0.0", port)
    mend = "another ROS_DOMAIN_ID; ss -ulpn shows who has the port"
    return PortFacts("DDS discovery", f"udp {port}", error, FAIL, mend)


def _stream_port() -> PortFacts:
    from softcr_hardware.optitrack.protocol import DATA_PORT

    error = gather.port_error(socket.SOCK_DGRAM, "0.0.0.0", DATA_PORT)
    mend = f"stop who has it (ss -ulpn | grep {DATA_PORT}), or let Motive send unicast"
    return PortFacts("OptiTrack multicast", f"udp {DATA_PORT}", error, WARN, mend)
