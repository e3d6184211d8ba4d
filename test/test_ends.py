"""How processes end: with their parent, without readers, without delay; what is said meanwhile."""

import io
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import psutil
import pytest
from kit.processes import until
from rich.console import Console

from softcr_runtime.console import terminal
from softcr_runtime.console.terminal import shown

PARENT = """
import os, subprocess, sys, time
child = "import os, sys, time; from softcr_runtime.ros.parent import end_with;" \\
        f" end_with({os.getpid()}); print(os.getpid(), flush=True); time.sleep(60)"
subprocess.Popen([sys.executable, "-c", child])
time.sleep(60)
"""
SPEAKER = """
import pathlib, sys, time
from rich.console import Console
from softcr_runtime.console.terminal import complain, readers_may_leave, say
with readers_may_leave():
    print("begun", flush=True)
    sys.stdin.readline()  # until nobody reads any more
    for _ in range(2000):
        say(Console(), "more than a pipe holds " * 4)
    complain("so it ends")
    pathlib.Path(sys.argv[1]).write_text("in order")
"""
LEAVER = """
import atexit, sys
from softcr_runtime.ros.process import leave
atexit.register(print, "finalised")
sys.stdout.write("said last")
leave(3)
"""


def ended(process):
    with suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_ZOMBIE  # not reaped by whoever adopted it
    return True


def test_a_process_ends_with_its_parent_however_that_ends():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    with parent:
        child = psutil.Process(int(parent.stdout.readline()))
        assert not ended(child)
        parent.kill()
    until(lambda: ended(child), "the end of the child", timeout=30.0)


def test_a_process_ends_at_once_whose_parent_had_ended_already():
    code = "from softcr_runtime.ros.parent import end_with; end_with(1 << 30); print('lives on')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (1, "")


def test_a_run_goes_on_when_nobody_reads_its_words(tmp_path):
    done = tmp_path / "done"
    pipe, process = subprocess.PIPE, [sys.executable, "-c", SPEAKER, str(done)]
    with subprocess.Popen(process, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as speaker:
        assert speaker.stdout.readline() == "begun\n"
        speaker.stdout.close()
        speaker.stderr.close()
        speaker.stdin.write("\n")
        speaker.stdin.close()
        assert speaker.wait(60.0) == 0
    assert done.read_text() == "in order"


def test_a_process_that_leaves_says_all_and_collects_nothing():
    run = subprocess.run([sys.executable, "-c", LEAVER], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (3, "said last", "")


def test_signals_of_programs_end_a_run_in_order_and_only_a_second_ctrl_c_kills_it():
    from softcr_runtime.ros.executor.supervisor import Supervisor

    supervisor = Supervisor.__new__(Supervisor)
    supervisor._wishes_to_end = 0
    for number, wishes in (
        (signal.SIGTERM, 1), (signal.SIGTERM, 1), (signal.SIGHUP, 1), (signal.SIGINT, 2),
    ):  # fmt: skip
        supervisor._wish_to_end(number)
        assert supervisor._wishes_to_end == wishes


def test_a_program_ends_no_report_that_is_being_made():
    code = (
        "import os, signal\n"
        "from softcr_runtime.console.terminal import not_ended_by_programs\n"
        "with not_ended_by_programs():\n"
        "    os.kill(os.getpid(), signal.SIGTERM); os.kill(os.getpid(), signal.SIGHUP)\n"
        "    print('made', flush=True)\n"
        "os.kill(os.getpid(), signal.SIGTERM); print('too late')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (-signal.SIGTERM, "made\n")


@pytest.mark.parametrize("is_terminal", [False, True])
def test_what_takes_long_is_told_also_where_no_terminal_shows_it(monkeypatch, is_terminal):
    """Once, and again after twice as long; what ends before says nothing in a file."""
    monkeypatch.setattr(terminal, "FIRST_WORD", 0.02)
    enough = threading.Event()

    class Lines(io.StringIO):
        def write(self, text):
            count = super().write(text)
            if self.getvalue().count("reading a bag") > 1:
                enough.set()
            return count

    console = Console(file=Lines(), force_terminal=is_terminal, width=80)
    with shown(console, "reading a bag"):
        assert enough.wait(timeout=60.0)
    if not is_terminal:
        first, second, *_ = console.file.getvalue().splitlines()
        assert first.startswith("reading a bag: 0 s so far")
        assert second.startswith("reading a bag: 0 s so far")
    quick = Console(file=io.StringIO(), force_terminal=False)
    monkeypatch.setattr(terminal, "FIRST_WORD", 1e3)
    with shown(quick, "reading a bag"):
        pass
    assert quick.file.getvalue() == ""
