"""Lagrange's equations of a model, as controllers of papers use them."""

from typing import Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Lagrangian(Protocol):
    """What a model may tell beside `Model`: M(q) q'' + C(q, q') q' + g(q) + K q + D q' = A(q) u.

    All methods take q and rate (n,) or (B, n).
    """

    def inertia(self, q: np.ndarray) -> np.ndarray:
        """(..., n, n) M."""
        ...

    def coriolis(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """(..., n, n) C."""
        ...

    def gravity_force(self, q: np.ndarray) -> np.ndarray:
        """(..., n) g."""
        ...

    def stiffness_matrix(self) -> np.ndarray:
        """(n, n) K."""
        ...

    def damping_matrix(self) -> np.ndarray:
        """(n, n) D."""
        ...

    def actuation(self, q: np.ndarray) -> np.ndarray:
        """(..., n, m) A."""
        ...
