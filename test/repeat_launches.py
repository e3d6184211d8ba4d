"""Launches in a row under load: none may hang, leave a process, or end with a code that lies.

    python test/repeat_launches.py 30 --busy 2
    python test/repeat_launches.py 4 --only vented     # root, pysoem: the emulated bench

Needs launch on PYTHONPATH, see docs/howto/workspace.md. The ways to end are taken in turns; each
launch is told in a line of JSON, and the exit code is 1 where one was not as it must be.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from kit.processes import ROOT, Launched
from rich.console import Console
from std_srvs.srv import Trigger

sys.path.insert(0, str(ROOT))

from softcr_hardware.emulation.bench import cable, emulation
from softcr_runtime.console.terminal import compile_kernels
from softcr_runtime.ros.context import ros_context
from softcr_tools.ros.participant import Connection, Participant, Unanswered

_LIGHT = (
    "controller:=examples/joint_pid.py:JointPid",
    "estimator:=examples/constant_velocity.py:ConstantVelocity",
)
_REFUSING = f"controller:={Path(__file__).with_name('refusing_controllers.py')}"
_ORPHAN_TIME = 90.0
"""For the run to end, report included, after its launch was killed [s]."""

Must = dict[str, object]


def ends(results: Path) -> tuple[Launched, Must]:
    """The run ends by its duration."""
    launch = Launched("simulation.launch.py", results, *_LIGHT, "duration:=3")
    return launch, {"code": 0, "ended_by": "duration", "run": 0}


def refuses_configure(results: Path) -> tuple[Launched, Must]:
    """A node refuses to be configured."""
    launch = Launched("simulation.launch.py", results, f"{_REFUSING}:RefusesConfigure")
    return launch, {"code": 1, "ended_by": "failure", "run": 2, "says": "is never configured"}


def refuses_activate(results: Path) -> tuple[Launched, Must]:
    """A node refuses to be activated."""
    launch = Launched("simulation.launch.py", results, f"{_REFUSING}:RefusesActivate")
    return launch, {"code": 1, "ended_by": "failure", "run": 2, "says": "is never active"}


def node_killed(results: Path) -> tuple[Launched, Must]:
    """A node's process dies."""
    launch = Launched("simulation.launch.py", results, *_LIGHT, "duration:=60")
    launch.wait_for("run_started")
    os.kill(launch.pid_of("estimator"), signal.SIGKILL)
    says = "node estimator died (signal 9)"
    return launch, {"code": 1, "ended_by": "death", "run": 1, "says": says}


def interrupted(results: Path) -> tuple[Launched, Must]:
    """Ctrl-C in the terminal."""
    launch = Launched("simulation.launch.py", results, *_LIGHT, "duration:=60")
    launch.wait_for("run_started")
    launch.interrupt()
    return launch, {"code": 0, "ended_by": "interrupt", "run": 0}


def mistaken(results: Path) -> tuple[Launched, Must]:
    """A wrong argument."""
    launch = Launched("simulation.launch.py", results, "population:=3")
    return launch, {"code": 1, "ended_by": None, "run": None, "says": "population = 3"}


def launch_terminated(results: Path) -> tuple[Launched, Must]:
    """SIGTERM to the launch alone, which has no handler for it and dies."""
    launch = Launched("simulation.launch.py", results, *_LIGHT, "duration:=60")
    launch.wait_for("run_started")
    launch.process.send_signal(signal.SIGTERM)
    return launch, {"code": -signal.SIGTERM, "ended_by": "interrupt", "run": 0}


def launch_killed(results: Path) -> tuple[Launched, Must]:
    """SIGKILL to the launch."""
    launch = Launched("simulation.launch.py", results, *_LIGHT, "duration:=60")
    launch.wait_for("run_started")
    launch.process.send_signal(signal.SIGKILL)
    return launch, {"code": -signal.SIGKILL, "ended_by": "interrupt", "run": 0}


def no_bench(results: Path) -> tuple[Launched, Must]:
    """A node of the bench refuses to be configured: there are no devices."""
    launch = Launched("hardware.launch.py", results, *_LIGHT, "deadman:=none")
    return launch, {"code": 1, "ended_by": "failure", "run": 2, "says": "did not configure"}


def vented(results: Path) -> tuple[Launched, Must]:
    """The service vents the valves of the emulated bench; too busy a machine does it before."""
    devices = ExitStack()
    near, far = devices.enter_context(cable())
    ports = dict(
        zip(("command", "rdt", "http"), random.sample(range(20_000, 30_000), 3), strict=True)
    )
    words = [word for name, port in ports.items() for word in (f"--{name}-port", port)]
    devices.enter_context(emulation(["bench", "--interface", far, *words, "--record-rate", 100]))
    launch = Launched(
        *("hardware.launch.py", results, *_LIGHT, f"interface:={near}", "deadman:=none"),
        *("optitrack:=127.0.0.1", f"optitrack_port:={ports['command']}", "local:=127.0.0.1"),
        *("force_torque:=127.0.0.1", f"force_torque_port:={ports['rdt']}"),
        *(f"force_torque_http_port:={ports['http']}", "force_torque_records_hz:=100"),
        *("force_torque_rate_hz:=50", f"state_directory:={results / 'state'}"),
        *("duration:=60", "visuals:=off"),
        devices=devices,
    )
    with ros_context():
        operator = Participant("vent", Connection(timeout=30.0))
        launch.wait_for("run_started")
        with suppress(Unanswered):  # they vented before
            operator.ask("/valves/vent", Trigger, Trigger.Request(), "/valves")
        operator.close()
    return launch, {"code": 1, "ended_by": "failure", "run": 1, "says": "vent asked for"}


WAYS: tuple[Callable[[Path], tuple[Launched, Must]], ...] = (
    ends, refuses_configure, node_killed, refuses_activate, interrupted, no_bench, ends,
    launch_terminated, refuses_activate, mistaken, node_killed, launch_killed,
)  # fmt: skip


def main() -> int:
    """Launch, and tell; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("launches", type=int, help="how many")
    parser.add_argument("--first", type=int, default=0, help="where the turns begin")
    parser.add_argument("--only", default="", help="one way to end")
    parser.add_argument("--busy", type=int, default=2, help="processes that keep cores busy")
    arguments = parser.parse_args()
    ways = [way for way in (*WAYS, vented) if arguments.only == way.__name__] or WAYS
    compile_kernels(Console(stderr=True))  # once on a machine, and not beside the load
    bad = 0
    with busy(arguments.busy):
        for number in range(arguments.first, arguments.first + arguments.launches):
            told = tell(ways[number % len(ways)])
            bad += not told["good"]
            print(json.dumps({"launch": number, **told}), flush=True)
    return 1 if bad else 0


def tell(way: Callable[[Path], tuple[Launched, Must]]) -> dict[str, object]:
    """Launch once, and judge how it ended."""
    os.environ["ROS_DOMAIN_ID"] = str(random.randrange(101, 230))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        launch, must = way(Path(folder))
        with launch:
            acted = time.monotonic()
            try:
                code = launch.exit_code()
            except subprocess.TimeoutExpired:
                code = None
            ended = time.monotonic()
            gone = code is not None and not must.get("says") and must["run"] is not None
            orphans = launch.orphans(_ORPHAN_TIME if gone else 1.0)
            record = launch.record()
            found: Must = {
                "code": code, "ended_by": record.get("ended_by"), "run": record.get("exit_code"),
            }  # fmt: skip
            if "says" in must and str(must["says"]) in launch.output:
                found["says"] = must["says"]
            good = found == must and not orphans
            return {
                "way": way.__name__,
                "good": good,
                "seconds": round(ended - began, 1),
                "end_seconds": round(ended - acted, 1),
                "node_end_seconds": node_ends(record),
                "found": found,
                **({} if good else {"must": must, "orphans": orphans, "said": launch.output}),
            }


def node_ends(record: dict) -> dict[str, float]:
    """From SIGTERM for all, after the last change of state, to the end of each node [s]."""
    events = record.get("events", [])
    ended = {e["node"]: e["time"] for e in events if e["event"] in ("ended", "killed")}
    before = [e["time"] for e in events if e["event"] not in ("ended", "killed", "died")]
    return {node: round(time - before[-1], 2) for node, time in ended.items()}


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Processes of the lowest priority that keep cores busy meanwhile."""
    command = ["nice", "-n", "19", sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
