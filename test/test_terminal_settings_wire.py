"""Wrong settings of terminals and a real master: mended or refused, and the voltage proves it."""

import signal
import time
from contextlib import closing, contextmanager

import numpy as np
import pytest
import yaml
from kit.processes import until
from kit.refusals import one_line
from kit.wire import Emulator, cable
from test_ethercat_wire import STATION, new_bus
from valve_process import filled

from softcr_hardware.ethercat.terminals import load_station
from softcr_models.errors import UserError
from softcr_models.files.config import config_directory
from softcr_tools.doctor.finding import Level
from softcr_tools.doctor.network import terminals

pytest.importorskip("pysoem", reason="pip install 'softcr[ethercat]'")
pytestmark = pytest.mark.network

ALL_WRONG = (
    "3:0x8000:05=2, "  # last output value
    "3:0x8010:05=1, 3:0x8010:14=1, "  # a ramp of 33 s
    "3:0x8020:13=32767, "  # fills
    "3:0x8000:01=1, 3:0x8000:11=9000, "  # user scale with an offset
    "3:0x8010:02=1, 3:0x8020:07=1, 3:0x8020:15=5000, 3:0x8000:08=0, "
    "3:control=0x24, 3:lost=1, "  # the watchdog off in the EEPROM, an answer lost
    "2:0x8000:06=1, 2:0x8010:01=1, 2:0x8010:12=32768"  # filter; user scale of a half
)
"""What somebody may have left in the terminals of a bench."""


@pytest.fixture(scope="module")
def wire():
    with cable("t") as made:
        yield made


@contextmanager
def emulated(cable, log, *options):
    """The emulator on the far end of a cable."""
    made = Emulator(cable, log, *options)
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def emulator(wire, tmp_path_factory):
    log = tmp_path_factory.mktemp("settings") / "terminals.jsonl"
    with emulated(wire, log, "--terminal-faults", ALL_WRONG) as made:
        yield made


def test_every_wrong_setting_is_mended_and_said(wire, emulator):
    bus, data = new_bus(wire.near)
    said = []
    bus._say = said.append
    with closing(bus):
        bus.open()
        assert bus.watchdog_armed
        told = "\n".join(said)
        for words in (
            "position 3 EL4004: mended: object 0x8000:05 (Watchdog) is 2 (last output value), must "
            "be 0 (default value)",
            "object 0x8020:13 (Default output) is 32767, must be 0",
            "EL3164: mended: object 0x8000:06 (Enable filter) is 1 (on), must be 0 (off)",
        ):
            assert words in told
        for _ in range(20):
            sample = bus.exchange(np.full(3, STATION.valve.closed))
        assert np.allclose(data.pressures(sample.volts), 0.0, atol=300.0)
        said.clear()
        bus.open()  # as after a loss: nothing to mend
        assert said == []


@pytest.mark.parametrize("way", ["SIGKILL", "SIGSTOP", "cable off"])
def test_whatever_silences_the_master_ends_at_exhaust_voltage(wire, emulator, way):
    dead = [STATION.valve.when_dead] * 3

    def vented():
        last = emulator.events("outputs", since=ended)[-1:]
        return last and last[0]["safe"] and last[0]["volts"] == dead

    try:
        with filled(wire.near) as process:
            ended = time.monotonic()
            if way == "cable off":
                wire.unplug()
            else:
                process.send_signal(getattr(signal, way))
            until(vented, "the voltage that the dead host leaves")
            assert emulator.events("watchdog", since=ended)
            time.sleep(0.3)  # it stays there
            assert vented()
    finally:
        wire.plug()


REFUSED = {
    "3:0x8000:05=2, 3:0x8000:05=refused": (
        r"position 3 EL4004: object 0x8000:05 \(Watchdog\) is 2 \(last output value\), must be 0 "
        r"\(default value\): the terminal refuses it"
    ),
    "3:0x8010:13=9000, 3:0x8010:13=kept, 3:no-restore": (
        r"position 3 EL4004: object 0x8010:13 \(Default output\) is 9000, must be 0: the terminal "
        "does not keep it"
    ),
    "2:0x8000:06=1, 2:0x8000:06=refused": (
        r"position 2 EL3164: object 0x8000:06 \(Enable filter\) is 1 \(on\), must be 0 \(off\)"
    ),
    "2:lost=1000": "position 2 EL3164: no answer about object 0x8000:01 in 3 attempts",
    "3:no-watchdog": (
        r"EL4004: still operational after 0\.150 s of silence: its output watchdog does not work"
    ),
}


@pytest.mark.parametrize("faults", REFUSED)
def test_a_terminal_that_cannot_be_mended_is_refused_in_one_line(tmp_path, faults):
    with (
        cable("r") as other,
        emulated(other, tmp_path / "log", "--terminal-faults", faults),
        closing(new_bus(other.near)[0]) as bus,
    ):
        with one_line(REFUSED[faults]):
            bus.open()
        assert not bus.watchdog_armed


def _wired(path, name=lambda name: name):
    """A station with a wire from the fourth output to the fourth input, as a file."""
    content = yaml.safe_load((config_directory() / "ethercat/licher2025.yaml").read_text())
    wire = {"output": {"terminal": 3, "channel": 4}, "input": {"terminal": 2, "channel": 4}}
    content["watchdog_wires"] = [wire]
    for terminal in content["terminals"]:
        terminal["name"] = name(terminal["name"])
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_wire_shows_what_nothing_can_read_and_a_wire_that_is_not_there_is_seen(tmp_path):
    there = _wired(tmp_path / "there.yaml")  # of the emulated bench
    # what the master knows of it
    unread = load_station(_wired(tmp_path / "unread.yaml", "{}-0099".format))
    with cable("v") as other:
        options = ("--station", there, "--terminal-faults", "3:0x8030:05=2")
        with emulated(other, tmp_path / "log", *options):
            says = (
                r"watchdog wire from EL4004-0099 channel 4 to EL3164-0099 channel 4: reads 5\.00 "
                r"after its watchdog, must be 0\.00"
            )
            with pytest.raises(UserError, match=says):
                new_bus(other.near, unread)[0].open()
            # known terminals are mended, and now the unknown ones are well
            for station in (load_station(there), unread):
                with closing(new_bus(other.near, station)[0]) as bus:
                    bus.open()
        with (
            emulated(other, tmp_path / "log2"),  # nobody has laid a wire
            pytest.raises(UserError, match=r"reads 0\.00 in operation, must be 5\.00"),
        ):
            new_bus(other.near, load_station(there))[0].open()


def test_the_doctor_reads_every_terminal_and_changes_none(tmp_path):
    wrong = "3:0x8000:05=2, 3:0x8000:13=5, 2:0x8000:06=1, 3:control=0x24"
    with cable("p") as other, emulated(other, tmp_path / "log", "--terminal-faults", wrong):
        for _ in range(2):  # the second time it finds the same
            coupler, inputs, outputs = terminals(other.near, "licher2025")
            assert coupler.level is Level.OK
            assert coupler.found == "EK1100, revision 0x00100000"
            assert (inputs.level, outputs.level) == (Level.WARN, Level.WARN)
            assert "21 settings read: object 0x8000:06 (Enable filter) is 1" in inputs.found
            assert "control 0x24 (watchdog off; corrected when" in outputs.found
            assert "0x8000:05 (Watchdog) is 2 (last output value)" in outputs.found
            assert "0x8000:13 (Default output) is 5, must be 0" in outputs.found
        with closing(new_bus(other.near)[0]) as bus:
            bus.open()  # a running master is left alone
            (busy,) = terminals(other.near, "licher2025")
            assert "is the EtherCAT master already" in busy.found
            assert bus.check() == ""
        assert [each.level for each in terminals(other.near, "licher2025")] == [Level.OK] * 3
