"""The deadman's switch in a terminal: what a keyboard's repeating means, and the whole command."""

import os
import pty
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.processes import Peer, until
from std_srvs.srv import Trigger

from softcr_hardware.hold import FIRST_GAP, GAP, Grip
from softcr_tools import cli


def held_at(presses, moments):
    """Whether the key is held at moments, the presses coming in between."""
    grip, waiting, said = Grip(), sorted(presses), []
    for moment in sorted(moments):
        while waiting and waiting[0] <= moment:
            grip.press(waiting.pop(0))
        said.append(grip.held(moment))
    return said


@pytest.mark.parametrize(
    ("first", "between"), [(0.25, 0.033), (0.5, 0.083), (0.66, 0.04), (0.25, 0.092)]
)
def test_a_repeating_key_is_held_until_shortly_after_the_finger_lifts(first, between):
    presses = [10.0, *(10.0 + first + between * k for k in range(20))]
    moments = [9.99, *(10.0 + 0.01 * k for k in range(400))]
    said = dict(zip(moments, held_at(presses, moments), strict=True))
    assert not said[9.99]
    last = presses[-1]
    assert all(held for moment, held in said.items() if 10.0 <= moment < last + GAP)
    assert not any(held for moment, held in said.items() if moment >= last + GAP)


@given(st.lists(st.floats(0.0, 5.0), max_size=40), st.floats(0.0, 7.0))
def test_without_a_key_for_the_first_gap_nothing_is_held(presses, moment):
    before = [press for press in presses if press <= moment]
    (held,) = held_at(before, [moment])
    if held:
        assert moment - max(before) < FIRST_GAP
    elif before:
        assert moment - max(before) >= GAP


def test_without_a_terminal_it_is_one_line(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: SIM115 (closed by the collector)
    assert cli.main(["hold"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "its input must be a terminal" in line


@pytest.fixture
def said():
    """What is said on safety/operator, as it comes."""
    valves, pressed = Peer("valves"), []
    valves.hear("safety/operator", lambda joy: pressed.append(list(joy.buttons)))

    def reset(_, response):
        valves.resets += 1
        response.success = True
        return response

    valves.resets = 0
    valves.node.create_service(Trigger, "valves/reset", reset)

    def newest():
        valves.executor.spin_once(timeout_sec=0.02)
        return pressed[-1][0] if pressed else None

    newest.node, newest.pressed = valves, pressed
    yield newest
    valves.close()


def test_a_held_key_is_told_and_a_closed_terminal_is_a_release(said):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from softcr_tools.cli import main; main(['hold'])"]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.DEVNULL, start_new_session=True
    )
    os.close(theirs)
    until(lambda: said() == 0, "a switch that is not held")

    def hold():
        os.write(ours, b" ")
        return said() == 1

    until(hold, "a held switch")
    until(lambda: said() == 0, "a released switch")
    until(hold, "a held switch again")
    os.write(ours, b"v")
    until(lambda: said() is not None and [0, 1] in said.pressed, "a vent")

    def reset():
        os.write(ours, b"r")
        said()
        return said.node.resets

    until(reset, "a reset")
    until(hold, "a held switch at last")
    os.close(ours)
    until(lambda: said() == 0, "the last word")
    assert process.wait(20.0) == 0
    silent = time.monotonic() + 0.2
    assert not any(said() for _ in iter(lambda: time.monotonic() < silent, False))
