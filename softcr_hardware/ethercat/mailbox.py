"""The mailbox of an emulated terminal: CANopen over EtherCAT, as far as a master asks for it.

Uploads and downloads of service data objects (ETG.1000.6, 5.6), short enough to be expedited.
"""

import struct
from typing import Protocol

SIZE = 0x80
"""Bytes of either mailbox."""

NO_OBJECT, NO_SUBINDEX, READ_ONLY = 0x06020000, 0x06090011, 0x06010002
WRONG_LENGTH, WRONG_VALUE, WRONG_STATE = 0x06070010, 0x06090030, 0x08000022
"""Abort codes."""

_COE = 3  # mailbox type
_REQUEST, _RESPONSE = 2, 3  # CoE services; an abort is a request, too
_UPLOAD, _DOWNLOAD = 2, 1  # command specifiers, the upper three bits
_EXPEDITED = 0x02
_UNKNOWN_COMMAND = 0x05040001


class Refusal(Exception):
    """An abort; its argument is the code."""


class Objects(Protocol):
    """What is read and written by index and subindex; either raises Refusal."""

    def read(self, index: int, subindex: int) -> bytes:
        """The value, 1 to 4 bytes."""
        ...

    def write(self, index: int, subindex: int, value: bytes) -> None:
        """Set the value of an object (SDO download)."""
        ...


def answer(request: bytes, objects: Objects) -> bytes | None:
    """The reply to a mailbox message; None to one that deserves none."""
    if len(request) < 16:
        return None
    length, _, _, kind, header = struct.unpack_from("<HHBBH", request)
    command, index, subindex = struct.unpack_from("<BHB", request, 8)
    if kind & 0x0F != _COE or header >> 12 != _REQUEST or length < 10:
        return None
    service, specifier = _RESPONSE, command >> 5
    try:
        if specifier == _UPLOAD:
            value = objects.read(index, subindex)
            # expedited, size stated
            reply = struct.pack("<BHB", 0x43 | (4 - len(value)) << 2, index, subindex)
            reply += value.ljust(4, b"\0")
        elif specifier == _DOWNLOAD and command & _EXPEDITED:
            objects.write(index, subindex, request[12 : 16 - (command >> 2 & 3)])
            reply = struct.pack("<BHBI", 0x60, index, subindex, 0)
        else:
            raise Refusal(_UNKNOWN_COMMAND)
    except Refusal as refusal:
        service, reply = _REQUEST, struct.pack("<BHBI", 0x80, index, subindex, refusal.args[0])
    return struct.pack("<HHBBH", 2 + len(reply), 0, 0, kind, service << 12) + reply
