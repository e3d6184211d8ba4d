"""Reading a recorded run back: rosbag2 bags, mcap or sqlite3, also unfinished and cut ones.

Files are read from front to back by `bag_scanning`, which needs neither metadata.yaml nor an index;
rosbags reads what rosbag2 itself has compressed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, TypeVar

import yaml
import zstandard
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore

from softcr_models.errors import UserError
from softcr_runtime.bags.scanning import Cut, RawMessage, scan_mcap, scan_sqlite

_MOST_SURPLUS = 16  # bytes behind a message
_ZSTD = b"\x28\xb5\x2f\xfd"  # RFC 8878, section 3.1.1
_REORDERED = 1000
"""Items among which a late one is put back into its place."""


@dataclass(frozen=True)
class BagTopic:
    """What a bag holds of one topic: its type, as in `sensor_msgs/msg/JointState`, and how much."""

    type: str
    count: int


@dataclass(frozen=True)
class BagMessage:
    """One recorded message: absolute topic name, time of reception [ns], CDR bytes."""

    topic: str
    type: str
    time: int
    payload: bytes

    def decode(self) -> Any:
        """The message, with the fields of its ROS type.

        Raises:
            ValueError: the bytes do not fit the type.
        """
        try:
            return decoded(self.payload, self.type)
        except ValueError as error:
            raise ValueError(f"{self.topic}: not a {self.type}: {error}") from None


def decoded(payload: bytes, type_: str) -> Any:
    """The message that CDR bytes hold, of a standard interface.

    Fast DDS reserves room to align the numbers of a sequence even where the sequence is empty, and
    sends what it did not need: rosbags would refuse these bytes at the end.

    Raises:
        ValueError: the bytes do not fit the type.
    """
    refused: Exception | None = None
    for surplus in range(0, _MOST_SURPLUS + 1, 4):
        try:
            return _typestore().deserialize_cdr(payload[: len(payload) - surplus], type_)
        except Exception as error:  # rosbags raises many kinds on foreign bytes
            refused = refused or error
    raise ValueError(refused)


class Bag:
    """A bag opened for reading.

    `topics` maps absolute names to what was recorded of them; a topic without a message is not in
    it. `damage` is None for a bag that was finished, otherwise one line that says what is wrong and
    how much was recovered; what comes before the damage is served as usual.
    """

    def __init__(self, path: Path):
        """Open a bag.

        Args:
            path: a bag directory, one of its files, or a directory with a bag in `bag/`.

        Raises:
            UserError: there is no bag at `path`, or nothing in it can be read.
        """
        self.path = _locate(Path(path))
        self._source = _source_of(self.path)
        self.topics = {
            name: BagTopic(type_, count) for (name, type_), count in self._source.counts.items()
        }
        self.damage = self._source.damage
        if not self.topics:
            raise UserError(f"bag {self.path}: {self.damage or 'no message was recorded'}")

    def find(self, topic: str) -> str | None:
        """The absolute name under which the bag holds `topic`; None when it holds no message of it.

        A relative name is found in any namespace.

        Raises:
            UserError: more than one namespace has it.
        """
        if topic.startswith("/") or topic in self.topics:
            return topic if topic in self.topics else None
        names = sorted(name for name in self.topics if name.endswith(f"/{topic}"))
        if len(names) > 1:
            raise UserError(
                f"bag {self.path}: topic {topic} is ambiguous: {', '.join(names)}; --namespace "
                "names the robot"
            )
        return names[0] if names else None

    def messages(self, *topics: str) -> Iterator[BagMessage]:
        """The messages of some topics, in the order of their reception.

        Raises:
            UserError: the bag holds no message of a topic; names it.
        """
        wanted = set()
        for topic in topics:
            name = self.find(topic)
            if name is None:
                held = ", ".join(sorted(self.topics))
                raise UserError(f"bag {self.path}: no message on topic {topic}; it holds {held}")
            wanted.add(name)
        return (message for message in self._source.messages() if message.topic in wanted)


Item = TypeVar("Item")


def in_order(items: Iterable[Item], key: Callable[[Item], int]) -> Iterator[Item]:
    """Items that are almost sorted, sorted: writers with a thread per topic mix what is near."""
    waiting: list[tuple[int, int, Item]] = []
    for number, item in enumerate(items):
        heappush(waiting, (key(item), number, item))
        if len(waiting) > _REORDERED:
            yield heappop(waiting)[-1]
    while waiting:
        yield heappop(waiting)[-1]


class _ScannedBag:
    """Files read one after the other, each as far as it goes."""

    def __init__(self, files: list[Path], scan: Callable[[Path], Iterator[RawMessage]]):
        self._files, self._scan = files, scan
        self._cuts = dict.fromkeys(_missing(files[0].parent), "is missing")
        self.counts: Counter[tuple[str, str]] = Counter()
        first, last = 0, 0
        for message in self.messages():
            self.counts[message.topic, message.type] += 1
            first, last = first or message.time, max(last, message.time)
        self.damage = self._damage(1e-9 * (last - first))

    def messages(self) -> Iterator[BagMessage]:
        return in_order(self._unordered(), lambda message: message.time)

    def _unordered(self) -> Iterator[BagMessage]:
        for path in self._files:
            try:
                for topic, type_, time, payload in self._scan(path):
                    yield BagMessage(topic, _full(type_), time, _plain(payload))
            except Cut as cut:
                self._cuts[path] = str(cut)
            except OSError as error:
                raise UserError(f"bag file {path}: {error.strerror}") from None

    def _damage(self, duration: float) -> str | None:
        if not self._cuts:
            return None
        what = ", ".join(f"{path.name} {cut}" for path, cut in self._cuts.items())
        promised = _metadata(self._files[0].parent).get("message_count")
        of = f" of {promised}" if promised else ""
        recovered = f"{self.counts.total()}{of} messages, {duration:.1f} s, were recovered"
        return f"{what}; it is read as far as it goes: {recovered}"


class _CompressedBag:
    """A bag compressed by rosbag2 itself, file by file or message by message; read by rosbags."""

    damage = None

    def __init__(self, path: Path):
        self._reader = self._open(path)
        self.counts: Counter[tuple[str, str]] = Counter()
        for connection in self._reader.connections:
            if connection.msgcount:
                self.counts[connection.topic, connection.msgtype] += connection.msgcount

    @staticmethod
    def _open(path: Path) -> Reader:
        try:
            reader = Reader(path)
            reader.open()
        except Exception as error:  # rosbags raises many kinds on damaged files
            raise UserError(f"bag {path}: cannot be read: {error}") from None
        return reader

    def messages(self) -> Iterator[BagMessage]:
        for connection, time, payload in self._reader.messages():
            yield BagMessage(connection.topic, connection.msgtype, time, bytes(payload))


def _source_of(path: Path) -> _ScannedBag | _CompressedBag:
    if not _metadata(path).get("compression_mode"):
        for suffix, scan in ((".mcap", scan_mcap), (".db3", scan_sqlite)):
            if files := _files(path, suffix):
                return _ScannedBag(files, scan)
    return _CompressedBag(path)


def _metadata(bag: Path) -> dict[str, Any]:
    """What metadata.yaml tells of a bag directory; empty where it is missing or not readable."""
    try:
        content = yaml.safe_load((bag / "metadata.yaml").read_text(encoding="utf-8"))
        return dict(content["rosbag2_bagfile_information"])
    except (OSError, UnicodeDecodeError, yaml.YAMLError, TypeError, KeyError, ValueError):
        return {}


def _locate(path: Path) -> Path:
    """The bag meant by a path: a run's directory keeps its bag in `bag/`."""
    if not path.exists():
        raise UserError(f"bag {path}: no such file or directory")
    if (path / "bag").is_dir():
        return path / "bag"
    files = [file for suffix in (".mcap", ".db3") for file in _files(path, suffix)]
    if path.is_dir() and not files and not (path / "metadata.yaml").exists():
        if any(path.glob("*.zst*")):
            raise UserError(
                f"bag {path}: compressed, without metadata.yaml: ros2 bag reindex {path}, on a "
                "machine with an installation of ROS 2"
            )
        raise UserError(f"bag {path}: no metadata.yaml, .mcap or .db3 file in this directory")
    return path


def _files(path: Path, suffix: str) -> list[Path]:
    """The files of a bag in the order they were written."""
    if path.suffix == suffix:
        return [path]
    there = [file for file in _promised(path) if file.suffix == suffix and file.exists()]
    # rosbag2 numbers split files NAME_0, NAME_1, ... NAME_10
    return there or sorted(path.glob(f"*{suffix}"), key=lambda file: (len(file.name), file.name))


def _promised(bag: Path) -> list[Path]:
    """The files that metadata.yaml names: others in the directory are of something else."""
    names = _metadata(bag).get("relative_file_paths")
    # older releases wrote the name of the bag before that of the file
    return [bag / Path(str(name)).name for name in names] if isinstance(names, list) else []


def _missing(bag: Path) -> list[Path]:
    """Promised files, where at least one of them is there."""
    promised = _promised(bag)
    missing = [file for file in promised if not file.exists()]
    return missing if len(missing) < len(promised) else []


def _full(type_: str) -> str:
    """The name of a type as it is since Dashing; Crystal left out `msg`."""
    return type_ if type_.count("/") != 1 else type_.replace("/", "/msg/")


def _plain(payload: bytes) -> bytes:
    """A message that rosbag2 compressed by itself: without metadata.yaml only its magic tells."""
    if payload[:4] != _ZSTD:
        return payload  # CDR begins with a zero
    return zstandard.ZstdDecompressor().decompress(payload)


@cache
def _typestore() -> Typestore:
    return get_typestore(Stores.ROS2_JAZZY)
