"""How long a tick may still compute, for blocks that can answer with less.

The work of a tick is counted as it is done, and the count is recorded: a replay does exactly as
much, whatever the speed of its machine.
"""

import math
import time
from collections.abc import Callable


class Budget:
    """Allows everything: in lock-step, and on virtual time, where a tick takes as long as it is
    told to, whatever the speed of the processor.

    A block first says with `begin` what it computes in any case, then asks with `allows` before
    each further piece. It chooses the unit of work, in which the pieces of one tick are counted.

    Attributes:
        limited: whether a piece may be refused.
        effort: NaN where nothing could be refused, infinity where nothing was; otherwise the work
            that was done before the first refusal.
    """

    limited: bool = False

    @property
    def effort(self) -> float:
        """See the class."""
        return math.nan

    def begin(self, work: int) -> None:
        """Tell of work that is done in any case."""

    def allows(self, work: int) -> bool:
        """Whether so much more may be done; after one refusal everything is refused."""
        return True


class _Limited(Budget):
    """Counts work and remembers a refusal."""

    limited = True

    def __init__(self) -> None:
        self._done, self._refused = 0, False

    @property
    def effort(self) -> float:
        return self._done if self._refused else math.inf

    def begin(self, work: int) -> None:
        self._done += work

    def allows(self, work: int) -> bool:
        self._refused = self._refused or not self._reaches(work)
        if not self._refused:
            self._done += work
        return not self._refused

    def _reaches(self, work: int) -> bool:
        raise NotImplementedError


class TimedBudget(_Limited):
    """Allows what is expected to be done in time, at the speed of the work that was done so far.

    Args:
        end: when the work must be done, on the clock [s].
        clock: of this machine [s].
    """

    def __init__(self, end: float, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._end, self._clock = end, clock
        self._begun = math.nan

    def begin(self, work: int) -> None:
        super().begin(work)
        self._begun = self._clock()

    def _reaches(self, work: int) -> bool:
        now = self._clock()
        expected = work * (now - self._begun) / self._done if self._done else 0.0
        return now + expected <= self._end


class RecordedBudget(_Limited):
    """Allows as much as was done in a recorded tick.

    Args:
        effort: of that tick; not NaN.
    """

    def __init__(self, effort: float) -> None:
        super().__init__()
        self._recorded = effort

    def _reaches(self, work: int) -> bool:
        return self._done + work <= self._recorded


def recorded_budget(effort: float) -> Budget:
    """The budget of a recorded tick, from the `effort` of the budget that it had."""
    return Budget() if math.isnan(effort) else RecordedBudget(effort)
