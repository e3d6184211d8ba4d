"""Commands that say when they count: packets of planned commands, and what of them is due.

A controller answers with the commands of its plan, each with the time at which it is due, and what
follows commands plays what is due from the newest packet: a late answer is then a shorter packet,
not another motion. This is packetised predictive control, e.g. Quevedo and Nesic, IEEE Transactions
on Automatic Control 56 (2011), p. 370.
"""

import itertools
import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

MOST_COMMANDS = 200
"""Of a packet: one of 30 actuators is still a single message to the valves' process."""

LATEST = 3
"""A packet may come so long after its first command was due [periods]: what a controller has
planned without knowing what was played meanwhile is worth less and less."""

FARTHEST = 1.0
"""So long after it came the last command of a packet may be due [s]."""

_KEPT = 4  # of what is past [periods]


@dataclass(frozen=True, eq=False)
class CommandPacket:
    """Commands in the order in which they are due.

    Attributes:
        due: (N,) times from which each command counts, strictly ascending [ns].
        commands: (N, m) in the unit of the robot's inputs.
    """

    due: tuple[int, ...]
    commands: np.ndarray

    @classmethod
    def single(cls, due: int, command: np.ndarray) -> "CommandPacket":
        """One command (m,) that counts from a time [ns] on."""
        return cls((due,), np.asarray(command, float)[None])

    @classmethod
    def regular(cls, first: int, period: int, commands: np.ndarray) -> "CommandPacket":
        """Commands (N, m), the first one due at a time, each further one a period later [ns]."""
        due = range(first, first + period * len(commands), period)
        return cls(tuple(due), np.asarray(commands, float))

    @property
    def without_repetitions(self) -> "CommandPacket":
        """The same without commands that repeat the one before; the last one tells how far it
        reaches."""
        kept = (np.diff(self.commands, axis=0) != 0.0).any(axis=1)
        kept = np.concatenate(([True], kept[:-1], [True])) if len(kept) else np.ones(1, bool)
        due = tuple(itertools.compress(self.due, kept))
        return CommandPacket(due, self.commands[kept])


class _Heard(NamedTuple):
    """A packet, its commands, each one object for as long as it counts, and from when on it
    overrides those before it [ns]."""

    begins: int
    packet: CommandPacket
    commands: tuple[np.ndarray, ...]


class PacketPlayer:
    """Plays what is due: a packet overrides those before it from its first due time on, or from
    when it came where that is later. After its last command a packet holds that command.

    Args:
        period: over which the last command of a packet counts [ns].

    Attributes:
        refused: packets that were not taken, by reason.
    """

    def __init__(self, period: int) -> None:
        self._period, self._kept = period, _KEPT * period
        self.refused: dict[str, int] = {}
        self.reset()

    def reset(self) -> None:
        """Nothing came yet."""
        self._heard: list[_Heard] = []

    def hear(self, packet: CommandPacket, now: int) -> str:
        """A packet that came at a time [ns]; returns why it is refused, empty where it is not."""
        reason = ""
        if packet.due[0] + LATEST * self._period < now:
            late, most = 1e-6 * (now - packet.due[0]), 1e-6 * LATEST * self._period
            reason = f"came late: {late:.0f} ms after its first command was due, of {most:.0f} ms"
        elif packet.due[-1] > now + round(1e9 * FARTHEST):
            last = 1e-9 * (packet.due[-1] - now)
            reason = f"reaches too far: its last command is due in {last:.3g} s, of {FARTHEST:g} s"
        if reason:
            kind = reason.partition(":")[0]
            self.refused[kind] = self.refused.get(kind, 0) + 1
            return reason
        heard = _Heard(max(packet.due[0], now), packet, tuple(packet.commands))
        # what it overrides as a whole counts no more, and what was long ago is not asked for again
        known = [each for each in self._heard if each.begins < heard.begins]
        past = [place for place, each in enumerate(known) if each.begins <= now - self._kept]
        self._heard = [*known[max(past, default=0) :], heard]
        return ""

    def at(self, time: int) -> np.ndarray | None:
        """(m,) the command that counts at a time [ns], the same object for as long as it does; None
        before the first one.

        It may be asked for some periods back from the last packet, too.
        """
        for begins, packet, commands in reversed(self._heard):
            if begins <= time:
                return commands[bisect_right(packet.due, time) - 1]
        return None

    def changes(self, after: int, until: int) -> list[int]:
        """Times in (after, until] at which another command may begin to count, ascending [ns]."""
        times = {
            due
            for begins, packet, _ in self._heard
            for due in (begins, *packet.due)
            if after < due <= until and due >= begins
        }
        return sorted(times)

    @property
    def runs_out(self) -> float:
        """When the last command of the newest packet has counted for a period [ns]; before the
        first packet long ago."""
        return self._heard[-1].packet.due[-1] + self._period if self._heard else -math.inf
