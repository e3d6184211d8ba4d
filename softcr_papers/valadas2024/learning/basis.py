"""Rows of the regression: what each unknown of Lagrange's equations contributes to the torques.

The basis is grouped by what is physical: of each segment mass, moment of inertia of the section and
weight per length, of each strain stiffness and damping. The equations are linear in all of them.

Two forms of the rows. `acceleration_rows` are the equations at each frame, Eq. (7) of Valadas et
al. (2024), and need q''. `weak_rows` are the equations times a smooth bump phi, integrated over it
by parts, so that derivatives lie on phi:

    int phi (d/dt dT/dq' - dT/dq + g + K q + D q') dt
        = int (-phi' M q' + phi (C q' - M' q') + phi g + phi K q - phi' D q) dt = int phi torque dt.

They need q' in M q' and C q' alone, and no q''.
"""

from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.valadas2024.strain.dynamics import quadrature
from softcr_papers.valadas2024.strain.kernel import kernels, rows
from softcr_papers.valadas2024.strain.numbers import strain_name


@dataclass(frozen=True, eq=False)
class Basis:
    """Which unknowns there are.

    Attributes:
        lengths: (S,) of the segments [m].
        down: (2,) unit vector along gravity.
        gravity: its size [m/s^2], where weight is mass times it; None: weight is an unknown.
        active: (m,) indices of the strains that are kept.
    """

    lengths: np.ndarray
    down: np.ndarray
    gravity: float | None
    active: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        """(P,) of the unknowns, in the order of the columns."""
        segments = range(1, len(self.lengths) + 1)
        kinds = ["mass", "inertia"] + (["weight"] if self.gravity is None else [])
        strains = [strain_name(index) for index in self.active]
        return (
            *(f"{kind}_{i}" for kind in kinds for i in segments),
            *(f"stiffness_{name}" for name in strains),
            *(f"damping_{name}" for name in strains),
        )

    @property
    def units(self) -> tuple[str, ...]:
        """(P,) SI."""
        kinds = ["kg/m", "kg m"] + (["N/m"] if self.gravity is None else [])
        springs = ["N m^2" if index % 3 == 0 else "N" for index in self.active]
        return (
            *(unit for unit in kinds for _ in self.lengths),
            *springs,
            *(f"{unit} s" for unit in springs),
        )


@dataclass(frozen=True, eq=False)
class Rows:
    """Equations, linear in the unknowns.

    Attributes:
        columns: (R, W, m, P) of each trajectory, frame or window, and kept strain.
        torques: (R, W, m).
        overlap: how many neighbouring windows share frames.
    """

    columns: np.ndarray
    torques: np.ndarray
    overlap: int


def acceleration_rows(
    basis: Basis,
    strains: np.ndarray,
    rates: np.ndarray,
    accelerations: np.ndarray,
    torques: np.ndarray,
) -> Rows:
    """The equations at each frame.

    Args:
        basis: the unknowns.
        strains, rates, accelerations: (R, T, 3 S).
        torques: (R, T, 3 S) at the frames.
    """
    forces, _, _, weights = _features(basis, strains, rates, accelerations)
    springs = _diagonal(strains[..., basis.active])
    dampers = _diagonal(rates[..., basis.active])
    columns = np.concatenate([_tied(basis, forces, weights), springs, dampers], axis=-1)
    return Rows(columns, torques[..., basis.active], 1)


def weak_rows(
    basis: Basis,
    strains: np.ndarray,
    rates: np.ndarray,
    torques: np.ndarray,
    period: float,
    half_width: int = 20,
    stride: int = 4,
) -> Rows:
    """The equations over windows of 2 half_width + 1 frames.

    Args:
        basis: the unknowns.
        strains, rates: (R, T, 3 S).
        torques: (R, T, 3 S), each held from its frame to the next one.
        period: between frames [s].
        half_width: of a window [frames].
        stride: from window to window [frames].

    Raises:
        UserError: the motion is shorter than a window.
    """
    frames = strains.shape[1]
    if frames < 2 * half_width + 1:
        raise UserError(
            f"motion of {frames} frames: the regression needs {2 * half_width + 1} or more; record "
            "longer trajectories or choose a smaller half_width"
        )
    _, momenta, changes, weights = _features(basis, strains, rates, np.zeros_like(rates))
    x = np.arange(-half_width, half_width + 1) / half_width
    bump = (1.0 - x * x) ** 3 * period
    slope = -6.0 * x * (1.0 - x * x) ** 2 / half_width  # of the bump, times the period
    # a torque changes at a frame: half of the bump's weight there has the one before
    before = np.concatenate([torques[:, :1], torques[:, :-1]], axis=1)
    q, acting = strains[..., basis.active], 0.5 * (torques + before)[..., basis.active]

    def windows(values: np.ndarray, shape: np.ndarray) -> np.ndarray:
        view = np.lib.stride_tricks.sliding_window_view(values, len(shape), axis=1)
        found: np.ndarray = view[:, ::stride] @ shape
        return found

    inertial = windows(changes, bump) - windows(momenta, slope)
    springs, dampers = _diagonal(windows(q, bump)), _diagonal(-windows(q, slope))
    masses = _tied(basis, inertial, windows(weights, bump))
    columns = np.concatenate([masses, springs, dampers], axis=-1)
    return Rows(columns, windows(acting, bump), -(-2 * half_width // stride))


def _features(
    basis: Basis, strains: np.ndarray, rates: np.ndarray, accelerations: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Forces, momenta, changes (R, T, 2 S, m) and weights (R, T, S, m) of kept strains."""
    lead, n, segments = strains.shape[:2], strains.shape[-1], len(basis.lengths)
    count = int(np.prod(lead))
    found = [np.empty((count, segments, 2, n)) for _ in range(3)]
    weights = np.empty((count, segments, n))
    kernels().features(
        rows(strains), rows(rates), rows(accelerations), np.array(basis.lengths, float),
        np.array(basis.down, float), *quadrature(), *found, weights,
    )  # fmt: skip
    # masses of all segments, then moments of inertia
    parts = [
        np.swapaxes(each, 1, 2).reshape(*lead, 2 * segments, n)[..., basis.active] for each in found
    ]
    return (*parts, weights.reshape(*lead, segments, n)[..., basis.active])


def _tied(basis: Basis, inertial: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(R, W, m, P') columns of masses, inertias and, unless gravity is known, weights."""
    inertial, weights = np.swapaxes(inertial, -1, -2), np.swapaxes(weights, -1, -2)
    if basis.gravity is None:
        return np.concatenate([inertial, weights], axis=-1)
    tied = inertial.copy()
    tied[..., : len(basis.lengths)] += basis.gravity * weights
    return tied


def _diagonal(values: np.ndarray) -> np.ndarray:
    """(..., m, m) a column for each strain."""
    return values[..., None] * np.eye(values.shape[-1])
