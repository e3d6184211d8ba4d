"""From the box's readings to the wrench that is published: judged, biased, filtered if declared."""

import math
from collections import deque
from dataclasses import replace

import numpy as np

from softcr_hardware.force_torque.client import NetFtClient
from softcr_hardware.force_torque.readings import Reading, WrenchJudge, WrenchLimits
from softcr_models.errors import UserError

_REMEMBERED = 0.5  # [s] of readings for bias and check
_LONGEST_TAKING = 1.0  # [s]
_FEWEST = 20  # of them
_STEADY = np.repeat([0.5, 0.05], 3)  # [N], [N m] standard deviation of what rests


class ForceTorqueDriver:
    """What the sensor below the base reads.

    Attributes:
        client: of the box.
        judge: of its readings.
        bias: (6,) subtracted from every reading [N, N m]. It is kept here, not in the box, which
            forgets its own when it is switched off.
        biased: whether there was one.
        rest_error: largest |force - that of the resting rod| of an axis at the last check [N]; NaN
            before the first.
        status: of the newest reading.
    """

    def __init__(
        self,
        client: NetFtClient,
        limits: WrenchLimits,
        resting_wrench: np.ndarray,
        low_pass_hz: float = 0.0,
    ):
        """Nothing read yet.

        Args:
            client: of the box; it must bring every reading when there is a filter.
            limits: of what is believed.
            resting_wrench: (6,) what the sensor should read of the vented rod [N, N m].
            low_pass_hz: corner of a filter of first order; 0 for none.
        """
        self.client, self.judge = client, WrenchJudge(limits)
        self.bias, self.biased = np.zeros(6), False
        self.rest_error = math.nan
        self.status = 0
        self._resting = resting_wrench
        self._low_pass_hz = low_pass_hz
        self._filtered: Reading | None = None
        self._recent: deque[Reading] = deque()
        self._check_from = -math.inf
        self._checked = True

    @property
    def delay(self) -> float:
        """By which the filter lags a slow change [s]."""
        return 1.0 / (2.0 * math.pi * self._low_pass_hz) if self._low_pass_hz else 0.0

    def newest(self, now: float) -> tuple[float, np.ndarray] | None:
        """The newest believed wrench since the last call.

        Returns:
            Time it came [s] and (6,) wrench [N, N m]; None when there is no new one.
        """
        believed = None
        taken = self.client.take(now)
        if taken:  # more came while they were taken
            now = max(now, min(taken[-1].time, now + _LONGEST_TAKING))
        for seen in taken:
            self.status = seen.status
            if not self.judge.believes(now, seen):
                continue
            self._remember(seen)
            believed = self._filter(seen)
        return None if believed is None else (believed.time, np.array(believed.wrench) - self.bias)

    def _remember(self, seen: Reading) -> None:
        self._recent.append(seen)
        while self._recent[0].time < seen.time - _REMEMBERED:
            self._recent.popleft()
        if not self._checked and seen.time - self._check_from > _REMEMBERED:
            self._checked = True
            rest = np.mean([one.wrench for one in self._recent], axis=0)
            self.rest_error = float(np.abs(rest - self.bias - self._resting)[:3].max())

    def _filter(self, seen: Reading) -> Reading:
        """First order, exact for inputs held between samples."""
        if not self._low_pass_hz:
            return seen
        before, self._filtered = self._filtered, seen
        if before is not None and seen.time - before.time < _REMEMBERED:
            gain = -math.expm1(-(seen.time - before.time) / self.delay)
            pairs = zip(before.wrench, seen.wrench, strict=True)
            wrench = tuple(old + gain * (new - old) for old, new in pairs)
            self._filtered = replace(seen, wrench=wrench)
        return self._filtered

    def check_rest(self, now: float) -> None:
        """Compare the next half second with the resting rod: chambers must be vented."""
        self._check_from, self._checked = now, False

    def take_bias(self, now: float) -> np.ndarray:
        """From now on the vented rod of the last half second reads as the model's does.

        Returns:
            (6,) the bias [N, N m].

        Raises:
            UserError: too few readings, or they are not steady.
        """
        recent = [seen.wrench for seen in list(self._recent) if now - seen.time < _REMEMBERED]
        if len(recent) < _FEWEST:
            problem = self.client.trouble(now) or self.judge.trouble or "wait half a second"
            raise UserError(f"bias: {len(recent)} readings, must be {_FEWEST}: {problem}")
        spread = np.std(recent, axis=0)
        if (spread > _STEADY).any():
            raise UserError(
                f"bias: readings vary by {spread[:3].max():.2f} N and {spread[3:].max():.3f} N m, "
                f"must rest within {_STEADY[0]} N and {_STEADY[3]} N m: vent the valves and wait"
            )
        self.bias, self.biased = np.mean(recent, axis=0) - self._resting, True
        self.rest_error = 0.0
        return self.bias

    def trouble(self, now: float) -> str:
        """Why no wrench comes, in a line; empty if it does."""
        return self.client.trouble(now) or self.judge.trouble
