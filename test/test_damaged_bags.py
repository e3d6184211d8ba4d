"""Bags with random damage: what is whole in them is read, and what is not is told."""

import random
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.bags import closed_loop, numbers_of, write_bag
from kit.rosbags_bags import write_with_rosbags
from mcap.writer import CompressionType, Writer

from softcr_models.errors import UserError
from softcr_runtime.bags.reading import Bag
from softcr_runtime.bags.recording import BagRecording, RecordedTopic
from softcr_runtime.replay.bag_replay import _QOS

TYPE = "std_msgs/msg/String"
TOPICS = ("/one", "/two", "/three")
CHUNK, MAGIC = 0x06, b"\x89MCAP0\r\n"
KINDS = ("ours", "ours plain", "zstd", "lz4", "plain", "no chunks", "rosbags")
CASES = 40  # of each kind


def content(number: int, seed: int) -> bytes:
    """The payload of a message, which no other message has."""
    noise = random.Random(number + 1000 * seed)
    return struct.pack("<II", number, seed) + noise.randbytes(noise.randrange(300))


def write(directory: Path, kind: str, seed: int = 0, count: int = 300) -> Path:
    """A file of some chunks, by our recorder or as `ros2 bag record` and rosbags have them."""
    messages = [(TOPICS[n % 3], 10**6 * n + 1, content(n, seed)) for n in range(count)]
    if kind.startswith("ours"):
        topics = [RecordedTopic(name, TYPE, _QOS) for name in TOPICS]
        recording = BagRecording(directory, topics, kind == "ours")
        for number, message in enumerate(messages):
            recording.write(*message)
            if number % 40 == 39:
                while recording.statistics.recorded <= number:
                    pass
        recording.close()
        return directory / f"{directory.name}.mcap"
    if kind == "rosbags":
        write_with_rosbags(directory, [(name, TYPE, *rest) for name, *rest in messages])
        return directory / f"{directory.name}.mcap"
    directory.mkdir()
    return write_with_mcap(directory / "bag_0.mcap", messages, kind)


def write_with_mcap(path: Path, messages, kind: str, plain: str = "") -> Path:
    """A file by the package mcap, where told with a channel of JSON beside each message."""
    packed = {"zstd": CompressionType.ZSTD, "lz4": CompressionType.LZ4}
    with path.open("wb") as file:
        writer = Writer(
            file, chunk_size=6000, compression=packed.get(kind, CompressionType.NONE),
            use_chunking=kind != "no chunks", enable_data_crcs=kind == "no chunks",
        )  # fmt: skip
        writer.start("ros2", "test")
        schema = writer.register_schema(TYPE, "ros2msg", b"string data")
        channels = {name: writer.register_channel(name, "cdr", schema) for name in TOPICS}
        beside = writer.register_channel(plain, "json", 0) if plain else None
        for name, time, payload in messages:
            writer.add_message(channels[name], time, payload, time)
            if beside:
                writer.add_message(beside, time, b"{}", time)
        writer.finish()
    return path


def records(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Opcode, begin and end of each record of a whole file."""
    position = len(MAGIC)
    while position < len(data) - len(MAGIC):
        opcode, length = struct.unpack_from("<BQ", data, position)
        yield opcode, position, position + 9 + length
        position += 9 + length


def definitions(data: bytes) -> list[bytes]:
    """The schemas and channels that stand beside the chunks of a whole file."""
    return [data[b:e] for opcode, b, e in records(data) if opcode in (0x03, 0x04)]


def found_in(path: Path) -> list[tuple[str, int, bytes]]:
    bag = Bag(path)
    return [(each.topic, each.time, each.payload) for each in bag.messages(*bag.topics)]


def whole_chunks(path: Path, folder: Path) -> dict[bytes, Counter]:
    """What each chunk of a file holds, by its bytes, read of a file that has this chunk alone."""
    data, found, alone = path.read_bytes(), {}, folder / "chunk.mcap"
    for opcode, begin, end in records(data):
        if opcode == CHUNK:
            alone.write_bytes(MAGIC + b"".join(definitions(data)) + data[begin:end])
            found[data[begin:end]] = Counter(found_in(alone))
    return found


def damaged(data: bytes, other: bytes, dice: random.Random) -> tuple[str, bytes]:
    """A file's content after something happened to it, and what that was."""
    at = dice.randrange(len(data))
    size = int(10 ** dice.uniform(0, 4))
    chunks = [(begin, end) for opcode, begin, end in records(data) if opcode == CHUNK]
    what = dice.choice(
        ["zeros", "flips", "cut", "noise", "gone", "again", "swapped", "lost", "twice", "both"]
    )
    if what in ("swapped", "lost", "twice") and len(chunks) < 2:
        what = "zeros"
    if what in ("zeros", "noise"):
        count = len(data[at : at + size])
        instead = bytes(count) if what == "zeros" else dice.randbytes(count)
        data = data[:at] + instead + data[at + size :]
    elif what == "flips":
        changed = bytearray(data)
        for _ in range(dice.choice((1, 1, 1, 5))):
            changed[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        data = bytes(changed)
    elif what in ("cut", "gone", "again"):
        goes_on = {"cut": len(data), "gone": at + size, "again": max(0, at - size)}[what]
        data = data[:at] + data[goes_on:]
    elif what == "both":
        data = dice.choice((data + other, data[:at] + other, data + data, data + other[at:]))
    else:
        (a, b), (c, d) = sorted(dice.sample(chunks, 2))
        if what == "swapped":
            data = data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]
        elif what == "lost":
            data = data[:a] + data[b:]
        else:
            data = data[:d] + data[a:b] + data[d:]
    return what, data


class Damage:
    """Files of one kind, and what is right to read of them."""

    def __init__(self, folder: Path, kind: str):
        self.paths = [write(folder / f"bag{seed}", kind, seed) for seed in (0, 1)]
        self.data = [path.read_bytes() for path in self.paths]
        self.messages = [found_in(path) for path in self.paths]
        self.chunks = [whole_chunks(path, folder) for path in self.paths]
        self.checked, self.folder = kind != "rosbags", folder
        self.alone = kind.startswith("ours")  # whether each chunk tells its own channels
        self.definitions = definitions(self.data[0])
        for path in self.paths:
            bag = Bag(path)
            assert (bag.damage, bag.doubt is None) == (None, self.checked)
            assert sum(topic.count for topic in bag.topics.values()) == 300

    def check(self, seed: int) -> str:
        """One case; returns how it ended: "equal", "told" or "refused"."""
        dice, data, happened = random.Random(seed), self.data[0], []
        for _ in range(dice.choice((1, 1, 1, 2))):
            try:
                what, data = damaged(data, self.data[1], dice)
            except (struct.error, ValueError):  # nothing is left to damage
                break
            happened.append(what)
        path = self.folder / "case.mcap"
        path.write_bytes(data)
        there = [holds for known in self.chunks for part, holds in known.items() if part in data]
        known = self.alone or all(part in data for part in self.definitions)
        whole = sum(there, Counter()) if known else Counter()
        try:
            bag = Bag(path)
        except UserError as error:
            assert "\n" not in str(error)  # noqa: PT017 (it may refuse what holds nothing)
            assert not whole, (seed, happened)
            return "refused"
        messages = found_in(path)
        times = [time for _, time, _ in messages]
        assert not whole - Counter(messages), (seed, happened)
        if messages == self.messages[0]:
            return "equal" if bag.damage is None else "told"
        assert bag.damage or bag.doubt, (seed, happened)
        assert times == sorted(times), (seed, happened)
        return "told"


@pytest.mark.parametrize("kind", KINDS)
def test_no_damage_goes_unnoticed_and_whole_chunks_are_read(tmp_path, kind):
    damage = Damage(tmp_path, kind)
    assert {"told"} <= {damage.check(seed) for seed in range(CASES)}


def test_figures_of_a_damaged_bag_carry_a_warning(tmp_path):
    whole = write_bag(tmp_path / "bag", closed_loop(3.0))
    file = whole / "bag.mcap"
    data, right, told = file.read_bytes(), numbers_of(whole).numbers, 0
    assert "damaged" not in right["verdict"]["line"]
    for seed in range(25):
        _, content = damaged(data, data, random.Random(seed))
        file.write_bytes(content)
        try:
            summary = numbers_of(whole)
        except UserError:
            continue
        if summary.numbers != right:
            assert "damaged bag" in summary["verdict"]["line"]
            assert summary.figures[0][0] == "damaged bag"
            told += 1
    assert told > 10


def test_a_channel_that_ros_cannot_read_costs_the_others_nothing(tmp_path):
    path = write(tmp_path / "bag", "zstd")
    before = found_in(path)
    write_with_mcap(path, before, "zstd", plain="/plain")
    assert Bag(path).damage is None
    assert found_in(path) == before
