"""Settings of the terminals: what must hold of a station's, and how they are brought to hold.

All are read first. Where one is wrong, the settings of delivery are restored, where the terminal
offers that, what is still wrong is written, and all are read back. A terminal keeps its settings
without power and counts how often they are written, so nothing is written that holds already.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from softcr_hardware.ethercat.families import (
    DEFAULT_OUTPUT,
    RESTORE,
    RESTORE_WORD,
    SETTINGS_STEP,
    Setting,
)
from softcr_hardware.ethercat.process_data import output_count
from softcr_hardware.ethercat.service_data import AbortedError, ServiceData, object_name
from softcr_hardware.ethercat.terminals import Station
from softcr_models.errors import UserError


@dataclass(frozen=True)
class Wanted:
    """One object of a terminal and the value that must hold."""

    index: int
    setting: Setting
    value: int

    def read(self, objects: ServiceData) -> int | None:
        """As the terminal has it; None where it has no such object."""
        signed = self.setting.subindex == DEFAULT_OUTPUT
        return objects.read(self.index, self.setting.subindex, signed)

    def wrong(self, found: int | None) -> str:
        """In words, with what must be; empty if it holds."""
        if found == self.value:
            return ""
        place = f"{object_name(self.index, self.setting.subindex)} ({self.setting.name})"
        is_now = "is not there" if found is None else f"is {self.setting.told(found)}"
        return f"{place} {is_now}, must be {self.setting.told(self.value)}"


def wanted_settings(station: Station, position: int) -> list[Wanted]:
    """What must hold of the terminal at a position from 1; nothing for one without settings."""
    terminal = station.terminals[position - 1]
    rest = output_count(station.valve.when_dead, terminal.unit)
    return [
        Wanted(index, setting, rest if setting.must is None else setting.must)
        for channel in range(terminal.inputs or terminal.outputs)
        for index in (terminal.first_settings + SETTINGS_STEP * channel,)
        for setting in terminal.settings
        if channel == 0 or not setting.central
    ]


def wrong_settings(objects: ServiceData, wanted: list[Wanted]) -> Iterator[tuple[Wanted, str]]:
    """Those that do not hold, with words. Reads only."""
    for each in wanted:
        if words := each.wrong(each.read(objects)):
            yield each, words


def settle(objects: ServiceData, wanted: list[Wanted], where: str) -> list[str]:
    """Bring all to hold.

    Args:
        objects: of the terminal.
        wanted: what must hold.
        where: the terminal in words.

    Returns:
        what was mended, in words; empty where all held.

    Raises:
        UserError: one line with the terminal, the object, the value found and what must be.
    """
    mended = [words for _, words in wrong_settings(objects, wanted)]
    if not mended:
        return []
    refused: dict[Wanted, str] = {}
    with suppress(AbortedError):  # one that does not offer it: each object is written anyway
        objects.write(*RESTORE, RESTORE_WORD, 4)
    for each, _ in list(wrong_settings(objects, wanted)):
        try:
            objects.write(each.index, each.setting.subindex, each.value, each.setting.size)
        except AbortedError as reason:
            refused[each] = f": the terminal refuses it, {reason.args[0]}"
    for each, words in wrong_settings(objects, wanted):
        why = refused.get(each, ": the terminal does not keep it")
        raise UserError(f"{where}: {words}{why}")
    return mended
