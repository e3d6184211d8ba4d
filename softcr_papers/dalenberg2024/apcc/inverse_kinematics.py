"""Rates that move the tip as wanted and otherwise shorten elongations: Dalenberg, (14), (16).

    q' = J^+ (x_d' + K e) + (1 - J^+ J) grad        Psi = |dL|, (50)

J is the estimated position Jacobian (3, 3 n), of full row rank by assumption. Psi itself has no
gradient at rest; the default descends Psi^2 / 2, whose gradient is dL. The thesis states no gain.
"""

from typing import Literal

import numpy as np

_SMALL = 1e-6  # elongation below which the norm's gradient fades [m]


def task_rate(jacobian: np.ndarray, tip_velocity: np.ndarray, secondary: np.ndarray) -> np.ndarray:
    """(3 n,) rates q' [m/s] of (16).

    Args:
        jacobian: (3, 3 n) of the tip's position [-].
        tip_velocity: (3,) wanted, x_d' + K e [m/s].
        secondary: (3 n,) rates wanted as far as they do not move the tip [m/s].
    """
    inverse = np.linalg.pinv(jacobian)
    rate: np.ndarray = secondary + inverse @ (tip_velocity - jacobian @ secondary)
    return rate


def elongation_cost(q: np.ndarray) -> float:
    """Psi [m] of (50), the norm of the sections' elongations."""
    return float(np.linalg.norm(np.asarray(q)[..., 2::3]))


def elongation_descent(
    q: np.ndarray, gain: float, objective: Literal["squared", "norm"]
) -> np.ndarray:
    """(3 n,) the negative gradient of Psi^2 / 2 or of Psi at q (3 n,), times the gain.

    Args:
        q: coordinates [m].
        gain: k_N, [1/s] for the square, [m/s] for the norm.
        objective: which.
    """
    descent = np.zeros_like(q)
    elongations = q[2::3]
    scale = 1.0 if objective == "squared" else max(float(np.linalg.norm(elongations)), _SMALL)
    descent[2::3] = -gain * elongations / scale
    return descent


def limited(change: np.ndarray, largest: float) -> np.ndarray:
    """Rates or steps (3 n,) scaled down so that none exceeds `largest`; the direction stays."""
    found = np.abs(change).max()
    return change * (largest / found) if found > largest else change
