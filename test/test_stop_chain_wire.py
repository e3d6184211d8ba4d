"""The stop chain on a real master: bits of digital terminals that share a byte, and the air."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from kit.bench import stopping_content
from kit.processes import until
from kit.wire import Emulator, cable

pytest.importorskip("pysoem", reason="pip install 'softcr[ethercat]'")
pytestmark = pytest.mark.network


@pytest.mark.parametrize("way", ["stop pressed", "power lost", "SIGKILL", "SIGSTOP", "cable off"])
def test_the_air_goes_off_and_the_chambers_exhaust(tmp_path, way):
    station = tmp_path / "stopping.yaml"
    station.write_text(yaml.safe_dump(stopping_content()))
    with cable("c") as wire:
        emulator = Emulator(wire, tmp_path / "log", "--station", station)
        script = Path(__file__).parent / "valve_process.py"
        command = [sys.executable, script, wire.near, station]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout.readline() == "filled\n"
            began = emulator.events("dump valve")
            assert began[-1]["air_on"]
            assert not began[-2]["air_on"]
            ended = time.monotonic()
            if way == "cable off":
                wire.unplug()
            elif way.startswith("SIG"):
                process.send_signal(getattr(signal, way))
            else:
                emulator.set(*way.split())
            off = until(lambda: emulator.events("dump valve", since=ended)[:1], "the air off")
            assert not off[0]["air_on"]
            if way != "power lost":  # valves without their supply close, and the air is off
                until(
                    lambda: [e for e in emulator.events("outputs", since=ended) if e["safe"]],
                    "exhaust voltage",
                )
            if way in ("stop pressed", "power lost"):
                said = "emergency stop" if way == "stop pressed" else "24 V missing"
                until(lambda: said in process.stdout.readline(), said)
            else:
                tripped = {e["terminal"] for e in emulator.events("watchdog", since=ended)}
                assert tripped == {"EL4004", "EL2004"}
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            emulator.stop()


def test_regulators_are_left_at_the_current_of_no_pressure_by_a_killed_host(tmp_path):
    with cable("g") as wire:
        faults = "3:0x8000:05=2, 3:0x8010:13=16000, 3:control=0x24"
        options = ("--station", "regulators", "--terminal-faults", faults)
        emulator = Emulator(wire, tmp_path / "log", *options)
        script = Path(__file__).parent / "valve_process.py"
        command = [sys.executable, script, wire.near, "regulators"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout.readline() == "filled\n"
            process.send_signal(signal.SIGKILL)
            killed = time.monotonic()
            until(
                lambda: [
                    event
                    for event in emulator.events("outputs", since=killed)
                    if event["safe"] and event["volts"] == [4.0] * 3
                ],
                "the current of no pressure",
            )
            until(lambda: emulator.events("dump valve", since=killed), "the air off")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            emulator.stop()
