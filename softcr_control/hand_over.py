"""Which estimates a controller answers, where another one commands before it or after it.

Two controllers share the topic of commands at no stamp: the one answers what is stamped before a
moment, the other one what is stamped from it on. The later one hears the commands of the earlier
one, and goes on from the last of them.
"""

from collections import deque
from typing import NamedTuple

from pydantic import BaseModel, Field

from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.settings.node_settings import LIVE

_LATEST = 1e10  # [s] since 1970
_LAST = 1.2  # so long before the exchange the earlier one answers for the last time [periods]
_PATIENCE = 3.0  # for that answer; then it goes on from the newest that it has heard [periods]
_READY = 5  # commands that it has heard

_MOMENT = {"unit": "s", **LIVE}


class HandOverSettings(BaseModel):
    """When a controller begins and ends to command, where the controller is exchanged."""

    takes_over: bool = Field(
        False,
        description="whether the controller waits, and receives the commands of another controller",
    )
    answer_from: float = Field(
        0.0,
        ge=0.0,
        le=_LATEST,
        description="stamp from which this controller answers when it takes over; 0: not yet",
        json_schema_extra=_MOMENT,
    )
    answer_until: float = Field(
        0.0,
        ge=0.0,
        le=_LATEST,
        description="stamp from which another controller answers; 0: none does",
        json_schema_extra=_MOMENT,
    )


class _Heard(NamedTuple):
    stamp: int  # [ns]
    packet: CommandPacket


class HandOver:
    """What one controller knows of an exchange.

    Attributes:
        begun: whether it has answered, or need not wait.
        ended: whether another one answers now.
    """

    def __init__(self, settings: HandOverSettings, period: float, kept: int) -> None:
        """
        Args:
            settings: of the controller's block.
            period: of a tick [s].
            kept: commands of the other one that are remembered.
        """
        self._period, self._kept = round(1e9 * period), kept
        self.use(settings)
        self.reset()

    def use(self, settings: HandOverSettings) -> None:
        """Other settings."""
        self._waits = settings.takes_over
        self._from = round(1e9 * settings.answer_from)
        self._until = round(1e9 * settings.answer_until)

    def reset(self) -> None:
        """Begin anew."""
        self.begun, self.ended = not self._waits, False
        self._heard: deque[_Heard] = deque(maxlen=self._kept)
        self._count = 0

    @property
    def words(self) -> str:
        """How it stands, for diagnostics: waiting, ready, commands or handed over."""
        if self.ended:
            return "handed over"
        if self.begun:
            return "commands"
        return "ready" if self._count >= _READY else "waiting"

    def hear(self, stamp: int, packet: CommandPacket) -> None:
        """The newest packet of the other one, and its stamp [ns]; while it waits."""
        if not self._heard or stamp > self._heard[-1].stamp:
            self._heard.append(_Heard(stamp, packet))
            self._count += 1

    def update_and_is_active(self, now: int) -> bool:
        """Update the state of the exchange at a time [ns]; whether the controller commands then."""
        self.ended |= 0 < self._until <= now
        if self.ended or self.begun:
            return not self.ended
        if not 0 < self._from <= now:
            return False
        last = self._from - _LAST * self._period
        follows = bool(self._heard) and self._heard[-1].stamp >= last
        self.begun = follows or now - self._from >= _PATIENCE * self._period
        return self.begun

    def vents(self, now: int, stopped: bool) -> bool:
        """Whether it commands what is safe where no tick comes.

        Args:
            now: [ns].
            stopped: whether it is deactivated; one that has not begun leaves without a word.
        """
        self.ended |= 0 < self._until <= now
        if not (self.begun or self.ended or stopped):
            self.begun = 0 < self._from <= now
        return self.begun and not self.ended

    @property
    def packets(self) -> list[CommandPacket]:
        """The last ones of the other one, the newest last."""
        return [each.packet for each in self._heard]
