"""Lagrange's equations of a planar robot of constant-strain segments.

With positions p(s) and turns theta(s) of the cross-sections, T = 1/2 int (rho A |p'|^2 +
rho I theta'^2) ds gives M and C; weight and linear springs and dampers of the strains are beside it
(Valadas et al. 2024, (1) and (2); Eq. (2) without K and D in M and C). The integrals are Gauss's
quadrature of each segment: ten points are exact to 1e-12 up to a full turn of a segment.
"""

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.valadas2024.strain.kernel import kernels, rows
from softcr_papers.valadas2024.strain.kinematics import StrainKinematics
from softcr_papers.valadas2024.strain.numbers import StrainNumbers

QUADRATURE = 10


@cache
def quadrature(points: int = QUADRATURE) -> tuple[np.ndarray, np.ndarray]:
    """Places on (0, 1) and weights of Gauss's rule, (points,) each; weights add up to 1. Nobody may
    change them: every model has the same."""
    nodes, shares = np.polynomial.legendre.leggauss(points)
    return 0.5 * (nodes + 1.0), 0.5 * shares


@dataclass(frozen=True, eq=False)
class StrainDynamics:
    """See `Lagrangian`; q are the strains that are kept, (..., m).

    Attributes:
        numbers: of the equations.
        points: of the quadrature of each segment.
    """

    numbers: StrainNumbers
    points: int = QUADRATURE
    kinematics: StrainKinematics = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kinematics", StrainKinematics(self.numbers.lengths))

    def inertia(self, q: np.ndarray) -> np.ndarray:
        """(..., m, m) M."""
        return self._matrices(q, np.zeros_like(q), False)[0]

    def coriolis(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """(..., m, m) C; M' - 2 C is skew-symmetric."""
        return self._matrices(q, rate, True)[2]

    def gravity_force(self, q: np.ndarray) -> np.ndarray:
        """(..., m) g, on the left of Lagrange's equations."""
        return self._matrices(q, np.zeros_like(q), False)[1]

    def stiffness_matrix(self) -> np.ndarray:
        """(m, m) K."""
        return np.diag(self.numbers.stiffness)

    def damping_matrix(self) -> np.ndarray:
        """(m, m) D."""
        return np.diag(self.numbers.damping)

    def actuation(self, q: np.ndarray) -> np.ndarray:
        """(..., m, m) one: torques are collocated with the strains."""
        size = self.numbers.size
        return np.broadcast_to(np.eye(size), (*np.shape(q)[:-1], size, size))

    def torque(self, q: np.ndarray, rate: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
        """(..., m) the inverse dynamics: what makes the strains accelerate so."""
        inertia, bias, _ = self._matrices(q, rate, False)
        inertial = (inertia @ np.asarray(acceleration, float)[..., None])[..., 0]
        numbers = self.numbers
        return inertial + bias + numbers.stiffness * q + numbers.damping * rate

    def acceleration(self, q: np.ndarray, rate: np.ndarray, torque: np.ndarray) -> np.ndarray:
        """(..., m) the forward dynamics."""
        inertia, bias, _ = self._matrices(q, rate, False)
        numbers = self.numbers
        force = torque - bias - numbers.stiffness * q - numbers.damping * rate
        solved: np.ndarray = np.linalg.solve(inertia, force[..., None])[..., 0]
        return solved

    def energy(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """(...,) kinetic energy and that of springs and weight [J]; 0 at rest and straight at the
        base's height of gravity's potential."""
        q, rate, numbers = np.asarray(q, float), np.asarray(rate, float), self.numbers
        moving = 0.5 * np.einsum("...i,...ij,...j->...", rate, self.inertia(q), rate)
        nodes, shares = quadrature(self.points)
        begins = np.cumsum(numbers.lengths) - numbers.lengths
        places = (begins[:, None] + numbers.lengths[:, None] * nodes).ravel()
        loads = np.outer(numbers.weight * numbers.lengths, shares).ravel()
        height = -self.kinematics.poses(numbers.full(q), places)[..., :2] @ numbers.down
        return moving + 0.5 * (numbers.stiffness * q * q).sum(axis=-1) + height @ loads

    def _matrices(
        self, q: np.ndarray, rate: np.ndarray, coriolis: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        numbers = self.numbers
        q, rate = np.broadcast_arrays(np.asarray(q, float), np.asarray(rate, float))
        if q.ndim == 0 or q.shape[-1] != numbers.size:
            raise UserError(f"strains of shape {q.shape}: allowed is (..., {numbers.size})")
        full, moving = rows(numbers.full(q)), rows(numbers.full(rate))
        count, n = full.shape
        inertias, biases = np.empty((count, n, n)), np.empty((count, n))
        changes = np.empty((count, n if coriolis else 0, n))
        kernels().matrices(
            full, moving, numbers.lengths, numbers.mass, numbers.inertia, numbers.weight,
            numbers.down, *quadrature(self.points), inertias, biases, changes,
        )  # fmt: skip
        kept, lead = numbers.active, q.shape[:-1]
        square = np.ix_(np.arange(count), kept, kept)
        m = numbers.size
        return (
            inertias[square].reshape(*lead, m, m),
            biases[:, kept].reshape(*lead, m),
            changes[square].reshape(*lead, m, m) if coriolis else changes,
        )
