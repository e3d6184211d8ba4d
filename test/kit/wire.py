"""A cable of its own for the tests of real protocols: a veth pair, one end in a namespace."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest

from kit.processes import until


class Cable:
    """Both ends of a veth pair; `far` lies in the namespace where the emulators run."""

    def __init__(self, name):
        self.near, self.far, self.namespace = f"{name}a", f"{name}b", name

    def plug(self):
        self._far("ip", "link", "set", self.far, "up")

    def unplug(self):
        self._far("ip", "link", "set", self.far, "down")

    def command(self, *arguments):
        """A command line that runs in the namespace."""
        return ["ip", "netns", "exec", self.namespace, *map(str, arguments)]

    def _far(self, *arguments):
        subprocess.run(self.command(*arguments), check=True)


@contextmanager
def cable(suffix=""):
    """A new cable, removed afterwards; skips, with the reason, where that is not allowed."""
    if shutil.which("ip") is None:
        pytest.skip("the ip command is not installed")
    if os.geteuid() != 0:
        pytest.skip("needs root for a network namespace and raw frames")
    made = Cable(f"scr{os.getpid() % 100000}{suffix}")
    steps = (
        ("ip", "netns", "add", made.namespace),
        ("ip", "link", "add", made.near, "type", "veth", "peer", "name", made.far),
        ("ip", "link", "set", made.far, "netns", made.namespace),
        ("ip", "link", "set", made.near, "up"),
    )
    try:
        for step in steps:
            run = subprocess.run(step, capture_output=True, text=True)
            if run.returncode != 0:
                pytest.skip(f"{' '.join(step)}: {run.stderr.strip()}")
        made.plug()
        yield made
    finally:
        for end in (("link", "del", made.near), ("netns", "del", made.namespace)):
            subprocess.run(["ip", *end], capture_output=True)


class Emulator:
    """A `softcr emulate` process on the far end, its event log, its faults."""

    def __init__(self, cable, log, *arguments, changed=""):
        """`changed` is Python that runs before the command, to make its terminals worse."""
        self._log = log
        code = f"{changed}\nimport sys, softcr_tools.cli as cli\nsys.exit(cli.main())"
        self._process = subprocess.Popen(
            cable.command(
                *(sys.executable, "-c", code, "emulate", "ethercat"),
                *("--interface", cable.far, "--log", log, "--realtime-priority", 60),
                *arguments,
            ),
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        for line in self._process.stderr:  # its own words, at most three lines
            if "emulating" in line:
                return
        pytest.fail(f"the emulator ended with {self._process.wait()}")

    def fault(self, kind):
        self._process.stdin.write(f"{kind}\n")
        self._process.stdin.flush()
        until(lambda: any(e.get("kind") == kind for e in self.events("fault")), f"fault {kind}")

    def set(self, name, value):
        self._process.stdin.write(f"{name} {value}\n")
        self._process.stdin.flush()
        until(lambda: any(e["value"] == value for e in self.events("setting")), f"{name} {value}")

    def events(self, name, since=0.0):
        """What it logged under a name, from a monotonic time [s] on."""
        lines = self._log.read_text().splitlines()
        found = [json.loads(line) for line in lines if line.endswith("}")]
        return [event for event in found if event["event"] == name and event["time"] >= since]

    def stop(self):
        self._process.terminate()
        self._process.wait(10.0)
        self._process.stdin.close()
        self._process.stderr.close()
