"""The safety handshake: good samples of every source that is needed, counted one by one.

Time alone proves nothing: a source that said nothing for 0.3 s said nothing bad either. What counts
is the fast cycles in a row in which every source was fresh, none had a bad sample, and nothing else
stood in the way; and the messages of each source that came meanwhile.
"""

import math

from softcr_hardware.safety.rules import Flags
from softcr_hardware.safety.settings import SafetySettings

_SAME = 1e-6
"""Moments this close to each other are those of one message [s]."""
_MESSAGES = {
    "commands": ("command_age", ""),
    "poses": ("mocap_age", "require_mocap"),
    "operator": ("operator_age", "require_operator"),
}
"""Source -> its age, and the setting that may say it is not needed."""


class Handshake:
    """Counts since the last reset, or since something was last in the way."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self._newest = dict.fromkeys(_MESSAGES, math.nan)
        self.forget()

    def see(self, time: float, step: float, clear: bool, flags: Flags) -> None:
        """A cycle of the state machine.

        Args:
            time: of it [s].
            step: since the last one [s]; 0 where time stood still or jumped.
            clear: whether nothing stands in the way; else all counts are 0 again.
            flags: what is known.
        """
        moments = {name: time - getattr(flags, age) for name, (age, _) in _MESSAGES.items()}
        if not clear or not step > 0.0:
            self.forget()
        else:
            self._cycles += 1
            self._lasted += step
            for name, moment in moments.items():
                if math.isfinite(moment) and not moment <= self._newest[name] + _SAME:
                    self._messages[name] += 1
        self._newest = moments

    def counts(self, settings: SafetySettings) -> tuple[tuple[str, int, int], ...]:
        """Source, good samples up to those needed, and how many are needed."""
        needed = settings.handshake_samples
        found = [("cycles", min(self._cycles, needed), needed)]
        messages = settings.handshake_messages
        for name, (_, required) in _MESSAGES.items():
            if not required or getattr(settings, required):
                found.append((name, min(self._messages[name], messages), messages))
        return tuple(found)

    def complete(self, settings: SafetySettings) -> bool:
        """Whether there are enough, over long enough."""
        enough = all(count >= needed for _, count, needed in self.counts(settings))
        return enough and self._lasted >= settings.handshake_time - _SAME

    def forget(self) -> None:
        """All counts are 0."""
        self._cycles, self._lasted = 0, 0.0
        self._messages = dict.fromkeys(_MESSAGES, 0)
