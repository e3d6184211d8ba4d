"""How many EtherCAT terminals answer: one frame that reads from all and changes nothing."""

import socket
import struct
import time

ETHERCAT = 0x88A4
"""Ethernet's type of its frames."""

_BROADCAST_READ = 7  # a command of ETG.1000.4: each slave adds one to the working counter
_REPLY_TIME = 0.1  # [s]
_HEADER = 14  # bytes of Ethernet's own


def counting_frame(source: bytes) -> bytes:
    """The frame, from an adapter of address `source` (6 bytes)."""
    # register 0, which tells the kind of a slave; one byte
    datagram = struct.pack("<BBHHHHBH", _BROADCAST_READ, 0, 0, 0, 1, 0, 0, 0)
    header = struct.pack("<H", len(datagram) | 1 << 12)
    frame = b"\xff" * 6 + source + struct.pack("!H", ETHERCAT) + header + datagram
    return frame.ljust(60, b"\0")


def answered(frame: bytes) -> int | None:
    """How many slaves the frame has passed; None for another frame."""
    if len(frame) < _HEADER + 15:
        return None
    command, index, _, address, length, _, _, count = struct.unpack_from(
        "<BBHHHHBH", frame, _HEADER + 2
    )
    ours = (command, index, address, length & 0x07FF) == (_BROADCAST_READ, 0, 0, 1)
    return int(count) if ours else None


def count_terminals(interface: str) -> int:
    """How many terminals answer on an adapter, of which nobody must be the master.

    Raises:
        OSError: there is no such adapter, or raw frames are not allowed.
    """
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERCAT)) as wire:
        wire.bind((interface, ETHERCAT))
        wire.send(counting_frame(wire.getsockname()[4]))
        deadline = time.monotonic() + _REPLY_TIME
        while (left := deadline - time.monotonic()) > 0.0:
            wire.settimeout(left)
            try:
                count = answered(wire.recv(2048))
            except TimeoutError:
                break
            if count is not None:
                return count
    return 0
