"""When a controller's answers come: for which delay to plan, how many estimates to answer, and
whether they come too late, too rarely or after too many stops for any plan."""

import itertools
from collections import deque
from statistics import median

import numpy as np

from softcr_control.predictive.horizon import MAXIMUM_DELAY

_LATENCIES_KEPT = 70  # ticks, of whose answers the latest is planned for
_JUDGED = 3  # answers: where most of them come too late or too rarely for any plan, none is sent
_LATE = 3
"""Periods for which answers come too late before that counts: an estimator that stopped answers in
a moment all that it has missed."""
_AGAIN = 0.8  # of the largest age and time between answers, and answers are sent again
_CALM = 0.5  # that lasts so long before: until then the robot has come to rest [s]
_STOPPED = 0.25  # of a second without a planned command: more, and the robot is led to rest [s]
_PACED = 20  # gaps between answers, by which it is judged how many ticks an answer takes
_ALWAYS = 0.9  # share of them that is longer: estimates that were missed slow nobody down
_EVEN = 0.5
"""Of the deviation of gaps: less is that of the times between answers where a controller begins the
next one as soon as it can, so that estimates wait for it."""
_SOON = 0.8  # of fewer periods an answer takes, and fewer ticks are left out
_MOST_TICKS = 4  # from an answer to the next one


class AnswerTimes:
    """Hears of each estimate that is answered, of the packet that was sent, and when it was.

    Args:
        period: of a tick [s].
        least_delay: from an estimate until the first command of its answer is due [ticks].
        early: so long before that an answer must be there [ticks].
        rarest: from an answer to the next one, as a rule: the most that a loop of plans bears [s].

    Attributes:
        delay: from an estimate until the first command of its answer is due [ticks].
        every: so many estimates are one answer's.
        too_late: whether the robot is to be led to rest.
        last_age: of the newest answer, when it was sent [s].
    """

    def __init__(self, period: float, least_delay: int, early: float, rarest: float) -> None:
        self._seconds, self._period = period, round(1e9 * period)  # [ns]
        self._least, self._early, self._rarest = least_delay, early, rarest
        self._latest = (MAXIMUM_DELAY - early) * period  # age that can be planned for [s]
        self.reset()

    def reset(self) -> None:
        """Nothing was answered yet."""
        self._latencies: deque[float] = deque(maxlen=_LATENCIES_KEPT)  # [s]
        self._answered: deque[int] = deque(maxlen=_PACED + 1)  # stamps [ns]
        # the same of answers that are there, and when they were [ns], [s]
        self._done: deque[tuple[int, float]] = deque(maxlen=_PACED + 1)
        self._stops = deque[tuple[int, float]](maxlen=_PACED)  # when they ended [ns], how long [s]
        self._strained = 0  # stamp of the newest answer that was nearly too old [ns]
        self._late_since: int | None = None  # when the first of late answers came [ns]
        self._reach = 0.0  # from an estimate to where the packet that answers it ends [s]
        self.delay, self.every, self.too_late, self.last_age = self._least, 1, False, 0.0

    @property
    def begun(self) -> bool:
        """Whether an estimate was answered since the pace has changed."""
        return bool(self._answered)

    def leaves_out(self, stamp: int) -> bool:
        """Whether an estimate [ns] is not answered because answers take longer than a tick."""
        if self.every == 1 or not self._answered:
            return False
        return stamp - self._answered[-1] < (self.every - 0.5) * self._period

    def answered(self, stamp: int) -> None:
        """An estimate [ns] has its answer. How long there was no planned command before it counts
        as a stop, where that is more than answers are apart as a rule."""
        if self._answered:
            stopped = 1e-9 * (stamp - self._answered[-1]) - max(self._reach, self._rarest)
            if stopped > 0.0:
                self._stops.append((stamp, stopped))
        self._answered.append(stamp)

    def sent(self, stamp: int, end: int) -> None:
        """The packet that answers an estimate reaches to a time [ns]."""
        self._reach = 1e-9 * (end - stamp)

    def came(self, age: float) -> None:
        """The last answer was there so long after its estimate [s]; when the next ones are due
        follows from how late these were."""
        self._latencies.append(age)
        self.last_age = age
        # a stall is nothing that could be planned for
        usual = [age for age in self._latencies if age <= self._latest] or [self._latest]
        ticks = 1 + int(max(*usual, 0.0) / self._seconds + self._early)
        self.delay = min(max(ticks, self._least), MAXIMUM_DELAY)
        if not self._answered:
            return
        stamp = self._answered[-1]
        if not self._done or stamp > self._done[-1][0]:  # no tick that only held
            self._done.append((stamp, 1e-9 * stamp + age))
        if len(self._answered) > 1:
            self._judge()
            self._pace()

    def line(self, title: str) -> str:
        """Why the robot of a controller is led to rest."""
        usual = median(list(self._latencies)[-_JUDGED:])
        return (
            f"{title}.command: answers are {1e3 * usual:.0f} ms old and {1e3 * self._apart:.0f} ms "
            f"apart, must be at most {1e3 * self._latest:.0f} and {1e3 * self._rarest:.0f} ms, and "
            f"none was there for {1e3 * self._stopped:.0f} ms of a second, must be at most "
            f"{1e3 * _STOPPED:.0f} ms: the robot is led to rest"
        )

    def _judge(self) -> None:
        """Whether answers come too late, too rarely or after too many stops for any plan, until
        they are in time again."""
        last = list(self._latencies)[-_JUDGED:]
        late = sum(age > self._latest for age in last)
        came = self._answered[-1] + round(1e9 * last[-1])
        since = min(self._late_since or came, came)
        self._late_since = since if late else None
        if last[-1] > _AGAIN * self._latest:
            self._strained = self._answered[-1]
        calm = 1e-9 * (self._answered[-1] - self._strained) > _CALM
        if not self.too_late:
            lasts = late > len(last) // 2 and came - since > _LATE * self._period
            rare = len(self._answered) > _JUDGED and self._apart > self._rarest
            self.too_late = lasts or rare or self._stopped > _STOPPED
        elif calm and self._apart < _AGAIN * self._rarest and not self._stopped:
            self.too_late = False

    def _pace(self) -> None:
        """Answer every second, third, fourth estimate where answers take so long. A plan is then
        followed as far as it was meant to be, instead of as far as chance has it."""
        if len(self._done) <= _PACED or self.too_late:
            return
        stamps, done = zip(*self._done, strict=True)
        gaps = np.round(np.diff(stamps) / self._period).astype(int)
        apart = np.diff(done) / self._seconds
        no_stall = gaps <= _MOST_TICKS  # which could not be waited for
        gaps, apart = (gaps[no_stall], apart[no_stall]) if no_stall.any() else (gaps, apart)
        busy = bool(apart.std() < _EVEN * gaps.std())
        ticks = int(gaps.max() if busy else np.sort(gaps)[int((1.0 - _ALWAYS) * len(gaps))])
        known = list(self._latencies)
        if min(ticks, _MOST_TICKS) > self.every:
            # no estimate waits any more
            self.every, known = min(ticks, _MOST_TICKS), [min(known)] if busy else known
        elif self.every > 1 and max(self._latencies) < _SOON * (self.every - 1) * self._seconds:
            self.every -= 1
        else:
            return
        self._answered.clear()
        self._done.clear()
        self._latencies = deque(known, maxlen=_LATENCIES_KEPT // self.every)

    @property
    def _apart(self) -> float:
        """From an answer to the next one, as a rule: the median of the last ones [s]."""
        stamps = list(self._answered)[-_JUDGED - 1 :]
        return 1e-9 * median(later - stamp for stamp, later in itertools.pairwise(stamps))

    @property
    def _stopped(self) -> float:
        """How long there was no planned command, of the last second [s]."""
        now = self._answered[-1]
        return sum(stopped for stamp, stopped in self._stops if now - stamp < 1e9)
