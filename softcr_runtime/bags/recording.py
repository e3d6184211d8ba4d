"""Writing a rosbag2 bag (mcap) that survives a killed recorder, a full disk and a damaged one.

rosbags writes the format; added here are checksums, channels that every chunk tells, and when bytes
reach the disk. rosbags alone hands a
chunk to the file only when 1 MiB is full, so a killed recorder would lose about a second of a run,
and a full disk would leave half a record. Here the chunk in progress is closed every COMMIT_PERIOD
and appended in one piece, or not at all: the file ends with a whole chunk at any time.
"""

import os
import struct
import tempfile
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from zlib import crc32

from rosbags.interfaces import Connection, Qos
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer, WriterError
from rosbags.rosbag2.storage_mcap import McapWriter, write_channel, write_schema
from rosbags.typesys import Stores, get_typestore

from softcr_models.errors import UserError

COMMIT_PERIOD = 0.2
"""How much of a run a kill -9 of the recorder may cost [s]."""

_CRC_PLACE = 9 + 24
"""Of the checksum in a chunk's record: MCAP specification, "Chunk (op=0x06)" [byte]."""

RESERVE_SIZE = 8 << 20
"""Disk space held back to finish a bag when the disk is full: the index of 50 minutes [byte]."""


@dataclass(frozen=True)
class RecordedTopic:
    """A topic of the bag: absolute name, type as in `sensor_msgs/msg/Imu`, its publisher's QoS."""

    name: str
    type: str
    qos: Qos


@dataclass(frozen=True)
class RecordingStatistics:
    """How a recording stands: `recorded` messages are on disk, `waiting` ones in memory.

    `lost` messages came after `failure`, the line that says why recording stopped (None while all
    goes well).
    """

    recorded: int
    waiting: int
    lost: int
    failure: str | None


class BagRecording:
    """A bag being written: `write` never blocks, a thread of its own brings messages to disk.

    Memory is the only bound on what may wait, so that a slow disk loses nothing; `statistics` tells
    how much waits. When the disk refuses, recording stops, the bag is finished with what it holds,
    and every later message is counted as lost.
    """

    def __init__(
        self, directory: Path, topics: Sequence[RecordedTopic], compressed: bool = True
    ) -> None:
        """Create the bag directory, its file and its topics.

        Args:
            directory: the bag; must not exist, its parents may.
            topics: that may be written; see `add`.
            compressed: whether chunks are compressed (zstd), which costs the writing thread time.

        Raises:
            UserError: `directory` exists or cannot be written.
        """
        self.directory = Path(directory)
        try:
            self._writer = BagWriter(self.directory, compressed)
            self._writer.open()
            self._reserve = _reserve(self.directory)
        except (OSError, WriterError) as error:
            raise UserError(f"cannot record to {self.directory}: {_reason(error)}") from None
        self._typestore = get_typestore(Stores.ROS2_JAZZY)
        self._writing = threading.Lock()
        self._connections: dict[str, Connection] = {}
        for topic in topics:
            self.add(topic)
        self._waiting: deque[tuple[Connection, int, bytes]] = deque()
        self._lost = 0
        self._failure: str | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bag writer", daemon=True)
        self._thread.start()

    @property
    def statistics(self) -> RecordingStatistics:
        """A snapshot; may be read from any thread."""
        return RecordingStatistics(
            self._writer.recorded, len(self._waiting), self._lost, self._failure
        )

    def add(self, topic: RecordedTopic) -> None:
        """One topic more that may be written."""
        with self._writing:
            self._connections[topic.name] = self._writer.add_connection(
                topic.name,
                topic.type,
                typestore=self._typestore,
                offered_qos_profiles=[topic.qos],
            )

    def write(self, topic: str, time: int, payload: bytes) -> None:
        """Hand over one message.

        Args:
            topic: name of one of the recorded topics.
            time: when it was received [ns].
            payload: the CDR bytes as they came over the wire.
        """
        self._waiting.append((self._connections[topic], time, payload))

    def close(self) -> RecordingStatistics:
        """Bring everything that waits to disk and finish the bag; says how it went."""
        self._closing.set()
        self._thread.join()
        return self.statistics

    def _run(self) -> None:
        failure = None
        try:
            while not self._closing.wait(COMMIT_PERIOD):
                self._commit()
            self._commit()
        except Exception as error:  # whatever it was, the bag must be finished and the loss counted
            failure = error
        failure = self._finish() or failure
        if failure:
            self._refuse(failure)

    def _commit(self) -> None:
        with self._writing:
            for _ in range(len(self._waiting)):
                self._writer.write(*self._waiting.popleft())
            self._writer.commit()

    def _finish(self) -> Exception | None:
        self._reserve.close()
        try:
            self._writer.close()
        except Exception as error:  # the file ends with its last commit: no index, but readable
            self._writer.abort()
            return error
        return None

    def _refuse(self, failure: Exception) -> None:
        self._lost = self._writer.written - self._writer.recorded
        self._failure = (
            f"recording to {self.directory} stopped: {_reason(failure)}; "
            f"the {self._writer.recorded} messages before are kept"
        )
        closing = False
        while not closing:
            closing = self._closing.wait(COMMIT_PERIOD)
            for _ in range(len(self._waiting)):
                self._waiting.popleft()
                self._lost += 1


class _AppendedFile:
    """A file that grows by whole commits: what is written waits in memory until `commit`."""

    def __init__(self, path: Path):
        self._file = path.open("r+b", buffering=0)
        self._committed = self._file.seek(0, os.SEEK_END)
        self._pending = bytearray()

    def tell(self) -> int:
        return self._committed + len(self._pending)

    def write(self, data: bytes) -> None:
        self._pending += data

    def change(self, place: int, data: bytes) -> None:
        """Overwrite what waits at a place of the file."""
        begin = place - self._committed
        self._pending[begin : begin + len(data)] = data

    def commit(self) -> None:
        """Append what waits, or leave the file as it was and raise OSError."""
        try:
            with memoryview(self._pending) as pending:
                written = 0
                while written < len(pending):
                    written += self._file.write(pending[written:])
        except OSError:
            self._file.truncate(self._committed)
            self._file.seek(self._committed)
            raise
        self._committed += written
        self._pending.clear()

    def close(self) -> None:
        self.commit()
        self._file.close()

    def discard(self) -> None:
        self._file.close()


class _CommittingStorage(McapWriter):
    """rosbags' mcap storage, on a file that grows by whole chunks."""

    def __init__(self, path: Path, compression: CompressionMode):
        super().__init__(path, compression)
        self.bio.close()
        self._file = _AppendedFile(self.path)
        self.bio = self._file  # type: ignore[assignment]

    def write(self, connection: Connection, timestamp: int, data: bytes | memoryview) -> None:
        """See rosbags; each chunk tells its own channels, so that it can be read alone."""
        if self.chunks and not self.chunk.msgs:
            for schema in self.schemas:
                write_schema(self.chunk.bio, schema)
            for channel in self.channels:
                write_channel(self.chunk.bio, channel, self.schemas)
        super().write(connection, timestamp, data)

    def close_chunk(self) -> None:
        """See rosbags, which writes no checksum: without one, damage would go unnoticed."""
        begin, crc = self._file.tell(), crc32(self.chunk.bio.getvalue())
        super().close_chunk()
        self._file.change(begin + _CRC_PLACE, struct.pack("<I", crc))

    def append(self) -> None:
        """Bring the closed chunks to disk."""
        self._file.commit()

    def abort(self) -> None:
        self._file.discard()


class BagWriter(Writer):
    """rosbags' mcap writer, with checksums; `recorded` of its `written` messages are on disk."""

    storage: _CommittingStorage

    def __init__(self, directory: Path, compressed: bool = True):
        super().__init__(directory, version=9, storage_plugin=StoragePlugin.MCAP)
        if compressed:
            self.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        self.STORAGE_PLUGINS = {StoragePlugin.MCAP: _CommittingStorage}
        self.recorded = 0

    @property
    def written(self) -> int:
        return sum(self.counts.values())

    def write(self, connection: Connection, timestamp: int, data: bytes | memoryview) -> None:
        super().write(connection, timestamp, data)
        if not self.storage.chunk.msgs:  # it was full and has been closed
            self._append()

    def commit(self) -> None:
        if self.storage.chunk.msgs:
            self.storage.close_chunk()
        self._append()

    def _append(self) -> None:
        self.storage.append()
        self.recorded = self.written

    def close(self) -> None:
        super().close()
        self.recorded = self.written

    def abort(self) -> None:
        super().abort()
        self.metapath.with_suffix(".yaml.tmp").unlink(missing_ok=True)


def _reserve(directory: Path) -> IO[bytes]:
    """Hold disk space without a name: it is freed when closed, and when the process dies."""
    reserve = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 (closed with the bag)
    os.posix_fallocate(reserve.fileno(), 0, RESERVE_SIZE)
    return reserve


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
