"""Which tip pose belongs to which pressures where both sensors keep their own time: the bench."""

from collections.abc import Callable

import numpy as np
import pinocchio as pin

from softcr_estimation.sample_pairing import POSES, PRESSURES, AnySample, SamplePairing
from softcr_runtime.tick_grid import Resampler, TickGrid, between


class SampleResampling(SamplePairing[AnySample]):
    """Pairs what both sensors read at the ticks of a grid (`softcr_runtime.tick_grid`).

    A tick comes with the first pressures at or after it. Its pose is complete with the first pose
    at or after it: a camera's latency and up to one of its periods later. A pose that is not there
    `patience` after the pressures is overdue, and the tick is predicted only. That is counted from
    the arrival of the pressures, so ticks that wait for a blind camera wait side by side and
    none is late for the one before.
    """

    def __init__(
        self,
        get: Callable[[float | None], AnySample | None],
        now: Callable[[], float],
        reject: Callable[[str, str], None],
        period: float,
    ) -> None:
        """As `SamplePairing`, with the period of the ticks [s]."""
        super().__init__(get, now, reject, POSES)
        self._grid = TickGrid(period)
        self._pressures: Resampler[AnySample] = Resampler(period)
        self._ticks: list[AnySample] = []
        self._received = 0.0  # when the pressures of the last tick came [s]
        self._older: AnySample | None = None  # the last pose at or before the last tick

    def next_pressures(self) -> AnySample | None:
        """The pressures of the next tick; None when the inbox has no more."""
        while not self._ticks:
            letter = self._next(PRESSURES, None)
            if letter is None:
                return None
            self._ticks = list(self._pressures.add(letter))
        tick = self._ticks.pop(0)
        self._received = tick.received
        return tick

    def partner_of(self, stamp: int, patience: float) -> AnySample | None:
        """The tip's pose at the tick `stamp` [ns]; None if it is overdue or a hole is too long."""
        deadline = self._received + patience
        while (letter := self._next_pose(deadline)) is not None and letter.stamp < stamp:
            self._older = letter
        if letter is None:
            return None
        self._waiting[POSES].insert(0, letter)  # the next tick may lie before it, too
        if letter.stamp == stamp:
            return letter
        if self._older is None or not self._grid.bridges(self._older.stamp, letter.stamp):
            return None
        return between(self._older, letter, stamp, blended_poses)

    def _next_pose(self, deadline: float) -> AnySample | None:
        """The next pose; what has come by now is looked at even where no time is left to wait."""
        while not self._waiting[POSES]:
            letter = self._get(max(deadline - self._now(), 0.0))
            if letter is None:
                return None
            self._waiting[letter.topic].append(letter)
        return self._waiting[POSES].pop(0)


def blended_poses(older: np.ndarray, newer: np.ndarray, part: float) -> np.ndarray:
    """The pose (4, 4) at a part of the way: straight on, turning about one axis."""
    pose = np.eye(4)
    pose[:3, 3] = older[:3, 3] + part * (newer[:3, 3] - older[:3, 3])
    turn = pin.log3(older[:3, :3].T @ newer[:3, :3])
    pose[:3, :3] = older[:3, :3] @ pin.exp3(part * turn)
    return pose
