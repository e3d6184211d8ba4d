"""What the terminals on an interface say of themselves, for a person: read in PREOP, not changed.

The master is opened as for a run, but goes no further than PREOP, where no process data flow, and
leaves the terminals in INIT.
"""

import importlib.util
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from softcr_hardware.ethercat.interfaces import check_interface, needs_privileges, own_interface
from softcr_hardware.ethercat.output_watchdog import output_manager
from softcr_hardware.ethercat.service_data import ServiceData
from softcr_hardware.ethercat.terminal_settings import wanted_settings, wrong_settings
from softcr_hardware.ethercat.terminals import Station, Terminal
from softcr_models.errors import UserError

_STATE_TIME = 500_000  # [us] to reach PREOP
_FIRST_CATEGORY, _END, _MANAGERS = 0x40, 0xFFFF, 41  # of the EEPROM [words]; ETG.2010
_MOST_CATEGORIES = 40
_CONTROL = 4  # byte of a sync manager's eight


@dataclass(frozen=True)
class TerminalFacts:
    """One terminal.

    Attributes:
        position: in the chain, from 1.
        expected: what the station file has there.
        name: as its EEPROM has it.
        identity: vendor and product.
        revision: of the terminal.
        output_control: control byte of the outputs' sync manager in the EEPROM; None without
            outputs. Bit 6 is the watchdog.
        settings: how many were read.
        wrong: those that are not as they must be, in words.
        trouble: why they were not read; empty if they were.
    """

    position: int
    expected: Terminal
    name: str
    identity: tuple[int, int]
    revision: int
    output_control: int | None
    settings: int
    wrong: tuple[str, ...]
    trouble: str


def can_inspect() -> bool:
    """Whether pysoem is installed."""
    return importlib.util.find_spec("pysoem") is not None


def inspect_terminals(interface: str, station: Station) -> list[TerminalFacts]:
    """Of the terminals that answer, as far as the station file goes.

    Raises:
        UserError: the interface cannot be used, or has a master.
    """
    import pysoem

    check_interface(interface)
    with own_interface(interface):
        master = pysoem.Master()
        try:
            try:
                master.open(interface)
            except ConnectionError:
                raise needs_privileges(interface) from None
            if master.config_init() <= 0:
                return []
            master.state_check(pysoem.PREOP_STATE, _STATE_TIME)
            pairs = zip(master.slaves, station.terminals, strict=False)
            return [
                _facts(pysoem, slave, station, position)
                for position, (slave, _) in enumerate(pairs, 1)
            ]
        except pysoem.WkcError:
            raise UserError(f"interface {interface!r}: a terminal stopped answering") from None
        finally:
            if master.context_initialized:
                master.state = pysoem.INIT_STATE
                master.write_state()
                master.close()


def _facts(soem: Any, slave: Any, station: Station, position: int) -> TerminalFacts:
    terminal = station.terminals[position - 1]
    wanted, trouble = wanted_settings(station, position), ""
    wrong: tuple[str, ...] = ()
    same = (slave.man, slave.id) == (terminal.vendor, terminal.product)
    try:
        if same:
            objects = ServiceData(soem, slave, f"position {position} {terminal.name}")
            wrong = tuple(words for _, words in wrong_settings(objects, wanted))
    except UserError as error:
        trouble = str(error)
    return TerminalFacts(
        position,
        terminal,
        slave.name,
        (slave.man, slave.id),
        slave.rev,
        _output_control(slave, output_manager(terminal)) if terminal.outputs else None,
        len(wanted) if same else 0,
        wrong,
        trouble,
    )


def _output_control(slave: Any, manager: int) -> int | None:
    for begin, length in _categories(slave):
        if 4 * manager < length:
            word = begin + 4 * manager + _CONTROL // 2
            return int(slave.eeprom_read(word)[0])
    return None


def _categories(slave: Any) -> Iterator[tuple[int, int]]:
    """Where the descriptions of sync managers begin, and how long they are [words]."""
    place = _FIRST_CATEGORY
    for _ in range(_MOST_CATEGORIES):
        category, length = struct.unpack("<HH", slave.eeprom_read(place)[:4])
        if category == _END:
            return
        if category == _MANAGERS:
            yield place + 2, length
        place += 2 + length
