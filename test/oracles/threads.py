"""Threadlike actuators on any route through a constant-curvature arm (Dalenberg, IV-D).

Renda et al. (2022), as used in the thesis, eqs. (39) to (48): a cross-section at the material
abscissa X has the strain xi = [p; k], the tangent and the curvature of the centre line in its own
axes; the stack is linear first, the thesis angular first. A thread at the offset d(X) from the
centre line runs along p + k x d + d', and shortens as its unit vector t says:

    Phi_a = [t; d x t]        B = integral of Phi_xi^T Phi_a dX        length = integral of |...| dX

Sections have constant strain, xi = Phi_xi q_i + xi*, but the thread's offset may change along
them. For threads parallel to the centre line see `tendons`: B is known in closed form there.
"""

from collections.abc import Callable

import numpy as np

Route = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Material abscissae (k,) [m] -> offsets (k, 2) from the centre line [m], their slopes (k, 2)."""

_REST_STRAIN = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


def strain_basis(rest_length: float, radius: float) -> np.ndarray:
    """(6, 3) Phi_xi of one section, (43): strain = Phi_xi q + xi*, linear rows first [1/m].

    Args:
        rest_length: L_0 [m].
        radius: scaling radius d of Delta [m].
    """
    basis = np.zeros((6, 3))
    basis[2, 2] = 1.0
    basis[3, 1], basis[4, 0] = -1.0 / radius, 1.0 / radius
    return basis / rest_length


def actuation_by_quadrature(
    q: np.ndarray,
    rest_lengths: np.ndarray,
    radius: float,
    routes: list[Route],
    ends: np.ndarray,
    order: int = 12,
) -> np.ndarray:
    """(3 n, a) actuation matrix B of (42), (44), cut off at the threads' ends as in (46).

    Threads begin at the base. Gauss-Legendre quadrature over each section.

    Args:
        q: (3 n,) coordinates [m].
        rest_lengths: (n,) L_0 [m].
        radius: scaling radius d of Delta [m].
        routes: of the a threads.
        ends: (a,) material abscissae where they are fixed [m].
        order: number of points per section.
    """
    columns = np.zeros((len(q), len(routes)))
    for thread, (route, end) in enumerate(zip(routes, ends, strict=True)):
        for section, (places, weights) in enumerate(_nodes(rest_lengths, end, order)):
            own = slice(3 * section, 3 * section + 3)
            basis = strain_basis(rest_lengths[section], radius)
            tangents, offsets = _threads(basis @ q[own] + _REST_STRAIN, route, places)
            directions = tangents / np.linalg.norm(tangents, axis=1)[:, None]
            matrix = np.hstack([directions, np.cross(offsets, directions)])
            columns[own, thread] = basis.T @ (weights @ matrix)
    return columns


def _nodes(rest_lengths: np.ndarray, end: float, order: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Abscissae (k,) and weights (k,) of each section's covered part [m]."""
    points, weights = np.polynomial.legendre.leggauss(order)
    begins = np.cumsum(rest_lengths) - rest_lengths
    covered = np.clip(end - begins, 0.0, rest_lengths)
    return [
        (begin + 0.5 * length * (points + 1.0), 0.5 * length * weights)
        for begin, length in zip(begins, covered, strict=True)
    ]


def _threads(strain: np.ndarray, route: Route, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tangents p + k x d + d' (k, 3) and offsets d (k, 3) [m] of a thread."""
    offsets, slopes = (np.hstack([each, np.zeros((len(places), 1))]) for each in route(places))
    return strain[:3] + np.cross(strain[3:], offsets) + slopes, offsets
