"""Checks of the tip's poses: which of the cameras' frames are accepted.

A pose is believed when the server vouches for it, it is a pose, newer than the last, young enough,
inside the workspace, not the very same for too long, and within reach.

The tip can be reached from the last believed pose, or from where the motion of that pose led, and
both regions grow with the time that has passed. A body that appears out of reach in the frame after
the tip was seen is a different body, and it remains one for as long as it is seen without a gap.
After a gap nobody can tell, so a body is the tip again as soon as it is within reach.

At the beginning, and when nothing has been believed for `start_over`, the tip must be where the
model has a resting tip: safety has vented long before, so the tip rests, unless the body or the
calibration is wrong.
"""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from softcr_hardware.optitrack.calibration import MocapCalibration, pose_matrix
from softcr_hardware.optitrack.protocol import Body, is_finite

_NOISE = 0.005  # [m] a pose may lie beyond what the fastest motion can do
_TURN_NOISE = 0.2  # [rad] likewise
_GAP = 0.03  # [s] what is seen no later than this is one motion: 3 frames of 120 Hz, one of 40 Hz
_SHORTEST = 1e-3  # [s] poses closer to each other tell no motion
_LONGEST_LEAD = 0.1  # [s] a motion leads no further: a soft arm swings back
_LENGTH_TOLERANCE = 0.01  # of a quaternion
_EARLY = 0.01  # [s] a stamp may lie in the future by the error of the clocks

_METRE: JsonDict = {"unit": "m"}
_SECOND: JsonDict = {"unit": "s"}


class TrackingLimits(BaseModel):
    """What a believable tip does."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    fastest: float = Field(
        default=2.0,
        gt=0,
        le=100,
        description="fastest motion of the tip; beyond it is a jump",
        json_schema_extra={"unit": "m/s"},
    )
    fastest_turn: float = Field(
        default=30.0,
        gt=0,
        le=1000,
        description="fastest rotation of the tip; beyond it is a jump",
        json_schema_extra={"unit": "rad/s"},
    )
    workspace: float = Field(
        default=0.5,
        gt=0,
        le=100,
        description="radius of the workspace around the base",
        json_schema_extra=_METRE,
    )
    rest_tolerance: float = Field(
        default=0.03,
        ge=0,
        le=10,
        description="largest distance of the first pose from the model's resting tip; 0: any",
        json_schema_extra=_METRE,
    )
    oldest: float = Field(
        default=0.2,
        gt=0,
        le=10,
        description="largest age of an exposure on arrival",
        json_schema_extra=_SECOND,
    )
    frozen_after: float = Field(
        default=0.25,
        ge=0,
        le=10,
        description="time with identical numbers after which poses count as frozen; 0: never",
        json_schema_extra=_SECOND,
    )
    start_over: float = Field(
        default=1.5,
        gt=0,
        le=60,
        description="time without a believed pose after which the resting tip is expected again; "
        "longer than mocap_vent",
        json_schema_extra=_SECOND,
    )


@dataclass(frozen=True, eq=False)
class _Seen:
    time: float
    pose: np.ndarray


class BodyTracker:
    """Believes poses of one body.

    Attributes:
        refused: frames that were not believed, by reason.
        trouble: why the newest was not; empty if it was.
    """

    def __init__(self, limits: TrackingLimits, resting_tip: np.ndarray | None = None):
        """Nothing seen.

        Args:
            limits: numbers.
            resting_tip: (4, 4) where the model has the vented tip; None to begin anywhere.
        """
        self._limits = limits
        self._resting_tip = resting_tip if limits.rest_tolerance > 0.0 else None
        self.refused: Counter[str] = Counter()
        self.trouble = ""
        self._believed: _Seen | None = None
        self._motion = np.zeros(6)  # twist of the believed tip [m/s, rad/s], body frame
        self._other: _Seen | None = None  # newest pose of a body that is not the tip
        self._newest = -math.inf
        self._same: Body | None = None
        self._same_since = 0.0

    def see(
        self, time: float, age: float, body: Body | None, calibration: MocapCalibration
    ) -> np.ndarray | None:
        """A frame's body.

        Args:
            time: of the exposure, on our clock [s].
            age: of the exposure now [s].
            body: as it was sent; None if the frame has none.
            calibration: of cameras and body.

        Returns:
            (4, 4) tip in the base frame, or None when it is not believed: `trouble` says why.
        """
        pose, self.trouble = self._judged(time, age, body, calibration)
        if self.trouble:
            self.refused[self.trouble] += 1
            return None
        self._motion = _twist(self._believed, _Seen(time, pose))
        self._believed, self._other = _Seen(time, pose), None
        return pose

    def _judged(
        self, time: float, age: float, body: Body | None, calibration: MocapCalibration
    ) -> tuple[np.ndarray, str]:
        """The pose, and what is wrong with it."""
        nothing = np.eye(4)
        if body is None:
            return nothing, "body not in the frame"
        if not body.tracked:
            return nothing, "body not tracked"
        if not is_finite(body):
            return nothing, "not finite"
        length = math.sqrt(sum(value**2 for value in body.quaternion))
        if abs(length - 1.0) > _LENGTH_TOLERANCE:
            return nothing, "quaternion not of length 1"
        if not time > self._newest:
            return nothing, "stamp not newer"
        if not age <= self._limits.oldest:
            return nothing, "too old"
        if age < -_EARLY:
            return nothing, "stamp in the future"
        self._newest = time
        if self._frozen(time, body):
            return nothing, "frozen"
        pose = calibration.tip(pose_matrix(body.position, body.quaternion))
        if not np.linalg.norm(pose[:3, 3]) <= self._limits.workspace:
            return nothing, "outside the workspace"
        if self._believed is None or time - self._believed.time > self._limits.start_over:
            return pose, "" if self._rests(pose) else "not where a resting tip is"
        return pose, "jumped" if self._jumps(_Seen(time, pose), self._believed) else ""

    def _frozen(self, time: float, body: Body) -> bool:
        """Whether the numbers have been the very same for long: cameras are never that still."""
        if self._same is None or body != self._same:
            self._same, self._same_since = body, time
        return 0.0 < self._limits.frozen_after <= time - self._same_since

    def _rests(self, pose: np.ndarray) -> bool:
        if self._resting_tip is None:
            return True
        distance = np.linalg.norm(pose[:3, 3] - self._resting_tip[:3, 3])
        return bool(distance <= self._limits.rest_tolerance)

    def _jumps(self, seen: _Seen, believed: _Seen) -> bool:
        """Whether it is another body, or out of reach."""
        other = self._other
        if other is not None and seen.time - other.time <= _GAP and self._reaches(other, seen):
            self._other = seen
            return True
        self._other = None
        if self._reaches(believed, seen) or self._reaches(self._led(believed, seen.time), seen):
            return False
        if seen.time - believed.time <= _GAP:
            self._other = seen
        return True

    def _led(self, believed: _Seen, time: float) -> _Seen:
        """The pose to which the motion of the tip leads at a time [s]."""
        passed = min(time - believed.time, _LONGEST_LEAD)
        return _Seen(believed.time, believed.pose @ pin.exp6(passed * self._motion).homogeneous)

    def _reaches(self, before: _Seen, after: _Seen) -> bool:
        limits, time = self._limits, after.time - before.time
        distance = np.linalg.norm(after.pose[:3, 3] - before.pose[:3, 3])
        turn = np.linalg.norm(pin.log3(before.pose[:3, :3].T @ after.pose[:3, :3]))
        return bool(
            distance <= _NOISE + limits.fastest * time
            and turn <= _TURN_NOISE + limits.fastest_turn * time
        )


def _twist(before: _Seen | None, after: _Seen) -> np.ndarray:
    """(6,) of the motion between two poses [m/s, rad/s], body frame; zeros over a gap."""
    if before is None or not _SHORTEST <= after.time - before.time <= _GAP:
        return np.zeros(6)
    moved = pin.log6(np.linalg.inv(before.pose) @ after.pose).vector
    return np.asarray(moved / (after.time - before.time))
