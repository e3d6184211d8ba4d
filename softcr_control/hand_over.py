"""Which estimates a controller answers, where another one commands before it or after it.

The one answers what is stamped before a moment, the other one what is stamped from it on. The later
one hears the packets of the earlier one, and goes on from the last of them.
"""

import math
from collections import deque

from pydantic import BaseModel, Field

from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.blocks.sample import Sample
from softcr_runtime.settings.node_settings import LIVE

_LATEST = 1e10  # [s] since 1970
_LAST = 1.2  # so long before the moment the earlier one answers for the last time [periods]
_PATIENCE = 3.0  # for that answer; then it goes on from the newest that it has heard [periods]
_READY = 5  # packets that it has heard
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


class HandOver:
    """What one controller knows of an exchange.

    Attributes:
        begun: whether it has answered, or need not wait.
        ended: whether another one answers now.
        packets: the last ones of the other one, the newest last.
    """

    def __init__(self, settings: HandOverSettings, period: float, kept: int) -> None:
        """Remembers so many packets of the other one; `period` is that of a tick [s]."""
        self._period, self._kept = round(1e9 * period), kept
        self.use(settings)
        self.reset()

    def use(self, settings: HandOverSettings) -> None:
        """Other settings."""
        self._settings = settings

    def reset(self) -> None:
        """Begin anew."""
        self.begun, self.ended = not self._settings.takes_over, False
        self.packets: deque[CommandPacket] = deque(maxlen=self._kept)
        self._newest, self._count = -math.inf, 0

    @property
    def words(self) -> str:
        """How it stands, for diagnostics: waiting, ready, commands or handed over."""
        waits = "ready" if self._count >= _READY else "waiting"
        return "handed over" if self.ended else "commands" if self.begun else waits

    def hear(self, sample: Sample) -> None:
        """A packet of the other one, while this one waits."""
        if sample.stamp > self._newest:
            self._newest = sample.stamp
            self._count += 1
            self.packets.append(sample.value)

    def update_and_is_active(self, now: int, waits: bool = True) -> bool:
        """Update the state of the exchange at a time [ns]; whether the controller commands then.

        Args:
            now: [ns].
            waits: for the last packet of the other one.
        """
        until, moment = (
            round(1e9 * each) for each in (self._settings.answer_until, self._settings.answer_from)
        )
        self.ended |= 0 < until <= now
        if not (self.begun or self.ended) and 0 < moment <= now:
            last, longest = moment - _LAST * self._period, moment + _PATIENCE * self._period
            self.begun = not waits or self._newest >= last or now >= longest
        return self.begun and not self.ended
