"""NatNet, the protocol of OptiTrack's Motive: bytes to frames and model definitions.

The parsers are those of the package `natnet`. Its client is not used: its thread ends at the first
malformed datagram and nobody is told, it takes datagrams from anybody and it drops the frequency of
the server's clock. Whatever a datagram holds, `read` returns or raises ProtocolError.
"""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import natnet
from natnet.packet_buffer import PacketBuffer

CONNECT, SERVER_INFO, MODEL_REQUEST, MODEL_DEFINITIONS, FRAME, KEEP_ALIVE = 0, 1, 4, 5, 7, 10
"""Message numbers of NatNet."""

COMMAND_PORT, DATA_PORT = 1510, 1511
MULTICAST_GROUP = "239.255.42.99"
OLDEST_VERSION = (3, 0)
"""Of the protocol: older ones do not say when the cameras' shutters were open."""

HEADER = struct.Struct("<HH")
_CLOCK = struct.Struct("<QHB4s")  # frequency, data port, multicast?, group
_TEXTS = {CONNECT: b"Ping\0"}
_LARGEST_FREQUENCY = 1e11


class ProtocolError(Exception):
    """A datagram that is none of NatNet; says what is wrong with it."""


@dataclass(frozen=True)
class ServerInfo:
    """Who serves.

    Attributes:
        name: of the application.
        version: of the protocol.
        frequency: of the clock behind all stamps [Hz].
        data_port: of the multicast stream.
        group: multicast address; empty for unicast.
    """

    name: str
    version: tuple[int, ...]
    frequency: float
    data_port: int
    group: str


@dataclass(frozen=True)
class Body:
    """A rigid body in a frame, as it was sent: nothing is checked yet.

    Attributes:
        position: x, y, z [m], the cameras' frame.
        quaternion: x, y, z, w.
        tracked: whether the server vouches for it.
    """

    position: tuple[float, ...]
    quaternion: tuple[float, ...]
    tracked: bool


@dataclass(frozen=True)
class Frame:
    """What the cameras saw at one moment.

    Attributes:
        number: counts up.
        exposed: middle of the exposure [ticks of the server].
        transmitted: when it was sent [ticks].
        bodies: by id.
    """

    number: int
    exposed: int
    transmitted: int
    bodies: dict[int, Body]


Definitions = dict[str, int]
"""Id of each rigid body by name."""


def request(message: int) -> bytes:
    """A datagram to the server: CONNECT, MODEL_REQUEST or KEEP_ALIVE."""
    text = _TEXTS.get(message, b"\0")
    return HEADER.pack(message, len(text)) + text


def read(datagram: bytes, version: Sequence[int] | None) -> ServerInfo | Frame | Definitions | None:
    """What a datagram says; None for messages that tell us nothing.

    Args:
        datagram: all of it.
        version: of the protocol, as the server told; None before it has.

    Raises:
        ProtocolError: it is malformed.
    """
    if len(datagram) < HEADER.size:
        raise ProtocolError("shorter than its header")
    message, size = HEADER.unpack_from(datagram)
    if size != len(datagram) - HEADER.size:
        raise ProtocolError("length differs from its header's")
    buffer = _CheckedBuffer(datagram)
    buffer.pointer = HEADER.size
    try:
        if message == SERVER_INFO:
            return _server_info(buffer)
        if version is None:
            return None
        if message == FRAME:
            return _frame(buffer, natnet.Version(*version))
        if message == MODEL_DEFINITIONS:
            return _definitions(buffer, natnet.Version(*version))
    except (struct.error, UnicodeDecodeError, natnet.NatNetError) as error:
        raise ProtocolError(f"message {message} cannot be read") from error
    return None


class _CheckedBuffer(PacketBuffer):
    """Refuses what lies beyond the end: the package's own would read empty names for ever, or make
    room for as many numbers as four foreign bytes say."""

    def read_string(self, max_length: int | None = None, static_length: bool = False) -> str:
        if self.pointer + (max_length or 1) > len(self.data):
            raise ProtocolError("a text is cut off")
        if max_length is None and b"\0" not in bytes(self.data[self.pointer :]):
            raise ProtocolError("a text does not end")
        return str(super().read_string(max_length, static_length))

    def read_float32_array(self, count: int) -> tuple[float, ...]:
        if self.pointer + 4 * count > len(self.data):
            raise ProtocolError("numbers are cut off")
        return tuple(super().read_float32_array(count))


def _server_info(buffer: PacketBuffer) -> ServerInfo:
    info = natnet.ServerInfo.read_from_buffer(buffer, None)
    frequency, data_port, multicast, group = _CLOCK.unpack_from(buffer.data, buffer.pointer)
    if not 1.0 <= frequency <= _LARGEST_FREQUENCY:
        raise ProtocolError(f"clock of {frequency} Hz")
    return ServerInfo(
        info.application_name,
        info.nat_net_protocol_version.components,
        float(frequency),
        data_port,
        ".".join(map(str, group)) if multicast else "",
    )


def _frame(buffer: PacketBuffer, version: natnet.Version) -> Frame:
    frame = natnet.DataFrame.read_from_buffer(buffer, version)
    stamps = (frame.suffix.stamp_camera_mid_exposure, frame.suffix.stamp_transmit)
    if None in stamps:
        raise ProtocolError("frame without exposure stamps")
    bodies = {
        body.id_num: Body(body.pos, body.rot, bool(body.tracking_valid))
        for body in frame.rigid_bodies
    }
    return Frame(frame.prefix.frame_number, *stamps, bodies)


def _definitions(buffer: PacketBuffer, version: natnet.Version) -> Definitions:
    described = natnet.DataDescriptions.read_from_buffer(buffer, version)
    return {body.name: body.id_num for body in described.rigid_bodies}


def is_finite(body: Body) -> bool:
    """Whether a body's numbers are numbers."""
    return all(math.isfinite(value) for value in (*body.position, *body.quaternion))
