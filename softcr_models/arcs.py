"""One arc of constant curvature, as a rod is seen by what estimates no more of it.

The coordinates are q = [Delta_x, Delta_y, dL] [m]: an arc of the length L = L_0 + dL that bends by
|Delta| / d towards (Delta_x, Delta_y), where d is a scaling radius; Mehl et al., eq. (1).
"""

import numpy as np
import pinocchio as pin


def coordinates_of_tip(
    position: np.ndarray, rest_length: np.ndarray | float, radius: float
) -> np.ndarray:
    """(..., 3) coordinates q [m] of the one arc from the origin, along z, to a tip (..., 3) [m].

    Mehl et al. invert (1) by Newton's method; here is the solution it converges to: the chord
    leans by theta / 2, and its length is L sin(theta / 2) / (theta / 2). Angles below pi; the tip
    must lie above the base, z > 0.
    """
    x, y, z = np.moveaxis(np.asarray(position, float), -1, 0)
    across = np.hypot(x, y)
    half = np.arctan2(across, z)
    # half / across, smooth through the straight pose
    ratio = np.where(across > 1e-9 * np.abs(z), half / np.where(across > 0.0, across, 1.0), 1.0 / z)
    length = np.sqrt(across**2 + z**2) / np.sinc(half / np.pi)
    delta = 2.0 * radius * ratio
    return np.stack([delta * x, delta * y, length - rest_length], axis=-1)


def arc_poses(q: np.ndarray, rest_length: float, radius: float, points: int) -> np.ndarray:
    """(points, 4, 4) poses at equal steps of an arc (3,) from the origin along z, to its tip."""
    twist = np.array([0.0, 0.0, rest_length + q[2], -q[1] / radius, q[0] / radius, 0.0])
    return np.array([pin.exp6(part * twist).homogeneous for part in np.linspace(0.0, 1.0, points)])
