"""Checks of adapters, ports, devices and of what DDS is told. Pure functions of facts."""

from dataclasses import dataclass

from softcr_tools.doctor.finding import FAIL, WARN, Finding, Level, judged

LARGEST_DOMAIN = 232
"""With a larger ROS_DOMAIN_ID the ports would lie beyond 65535."""

DISCOVERY_RANGES = ("SUBNET", "LOCALHOST", "OFF", "SYSTEM_DEFAULT")

_ANOTHER_DOMAIN = "export ROS_DOMAIN_ID=42  (any from 1 to 101)"
_DOMAIN_PORTS = 7400, 250  # of domain 0, and between two domains (RTPS 2.2, section 9.6.1)


@dataclass(frozen=True)
class InterfaceFacts:
    """A network adapter."""

    name: str  # that is asked for
    there: tuple[str, ...]  # all adapters of the machine
    wireless: bool = False  # whether it is radio
    up: bool = True  # whether it is switched on
    carrier: bool = True  # whether something is at the other end of its cable
    raw_error: str = ""  # why raw frames cannot be sent on it; empty if they can


@dataclass(frozen=True)
class TerminalFacts:
    """The EtherCAT terminals, asked by a frame that changes nothing."""

    # names of those the station has, in order; empty if it cannot be read
    expected: tuple[str, ...] = ()
    found: int | None = None  # how many answer; None if they were not asked
    why_not: str = ""  # why they were not asked; empty if they were
    in_use: bool = False  # whether the reason is that their master runs


@dataclass(frozen=True)
class PortFacts:
    """A port of this machine."""

    use: str  # what needs it
    port: str  # as in "udp 1511"
    error: str  # why it cannot be had; empty if it can
    level: Level  # how bad that would be
    mend: str  # what to do then


@dataclass(frozen=True)
class DeviceFacts:
    """A device of the bench, asked over the network."""

    name: str  # of the device
    option: str  # of the command line for its address
    address: str = ""  # where it was asked; empty if it was not
    answer: str = ""  # what it said of itself
    error: str = ""  # why there is no answer; empty if there is one


@dataclass(frozen=True)
class DdsFacts:
    """What ROS 2 is told by its environment; None where it is not."""

    domain: str | None  # ROS_DOMAIN_ID
    discovery_range: str | None  # ROS_AUTOMATIC_DISCOVERY_RANGE
    localhost_only: str | None  # ROS_LOCALHOST_ONLY, which Jazzy heeds above the range
    ephemeral_ports: tuple[int, int]  # first and last port that the kernel gives away


def check_interface(facts: InterfaceFacts) -> Finding:
    """The EtherCAT adapter: there, wired, switched on, connected."""
    name = facts.name
    return judged("EtherCAT adapter", f"{name}: up, connected",
        (name not in facts.there, FAIL, f"{name}: not there; there are {', '.join(facts.there)}",
         "name the right one: softcr doctor --interface NAME, and parameter interface of valves"),
        (facts.wireless, FAIL, f"{name}: wireless; EtherCAT needs a cable",
         "name a wired one: softcr doctor --interface NAME, and parameter interface of valves"),
        (not facts.up, FAIL, f"{name}: switched off", f"sudo ip link set {name} up"),
        (not facts.carrier, FAIL, f"{name}: nothing at the other end of the cable",
         "plug the cable into port IN of the EK1100 and switch its 24 V on")
    )  # fmt: skip


def check_raw_frames(facts: InterfaceFacts) -> Finding:
    """Whether this process may send EtherCAT frames."""
    return judged("EtherCAT frames", "permitted",
        (bool(facts.raw_error), FAIL, f"refused: {facts.raw_error}",
         "sudo setcap cap_net_raw+ep $(readlink -f .venv/bin/python), or run as root")
    )  # fmt: skip


def check_terminals(facts: TerminalFacts) -> Finding:
    """Whether as many terminals answer as the station has; which ones they are the valves check."""
    count = len(facts.expected)
    names = ", ".join(facts.expected)
    return judged("EtherCAT terminals", facts.why_not if facts.in_use else f"{facts.found} answer",
        (bool(facts.why_not) and not facts.in_use, WARN, f"not asked: {facts.why_not}",
         "first what is said above of adapter and frames"),
        (facts.found == 0, FAIL, "none answers",
         "plug the cable into port IN of the EK1100 and switch its 24 V on"),
        (facts.found is not None and bool(count) and facts.found != count, FAIL,
         f"{facts.found} answer, must be {count}: {names}",
         f"push number {min(facts.found or 0, count - 1) + 1} onto its neighbour until it "
         "clicks, or name another --station")
    )  # fmt: skip


def check_port(facts: PortFacts) -> Finding:
    """Whether a port can be had."""
    return judged(facts.use, f"{facts.port}: free",
        (bool(facts.error), facts.level, f"{facts.port}: {facts.error}", facts.mend)
    )  # fmt: skip


def check_device(facts: DeviceFacts) -> Finding:
    """Whether a device answers."""
    return judged(facts.name, f"{facts.address}: {facts.answer}",
        (not facts.address, WARN, "not asked: no address given",
         f"softcr doctor {facts.option} ADDRESS"),
        (bool(facts.error), FAIL, f"{facts.address}: {facts.error}",
         f"check that it is on and its cable: ping {facts.address.partition(':')[0]}")
    )  # fmt: skip


def check_domain(facts: DdsFacts) -> Finding:
    """ROS_DOMAIN_ID: a number whose ports exist and that the kernel does not give to others."""
    subject = "ROS_DOMAIN_ID"
    text = (facts.domain or "").strip()
    if not text:
        said = "not set: domain 0, which everybody uses who has not set it either"
        return Finding(subject, WARN, said, _ANOTHER_DOMAIN)
    number = int(text) if text.isdecimal() else -1
    first, step = _DOMAIN_PORTS[0] + _DOMAIN_PORTS[1] * number, _DOMAIN_PORTS[1]
    low, high = facts.ephemeral_ports
    return judged(subject, f"{number}: ports from {first}",
        (not 0 <= number <= LARGEST_DOMAIN, FAIL,
         f"{text}: must be a whole number from 0 to {LARGEST_DOMAIN}", _ANOTHER_DOMAIN),
        (first <= high and first + step > low, WARN,
         f"{number}: its ports from {first} lie among those the kernel gives away, "
         f"{low} to {high}", _ANOTHER_DOMAIN)
    )  # fmt: skip


def check_discovery_range(facts: DdsFacts) -> Finding:
    """How far nodes are heard: on a bench, not beyond the machine."""
    subject = "ROS discovery range"
    chosen = (facts.discovery_range or "").strip().upper()
    here = "export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST"
    return judged(subject,
        f"{chosen}: nodes of this machine only" if chosen == "LOCALHOST" else "this machine only",
        (facts.localhost_only == "1", WARN,
         "ROS_LOCALHOST_ONLY=1: works, but is deprecated and overrides the range",
         f"unset ROS_LOCALHOST_ONLY; {here}"),
        (bool(chosen) and chosen not in DISCOVERY_RANGES, FAIL,
         f"{chosen}: must be one of {', '.join(DISCOVERY_RANGES)}", here),
        (chosen == "OFF", FAIL, "OFF: the nodes will not find each other, not even on this machine",
         here),
        (chosen != "LOCALHOST", WARN,
         f"{chosen or 'not set'}: any node on this network may command the pressures "
         "(softcr up sets LOCALHOST by itself where nothing is set)", here)
    )  # fmt: skip
