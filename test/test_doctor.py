"""The doctor: every check on facts that are made up; the facts on sockets and files of our own."""

import http.server
import json
import math
import socket
import struct
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from softcr_hardware.ethercat.datagrams import pass_slaves
from softcr_hardware.ethercat.interfaces import own_interface
from softcr_hardware.ethercat.roll_call import answered, roll_call
from softcr_hardware.ethercat.slave import EmulatedSlave
from softcr_hardware.ethercat.terminals import load_station
from softcr_hardware.nodes.valves import ValvesSettings
from softcr_tools import cli
from softcr_tools.doctor import gather
from softcr_tools.doctor.command import as_json, verdict
from softcr_tools.doctor.examination import INTERFACE, Patient, examine
from softcr_tools.doctor.finding import Finding, Level
from softcr_tools.doctor.machine import (
    ClockFacts,
    RealtimeFacts,
    SpaceFacts,
    check_clock_kept,
    check_clock_rate,
    check_clock_source,
    check_disk,
    check_kernel,
    check_locked_memory,
    check_processor,
    check_realtime_priority,
    check_shared_memory,
)
from softcr_tools.doctor.network import (
    DdsFacts,
    DeviceFacts,
    InterfaceFacts,
    PortFacts,
    TerminalFacts,
    check_device,
    check_discovery_range,
    check_domain,
    check_interface,
    check_port,
    check_raw_frames,
    check_terminals,
)
from softcr_tools.doctor.software import (
    CacheFacts,
    CalibrationFacts,
    PackageFacts,
    check_cache,
    check_calibration,
    check_extra,
    check_packages,
    check_ros,
)

OK, WARN, FAIL = Level

ADAPTER = InterfaceFacts("eth1", ("lo", "eth1"))
TERMINALS = TerminalFacts(("EK1100", "EL3164", "EL4004"), 3)
PORT = PortFacts("live view", "tcp 8080", "", WARN, "softcr view --port 8081")
DEVICE = DeviceFacts("OptiTrack server", "--optitrack", "10.0.0.2", "Motive, NatNet 4.1")
DDS = DdsFacts("42", "LOCALHOST", None, (32768, 60999))
CLOCKS = ClockFacts(0.1, 0.1, 2026, True, "tsc")
REALTIME = RealtimeFacts("", None, True, "6.1-rt", "performance", 4)
SPACE = SpaceFacts("results", 10**12, True, 3, 10**9)
PACKAGES = PackageFacts((), (), {"view": (), "ethercat": ("pysoem",)})
CACHE = CacheFacts(True, "/cache", True)
STATION = CalibrationFacts("valve station", "a.yaml", "", False, "measure them")


def extra_view(facts):
    return check_extra(facts, "view", "softcr view", WARN)


def extra_ethercat(facts):
    return check_extra(facts, "ethercat", "the valves", FAIL)


@pytest.mark.parametrize(
    ("check", "facts", "level", "found", "mend"),
    [
        (check_interface, ADAPTER, OK, "eth1: up, connected", ""),
        (check_interface, replace(ADAPTER, name="eth7"), FAIL, "there are lo, eth1", "--interface"),
        (check_interface, replace(ADAPTER, wireless=True), FAIL, "wireless", "--interface"),
        (check_interface, replace(ADAPTER, up=False), FAIL, "off", "sudo ip link set eth1 up"),
        (check_interface, replace(ADAPTER, carrier=False), FAIL, "other end", "EK1100"),
        (check_raw_frames, ADAPTER, OK, "permitted", ""),
        (
            check_raw_frames,
            replace(ADAPTER, raw_error="Operation not permitted"),
            FAIL,
            "Operation not permitted",
            "setcap cap_net_raw",
        ),
        (check_terminals, TERMINALS, OK, "3 answer", ""),
        (check_terminals, replace(TERMINALS, found=0), FAIL, "none answers", "24 V"),
        (check_terminals, replace(TERMINALS, found=2), FAIL, "2 answer, must be 3", "number 3"),
        (check_terminals, replace(TERMINALS, found=4), FAIL, "4 answer, must be 3", "--station"),
        (check_terminals, replace(TERMINALS, expected=()), OK, "3 answer", ""),
        (check_terminals, TerminalFacts(why_not="not permitted"), WARN, "not permitted", "above"),
        (check_terminals, TerminalFacts(why_not="process 7", in_use=True), OK, "process 7", ""),
        (check_port, PORT, OK, "tcp 8080: free", ""),
        (check_port, replace(PORT, error="in use"), WARN, "in use", "--port 8081"),
        (check_device, DEVICE, OK, "10.0.0.2: Motive, NatNet 4.1", ""),
        (check_device, replace(DEVICE, address=""), WARN, "not asked", "--optitrack ADDRESS"),
        (check_device, replace(DEVICE, error="no answer"), FAIL, "no answer", "ping 10.0.0.2"),
        (check_domain, DDS, OK, "42: ports from 17900", ""),
        (check_domain, replace(DDS, domain=None), WARN, "domain 0", "export ROS_DOMAIN_ID"),
        (check_domain, replace(DDS, domain="233"), FAIL, "0 to 232", "export ROS_DOMAIN_ID"),
        (check_domain, replace(DDS, domain="many"), FAIL, "many", "export ROS_DOMAIN_ID"),
        (check_domain, replace(DDS, domain="-1"), FAIL, "-1", "export ROS_DOMAIN_ID"),
        (check_domain, replace(DDS, domain="110"), WARN, "34900", "export ROS_DOMAIN_ID"),
        (check_discovery_range, DDS, OK, "this machine", ""),
        (check_discovery_range, replace(DDS, discovery_range=None), WARN, "not set", "LOCALHOST"),
        (check_discovery_range, replace(DDS, discovery_range="subnet"), WARN, "SUBNET", "LOCALH"),
        (check_discovery_range, replace(DDS, discovery_range="OFF"), FAIL, "not find", "LOCALH"),
        (check_discovery_range, replace(DDS, discovery_range="HERE"), FAIL, "one of", "LOCALHOST"),
        (check_discovery_range, replace(DDS, localhost_only="1"), WARN, "deprecated", "unset"),
        (check_clock_rate, CLOCKS, OK, "+0.000 ms", ""),
        (check_clock_rate, replace(CLOCKS, system_passed=0.2), FAIL, "+100.0 ms", "chrony"),
        (check_clock_rate, replace(CLOCKS, system_passed=-9.0), FAIL, "jumped", "chrony"),
        (check_clock_rate, replace(CLOCKS, system_passed=math.nan), FAIL, "jumped", "chrony"),
        (check_clock_rate, replace(CLOCKS, year=1970), FAIL, "1970", "timedatectl"),
        (check_clock_kept, CLOCKS, OK, "NTP", ""),
        (check_clock_kept, replace(CLOCKS, synchronised=False), WARN, "nobody", "set-ntp true"),
        (check_clock_kept, replace(CLOCKS, synchronised=None), WARN, "not say", "timedatectl"),
        (check_clock_source, CLOCKS, OK, "tsc", ""),
        (check_clock_source, replace(CLOCKS, source="hpet"), WARN, "slow to read", "tsc"),
        (check_realtime_priority, REALTIME, OK, "70", ""),
        (
            check_realtime_priority,
            replace(REALTIME, priority_error="Operation not permitted"),
            WARN,
            "Operation not permitted",
            "rtprio",
        ),
        (check_locked_memory, REALTIME, OK, "unlimited", ""),
        (check_locked_memory, replace(REALTIME, locked_memory=2**23), WARN, "8 MiB", "memlock"),
        (check_kernel, REALTIME, OK, "PREEMPT_RT", ""),
        (check_kernel, replace(REALTIME, preempt_rt=False), WARN, "6.1-rt", "linux-image-rt"),
        (check_processor, REALTIME, OK, "4 cores, performance", ""),
        (check_processor, replace(REALTIME, governor="powersave"), WARN, "powersave", "cpupower"),
        (check_processor, replace(REALTIME, cores=1), WARN, "one core", "taskset"),
        (check_disk, SPACE, OK, "1000.0 GB free in results", ""),
        (check_disk, replace(SPACE, free=5 * 10**9), WARN, "0.9 h", "remove old runs"),
        (check_disk, replace(SPACE, free=10**8), FAIL, "0.1 GB", "remove old runs"),
        (check_disk, replace(SPACE, writable=False), FAIL, "not be written", "chown"),
        (check_shared_memory, SPACE, OK, "3 segments", ""),
        (check_shared_memory, replace(SPACE, segments=500), WARN, "500", "rm /dev/shm"),
        (check_shared_memory, replace(SPACE, shared_free=10**6), WARN, "1 MB", "rm /dev/shm"),
        (check_packages, PACKAGES, OK, "all there", ""),
        (check_packages, replace(PACKAGES, missing=("numba>=1",)), FAIL, "numba>=1", "make setup"),
        (check_ros, PACKAGES, OK, "all there", ""),
        (check_ros, replace(PACKAGES, ros_missing=("rclpy",)), FAIL, "rclpy", "setup.bash"),
        (extra_view, PACKAGES, OK, "softcr view", ""),
        (extra_ethercat, PACKAGES, FAIL, "pysoem", "pip install 'softcr[ethercat]'"),
        (extra_ethercat, replace(PACKAGES, extra_missing={}), FAIL, "extra ethercat", "pip"),
        (check_cache, CACHE, OK, "/cache", ""),
        (check_cache, replace(CACHE, complete=False), WARN, "compiles", "softcr_models.warm_up"),
        (
            check_cache,
            replace(CACHE, complete=False, writable=False),
            FAIL,
            "not be written",
            "chown",
        ),
        (check_calibration, STATION, OK, "a.yaml", ""),
        (check_calibration, replace(STATION, error="a.yaml: gone"), FAIL, "gone", "edit a.yaml"),
        (check_calibration, replace(STATION, assumed=True), WARN, "[D]", "measure them"),
    ],
)
def test_check(check, facts, level, found, mend):
    finding = check(facts)
    assert finding.level is level
    assert found in finding.found
    assert mend in finding.mend
    assert "\n" not in finding.found + finding.mend


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=8))
def test_a_domain_is_a_number_of_the_standard_or_refused(text):
    finding = check_domain(replace(DDS, domain=text))
    number = int(text.strip()) if text.strip().isdecimal() else None
    if not text.strip():
        assert finding.level is WARN
    elif number is None or number > 232:
        assert finding.level is FAIL
    else:
        ports = set(range(7400 + 250 * number, 7400 + 250 * (number + 1)))
        taken = ports & set(range(32768, 61000))
        assert finding.level is (WARN if taken else OK)


def test_a_finding_that_is_not_ok_says_what_mends_it():
    with pytest.raises(ValueError, match="disk"):
        Finding("disk", WARN, "little")
    with pytest.raises(ValueError, match="disk"):
        Finding("disk", OK, "much", "nothing to do")


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
        facts = gather.optitrack_facts("127.0.0.1", port)
    assert struct.unpack_from("<H", asked[0]) == (0,)  # NAT_CONNECT
    assert (facts.error, facts.answer[:19]) == ("", "Motive, NatNet 4.1.")


@pytest.mark.parametrize(
    ("answer", "error"),
    [(b"\1", "nonsense"), (struct.pack("<HH", 4, 0), "not who it is"), (b"", "nonsense")],
)
def test_an_answer_that_is_none_of_motive_is_told(answer, error):
    with udp_server(answer) as (port, _):
        assert error in gather.optitrack_facts("127.0.0.1", port).error


def test_nobody_there_is_told():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    assert gather.optitrack_facts("127.0.0.1", port).error == "Connection refused"
    assert gather.force_torque_facts("127.0.0.1", port).error == "Connection refused"
    assert gather.force_torque_facts("no such host").error
    assert gather.optitrack_facts("").address == ""


@pytest.mark.parametrize(
    ("page", "error"),
    [(b"<netft><cfgcpf>1000000</cfgcpf></netft>", ""), (b"<html>a printer</html>", "calibration")],
)
def test_the_net_ft_box_is_asked_for_its_calibration(page, error):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/netftapi2.xml" else 404)
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        facts = gather.force_torque_facts("127.0.0.1", server.server_address[1])
        thread.join()
    assert error in facts.error
    assert bool(error) == bool(facts.error)


def test_a_taken_port_is_told_with_its_reason():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        assert gather.port_error(socket.SOCK_STREAM, "127.0.0.1", port) == "Address already in use"
    assert gather.port_error(socket.SOCK_STREAM, "127.0.0.1", port) == ""


def test_adapters_are_read_from_the_kernel():
    loopback = gather.interface_facts("lo")
    assert loopback.up
    assert loopback.carrier
    assert not loopback.wireless
    assert check_interface(gather.interface_facts("nosuch0")).level is FAIL


def test_terminals_on_an_adapter_are_counted_and_their_master_left_alone():
    facts = gather.terminal_facts("eth99", "licher2025")
    assert facts.expected == ("EK1100", "EL3164", "EL4004")
    assert facts.found is None
    assert facts.why_not
    with own_interface("eth98"):
        held = gather.terminal_facts("eth98", "licher2025")
    assert held.in_use
    assert "is the EtherCAT master already" in held.why_not


@given(st.binary(max_size=80))
def test_any_frame_is_the_answer_to_a_roll_call_or_none(frame):
    assert answered(frame) is None or len(frame) > 28


def test_a_roll_call_counts_the_slaves_it_passes_and_changes_none():
    slaves = [
        EmulatedSlave(terminal, index == 2, lambda *_, **__: None)
        for index, terminal in enumerate(load_station("licher2025").terminals)
    ]
    before = [slave.read(0, 0x1000) for slave in slaves]
    frame = roll_call(b"\x02\0\0\0\0\1")
    assert answered(frame) == 0
    assert answered(pass_slaves(frame, slaves, 0.0)) == 3
    assert [slave.read(0, 0x1000) for slave in slaves] == before


def test_space_is_that_of_the_nearest_directory_there_is(tmp_path):
    facts = gather.space_facts(tmp_path / "not" / "yet")
    assert facts.free > 0
    assert facts.writable


def test_calibration_files_are_loaded_and_searched_for_marks(tmp_path):
    assert check_calibration(gather.robot_facts("licher2025")).level is OK
    wrong = check_calibration(gather.robot_facts("nosuch"))
    assert wrong.level is FAIL
    assert "licher2025" in wrong.found  # which ones there are
    shipped = gather.station_facts("licher2025", "licher2025")
    assert check_calibration(shipped).level is WARN
    measured = tmp_path / "measured.yaml"
    measured.write_text(Path(shipped.path).read_text().replace("[D]", ""))
    assert check_calibration(gather.station_facts(str(measured), "licher2025")).level is OK
    measured.write_text("terminals: []")
    broken = check_calibration(gather.station_facts(str(measured), "licher2025"))
    assert broken.level is FAIL
    assert str(measured) in broken.mend


# --- the whole ----------------------------------------------------------------------------------

PATIENT = Patient(
    interface="nosuch0",
    view_port=8080,
)


def test_all_of_the_bench_is_looked_at_and_the_first_failure_named():
    findings = list(examine(PATIENT, hardware=True))
    subjects = [finding.subject for finding in findings]
    assert len(set(subjects)) == len(subjects)
    of_simulation = {finding.subject for finding in examine(PATIENT, hardware=False)}
    assert set(subjects) - of_simulation == {
        *("extra ethercat", "EtherCAT adapter", "EtherCAT frames", "EtherCAT terminals"),
        "valve station",
        *("OptiTrack server", "OptiTrack multicast", "cameras to base", "force-torque sensor"),
    }
    failed = [finding for finding in findings if finding.level is FAIL]
    assert f"first: {failed[0].subject}" in verdict(findings)
    assert json.loads(as_json(findings))["ok"] is False


def test_a_check_that_breaks_is_a_finding_and_the_others_go_on():
    findings = list(examine(PATIENT.model_copy(update={"results": None}), hardware=True))
    broken = [finding for finding in findings if finding.found.startswith("cannot be checked")]
    assert [finding.subject for finding in broken] == ["space"]
    assert findings[-1].subject == "force-torque sensor"


def test_the_command_says_it_to_programs_and_in_its_exit_code(capsys):
    code = cli.main(["doctor", "hardware", "--interface", "nosuch0", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (code, told["ok"]) == (1, False)
    rows = {row["subject"]: row for row in told["findings"]}
    assert rows["EtherCAT adapter"]["level"] == "FAIL"
    code = cli.main(["doctor", "simulation"])
    said = capsys.readouterr().out
    assert "EtherCAT" not in said
    assert code == (1 if "FAIL  " in said else 0)


def test_the_adapter_looked_at_is_that_of_the_valves():
    assert ValvesSettings().interface == INTERFACE
