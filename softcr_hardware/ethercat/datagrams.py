"""EtherCAT frames passing a chain of emulated slaves, as ETG.1000.4 has it. Bytes in, bytes out."""

import struct
from collections.abc import Sequence

from softcr_hardware.ethercat.slave import EmulatedSlave

APRD, APWR, APRW, FPRD, FPWR, FPRW, BRD, BWR, BRW, LRD, LWR, LRW, ARMW, FRMW = range(1, 15)
"""Commands of a datagram: A by position, F by station address, B all, L logical; R, W, and M to
read from one and write to all others."""

_READS = {APRD, APRW, FPRD, FPRW, BRD, BRW, LRD, LRW}
_WRITES = {APWR, APRW, FPWR, FPRW, BWR, BRW, LWR, LRW}
_BY_POSITION = {APRD, APWR, APRW, ARMW}
_BY_STATION = {FPRD, FPWR, FPRW, FRMW}
_TO_ALL = {BRD, BWR, BRW}
_COUNTS_PASSES = _BY_POSITION | _TO_ALL  # each slave adds one to the position
_LOGICAL = {LRD, LWR, LRW}
_DATAGRAM, _WORD = struct.Struct("<BBHHH"), struct.Struct("<H")
_FIRST_DATAGRAM = 16  # behind Ethernet's header and the frame's own
_HEADER, _COUNTER = 10, 2  # bytes of a datagram around its data


def pass_slaves(frame: bytes, slaves: Sequence[EmulatedSlave], now: float) -> bytes | None:
    """The frame as it comes back, or None for one that is cut off or is no EtherCAT frame.

    Args:
        frame: from the destination address on.
        slaves: in the order of the wire.
        now: time at which it passes [s].
    """
    passed = bytearray(frame)
    offset, more = _FIRST_DATAGRAM, True
    while more:
        if offset + _HEADER > len(passed):
            return None
        command, _, position, address, length = _DATAGRAM.unpack_from(passed, offset)
        more, size = bool(length & 0x8000), length & 0x07FF
        begin = offset + _HEADER
        if begin + size + _COUNTER > len(passed):
            return None
        data = passed[begin : begin + size]
        (counter,) = _WORD.unpack_from(passed, begin + size)
        if command in _LOGICAL:  # the cycle of a running bus
            logical, reads, writes = position | address << 16, command != LWR, command != LRD
            for slave in slaves:
                counter += slave.exchange(logical, data, reads, writes, now)
        else:
            for slave in slaves:
                counter += _pass_slave(slave, command, position, address, data)
                if command in _COUNTS_PASSES:
                    position = (position + 1) & 0xFFFF
            _WORD.pack_into(passed, offset + 2, position)
        passed[begin : begin + size] = data
        _WORD.pack_into(passed, begin + size, counter & 0xFFFF)
        offset = begin + size + _COUNTER
    passed[6] |= 0x02  # as the first slave marks what has passed it
    return bytes(passed)


def _pass_slave(
    slave: EmulatedSlave, command: int, position: int, address: int, data: bytearray
) -> int:
    """One datagram to registers at one slave: changes `data`, returns what it adds to the working
    counter."""
    mine = (
        command in _TO_ALL
        or (command in _BY_POSITION and position == 0)
        or (command in _BY_STATION and position == slave.station)
    )
    if command in (ARMW, FRMW):
        if mine:
            data[:] = slave.read(address, len(data))
        else:
            slave.write(address, bytes(data))
        return 1
    if not mine:
        return 0
    count, written = 0, bytes(data)
    if command in _READS:
        read = slave.read(address, len(data))
        data[:] = bytes(a | b for a, b in zip(data, read, strict=True)) if command == BRD else read
        count += 1
    if command in _WRITES:
        slave.write(address, written)
        count += 1 if command not in _READS else 2
    return count
