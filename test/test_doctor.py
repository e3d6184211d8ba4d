"""The doctor: every check on facts that are made up; the facts on sockets and files of our own."""

import json
import math
import socket
import struct
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.processes import free_port, running

from softcr_hardware.ethercat.datagrams import pass_slaves
from softcr_hardware.ethercat.interfaces import own_interface
from softcr_hardware.ethercat.slave import EmulatedSlave
from softcr_hardware.ethercat.terminal_count import answered, counting_frame
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.force_torque.box import BoxSettings
from softcr_hardware.force_torque.emulator import NetFtBox, NetFtEmulator
from softcr_hardware.force_torque.mounting import Mounting, kept_bias, save_mounting
from softcr_hardware.nodes.valves import ValvesSettings
from softcr_hardware.optitrack.calibration import load_calibration
from softcr_hardware.optitrack.emulator import MotiveEmulator, MotiveServer
from softcr_tools import cli
from softcr_tools.doctor import machine, network, sensors, software, supply
from softcr_tools.doctor.command import INTERFACE, Patient, as_json, examine, verdict
from softcr_tools.doctor.finding import Level

OK, WARN, FAIL = Level
MODULES = (machine, network, sensors, software, supply)

WIRED = {"there": ("lo", "eth1"), "wireless": False, "up": True, "carrier": True}
ADAPTER = {"name": "eth1", **WIRED}
TERMINALS = {"expected": ("EK1100", "EL3164", "EL4004"), "found": 3}
PORT = {
    "use": "live view", "port": "tcp 8080", "error": "", "level": WARN,
    "mend": "softcr view --port 8081",
}  # fmt: skip
DEVICE = {
    "name": "OptiTrack server", "option": "--optitrack", "address": "10.0.0.2",
    "answer": "Motive, NatNet 4.1", "error": "",
}  # fmt: skip
DOMAIN = {"domain": "42", "ephemeral_ports": (32768, 60999)}
RANGE = {"discovery_range": "LOCALHOST", "localhost_only": None}
CLOCKS = {"monotonic_passed": 0.1, "system_passed": 0.1, "year": 2026}
KERNEL = {"release": "6.1-rt", "preempt_rt": True}
PROCESSOR = {"cores": 4, "governor": "performance"}
DISK = {"directory": "results", "free": 10**12, "writable": True}
SHARED = {"segments": 3, "free": 10**9}
VIEW = {"missing": [], "extra": "view", "use": "softcr view", "level": WARN}
ETHERCAT = {"missing": ["pysoem"], "extra": "ethercat", "use": "the valves", "level": FAIL}
CACHE = {"complete": True, "directory": "/cache", "writable": True}
RUNS = {"running": ["/", "/robot1"], "domain": 7, "namespace": "robot1"}
SUPPLY = {
    "supply": 1.05e5, "maximum": 1e5, "recommended": 1.05e5, "refused": "",
    "equipment": ["no dump valve"],
}  # fmt: skip
FILE = {"what": "valve station", "path": "a.yaml", "how": "measure them"}
STATION = FILE | {"error": "", "assumed": False}


@pytest.mark.parametrize(("check", "facts", "level", "found", "mend"), [
    ("interface", ADAPTER, OK, "eth1: up, connected", ""),
    ("interface", ADAPTER | {"name": "eth7"}, FAIL, "there are lo, eth1", "--interface"),
    ("interface", ADAPTER | {"wireless": True}, FAIL, "wireless", "--interface"),
    ("interface", ADAPTER | {"up": False}, FAIL, "off", "sudo ip link set eth1 up"),
    ("interface", ADAPTER | {"carrier": False}, FAIL, "other end", "EK1100"),
    ("raw_frames", {"error": ""}, OK, "permitted", ""),
    ("raw_frames", {"error": "denied"}, FAIL, "denied", "setcap cap_net_raw"),
    ("terminals", TERMINALS, OK, "3 answer", ""),
    ("terminals", TERMINALS | {"found": 0}, FAIL, "none answers", "24 V"),
    ("terminals", TERMINALS | {"found": 2}, FAIL, "2 answer, must be 3", "number 3"),
    ("terminals", TERMINALS | {"found": 4}, FAIL, "4 answer, must be 3", "--station"),
    ("terminals", TERMINALS | {"expected": ()}, OK, "3 answer", ""),
    ("terminals", {"why_not": "not permitted"}, WARN, "not permitted", "frames first"),
    ("terminals", {"why_not": "process 7", "in_use": True}, OK, "process 7", ""),
    ("port", PORT, OK, "tcp 8080: free", ""),
    ("port", PORT | {"error": "in use"}, WARN, "in use", "--port 8081"),
    ("device", DEVICE, OK, "10.0.0.2: Motive, NatNet 4.1", ""),
    ("device", DEVICE | {"address": ""}, WARN, "not asked", "--optitrack ADDRESS"),
    ("device", DEVICE | {"error": "no answer"}, FAIL, "no answer", "ping 10.0.0.2"),
    ("domain", DOMAIN, OK, "42: ports from 17900", ""),
    ("domain", DOMAIN | {"domain": None}, WARN, "domain 0", "export ROS_DOMAIN_ID"),
    ("domain", DOMAIN | {"domain": "233"}, FAIL, "233: must be a whole number from 0 to 232",
     "export ROS_DOMAIN_ID"),
    ("domain", DOMAIN | {"domain": "110"}, WARN, "34900", "export ROS_DOMAIN_ID"),
    ("security", {"error": "", "strategy": "Enforce"}, OK, "with their keys", ""),
    ("security", {"error": "no keys", "strategy": "Enforce"}, FAIL, "no keys", "wheels"),
    ("security", {"error": "", "strategy": ""}, WARN, "without keys", "Enforce"),
    ("discovery_range", RANGE, OK, "this machine", ""),
    ("discovery_range", RANGE | {"discovery_range": None}, WARN, "not set", "LOCALHOST"),
    ("discovery_range", RANGE | {"discovery_range": "subnet"}, WARN, "SUBNET", "LOCALH"),
    ("discovery_range", RANGE | {"discovery_range": "OFF"}, FAIL, "not find", "LOCALH"),
    ("discovery_range", RANGE | {"discovery_range": "HERE"}, FAIL, "one of", "LOCALHOST"),
    ("discovery_range", RANGE | {"localhost_only": "1"}, WARN, "deprecated", "unset"),
    ("clock_rate", CLOCKS, OK, "+0.000 ms", ""),
    ("clock_rate", CLOCKS | {"system_passed": 0.2}, FAIL, "+100.0 ms", "chrony"),
    ("clock_rate", CLOCKS | {"system_passed": -9.0}, FAIL, "jumped", "chrony"),
    ("clock_rate", CLOCKS | {"system_passed": math.nan}, FAIL, "jumped", "chrony"),
    ("clock_rate", CLOCKS | {"year": 1970}, FAIL, "1970", "timedatectl"),
    ("clock_kept", {"synchronised": True}, OK, "NTP", ""),
    ("clock_kept", {"synchronised": False}, WARN, "not synchronised", "set-ntp true"),
    ("clock_kept", {"synchronised": None}, WARN, "not say", "timedatectl"),
    ("clock_source", {"source": "tsc"}, OK, "tsc", ""),
    ("clock_source", {"source": "hpet"}, WARN, "slow to read", "tsc"),
    ("realtime_priority", {"error": ""}, OK, "70", ""),
    ("realtime_priority", {"error": "not permitted"}, WARN, "not permitted", "rtprio"),
    ("locked_memory", {"allowed": None}, OK, "unlimited", ""),
    ("locked_memory", {"allowed": 2**23}, WARN, "8 MiB", "memlock"),
    ("kernel", KERNEL, OK, "PREEMPT_RT", ""),
    ("kernel", KERNEL | {"preempt_rt": False}, WARN, "6.1-rt", "linux-image-rt"),
    ("processor", PROCESSOR, OK, "4 cores, performance", ""),
    ("processor", PROCESSOR | {"governor": "powersave"}, WARN, "powersave", "cpupower"),
    ("processor", PROCESSOR | {"cores": 1}, WARN, "one core", "taskset"),
    ("disk", DISK, OK, "1000.0 GB free in results", ""),
    ("disk", DISK | {"free": 5 * 10**9}, WARN, "0.9 h", "remove old runs"),
    ("disk", DISK | {"free": 10**8}, FAIL, "0.1 GB", "remove old runs"),
    ("disk", DISK | {"writable": False}, FAIL, "not writable", "chown"),
    ("shared_memory", SHARED, OK, "3 segments", ""),
    ("shared_memory", SHARED | {"segments": 500}, WARN, "500", "rm /dev/shm"),
    ("shared_memory", SHARED | {"free": 10**6}, WARN, "1 MB", "rm /dev/shm"),
    ("packages", {"missing": []}, OK, "complete", ""),
    ("packages", {"missing": ["numba>=1"]}, FAIL, "numba>=1", "make setup"),
    ("ros", {"missing": []}, OK, "complete", ""),
    ("ros", {"missing": ["rclpy"]}, FAIL, "rclpy", "setup.bash"),
    ("extra", VIEW, OK, "softcr view", ""),
    ("extra", ETHERCAT, FAIL, "pysoem", "pip install 'softcr[ethercat]'"),
    ("extra", ETHERCAT | {"missing": None}, FAIL, "extra ethercat", "pip"),
    ("cache", CACHE, OK, "/cache", ""),
    ("cache", CACHE | {"complete": False}, WARN, "compiles", "softcr_models.warm_up"),
    ("cache", CACHE | {"complete": False, "writable": False}, FAIL, "not writable", "chown"),
    ("calibration", STATION, OK, "a.yaml", ""),
    ("calibration", STATION | {"error": "a.yaml: gone"}, FAIL, "gone", "edit a.yaml"),
    ("calibration", STATION | {"assumed": True}, WARN, "[D]", "measure them"),
    ("air_supply", SUPPLY, OK, "105 kPa, highest command 100 kPa; no dump valve", ""),
    ("air_supply", SUPPLY | {"supply": 1.5e5}, WARN, "fills its chamber to 150", "105"),
    ("air_supply", SUPPLY | {"refused": "too high"}, FAIL, "too high", "below 108 kPa"),
    ("runs", RUNS | {"running": []}, OK, "none in ROS domain 7", ""),
    ("runs", RUNS | {"running": ["/"]}, OK, "run /; /robot1 is free", ""),
    ("runs", RUNS, WARN, "domain 7, namespace /robot1: a second one", "--namespace"),
    ("runs", RUNS | {"namespace": "robot2"}, OK, "/robot2 is free", ""),
])  # fmt: skip
def test_check(check, facts, level, found, mend):
    (function,) = (each for module in MODULES if (each := vars(module).get(f"check_{check}")))
    finding = function(**facts)
    assert finding.level is level
    assert found in finding.found
    assert mend in finding.mend
    assert "\n" not in finding.found + finding.mend


@given(st.text(max_size=8))
def test_a_domain_is_a_number_of_the_standard_or_refused(text):
    finding = network.check_domain(text, DOMAIN["ephemeral_ports"])
    number = int(text.strip()) if text.strip().isdecimal() else None
    if not text.strip():
        assert finding.level is WARN
    elif number is None or number > 232:
        assert finding.level is FAIL
    else:
        ports = set(range(7400 + 250 * number, 7400 + 250 * (number + 1)))
        taken = ports & set(range(32768, 61000))
        assert finding.level is (WARN if taken else OK)


# --- facts --------------------------------------------------------------------------------------


@contextmanager
def udp_server(answer: bytes):
    """The port of a server that gives one answer to every datagram; what it was asked."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(20.0)
        asked = []

        def serve():
            question, sender = server.recvfrom(1000)
            asked.append(question)
            server.sendto(answer, sender)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1], asked
        thread.join()


def server_info(name: bytes) -> bytes:
    """As Motive answers a NAT_CONNECT request (NatNet SDK, NAT_SERVERINFO)."""
    clock = struct.pack("<QHB4s", 10_000_000, 1511, 1, bytes([239, 255, 42, 99]))
    payload = name.ljust(256, b"\0") + bytes([3, 1, 0, 0]) + bytes([4, 1, 0, 0]) + clock
    return struct.pack("<HH", 1, len(payload)) + payload


def test_motive_is_asked_who_it_is():
    with udp_server(server_info(b"Motive")) as (port, asked):
        finding, frames = sensors.optitrack("127.0.0.1", port)
    assert frames.level is FAIL
    assert frames.found == "none within 1.2 s, multicast to 239.255.42.99 port 1511"
    assert struct.unpack_from("<H", asked[0]) == (0,)  # NAT_CONNECT
    assert finding.level is OK
    assert finding.found.startswith("127.0.0.1: Motive, NatNet 4.1.")


@pytest.mark.parametrize(
    ("answer", "error"),
    [(b"\1", "invalid data"), (struct.pack("<HH", 4, 0), "not identify"), (b"", "invalid data")],
)
def test_an_answer_that_is_none_of_motive_is_told(answer, error):
    with udp_server(answer) as (port, _):
        (finding,) = sensors.optitrack("127.0.0.1", port)
    assert finding.level is FAIL
    assert error in finding.found


def test_nobody_there_is_told():
    port = free_port()
    boxes = (sensors.force_torque(f"127.0.0.1:{port}"), sensors.force_torque("127.0.0.1", port))
    for (finding,) in (*boxes, sensors.optitrack("127.0.0.1", port)):
        assert finding.found.endswith("Connection refused")
    assert sensors.force_torque("no such host")[0].level is FAIL
    assert sensors.optitrack("")[0].level is WARN


def test_motives_frames_are_listened_to():
    tip = np.eye(4)
    server = MotiveServer(lambda _: tip, load_calibration("licher2025"), start=time.monotonic())
    with running(MotiveEmulator(server, port=0)) as motive:
        says = {}
        for settings in ({}, {"stamps": "received"}, {"stamps": "none"}, {"mode": "edit"}):
            for name, value in ({"stamps": "mid-exposure", "mode": "live"} | settings).items():
                motive.set(name, value)
            says[str(settings)] = sensors.optitrack("127.0.0.1", motive.port)[1]
    plain, received, none, edit = says.values()
    assert [each.level for each in (plain, received, none, edit)] == [OK, WARN, FAIL, FAIL]
    assert plain.found.startswith("unicast, ")
    assert plain.found.endswith("Hz, live, stamps mid-exposure; tip")
    assert "received_latency" in received.mend
    assert "no pose can be timed" in none.found
    assert edit.mend == "switch Motive to Live"


def test_the_boxs_settings_are_asked_for(tmp_path):
    box = NetFtBox(lambda _: np.zeros(6), start=time.monotonic())
    mine = tmp_path / "mine.yaml"
    save_mounting(mine, Mounting(calibration_serial="FT1"))
    with running(NetFtEmulator(box, rdt_port=0, http_port=0)) as emulator:
        address = f"127.0.0.1:{emulator.http_port}"
        who, plain = sensors.force_torque(address, mounting="licher2025")
        assert "Net F/T (emulated), serial LOT0000, firmware 2.2.59" in who.found
        assert "configuration 0 (emulated), calibration FT00000, 1000 records/s" in who.found
        assert plain.level is OK
        assert plain.found == "no tool transform, no software bias, no filter; no bias kept"
        other = sensors.force_torque(address, mounting=str(mine))[1]
        assert other.level is FAIL
        assert other.found == f"the box has calibration FT00000, {mine} is of FT1"
        found = {}
        for name, value in (("tool-transform", "0;0;5;0;0;0"), ("filter", "4")):
            emulator.set(name, value)
            found[name] = sensors.force_torque(address, mounting="licher2025")[1]
            emulator.set("tool-transform", "0;0;0;0;0;0")
        assert found["tool-transform"].level is FAIL
        assert "tool transform 0 0 5 mm, 0 0 0 degrees" in found["tool-transform"].found
        assert found["filter"].level is WARN
        emulator.set("filter", "0")
        box._bias = np.ones(6)
        biased = sensors.force_torque(address, mounting="nosuch")[1]  # told of beside its file
        assert biased.level is WARN
        assert "software bias 100 100 100 100 100 100" in biased.found
        bias = kept_bias(np.ones(6), "rest", BoxSettings(software_bias=(0,) * 6))
        save_mounting(mine, Mounting(bias=bias))
        spoiled = sensors.force_torque(address, mounting=str(mine))[1]
        assert "was taken with another software bias in the box" in spoiled.found


@pytest.mark.parametrize(("address", "parts"), [
    ("192.168.1.1", ("192.168.1.1", None)), ("box:8080", ("box", 8080)),
    ("[::1]:81", ("::1", 81)), ("::1", None), ("fe80::1", None), ("box:port", None),
    ("box:99999", None), ("http://box/", None), ("[::1", None), (":80", None), ("a b@c", None),
])  # fmt: skip
def test_an_address_is_host_and_port_or_one_line(address, parts, capsys):
    if parts:
        assert sensors.host_and_port(address) == parts
        return
    assert cli.main(["doctor", "simulation", "--force-torque", address]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"--force-torque {address}: must be HOST or HOST:PORT" in line


def test_a_taken_port_is_told_with_its_reason():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        assert network.port_error(socket.SOCK_STREAM, "127.0.0.1", port) == "Address already in use"
    assert network.port_error(socket.SOCK_STREAM, "127.0.0.1", port) == ""


def test_adapters_are_read_from_the_kernel_and_their_terminals_counted_without_a_master():
    assert network.ethercat("lo", "licher2025")[0].found == "lo: up, connected"
    assert network.ethercat("nosuch0", "licher2025")[0].level is FAIL
    facts = network.terminal_facts("eth99", "licher2025")
    assert facts["expected"] == ("EK1100", "EL3164", "EL4004")
    assert "found" not in facts
    assert facts["why_not"]
    with own_interface("eth98"):
        held = network.terminal_facts("eth98", "licher2025")
    assert held["in_use"]
    assert "is the EtherCAT master already" in held["why_not"]


@given(st.binary(max_size=80))
def test_any_frame_is_the_answer_to_a_roll_call_or_none(frame):
    assert answered(frame) is None or len(frame) > 28


def test_a_roll_call_counts_the_slaves_it_passes_and_changes_none():
    terminals = enumerate(load_station("licher2025").terminals)
    slaves = [EmulatedSlave(each, index == 2, lambda *_, **__: None) for index, each in terminals]
    before = [slave.read(0, 0x1000) for slave in slaves]
    frame = counting_frame(b"\x02\0\0\0\0\1")
    assert answered(frame) == 0
    assert answered(pass_slaves(frame, slaves, 0.0)) == 3
    assert [slave.read(0, 0x1000) for slave in slaves] == before


def test_space_is_that_of_the_nearest_directory_there_is(tmp_path):
    finding, _ = machine.space(tmp_path / "not" / "yet")
    assert "not writable" not in finding.found
    assert not finding.found.startswith("0.0 GB")


def test_calibration_files_are_loaded_and_searched_for_marks(tmp_path):
    assert software.robot("licher2025").level is OK
    wrong = software.robot("nosuch")
    assert wrong.level is FAIL
    assert "licher2025" in wrong.found  # which ones there are
    assert supply.air_supply("licher2025", "licher2025").level is OK
    assert supply.air_supply("nosuch", "licher2025").level is FAIL
    shipped = software.station("licher2025", "licher2025")
    assert shipped.level is WARN
    path = Path(shipped.found.partition(":")[0])
    measured = tmp_path / "measured.yaml"
    measured.write_text(path.read_text().replace("[D]", ""))
    assert software.station(str(measured), "licher2025").level is OK
    measured.write_text("terminals: []")
    broken = software.station(str(measured), "licher2025")
    assert broken.level is FAIL
    assert str(measured) in broken.mend


# --- the whole ----------------------------------------------------------------------------------


def test_all_of_the_bench_is_looked_at_and_the_first_failure_named():
    """One check breaks: that is a finding, and the others go on."""
    patient = Patient(interface="nosuch0", view_port=8080).model_copy(update={"results": None})
    findings = list(examine(patient, hardware=True))
    broken = [each.subject for each in findings if each.found.startswith("cannot be checked")]
    assert broken == ["space"]
    assert findings[-1].subject == "force-torque mounting"
    subjects = {finding.subject for finding in findings}
    assert subjects - {finding.subject for finding in examine(patient, hardware=False)} == {
        *("extra ethercat", "EtherCAT adapter", "EtherCAT frames", "EtherCAT terminals"),
        *("valve station", "air supply", "OptiTrack server", "OptiTrack multicast"),
        *("cameras to base", "force-torque sensor", "force-torque mounting"),
    }
    failed = next(finding for finding in findings if finding.level is FAIL)
    assert f"first: {failed.subject}" in verdict(findings)
    assert json.loads(as_json(findings))["ok"] is False


def test_the_command_says_it_to_programs_and_in_its_exit_code(capsys):
    code = cli.main(["doctor", "hardware", "--interface", "nosuch0", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (code, told["ok"]) == (1, False)
    rows = {row["subject"]: row for row in told["findings"]}
    assert len(rows) == len(told["findings"])
    assert rows["EtherCAT adapter"]["level"] == "FAIL"
    code = cli.main(["doctor", "simulation"])
    said = capsys.readouterr().out
    assert "EtherCAT" not in said
    assert code == (1 if "FAIL  " in said else 0)


def test_the_adapter_looked_at_is_that_of_the_valves():
    assert ValvesSettings().interface == INTERFACE
