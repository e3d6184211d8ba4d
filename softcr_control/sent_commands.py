"""What a controller has sent, and what of it the robot plays in which tick."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from softcr_control.observation import Observation
from softcr_runtime.blocks.command_packets import LATEST, MOST_COMMANDS, CommandPacket

_KEPT = 32  # packets
_IN_TIME = 0.1  # so much later than its tick a packet may come and still be played in it [periods]


class _Sent(NamedTuple):
    """Commands (N, m), the first one due at a time [s], each further one a period later, that came
    to the actuators at a time [s]."""

    due: float
    commands: np.ndarray
    came: float


class SentCommands:
    """The packets that were sent last. A packet overrides those before it from its first due tick
    on, or from when it came, as `softcr_runtime.blocks.command_packets` plays them.

        sent.observe(observation)
        felt_until_then = sent.pending
        sent.answer(commands)

    Args:
        ramp: as told, see below.
        period: of a tick [s].

    Attributes:
        ramp: weights of the last commands in what is held over a tick, the newest last; see
            `command_ramp`.
        due: when the answer to the last observation begins to count [s].
        shift: ticks by which that is later than for the answer before it.
    """

    def __init__(self, ramp: np.ndarray, period: float) -> None:
        self.ramp, self._period = ramp, period
        self.reset()

    def reset(self) -> None:
        """Forgets everything."""
        self._packets: deque[_Sent] = deque(maxlen=_KEPT)
        self._stamp = self.due = -np.inf
        self._answered = -np.inf  # stamp of the last observation that was answered
        self._held: np.ndarray | None = None  # (m,) by somebody, whatever was sent
        self._delay, self.shift = 1, 1

    def take_over(self, packets: Sequence[CommandPacket]) -> None:
        """After a reset: another controller's packets, in the order in which they were sent."""
        for packet in packets:
            due = 1e-9 * np.array(packet.due)
            count = round((due[-1] - due[0]) / self._period) + 1
            ticks = np.arange(min(count, MOST_COMMANDS))
            rows = np.searchsorted(due, due[0] + (ticks + 0.5) * self._period) - 1
            self._packets.append(_Sent(due[0], packet.commands[rows], -np.inf))

    def observe(self, observation: Observation, low: np.ndarray, high: np.ndarray) -> None:
        """An observation that will be answered.

        Args:
            observation: with its stamp, its delay, and how old the answer before it was.
            low, high: (m,) limits of commands; before any command the robot follows what is
                measured, as far as that is known and inside them.
        """
        if not self._packets:
            measured = np.asarray(observation.inputs, float)
            known = np.where(np.isfinite(measured), measured, low)
            self._packets.append(_Sent(-np.inf, np.clip(known, low, high)[None], -np.inf))
        if np.isfinite(self._answered):
            last = self._packets.pop()
            came = self._answered + observation.last_age
            if came <= last.due + LATEST * self._period:  # otherwise it was refused
                self._packets.append(last._replace(came=came))
            self._answered = -np.inf
        self._held = observation.held
        before = self.due
        self._stamp, self._delay = observation.stamp, observation.delay
        self.due = observation.stamp + observation.delay * self._period
        passed = (self.due - before) / self._period
        self.shift = round(passed) if abs(passed) < _KEPT else 1

    def answer(self, commands: np.ndarray) -> None:
        """Commands (N, m) that answer the last observation, the first one due at `due`."""
        self._packets.append(_Sent(self.due, np.array(commands, float), -np.inf))
        self._answered = self._stamp

    @property
    def previous(self) -> np.ndarray:
        """(m,) the command that is played until the answer begins to count."""
        return self.at(self.due - self._period)

    @property
    def pending(self) -> np.ndarray:
        """(delay, m) held in the ticks until the answer begins to count."""
        ticks = range(self._delay)
        return np.array([self.held(self._stamp + tick * self._period) for tick in ticks])

    def played(self, begin: float, ticks: int) -> np.ndarray:
        """(ticks, m) the commands of the ticks from a time [s] on."""
        return np.array([self.at(begin + tick * self._period) for tick in range(ticks)])

    def held(self, begin: float) -> np.ndarray:
        """(m,) what the commands amount to, held over the tick that begins at a time [s]."""
        before = len(self.ramp) - 1
        held: np.ndarray = self.ramp @ self.played(begin - before * self._period, before + 1)
        return held

    def at(self, begin: float) -> np.ndarray:
        """(m,) the command that is played in the tick that begins at a time [s]."""
        if self._held is not None:
            return self._held
        half, late = begin + 0.5 * self._period, begin + _IN_TIME * self._period
        for due, commands, came in reversed(self._packets):
            if due <= half and came <= late:
                row = (begin - due) / self._period if np.isfinite(due) else 0.0
                command: np.ndarray = commands[min(max(round(row), 0), len(commands) - 1)]
                return command
        first: np.ndarray = self._packets[0].commands[0]
        return first
