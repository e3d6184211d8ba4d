"""The command line of `softcr emulate`."""

import argparse
from collections.abc import Callable
from pathlib import Path

_CABLE = (
    "Two ends of a cable on one machine (root): ip link add bench0 type veth peer name bench1 && "
    "ip link set bench0 up && ip link set bench1 up; then emulate on one end."
)


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    from softcr_hardware.faults import FAULT_KINDS

    made = argparse.ArgumentParser(
        prog="softcr emulate",
        description="The bench's devices in software, on their real protocols. Faults are typed on "
        f"standard input, one per line: {', '.join(FAULT_KINDS)}.",
    )
    devices = made.add_subparsers(dest="device", required=True, metavar="DEVICE")
    ethercat = devices.add_parser(
        "ethercat",
        help="the valves' terminals on a network interface",
        description="Answers an EtherCAT master as the terminals of a station file would; valves "
        "and chambers behind them are simulated, and so is the rod with --rod.",
        epilog=_CABLE,
    )
    ethercat.add_argument("--interface", required=True, help="network interface, as bench1")
    ethercat.add_argument("--rod", action="store_true", help="simulate and log the rod, too")
    optitrack = devices.add_parser(
        "optitrack",
        help="Motive, which tracks the tip of the resting rod",
        description="Answers a NatNet client as Motive would.",
    )
    force_torque = devices.add_parser(
        "force-torque",
        help="an ATI Net F/T box below the resting rod",
        description="Serves records over UDP and its calibration over HTTP as a Net F/T does.",
    )
    bench = devices.add_parser(
        "bench",
        help="all of them on one simulated actuator",
        description="What the valves do the cameras see and the sensor feels. Faults are typed as "
        "DEVICE FAULT: optitrack off.",
        epilog=_CABLE,
    )
    bench.add_argument("--interface", help="network interface of the valves; none: the rod rests")
    _plant(bench)
    for device in (ethercat, bench):
        device.add_argument("--station", help="valves; name or file (default: the robot's name)")
    for device in (optitrack, bench):
        _cameras(device)
    for device in (force_torque, bench):
        _sensor(device)
    for device in (optitrack, force_torque, bench):
        device.add_argument("--host", default="127.0.0.1", help="our address (default 127.0.0.1)")
    for device in (ethercat, optitrack, force_torque, bench):
        _common(device, FAULT_KINDS)
    return made


def _plant(device: argparse.ArgumentParser) -> None:
    for name, least, most in (("bending-compliance", 0.2, 5.0), ("tip-mass", 0.0, 5.0)):
        device.add_argument(
            f"--{name}-factor",
            type=_between(least, most),
            default=1.0,
            help="of the rod over the robot file's (default 1)",
        )
    device.add_argument("--seed", type=int, default=0, help="of all noise (default 0)")
    device.add_argument(
        "--truth", action="store_true",
        help="publish the true tip on simulation/truth/tip/pose, for a recorder",
    )  # fmt: skip


def _cameras(device: argparse.ArgumentParser) -> None:
    device.add_argument(
        "--calibration", default="licher2025", help="of the cameras; name or file (licher2025)"
    )
    device.add_argument("--command-port", type=int, default=1510, help="UDP (default 1510)")
    device.add_argument("--group", help="multicast group to stream to, as 239.255.42.99")
    device.add_argument(
        "--frame-rate", type=_rate(1000.0), default=120.0, help="[Hz] (default 120)"
    )
    device.add_argument(
        "--natnet", choices=("3.0", "3.1", "4.0", "4.1", "4.2"), default="4.1",
        help="version of the protocol (default 4.1)",
    )  # fmt: skip
    device.add_argument(
        "--tip-noise-mm", type=float, default=0.05, help="of the seen tip (default 0.05)"
    )


def _sensor(device: argparse.ArgumentParser) -> None:
    device.add_argument("--rdt-port", type=int, default=49152, help="UDP (default 49152)")
    device.add_argument(
        "--http-port", type=int, default=8080, help="TCP (default 8080; 80 needs root)"
    )
    device.add_argument(
        "--record-rate", type=_rate(7000.0), default=1000.0, help="[Hz] (default 1000)"
    )


def _common(device: argparse.ArgumentParser, faults: tuple[str, ...]) -> None:
    device.add_argument("--robot", default="licher2025", help="name or file (default licher2025)")
    if device.prog.split()[-1] != "bench":
        device.add_argument("--fault", choices=faults, default="ok", help="from the beginning")
    else:
        device.set_defaults(fault="ok")
    device.add_argument(
        "--log", type=Path, help="file for events, a JSON object per line (default: stdout)"
    )
    device.add_argument(
        "--realtime-priority", type=int, default=0, choices=range(91), metavar="0..90",
        help="SCHED_FIFO; 0 (default) for the ordinary scheduler",
    )  # fmt: skip


def _rate(highest: float) -> Callable[[str], float]:
    return _between(1.0, highest, " Hz")


def _between(lowest: float, highest: float, unit: str = "") -> Callable[[str], float]:
    def number(text: str) -> float:
        value = float(text)
        if not lowest <= value <= highest:
            limits = f"must be from {lowest:g} to {highest:g}{unit}"
            raise argparse.ArgumentTypeError(f"{text}: {limits}")
        return value

    return number
