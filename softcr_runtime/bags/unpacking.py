"""Compressed bytes of strangers, unpacked into a space whose size is checked before it is taken."""

import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

import lz4.frame
import zstandard

LARGEST_CHUNK = 256 << 20
"""What a chunk of an mcap file may unpack to [byte]."""

LARGEST_MESSAGE = 32 << 20
"""Of a message that is unpacked or decoded [byte]."""

MOST_UNPACKED = 256 << 20, 200
"""All that a file holds may unpack to the first [byte], or to so many times the file's own size."""

ZSTD = b"\x28\xb5\x2f\xfd"
"""The first bytes of what zstd compressed (RFC 8878, section 3.1.1)."""

_PIECE = 1 << 20


class Damaged(Exception):
    """Bytes that make no sense.

    Where there is more to say, `str(error)` says it in words that go on from the file's name.
    """


class Allowance:
    """How much a file may still unpack to."""

    def __init__(self, size: int):
        """Of a file of that size [byte]."""
        least, factor = MOST_UNPACKED
        self.left = max(least, factor * size)

    def take(self, size: int, what: str, largest: int) -> None:
        """Grant a size [byte].

        Raises:
            Damaged: it is more than `largest`, or more than what is left.
        """
        if size > largest:
            raise Damaged(
                f"holds {what} that unpacks to {in_words(size)}, allowed are {in_words(largest)}"
            )
        if size > self.left:
            raise Damaged("unpacks to more than a file of its size may hold")
        self.left -= size


def in_words(size: int) -> str:
    """A size [byte] as text."""
    return f"{size / 2**30:.1f} GiB" if size >= 1 << 30 else f"{size / 2**20:.0f} MiB"


def unpacked(compression: str, data: bytes, size: int) -> memoryview:
    """The first bytes that compressed data unpack to, `size` at most.

    What was cut, or is damaged further on, gives what stands before it.

    Args:
        compression: "zstd", "lz4" or "", as mcap names them.
        data: compressed.
        size: of the space that is taken [byte].
    """
    if compression == "lz4":
        try:
            return memoryview(lz4.frame.LZ4FrameDecompressor().decompress(data, max_length=size))
        except RuntimeError:
            return memoryview(b"")
    if not compression:
        return memoryview(data)[:size]
    space, filled = memoryview(bytearray(size)), 0
    with zstandard.ZstdDecompressor().stream_reader(BytesIO(data)) as reader:
        try:
            while filled < size and (read := reader.readinto(space[filled : filled + _PIECE])):
                filled += read
        except zstandard.ZstdError:
            pass
    return space[:filled]


def unpacked_message(payload: bytes, allowance: Allowance | None = None) -> bytes:
    """A message that rosbag2 compressed by itself, unpacked; any other one as it is.

    Raises:
        Damaged: it unpacks to more than is allowed, or does not unpack.
    """
    if payload[:4] != ZSTD:
        return payload  # CDR begins with a zero
    try:
        size = zstandard.frame_content_size(payload)
    except zstandard.ZstdError:
        size = -1
    (allowance or Allowance(0)).take(max(size, 0), "a message", LARGEST_MESSAGE)
    found = bytes(unpacked("zstd", payload, max(size, 0)))
    if len(found) != size:
        raise Damaged("holds a compressed message that is damaged")
    return found


def unpacked_file(path: Path) -> Any:
    """A file that rosbag2 compressed as a whole, unpacked to a temporary file `.name`.

    Raises:
        Damaged: it unpacks to more than is allowed; what is damaged is unpacked as far as it goes.
        OSError: it cannot be read, or there is no room.
    """
    allowance = Allowance(path.stat().st_size)
    target = tempfile.NamedTemporaryFile()  # noqa: SIM115 (gone when nobody holds it any more)
    with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
        try:
            while piece := reader.read(_PIECE):
                allowance.take(len(piece), "content", _PIECE)
                target.write(piece)
        except zstandard.ZstdError:
            pass
    target.flush()
    return target
