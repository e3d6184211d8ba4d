"""The rod as a surface: a tube around a smooth line through its nodes."""

import numpy as np
from scipy.interpolate import CubicHermiteSpline
from scipy.spatial.transform import Rotation, Slerp

ALONG = 24  # rings of a tube
AROUND = 24  # corners of a ring


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
    corners = np.arange(ALONG * AROUND).reshape(ALONG, AROUND)
    here, there = corners, np.roll(corners, -1, axis=1)
    base, tip = np.full(AROUND, ALONG * AROUND), np.full(AROUND, ALONG * AROUND + 1)
    triangles = (
        (here[:-1], there[:-1], there[1:]),
        (here[:-1], there[1:], here[1:]),
        (there[0], here[0], base),
        (here[-1], there[-1], tip),
    )
    return np.concatenate([np.stack(each, axis=-1).reshape(-1, 3) for each in triangles])


_FACES = _faces()
