"""What was sent, and what of it the robot follows until the next answer acts."""

import numpy as np


class SentCommands:
    """The last commands, as those held over a tick that they amount to.

    Args:
        ramp: weights of the last commands in what is held over a tick, the newest last; see
            `command_ramp`.
        kept: how many ticks can be asked back for.
    """

    def __init__(self, ramp: np.ndarray, kept: int) -> None:
        self._ramp, self._kept = ramp, kept
        self.reset()

    def reset(self) -> None:
        """Forgets everything."""
        self._sent: list[np.ndarray] = []
        self._held: list[np.ndarray] = []

    @property
    def begun(self) -> bool:
        """Whether anything is known to have been active."""
        return bool(self._sent)

    @property
    def last(self) -> np.ndarray:
        """(m,) the command sent last."""
        return self._sent[-1]

    def begin(self, command: np.ndarray) -> None:
        """A command (m,) that was active for long."""
        self._sent = [command] * len(self._ramp)
        self._held = [command] * self._kept

    def remember(self, command: np.ndarray) -> None:
        """The command (m,) of one more tick."""
        self._sent = [*self._sent[1:], command]
        self._held = [*self._held[1:], self._ramp @ self._sent]

    def missed(self, ticks: int) -> None:
        """Ticks without an answer: what was sent last stays active."""
        for _ in range(min(ticks, self._kept)):
            self.remember(self.last)

    def pending(self, delay: int) -> np.ndarray:
        """(delay, m) held in the ticks until the next answer acts."""
        return np.array(self._held[-delay:])

    def before(self, delay: int) -> np.ndarray:
        """(m,) held in the tick that has just ended, where the next answer acts after `delay`."""
        return self._held[-1 - delay]
