"""Files in the format mcap, whole or not: what is whole in them is found without their index.

The layout is that of the MCAP specification, section "Records". A file is looked through once, from
front to back. What makes no sense is left out: the next chunk behind it is looked for by its form,
and counts when its size and its checksum are right. So a hole costs the chunk that it lies in, and
chunks that stand in another order, twice, or behind the end of another file are found, too.
"""

import re
import struct
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple
from zlib import crc32

from mcap.data_stream import ReadDataStream
from mcap.opcode import Opcode
from mcap.records import Channel, Schema

from softcr_runtime.bags.unpacking import (
    LARGEST_CHUNK,
    ZSTD,
    Allowance,
    Damaged,
    unpacked,
    unpacked_message,
)

_MAGIC = b"\x89MCAP0\r\n"
_HEAD, _CHUNK, _MESSAGE = struct.Struct("<BQ"), struct.Struct("<QQQII"), struct.Struct("<HIQQ")
_BEGIN = re.compile(rb"\x06[\s\S]{4}\0{4}|" + re.escape(_MAGIC))
"""What a chunk shorter than 4 GiB, and a file, begin with."""

_DEFINITION = re.compile(rb"[\x03\x04][\s\S]{2}[\0-\x0f]\0{5}")
"""What schemas and channels begin with."""

_WINDOW = 1 << 24  # that is searched at a time [byte]
_OVERLAP = 16  # longer than what is searched for [byte]
_LARGEST_DEFINITION = 1 << 20  # a schema or a channel [byte]
_COMPRESSIONS = {b"": "", b"zstd": "zstd", b"lz4": "lz4"}


class RawMessage(NamedTuple):
    """A message as it stands in a file: topic, type, time of reception [ns], CDR bytes."""

    topic: str
    type: str
    time: int
    payload: bytes


class _Head(NamedTuple):
    """What stands before the content of a chunk: where the content begins and ends in the file."""

    begin: int
    end: int
    compression: str
    size: int  # unpacked
    crc: int


@dataclass
class _Definitions:
    """What the channels of some chunks mean."""

    schemas: dict[int, str] = field(default_factory=dict)
    channels: dict[int, tuple[str, int]] = field(default_factory=dict)

    def take(self, opcode: int, record: bytes) -> "_Definitions":
        """With one more; other ones from here on where its number means something else already.

        Raises:
            Damaged: it cannot be read.
        """
        stream, is_schema = ReadDataStream(BytesIO(record)), opcode == Opcode.SCHEMA
        known: dict[int, Any] = self.schemas if is_schema else self.channels
        try:
            read = Schema.read(stream) if is_schema else Channel.read(stream)
            if stream.count != len(record):
                raise Damaged
        except Exception as error:  # damaged bytes surface as many kinds
            raise Damaged from error
        told = read.name if isinstance(read, Schema) else (read.topic, read.schema_id)
        if known.setdefault(read.id, told) == told:
            return self
        other = _Definitions(dict(self.schemas), dict(self.channels))
        instead: dict[int, Any] = other.schemas if is_schema else other.channels
        instead[read.id] = told
        return other

    def topic_and_type(self, channel: int) -> tuple[str, str] | None:
        """Of a channel; None where it has no schema, and so nothing that ROS could read.

        Raises:
            KeyError: the file does not say what it is.
        """
        topic, schema = self.channels[channel]
        return (topic, self.schemas[schema]) if schema else None


@dataclass
class _Part:
    """A chunk, or messages that stand in no chunk, one behind the other.

    Attributes:
        start, last: earliest and latest time of its messages [ns].
        begin, end: of its records in the file; of a chunk those that it unpacks to are meant.
        head: None where there is no chunk.
        definitions: of its channels.
        counts: of its messages by channel.
    """

    start: int
    last: int
    begin: int
    end: int
    head: _Head | None
    definitions: _Definitions
    counts: Counter[int]


class McapFile:
    """What is whole in an mcap file.

    Attributes:
        counts: messages by topic and type.
        first, last: time of the first and of the last message [ns].
        seen: how many messages were found, also those that cannot be read by ROS.
        told: how many the file says it holds; 0 where it does not say so.
        damage: what is wrong, each in words that go on from the file's name.
        checked: whether checksums cover all that was found.
    """

    def __init__(self, path: Path):
        """Look a file through.

        Raises:
            OSError: it cannot be read.
        """
        self._path = path
        self._parts: list[_Part] = []
        self._known: set[tuple[int, int, int]] = set()  # chunks, by what they hold
        self._definitions = _Definitions()
        self._holes: list[tuple[int, int]] = []  # begin and end of what makes no sense
        self._begun = 0  # files in this one
        self._data_crc, self._data_end, self._closes = 0, 0, -1
        self._finished, self._several = False, False
        self._twice = 0
        self._reasons: dict[str, None] = {}
        self.told = 0
        with path.open("rb") as file:
            self._size = file.seek(0, 2)
            self._allowance = Allowance(self._size)
            self._look_through(file)
            self._complete_definitions(file)
            in_no_chunk = any(part.head is None for part in self._parts)
            whole = in_no_chunk and self._data_crc != 0 and self._has_crc(file)
        self._parts.sort(key=lambda part: part.start)
        self.counts: Counter[tuple[str, str]] = Counter()
        unknown = 0
        for part in self._parts:
            for channel, count in part.counts.items():
                try:
                    named = part.definitions.topic_and_type(channel)
                except KeyError:
                    unknown += count
                    continue
                if named is not None:
                    self.counts[named] += count
        self.first = self._parts[0].start if self._parts else 0
        self.last = max((part.last for part in self._parts), default=0)
        self.seen = sum(part.counts.total() for part in self._parts)
        self.checked = all(whole if p.head is None else p.head.crc != 0 for p in self._parts)
        self.damage = [*self._damage(unknown, in_no_chunk and self._data_crc != 0 and not whole)]

    def messages(self, topics: Collection[str] | None = None) -> Iterator[RawMessage]:
        """The messages of some topics, or of all; chunk by chunk in the order of their times.

        Raises:
            OSError: the file cannot be read.
        """
        with self._path.open("rb") as file:
            for part in self._parts:
                named = {}
                for channel in part.counts:
                    try:
                        about = part.definitions.topic_and_type(channel)
                    except KeyError:
                        continue
                    if about is not None and (topics is None or about[0] in topics):
                        named[channel] = about
                if named:
                    yield from self._of_part(file, part, named)

    def _of_part(
        self, file: IO[bytes], part: _Part, named: dict[int, tuple[str, str]]
    ) -> Iterator[RawMessage]:
        data = self._content(file, part.head) if part.head else _read(file, part.begin, part.end)
        for opcode, begin, end in _records(data[: part.end] if part.head else data):
            if opcode != Opcode.MESSAGE:
                continue
            channel, _, time, _ = _MESSAGE.unpack_from(data, begin)
            if channel in named:
                with suppress(Damaged):  # told already
                    payload = unpacked_message(bytes(data[begin + _MESSAGE.size : end]))
                    yield RawMessage(*named[channel], time, payload)

    # --- looking through ------------------------------------------------------------------------

    def _look_through(self, file: IO[bytes]) -> None:
        position, sound = 0, True
        while position < self._size:
            end = self._whole_at(file, position)
            if end is not None:
                position, sound = end, True
                continue
            found, head = self._next_begin(file, position + 1), self._head(file, position)
            if found == self._size and head is not None and head.end > self._size:
                self._take_cut_chunk(file, head)
            elif found < self._size or not sound or head is not None:
                before = self._holes.pop() if not sound else (position, position)
                self._holes.append((before[0], found))
            position, sound = found, False

    def _whole_at(self, file: IO[bytes], position: int) -> int | None:
        """Where what is whole at a place ends, after it was taken; None where nothing is."""
        start = _read(file, position, position + _HEAD.size)
        if start[:8] == _MAGIC:
            ends = position == self._closes  # a file ends with the same bytes
            self._begun += not ends or position + len(_MAGIC) < self._size
            return position + len(_MAGIC)
        if len(start) < _HEAD.size:
            return None
        opcode, length = _HEAD.unpack(start)
        begin, end = position + _HEAD.size, position + _HEAD.size + length
        if not opcode or end > self._size:
            return None
        try:
            if opcode == Opcode.CHUNK:
                self._take_chunk(file, position)
            else:
                self._take(file, opcode, begin, end)
        except Damaged as damaged:
            if str(damaged):
                self._reasons[str(damaged)] = None
            return None
        return end

    def _take(self, file: IO[bytes], opcode: int, begin: int, end: int) -> None:
        """Take a record that is no chunk.

        Raises:
            Damaged: it makes no sense, or what stands behind it does not.
        """
        behind = _read(file, end, end + _HEAD.size)
        if len(behind) == _HEAD.size and behind[:8] != _MAGIC and not _begins_record(behind):
            raise Damaged  # its length is another one
        if opcode == Opcode.HEADER:
            self._several |= begin != len(_MAGIC) + _HEAD.size
        elif opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
            if end - begin > _LARGEST_DEFINITION:
                raise Damaged(f"has a record of {end - begin} bytes that defines a channel")
            self._define(opcode, bytes(_read(file, begin, end)))
        elif opcode == Opcode.MESSAGE:
            self._take_message(file, begin, end)
        elif opcode == Opcode.MESSAGE_INDEX:
            told = _read(file, begin, begin + 6)
            if len(told) < 6 or struct.unpack_from("<I", told, 2)[0] + 6 != end - begin:
                raise Damaged
        elif opcode == Opcode.STATISTICS and end - begin >= 8:
            self.told += struct.unpack("<Q", _read(file, begin, begin + 8))[0]
        elif opcode == Opcode.DATA_END and end - begin == 4 and self._begun < 2:
            (self._data_crc,) = struct.unpack("<I", _read(file, begin, end))
            self._data_end = begin - _HEAD.size
        elif opcode == Opcode.FOOTER:
            self._closes = end
            self._finished = end + len(_MAGIC) == self._size and behind[:8] == _MAGIC

    def _complete_definitions(self, file: IO[bytes]) -> None:
        """Take what stands in places that make no sense for channels that nothing else defines."""
        spare = _Definitions()
        for hole, end in self._holes if self._lacks_definitions() else ():
            window = _read(file, hole, min(end, hole + _WINDOW))
            for found in _DEFINITION.finditer(window):
                opcode, length = _HEAD.unpack_from(window, found.start())
                begin = found.start() + _HEAD.size
                with suppress(Damaged):
                    spare = spare.take(opcode, bytes(window[begin : begin + length]))
        for part in self._parts:
            part.definitions.schemas = spare.schemas | part.definitions.schemas
            part.definitions.channels = spare.channels | part.definitions.channels

    def _lacks_definitions(self) -> bool:
        return any(
            number not in part.definitions.channels
            or part.definitions.channels[number][1] not in {0, *part.definitions.schemas}
            for part in self._parts
            for number in part.counts
        )

    def _define(self, opcode: int, record: bytes) -> None:
        before = self._definitions
        self._definitions = before.take(opcode, record)
        self._several |= self._definitions is not before

    def _take_message(self, file: IO[bytes], begin: int, end: int) -> None:
        """One that stands in no chunk."""
        if end - begin < _MESSAGE.size:
            raise Damaged
        channel, _, time, _ = _MESSAGE.unpack(_read(file, begin, begin + _MESSAGE.size))
        last, begin = self._parts[-1] if self._parts else None, begin - _HEAD.size
        if (
            last is None
            or last.head is not None
            or last.end != begin
            or last.definitions is not self._definitions
            or end - last.begin > _WINDOW
        ):
            last = _Part(time, time, begin, end, None, self._definitions, Counter())
            self._parts.append(last)
        last.start, last.last, last.end = min(last.start, time), max(last.last, time), end
        last.counts[channel] += 1
        self._try_unpacking(_read(file, begin + _HEAD.size + _MESSAGE.size, end))

    def _try_unpacking(self, payload: memoryview) -> None:
        """Find out whether a message that is compressed by itself can be read."""
        if payload[: len(ZSTD)] == ZSTD:
            try:
                unpacked_message(bytes(payload), self._allowance)
            except Damaged as damaged:
                self._reasons[str(damaged)] = None

    def _head(self, file: IO[bytes], position: int) -> _Head | None:
        """Of a chunk that begins at a place; None where none does. Its end may be missing."""
        start = _read(file, position, position + _HEAD.size + _CHUNK.size + 12)
        if len(start) < _HEAD.size + _CHUNK.size + 8 or start[0] != Opcode.CHUNK:
            return None
        _, length = _HEAD.unpack_from(start)
        _, _, size, crc, letters = _CHUNK.unpack_from(start, _HEAD.size)
        named = _HEAD.size + _CHUNK.size
        compression = _COMPRESSIONS.get(bytes(start[named : named + letters]))
        if letters > 4 or compression is None or len(start) < named + letters + 8:
            return None
        (content,) = struct.unpack_from("<Q", start, named + letters)
        before = named + letters + 8
        if before + content != _HEAD.size + length:
            return None
        return _Head(position + before, position + before + content, compression, size, crc)

    def _content(self, file: IO[bytes], head: _Head) -> memoryview:
        """What a chunk unpacks to, or what is there of it."""
        return unpacked(head.compression, bytes(_read(file, head.begin, head.end)), head.size)

    def _take_chunk(self, file: IO[bytes], position: int) -> None:
        head = self._head(file, position)
        if head is None:
            raise Damaged
        self._allowance.take(head.size, "a chunk", LARGEST_CHUNK)
        data = self._content(file, head)
        crc = crc32(data)
        if len(data) != head.size or head.crc not in (0, crc):
            raise Damaged
        before = self._definitions, self._several
        try:
            part = self._part_of(head, data)
        except Damaged:
            self._definitions, self._several = before
            raise
        told = crc, head.size, part.start
        if told in self._known:
            self._twice += 1
            return
        self._known.add(told)
        if part.counts:
            self._parts.append(part)

    def _part_of(self, head: _Head, data: memoryview) -> _Part:
        counts: Counter[int] = Counter()
        earliest, latest, end_of_last = 1 << 64, 0, 0
        for opcode, begin, end in _records(data):
            if opcode == Opcode.MESSAGE:
                if end - begin < _MESSAGE.size:
                    raise Damaged
                channel, _, time, _ = _MESSAGE.unpack_from(data, begin)
                counts[channel] += 1
                earliest, latest = min(earliest, time), max(latest, time)
                self._try_unpacking(data[begin + _MESSAGE.size : end])
            elif opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                if end - begin > _LARGEST_DEFINITION:
                    raise Damaged
                self._define(opcode, bytes(data[begin:end]))
            end_of_last = end
        return _Part(earliest, latest, 0, end_of_last, head, self._definitions, counts)

    def _take_cut_chunk(self, file: IO[bytes], head: _Head) -> None:
        """Take the whole messages of the chunk with which a file ends too early."""
        try:
            self._allowance.take(head.size, "a chunk", LARGEST_CHUNK)
        except Damaged as damaged:
            self._reasons[str(damaged)] = None
            return
        data = self._content(file, head)
        end = 0
        try:
            for _, _, end_of_record in _records(data):
                end = end_of_record
        except Damaged:
            pass
        try:
            part = self._part_of(head, data[:end])
        except Damaged:
            return
        if part.counts:
            self._parts.append(part)

    def _next_begin(self, file: IO[bytes], position: int) -> int:
        """Where the next chunk, or another file, seems to begin; the file's end where none does."""
        while position < self._size:
            window = _read(file, position, position + _WINDOW)
            for found in _BEGIN.finditer(window):
                at = position + found.start()
                if window[found.start()] != Opcode.CHUNK or self._head(file, at):
                    return at
            if position + len(window) >= self._size:
                break
            position += len(window) - _OVERLAP
        return self._size

    def _has_crc(self, file: IO[bytes]) -> bool:
        """Whether the data section is what its checksum says."""
        file.seek(0)
        crc, left = 0, self._data_end
        while left and (piece := file.read(min(left, _WINDOW))):
            crc, left = crc32(piece, crc), left - len(piece)
        return crc == self._data_crc

    def _damage(self, unknown: int, differs: bool) -> Iterator[str]:
        if not self._begun:
            yield "does not begin as an mcap file does"
        if not self._finished:
            yield "was not finished"
        yield from self._reasons
        if self._holes:
            lost, count = sum(end - begin for begin, end in self._holes), len(self._holes)
            places = "1 place" if count == 1 else f"{count} places"
            yield f"is damaged: {lost} bytes in {places} are left out"
        if differs:
            yield "is damaged: its checksum is another one"
        if unknown:
            yield f"does not say what {unknown} of its messages are"
        if self._begun > 1 or self._several:
            yield "holds several recordings, one behind the other"
        if self._twice:
            yield f"holds {self._twice} of its chunks twice; one of each counts"
        if self.seen < self.told and self._finished and not self._holes and not self._reasons:
            yield f"holds {self.seen} messages, and says that they are {self.told}"


def _read(file: IO[bytes], begin: int, end: int) -> memoryview:
    file.seek(begin)
    return memoryview(file.read(end - begin))


def _begins_record(start: memoryview) -> bool:
    opcode, length = _HEAD.unpack(start)
    return (0 < opcode <= Opcode.DATA_END or opcode >= 0x80) and length < 1 << 40


def _records(data: memoryview) -> Iterator[tuple[int, int, int]]:
    """Opcode, begin and end of the content of each record.

    Raises:
        Damaged: after the last one that is whole.
    """
    position = 0
    while position < len(data):
        if position + _HEAD.size > len(data):
            raise Damaged
        opcode, length = _HEAD.unpack_from(data, position)
        begin = position + _HEAD.size
        position = begin + length
        if not opcode or position > len(data):
            raise Damaged
        yield opcode, begin, position
