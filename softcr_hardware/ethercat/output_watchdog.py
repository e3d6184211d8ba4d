"""The watchdog of a terminal's outputs, by the registers of its EtherCAT controller.

Registers (ETG.1000.4): divider 0x0400, time 0x0420, state 0x0440, expirations 0x0442, and sync
manager k at 0x0800 + 8 k, whose control byte has the watchdog in bit 6. The manager holds that byte
while it is active, so it is switched off for the change.
"""

import struct
from collections.abc import Callable
from typing import Any, TypeVar

from softcr_hardware.ethercat.terminals import Terminal
from softcr_models.errors import UserError

_DIVIDER, _TIME, _STATE, _EXPIRED = 0x0400, 0x0420, 0x0440, 0x0442
_MANAGERS, _CONTROL, _ACTIVE = 0x0800, 4, 6
_LISTENS = 0x40
_TICK = 40e-9  # [s]; the divider counts them, plus 2
_TOLERANCE = 0.001  # [s] between the time asked for and the time read back
_ATTEMPTS, _TIMEOUT = 3, 10_000  # of a register; [us]

_Answer = TypeVar("_Answer")


def output_manager(terminal: Terminal) -> int:
    """Which sync manager takes the outputs: without a mailbox it is the first."""
    return 0 if terminal.family == "EL20xx" else 2


class OutputWatchdog:
    """Of one terminal; any method raises pysoem's WkcError where it stays silent."""

    def __init__(self, soem: Any, slave: Any, terminal: Terminal):
        """Of a slave of pysoem."""
        self._soem, self._slave = soem, slave
        self._name, self._number = terminal.name, output_manager(terminal)
        self._manager = _MANAGERS + 8 * self._number
        self._before = 0

    def set_time(self, seconds: float) -> None:
        """Write it; in any state."""
        self._patiently(lambda: self._slave.set_watchdog("processdata", 1e3 * seconds))

    def listen(self) -> None:
        """Let it watch the outputs, where the EEPROM has left that off; before SAFEOP.

        Raises:
            UserError: the terminal does not take it.
        """
        if self.control & _LISTENS:
            return
        wanted = self.control | _LISTENS
        self._write(self._manager + _ACTIVE, 0)
        self._write(self._manager + _CONTROL, wanted)
        self._write(self._manager + _ACTIVE, 1)
        self.check_listens()

    def check_listens(self) -> None:
        """Read it back.

        Raises:
            UserError: it does not watch the outputs.
        """
        if not self.control & _LISTENS:
            raise UserError(
                f"{self._name}: its output watchdog is switched off in sync manager "
                f"{self._number}: control 0x{self._manager + _CONTROL:04X} is "
                f"0x{self.control:02X}, bit 6 must be set; the valves stay disarmed"
            )

    def check_time(self, seconds: float) -> None:
        """Read divider and time back.

        Raises:
            UserError: they are not as wanted.
        """
        divider, count = self._read(_DIVIDER, "<H"), self._read(_TIME, "<H")
        found = (divider + 2) * _TICK * count
        if abs(found - seconds) > _TOLERANCE:
            raise UserError(
                f"{self._name}: its output watchdog is {1e3 * found:g} ms (divider 0x0400 "
                f"{divider}, time 0x0420 {count}), must be {1e3 * seconds:g} ms"
            )

    def wait_for_trip(self) -> None:
        """Remember how often it has tripped so far."""
        self._before = self._read(_EXPIRED, "<B")

    def check_tripped(self) -> None:
        """Whether it has tripped since.

        Raises:
            UserError: its registers do not say so.
        """
        state, count = self._read(_STATE, "<H"), self._read(_EXPIRED, "<B")
        counts = self._before < count or count in (0, 0xFF)  # no counter, or a full one
        if state & 1 or not counts:
            raise UserError(
                f"{self._name}: left operation, but not by its output watchdog (state 0x0440 "
                f"0x{state:04X}, expirations 0x0442 {self._before} before, {count} after)"
            )

    @property
    def control(self) -> int:
        """Control byte of the sync manager."""
        return self._read(self._manager + _CONTROL, "<B")

    def _read(self, address: int, layout: str) -> int:
        size = struct.calcsize(layout)
        # pysoem has no public way
        data = self._patiently(lambda: self._slave._fprd(address, size, _TIMEOUT))
        (value,) = struct.unpack(layout, data)
        return int(value)

    def _write(self, address: int, value: int) -> None:
        self._patiently(lambda: self._slave._fpwr(address, bytes([value]), _TIMEOUT))

    def _patiently(self, ask: Callable[[], _Answer]) -> _Answer:
        for _ in range(_ATTEMPTS - 1):
            try:
                return ask()
            except self._soem.WkcError:
                continue
        return ask()
