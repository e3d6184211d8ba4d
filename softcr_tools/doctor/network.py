"""Adapters, ports, terminals and what DDS is told: pure checks, and the questions they answer."""

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from softcr_hardware.ethercat.inspection import TerminalFacts, can_inspect, inspect_terminals
from softcr_hardware.ethercat.terminals import load_station
from softcr_models.errors import UserError
from softcr_runtime.ros.context import (
    LOOPBACK_UP,
    discovery_range,
    loopback_error,
    security_error,
    security_is_on,
)
from softcr_runtime.ros.running_systems import running_namespaces
from softcr_runtime.wire.namespaces import absolute
from softcr_tools.doctor.finding import FAIL, WARN, Finding, Level, judged
from softcr_tools.doctor.machine import kernel_text


def terminals(interface: str, station: str) -> list[Finding]:
    """Identity, revision and settings of each terminal, read where pysoem is installed."""
    if not can_inspect():
        return []  # told of among the packages
    try:
        return [
            check_terminal(each) for each in inspect_terminals(interface, load_station(station))
        ]
    except UserError as error:
        mend = "fix adapter, frames and station file first"
        return [Finding("terminals' settings", WARN, f"not read: {error}", mend)]


def check_terminal(facts: TerminalFacts) -> Finding:
    """Whether a terminal is the one of the station file, and its settings as they must be.

    Settings that are not are mended when the valves are brought up: a warning, because whoever has
    changed them will miss them.
    """
    expected = facts.expected
    said = f"{facts.name}, revision 0x{facts.revision:08X}"
    if (control := facts.output_control) is not None:
        watchdog = "on" if control & 0x40 else "off; corrected when the bus is brought up"
        said += f", EEPROM: outputs' control 0x{control:02X} (watchdog {watchdog})"
    if facts.settings:
        said += f", {facts.settings} settings read"
    wanted = expected.vendor, expected.product
    other = (
        f"{facts.name} (vendor 0x{facts.identity[0]:X}, product 0x{facts.identity[1]:08X}), must "
        f"be {expected.name} (vendor 0x{wanted[0]:X}, product 0x{wanted[1]:08X})"
    )
    return judged(f"terminal {facts.position}", said,
        (facts.identity != wanted, FAIL, other, "exchange it, or name another --station"),
        (facts.trouble, FAIL, f"{said}: {facts.trouble}",
         "switch the terminals' 24 V off and on; if it stays, exchange the terminal"),
        (facts.wrong, WARN, f"{said}: {'; '.join(facts.wrong)}",
         "softcr up hardware corrects it; check first whether another program needs it as it is")
    )  # fmt: skip


LARGEST_DOMAIN = 232
"""With a larger ROS_DOMAIN_ID the ports would lie beyond 65535."""

DISCOVERY_RANGES = ("SUBNET", "LOCALHOST", "OFF", "SYSTEM_DEFAULT")

_ANOTHER_DOMAIN = "export ROS_DOMAIN_ID=42  (any from 1 to 101)"
_DOMAIN_PORTS = 7400, 250  # of domain 0, and between two domains (RTPS 2.2, section 9.6.1)


# --- EtherCAT -----------------------------------------------------------------------------------


def ethercat(interface: str, station: str) -> list[Finding]:
    """The adapter of the valves, and the terminals on it."""
    there = tuple(found for _, found in socket.if_nameindex())
    place = Path("/sys/class/net") / interface
    facts = terminal_facts(interface, station)
    each = terminals(interface, station) if facts.get("found") else []
    return [
        check_interface(
            interface,
            there,
            wireless=(place / "wireless").exists(),
            up=bool(int(kernel_text(place / "flags") or "0", 16) & 1),  # IFF_UP
            carrier=kernel_text(place / "carrier") == "1",
        ),
        check_raw_frames(_raw_error(interface if interface in there else None)),
        check_terminals(**facts),
        *each,
    ]


def check_interface(
    name: str, there: tuple[str, ...], wireless: bool, up: bool, carrier: bool
) -> Finding:
    """The EtherCAT adapter among those that are there: wired, switched on, connected."""
    return judged("EtherCAT adapter", f"{name}: up, connected",
        (name not in there, FAIL, f"{name}: not found; there are {', '.join(there)}",
         "name the right one: softcr doctor --interface NAME, and parameter interface of valves"),
        (wireless, FAIL, f"{name}: wireless; EtherCAT needs a cable",
         "name a wired one: softcr doctor --interface NAME, and parameter interface of valves"),
        (not up, FAIL, f"{name}: switched off", f"sudo ip link set {name} up"),
        (not carrier, FAIL, f"{name}: nothing at the other end of the cable",
         "plug the cable into port IN of the EK1100 and switch its 24 V on")
    )  # fmt: skip


def check_raw_frames(error: str) -> Finding:
    """Whether this process may send EtherCAT frames; `error` is why not."""
    return judged("EtherCAT frames", "permitted",
        (error, FAIL, f"refused: {error}",
         "sudo setcap cap_net_raw+ep $(readlink -f .venv/bin/python), or run as root")
    )  # fmt: skip


def terminal_facts(interface: str, station: str) -> dict[str, Any]:
    """What `check_terminals` wants, unless the terminals have a master: he would find foreign
    frames."""
    from softcr_hardware.ethercat.interfaces import own_interface
    from softcr_hardware.ethercat.terminal_count import count_terminals
    from softcr_hardware.ethercat.terminals import load_station

    expected: tuple[str, ...] = ()
    with suppress(UserError):  # told of beside its file
        expected = tuple(terminal.name for terminal in load_station(station).terminals)
    try:
        with own_interface(interface):
            return {"expected": expected, "found": count_terminals(interface)}
    except UserError as error:
        return {"expected": expected, "why_not": str(error), "in_use": True}
    except OSError as error:
        return {"expected": expected, "why_not": error.strerror or str(error)}


def check_terminals(
    expected: tuple[str, ...] = (),
    found: int | None = None,
    why_not: str = "",
    in_use: bool = False,
) -> Finding:
    """Whether as many terminals answer as the station has; which ones they are the valves check.

    Args:
        expected: names of those the station has, in order; empty if it cannot be read.
        found: how many answer; None if they were not asked.
        why_not: why they were not asked.
        in_use: whether the reason is that their master runs.
    """
    count = len(expected)
    return judged("EtherCAT terminals", why_not if in_use else f"{found} answer",
        (why_not and not in_use, WARN, f"not asked: {why_not}",
         "fix adapter and frames first"),
        (found == 0, FAIL, "none answers",
         "plug the cable into port IN of the EK1100 and switch its 24 V on"),
        (found is not None and count and found != count, FAIL,
         f"{found} answer, must be {count}: {', '.join(expected)}",
         f"push number {min(found or 0, count - 1) + 1} onto its neighbour until it "
         "clicks, or name another --station")
    )  # fmt: skip


def _raw_error(interface: str | None) -> str:
    """Why raw frames cannot be sent, on an interface or at all; empty if they can."""
    from softcr_hardware.ethercat.terminal_count import ETHERCAT

    try:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERCAT)) as probe:
            if interface is not None:
                probe.bind((interface, ETHERCAT))
    except OSError as error:
        return error.strerror or str(error)
    return ""


# --- ports: who needs them, and what to do when somebody else has them --------------------------


def port(use: str, address: str, protocol: str, number: int, level: Level, mend: str) -> Finding:
    """A port of "tcp" or "udp"; `level` and `mend` hold where it cannot be had."""
    kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
    return check_port(use, f"{protocol} {number}", port_error(kind, address, number), level, mend)


def check_port(use: str, port: str, error: str, level: Level, mend: str) -> Finding:
    """Whether a port, as in "udp 1511", can be had."""
    return judged(use, f"{port}: free", (error, level, f"{port}: {error}", mend))


def port_error(kind: int, address: str, port: int) -> str:
    """Why a port of socket.SOCK_STREAM or SOCK_DGRAM cannot be had; empty if it can."""
    try:
        with socket.socket(socket.AF_INET, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, port))
    except OSError as error:
        return error.strerror or str(error)
    return ""


# --- DDS ----------------------------------------------------------------------------------------


def discovery(namespace: str = "") -> list[Finding]:
    """What ROS 2 is told by its environment, whether its port is free, and who runs already.

    Args:
        namespace: that a system is to run in; empty: the root.
    """
    low, high = (
        kernel_text(Path("/proc/sys/net/ipv4/ip_local_port_range")) or "32768 60999"
    ).split()
    text = os.environ.get("ROS_DOMAIN_ID") or ""
    found = [
        check_loopback(loopback_error()),
        check_domain(text, (int(low), int(high))),
        check_discovery_range(discovery_range(), os.environ.get("ROS_LOCALHOST_ONLY")),
    ]
    if security_is_on():
        strategy = os.environ.get("ROS_SECURITY_STRATEGY", "")
        found.append(check_security(security_error(), strategy))
    domain = int(text) if text.isdecimal() else 0
    if domain <= LARGEST_DOMAIN:
        first, step = _DOMAIN_PORTS
        mend = "another ROS_DOMAIN_ID; ss -ulpn shows which program uses it"
        found.append(port("DDS discovery", "0.0.0.0", "udp", first + step * domain, FAIL, mend))
    found.append(check_runs(running_namespaces(str(domain)), domain, namespace))
    return found


def check_loopback(error: str) -> Finding:
    """Whether nodes of this machine can hear each other; `error` is why not."""
    return judged("loopback", "a datagram to 127.0.0.1 comes back",
        (error, FAIL, f"a datagram to 127.0.0.1 does not come back: {error}", LOOPBACK_UP)
    )  # fmt: skip


def check_runs(running: Sequence[str], domain: int, namespace: str) -> Finding:
    """Whether a system of this machine runs where another one is to run.

    Args:
        running: absolute namespaces of the systems that run in the domain.
        domain: ROS_DOMAIN_ID.
        namespace: of the one that is to run; empty: the root.
    """
    here = absolute(namespace)
    others = f"in ROS domain {domain} run {', '.join(running)}; {here} is free"
    return judged("running systems", others if running else f"none in ROS domain {domain}",
        (here in running, WARN,
         f"one runs in ROS domain {domain}, namespace {here}: a second one would be refused",
         "end it, or name another --namespace, or set another ROS_DOMAIN_ID")
    )  # fmt: skip


def check_domain(domain: str | None, ephemeral_ports: tuple[int, int]) -> Finding:
    """ROS_DOMAIN_ID: a number whose ports exist and that the kernel does not give to others."""
    subject = "ROS_DOMAIN_ID"
    text = (domain or "").strip()
    if not text:
        said = "not set: domain 0, like everybody else who has not set it"
        return Finding(subject, WARN, said, _ANOTHER_DOMAIN)
    number = int(text) if text.isdecimal() else -1
    first, step = _DOMAIN_PORTS[0] + _DOMAIN_PORTS[1] * number, _DOMAIN_PORTS[1]
    low, high = ephemeral_ports
    return judged(subject, f"{number}: ports from {first}",
        (not 0 <= number <= LARGEST_DOMAIN, FAIL,
         f"{text}: must be a whole number from 0 to {LARGEST_DOMAIN}", _ANOTHER_DOMAIN),
        (first <= high and first + step > low, WARN,
         f"{number}: its ports from {first} lie among those the kernel gives away, "
         f"{low} to {high}", _ANOTHER_DOMAIN)
    )  # fmt: skip


def check_security(error: str, strategy: str) -> Finding:
    """DDS Security, where the environment asks for it: nodes start, and only with keys.

    Args:
        error: why a node does not start; empty if it does.
        strategy: ROS_SECURITY_STRATEGY.
    """
    return judged("DDS Security", "nodes start with their keys",
        (error, FAIL, error, "check ROS_SECURITY_KEYSTORE and ROS_SECURITY_ENCLAVE_OVERRIDE; the "
         "Python wheels of ROS 2 come without DDS Security: use an installation of ROS 2"),
        (strategy != "Enforce", WARN,
         f"ROS_SECURITY_STRATEGY is {strategy or 'not set'}: nodes without keys start unprotected",
         "export ROS_SECURITY_STRATEGY=Enforce")
    )  # fmt: skip


def check_discovery_range(discovery_range: str | None, localhost_only: str | None) -> Finding:
    """How far nodes are heard: on a bench, not beyond the machine.

    ROS_LOCALHOST_ONLY is heeded by Jazzy above ROS_AUTOMATIC_DISCOVERY_RANGE.
    """
    chosen = (discovery_range or "").strip().upper()
    here = "export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST"
    return judged("ROS discovery range",
        f"{chosen}: nodes of this machine only" if chosen == "LOCALHOST" else "this machine only",
        (localhost_only == "1", WARN,
         "ROS_LOCALHOST_ONLY=1: works, but is deprecated and overrides the range",
         f"unset ROS_LOCALHOST_ONLY; {here}"),
        (chosen and chosen not in DISCOVERY_RANGES, FAIL,
         f"{chosen}: must be one of {', '.join(DISCOVERY_RANGES)}", here),
        (chosen == "OFF", FAIL, "OFF: the nodes will not find each other, not even on this machine",
         here),
        (chosen != "LOCALHOST", WARN,
         f"{chosen or 'not set'}: any node on this network may command the pressures "
         "(softcr up sets LOCALHOST by itself where nothing is set)", here)
    )  # fmt: skip
