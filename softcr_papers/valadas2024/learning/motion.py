"""A recorded motion of a planar robot's shape, and the torques that moved it."""

from dataclasses import dataclass, replace

import numpy as np

from softcr_models.errors import UserError

FEWEST_FRAMES = 30
"""Of a trajectory: shorter ones hold no window of the regression."""


@dataclass(frozen=True, eq=False)
class ShapeMotion:
    """R trajectories of T frames each, at one rate.

    Attributes:
        poses: (R, T, N, 3) x, y, theta of N cross-sections in the frame of the base [m, m, rad],
            theta continuous along the backbone; the first cross-section is the base itself.
        places: (N,) of the unloaded backbone [m], from 0 to the robot's length. Markers may come in
            any order; they are sorted by it.
        torques: (R, T, n) generalised forces on bending [N m], shear and axial strain [N] of each
            segment; row k acts from frame k to frame k + 1.
        period: between frames [s].
    """

    poses: np.ndarray
    places: np.ndarray
    torques: np.ndarray
    period: float

    def __post_init__(self) -> None:
        """Raises UserError with what to record instead."""
        for name in ("poses", "places", "torques"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), float))
        poses, places, torques = self.poses, self.places, self.torques
        if poses.ndim != 4 or poses.shape[2:] != (len(places), 3) or len(places) < 3:
            raise UserError(
                f"poses of shape {poses.shape}: must be (trajectories, frames, {len(places)}, 3), "
                "with 3 markers or more"
            )
        if poses.shape[1] < FEWEST_FRAMES:
            raise UserError(
                f"motion of {poses.shape[1]} frames: must have {FEWEST_FRAMES} or more; record "
                "longer"
            )
        if torques.ndim != 3 or torques.shape[:2] != poses.shape[:2]:
            raise UserError(
                f"torques of shape {torques.shape}: must have a row for each of "
                f"{poses.shape[0]} x {poses.shape[1]} frames; resample them to the frames' times"
            )
        if not torques.shape[2] or torques.shape[2] % 3:
            raise UserError(
                f"torques of shape {torques.shape}: must have three columns for each segment, "
                "bending, shear and axial"
            )
        if not np.isfinite(torques).all():
            raise UserError("torques: must be finite")
        order = np.argsort(places)
        if abs(places[order[0]]) > 1e-12 or not (np.diff(places[order]) > 0.0).all():
            raise UserError(
                f"places {places.tolist()} m: must be of different markers, the base's at 0"
            )
        object.__setattr__(self, "places", places[order])
        object.__setattr__(self, "poses", poses[:, :, order])
        if not 0.0 < self.period < np.inf:
            raise UserError(f"period {self.period} s: must be finite and above 0")
        self._check_markers()

    @classmethod
    def of_times(
        cls, times: np.ndarray, poses: np.ndarray, places: np.ndarray, torques: np.ndarray
    ) -> "ShapeMotion":
        """One trajectory with a time (T,) [s] for each frame.

        Raises:
            UserError: frames are out of order or not evenly spaced, or as the class says.
        """
        times = np.asarray(times, float)
        if len(times) != len(poses):
            raise UserError(f"{len(times)} times for {len(poses)} frames: must be as many")
        gaps = np.diff(times)
        if len(gaps) and not (gaps > 0.0).all():
            first = int(np.argmax(~(gaps > 0.0)))
            raise UserError(
                f"frames out of order: frame {first + 1} has the time {times[first + 1]:g} s, "
                f"after {times[first]:g} s; sort them by the time of the camera"
            )
        period = float(np.median(gaps)) if len(gaps) else 0.0
        if len(gaps) and np.abs(gaps - period).max() > 0.05 * period:
            worst = int(np.argmax(np.abs(gaps - period)))
            raise UserError(
                f"frames are not evenly spaced: {gaps[worst]:g} s after frame {worst}, {period:g} "
                "s elsewhere; record without dropped frames, or resample"
            )
        return cls(np.asarray(poses)[None], places, np.asarray(torques)[None], period)

    @property
    def length(self) -> float:
        """Of the unloaded robot [m]."""
        return float(self.places[-1])

    @property
    def frames(self) -> np.ndarray:
        """(R T, N, 3) all poses, one trajectory after the other."""
        return self.poses.reshape(-1, *self.poses.shape[2:])

    def chosen(self, frames: np.ndarray) -> "ShapeMotion":
        """Frames (F,) of `frames` as one trajectory: fit for shapes, not for dynamics."""
        torques = self.torques.reshape(-1, self.torques.shape[-1])
        return replace(self, poses=self.frames[None, frames], torques=torques[None, frames])

    def with_noise(
        self, position: float, angle: float, random: np.random.Generator
    ) -> "ShapeMotion":
        """The motion with noise on every pose but the base's, whose place is known.

        Args:
            position, angle: standard deviations [m], [rad].
            random: where it comes from.
        """
        noise = random.normal(size=self.poses.shape) * [position, position, angle]
        noise[:, :, 0] = 0.0
        return replace(self, poses=self.poses + noise)

    def _check_markers(self) -> None:
        missing = ~np.isfinite(self.poses).all(axis=-1)
        if missing.any():
            where = np.argwhere(missing)[0].tolist()
            raise UserError(
                "trajectory {}, frame {}: marker {} is missing; leave the frame out or record "
                "again".format(*where)
            )
        jump = np.abs(np.diff(self.poses[..., 2], axis=-1)) > np.pi
        if jump.any():
            where = np.argwhere(jump)[0].tolist()
            raise UserError(
                "trajectory {}, frame {}: the angle jumps by more than half a turn after marker "
                "{}; angles must be continuous along the backbone".format(*where)
            )
