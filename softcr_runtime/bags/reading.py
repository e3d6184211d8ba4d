"""Reading a recorded run back: rosbag2 bags, mcap or sqlite3, also unfinished and cut ones.

Neither metadata.yaml nor an index is needed: see `mcap_files` and `sqlite_files`.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from heapq import heappop, heappush
from pathlib import Path
from typing import Any, TypeVar

import yaml

from softcr_models.errors import UserError
from softcr_models.files.small_files import content_of
from softcr_runtime.bags.mcap_files import McapFile
from softcr_runtime.bags.message_bytes import decoded
from softcr_runtime.bags.sqlite_files import SqliteFile
from softcr_runtime.bags.unpacking import LARGEST_MESSAGE, Damaged, in_words, unpacked_file
from softcr_runtime.wire.topics import TOPICS

_LARGEST_METADATA = 1 << 20  # [byte]
_UNCHECKED = "the bag has no checksums: damage inside its messages would not be noticed"
_PACKED = (".zstd", ".zst")  # endings of files that are compressed as a whole
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
            ValueError: the bytes do not fit the type, are more than `LARGEST_MESSAGE`, or are of
                another type than the topic has.
        """
        expected = _type_in_table(self.topic)
        if expected not in (None, self.type):
            raise ValueError(f"{self.topic}: is a {self.type}, must be a {expected}")
        try:
            if len(self.payload) > LARGEST_MESSAGE:
                size, most = map(in_words, (len(self.payload), LARGEST_MESSAGE))
                raise ValueError(f"it has {size}, allowed are {most}")
            return decoded(self.payload, self.type)
        except ValueError as error:
            raise ValueError(f"{self.topic}: not a {self.type}: {error}") from None


class Bag:
    """A bag opened for reading.

    Attributes:
        topics: absolute names -> what was recorded of them; a topic without a message is not in it.
        damage: None for a bag that is whole, otherwise one line that says what is wrong with it and
            how much was recovered, which is served as usual.
        doubt: None where checksums cover all messages, otherwise one line that says so.
    """

    def __init__(self, path: Path):
        """Open a bag.

        Args:
            path: a bag directory, one of its files, or a directory with a bag in `bag/`.

        Raises:
            UserError: there is no bag at `path`, or nothing in it can be read.
        """
        self.path = _locate(Path(path))
        self._source = _Files(self.path)
        self.topics = {
            name: BagTopic(type_, count) for (name, type_), count in self._source.counts.items()
        }
        self.damage = self._source.damage
        self.doubt = None if self._source.checked else _UNCHECKED
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
        return self._source.messages(wanted)


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


class _Files:
    """The files of a bag, read together.

    Attributes:
        counts: messages by topic and type.
        damage: see `Bag`.
        checked: whether checksums cover all messages.
    """

    def __init__(self, path: Path):
        """Look the files of a bag through, each as far as it goes.

        Raises:
            UserError: one cannot be read.
        """
        about = _metadata(path)
        paths = _files(path, about)
        missing = _missing(path, about, paths) if path.is_dir() else []
        lines = [f"{each.name} is missing" for each in missing]
        self._files: list[tuple[Path, McapFile | SqliteFile]] = []
        self._unpacked: list[Any] = []  # they last as long as somebody holds them
        for each in paths:
            try:
                self._files.append((each, self._opened(each)))
            except Damaged as damaged:
                lines.append(f"{each.name} {damaged}")
            except OSError as error:
                raise UserError(f"bag file {each}: {error.strerror}") from None
        files = [file for _, file in self._files]
        lines += [f"{each.name} {what}" for each, file in self._files for what in file.damage]
        self._files.sort(key=lambda each: each[1].first)
        self.counts = sum((file.counts for file in files), Counter[tuple[str, str]]())
        self.checked = all(file.checked for file in files)
        told, of_bag = sum(file.told for file in files), _number(about.get("message_count"))
        promised = of_bag if path.is_dir() else told
        if sum(file.seen for file in files) < promised and not lines:
            lines.append("messages are missing")
        of = f" of {promised or of_bag}" if promised or of_bag else ""
        times = [time for file in files if file.seen for time in (file.first, file.last)]
        seconds = 1e-9 * (max(times) - min(times)) if times else 0.0
        recovered = f"{self.counts.total()}{of} messages, {seconds:.1f} s, were recovered"
        self.damage = f"{', '.join(lines)}; {recovered}" if lines else None

    def messages(self, topics: Collection[str] | None) -> Iterator[BagMessage]:
        """Of some topics, or of all, in the order of their reception."""
        return in_order(self._unordered(topics), lambda message: message.time)

    def _unordered(self, topics: Collection[str] | None) -> Iterator[BagMessage]:
        for path, file in self._files:
            try:
                for topic, type_, time, payload in file.messages(topics):
                    yield BagMessage(topic, _full(type_), time, payload)
            except OSError as error:
                raise UserError(f"bag file {path}: {error.strerror}") from None

    def _opened(self, path: Path) -> McapFile | SqliteFile:
        if path.suffix in _PACKED:
            self._unpacked.append(unpacked_file(path))
            content = Path(self._unpacked[-1].name)
        else:
            content = path
        return McapFile(content) if _storage(path) == ".mcap" else SqliteFile(content)


def _metadata(bag: Path) -> dict[str, Any]:
    """What metadata.yaml tells of a bag; empty where it is missing or not readable."""
    beside = (bag if bag.is_dir() else bag.parent) / "metadata.yaml"
    try:
        content = yaml.safe_load(content_of(beside, _LARGEST_METADATA))
        return dict(content["rosbag2_bagfile_information"])
    except (OSError, UserError, yaml.YAMLError, TypeError, KeyError, ValueError, RecursionError):
        return {}


def _locate(path: Path) -> Path:
    """The bag meant by a path: a run's directory keeps its bag in `bag/`."""
    if not path.exists():
        raise UserError(f"bag {path}: no such file or directory")
    if (path / "bag").is_dir():
        return path / "bag"
    if not _files(path, {}):
        where = "in this directory" if path.is_dir() else "this is"
        raise UserError(f"bag {path}: no .mcap or .db3 file {where}")
    return path


def _files(path: Path, about: Mapping[str, Any]) -> list[Path]:
    """The files of a bag in the order they were written."""
    if not path.is_dir():
        return [path] if _is_of_bag(path) else []
    there = [file for file in _promised(path, about) if _is_of_bag(file)]
    # rosbag2 numbers split files NAME_0, NAME_1, ... NAME_10
    there = there or sorted(filter(_is_of_bag, path.iterdir()), key=lambda f: (len(f.name), f.name))
    return [file for file in there if _storage(file) == _storage(there[0])]


def _is_of_bag(path: Path) -> bool:
    return _storage(path) in (".mcap", ".db3") and path.is_file()


def _storage(path: Path) -> str:
    return (path.with_suffix("") if path.suffix in _PACKED else path).suffix


def _promised(bag: Path, about: Mapping[str, Any]) -> list[Path]:
    """The files that metadata.yaml names: others in the directory are of something else."""
    names = about.get("relative_file_paths")
    # older releases wrote the name of the bag before that of the file
    told = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return [bag / Path(name).name for name in told if "\0" not in name]


def _missing(bag: Path, about: Mapping[str, Any], there: list[Path]) -> list[Path]:
    """Promised files, where at least one of them is there."""
    promised = _promised(bag, about)
    return [file for file in promised if file not in there] if {*promised} & {*there} else []


def _number(told: Any) -> int:
    return told if isinstance(told, int) else 0


def _full(type_: str) -> str:
    """The name of a type as it is since Dashing; Crystal left out `msg`."""
    return type_ if type_.count("/") != 1 else type_.replace("/", "/msg/")


@cache
def _type_in_table(topic: str) -> str | None:
    """The type of a topic, by its absolute name; None where it is none of the table's."""
    absolute = TOPICS.get(topic)
    if absolute is not None:
        return absolute.type
    parts = topic.strip("/").split("/")
    ends = ("/".join(parts[number:]) for number in range(len(parts)))
    return next((TOPICS[end].type for end in ends if end in TOPICS), None)
