"""NatNet, the protocol of OptiTrack's Motive: bytes to frames and model definitions.

The parsers are those of the package `natnet`, but for what it reads otherwise than the NatNet SDK
4.1 writes it: a force plate has four corners (`PythonClient/NatNetClient.py`: 12 numbers), and a
frame's parameters come after its precision stamps. Its client is not used: its thread ends at the
first malformed datagram and nobody is told, it takes datagrams from anybody and it drops the
frequency of the server's clock. Whatever a datagram holds, `read` returns or raises ProtocolError.

Stamps and bits are those of `NatNetTypes.h` (NatNet SDK 4.0, sFrameOfMocapData). The stamp of the
exposure's middle is 0 with USB cameras and during playback (`Samples/SampleClient`, the comment at
bSystemLatencyAvailable); the one of when Motive received the cameras' data may still be there.
"""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import natnet
from natnet import data_descriptions as descriptions
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
_RECORDING, _MODELS_CHANGED, _EDIT = 1, 2, 4  # bits of a frame's parameters
_BODY, _FORCE_PLATE = 1, 3  # kinds of descriptions
_SIZED = (4, 1)  # from this version on descriptions tell their size, frames have precision stamps
_LONGEST_SHOWN = 64  # characters of a name
_PRECISION_STAMPS, _FRAME_END = 8, 6  # [byte]; parameters and a word of 0
_DESCRIPTIONS: dict[int, Any] = {
    0: descriptions.MarkerSetDescription,
    _BODY: descriptions.RigidBodyDescription,
    2: descriptions.SkeletonDescription,
    4: descriptions.DeviceDescription,
    5: descriptions.CameraDescription,
    6: descriptions.AssetDescription,
}


def message_of(datagram: bytes) -> int | None:
    """The number of a datagram's message; None where it has none."""
    return HEADER.unpack_from(datagram)[0] if len(datagram) >= HEADER.size else None


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
        exposed: middle of the exposure [ticks of the server]; 0 where the server does not know it.
        received: when the server had the cameras' data [ticks]; 0 likewise.
        transmitted: when it was sent [ticks].
        bodies: by id.
        recording: whether Motive records.
        models_changed: whether the tracked models have changed.
        edit: whether Motive is in Edit mode: it plays a recording back.
    """

    number: int
    exposed: int
    received: int
    transmitted: int
    bodies: dict[int, Body]
    recording: bool = False
    models_changed: bool = False
    edit: bool = False


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
    except (struct.error, natnet.NatNetError) as error:
        raise ProtocolError(f"message {message} cannot be read") from error
    return None


class _CheckedBuffer(PacketBuffer):
    """Refuses what lies beyond the end: the package's own would read empty names for ever, or make
    room for as many numbers as four foreign bytes say."""

    def __init__(self, datagram: bytes):
        super().__init__(datagram)
        self.pointer: int = 0
        self._datagram = datagram

    def read_string(self, max_length: int | None = None, static_length: bool = False) -> str:
        begin = self.pointer
        most = len(self._datagram) if max_length is None else begin + max_length
        if most > len(self._datagram) or begin >= most:
            raise ProtocolError("a text is cut off")
        end = self._datagram.find(b"\0", begin, most)
        if end < 0 and max_length is None:
            raise ProtocolError("a text does not end")
        end = most if end < 0 else end
        self.pointer = most if static_length else end + 1
        return _decoded(self._datagram[begin:end])

    def read_float32_array(self, count: int) -> tuple[float, ...]:
        self.skip(4 * count)
        self.pointer -= 4 * count
        return tuple(super().read_float32_array(count))

    def skip(self, size: int) -> None:
        """Go on behind as many bytes.

        Raises:
            ProtocolError: there are fewer.
        """
        if self.pointer + size > len(self._datagram):
            raise ProtocolError("numbers are cut off")
        self.pointer += size


def _decoded(name: bytes) -> str:
    """A name in UTF-8 or, failing that, in the code page of Western Windows. NatNet does not say
    which encoding it uses, and one unreadable name must not hide the other bodies."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name.decode("cp1252", errors="replace")


def _server_info(buffer: _CheckedBuffer) -> ServerInfo:
    info = natnet.ServerInfo.read_from_buffer(buffer, None)
    frequency, data_port, multicast, group = _CLOCK.unpack_from(buffer.data, buffer.pointer)
    if not 1.0 <= frequency <= _LARGEST_FREQUENCY:
        raise ProtocolError(
            "clock frequency out of range"
        )  # a foreign number would be a new reason
    return ServerInfo(
        in_a_line(info.application_name),
        info.nat_net_protocol_version.components,
        float(frequency),
        data_port,
        ".".join(map(str, group)) if multicast else "",
    )


def _frame(buffer: _CheckedBuffer, version: natnet.Version) -> Frame:
    frame = natnet.DataFrame.read_from_buffer(buffer, version)
    suffix = frame.suffix
    stamps = (suffix.stamp_camera_mid_exposure, suffix.stamp_data_received, suffix.stamp_transmit)
    if None in stamps:
        raise ProtocolError("frame without exposure stamps")
    parameters = suffix.param
    if _has_precision_stamps(buffer, version):  # of which the first bytes were read for them
        buffer.skip(_PRECISION_STAMPS - 2)
        parameters = buffer.read_uint16()
    bodies = {
        body.id_num: Body(body.pos, body.rot, bool(body.tracking_valid))
        for body in frame.rigid_bodies
    }
    bits = (bool(parameters & bit) for bit in (_RECORDING, _MODELS_CHANGED, _EDIT))
    return Frame(frame.prefix.frame_number, *stamps, bodies, *bits)


def _has_precision_stamps(buffer: _CheckedBuffer, version: natnet.Version) -> bool:
    """Behind the other stamps, of which the buffer has read two bytes too many. The SDK's samples
    say from 4.1 on and read them in 4.0, too, so there what is left tells."""
    if version < natnet.Version(*_SIZED):
        left = len(buffer.data) - buffer.pointer + 2
        return version >= natnet.Version(4, 0) and left >= _PRECISION_STAMPS + _FRAME_END
    return True


def _definitions(buffer: _CheckedBuffer, version: natnet.Version) -> Definitions:
    """Of bodies alone; from 4.1 on what else is described is passed over by its size."""
    bodies: Definitions = {}
    sized = version >= natnet.Version(*_SIZED)
    for _ in range(buffer.read_uint32()):
        kind = buffer.read_uint32()
        end = None
        if sized:
            end = buffer.read_uint32() + buffer.pointer
        if kind == _BODY:
            body = descriptions.RigidBodyDescription.read_from_buffer(buffer, version)
            bodies[body.name] = body.id_num
        elif end is None:
            _pass_over(buffer, kind, version)
        if end is not None:
            buffer.skip(max(end - buffer.pointer, 0))
    return bodies


def _pass_over(buffer: _CheckedBuffer, kind: int, version: natnet.Version) -> None:
    """A description that does not tell its size."""
    if kind == _FORCE_PLATE:
        buffer.skip(4)  # id
        buffer.read_string()  # serial number
        buffer.skip(4 * (2 + 3 + 12 * 12 + 4 * 3 + 2))  # sizes, origin, calibration, corners, types
        for _ in range(buffer.read_uint32()):
            buffer.read_string()  # name of a channel
    elif kind in _DESCRIPTIONS:
        _DESCRIPTIONS[kind].read_from_buffer(buffer, version)
    else:
        raise ProtocolError("a description of an unknown kind")


def in_a_line(text: str) -> str:
    """A foreign text as it may stand in a message: short, and without line ends."""
    shown = "".join(each if each.isprintable() else "?" for each in text[:_LONGEST_SHOWN])
    return shown + "..." * (len(text) > _LONGEST_SHOWN)


def is_finite(body: Body) -> bool:
    """Whether a body's numbers are numbers."""
    return all(math.isfinite(value) for value in (*body.position, *body.quaternion))
