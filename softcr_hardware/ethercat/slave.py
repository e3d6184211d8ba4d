"""One emulated EtherCAT slave: registers, EEPROM, states, sync managers, FMMUs, output watchdog.

Byte-level and as much as a SOEM master asks of an analog terminal (ETG.1000.4
registers, ETG.2010 EEPROM): it tells its process data by EEPROM and mailbox, goes INIT - PREOP -
SAFEOP - OP, moves process data through FMMUs, and falls back to SAFEOP when they stay out. What its
outputs do then is `emulated_signals`.
"""

import struct
from collections.abc import Callable

from softcr_hardware.ethercat import mailbox
from softcr_hardware.ethercat.emulated_objects import ObjectDictionary
from softcr_hardware.ethercat.terminal_faults import TerminalFaults
from softcr_hardware.ethercat.terminals import Terminal

INIT, PREOP, SAFEOP, OP = 1, 2, 4, 8
STATE_NAMES = {INIT: "INIT", PREOP: "PREOP", SAFEOP: "SAFEOP", OP: "OP"}
ERROR = 0x10
"""Set in the status beside a state; in the control word it acknowledges."""

INVALID_STATE_CHANGE, UNKNOWN_STATE, WATCHDOG_TRIPPED = 0x0011, 0x0012, 0x001B
INVALID_OUTPUTS, INVALID_INPUTS = 0x001D, 0x001E

STATION, AL_CONTROL, AL_STATUS, AL_CODE = 0x0010, 0x0120, 0x0130, 0x0134
WATCHDOG_DIVIDER, WATCHDOG_TIME, WATCHDOG_STATUS = 0x0400, 0x0420, 0x0440
WATCHDOG_COUNT = 0x0442
EEPROM_CONTROL, EEPROM_ADDRESS, EEPROM_DATA = 0x0502, 0x0504, 0x0508
FMMUS, SYNC_MANAGERS = 0x0600, 0x0800
OUTPUT_AREA, INPUT_AREA = 0x1100, 0x1180
_MAILBOX_IN, _MAILBOX_OUT = 0x1000, 0x1080  # as the slave sees them
_MAILBOX_STATUS, _MAILBOX_FULL = 0x080D, 0x08  # of sync manager 1
_READ_ONLY = (slice(0, STATION), slice(AL_STATUS, AL_CODE + 2))
_PROCESS_MEMORY = 0x1000  # where FMMUs may point to
_EEPROM_READ, _EEPROM_READS_8 = 0x0100, 0x0040
_DIGITAL_OUTPUTS = 0x44
_WATCHED_OUTPUTS, _BUFFERED_INPUTS = 0x64, 0x20  # sync manager control bytes; 0x40 is the watchdog
_READ, _WRITE = 1, 2  # types of an FMMU
_FMMU_COUNT, _FMMU_SIZE = 4, 16
_FMMU = struct.Struct("<IHBBHBBB")
_MANAGERS = 4
_MANAGER_FIXED, _MANAGER_ACTIVE = 5, 6  # bytes that hold while active; the byte that makes it so


class EmulatedSlave:
    """A terminal; the emulator calls it for each datagram that passes.

    Attributes:
        terminal: what it claims to be.
        input_bytes: what its inputs say in the next exchange.
        was_read: whether an exchange took them since somebody set this to false.
        objects: its settings.
    """

    def __init__(
        self,
        terminal: Terminal,
        last: bool,
        log: Callable[..., None],
        faults: TerminalFaults | None = None,
    ):
        """Powered on.

        Args:
            terminal: identity and channels.
            last: whether nothing is connected behind it.
            log: called with the name of an event and values.
            faults: how it differs from a well-kept one.
        """
        self.terminal = terminal
        self._faults = faults or TerminalFaults()
        self._managers = sync_managers(terminal)
        self._answers_to_lose = self._faults.lost_answers
        self.was_read = False
        self._last = last
        self._log = log
        self._eeprom = eeprom(terminal, self._faults.output_control)
        self.objects = ObjectDictionary(terminal, self._faults)
        self.input_bytes = bytes(terminal.input_bytes)
        self.power_on()

    def power_on(self) -> None:
        """Everything written is forgotten: state INIT, no station address."""
        memory = self._memory = bytearray(0x2000)
        memory[0x0000:0x000A] = bytes([0x11, 0, 1, 0, 8, 8, 8, 0x0F, 0, 0])  # type, ports; no clock
        struct.pack_into("<H", memory, 0x0110, 0x5600 if self._last else 0x5A00)
        struct.pack_into("<H", memory, AL_STATUS, INIT)
        # the watchdog counts 0.1 ms: (2498 + 2) * 40 ns
        struct.pack_into("<H", memory, WATCHDOG_DIVIDER, 2498)
        struct.pack_into("<H", memory, 0x0410, 1000)
        struct.pack_into("<H", memory, WATCHDOG_TIME, 1000)
        struct.pack_into("<H", memory, EEPROM_CONTROL, _EEPROM_READS_8)
        self._fed: float | None = None  # when outputs last came in OP
        self._windows = self._active_windows()
        self._watchdog_time = self.watchdog_time

    @property
    def state(self) -> int:
        """INIT, PREOP, SAFEOP or OP."""
        return self._memory[AL_STATUS] & 0x0F

    @property
    def station(self) -> int:
        """The address the master gave it; 0 for none."""
        return self._word(STATION)

    @property
    def watchdog_time(self) -> float:
        """After so long without outputs it leaves operation [s]; 0 for never."""
        return self._word(WATCHDOG_TIME) * (self._word(WATCHDOG_DIVIDER) + 2) * 40e-9

    @property
    def outputs(self) -> bytes | None:
        """The output bytes that hold, or None while none do: outside of operation."""
        if self.state != OP or self._fed is None:
            return None
        return bytes(self._memory[OUTPUT_AREA : OUTPUT_AREA + self.terminal.output_bytes])

    def watch(self, now: float) -> None:
        """Trip the output watchdog if it is time."""
        if self._fed is None or not self.terminal.outputs or self.state != OP:
            return
        if now - self._fed <= self._watchdog_time:
            return
        watched = (
            self._memory[SYNC_MANAGERS + 8 * self._managers[0] + 4] & 0x40
            and self.watchdog_time > 0
        )
        if watched and self._faults.trips:
            self._log("watchdog", terminal=self.terminal.name, silent_s=now - self._fed)
            struct.pack_into("<H", self._memory, WATCHDOG_STATUS, 0)
            self._memory[WATCHDOG_COUNT] = min(self._memory[WATCHDOG_COUNT] + 1, 0xFF)
            self._set_state(SAFEOP, WATCHDOG_TRIPPED)

    # --- datagrams ----------------------------------------------------------------------------

    def read(self, address: int, length: int) -> bytes:
        """Registers and process memory; zeros where nothing is."""
        data = bytes(self._memory[address : address + length])
        if address == _MAILBOX_OUT and length:
            self._memory[_MAILBOX_STATUS] &= ~_MAILBOX_FULL
        return data + bytes(length - len(data))

    def write(self, address: int, data: bytes) -> None:
        """Write registers; some of them do something."""
        end = min(address + len(data), len(self._memory))
        if address >= end:
            return
        if address <= AL_CONTROL < end:
            self._control(data[AL_CONTROL - address])
            return
        kept = [(place, bytes(self._memory[place])) for place in (*_READ_ONLY, *self._held())]
        self._memory[address:end] = data[: end - address]
        for place, content in kept:
            self._memory[place] = content
        self._windows = self._active_windows()
        self._watchdog_time = self.watchdog_time
        if address <= EEPROM_CONTROL < end:
            self._access_eeprom()
        if address == _MAILBOX_IN and has_mailbox(self.terminal) and self.state >= PREOP:
            reply = mailbox.answer(data, self.objects)
            if reply is not None and self._answers_to_lose:
                self._answers_to_lose -= 1
                self._log("answer lost", terminal=self.terminal.name)
            elif reply is not None:
                self._memory[_MAILBOX_OUT : _MAILBOX_OUT + len(reply)] = reply
                self._memory[_MAILBOX_STATUS] |= _MAILBOX_FULL

    def exchange(self, logical: int, data: bytearray, reads: bool, writes: bool, now: float) -> int:
        """A logical datagram passes; returns what it adds to the working counter."""
        if not self._windows or self.state < SAFEOP:
            return 0
        count, memory = 0, self._memory
        for start, length, physical, kind, bit in self._windows:
            low, high = max(start, logical), min(start + length, logical + len(data))
            if low >= high:
                continue
            here = slice(low - logical, high - logical)
            there = physical + low - start
            if there < _PROCESS_MEMORY or there + high - low > len(memory):
                continue
            if kind == _WRITE and writes:
                memory[there : there + high - low] = data[here]
                if bit >= 0:
                    memory[there] = memory[there] >> bit & (1 << self.terminal.outputs) - 1
                count += 2 if reads else 1
                if memory[AL_STATUS] & 0x0F == OP:
                    self._fed = now
                    memory[WATCHDOG_STATUS : WATCHDOG_STATUS + 2] = b"\1\0"
            elif kind == _READ and reads:
                memory[INPUT_AREA : INPUT_AREA + len(self.input_bytes)] = self.input_bytes
                if bit >= 0:
                    mask = ((1 << self.terminal.inputs) - 1) << bit & 0xFF
                    data[here.start] = data[here.start] & ~mask | memory[there] << bit & mask
                else:
                    data[here] = memory[there : there + high - low]
                self.was_read = True
                count += 1
        return count

    # --- inside -------------------------------------------------------------------------------

    def _active_windows(self) -> list[tuple[int, int, int, int, int]]:
        """Of each FMMU that is switched on: logical start, length, address in the memory, type, and
        first bit, or -1 for whole bytes.

        Looked at when something is written, instead of with every frame.
        """
        windows = []
        for entry in range(FMMUS, FMMUS + _FMMU_COUNT * _FMMU_SIZE, _FMMU_SIZE):
            start, length, first, last, physical, _, kind, active = _FMMU.unpack_from(
                self._memory, entry
            )
            if active & 1:
                bit = first if length == 1 and (first, last) != (0, 7) else -1
                windows.append((start, length, physical, kind, bit))
        return windows

    def _held(self) -> list[slice]:
        """Registers of sync managers that are active: they hold until it is switched off."""
        places = range(SYNC_MANAGERS, SYNC_MANAGERS + 8 * _MANAGERS, 8)
        return [
            slice(place, place + _MANAGER_FIXED)
            for place in places
            if self._memory[place + _MANAGER_ACTIVE] & 1
        ]

    def _word(self, address: int) -> int:
        return struct.unpack_from("<H", self._memory, address)[0]

    def _control(self, word: int) -> None:
        """A request for a state; one step up at a time, any way down."""
        wanted, acknowledged = word & 0x0F, bool(word & ERROR)
        if self._memory[AL_STATUS] & ERROR and not acknowledged and wanted >= self.state:
            return
        if wanted not in STATE_NAMES:
            self._set_state(self.state, UNKNOWN_STATE)
        elif wanted > 2 * self.state:
            self._set_state(self.state, INVALID_STATE_CHANGE)
        elif wanted == SAFEOP and self.state == PREOP and (code := self._wrong_configuration()):
            self._set_state(PREOP, code)
        else:
            if wanted == OP and self.state != OP:
                self._fed = None  # the watchdog starts with the first outputs
            self._set_state(wanted, 0)

    def _wrong_configuration(self) -> int:
        for index, code, size in (
            (self._managers[0], INVALID_OUTPUTS, self.terminal.output_bytes),
            (self._managers[1], INVALID_INPUTS, self.terminal.input_bytes),
        ):
            if size and self._word(SYNC_MANAGERS + 8 * index + 2) != size:
                return code
        return 0

    def _set_state(self, state: int, code: int) -> None:
        if state != self.state or code:
            named = {"terminal": self.terminal.name, "state": STATE_NAMES[state], "code": code}
            self._log("state", **named)
        struct.pack_into("<H", self._memory, AL_STATUS, state | (ERROR if code else 0))
        struct.pack_into("<H", self._memory, AL_CODE, code)

    def _access_eeprom(self) -> None:
        if self._word(EEPROM_CONTROL) & 0x0700 == _EEPROM_READ:
            begin = 2 * struct.unpack_from("<I", self._memory, EEPROM_ADDRESS)[0]
            data = self._eeprom[begin : begin + 8].ljust(8, b"\xff")
            self._memory[EEPROM_DATA : EEPROM_DATA + 8] = data
        struct.pack_into("<H", self._memory, EEPROM_CONTROL, _EEPROM_READS_8)


def has_mailbox(terminal: Terminal) -> bool:
    """Whether it answers about CoE objects."""
    return terminal.has_mailbox


def sync_managers(terminal: Terminal) -> tuple[int, int]:
    """Numbers of those of outputs and inputs; without a mailbox they are the first."""
    return (0, 0) if terminal.digital else (2, 3)


def eeprom(terminal: Terminal, output_control: int | None = None) -> bytes:
    """The slave information: identity, mailbox, name, FMMUs, sync managers, PDOs.

    Args:
        terminal: whose.
        output_control: of the outputs' sync manager; None for the usual one.
    """
    outputs_by = _WATCHED_OUTPUTS if output_control is None else output_control
    header = bytearray(0x80)
    size = mailbox.SIZE if has_mailbox(terminal) else 0
    if terminal.digital:
        outputs_by = _DIGITAL_OUTPUTS if output_control is None else output_control
    if size:
        struct.pack_into("<HHHHH", header, 0x30, _MAILBOX_IN, size, _MAILBOX_OUT, size, 0x04)
    struct.pack_into("<IIII", header, 0x10, terminal.vendor, terminal.product, 0x00100000, 1)
    struct.pack_into("<HH", header, 0x7C, 0x0F, 1)
    name = terminal.name.encode()
    sections = [
        _section(10, bytes([1, len(name)]) + name),
        _section(30, bytes([0, 0, 0, 0, 0, bool(size)]) + bytes(26)),  # 5: service data objects
        _section(40, bytes([1, 2, 0, 0])),  # outputs, inputs
        _section(41, _managers(terminal, size, outputs_by)),
    ]
    by_outputs, by_inputs = sync_managers(terminal)
    in_bits, out_bits = ((1,), (1,)) if terminal.digital else ((16, 16), (16,))
    if terminal.inputs:
        sections.append(_section(50, _pdos(0x1A00, 0x6000, by_inputs, terminal.inputs, in_bits)))
    if terminal.outputs:
        pdos = _pdos(0x1600, 0x7000, by_outputs, terminal.outputs, out_bits)
        sections.append(_section(51, pdos))
    return bytes(header) + b"".join(sections) + b"\xff\xff"


def _managers(terminal: Terminal, mailbox_size: int, outputs_by: int) -> bytes:
    """Of the sync managers: start, length, control, status, active, kind."""
    outputs = OUTPUT_AREA, terminal.output_bytes, outputs_by, 0, 1, 3
    inputs = INPUT_AREA, terminal.input_bytes, _BUFFERED_INPUTS, 0, 1, 4
    rows: tuple[tuple[int, ...], ...]
    if terminal.digital:
        rows = (outputs if terminal.outputs else inputs,)
    else:
        active = int(mailbox_size > 0)
        rows = (
            (_MAILBOX_IN, mailbox_size, 0x26, 0, active, 1),
            (_MAILBOX_OUT, mailbox_size, 0x22, 0, active, 2),
            outputs,
            inputs,
        )
    return b"".join(struct.pack("<HHBBBB", *row) for row in rows)


def _section(category: int, data: bytes) -> bytes:
    data += bytes(len(data) % 2)
    return struct.pack("<HH", category, len(data) // 2) + data


def _pdos(index: int, entry: int, manager: int, count: int, bits: tuple[int, ...]) -> bytes:
    found = b""
    for channel in range(count):
        found += struct.pack("<HBBBBH", index + channel, len(bits), manager, 0, 0, 0)
        for sub, size in enumerate(bits, 1):
            found += struct.pack("<HBBBBH", entry + 0x10 * channel, sub, 0, 6, size, 0)
    return found
