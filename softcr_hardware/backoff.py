"""Bounded attempts to bring something back, further and further apart. No clock inside."""


class Backoff:
    """Says when to try again.

    Attributes:
        attempts: since the loss.
    """

    def __init__(self, first_pause: float, longest_pause: float, most_attempts: int):
        """Nothing lost yet; pauses [s] double from the first to the longest."""
        self._first_pause, self._longest_pause = first_pause, longest_pause
        self._most_attempts = most_attempts
        self.lost(float("-inf"))

    def lost(self, time: float) -> None:
        """Lost at `time` [s]: attempts count from here."""
        self.attempts = 0
        self._pause = self._first_pause
        self._due = time + self._pause

    @property
    def given_up(self) -> bool:
        """Whether all attempts have been made."""
        return self.attempts >= self._most_attempts

    def due(self, time: float) -> bool:
        """Whether to try at `time` [s]; a True counts as the attempt."""
        if self.given_up or time < self._due:
            return False
        self.attempts += 1
        self._due = time + self._pause
        self._pause = min(2 * self._pause, self._longest_pause)
        return True
