"""Bags written by BagRecording, read back by Bag: whole, killed, cut, damaged, on a full disk."""

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from kit.bags import CHAMBERS, QOS, TYPESTORE, joint_state
from kit.processes import until
from kit.refusals import one_line
from mcap.reader import make_reader
from rosbags.interfaces import QosReliability, QosTime
from rosbags.rosbag2 import Reader

from softcr_models.errors import UserError
from softcr_runtime.bags.message_bytes import cdr_of, header_stamp
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.recording import BagRecording, RecordedTopic, RecordingStatistics

SENSOR_DATA = QOS._replace(reliability=QosReliability.BEST_EFFORT)
PRESSURE = RecordedTopic("/pressure/state", "sensor_msgs/msg/JointState", SENSOR_DATA)
WRENCH = "force_torque/wrench"
POSE = RecordedTopic("/mocap/tip/pose", "geometry_msgs/msg/PoseStamped", SENSOR_DATA)

# what a test process of its own needs to write noise into a bag at argv[1]
WRITING_PROCESS = """
import resource, sys, time
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from test_recording import PRESSURE, write_noise
from softcr_runtime.bags.recording import BagRecording

recording = BagRecording(Path(sys.argv[1]), [PRESSURE])
"""


def noise(number: int) -> bytes:
    """A payload of 1 kB that nothing compresses."""
    return number.to_bytes(4, "little") + random.Random(number).randbytes(1020)


def write_noise(recording: BagRecording, *numbers: int) -> None:
    for number in range(*numbers):
        recording.write(PRESSURE.name, number, noise(number))


def pressure_payload(second: int) -> bytes:
    message = joint_state(10**9 * second + 5, [1e3 * second, -0.5, 0.0])
    return bytes(TYPESTORE.serialize_cdr(message, PRESSURE.type))


def record(directory: Path, count: int = 20) -> list[bytes]:
    recording = BagRecording(directory, [PRESSURE, POSE])
    payloads = [pressure_payload(second) for second in range(count)]
    for second, payload in enumerate(payloads):
        recording.write(PRESSURE.name, 10**9 * second + 7, payload)
    assert recording.close() == RecordingStatistics(count, waiting=0, lost=0, failure=None)
    return payloads


def run_process(body: str, bag: Path) -> subprocess.Popen:
    here = Path(__file__).resolve().parent
    code = WRITING_PROCESS + textwrap.dedent(body)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(bag), str(here), str(here.parent)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_messages_come_back_as_they_went_in_and_the_bag_is_what_rosbag2_expects(tmp_path):
    payloads = record(tmp_path / "bag")
    bag = Bag(tmp_path / "bag")
    messages = list(bag.messages("pressure/state"))
    assert [message.payload for message in messages] == payloads
    assert [message.time for message in messages] == [10**9 * k + 7 for k in range(20)]
    assert bag.damage is None
    decoded = messages[3].decode()
    assert (decoded.header.stamp.sec, decoded.header.stamp.nanosec) == (3, 5)
    assert decoded.name == CHAMBERS
    np.testing.assert_array_equal(decoded.effort, [3e3, -0.5, 0.0])
    with Reader(tmp_path / "bag") as reader:  # an independent reader, through metadata.yaml
        assert {c.topic: (c.msgtype, c.msgcount) for c in reader.connections} == {
            PRESSURE.name: (PRESSURE.type, 20),
            POSE.name: (POSE.type, 0),
        }
        assert all(c.ext.offered_qos_profiles == [SENSOR_DATA] for c in reader.connections)
        assert all(c.digest.startswith("RIHS01_") for c in reader.connections)
        assert reader.duration == 19 * 10**9 + 1
    with (tmp_path / "bag" / "bag.mcap").open("rb") as file:  # and through the index of the mcap
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        assert reader.get_header().profile == "ros2"
        assert summary.statistics.message_count == 20
        schema = next(s for s in summary.schemas.values() if s.name == PRESSURE.type)
        assert schema.encoding == "ros2msg"
        assert b"float64[] effort" in schema.data
        assert b"MSG: std_msgs/Header" in schema.data
        assert len(list(reader.iter_messages(topics=[PRESSURE.name]))) == 20


def test_a_killed_recorder_loses_nothing_that_was_committed(tmp_path):
    process = run_process(
        """
        write_noise(recording, 500)
        while recording.statistics.recorded < 500:
            time.sleep(0.01)
        write_noise(recording, 500, 1000)
        print(recording.statistics.recorded, flush=True)
        time.sleep(60)
        """,
        tmp_path / "bag",
    )
    committed = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert committed >= 500
    assert not (tmp_path / "bag" / "metadata.yaml").exists()
    bag = Bag(tmp_path / "bag")
    messages = list(bag.messages("pressure/state"))
    assert len(messages) >= committed
    assert [message.payload for message in messages] == [*map(noise, range(len(messages)))]
    assert "was not finished" in bag.damage


def test_a_file_that_may_not_grow_keeps_what_it_holds(tmp_path):
    limit = 9 << 20  # above the reserve, which is a file too
    process = run_process(
        f"""
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
        write_noise(recording, 20000)
        statistics = recording.close()
        print(statistics.recorded, statistics.lost, statistics.failure)
        """,
        tmp_path / "bag",
    )
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    *counts, failure = output.strip().split(maxsplit=2)
    recorded, lost = map(int, counts)
    assert recorded + lost == 20000
    assert 7000 < recorded < 20000
    assert str(tmp_path / "bag") in failure
    assert os.strerror(errno.EFBIG) in failure
    assert "\n" not in failure
    assert len([*Bag(tmp_path / "bag").messages("pressure/state")]) == recorded


@pytest.fixture
def small_disk(tmp_path):
    """A directory on a file system of 16 MiB."""
    directory = tmp_path / "disk"
    directory.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "softcr_test", directory], capture_output=True
    )
    if not mounted or mounted.returncode:
        pytest.skip("needs the right to mount a tmpfs")
    yield directory
    subprocess.run(["umount", directory], check=True)


def test_a_full_disk_still_gets_a_finished_bag(small_disk):
    recording = BagRecording(small_disk / "bag", [PRESSURE])
    write_noise(recording, 20000)
    statistics = recording.close()
    assert os.strerror(errno.ENOSPC) in statistics.failure
    assert 7000 < statistics.recorded < 20000
    assert statistics.recorded + statistics.lost == 20000
    with Reader(small_disk / "bag") as reader:
        assert reader.message_count == statistics.recorded
    assert Bag(small_disk / "bag").damage is None


def test_a_disk_that_is_full_already_is_refused_in_one_line(small_disk):
    (small_disk / "filling").write_bytes(bytes(12 << 20))
    with pytest.raises(UserError, match=r"cannot record to .*/bag: No space left on device"):
        BagRecording(small_disk / "bag", [PRESSURE])


def test_places_that_cannot_be_written_are_named(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "bag").mkdir()
    for place, reason in {"file/bag": "Not a directory", "bag": "exists already"}.items():
        with one_line(says=str(tmp_path / place)) as caught:
            BagRecording(tmp_path / place, [PRESSURE])
        assert reason in str(caught.value)


@pytest.mark.parametrize("compressed", [True, False])
def test_a_cut_chunk_is_read_up_to_the_cut(tmp_path, compressed):
    """The last of five chunks with 200 messages."""
    recording = BagRecording(tmp_path / "bag", [PRESSURE], compressed)
    for number in range(200):
        recording.write(PRESSURE.name, number, number.to_bytes(4, "little"))
        if number % 40 == 39:
            while recording.statistics.recorded <= number:
                time.sleep(0.001)
    recording.close()
    whole, path = (tmp_path / "bag" / name for name in ("bag.mcap", "cut.mcap"))
    content = whole.read_bytes()
    with whole.open("rb") as file:
        last = make_reader(file).get_summary().chunk_indexes[-1]
    if last.compression:  # one block, of which there is all or nothing
        end, count = last.chunk_start_offset + last.chunk_length // 2, 160
    else:
        end, count = content.rindex((150).to_bytes(4, "little") + b"\x05") + 4, 151
    path.write_bytes(content[:end])
    bag = Bag(path)
    found = [int.from_bytes(m.payload, "little") for m in bag.messages("pressure/state")]
    assert found == list(range(count))
    damage = f"was not finished; {count} of 200 messages, 0.0 s, were recovered"
    assert damage in bag.damage


def test_what_a_killed_recorder_left_in_a_write_ahead_log_is_read(tmp_path):
    code = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("PRAGMA journal_mode = WAL")
database.execute("CREATE TABLE topics (id INTEGER PRIMARY KEY, name TEXT, type TEXT)")
database.execute(
    "CREATE TABLE messages (id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB)"
)
database.execute("INSERT INTO topics VALUES (1, '/pressure/state', 'sensor_msgs/msg/JointState')")
for number in range(100):
    database.execute("INSERT INTO messages VALUES (NULL, 1, ?, ?)", (number, bytes(5000)))
database.commit()
os._exit(9)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "bag_0.db3")], check=False)
    assert (tmp_path / "bag_0.db3-wal").stat().st_size > 500_000
    bag = Bag(tmp_path)
    assert bag.topics["/pressure/state"].count == 100
    assert bag.damage is None


def test_what_is_missing_is_named(tmp_path):
    record(tmp_path / "run" / "bag", count=1)
    bag = Bag(tmp_path / "run")  # the directory of a run serves as well
    assert bag.find("mocap/tip/pose") is None
    with pytest.raises(UserError, match="no message on topic mocap/tip/pose; it holds /pre"):
        bag.messages("pressure/state", "mocap/tip/pose")
    with pytest.raises(UserError, match="nowhere: no such file"):
        Bag(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"no \.mcap or \.db3 file in this directory"):
        Bag(tmp_path / "empty")
    (tmp_path / "text.db3").write_text("not a data base")
    with pytest.raises(UserError, match=r"text\.db3 cannot be read"):
        Bag(tmp_path / "text.db3")


def test_two_robots_in_one_bag_are_not_mixed(tmp_path):
    names = ("/left/pressure/state", "/right/pressure/state")
    topics = [RecordedTopic(name, PRESSURE.type, SENSOR_DATA) for name in names]
    recording = BagRecording(tmp_path / "bag", topics)
    for name in names:
        recording.write(name, 1, pressure_payload(1))
    recording.close()
    bag = Bag(tmp_path / "bag")
    with pytest.raises(UserError, match="ambiguous: /left/pressure/state, /right/pressure/state"):
        bag.find("pressure/state")
    assert bag.find("/left/pressure/state") == "/left/pressure/state"


def test_a_payload_of_another_type_is_a_value_error(tmp_path):
    recording = BagRecording(tmp_path / "bag", [POSE])
    recording.write(POSE.name, 1, pressure_payload(1)[:10])
    recording.close()
    (message,) = Bag(tmp_path / "bag").messages("mocap/tip/pose")
    with pytest.raises(ValueError, match="/mocap/tip/pose: not a geometry_msgs/msg/PoseStamped"):
        message.decode()


@pytest.fixture
def recorder(tmp_path, monkeypatch):
    """A recorder node in this process, to a bag below tmp_path; inactive."""
    rclpy = pytest.importorskip("rclpy")
    from softcr_runtime.bags.recorder_node import RecorderNode

    monkeypatch.setattr(RecorderNode, "failure", None)
    rclpy.init()
    bag = rclpy.Parameter("bag", value=str(tmp_path / "bag"))
    node = RecorderNode(parameter_overrides=[bag])
    node.trigger_configure()
    yield node
    node.finish()
    node.destroy_node()
    rclpy.try_shutdown()


def publisher_of(node, topic: str):
    """A publisher that the node has found."""
    from softcr_runtime.wire.topics import TOPICS, qos

    publisher = node.create_publisher(TOPICS[topic].message_class(), topic, qos(topic))
    until(publisher.get_subscription_count, f"a subscription of {topic}", 10.0)
    return publisher


def test_the_node_records_what_was_on_the_wire(recorder, tmp_path):
    from softcr_runtime.wire.messages import pressures_to_message, wrench_to_message

    commands = publisher_of(recorder, "pressure/command")
    wrenches = publisher_of(recorder, WRENCH)
    recorder.trigger_activate()
    before = time.time_ns()
    for number in range(1, 51):
        commands.publish(pressures_to_message(np.array([number, 0.5]), ["a", "b"], number))
        wrenches.publish(wrench_to_message(np.arange(6.0), number))
        time.sleep(0.001)
    recorder.trigger_deactivate()
    recorder.trigger_cleanup()
    bag = Bag(tmp_path / "bag")
    assert bag.damage is None
    messages = list(bag.messages("pressure/command", WRENCH))
    sent = [m.decode() for m in messages if m.topic == "/pressure/command"]
    assert [message.effort.tolist() for message in sent] == [[k, 0.5] for k in range(1, 51)]
    assert bag.topics["/force_torque/wrench"].count == 50
    times = [message.time for message in messages]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= time.time_ns()
    command = messages[0]
    decoded = TYPESTORE.deserialize_cdr(command.payload, command.type)
    assert bytes(TYPESTORE.serialize_cdr(decoded, command.type)) == command.payload
    with Reader(tmp_path / "bag") as reader:
        connection = next(c for c in reader.connections if c.topic == "/pressure/command")
        (offered,) = connection.ext.offered_qos_profiles
        assert offered.reliability == QosReliability.RELIABLE
        assert offered.deadline == QosTime(0, round(2e9 / 70))


def written(recorder, tmp_path, received):
    """The wrenches of a bag, in order, of which this node heard these, stamped 1, 2, ... [ns]."""
    from softcr_runtime.blocks.sample import Sample
    from softcr_runtime.wire.messages import wrench_to_message

    letters = [
        Sample(WRENCH, moment, cdr_of(wrench_to_message(np.full(6, k), k)), 0.0)
        for k, moment in enumerate(received, 1)
    ]
    recorder._write(recorder._recording, letters)
    recorder.trigger_cleanup()
    return list(Bag(tmp_path / "bag").messages(WRENCH))


def test_messages_of_a_topic_keep_their_order_whatever_the_clocks_say(recorder, tmp_path):
    now = time.time_ns()
    received = [now, now - 100_000_000, now - 100_000_000, now + 10_000_000]
    messages = written(recorder, tmp_path, received)
    assert [header_stamp(message.payload) for message in messages] == [1, 2, 3, 4]
    times = [message.time for message in messages]
    assert times == sorted(set(times))
    assert times[3] - times[2] == pytest.approx(1e7, abs=1e6)


def test_in_lockstep_the_recorder_lives_in_the_time_of_clock(recorder, monkeypatch):
    from softcr_runtime.blocks.sample import Sample
    from softcr_runtime.wire.messages import clock_to_message

    settings = recorder.settings.model_copy(update={"mode": "lockstep"})
    monkeypatch.setattr(recorder, "settings", settings)
    assert recorder.present() == 0
    clock = Sample("/clock", time.time_ns(), cdr_of(clock_to_message(12_000_000_345)), 0.0)
    recorder._write(recorder._recording, [clock])
    assert recorder.present() == 12_000_000_345


def test_a_recorder_tells_of_itself_before_it_is_configured(tmp_path):
    rclpy = pytest.importorskip("rclpy")
    from softcr_runtime.bags.recorder_node import RecorderNode

    rclpy.init()
    node = RecorderNode(parameter_overrides=[rclpy.Parameter("mode", value="lockstep")])
    try:
        assert node.present() == 0
    finally:
        node.finish()
        node.destroy_node()
        rclpy.try_shutdown()


@pytest.mark.parametrize("step", [5.0, -5.0])
def test_times_in_a_bag_go_on_when_the_system_clock_is_set(recorder, tmp_path, monkeypatch, step):
    """Half of what arrived between two looks was received before the clock was set."""
    now = time.time_ns
    received = [now() + k * 10_000_000 for k in range(-3, 1)]
    shift = round(1e9 * step)
    monkeypatch.setattr(time, "time_ns", lambda: now() + shift)
    stamps = [*received[:2], *(moment + shift for moment in received[2:])]
    times = [message.time for message in written(recorder, tmp_path, stamps)]
    assert times == pytest.approx(received, abs=1e6)


def test_the_node_ends_when_the_disk_refuses(recorder, tmp_path, monkeypatch):
    from softcr_runtime.wire.diagnostics import ERROR
    from softcr_runtime.wire.messages import wrench_to_message

    def refuse(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    ended = threading.Event()
    recorder.on_finalized = ended.set
    wrenches = publisher_of(recorder, WRENCH)
    recorder.trigger_activate()
    monkeypatch.setattr("softcr_runtime.bags.recording._AppendedFile.commit", refuse)
    wrenches.publish(wrench_to_message(np.arange(6.0), 1))
    assert ended.wait(10.0)
    report = recorder._diagnostic_report()
    assert (report.level, report.message) == (ERROR, recorder.failure)
    assert f"recording to {tmp_path / 'bag'} stopped: No space left on device" in report.message


def test_a_bag_that_cannot_be_made_is_refused_by_configure(recorder, capfd):
    from rclpy.lifecycle import TransitionCallbackReturn

    recorder.trigger_cleanup()
    assert recorder.trigger_configure() == TransitionCallbackReturn.FAILURE  # the bag is there
    assert "bag exists already" in capfd.readouterr().err
