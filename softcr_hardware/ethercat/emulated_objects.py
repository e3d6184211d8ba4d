"""The CoE objects of an emulated terminal: its process data, and settings that outlive the power.

The settings are those that real terminals of the family have (`families`), more of them than a
master has to look at, with the values of delivery unless somebody has changed them.
"""

import struct

from softcr_hardware.ethercat.families import (
    DEFAULT_OUTPUT,
    DEFAULT_RAMP,
    ENABLE_FILTER,
    FILTER,
    RESTORE,
    RESTORE_WORD,
    SCALE_GAIN,
    SCALE_OFFSET,
    SETTINGS_STEP,
)
from softcr_hardware.ethercat.mailbox import (
    NO_OBJECT,
    NO_SUBINDEX,
    READ_ONLY,
    WRONG_LENGTH,
    WRONG_VALUE,
    Refusal,
)
from softcr_hardware.ethercat.terminal_faults import Place, TerminalFaults
from softcr_hardware.ethercat.terminals import Terminal

_FLAG, _CODE, _WORD, _LONG = "<B", "<B", "<h", "<i"


def delivered(terminal: Terminal) -> dict[Place, tuple[str, int]]:
    """Format and value of every setting of a new terminal."""
    if terminal.family in ("EL40xx", "EL41xx"):
        rows, channels = _OUTPUT, terminal.outputs
    elif terminal.family in ("EL30xx", "EL31xx"):
        rows, channels = _INPUT, terminal.inputs
    else:
        return {}
    found = {}
    for channel in range(channels):
        index = terminal.first_settings + SETTINGS_STEP * channel
        for subindex, (layout, value) in rows.items():
            found[index, subindex] = (layout, value)
        if terminal.family == "EL30xx":
            found[index, ENABLE_FILTER] = (_FLAG, 1)
    return found


_OUTPUT = {
    0x01: (_FLAG, 0),
    0x02: (_CODE, 0),
    0x05: (_CODE, 0),
    0x07: (_FLAG, 0),
    0x08: (_FLAG, 1),
    SCALE_OFFSET: (_WORD, 0),
    SCALE_GAIN: (_LONG, 0x10000),
    DEFAULT_OUTPUT: (_WORD, 0),
    DEFAULT_RAMP: ("<H", 0xFFFF),
    0x15: (_WORD, 0),  # user calibration: offset, gain
    0x16: ("<H", 0xFFFF),
}
_INPUT = {
    0x01: (_FLAG, 0),
    0x02: (_CODE, 0),
    0x05: (_FLAG, 0),
    ENABLE_FILTER: (_FLAG, 0),
    0x0A: (_FLAG, 0),
    0x0B: (_FLAG, 1),
    SCALE_OFFSET: (_WORD, 0),
    SCALE_GAIN: (_LONG, 0x10000),
    FILTER: ("<H", 0),
    0x17: (_WORD, 0),  # user calibration: offset, gain
    0x18: (_WORD, 0x4000),
}


class ObjectDictionary:
    """`mailbox.Objects` of a terminal.

    Attributes:
        changes: counts writes of settings; who has worked them out looks whether it is still so.
    """

    def __init__(self, terminal: Terminal, faults: TerminalFaults):
        """As delivered, but for the faults."""
        self._process = process_objects(terminal)
        self._delivered = delivered(terminal)
        self._faults = faults
        self.changes = 0
        self._settings = {place: value for place, (_, value) in self._delivered.items()}
        self._settings.update(faults.objects)

    def setting(self, index: int, subindex: int, missing: int = 0) -> int:
        """A setting's value; `missing` for one that there is not."""
        return self._settings.get((index, subindex), missing)

    def read(self, index: int, subindex: int) -> bytes:
        place = index, subindex
        if place in self._delivered:
            layout, _ = self._delivered[place]
            return struct.pack(layout, self._settings[place])
        if place == RESTORE and self._restores:
            return bytes(4)
        values = self._process.get(index)
        if values is None:
            known = {each for each, _ in self._delivered}
            raise Refusal(NO_SUBINDEX if index in known else NO_OBJECT)
        if subindex >= len(values):
            raise Refusal(NO_SUBINDEX)
        return values[subindex]

    def write(self, index: int, subindex: int, value: bytes) -> None:
        place = index, subindex
        there = self.read(index, subindex)
        if place not in self._delivered and place != RESTORE:
            raise Refusal(READ_ONLY)
        if len(value) != len(there):
            raise Refusal(WRONG_LENGTH)
        if place in self._faults.refused:
            raise Refusal(READ_ONLY)
        self.changes += 1
        if place == RESTORE:
            if int.from_bytes(value, "little") != RESTORE_WORD:
                raise Refusal(WRONG_VALUE)
            for each, (_, first) in self._delivered.items():
                if each not in self._faults.kept and each not in self._faults.refused:
                    self._settings[each] = first
        elif place not in self._faults.kept:
            layout, _ = self._delivered[place]
            (self._settings[place],) = struct.unpack(layout, value)

    @property
    def _restores(self) -> bool:
        return bool(self._delivered) and self._faults.restores


def process_objects(terminal: Terminal) -> dict[int, list[bytes]]:
    """The objects from which a master learns the process data; values by subindex.

    Sync manager types 0x1C00, assignments 0x1C12 and 0x1C13, and the mappings they name.
    """
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


def _counted(values: list[bytes]) -> list[bytes]:
    return [bytes([len(values)]), *values]


def _mapping(index: int, subindex: int) -> bytes:
    return struct.pack("<BBH", 16, subindex, index)
