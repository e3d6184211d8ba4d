"""How emulated terminals differ from well-kept ones, and the words by which an operator says so."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from softcr_hardware.ethercat.terminals import Station
from softcr_models.errors import UserError

Place = tuple[int, int]
"""Index and subindex of an object."""

FAULT_WORDS = (
    "POSITION:INDEX:SUBINDEX=VALUE, =refused or =kept, POSITION:control=VALUE, "
    "POSITION:lost=COUNT, POSITION:no-restore, POSITION:no-watchdog"
)
"""What `parse_terminal_faults` understands, between commas."""


@dataclass(frozen=True)
class TerminalFaults:
    """One emulated terminal; nothing by default.

    Attributes:
        objects: values that somebody left in its settings.
        refused: objects whose writing it refuses.
        kept: objects whose writing it agrees to, without doing it.
        restores: whether it offers to restore the settings of delivery.
        output_control: control byte of its outputs' sync manager in the EEPROM; None: the usual
            one, with the watchdog on.
        trips: whether its output watchdog works.
        lost_answers: so many answers of its mailbox are lost, the first ones to come.
    """

    objects: Mapping[Place, int] = field(default_factory=dict)
    refused: Collection[Place] = ()
    kept: Collection[Place] = ()
    restores: bool = True
    output_control: int | None = None
    trips: bool = True
    lost_answers: int = 0


def parse_terminal_faults(text: str, station: Station) -> dict[int, TerminalFaults]:
    """Faults by position from 1, of words as FAULT_WORDS has them.

    `3:0x8000:05=2, 3:lost=1` is a third terminal in which somebody left 2 in object 0x8000:05, and
    one CoE answer of which is lost.

    Raises:
        UserError: a word that is none of them, or no such terminal.
    """
    changes: dict[int, dict[str, object]] = {}
    for word in filter(None, (each.strip() for each in text.split(","))):
        match = _WORD.fullmatch(word)
        if match is None:
            raise UserError(f"terminal fault {word!r}: unknown; must be {FAULT_WORDS}")
        position = int(match["position"])
        if not 1 <= position <= len(station.terminals):
            raise UserError(
                f"terminal fault {word!r}: position must be 1 to {len(station.terminals)}"
            )
        there = changes.setdefault(position, {"objects": {}, "refused": [], "kept": []})
        _add(there, match)
    return {position: TerminalFaults(**each) for position, each in changes.items()}  # type: ignore[arg-type]


_NUMBER = r"(?:0x[0-9a-fA-F]+|-?[0-9]+)"
_WORD = re.compile(
    r"(?P<position>[0-9]+):(?:"
    r"0x(?P<index>[0-9a-fA-F]{4}):(?P<subindex>[0-9a-fA-F]{2})=(?:(?P<how>refused|kept)|"
    rf"(?P<value>{_NUMBER}))|"
    rf"control=(?P<control>{_NUMBER})|lost=(?P<lost>[0-9]+)|(?P<flag>no-restore|no-watchdog))"
)


def _add(there: dict[str, object], match: "re.Match[str]") -> None:
    if match["index"]:
        place = int(match["index"], 16), int(match["subindex"], 16)
        if match["how"]:
            there[match["how"]].append(place)  # type: ignore[attr-defined]
        else:
            there["objects"][place] = int(match["value"], 0)  # type: ignore[index]
    elif match["control"]:
        there["output_control"] = int(match["control"], 0)
    elif match["lost"]:
        there["lost_answers"] = int(match["lost"])
    else:
        there["restores" if match["flag"] == "no-restore" else "trips"] = False
