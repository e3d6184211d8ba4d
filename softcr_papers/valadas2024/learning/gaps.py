"""Frames in which marks were hidden: left out, or filled where the gap is short."""

import numpy as np
from scipy.interpolate import PchipInterpolator

from softcr_models.errors import UserError


def fill_gaps(poses: np.ndarray, longest: int = 5) -> np.ndarray:
    """(R, T, N, 3) poses with frames that are NaN filled from those around them.

    Args:
        poses: (R, T, N, 3); a frame that was lost is NaN throughout.
        longest: number of frames in a row that may be lost.

    Raises:
        UserError: more frames in a row are lost, or the first or last frame of a trajectory.
    """
    filled = np.array(poses, float)
    for number, trajectory in enumerate(filled):
        lost = ~np.isfinite(trajectory).all(axis=(1, 2))
        if not lost.any():
            continue
        if lost[0] or lost[-1]:
            raise UserError(f"trajectory {number}: its first or last frame is lost; leave it out")
        run = 0
        for frame, gone in enumerate(lost):
            run = run + 1 if gone else 0
            if run > longest:
                raise UserError(
                    f"trajectory {number}: more than {longest} frames in a row are lost before "
                    f"frame {frame}; record again, with marks that stay visible"
                )
        t = np.arange(len(trajectory))
        trajectory[lost] = PchipInterpolator(t[~lost], trajectory[~lost])(t[lost])
    return filled
