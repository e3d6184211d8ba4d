"""Files of a bag read from front to back, without the index that an unfinished file lacks."""

import struct
from collections import deque
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import apsw
import lz4.frame
import zstandard
from mcap.exceptions import EndOfFile
from mcap.opcode import Opcode
from mcap.records import Channel, McapRecord, Message, Schema
from mcap.stream_reader import MAGIC_SIZE, StreamReader

_REMEMBERED = 100_000  # messages: more than a chunk holds


class RawMessage(NamedTuple):
    """A message as it stands in a file: topic, type, time of reception [ns], CDR bytes."""

    topic: str
    type: str
    time: int
    payload: bytes


class Cut(Exception):
    """A file ended, or made no sense any more, before its end; `str(cut)` says which."""


def scan_mcap(path: Path) -> Iterator[RawMessage]:
    """The messages of an mcap file in the order they were written.

    Raises:
        Cut: after the last message that can be read; a chunk that was cut is read up to the cut.
        OSError: the file cannot be read.
    """
    channels = _McapChannels()
    recent: deque[int] = deque(maxlen=_REMEMBERED)
    try:
        with path.open("rb") as file:
            for message in channels.messages(StreamReader(file, validate_crcs=True).records):
                recent.append(hash(message))
                yield message
    except EndOfFile:
        # a damaged length can make a chunk look cut that has been read already
        known = set(recent)
        for message in channels.messages(_records_of_cut_chunk(path)):
            if hash(message) not in known:
                yield message
        raise Cut("was not finished") from None
    except OSError:
        raise
    except Exception as error:  # damaged bytes surface as many kinds
        raise Cut(f"is damaged ({error})") from None


def scan_sqlite(path: Path) -> Iterator[RawMessage]:
    """The messages of a sqlite3 file of rosbag2 in the order they were written.

    Raises:
        Cut: after the last message that can be read.
        OSError: the file cannot be read.
    """
    path.open("rb").close()  # sqlite would not say why
    problem = "cannot be read"
    try:
        database = _opened(path)
        # otherwise sqlite refuses a whole file because its end is missing
        database.execute("PRAGMA writable_schema = ON")
        topics = {
            number: (name, type_)
            for number, name, type_ in database.execute("SELECT id, name, type FROM topics")
        }
        problem = "was not finished"
        rows = database.execute("SELECT topic_id, timestamp, data FROM messages ORDER BY id")
        for number, time, payload in rows:
            name, type_ = topics[number]
            yield RawMessage(name, type_, time, payload)
    except (apsw.Error, KeyError) as error:
        raise Cut(f"{problem} ({error})") from None


def _opened(path: Path) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    if path.with_name(f"{path.name}-wal").exists():
        # what a killed recorder left in a write-ahead log is read with the file
        return apsw.Connection(f"file:{quote(str(path))}?mode=ro", flags=flags)
    # on a read-only disk a file opens only when it is declared immutable
    uri = f"file:{quote(str(path))}?mode=ro&immutable=1"
    return apsw.Connection(uri, flags=flags, vfs=_WHOLE_PAGES)


class _WholePagesFile(apsw.VFSFile):
    """A file without the part of a page at its end, which sqlite would fill up with zeros."""

    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int]):
        super().__init__("", name, flags)

    def xFileSize(self) -> int:
        size = super().xFileSize()
        (page,) = struct.unpack(">H", self.xRead(2, 16)) if size >= 18 else (1,)
        page = 65536 if page == 1 else page  # file format 2, section 1.3.2
        return size - size % page if page else size


class _WholePages(apsw.VFS):
    def __init__(self, name: str):
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        return _WholePagesFile(name, flags)


_WHOLE_PAGES = "softcr_whole_pages"
_VFS = _WholePages(_WHOLE_PAGES)  # sqlite knows it as long as it lives


class _McapChannels:
    """What the messages of an mcap file refer to."""

    def __init__(self) -> None:
        self._schemas: dict[int, Schema] = {}
        self._channels: dict[int, Channel] = {}

    def messages(self, records: Iterable[McapRecord]) -> Iterator[RawMessage]:
        for record in records:
            if isinstance(record, Schema):
                self._schemas[record.id] = record
            elif isinstance(record, Channel):
                self._channels[record.id] = record
            elif isinstance(record, Message):
                channel = self._channels[record.channel_id]
                type_ = self._schemas[channel.schema_id].name
                yield RawMessage(channel.topic, type_, record.log_time, record.data)


def _records_of_cut_chunk(path: Path) -> Iterator[McapRecord]:
    """The whole records of the chunk with which a file ends too early (MCAP specification)."""
    try:
        yield from StreamReader(BytesIO(_cut_chunk(path)), skip_magic=True).records
    except Exception:  # the end that is missing surfaces as many kinds
        return


def _cut_chunk(path: Path) -> bytes:
    """Bytes of the last chunk's records, decompressed; empty where the file ends in another one."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(MAGIC_SIZE)
        while len(head := file.read(9)) == 9:
            opcode, length = struct.unpack("<BQ", head)
            if file.tell() + length > size:
                return _decompressed(file.read()) if opcode == Opcode.CHUNK else b""
            file.seek(length, 1)
    return b""


def _decompressed(chunk: bytes) -> bytes:
    """Records of a chunk's content, as much as is there."""
    times_size_and_crc = struct.calcsize("<QQQI")
    stream = BytesIO(chunk)
    stream.seek(times_size_and_crc)
    (name_length,) = struct.unpack("<I", stream.read(4))
    compression = stream.read(name_length).decode()
    stream.seek(8, 1)  # length of the records
    data = stream.read()
    if compression == "zstd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    if compression == "lz4":
        return lz4.frame.LZ4FrameDecompressor().decompress(data)
    return data
