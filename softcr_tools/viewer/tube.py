"""The rod as a surface: a tube around a smooth line through its nodes."""

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.spatial.transform import Rotation, Slerp

ALONG = 24
"""Rings of a tube."""

AROUND = 24
"""Corners of a ring."""


def tube(
    positions: np.ndarray, quaternions: np.ndarray, radius: float
) -> tuple[np.ndarray, np.ndarray]:
    """Surface of a rod from the poses along it.

    Between two poses the centre line is the cubic that has the directions of their z axes, as long
    as the points are apart; the cross-sections turn evenly. A pose at the same place as the one
    before (both sides of the base) is left out.

    Args:
        positions: (k, 3) points along the centre line, k >= 2 of them different [m].
        quaternions: (k, 4) orientations x y z w; z along the rod.
        radius: of the tube [m].

    Returns:
        (ALONG * AROUND + 2, 3) vertices [m], the last two the middles of both ends, and
        (2 * AROUND * ALONG, 3) corners of triangles, seen from outside in positive sense.
    """
    apart = np.linalg.norm(np.diff(positions, axis=0), axis=1)
    kept = np.concatenate([[True], apart > 1e-9])
    arc = np.concatenate([[0.0], np.cumsum(apart[apart > 1e-9])])
    poses = Rotation.from_quat(quaternions[kept])
    line = CubicHermiteSpline(arc, positions[kept], poses.apply([0.0, 0.0, 1.0]))
    at = np.linspace(0.0, arc[-1], ALONG)
    angles = np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)
    ring = radius * np.stack([np.cos(angles), np.sin(angles), np.zeros(AROUND)], axis=1)
    turned = np.einsum("aij,rj->ari", Slerp(arc, poses)(at).as_matrix(), ring)
    skin = (line(at)[:, np.newaxis] + turned).reshape(-1, 3)
    return np.concatenate([skin, line(at[[0, -1]])]), _FACES


def _faces() -> np.ndarray:
    here = np.arange(AROUND)
    there = np.roll(here, -1)
    base, tip = ALONG * AROUND, ALONG * AROUND + 1
    top = AROUND * (ALONG - 1)
    walls = [
        np.stack(corners, axis=1) + AROUND * ring
        for ring in range(ALONG - 1)
        for corners in ((here, there, there + AROUND), (here, there + AROUND, here + AROUND))
    ]
    ends = [
        np.stack([there, here, np.full(AROUND, base)], axis=1),
        np.stack([here + top, there + top, np.full(AROUND, tip)], axis=1),
    ]
    return np.concatenate(walls + ends)


_FACES = _faces()
