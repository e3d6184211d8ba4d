"""The stop chain on a real master: bits of digital terminals that share a byte, and the air."""

import signal
import time

import pytest
import yaml
from kit.bench import stopping_content
from kit.processes import until
from kit.wire import Emulator, cable
from valve_process import filled

pytest.importorskip("pysoem", reason="pip install 'softcr[ethercat]'")
pytestmark = pytest.mark.network


@pytest.mark.parametrize("way", ["stop pressed", "power lost", "SIGKILL", "SIGSTOP", "cable off"])
def test_the_air_goes_off_and_the_chambers_exhaust(tmp_path, way):
    station = tmp_path / "stopping.yaml"
    station.write_text(yaml.safe_dump(stopping_content()))
    with cable("c") as wire:
        emulator = Emulator(wire, tmp_path / "log", "--station", station)
        try:
            with filled(wire.near, station) as process:
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
                    until(lambda: safe_outputs(emulator, ended), "exhaust voltage")
                if way in ("stop pressed", "power lost"):
                    said = "emergency stop" if way == "stop pressed" else "24 V missing"
                    until(lambda: said in process.stdout.readline(), said)
                else:
                    tripped = {e["terminal"] for e in emulator.events("watchdog", since=ended)}
                    assert tripped == {"EL4004", "EL2004"}
        finally:
            emulator.stop()


def safe_outputs(emulator, since):
    """The voltages, or currents, of outputs that were safe."""
    return [e["volts"] for e in emulator.events("outputs", since=since) if e["safe"]]


def test_regulators_are_left_at_the_current_of_no_pressure_by_a_killed_host(tmp_path):
    with cable("g") as wire:
        faults = "3:0x8000:05=2, 3:0x8010:13=16000, 3:control=0x24"
        options = ("--station", "regulators", "--terminal-faults", faults)
        emulator = Emulator(wire, tmp_path / "log", *options)
        try:
            with filled(wire.near, "regulators") as process:
                process.send_signal(signal.SIGKILL)
                killed = time.monotonic()
                none = [4.0] * 3
                until(lambda: none in safe_outputs(emulator, killed), "the current of no pressure")
                until(lambda: emulator.events("dump valve", since=killed), "the air off")
        finally:
            emulator.stop()
