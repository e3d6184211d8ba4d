"""Replays: equal to the bit, from every kind of bag; what is missing is said; onto the wire."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import yaml
import zstandard
from domains import fresh_domain
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.bags import ESTIMATE_OFFSET, closed_loop, pose_with_covariance, write_bag
from kit.processes import SOFTCR, Peer
from kit.rosbags_bags import write_with_rosbags as write
from rich.console import Console
from rosbags.rosbag2 import CompressionMode, StoragePlugin

from softcr_control.controller import ControllerBlock
from softcr_estimation.estimator import EstimatorBlock
from softcr_models import CosseratRod, load_robot
from softcr_models.errors import UserError
from softcr_runtime.bags.message_bytes import cdr_of, header_stamp, same_content
from softcr_runtime.bags.reading import Bag, BagMessage
from softcr_runtime.bags.signals import read_signals
from softcr_runtime.blocks.block import BlockBase, Input, Output
from softcr_runtime.blocks.budget import Budget, TimedBudget
from softcr_runtime.blocks.join import Tick
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.blocks.system import Computing
from softcr_runtime.blocks.tick_records import (
    RESET,
    TICK,
    TickRecord,
    record_of,
    records_from_message,
    records_to_message,
)
from softcr_runtime.blocks.tick_records import TOPIC as TICKS
from softcr_runtime.blocks.values import Pose, ReferenceRows, StateEstimate
from softcr_runtime.blocks.virtual_run import Log, run_system
from softcr_runtime.replay.bag_replay import Counts, ReplayTask
from softcr_runtime.replay.recorded_messages import RecordedSamples
from softcr_runtime.replay.replayed import Replayed, ReplayedBlock, ReplayExecutor
from softcr_runtime.settings.node_settings import NodeSettings, setting_values
from softcr_runtime.wire.codecs import Expected, codec
from softcr_runtime.wire.diagnostics import DiagnosticReport, diagnostics_to_message
from softcr_runtime.wire.messages import pose_to_message, pressures_to_message
from softcr_runtime.wire.topics import TOPICS
from softcr_tools import cli
from softcr_tools.replay.offline import compare, replay
from softcr_tools.replay.online import CLOCK_PERIOD, schedule
from softcr_tools.running.run_options import SimulationOptions
from softcr_tools.running.systems import simulation_system

ROBOT = load_robot("licher2025")
PRESSURES, POSES, SENT = "pressure/state", "mocap/tip/pose", "pressure/sent"
ESTIMATOR = "softcr_estimation.estimator:EstimatorBlock"
PERIOD = 1 / 70  # [s]
START = 1_700_000_000_000_000_000  # [ns]
MCAP, SQLITE = StoragePlugin.MCAP, StoragePlugin.SQLITE3


class Entry(NamedTuple):
    """A message to record: topic, type, time of reception [ns], CDR bytes."""

    topic: str
    type: str
    time: int
    payload: bytes

    def __repr__(self) -> str:
        return f"<{self.topic}>"  # pytest and hypothesis print hundreds


def entry_of(topic: str, time: int, message) -> Entry:
    return Entry(f"/{topic.lstrip('/')}", TOPICS[topic].type, time, cdr_of(message))


@pytest.fixture(scope="module")
def estimator() -> EstimatorBlock:
    return EstimatorBlock(ROBOT, EstimatorBlock.settings_of({}))


@pytest.fixture(scope="module")
def tips() -> dict[int, tuple[np.ndarray, Pose]]:
    """Pressures (3,) and tip poses of a slow swing by stamp [ns]."""
    rod, samples = CosseratRod(ROBOT, 5), {}
    for cycle in range(90):
        pressures = 2e4 + 1e4 * np.sin(0.05 * cycle + np.array([0.0, 2.1, 4.2]))
        stamp = START + round(1e9 * PERIOD * cycle)
        samples[stamp] = pressures, Pose.of(rod.tip_pose(rod.equilibrium(pressures)))
    return samples


def lived(
    block, samples, unpaired=(), left_out=(), tells=True, delay=lambda stamp: 0
) -> list[Entry]:
    """What a recorder would have of an estimator that missed some poses and samples.

    All inputs are recorded, a pose `delay` [ns] after its pressures. Only the estimator's tick
    records say what it used, where it `tells` of itself.
    """
    block.reset()
    entries = []
    records = [TickRecord(RESET, START)]
    for number, (stamp, (pressures, pose)) in enumerate(samples.items()):
        message = pressures_to_message(pressures, ROBOT.chamber_names, stamp)
        entries.append(entry_of(PRESSURES, stamp + 10**6, message))
        late = stamp + 10**6 + delay(stamp)
        entries.append(entry_of(POSES, late, pose_to_message(pose, stamp)))
        if number in left_out:
            continue
        used = {PRESSURES: pressures} | ({} if number in unpaired else {POSES: pose})
        records.append(TickRecord(TICK, stamp, 0.002, dict.fromkeys(used, (stamp, stamp))))
        samples_of = {topic: Sample(topic, stamp, value, 0.0) for topic, value in used.items()}
        for output in block.tick(stamp, samples_of):
            message = codec(output.topic, block.expected).encode(output.value, stamp)
            entries.append(entry_of(output.topic, stamp + 3 * 10**6, message))
    stamp = max(samples) + 4 * 10**6
    if tells:
        told = records_to_message("estimator", (PRESSURES, POSES), records)
        entries.append(entry_of(TICKS, stamp, told))
        values = {"settings": setting_values(block.settings), "block": ESTIMATOR}
        report = DiagnosticReport("estimator: loop", 0, "", ROBOT.name, values)
        entries.append(entry_of("/diagnostics", stamp, diagnostics_to_message([report], stamp)))
    return sorted(entries, key=lambda entry: entry.time)


def replayed(bag: Path, *arguments: str) -> dict:
    """Replay as a person does; the comparison it leaves."""
    output = bag.parent / f"{bag.stem}-replay"
    shutil.rmtree(output, ignore_errors=True)
    assert cli.main(["replay", str(bag), *arguments]) == 0
    content = json.loads((output / "comparison.json").read_text())
    # rosbags, which writes most of these bags, writes none
    content["notes"] = [note for note in content["notes"] if "no checksums" not in note]
    return content


def rods(bag: Path) -> list[bytes]:
    return [message.payload for message in Bag(bag).messages("estimate/rod")]


# --- the bits -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_the_estimator_told_brings_its_bits_back(tmp_path, estimator, tips, seed):
    random = np.random.default_rng(seed)
    # late poses, samples left out, a camera that is gone for half a second; and from the times of
    # the recorder nothing of it can be seen
    unpaired = {*random.choice(90, 12, replace=False).tolist(), *range(40, 75)}
    left_out = set(random.choice(np.arange(1, 90), 10, replace=False).tolist())
    jitter = dict(zip(tips, (10**6 * random.integers(-9, 5, len(tips))).tolist(), strict=True))
    entries = lived(estimator, tips, unpaired, left_out, delay=jitter.__getitem__)
    content = replayed(write(tmp_path / "bag", entries))
    count = 90 - len(left_out)
    names = ("recorded", "replayed", "compared", "identical")
    assert content["estimates"] == dict.fromkeys(names, count)
    assert rods(tmp_path / "bag-replay") == rods(tmp_path / "bag")
    assert content["notes"] == ["settings of the estimator are from its diagnostics"]


@given(st.lists(st.integers(0, 2**40), min_size=12, max_size=12), st.booleans())
@settings(max_examples=30, deadline=None)
def test_bytes_are_those_of_rclpy(numbers, empty):
    serialization = pytest.importorskip("rclpy.serialization")
    values = np.array(numbers, dtype=float)
    stamp = 1 + numbers[0] * 10**6
    matrix = np.eye(4)
    matrix[:3, 3] = values[:3]
    names = [] if empty else ["a", "bcd", "ef"]
    for message in (
        pressures_to_message(values[: len(names)], names, stamp),
        pose_to_message(matrix, stamp, "wörld"),
        diagnostics_to_message([DiagnosticReport("x", 1, "y", "z", {"k": numbers})], stamp),
    ):
        expected = serialization.serialize_message(message)
        package, name = type(message).__module__.partition(".")[0], type(message).__name__
        assert len(cdr_of(message)) in range(len(expected) - 16, len(expected) + 4)
        assert same_content(cdr_of(message), expected, f"{package}/msg/{name}")
        changed = bytearray(expected)
        changed[4] ^= 1  # of the stamp
        assert not same_content(cdr_of(message), bytes(changed), f"{package}/msg/{name}")
        assert header_stamp(expected) == stamp


@pytest.fixture(scope="module")
def simulated(tmp_path_factory) -> dict[str, Path]:
    """Directories of four real runs, as `make sim` makes them."""
    pytest.importorskip("rclpy")
    directories = {}
    for name in ("wall", "lockstep", "starved", "hurried"):
        results = tmp_path_factory.mktemp(name)
        mode = "lockstep" if name == "lockstep" else "wall"
        # in 0.7 ms nobody looks at all of 640 candidates
        hurried = ("--controller.population", "640", "--controller.budget", "0.05")
        options = ("--mode", mode, *(hurried if name == "hurried" else ()))
        with starvation() if name == "starved" else nullcontext():
            directories[name] = simulate(results, *options, with_priorities=name != "starved")
    return directories


def simulate(results: Path, *arguments: str, with_priorities: bool = True) -> Path:
    """The directory of a real run, with or without the right to real-time priorities."""
    given = ("--duration", "1.5", "--anyway", "--results", str(results))
    population = () if "--controller.population" in arguments else ("--controller.population", "64")
    command = [SOFTCR, "up", "simulation", *given, *population, *arguments]
    if not with_priorities and os.geteuid() == 0 and shutil.which("setpriv"):
        command = ["setpriv", "--bounding-set", "-sys_nice", *command]
    # a domain of its own: nodes of earlier tests may still be heard of in theirs
    own = os.environ | {"ROS_DOMAIN_ID": fresh_domain()}
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, env=own)
    # on a busy machine the robot may be vented, which is 1: that is no matter of replays
    vented = "wall" in arguments and done.returncode == 1 and "was vented" in done.stdout
    assert done.returncode == 0 or vented, done.stdout + done.stderr
    return results / "latest"


@contextmanager
def starvation():
    """Two busy loops per core."""
    command = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(command) for _ in range(2 * os.cpu_count())]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


WITHOUT_ROS = """
import sys
from softcr_tools import cli
code = cli.main(sys.argv[1:])
assert not [name for name in sys.modules if name.startswith("rclpy")]
sys.exit(code)
"""


def replayed_without_ros(bag: Path) -> dict:
    """Replay with the controller in a process of its own; the comparison it leaves."""
    command = [sys.executable, "-c", WITHOUT_ROS, "replay", str(bag), "--controller"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((bag.parent / f"{bag.name}-replay" / "comparison.json").read_text())


@pytest.mark.parametrize("mode", ["wall", "lockstep", "starved", "hurried"])
def test_a_run_of_make_sim_comes_back_to_the_bit_without_ros(simulated, mode):
    run = simulated[mode]
    content = replayed_without_ros(run / "bag")
    estimates, commands = content["estimates"], content["commands"]
    assert estimates["recorded"] > (20 if mode == "starved" else 90)
    assert commands["identical"] == commands["compared"] > 0
    assert len(set(estimates.values())) == 1, estimates
    assert rods(run / "bag-replay") == rods(run / "bag")
    ticks = [
        each.effort
        for message in Bag(run).messages(TICKS)
        for node, records in [records_from_message(message.decode())]
        for each in records
        if node == "nempc_controller" and each.event == TICK
    ]
    assert np.isnan(ticks).all() if mode == "lockstep" else not np.isnan(ticks).any()
    if mode == "hurried":
        assert json.loads((run / "summary.json").read_text())["candidates_median"] == 128
        assert content["commands"]["compared"] > 20
    if mode == "lockstep":  # the last command vents and answers no estimate: a record tells of it
        assert commands["identical"] == commands["replayed"] == commands["recorded"]
    for topic in (PRESSURES, "reference/rod", "simulation/truth/rod", "/diagnostics", "/clock"):
        if Bag(run).find(topic):
            copied = [m.payload for m in Bag(run / "bag-replay").messages(topic)]
            assert copied == [m.payload for m in Bag(run).messages(topic)]
    assert (run / "bag-replay" / "comparison.png").stat().st_size > 10_000


@pytest.mark.parametrize("controller", ["rod_mpc", "nempc"])
def test_a_run_with_late_answers_comes_back_to_the_bit(tmp_path, controller):
    """Answers come 20 ms after their estimate began, which is more than a period of 14.3 ms."""
    words = {"controller": controller, "mode": "wall", "reference": "tip_circle", "duration": "2"}
    words |= {"controller.population": "32"} if controller == "nempc" else {}
    system = simulation_system(SimulationOptions.of_options(words), tmp_path / "bag")
    late = tuple(
        replace(part, computing=Computing(0.020 if part.name == system.controller else 0.002))
        for part in system.parts
    )
    log = Log("pressure/plan")
    run_system(replace(system, parts=late), log, bag=tmp_path / "bag")
    sent = log.values("pressure/plan")
    assert len(sent) > 40  # every second estimate is answered
    recorded, task = Bag(tmp_path / "bag"), ReplayTask(True, None, {})
    again = replay(recorded, task, tmp_path / "again", Console(quiet=True))
    for counts in (again.estimates, again.commands):
        assert counts.identical == counts.compared == counts.recorded
        assert counts.replayed - counts.recorded in (0, 1)  # of a tick that the end cut short
    assert again.commands.recorded == len(sent)
    assert again.command_difference_kpa.max == 0.0
    # the newest estimate waits until the one before is answered, a period at most: with 2 ms of the
    # estimator and 20 ms of computing answers are up to 36 ms old, so plans begin three ticks
    # later; once every second one is answered on purpose, none waits, and they begin two later
    kept, delays = codec("pressure/plan", Expected(tuple(ROBOT.chamber_names))), []
    for message in Bag(tmp_path / "again").messages("pressure/plan"):
        stamp = header_stamp(message.payload)
        due = kept.decode(message.decode()).due
        delays.append((due[0] - stamp) * 1e-9 / PERIOD)
    assert np.round(delays[15:20]).tolist() == [3.0] * 5
    assert np.round(delays[-15:]).tolist() == [2.0] * 15


# --- joining without word from the estimator -----------------------------------------------------


def recorded_at(topic, *stamps):
    """Samples of pressures that were recorded in this order of their stamps [10 ms]."""
    payloads = [cdr_of(pressures_to_message([0.0], ["a"], 10_000_000 * t)) for t in stamps]
    kind = f"/{topic}", TOPICS[topic].type
    messages = (BagMessage(*kind, k, payload) for k, payload in enumerate(payloads))
    return RecordedSamples({topic: messages}, {topic: lambda message: None})


def test_samples_that_were_recorded_out_of_order_are_found_each_once_in_their_order():
    stamps = (1, 2, 13, 3, 4, 7, 6, 5, 8, 60, 61)
    store = recorded_at(PRESSURES, *stamps)
    found = [k for k in range(1, 70) if store.at(PRESSURES, 10_000_000 * k) is not None]
    assert found == sorted(stamps)
    store = recorded_at(SENT, 1, 3, 2, 5, 5, 4, 7, 90)
    between = [[10_000_000 * k for k in each] for each in ([2, 3, 4, 5], [7, 90])]
    assert store.stamps(SENT, 20_000_000, 50_000_000) == between[0]
    assert store.stamps(SENT, 60_000_000, 69_000_000) == []
    assert store.stamps(SENT, 70_000_000, 10**12) == between[1]


class Collector(BlockBase):
    """Takes along all that was played since the last tick."""

    name = "collector"
    inputs = (Input(PRESSURES, "lead"), Input(SENT, "all", needed=False))

    def reset(self):
        self.heard = []

    def tick(self, now, samples):
        self.heard.append((now, [sample.stamp for sample in samples[SENT]]))
        return []


def test_a_tick_gets_all_samples_since_the_last_one_again():
    """Of some ticks none, one or several came; one names a sample that the bag lacks."""
    at = {10: [], 20: [12], 30: [22, 25, 29], 40: [31, 38]}

    def sample(topic, stamp):
        return Sample(topic, stamp, None, 0.0)

    used = {
        now: {PRESSURES: sample(PRESSURES, now), SENT: tuple(sample(SENT, each) for each in played)}
        for now, played in at.items()
    }
    ticks = [Tick(now, 0.0, samples) for now, samples in used.items()]
    records = [TickRecord(RESET, 1), *(record_of(tick, 0.0) for tick in ticks)]
    message = records_to_message("collector", (PRESSURES, SENT), records)
    _, records = records_from_message(message)
    held = [stamp for played in at.values() for stamp in played if stamp != 31]
    recorded = SimpleNamespace(
        at=lambda topic, stamp: sample(topic, stamp) if stamp in (*at, *held) else None,
        stamps=lambda topic, first, last: [stamp for stamp in held if first <= stamp <= last],
    )
    block = Collector(ROBOT, NodeSettings())
    again = ReplayedBlock("collector", block, records, recorded)
    while again.stamp is not None:
        again.advance()
    assert block.heard == [(10, []), (20, [12]), (30, [22, 25, 29])]
    assert again.missing == 1


def test_ticks_that_had_little_time_come_back_to_the_bit():
    """Each tick of a controller has time for other pieces of its population."""
    given = {"controller": "nempc", "population": 640, "intervals": 2, "horizon": 4}

    def made() -> ControllerBlock:
        return ControllerBlock(ROBOT, ControllerBlock.settings_of(given))

    block = made()
    nominal = np.array([each.nominal for each in block.model.parameters])
    state = block.model.equilibrium(np.zeros(3), nominal)
    tips = np.tile((0.02, 0.01, 0.12), (14, 1))
    values = {
        "estimate/rod": lambda stamp: StateEstimate(state, {}, inputs=np.zeros(3)),
        "reference/rod": lambda stamp: ReferenceRows(stamp, PERIOD, np.tile(state, (14, 1)), tips),
    }
    recorded = SimpleNamespace(
        at=lambda topic, stamp: Sample(topic, stamp, values[topic](stamp), 0.0)
    )
    stamps = [round(1e9 * cycle * PERIOD) for cycle in range(1, 13)]
    records, sent = [TickRecord(RESET, 1)], {}
    for number, stamp in enumerate(stamps):
        clock = iter([0.0, *(20.0 * number,) * 2]).__next__  # a piece takes longer in each tick
        block.budget = TimedBudget(256.0, clock) if number else Budget()
        samples = {topic: recorded.at(topic, stamp) for topic in values}
        sent[stamp] = block.tick(stamp, samples)[0].value
        block.answered(0.005)
        records.append(record_of(Tick(stamp, 0.0, samples), 0.005, block.budget.effort))
    topics = [each.topic for each in block.inputs]
    _, told = records_from_message(records_to_message("controller", topics, records))
    efforts = [each.effort for each in told[1:]]
    assert np.array_equal(efforts, [np.nan, *[np.inf] * 4, *[128.0] * 7], equal_nan=True)
    again, found = ReplayedBlock("controller", made(), told, recorded), {}
    while again.stamp is not None:
        found.update({each.output.stamp: each.output.value for each in again.advance()})
    assert found.keys() == sent.keys()
    assert all(np.array_equal(found[each].commands, sent[each].commands) for each in sent)
    assert again.block.describe()["candidates_least"] == 128
    # nothing of it is told where no tick had a limit, as in lock-step
    message = records_to_message("controller", topics, records[:2])
    assert "effort" not in [each.name for each in message.fields]


def test_a_run_that_does_not_tell_is_paired_by_when_things_came(tmp_path, estimator, tips):
    late = {number for number in range(90) if number % 9 == 5}
    stamps = list(tips)

    def delay(stamp):
        return 12 * 10**6 if stamps.index(stamp) in late else 2 * 10**6

    entries = lived(estimator, tips, unpaired=late, tells=False, delay=delay)
    content = replayed(write(tmp_path / "bag", entries))
    assert content["estimates"]["identical"] == 90
    assert "does not say what it used" in content["notes"][1]
    assert len(content["notes"]) == 2
    # and more patience, asked for, finds them
    content = replayed(tmp_path / "bag", "--set", "patience=1.0")
    assert len(content["notes"]) == 2
    assert content["estimates"]["identical"] < 90
    entries = lived(estimator, tips, unpaired=late, delay=delay)
    content = replayed(write(tmp_path / "told", entries), "--set", "patience=1.0")
    assert "patience is changed" in content["notes"][1]


# --- bags of every kind -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run_entries(estimator, tips) -> list[Entry]:
    return lived(estimator, tips, unpaired={7, 8, 30}, left_out={50})


MODES = {MCAP: CompressionMode.STORAGE, SQLITE: CompressionMode.MESSAGE}
WRITTEN = [(plugin, version, None) for plugin in MODES for version in (8, 9)]
WRITTEN += [(plugin, 9, CompressionMode.FILE) for plugin in MODES]
WRITTEN += [(plugin, 9, mode) for plugin, mode in MODES.items()]


@pytest.mark.parametrize(("plugin", "version", "compression"), WRITTEN)
def test_bags_of_ros_tools_read_the_same(tmp_path, run_entries, plugin, version, compression):
    bag = write(tmp_path / "bag", run_entries, plugin, version, compression)
    assert Bag(bag).damage is None
    content = replayed(bag)
    assert content["estimates"]["identical"] == 89
    assert rods(tmp_path / "bag-replay") == rods(bag)


# What rosbag2 itself wrote, by version of its metadata: 1 of Crystal to 9 of Jazzy. Tables of its
# databases, looked up in the bags of its own tests.
QOS, HASH = ", offered_qos_profiles TEXT NOT NULL", ", type_description_hash TEXT NOT NULL"
TOPIC_TABLE = (
    "CREATE TABLE topics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,type TEXT NOT NULL,"
    "serialization_format TEXT NOT NULL{more})"
)
MESSAGE_TABLE = (
    "CREATE TABLE messages(id INTEGER PRIMARY KEY,topic_id INTEGER NOT NULL,"
    "timestamp INTEGER NOT NULL, data BLOB NOT NULL)"
)
NEWER_TABLES = (
    "CREATE TABLE schema(schema_version INTEGER PRIMARY KEY,ros_distro TEXT NOT NULL)",
    "CREATE TABLE metadata(id INTEGER PRIMARY KEY,metadata_version INTEGER NOT NULL,"
    "metadata TEXT NOT NULL)",
    "CREATE TABLE message_definitions(id INTEGER PRIMARY KEY,topic_type TEXT NOT NULL,"
    "encoding TEXT NOT NULL,encoded_message_definition TEXT NOT NULL,"
    "type_description_hash TEXT NOT NULL)",
)


def write_as_rosbag2(directory: Path, entries, version: int, compress=lambda data: data) -> Path:
    """A bag as rosbag2 of a release has it, by hand."""
    directory.mkdir()
    more = (QOS if version >= 4 else "") + (HASH if version >= 7 else "")
    topics = list({entry.topic: entry.type for entry in entries}.items())
    with closing(sqlite3.connect(directory / "run_0.db3")) as database, database:
        database.execute(TOPIC_TABLE.format(more=more))
        database.execute(MESSAGE_TABLE)
        for table in NEWER_TABLES if version >= 5 else ():
            database.execute(table)
        places = ",".join("?" * (4 + more.count("TEXT")))
        for number, (topic, kind) in enumerate(topics, 1):
            kind_told = kind.replace("/msg/", "/") if version == 1 else kind
            values = (number, topic, kind_told, "cdr", "", "")
            database.execute(f"INSERT INTO topics VALUES({places})", values[: places.count("?")])
        for entry in entries:
            number = topics.index((entry.topic, entry.type)) + 1
            values = (number, entry.time, compress(entry.payload))
            database.execute("INSERT INTO messages VALUES(NULL,?,?,?)", values)
    path = f"{directory.name}/run_0.db3" if version <= 3 else "run_0.db3"
    about = {"version": version, "storage_identifier": "sqlite3"}
    about |= {"relative_file_paths": [path], "message_count": len(entries)}
    (directory / "metadata.yaml").write_text(yaml.safe_dump({"rosbag2_bagfile_information": about}))
    return directory


def assert_holds(bag: Bag, entries) -> None:
    assert [Entry(*vars(m).values()) for m in bag.messages(*bag.topics)] == entries


@pytest.mark.parametrize("version", range(1, 10))
def test_databases_of_every_release_read_the_same(tmp_path, run_entries, version):
    directory = write_as_rosbag2(tmp_path / "bag", run_entries, version)
    # another recording's file, of which metadata.yaml knows nothing, is not of this bag
    write_as_rosbag2(tmp_path / "other", run_entries[:5], version)
    shutil.copy(tmp_path / "other" / "run_0.db3", directory / "before.db3")
    bag = Bag(directory)
    assert bag.damage is None
    assert_holds(bag, run_entries)


@pytest.mark.parametrize("plugin", [MCAP, SQLITE, None])
def test_compressed_bags_need_no_metadata(tmp_path, run_entries, plugin):
    """Whole files, and messages that a killed recorder compressed."""
    if plugin:
        bag = write(tmp_path / "bag", run_entries, plugin, 9, CompressionMode.FILE)
    else:
        compress = zstandard.ZstdCompressor().compress
        bag = write_as_rosbag2(tmp_path / "bag", run_entries, 9, compress)
    (bag / "metadata.yaml").unlink()
    assert_holds(Bag(bag), run_entries)


def test_a_lost_file_of_a_split_bag_is_named_and_the_others_read(tmp_path, run_entries):
    directory = write_as_rosbag2(tmp_path / "bag", run_entries, 9)
    metadata = (directory / "metadata.yaml").read_text()
    (directory / "metadata.yaml").write_text(metadata.replace("- run_0", "- lost.db3\n  - run_0"))
    bag = Bag(directory)
    assert bag.damage.startswith("lost.db3 is missing; ")
    assert_holds(bag, run_entries)


@pytest.mark.parametrize("plugin", [MCAP, SQLITE])
@pytest.mark.parametrize("finished", [True, False])
def test_a_bag_split_in_files_is_one_bag(tmp_path, run_entries, plugin, finished):
    whole = tmp_path / "split"
    whole.mkdir()
    parts, size = [], len(run_entries) // 11 + 1
    for number in range(11):  # file 10 comes after file 9, not after file 1
        entries = run_entries[size * number : size * (number + 1)]
        part = write(tmp_path / f"part{number}", entries, plugin)
        suffix = "mcap" if plugin is MCAP else "db3"
        (file,) = part.glob(f"*.{suffix}")
        parts.append(f"split_{number}.{suffix}")
        file.rename(whole / parts[-1])
        metadata = yaml.safe_load((part / "metadata.yaml").read_text())
    if finished:
        metadata["rosbag2_bagfile_information"]["relative_file_paths"] = parts
        (whole / "metadata.yaml").write_text(yaml.safe_dump(metadata))
    content = replayed(whole)
    assert content["estimates"]["identical"] == content["estimates"]["replayed"] == 89


@pytest.mark.parametrize("plugin", [MCAP, SQLITE])
@given(fraction=st.floats(0.0, 1.0, exclude_max=True))
@settings(max_examples=25, deadline=None)
def test_a_cut_bag_is_read_up_to_the_cut(tmp_path_factory, run_entries, plugin, fraction):
    bag = write(tmp_path_factory.mktemp("cut") / "bag", run_entries, plugin)
    (file,) = (path for path in bag.iterdir() if path.suffix != ".yaml")
    content = file.read_bytes()
    file.write_bytes(content[: round(fraction * len(content))])
    try:
        opened = Bag(bag)
    except UserError as error:
        assert file.name in str(error)  # noqa: PT017 (it may refuse what holds nothing)
        return
    payloads = [message.payload for message in opened.messages(*opened.topics)]
    assert payloads == [entry.payload for entry in run_entries][: len(payloads)]
    assert payloads
    if len(payloads) < len(run_entries):
        assert f"{len(payloads)} of {len(run_entries)} messages" in opened.damage


# --- what a person may ask, and get wrong -------------------------------------------------------


def test_another_setting_gives_another_answer(tmp_path, run_entries):
    bag = write(tmp_path / "bag", run_entries)
    changed = ("--set", "filter=ekf", "--set", "parameters=[bending_compliance]")
    content = replayed(bag, *changed)
    assert content["settings"]["estimator"]["filter"] == "ekf"
    assert content["estimates"]["identical"] < content["estimates"]["compared"] == 89
    assert 0.0 < content["tip_difference_mm"]["max"] < 5.0
    assert "filter = ekf" in content["notes"][0]
    content = replayed(bag, "--set", "intervals=4")
    assert content["shape_difference_mm"] is None
    assert content["tip_difference_mm"]["max"] > 0.0


def test_settings_come_from_the_run_or_it_is_said(tmp_path, estimator, tips):
    entries = lived(estimator, tips, tells=False)
    bag = write(tmp_path / "bag", entries)
    assert "defaults are used" in replayed(bag)["notes"][0]
    section = {"/lab/estimator": {"ros__parameters": {"robot": "licher2025", "filter": "ekf"}}}
    (tmp_path / "parameters.yaml").write_text(yaml.safe_dump(section))
    content = replayed(bag)
    assert content["notes"][0].endswith("from parameters.yaml beside the bag")
    assert content["estimates"]["identical"] < 90  # the filter was no ekf


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--set", "filter=kalman"], "parameter filter = 'kalman': must be one of auto, ukf, ekf"),
        (["--set", "nempc_controller.horizon=4"], "needs --controller"),
        (["--set", "valves.horizon=4"], "parameter valves.horizon = 4: unknown"),
        (["--controller"], "does not say what the node nempc_controller ran"),
        (["--output", "."], ". exists already"),
        (["--online", "--controller"], "--controller: is for the offline replay"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_two(tmp_path, run_entries, capsys, arguments, line):
    assert_refused(write(tmp_path / "bag", run_entries), capsys, line, *arguments)


def assert_refused(bag, capsys, line, *arguments):
    """In one line, and nothing is left."""
    assert cli.main(["replay", str(bag), *arguments]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert line in error
    assert not bag.with_name("bag-replay").exists()


COVARIANCE = "geometry_msgs/msg/PoseWithCovarianceStamped"


def with_commands_used(entry):
    """As by an estimator that heard commands, or a controller that joined pressures itself."""
    node, records = records_from_message(BagMessage(*entry).decode())
    used = [replace(r, used=r.used | {"pressure/command": (5, 5)}) for r in records if r.used]
    told = records_to_message(node, [PRESSURES, POSES, "pressure/command"], used)
    return entry._replace(payload=cdr_of(told))


@pytest.mark.parametrize(
    ("topic", "changed", "line"),
    [
        (PRESSURES, lambda entry: None, f"replay needs {PRESSURES}; it holds"),
        (POSES, lambda entry: None, f"replay needs {POSES}; it holds"),
        (TICKS, with_commands_used, "estimator used pressure/command, which today's does not take"),
        (POSES, lambda entry: entry._replace(type=COVARIANCE),
         f"{POSES} is {COVARIANCE}, replay needs geometry_msgs/msg/PoseStamped"),
    ],
)  # fmt: skip
def test_a_bag_that_cannot_be_replayed_is_refused_in_one_line(
    tmp_path, run_entries, capsys, topic, changed, line
):
    entries = [changed(each) if each.topic == f"/{topic}" else each for each in run_entries]
    assert_refused(write(tmp_path / "bag", [*filter(None, entries)]), capsys, line)


def test_samples_that_the_recorder_lost_are_counted(tmp_path, run_entries):
    lost = [entry for entry in run_entries if entry.topic == f"/{PRESSURES}"][-3:]
    bag = write(tmp_path / "bag", [entry for entry in run_entries if entry not in lost])
    content = replayed(bag)
    assert content["estimates"]["identical"] == 86
    assert content["notes"][1] == "estimator: 3 ticks used samples that the bag lacks"
    assert content["notes"][2].startswith("3 recorded estimates were not replayed")


def test_an_interrupted_replay_leaves_nothing(tmp_path, run_entries, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    bag = write(tmp_path / "bag", run_entries)
    monkeypatch.setattr(EstimatorBlock, "tick", interrupted)
    assert cli.main(["replay", str(bag)]) == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bag"]


def test_the_numbers_are_those_put_in(tmp_path):
    messages, moved = closed_loop(2.0), []
    for topic, stamp, message in messages:
        if topic == "estimate/tip/pose":
            p = message.pose.pose.position
            # half a millimetre back to the true tip, and 0.2 mm beyond
            tip = np.array([p.x, p.y, p.z]) - 1.4 * ESTIMATE_OFFSET
            message = pose_with_covariance(stamp, tip)
        moved.append((topic, stamp, message))
    recorded, after = (
        read_signals(Bag(write_bag(tmp_path / name, entries)))
        for name, entries in (("recorded", messages), ("replayed", moved))
    )
    result = compare(recorded, after, Counts(140, 140, 140, 0), None, 7.0, [])
    assert result.tip_difference_mm.mean == pytest.approx(0.7)
    assert result.recorded_tip_error_mm.max == pytest.approx(0.5)
    assert result.replayed_tip_error_mm.mean == pytest.approx(0.2)
    assert result.tip_error_against == "the simulator's truth"
    assert result.compliance_difference.max == 0.0
    assert result.true_compliance == 48.0
    assert result.command_difference_kpa is None
    assert result.duration_s == pytest.approx(139 / 70)
    console = Console(width=100)
    with console.capture() as capture:
        console.print(result.table())
    assert "mean 0.7, largest 0.7 mm" in capture.get()
    assert "0 of 140 equal to the bit" in capture.get()


# --- in which order ------------------------------------------------------------------------------


class Scripted:
    """Stands for a replayed block: events (stamp, needed samples, output) in their order."""

    def __init__(self, topic, events):
        self.block, self.events = SimpleNamespace(outputs=(topic,)), list(events)

    @property
    def stamp(self):
        return self.events[0][0] if self.events else None

    @property
    def needs(self):
        return self.events[0][1]

    def advance(self):
        (topic,), (stamp, _, made) = self.block.outputs, self.events.pop(0)
        return [Replayed(topic, stamp, Output(topic, made, topic))]


@pytest.mark.parametrize("known", [True, False])
def test_a_late_tick_comes_after_the_later_sample_that_it_used(known):
    """An estimator fell behind: the command that it heard was sent at a later time."""
    used = 25 if known else 26  # the bag lacks the second
    estimator = Scripted("estimate", [(10, [], 10), (20, [("command", used)], 20)])
    controller = Scripted("command", [(10, [("estimate", 10)], 10), (25, [], 25),
                                      (20, [("estimate", 20)], 20)])  # fmt: skip
    blocks = {"estimator": lambda _: estimator, "controller": lambda _: controller}
    executor = ReplayExecutor(blocks, SimpleNamespace())
    order = [(each.node, each.output.stamp) for each in executor.run()]
    assert sorted(order) == sorted([("estimate", 10), ("command", 10), ("command", 25),
                                    ("estimate", 20), ("command", 20)])  # fmt: skip
    if known:
        assert order.index(("command", 25)) < order.index(("estimate", 20))


# --- onto the wire ------------------------------------------------------------------------------


def test_the_schedule_keeps_order_and_a_steady_clock(tmp_path, run_entries):
    bag = Bag(write(tmp_path / "bag", run_entries))
    moments = list(schedule(bag))
    times = [moment.time for moment in moments]
    assert times == sorted(times)
    assert max(np.diff(times)) <= 1e9 * CLOCK_PERIOD
    inputs = [each for each in run_entries if each.topic in (f"/{PRESSURES}", f"/{POSES}")]
    sent = [(f"/{moment.topic}", moment.payload) for moment in moments if moment.topic]
    assert sent == [(entry.topic, entry.payload) for entry in inputs]
    assert all(moment.time >= header_stamp(moment.payload) for moment in moments if moment.topic)


@pytest.mark.parametrize("topic", ["mocap/tip/pose", "/clock"])
def test_nothing_is_replayed_beside_a_node_that_publishes_the_same(tmp_path, capsys, topic):
    """Neither beside one that is there, nor on beside one that comes."""
    pytest.importorskip("rclpy")
    living = Peer("cameras")
    stamps = range(10**9, 600 * 10**9, 10**9)
    poses = [entry_of(POSES, at, pose_to_message(np.eye(4), at)) for at in stamps]
    bag = write(tmp_path / "bag", poses)
    arguments = ["replay", str(bag), "--online", "--wait", "0"]
    try:
        coming = threading.Timer(8.0, living.publisher, [topic])  # the replay listens for 3.5 s
        coming.start()
        assert cli.main(arguments) == 2
        coming.join()
        assert cli.main(arguments) == 2
    finally:
        living.close()
    lines = [line for line in capsys.readouterr().err.splitlines() if "is published by" in line]
    name = topic if topic.startswith("/") else f"/{topic}"
    assert lines == 2 * [
        f"softcr: error: {name} is published by /cameras: end it, or replay in another --namespace "
        "or ROS_DOMAIN_ID"
    ]


def test_a_live_estimator_runs_on_a_replayed_bag_and_on_the_same_again(simulated):
    pytest.importorskip("rclpy")
    from rclpy.parameter import Parameter

    from softcr_runtime.ros.block_node import block_node_class
    from softcr_runtime.ros.process import SupervisedExecutor

    peer, received = Peer(), []
    overrides = [Parameter("use_sim_time", value=True)]
    node_class = block_node_class(EstimatorBlock)
    estimator = node_class(context=peer.context, parameter_overrides=overrides)
    peer.hear("estimate/rod", received.append, raw=True)
    peer.start()
    executor = SupervisedExecutor(estimator)
    spinning = threading.Thread(target=executor.spin)
    estimator.trigger_configure()
    estimator.trigger_activate()
    spinning.start()
    try:
        # in a bag of a lock-step run simulated time starts at 1 s: only /clock makes it present
        arguments = ["replay", str(simulated["lockstep"]), "--online", "--wait", "30"]
        assert cli.main(arguments) == 0
        first = list(received)
        assert cli.main(arguments) == 0  # once more into the same estimator
        report = estimator._diagnostic_report()
    finally:
        executor.stop()
        spinning.join()
        estimator.finish()
        estimator.destroy_node()
        peer.close()
    recorded = {header_stamp(payload) for payload in rods(simulated["lockstep"] / "bag")}
    for heard in (first, received[len(first) :]):
        stamps = {header_stamp(payload) for payload in heard}
        # a busy machine may lose some of the first before /clock is found, never all
        assert len(stamps & recorded) > 0.5 * len(recorded)
        assert stamps <= recorded
    assert report.values["time_jumps"] == 1
    assert report.values["last_time_jump_s"] < -0.5
