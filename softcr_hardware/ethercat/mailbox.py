"""The mailbox of an emulated terminal: CANopen over EtherCAT, as far as a master maps with it.

Uploads and downloads of service data objects (ETG.1000.6, 5.6), short enough to be expedited. The
objects are those that describe the process data: sync manager types 0x1C00, assignments 0x1C12 and
0x1C13, and the mappings they name.
"""

import struct

from softcr_hardware.ethercat.terminals import Terminal

SIZE = 0x80
"""Bytes of either mailbox."""

_COE = 3  # mailbox type
_REQUEST, _RESPONSE = 2, 3  # CoE services; an abort is a request, too
_UPLOAD, _DOWNLOAD = 2, 1  # command specifiers, the upper three bits
_NO_OBJECT, _NO_SUBINDEX, _UNKNOWN_COMMAND = 0x06020000, 0x06090011, 0x05040001

Objects = dict[int, list[bytes]]
"""Values by index; the list's place is the subindex."""


def process_objects(terminal: Terminal) -> Objects:
    """The objects from which a master learns the process data."""
    outputs = [0x1600 + channel for channel in range(terminal.outputs)]
    inputs = [0x1A00 + channel for channel in range(terminal.inputs)]
    objects = {
        0x1C00: [b"\4", b"\1", b"\2", b"\3", b"\4"],
        0x1C12: _counted([struct.pack("<H", index) for index in outputs]),
        0x1C13: _counted([struct.pack("<H", index) for index in inputs]),
    }
    for channel, index in enumerate(outputs):
        objects[index] = _counted([_mapping(0x7000 + 0x10 * channel, 0x01)])
    for channel, index in enumerate(inputs):
        entry = 0x6000 + 0x10 * channel  # 16 bits of status, 16 bits of value
        objects[index] = _counted([_mapping(entry, 0x01), _mapping(entry, 0x11)])
    return objects


def answer(request: bytes, objects: Objects) -> bytes | None:
    """The reply to a mailbox message; None to one that deserves none."""
    if len(request) < 16:
        return None
    length, _, _, kind, header = struct.unpack_from("<HHBBH", request)
    command, index, subindex = struct.unpack_from("<BHB", request, 8)
    if kind & 0x0F != _COE or header >> 12 != _REQUEST or length < 10:
        return None
    service, reply = _RESPONSE, b""
    specifier = command >> 5
    values = objects.get(index)
    if values is None:
        service, reply = _REQUEST, _abort(index, subindex, _NO_OBJECT)
    elif subindex >= len(values):
        service, reply = _REQUEST, _abort(index, subindex, _NO_SUBINDEX)
    elif specifier == _UPLOAD:
        value = values[subindex]
        # expedited, size stated
        reply = struct.pack("<BHB", 0x43 | (4 - len(value)) << 2, index, subindex)
        reply += value.ljust(4, b"\0")
    elif specifier == _DOWNLOAD:
        reply = struct.pack("<BHBI", 0x60, index, subindex, 0)
    else:
        service, reply = _REQUEST, _abort(index, subindex, _UNKNOWN_COMMAND)
    return struct.pack("<HHBBH", 2 + len(reply), 0, 0, kind, service << 12) + reply


def _abort(index: int, subindex: int, code: int) -> bytes:
    return struct.pack("<BHBI", 0x80, index, subindex, code)


def _counted(values: list[bytes]) -> list[bytes]:
    return [bytes([len(values)]), *values]


def _mapping(index: int, subindex: int) -> bytes:
    return struct.pack("<BBH", 16, subindex, index)
