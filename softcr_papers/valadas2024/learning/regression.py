"""Least squares of the unknowns: weights, bounds, standard errors.

Eq. (7) of Valadas et al. (2024) is plain least squares. Rows of bending [N m] and of linear strains
[N] differ by orders of magnitude, and so do their errors: rows are divided by the spread of their
torque, then, a few rounds, by that of their residuals.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.basis import Basis, Rows
from softcr_papers.valadas2024.strain.numbers import StrainNumbers

_FLOORS = {"mass": 1e-3, "inertia": 1e-9, "damping": 0.0}
"""Smallest values of what must not be negative [SI]: with less the motion is not one of masses."""

_UNEXCITED = 1e10


@dataclass(frozen=True)
class SolverSettings:
    """How the least squares are weighted.

    Attributes:
        reweightings: rounds in which each strain's rows are divided by their residual.
        scaled: whether rows are divided by the spread of their torque; without, and without
            reweightings, it is Eq. (7) as it is printed.
        bounded: whether masses, moments of inertia and damping are kept physical.
    """

    reweightings: int = 3
    scaled: bool = True
    bounded: bool = True


@dataclass(frozen=True, eq=False)
class Regression:
    """Unknowns found.

    Attributes:
        basis: which they are.
        values: (P,) SI.
        errors: (P,) standard errors, robust against windows that share frames; NaN of a value at
            its bound.
        residuals: (m,) root mean square of what is left of each strain's torque over the spread.
        condition: of the columns, each scaled to one.
    """

    basis: Basis
    values: np.ndarray
    errors: np.ndarray
    residuals: np.ndarray
    condition: float

    @property
    def names(self) -> tuple[str, ...]:
        """(P,) of the unknowns."""
        return self.basis.names

    def of(self, kind: str) -> np.ndarray:
        """The values of a kind: mass, inertia, weight, stiffness, damping."""
        return self.values[self.places(kind)]

    def places(self, kind: str) -> list[int]:
        """Indices of a kind's values."""
        return [k for k, name in enumerate(self.names) if name.startswith(f"{kind}_")]

    @property
    def numbers(self) -> StrainNumbers:
        """The equations of motion."""
        basis = self.basis
        tied = None if basis.gravity is None else basis.gravity * self.of("mass")
        return StrainNumbers(
            basis.lengths, self.of("mass"), self.of("inertia"),
            self.of("weight") if tied is None else tied, basis.down,
            self.of("stiffness"), self.of("damping"), basis.active,
        )  # fmt: skip


def regress(basis: Basis, rows: Rows, settings: SolverSettings | None = None) -> Regression:
    """Least squares of the unknowns.

    Raises:
        UserError: the motion says nothing about an unknown.
    """
    found = solve_rows(basis.names, rows, settings)
    return Regression(basis, found.values, found.errors, found.residuals, found.condition)


@dataclass(frozen=True, eq=False)
class Solution:
    """Least squares of any unknowns; see `Regression` for the attributes."""

    values: np.ndarray
    errors: np.ndarray
    residuals: np.ndarray
    condition: float


def solve_rows(
    names: Sequence[str], rows: Rows, settings: SolverSettings | None = None
) -> Solution:
    """Least squares of unknowns.

    Args:
        names: (P,) of the columns; what they begin with, such as `mass`, has its bound.
        rows: the equations.
        settings: how they are weighted.

    Raises:
        UserError: the motion says nothing about an unknown.
    """
    own = settings or SolverSettings()
    columns, torques = rows.columns, rows.torques
    spread = np.sqrt((torques**2).mean(axis=(0, 1)))
    spread = np.where(spread > 0.0, spread, max(float(spread.max()), 1e-300))
    weights = 1.0 / spread if own.scaled else np.ones(len(spread))
    _check(names, columns / spread[:, None])
    lows = np.array([_FLOORS.get(name.partition("_")[0], -np.inf) for name in names])
    for round_ in range(own.reweightings + 1):
        values, free, condition = _solved(columns, torques, weights, lows, own.bounded)
        left = torques - columns @ values
        size = np.sqrt((left**2).mean(axis=(0, 1)))
        if round_ < own.reweightings:
            weights = 1.0 / np.maximum(size, 1e-12 * spread)
    errors = _standard_errors(columns * weights[:, None], left * weights, rows.overlap, free)
    return Solution(values, errors, size / spread, condition)


def _check(unknowns: Sequence[str], columns: np.ndarray) -> None:
    """Refuses a motion in which an unknown does nothing, or nothing of its own."""
    flat = columns.reshape(-1, columns.shape[-1])
    sizes = np.linalg.norm(flat, axis=0)
    for name, size in zip(unknowns, sizes, strict=True):
        if not size > 0.0:
            raise UserError(
                f"regression: the motion says nothing about {name}; drive that strain, too, and "
                "record again"
            )
    _, singular, turned = np.linalg.svd(_triangle(flat / sizes), full_matrices=False)
    if not singular[0] < _UNEXCITED * singular[-1]:
        mixed = np.argsort(-np.abs(turned[-1]))[:2]
        names = " and ".join(unknowns[k] for k in mixed)
        raise UserError(
            f"regression: the motion does not tell {names} apart; drive all strains with more "
            "different torques and record again"
        )


def _triangle(flat: np.ndarray) -> np.ndarray:
    """(P, P) with the same singular values."""
    return np.asarray(np.linalg.qr(flat, mode="r"))


def _solved(
    columns: np.ndarray, torques: np.ndarray, weights: np.ndarray, lows: np.ndarray, bounded: bool
) -> tuple[np.ndarray, np.ndarray, float]:
    """Values (P,), which of them are not at a bound (P,), condition."""
    flat = (columns * weights[:, None]).reshape(-1, columns.shape[-1])
    right = (torques * weights).ravel()
    sizes = np.linalg.norm(flat, axis=0)
    values, _, _, singular = np.linalg.lstsq(flat / sizes, right, rcond=None)
    free = np.ones(len(sizes), bool)
    if bounded and (values < lows * sizes).any():
        # Q^T of the rows leaves the same problem with P rows
        q, r = np.linalg.qr(flat / sizes)
        found = lsq_linear(r, q.T @ right, (lows * sizes, np.inf), method="bvls", tol=1e-12)
        values, free = found.x, found.active_mask == 0
    return values / sizes, free, float(singular[0] / singular[-1])


def _standard_errors(
    columns: np.ndarray, left: np.ndarray, overlap: int, free: np.ndarray
) -> np.ndarray:
    """(P,) after Newey and West: residuals of windows that share frames are alike."""
    used = columns[..., free]
    flat = used.reshape(-1, used.shape[-1])
    sizes = np.linalg.norm(flat, axis=0)
    scores = np.einsum("rwmp,rwm->rwp", used / sizes, left)
    spread = np.einsum("rwp,rwq->pq", scores, scores)
    for lag in range(1, min(overlap, scores.shape[1])):
        cross = np.einsum("rwp,rwq->pq", scores[:, lag:], scores[:, :-lag])
        spread += (1.0 - lag / overlap) * (cross + cross.T)
    inverse = np.linalg.pinv(flat.T @ flat / np.outer(sizes, sizes))
    variance = np.diag(inverse @ spread @ inverse)
    errors = np.full(len(free), np.nan)
    errors[free] = np.sqrt(np.maximum(variance, 0.0)) / sizes
    return errors
