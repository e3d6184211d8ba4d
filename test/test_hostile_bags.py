"""Bags from strangers: what they name is not run, read or written, unless a person says so."""

import contextlib
import hashlib
import json
import os
import resource
import sqlite3
import struct
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml
import zstandard
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from kit.models import LinearModel
from kit.rosbags_bags import write_with_rosbags
from pydantic import ValidationError

from softcr_control.controller import ControllerBlock
from softcr_control.controller_file import load_controller
from softcr_control.predictive.learned_motion import LearnedMotion
from softcr_control.reference.references import from_file
from softcr_estimation.estimator import EstimatorBlock
from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_models.files import small_files
from softcr_models.files.csv_files import read_columns
from softcr_models.files.small_files import arrays_of
from softcr_models.plugins import file_of_place
from softcr_models.robots.obstacle_files import load_obstacles
from softcr_runtime.bags.offline_bag import OfflineBag
from softcr_runtime.bags.signals import unit_of
from softcr_runtime.blocks.block import BlockBase
from softcr_runtime.blocks.guard import Guard
from softcr_runtime.settings.node_settings import setting_values
from softcr_runtime.wire.configuration import TOPIC as CONFIGURATION
from softcr_runtime.wire.diagnostics import OK, DiagnosticReport, diagnostics_to_message
from softcr_runtime.wire.frames import Pose
from softcr_runtime.wire.messages import pose_to_message, pressures_to_message
from softcr_studies.frame.workers import refuse_open_address
from softcr_studies.koopman.file import load_design
from softcr_tools import cli, report

ROBOT = load_robot("licher2025")
BLOCKS = {"estimator": EstimatorBlock, "controller": ControllerBlock}
PLACES = {name: f"{each.__module__}:{each.__qualname__}" for name, each in BLOCKS.items()}
CODE = "from pathlib import Path\nPath({marker!r}).touch()\nclass Evil: pass\n"
_watched: dict[str, list[str]] = {}


def _hear(event: str, arguments: tuple) -> None:
    """Every file that Python opens, and every module that it imports."""
    if event in ("open", "import") and _watched:
        for word, heard in _watched.items():
            if word in str(arguments[0]):
                heard.append(f"{event} {arguments[0]}")


sys.addaudithook(_hear)


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A folder with code and data that a bag may name; the working directory."""
    folder = tmp_path / "evil_place"
    folder.mkdir()
    (folder / "evil.py").write_text(CODE.format(marker=str(folder / "marker")))
    for name in ("evil.yaml", "evil.json", "evil.safetensors", "net.safetensors", "net.json"):
        (folder / name).write_text("{}")
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend("")
    _watched["evil"] = []
    yield folder
    _watched.clear()
    assert not (folder / "marker").exists()


def write(
    directory: Path, node="estimator", block=None, files=(), settings=None, beside=None
) -> Path:
    """A bag with a few samples, and what a node of it says of itself."""
    bag, start = OfflineBag(), 10**9
    for cycle in range(5):
        stamp = start + cycle * 14_285_714
        levels = pressures_to_message(np.zeros(3), ROBOT.chamber_names, stamp)
        bag.add("pressure/state", stamp, levels)
        bag.add("mocap/tip/pose", stamp, pose_to_message(Pose.of(np.eye(4)), stamp))
    names = {"estimator": {}, "controller": {"controller": "rod_mpc"}}
    told = setting_values(BLOCKS[node].settings_of(names[node])) | (settings or {})
    said_of_itself = {"role": node, "block": block or PLACES[node], "settings": told}
    values = said_of_itself if beside is None else {}
    reports = [DiagnosticReport(f"{node}: loop", OK, "", "r", values)]
    if node != "estimator":
        honest = setting_values(EstimatorBlock.settings_of({}))
        values = {"role": "estimator", "block": PLACES["estimator"], "settings": honest}
        reports.append(DiagnosticReport("estimator: loop", OK, "", "r", values))
    bag.add_statuses(reports)
    if files:
        named = []
        for setting, given, path, text in files:
            file = {"setting": setting, "given": given, "text": text}
            named.append(DiagnosticReport(f"{node}: file {setting}", OK, path, "r", file))
        bag.add(CONFIGURATION, start, diagnostics_to_message(named, start))
    bag.write(directory / "bag")
    if beside is not None:
        parameters = {f"/{node}": {"ros__parameters": told | beside}}
        (directory / "parameters.yaml").write_text(json.dumps(parameters))
    return directory / "bag"


def refused(bag: Path, capsys, *options: str) -> str:
    """The one line with which a replay refuses a bag."""
    capsys.readouterr()
    assert cli.main(["replay", str(bag), *options]) == 2
    (line,) = [each for each in capsys.readouterr().err.splitlines() if each]
    assert line.startswith("softcr: error: ")
    return line


def of_two_files(*contents: tuple[str, str]) -> dict:
    """A bag that tells two files, each with its place, as those of one setting."""
    files = [("estimator", "G", *each) for each in contents]
    return {"settings": {"estimator": "G"}, "files": files}


HERE = "{here}"  # the folder's absolute path
CASES = [
    ({"settings": {"estimator": f"{HERE}/evil.py:Evil"}}, "--set estimator="),
    ({"settings": {"estimator": "evil.py:Evil"}}, "--set estimator="),
    ({"settings": {"estimator": "../evil_place/evil.py:Evil"}}, "--set estimator="),
    ({"settings": {"estimator": "evil:Evil"}}, "--set estimator="),
    ({"settings": {"estimator": "antigravity:X"}}, "--set estimator="),
    ({"settings": {"estimator": 5}}, "cannot be used: settings.estimator"),
    ({"settings": {"model": f"{HERE}/evil.py:Evil"}}, "--set model="),
    ({"block": f"{HERE}/evil.py:Evil"}, "--trust-bag"),
    ({"block": "antigravity:X"}, "--trust-bag"),
    ({"block": "softcr_tools.cli:X"}, "--trust-bag"),
    ({"settings": {"robot": f"{HERE}/evil.yaml"}}, "--robot FILE"),
    ({"settings": {"robot": "evil.yaml"}}, "--robot FILE"),
    ({"settings": {"robot": "/dev/zero"}}, "--robot FILE"),
    ({"settings": {"model": "ddpinn", "network": "evil"}}, "--set estimator.network=FILE"),
    ({"settings": {"model": "ddpinn", "network": f"{HERE}/evil"}}, "network=FILE"),
    ({"beside": {"estimator": f"{HERE}/evil.py:Evil"}}, "--set estimator="),
    ({"beside": {"robot": f"{HERE}/evil.yaml"}}, "--robot FILE"),
    (of_two_files(("/x/evil.py/", "class Evil: ..."), ("/x/evil.py:Evil.x", "1")), "'G': unknown"),
    (of_two_files(("/x/evil.py:Evil.json", "1"), ("/x/evil.py:Evil.csv", "1")), "'G': unknown"),
]
OF_CONTROLLER = [
    ({"settings": {"controller": f"{HERE}/evil.py:Evil"}}, "--set controller="),
    ({"settings": {"controller": "policy:evil"}}, "--set controller.policy=FILE"),
    ({"settings": {"controller": f"policy:{HERE}/evil"}}, "--set controller.policy=FILE"),
    ({"settings": {"model": "evil:Evil"}}, "--set model="),
    ({"settings": {"controller_file": f"{HERE}/evil.yaml"}}, "controller_file=FILE"),
    ({"settings": {"costs.obstacles": f"{HERE}/evil.yaml"}}, "costs.obstacles=FILE"),
]


def filled(case: dict, folder: Path) -> dict:
    return json.loads(json.dumps(case).replace(HERE, str(folder)))


@pytest.mark.parametrize(
    ("node", "case", "line"),
    [("estimator", *each) for each in CASES] + [("controller", *each) for each in OF_CONTROLLER],
)
def test_what_a_bag_names_is_not_followed(evil, capsys, node, case, line):
    bag = write(evil, node, **filled(case, evil))
    _watched["evil"].clear()
    assert line in refused(bag, capsys, *["--controller"] * (node == "controller"))
    own = str(evil / "bag"), str(evil / "parameters.yaml")
    assert not [each for each in _watched["evil"] if not each.partition(" ")[2].startswith(own)]
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize("trusted", [True, False])
def test_a_trusted_bag_and_what_a_person_names_are_run(tmp_path, capsys, trusted):
    """What a bag names is told with digests before it is run."""
    path = tmp_path / "own.py"
    path.write_text(CODE.format(marker=str(tmp_path / "marker")))
    place = f"{path}:Evil"
    bag = write(tmp_path, settings={"estimator": place if trusted else "antigravity:X"})
    options = ["--trust-bag"] if trusted else ["--set", f"estimator={place}"]
    assert cli.main(["replay", str(bag), *options]) == 2  # it has no update()
    told = capsys.readouterr()
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    expected = f"--trust-bag: runs {path}, SHA-256 {digest}"
    assert (expected in told.out.replace("\n", "")) == trusted
    (line,) = filter(None, told.err.splitlines())
    assert line.startswith("softcr: error: ")
    assert "lacks" in line
    assert (tmp_path / "marker").exists()


@pytest.mark.parametrize("place", ["own.py:Evil", "own:Evil", "gone.py:Evil", "json.gone:X"])
def test_even_a_trusted_bag_names_nothing_by_the_working_directory(
    tmp_path, capsys, monkeypatch, place
):
    (tmp_path / "own.py").write_text(CODE.format(marker=str(tmp_path / "marker")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    bag = write(tmp_path, settings={"estimator": place})
    assert "no file of Python's" in refused(bag, capsys, "--trust-bag")
    assert not (tmp_path / "marker").exists()


def test_the_file_of_a_place_is_found_without_importing_it():
    assert file_of_place("xml.sax.handler:X").name == "handler.py"
    assert file_of_place("antigravity:X").name == "antigravity.py"
    assert "antigravity" not in sys.modules
    assert file_of_place("sys:X") is None


# --- sizes, depths and kinds of files -------------------------------------------------------------

MEBI = 1 << 20
MAGIC = b"\x89MCAP0\r\n"


def record(opcode: int, content: bytes) -> bytes:
    return struct.pack("<BQ", opcode, len(content)) + content


def text(words: str) -> bytes:
    return struct.pack("<I", len(words)) + words.encode()


def message(size: int) -> bytes:
    """The head of a message of channel 1 that has so many bytes."""
    return struct.pack("<BQHIQQ", 5, 22 + size, 1, 0, 1, 1)


def mcap_file(path: Path, size: int, told: int | None = None, chunks: int = 1) -> Path:
    """A file with chunks that unpack to one message of zeros; `told` is what they say of it."""
    names = map(text, ("diagnostic_msgs/msg/DiagnosticArray", "ros2msg", ""))
    schema = struct.pack("<H", 1) + b"".join(names)
    channel = struct.pack("<HH", 1, 1) + text("/diagnostics") + text("cdr") + struct.pack("<I", 0)
    head = record(3, schema) + record(4, channel) + message(size)
    packer = zstandard.ZstdCompressor().compressobj()
    packed = packer.compress(head)
    for _ in range(size // MEBI):
        packed += packer.compress(bytes(MEBI))
    packed += packer.compress(bytes(size % MEBI)) + packer.flush()
    whole = len(head) + size if told is None else told
    chunk = struct.pack("<QQQI", 1, 1, whole, 0) + text("zstd") + struct.pack("<Q", len(packed))
    begin = MAGIC + record(1, text("ros2") + text(""))
    path.write_bytes(begin + record(6, chunk + packed) * chunks)
    return path


def bomb(size: int, **more: int):
    """What makes a file of such chunks in a folder."""
    return lambda folder: mcap_file(folder / "a.mcap", size, **more)


def file_bomb(folder: Path) -> Path:
    packer = zstandard.ZstdCompressor().compressobj()
    with (folder / "a.db3.zstd").open("wb") as file:
        for _ in range(2048):
            file.write(packer.compress(bytes(MEBI)))
        file.write(packer.flush())
    return folder


def tables(*statements: str):
    """What makes a database of these statements in a folder."""

    def made(folder: Path) -> Path:
        with contextlib.closing(sqlite3.connect(folder / "a.db3")) as database, database:
            for statement in statements:
                database.execute(statement)
        return folder / "a.db3"

    return made


ENDLESS = (
    "CREATE VIEW {} AS WITH RECURSIVE c(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM c) "
    "SELECT id, 'a' AS name, 'b' AS type, 1 AS topic_id, 1 AS timestamp, x'00' AS data FROM c"
)
TOPIC_TABLE = "CREATE TABLE topics (id INTEGER PRIMARY KEY, name TEXT, type TEXT)"
endless_views = tables(ENDLESS.format("topics"), ENDLESS.format("messages"))
computed_column = tables(
    TOPIC_TABLE, "INSERT INTO topics VALUES (1, '/rosout', 'std_msgs/msg/String')",
    "CREATE TABLE messages (id INTEGER PRIMARY KEY, topic_id, timestamp, "
    "data AS (zeroblob(1000000000)))", "INSERT INTO messages VALUES (1, 1, 1)",
)  # fmt: skip
nulls = tables(
    TOPIC_TABLE, "INSERT INTO topics VALUES (1, NULL, NULL)",
    "CREATE TABLE messages (id INTEGER PRIMARY KEY, topic_id, timestamp, data)",
    "INSERT INTO messages VALUES (1, 1, 1, x'00'), (2, NULL, 'a', NULL)",
)  # fmt: skip


def simple_bag() -> OfflineBag:
    bag = OfflineBag()
    bag.add("pressure/state", 1, pressures_to_message(np.zeros(3), ROBOT.chamber_names, 1))
    return bag


def metadata(content: str):
    """What makes a bag with such metadata in a folder, and a file beside it."""

    def made(folder: Path) -> Path:
        (folder / "secret.mcap").write_text("secret")
        simple_bag().write(folder / "bag")
        (folder / "bag" / "metadata.yaml").write_text(content)
        return folder / "bag"

    return made


ALIASES = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
ALIASES += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
ALIASES += ["rosbag2_bagfile_information: {relative_file_paths: *a11, message_count: *a11}"]
ELSEWHERE = {"relative_file_paths": ["../secret.mcap", "/etc/passwd", "..", 5, None, "\0.mcap"]}


def metadata_pipe(folder: Path) -> Path:
    bag = metadata("")(folder)
    (bag / "metadata.yaml").unlink()
    os.mkfifo(bag / "metadata.yaml")
    return bag


def pipe(folder: Path) -> Path:
    os.mkfifo(folder / "a.mcap")
    return folder


def endless_device(folder: Path) -> Path:
    (folder / "a.mcap").symlink_to("/dev/zero")
    return folder


def odd_system(content: str):
    """What makes a bag beside a record of its run that holds something else."""

    def made(folder: Path) -> Path:
        (folder / "system.json").write_text(content)
        return metadata("")(folder)

    return made


def said(values: dict[str, str], nodes: Sequence[str] = ("simulator",)):
    """What makes a bag in which nodes say of themselves what no node of ours would."""
    pairs = [KeyValue(key=key, value=value) for key, value in values.items()]

    def made(folder: Path) -> Path:
        bag = simple_bag()
        for stamp, node in enumerate(nodes, 1):
            name = f"{node}: loop"
            status = DiagnosticStatus(level=bytes([0]), name=name, message="fine", values=pairs)
            bag.add("/diagnostics", stamp, DiagnosticArray(status=[status]))
        bag.write(folder / "bag")
        return folder / "bag"

    return made


DEEP_VALUES = dict.fromkeys(("settings", "robot", "plant_mismatch", "predictions"), "[" * 200_000)
WRONG_VALUES = {
    "settings": "[1]", "robot": '{"length": "x", "name": [], "sensors": 5}', "loads": "5",
    "plant_mismatch": '{"a": "b"}', "predictions": "[]", "rejections": "[1]",
    "true_parameters": "5", "plant_errors": '{"bending_factor": NaN}', "payload": "1e400",
    "missed_cycles": "1" + "0" * 400, "start_stamp": "{}", "tick_time_histogram_ms": "{}",
}  # fmt: skip
# a little text of each of many nodes, which would become 1 GiB of objects
WIDE_VALUES = {"whatever": f"[{'[],' * 350_000}[]]"}, [f"n{number}" for number in range(40)]


def other_type(folder: Path) -> Path:
    """A text on the topic of poses."""
    topics = ("/mocap/tip/pose", "/safety/state", "/diagnostics", "/estimate/rod")
    text = "std_msgs/msg/String", 1, b"\x00\x01\x00\x00\x02\x00\x00\x00a\x00"
    return write_with_rosbags(folder / "bag", [(topic, *text) for topic in topics])


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (bomb(200 * MEBI), "has 200 MiB, allowed are 32 MiB"),
        (bomb(3 << 30), "unpacks to 3.0 GiB, allowed are 256 MiB"),
        (bomb(1 << 30, told=1000), "0 messages"),
        (bomb(100, told=1 << 60), "allowed are 256 MiB"),
        (bomb(200 * MEBI, chunks=20), "unpacks to more than a file of its size may hold"),
        (file_bomb, "unpacks to more than a file of its size may hold"),
        (endless_views, "topics is not a table"),
        (computed_column, "messages has computed columns"),
        (nulls, "does not say what 2 of its messages are"),
        (metadata("\n".join(ALIASES)), ""),
        (metadata("[" * 200_000), ""),
        (metadata(yaml.safe_dump({"rosbag2_bagfile_information": ELSEWHERE})), ""),
        (metadata_pipe, ""),
        (pipe, "no .mcap or .db3 file"),
        (endless_device, "no .mcap or .db3 file"),
        (odd_system("[" * 200_000), ""),
        (odd_system('{"deaths": [5, {"node": []}], "error": [1e400]}'), ""),
        (said(DEEP_VALUES), "left out what simulator said of itself: settings"),
        (said(WRONG_VALUES), "left out what simulator said of itself: "),
        (said(*WIDE_VALUES), "of themselves, allowed are 4194304"),
        (other_type, "left out 1 of the messages"),
    ],
)
def test_a_report_of_what_is_too_large_too_deep_or_no_bag_is_a_line(
    tmp_path, capsys, monkeypatch, made, line
):
    monkeypatch.setattr(report, "draw_figures", lambda *_: [])
    bag = made(tmp_path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code = cli.main(["report", str(bag), "--output", str(tmp_path / "report")])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # [KiB]
    told = capsys.readouterr()
    assert code in (0, 1, 2)
    if code == 2:
        (told_line,) = told.err.splitlines()
        assert line in told_line
    else:
        content = json.loads((tmp_path / "report" / "summary.json").read_text())
        assert not line or any(line in each for each in content["problems"])
    assert grown < 900 * 1024
    assert "secret" not in told.out


def test_nothing_that_a_bag_says_is_an_order_for_the_terminal(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(report, "draw_figures", lambda *_: [])
    order = "\x1b]0;title\x07\x1b[31m\x9b2J"
    bag = said({"reference": order, "mode": order, "loads": json.dumps([order])})(tmp_path)
    assert cli.main(["report", str(bag)]) in (0, 1)
    assert cli.main(["report", f"{tmp_path}/{order}"]) == 2
    told = capsys.readouterr()
    assert not {"\x1b]", "\x07", "\x9b"} & {*told.out, *told.err}
    assert "\x1b]0" not in told.out + told.err


def test_code_in_a_bag_is_shown_and_not_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(report, "draw_figures", lambda *_: [])
    code = f"Path({str(tmp_path / 'marker')!r}).touch()  # <script>"
    bag = write(tmp_path, files=[("estimator", "/x/evil.py:Evil", "/x/evil.py", code)])
    assert cli.main(["report", str(bag), "--output", str(tmp_path / "report")]) in (0, 1)
    page = (tmp_path / "report" / "report.html").read_text()
    assert f"/x/evil.py, SHA-256 {hashlib.sha256(code.encode()).hexdigest()}" in page
    assert "# &lt;script&gt;" in page
    assert "<script>" not in page
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("name", ["../up", "a/b", ".hidden", "net.json", "a\nb", "~", ""])
def test_a_robot_s_name_is_no_path(name):
    content = ROBOT.model_dump(mode="json") | {"name": name}
    with pytest.raises(ValidationError, match="name"):
        type(ROBOT).model_validate(content)


def test_the_file_that_a_bag_names_is_not_written(tmp_path, capsys):
    target = tmp_path / "written.json"
    bag = write(tmp_path, settings={"learned": str(target)})
    assert cli.main(["learn", "motion", str(bag)]) == 2
    assert not target.exists()


def test_a_scheduler_on_another_machine_is_reached_by_tls_alone():
    for address in ("tcp://127.0.0.1", "tcp://[::1]", "tcp://localhost", "tls://head.example"):
        refuse_open_address(f"{address}:8786", insecure=False)
    for host in ("head.example", "127.0.0.1.example", "0.0.0.0", "user@192.168.1.2"):
        with pytest.raises(UserError, match="without TLS"):
            refuse_open_address(f"tcp://{host}:8786", insecure=False)
        refuse_open_address(f"tcp://{host}:8786", insecure=True)
    for address in ("head.example:8786", "ucx://127.0.0.1:8786", "tcp://127.0.0.1:x"):
        with pytest.raises(UserError, match="must be tls://HOST:PORT"):
            refuse_open_address(address, insecure=False)


def npz(path: Path, header: bytes, size: int) -> Path:
    """A file of one array: its header, and so many bytes of zeros."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pressures.npy", header + bytes(size))
    return path


def header_of(shape: str, kind: str = "<f8") -> bytes:
    text = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


@pytest.mark.parametrize(
    ("header", "size", "line"),
    [
        (header_of("(200000,)"), 1_600_000, "allowed are 1048576"),
        (header_of("(1000000000000000,)"), 100, "allocate"),
        (header_of("(10,)", "|O"), 100, "allow_pickle"),
        (b"nothing", 100, "no array"),
    ],
)
def test_arrays_of_a_file_are_bounded_and_no_objects(tmp_path, monkeypatch, header, size, line):
    monkeypatch.setattr(small_files, "LARGEST_ARRAYS", MEBI)
    with pytest.raises(ValueError, match=line):
        arrays_of(npz(tmp_path / "a.npz", header, size))


READERS = {
    "robot.yaml": load_robot,
    "obstacles.yaml": load_obstacles,
    "controller.yaml": load_controller,
    "motion.json": LearnedMotion.load,
    "samples.csv": lambda path: read_columns(path, str.isalpha),
    "reference.csv": lambda path: from_file(LinearModel(), path, 0.014),
    "reference.npz": lambda path: from_file(LinearModel(), path, 0.014),
    "design.json": lambda path: load_design(path.with_suffix("")),
}


@pytest.mark.parametrize("name", READERS)
def test_a_file_that_never_ends_is_a_line(name, tmp_path):
    path = tmp_path / name
    for make in (lambda: path.symlink_to("/dev/zero"), lambda: os.mkfifo(path)):
        make()
        with pytest.raises(UserError, match="is no regular file"):
            READERS[name](path)
        path.unlink()
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UserError, match="allowed are"):
        READERS[name](path)


def test_links_in_the_folder_of_a_bag_lead_a_report_nowhere(tmp_path, monkeypatch):
    simple_bag().write(tmp_path / "run" / "bag")
    (tmp_path / "figures").mkdir()
    for name in ("report.html", "summary.json"):
        (tmp_path / name).write_text("mine")
        (tmp_path / "run" / name).symlink_to(tmp_path / name)
    (tmp_path / "run" / "figures").symlink_to(tmp_path / "figures")
    assert cli.main(["report", str(tmp_path / "run")]) == 0
    assert "<html" in (tmp_path / "run" / "report.html").read_text()
    assert {(tmp_path / name).read_text() for name in ("report.html", "summary.json")} == {"mine"}
    assert not list((tmp_path / "figures").iterdir())


@pytest.mark.parametrize("part", ["a", "a_", "_1", " ", "1.", "-", "line ", "[", "( "])
def test_text_is_looked_at_once_however_long_it_is(part, tmp_path):
    """Where a pattern began anew at each character, these would take hours."""
    text = part * 500_000
    assert unit_of(f"parameter.{text}") == ""
    lines = []
    guard = Guard(BlockBase.__new__(BlockBase), lines.append)
    guard._tell("tick", ValueError(text))
    assert len(lines) == 1
    (tmp_path / "a.csv").write_text(f"time,{text[:100_000]}b\n0,1\n1,2\n")
    assert len(read_columns(tmp_path / "a.csv", {"time": "s"}.get)["time"]) == 2
