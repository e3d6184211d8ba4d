"""Reading a recorded run back: rosbag2 bags, mcap or sqlite3, also unfinished and cut ones."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mcap.exceptions import EndOfFile
from mcap.records import Channel, Message, Schema
from mcap.stream_reader import StreamReader
from rosbags.rosbag2 import Reader
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore

from softcr_models.errors import UserError


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
            return _typestore().deserialize_cdr(self.payload, self.type)
        except Exception as error:  # rosbags raises many kinds on foreign bytes
            raise ValueError(f"{self.topic}: not a {self.type}: {error}") from None


class Bag:
    """A bag opened for reading.

    `topics` maps absolute names to what was recorded of them; a topic without a message is not in
    it. `damage` is None for a bag that was finished, otherwise one line that says what is wrong;
    what comes before the damage is served as usual.
    """

    def __init__(self, path: Path):
        """Open a bag.

        Args:
            path: a bag directory, one of its files, or a directory with a bag in `bag/`.

        Raises:
            UserError: there is no bag at `path`, or nothing in it can be read.
        """
        self.path = _locate(Path(path))
        files = _mcap_files(self.path)
        self._source = _ScannedMcap(files) if files else _IndexedBag(self.path)
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
        if topic.startswith("/"):
            return topic if topic in self.topics else None
        names = sorted(name for name in self.topics if name.endswith(f"/{topic}"))
        if len(names) > 1:
            raise UserError(f"bag {self.path}: topic {topic} is ambiguous: {', '.join(names)}")
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


class _ScannedMcap:
    """mcap files read from front to back, without the index that an unfinished file lacks."""

    def __init__(self, files: list[Path]):
        self._files = files
        self.damage: str | None = None
        self.counts = Counter((message.topic, message.type) for message in self.messages())

    def messages(self) -> Iterator[BagMessage]:
        for path in self._files:
            try:
                yield from _scan(path)
            except OSError as error:
                raise UserError(f"bag file {path}: {error.strerror}") from None
            except Exception as error:  # damaged bytes surface as many kinds
                cut = isinstance(error, EndOfFile)
                what = "was not finished" if cut else f"is damaged ({error})"
                self.damage = f"{path.name} {what}; it is read as far as it goes"


class _IndexedBag:
    """Every other kind of bag (sqlite3, compressed files), read by rosbags."""

    def __init__(self, path: Path):
        self.damage = None
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


def _scan(path: Path) -> Iterator[BagMessage]:
    schemas, channels = {}, {}
    with path.open("rb") as file:
        for record in StreamReader(file, validate_crcs=True).records:
            if isinstance(record, Schema):
                schemas[record.id] = record
            elif isinstance(record, Channel):
                channels[record.id] = record
            elif isinstance(record, Message):
                channel = channels[record.channel_id]
                type_ = schemas[channel.schema_id].name
                yield BagMessage(channel.topic, type_, record.log_time, record.data)


def _locate(path: Path) -> Path:
    """The bag meant by a path: a run's directory keeps its bag in `bag/`."""
    if not path.exists():
        raise UserError(f"bag {path}: no such file or directory")
    if (path / "bag").is_dir():
        return path / "bag"
    if path.is_dir() and not (path / "metadata.yaml").exists():
        single = [*path.glob("*.db3")]
        if len(single) == 1:
            return single[0]
        if not _mcap_files(path):
            raise UserError(f"bag {path}: no metadata.yaml, .mcap or .db3 file in this directory")
    return path


def _mcap_files(path: Path) -> list[Path]:
    if path.suffix == ".mcap":
        return [path]
    # rosbag2 numbers split files NAME_0, NAME_1, ... NAME_10
    return sorted(path.glob("*.mcap"), key=lambda file: (len(file.name), file.name))


@cache
def _typestore() -> Typestore:
    return get_typestore(Stores.ROS2_JAZZY)
