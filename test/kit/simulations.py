"""`softcr up simulation` as a process, and commands beside it."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

from domains import fresh_domain

from kit.processes import ROOT, until


@contextmanager
def simulation_up(results, *words):
    """A run in a ROS domain of its own, which must end well: a function that runs a command beside
    it."""
    environment = {**os.environ, "ROS_DOMAIN_ID": fresh_domain(), "PYTHONPATH": str(ROOT)}
    cli = [sys.executable, "-m", "softcr_tools.cli"]

    def said(*words, python=False):
        """What the command line, or a script, said with such words."""
        command = [*(cli[:1] if python else cli), *words]
        return subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600
        )

    def runs():
        records = results.glob("2*/system.json")
        return up.poll() is not None or any("run_started" in each.read_text() for each in records)

    command = [*cli, "up", "simulation", f"--results={results}", *words]
    with (results / "log").open("w") as log:
        up = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=log, stderr=log)
    try:
        until(runs, "a run", 400.0)
        yield said
    finally:
        up.send_signal(signal.SIGINT)
        up.wait(120.0)
    assert up.returncode == 0, (results / "log").read_text()
