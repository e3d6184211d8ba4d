"""`softcr rehearse`: `softcr up hardware` on emulated devices, over their real protocols."""

import argparse
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console

from softcr_models.errors import UserError
from softcr_tools.console import step
from softcr_tools.hardware_system import HardwareOptions
from softcr_tools.systems import options_of
from softcr_tools.up import add_options, run_hardware

_START_TIME = 120.0  # of the emulator: it may compile [s]
_END_TIME = 5.0  # [s]
_COMMAND = "import sys; from softcr_tools.cli import main; sys.exit(main())"
_DEVICES = (
    "interface", "optitrack", "optitrack_port", "local", "group", "force_torque",
    "force_torque_port", "force_torque_http_port",
)  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Run the command line after `softcr rehearse`; returns the exit code.

    Raises:
        UserError: an option cannot be used, or the machine does not allow it.
    """
    given = vars(_parser().parse_args(arguments))
    results = given.pop("results")
    for name in set(_DEVICES) & set(given):
        raise UserError(f"--{name.replace('_', '-')}: a rehearsal brings its own devices")
    options = options_of(HardwareOptions, {"deadman": "none"} | given)
    _refuse_where_not_allowed()
    console = Console()
    with _cable() as (near, far), _bench(options, far, results, console) as ports:
        devices = {
            "interface": near,
            "optitrack": "127.0.0.1",
            "local": "127.0.0.1",
            "force_torque": "127.0.0.1",
        }
        return run_hardware(options.model_copy(update=devices | ports), results)


def _refuse_where_not_allowed() -> None:
    if os.geteuid() != 0:
        raise UserError("a rehearsal needs root, for a virtual cable and raw frames: sudo")
    if shutil.which("ip") is None:
        raise UserError("a rehearsal needs the ip command: sudo apt install iproute2")
    if importlib.util.find_spec("pysoem") is None:
        raise UserError(
            "a rehearsal needs pysoem (GPL-3.0 or commercial): pip install 'softcr[ethercat]'"
        )


@contextmanager
def _cable() -> Iterator[tuple[str, str]]:
    """A virtual cable of names of its own; both ends up, removed afterwards."""
    near, far = (f"scr{os.getpid() % 10**7}{end}" for end in "ab")
    steps = (
        ("link", "add", near, "type", "veth", "peer", "name", far),
        ("link", "set", near, "up"),
        ("link", "set", far, "up"),
    )
    try:
        for words in steps:
            made = subprocess.run(["ip", *words], capture_output=True, text=True)
            if made.returncode != 0:
                raise UserError(f"ip {' '.join(words)}: {made.stderr.strip()}")
        yield near, far
    finally:
        subprocess.run(["ip", "link", "del", near], capture_output=True)


@contextmanager
def _bench(
    options: HardwareOptions, interface: str, results: Path, console: Console
) -> Iterator[dict[str, int]]:
    """The emulated devices on one rod; gives their ports by option."""
    command, records, web = _free_ports()
    results.mkdir(parents=True, exist_ok=True)
    log = results / "bench.jsonl"
    words = [
        *(sys.executable, "-c", _COMMAND, "emulate", "bench"),
        *("--interface", interface, "--robot", options.robot),
        *("--station", options.station, "--calibration", options.calibration),
        *("--command-port", command, "--rdt-port", records, "--http-port", web),
        *("--log", log, "--realtime-priority", 60),
    ]
    with subprocess.Popen(
        list(map(str, words)),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is the run's, which ends the devices last
    ) as process:
        try:
            with step(console, "preparing the emulated bench"):
                _wait_until_ready(process)
            yield {
                "optitrack_port": command,
                "force_torque_port": records,
                "force_torque_http_port": web,
            }
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_TIME)
            process.kill()


def _wait_until_ready(process: "subprocess.Popen[str]") -> None:
    assert process.stderr is not None  # a pipe
    deadline, said = time.monotonic() + _START_TIME, ""
    for line in process.stderr:  # its own words, few lines
        if "type a device" in line or "emulating" in line:
            return
        said = line.strip() or said
        if time.monotonic() > deadline:
            break
    raise UserError(f"the emulated bench did not start: {said}")


def _free_ports() -> tuple[int, int, int]:
    """Two of UDP and one of TCP that nobody uses."""
    kinds = (socket.SOCK_DGRAM, socket.SOCK_DGRAM, socket.SOCK_STREAM)
    found = []
    sockets = [socket.socket(socket.AF_INET, kind) for kind in kinds]
    for bound in sockets:
        bound.bind(("127.0.0.1", 0))
        found.append(bound.getsockname()[1])
    for bound in sockets:
        bound.close()
    command, records, web = found
    return command, records, web


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="softcr rehearse",
        description="The closed loop on an emulated bench: 'softcr up hardware' with real "
        "protocols and no hardware. Needs root and pysoem; no deadman's switch unless told.",
        allow_abbrev=False,
    )
    add_options(parser, HardwareOptions, "results/rehearsal")
    return parser
