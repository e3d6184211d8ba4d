"""From the box's readings to the wrench that is published: judged, biased, filtered if declared."""

import math
from collections import deque
from dataclasses import replace

import numpy as np

from softcr_hardware.clock import ServerClock
from softcr_hardware.force_torque.box import BoxSettings
from softcr_hardware.force_torque.client import NetFtClient
from softcr_hardware.force_torque.mounting import BiasTo, KeptBias, Mounting, kept_bias
from softcr_hardware.force_torque.readings import (
    SENSOR_RATE,
    Readings,
    WrenchJudge,
    WrenchLimits,
)
from softcr_models.errors import UserError

_LARGEST_DRIFT = 1e-2  # the stated rate of the sensor's count is nominal
_CLOCK_REMEMBERED = 300.0  # [s]
_REMEMBERED = 0.5  # [s] of readings for bias and check
_LONGEST_TAKING = 1.0  # [s]
_FEWEST = 20  # of them
_STEADY = np.repeat([0.5, 0.05], 3)  # [N], [N m] standard deviation of what rests


class ForceTorqueDriver:
    """What the sensor below the base reads.

    Attributes:
        client: of the box.
        judge: of its readings.
        mounting: of the sensor: its axes, its calibration, the bias it was kept with. The bias is
            not kept in the box, which forgets its own when it is switched off.
        bias: (6,) subtracted from every reading, in the sensor's axes [N, N m].
        bias_problem: why a bias was left out, in a line; empty where it holds.
        box_change: how the box's calibration changed meanwhile, in a line; empty if it did not.
        refusal: why no reading is used, whatever it says, in a line; empty where they are.
        rest_error: largest |force - that of the resting rod| of an axis at the last check [N]; NaN
            before the first.
        status: of the newest reading.
        clock: of the sensor, told by its count.
        late: how much later the newest reading came than the fastest of five minutes [s]; NaN
            while the count's run is not known.
    """

    def __init__(
        self,
        client: NetFtClient,
        limits: WrenchLimits,
        resting_wrench: np.ndarray,
        low_pass_hz: float = 0.0,
        sensor_rate: float = SENSOR_RATE,
        mounting: Mounting | None = None,
        bias_to: BiasTo = "rest",
        name: str = "the mounting",
    ):
        """Nothing read yet.

        Args:
            client: of the box; it must bring every reading when there is a filter.
            limits: of what is believed.
            resting_wrench: (6,) what the sensor should read of the vented rod, in the base frame
                [N, N m].
            low_pass_hz: corner of a filter of first order; 0 for none.
            sensor_rate: at which the sensor counts its own samples [Hz].
            mounting: of the sensor; None for its axes being the base's.
            bias_to: what `resting_wrench` is: the model's, or zero.
            name: of the mounting's file, for messages.
        """
        self.client, self.judge = client, WrenchJudge(limits)
        self.mounting = mounting or Mounting()
        kept = self.mounting.bias
        self.bias = np.zeros(6) if kept is None else np.array(kept.wrench)
        self.bias_problem = self.box_change = self.refusal = ""
        self._bias_to, self._name = bias_to, name
        self._box: BoxSettings | None = None
        self.rest_error = math.nan
        self.status = 0
        self.clock = ServerClock(_LARGEST_DRIFT, _CLOCK_REMEMBERED)
        self.late = math.nan
        self._resting = resting_wrench
        self._low_pass_hz, self._sensor_rate = low_pass_hz, sensor_rate
        self._filtered, self._filtered_time = np.zeros(6), -math.inf
        self._recent: deque[Readings] = deque()
        self._check_from = -math.inf
        self._checked = True

    @property
    def biased(self) -> bool:
        """Whether there is a bias."""
        return self.mounting.bias is not None

    def see_box(self, now: float, box: BoxSettings | None) -> None:
        """What the box tells of its settings, at `now` [s]; None while it tells nothing."""
        if box is None or box == self._box:
            return
        before = self._box.calibration_serial if self._box else box.calibration_serial
        if before != box.calibration_serial:
            said = f"{before or 'unknown'} to {box.calibration_serial or 'unknown'}"
            self.box_change = f"the box's calibration changed from {said}"
        self._box = box
        self.refusal = self.mounting.refusal(box, self._name)
        if self.mounting.bias is not None:
            self.bias_problem = self.mounting.bias.problem(box, self._bias_to)
            if self.bias_problem:
                self._use_bias(None)
        if not self._scaled_by(box):
            self.client.renew(now)

    def _scaled_by(self, box: BoxSettings) -> bool:
        """Whether the readings are scaled as the box says now."""
        self.client.look_at_calibration()
        scale = self.client.calibration
        told = (box.counts_per_force, box.counts_per_moment)
        if scale is None or None in told:
            return True
        return told == (scale.counts_per_force_unit, scale.counts_per_torque_unit)

    def _use_bias(self, bias: KeptBias | None) -> None:
        self.mounting = self.mounting.model_copy(update={"bias": bias})
        self.bias = np.zeros(6) if bias is None else np.array(bias.wrench)

    @property
    def delay(self) -> float:
        """By which the filter lags a slow change [s]."""
        return 1.0 / (2.0 * math.pi * self._low_pass_hz) if self._low_pass_hz else 0.0

    def newest(self, now: float) -> tuple[float, np.ndarray] | None:
        """The newest believed wrench since the last call.

        Returns:
            Time of it [s] and (6,) wrench [N, N m]; None when there is no new one.
        """
        seen = self.client.take(now)
        if not len(seen):
            return None
        # more came while they were taken
        now = max(now, min(float(seen.times[-1]), now + _LONGEST_TAKING))
        self.status = int(seen.statuses[-1])
        seen = self._timed(seen)
        believed = seen.where(self.judge.believes(now, seen))
        if not len(believed) or self.refusal:
            return None
        self._remember(believed)
        return float(believed.times[-1]), self._in_base(self._filter(believed) - self.bias)

    def _in_base(self, wrench: np.ndarray) -> np.ndarray:
        """(6,) a wrench in the sensor's axes, in those of the base."""
        rotated: np.ndarray = wrench.reshape(2, 3) @ self.mounting.rotation.T
        return rotated.ravel()

    def _in_sensor(self, wrench: np.ndarray) -> np.ndarray:
        """(6,) a wrench in the axes of the base, in those of the sensor."""
        rotated: np.ndarray = wrench.reshape(2, 3) @ self.mounting.rotation
        return rotated.ravel()

    def _timed(self, seen: Readings) -> Readings:
        """With times by the sensor's own count, once the run of that is known."""
        counted = seen.sequences / self._sensor_rate
        came = float(seen.times[-1])
        known = self.clock.see(float(counted[-1]), came) and self.clock.settled
        self.late = came - self.clock.local(float(counted[-1])) if known else math.nan
        return replace(seen, times=self.clock.local(counted)) if known else seen

    def _remember(self, believed: Readings) -> None:
        self._recent.append(believed)
        newest = float(believed.times[-1])
        while self._recent[0].times[-1] < newest - _REMEMBERED:
            self._recent.popleft()
        if not self._checked and newest - self._check_from > _REMEMBERED:
            self._checked = True
            rest = self._wrenches_since(newest - _REMEMBERED).mean(axis=0)
            off = self._in_base(rest - self.bias) - self._resting
            self.rest_error = float(np.abs(off)[:3].max())

    def _wrenches_since(self, moment: float) -> np.ndarray:
        """(n, 6) believed ones not before a moment [s], in the sensor's axes."""
        chosen = [seen.wrenches[seen.times >= moment] for seen in list(self._recent)]
        return np.concatenate([np.empty((0, 6)), *chosen])

    def _filter(self, believed: Readings) -> np.ndarray:
        """(6,) the newest; first order, exact for inputs held between samples."""
        if not self._low_pass_hz:
            return believed.wrenches[-1]
        first, last = float(believed.times[0]), float(believed.times[-1])
        if not first - self._filtered_time < _REMEMBERED:  # begin anew
            self._filtered, self._filtered_time = believed.wrenches[0].copy(), first
        steps = np.diff(believed.times, prepend=self._filtered_time)
        filtered, self._filtered_time = self._filtered, last
        for gain, wrench in zip(-np.expm1(-steps / self.delay), believed.wrenches, strict=True):
            filtered += gain * (wrench - filtered)
        return filtered.copy()

    def check_rest(self, now: float) -> None:
        """Compare the next half second with the resting rod: chambers must be vented."""
        self._check_from, self._checked = now, False

    def take_bias(self, now: float) -> np.ndarray:
        """From now on the vented rod of the last half second reads as the model's does; `mounting`
        has the bias.

        Returns:
            (6,) the bias, in the sensor's axes [N, N m].

        Raises:
            UserError: too few readings, or they are not steady.
        """
        recent = self._wrenches_since(now - _REMEMBERED)
        if len(recent) < _FEWEST:
            problem = self.trouble(now) or "wait half a second"
            raise UserError(f"bias: {len(recent)} readings, must be {_FEWEST}: {problem}")
        spread = np.std(recent, axis=0)
        if (spread > _STEADY).any():
            raise UserError(
                f"bias: readings vary by {spread[:3].max():.2f} N and {spread[3:].max():.3f} N m, "
                f"must rest within {_STEADY[0]} N and {_STEADY[3]} N m: vent the valves and wait"
            )
        found = np.mean(recent, axis=0) - self._in_sensor(self._resting)
        self._use_bias(kept_bias(found, self._bias_to, self._box))
        self.rest_error, self.bias_problem = 0.0, ""
        return self.bias

    def trouble(self, now: float) -> str:
        """Why no wrench comes, in a line; empty if it does."""
        return self.refusal or self.client.trouble(now) or self.judge.trouble
