"""CoE objects of one real terminal, read and written through the master (pysoem) in PREOP."""

from collections.abc import Callable
from typing import Any

from softcr_models.errors import UserError

_ATTEMPTS = 3  # an answer may be lost; the question is asked again
_NO_OBJECT, _NO_SUBINDEX = 0x06020000, 0x06090011  # abort codes


class AbortedError(Exception):
    """The terminal says no; its words are the reason."""


class ServiceData:
    """Objects by index and subindex. A lost answer is asked for again."""

    def __init__(self, soem: Any, slave: Any, where: str):
        """Of a slave of pysoem that is in PREOP at least; `where` names it in messages."""
        self._soem, self._slave, self._where = soem, slave, where

    def read(self, index: int, subindex: int, signed: bool = False) -> int | None:
        """The value; None where the terminal has no such object.

        Raises:
            UserError: it does not answer, or refuses for another reason.
        """
        try:
            data = self._ask(lambda: self._slave.sdo_read(index, subindex), index, subindex)
        except AbortedError as reason:
            if reason.args[1] in (_NO_OBJECT, _NO_SUBINDEX):
                return None
            place = object_name(index, subindex)
            raise UserError(f"{self._where}: {place} cannot be read: {reason.args[0]}") from None
        return int.from_bytes(data, "little", signed=signed)

    def write(self, index: int, subindex: int, value: int, size: int) -> None:
        """Set the value, of `size` bytes.

        Raises:
            AbortedError: the terminal refuses.
            UserError: it does not answer.
        """
        data = (value % (1 << 8 * size)).to_bytes(size, "little")
        self._ask(lambda: self._slave.sdo_write(index, subindex, data), index, subindex)

    def _ask(self, question: Callable[[], Any], index: int, subindex: int) -> Any:
        soem = self._soem
        for _ in range(_ATTEMPTS):
            try:
                return question()
            except soem.SdoError as error:
                raise AbortedError(error.desc, error.abort_code) from None
            # pysoem asserts that a waiting error is of this slave; one of another is as passing
            except (soem.WkcError, soem.PacketError, soem.MailboxError, AssertionError):
                continue
        raise UserError(
            f"{self._where}: no answer about {object_name(index, subindex)} in {_ATTEMPTS} attempts"
        )


def object_name(index: int, subindex: int) -> str:
    """As manuals write it."""
    return f"object 0x{index:04X}:{subindex:02X}"
