"""Controllers exchanged in turns on the emulated bench: no hold, no vent, no step above the rate.

    python test/repeat_exchanges.py 4 nempc rod_mpc     # root, pysoem, an otherwise idle machine

Each exchange is told in a line of JSON, and then the run as a whole; the exit code is 1 where the
valves held or vented, or a command stepped further than the rate of pressure allows.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from kit.processes import ROOT

sys.path.insert(0, str(ROOT))

from softcr_models import load_robot
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.signals import BagSignals, read_signals

_CLI = (sys.executable, "-m", "softcr_tools.cli")
_BEFORE = 2.0  # undisturbed, before the first exchange and after each [s]
_AROUND = 8.0  # before the moment of an exchange, in which the new controller was started [s]
_PERIOD = 1 / 70  # [s]


def main() -> int:
    """Exchange, and tell; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("exchanges", type=int, help="how many")
    parser.add_argument("controllers", nargs="+", help="in turns; the run begins with the last")
    parser.add_argument("--results", type=Path, help="a folder for the run, which is kept")
    parser.add_argument("--options", default="", help="more words for softcr rehearse")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        results = arguments.results or Path(folder)
        told = exchanges(
            *(arguments.exchanges, arguments.controllers, results, arguments.options.split())
        )
    return 0 if told["good"] else 1


def exchanges(
    count: int,
    controllers: list[str],
    results: Path,
    options: list[str],
    watch: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> dict[str, Any]:
    """Run the bench, exchange, and judge the bag; each exchange happens inside of `watch`."""
    environment = os.environ | {"ROS_DOMAIN_ID": str(random.randrange(101, 230))}
    words = ["--controller", controllers[-1], "--duration", "600", "--results", str(results)]
    before = set(results.glob("2*"))
    bench = subprocess.Popen([*_CLI, "rehearse", *words, *options], env=environment, cwd=ROOT)
    answers = []
    try:
        until(lambda: bench.poll() is not None or "run_started" in _record(results, before))
        for number in range(count):
            time.sleep(_BEFORE)
            name = controllers[number % len(controllers)]
            with watch():
                answers.append(
                    subprocess.run(
                        [*_CLI, "call", "switch", name],
                        env=environment,
                        cwd=ROOT,
                        capture_output=True,
                        text=True,
                    )
                )
            if answers[-1].returncode:
                break
        time.sleep(_BEFORE)
    finally:
        if bench.poll() is None:
            bench.send_signal(signal.SIGINT)
        bench.wait(120.0)
    (directory,) = set(results.glob("2*")) - before
    return judge(directory, [answer.stdout + answer.stderr for answer in answers], bench.returncode)


def judge(directory: Path, answers: list[str], code: int) -> dict[str, Any]:
    """What a run's bag tells of its exchanges; told in lines of JSON."""
    record = json.loads((directory / "system.json").read_text())
    signals = read_signals(Bag(directory / "bag"))
    began = [e for e in record["events"] if e["event"] == "exchanged"]
    moments = [float(e["detail"].split()[2]) for e in began]
    most = load_robot("licher2025").pressure_limits.maximum_rate * _PERIOD
    steps = []
    for moment, answer in zip(moments, answers, strict=False):
        around = around_exchange(signals, moment)
        steps.append(around["largest_step_kpa"])
        print(json.dumps({"said": answer.strip(), **around}), flush=True)
    told = {
        "good": code == 0
        and len(moments) == len(answers)
        and not [line for _, line in signals.safety if "hold" in line]
        and max(steps, default=0.0) <= 1e-3 * most * (1 + 1e-9),
        "code": code,
        "ended_by": record["ended_by"],
        "error": record["error"],
        "refused": answers[len(moments) :],
        "most_kpa": round(1e-3 * most, 3),
        "safety": [line for _, line in signals.safety],
        "missed": {n: s.values.get("missed_cycles") for n, s in signals.nodes.items()},
    }
    print(json.dumps(told), flush=True)
    return told


def around_exchange(signals: BagSignals, moment: float) -> dict[str, Any]:
    """Commands from when the new controller was started to some time after it commands."""
    commands = signals.role("commands")
    times = 1e-9 * commands.stamps
    near = (times > moment - _AROUND) & (times < moment + _BEFORE)
    steps = np.abs(np.diff(commands.values[near], axis=0)).max(axis=1)
    at = np.abs(times[near][1:] - moment) < 10 * _PERIOD
    return {
        "moment": moment,
        "largest_step_kpa": round(1e-3 * float(steps[at].max()), 3),
        "largest_step_beside_kpa": round(1e-3 * float(steps.max()), 3),
        "longest_pause_periods": round(float(np.diff(times[near]).max()) / _PERIOD, 2),
    }


def until(condition: Callable[[], bool], patience: float = 300.0) -> None:
    """Wait for a condition, for so long [s]."""
    end = time.monotonic() + patience
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.2)


def _record(results: Path, before: set[Path]) -> str:
    new = set(results.glob("2*")) - before
    return "".join(path.read_text() for each in new for path in each.glob("system.json"))


if __name__ == "__main__":
    sys.exit(main())
