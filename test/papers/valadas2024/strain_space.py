"""Segments of constant strain in space: where they are, and their equations of motion.

The planar models' `compiled._point` tells pose, Jacobian and the rate of the Jacobian of a point;
this is the same of strains in space, of which a segment has six, linear first as everywhere:
(shear x, shear y, axial [-], bending x, bending y, torsion [rad/m]), relative to the straight
segment along z. With xi = (0, 0, 1, 0, 0, 0) + q the pose of a segment is exp(u xi), and the twist
eta of a cross-section in its own frame obeys eta' = -ad_xi eta + q' along it (Renda, Boyer, Dias,
Seneviratne, Discrete Cosserat Approach for Multi-Section Soft Manipulator Dynamics, 2018), so that

    J(u) = Phi(u) J(0), of the own strains Q(u);  Phi(u) = exp(-u ad_xi),  Q(u) = int_0^u Phi ds.

Both, and their rates, are power series: smooth through the straight robot, exact to rounding up to
a full turn of a segment. The equations are numpy's, of many states at a time.
"""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

_STRAIGHT = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
_STEPS_OF_NEWTON = 50
_MOST_TERMS = 200


@dataclass(frozen=True, eq=False)
class SpatialDynamics:
    """M(q) q'' + C(q, q') q' + g(q) + K q + D q' = generalised force, of n = 6 S strains; see
    `Lagrangian`.

    Attributes:
        lengths: (S,) rest lengths of the segments [m].
        mass: (S,) per length [kg/m].
        inertia: (S,) of the section about an axis in its plane, per length [kg m]; about the
            backbone it is twice that.
        section_stiffness: (S, 6) E A, G A [N], E I, G J [N m^2]; times the length of the segment it
            is K, as energy has it.
        section_damping: (S, 6) likewise [N s], [N m^2 s].
        gravity: (3,) in the frame of the base [m/s^2].
        points: of the quadrature of each segment.
    """

    lengths: np.ndarray
    mass: np.ndarray
    inertia: np.ndarray
    section_stiffness: np.ndarray
    section_damping: np.ndarray
    gravity: np.ndarray
    points: int = 10

    @property
    def size(self) -> int:
        return 6 * len(self.lengths)

    @property
    def stiffness(self) -> np.ndarray:
        """(n, n) K."""
        return np.diag((self.lengths[:, None] * self.section_stiffness).ravel())

    @property
    def damping(self) -> np.ndarray:
        """(n, n) D."""
        return np.diag((self.lengths[:, None] * self.section_damping).ravel())

    def poses(self, q: np.ndarray, places: np.ndarray) -> np.ndarray:
        """(..., N, 4, 4) of places (N,) of the unloaded backbone, not falling [m]."""
        ends = np.cumsum(self.lengths)
        own = np.minimum(np.searchsorted(ends, places - 1e-12), len(ends) - 1)
        begins = ends - self.lengths
        inside = [places[own == k] - begins[k] for k in range(len(ends))]
        return np.concatenate([part[0] for part in self._along(q, 0.0 * q, inside)], axis=-3)

    def matrices(
        self, q: np.ndarray, rate: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """M, C (..., n, n), M' - 2 C being skew-symmetric, and g (..., n), on the left."""
        nodes, shares = np.polynomial.legendre.leggauss(self.points)
        nodes, shares = 0.5 * (nodes + 1.0), 0.5 * shares
        n, lead = self.size, q.shape[:-1]
        inertia, coriolis = np.zeros((*lead, n, n)), np.zeros((*lead, n, n))
        gravity = np.zeros((*lead, n))
        parts = self._along(q, rate, [nodes * each for each in self.lengths])
        for i, (poses, jacobians, rates) in enumerate(parts):
            m, turn = self.mass[i], self.inertia[i]
            mass = np.diag([m, m, m, turn, turn, 2.0 * turn])
            weights = (self.lengths[i] * shares)[:, None, None]
            ad = _ad((jacobians @ rate[..., None, :, None])[..., 0])
            gyroscopic = mass @ ad - np.swapaxes(ad, -1, -2) @ mass  # skew, as C needs it
            left = weights * np.swapaxes(jacobians, -1, -2)
            inertia += (left @ mass @ jacobians).sum(axis=-3)
            coriolis += (left @ (mass @ rates + gyroscopic @ jacobians)).sum(axis=-3)
            load = np.swapaxes(poses[..., :3, :3], -1, -2) @ (m * self.gravity)
            gravity -= (left[..., :3] @ load[..., None])[..., 0].sum(axis=-2)
        return inertia, coriolis, gravity

    def equilibrium(self, force: np.ndarray) -> np.ndarray:
        """(n,) strains at rest under a force (n,), by Newton's method from the straight robot."""
        stiff, step = self.stiffness, 1e-6 * np.eye(self.size)

        def left(q: np.ndarray) -> np.ndarray:
            return q @ stiff + self.matrices(q, 0.0 * q)[2] - force

        q, slopes, last = np.zeros(self.size), None, np.inf
        for _ in range(_STEPS_OF_NEWTON):
            if slopes is None:
                slopes = (left(q + step) - left(q - step)).T / 2e-6
            change = np.linalg.solve(slopes, -left(q))
            size = float(np.abs(change).max())
            q = q + change * min(1.0, 10.0 / max(size, 1e-300))
            if size < 1e-9:
                return q
            if size > 0.2 * last:  # old slopes serve while they bring it nearer fast
                slopes = None
            last = size
        raise AssertionError(f"no steady state was found under the force {force}")

    def simulate(
        self, state: np.ndarray, force: np.ndarray, times: np.ndarray, tolerance: float = 1e-5
    ) -> np.ndarray:
        """(T, 2 n) strains and rates at times (T,) [s], from a state (2 n,) at the first of them,
        under a constant force (n,), by Radau to a tolerance, relative, and absolute in SI."""
        stiff, damp, n = self.stiffness, self.damping, self.size

        def slope(_: float, y: np.ndarray) -> np.ndarray:
            inertia, coriolis, gravity = self.matrices(y[:n], y[n:])
            left = force - gravity - y[:n] @ stiff - y[n:] @ damp - coriolis @ y[n:]
            return np.r_[y[n:], np.linalg.solve(inertia, left)]

        def derivative(_: float, y: np.ndarray) -> np.ndarray:
            inertia, coriolis, _g = self.matrices(y[:n], y[n:])  # Newton needs no more than this
            lower = -np.linalg.solve(inertia, np.c_[stiff, damp + 2.0 * coriolis])
            return np.r_[np.c_[np.zeros((n, n)), np.eye(n)], lower]

        found = solve_ivp(slope, (times[0], times[-1]), state, "Radau", times, jac=derivative,
                          rtol=tolerance, atol=tolerance)  # fmt: skip
        assert found.success, found.message
        return np.asarray(found.y.T)

    def _along(self, q: np.ndarray, rate: np.ndarray, inside: list[np.ndarray]) -> list[tuple]:
        """Poses (..., P, 4, 4), body Jacobians (..., P, 6, n) and rates of these, at distances (P,)
        from the start of each segment."""
        lead = q.shape[:-1]
        pose = np.broadcast_to(np.eye(4), (*lead, 1, 4, 4))
        jacobian = jacobian_rate = np.zeros((*lead, 1, 6, self.size))
        found = []
        for i, places in enumerate(inside):
            own = slice(6 * i, 6 * i + 6)
            at = np.r_[places, self.lengths[i]]
            xi, xi_rate = q[..., None, own] + _STRAIGHT, rate[..., None, own]
            flow, sums, flow_rate, sums_rate = _flow(xi, xi_rate, at)
            poses = pose @ _exponential(xi, at)
            jacobians = flow @ jacobian
            rates = flow_rate @ jacobian + flow @ jacobian_rate
            jacobians[..., own], rates[..., own] = sums, sums_rate
            all_ = poses, jacobians, rates
            found.append(tuple(each[..., :-1, :, :] for each in all_))
            pose, jacobian, jacobian_rate = (each[..., -1:, :, :] for each in all_)
        return found


def _cross(vectors: np.ndarray) -> np.ndarray:
    """(..., 3, 3) of vectors (..., 3)."""
    x, y, z = np.moveaxis(vectors, -1, 0)
    o = np.zeros_like(x)
    return np.stack([np.stack(row, -1) for row in ((o, -z, y), (z, o, -x), (-y, x, o))], axis=-2)


def _ad(twists: np.ndarray) -> np.ndarray:
    """(..., 6, 6) of twists (..., 6), linear first."""
    out = np.zeros((*twists.shape, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = _cross(twists[..., 3:])
    out[..., :3, 3:] = _cross(twists[..., :3])
    return out


def _flow(xi: np.ndarray, xi_rate: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, ...]:
    """Phi, Q, and their rates (..., P, 6, 6) at distances (P,), of xi (..., 1, 6)."""
    far = at[:, None, None]
    step, step_rate = -far * _ad(xi), -far * _ad(xi_rate)
    term = np.broadcast_to(np.eye(6), step.shape)
    term_rate = np.zeros(step.shape)
    flow, sums = term.copy(), term.copy()
    flow_rate, sums_rate = term_rate.copy(), term_rate.copy()
    for k in range(1, _terms(step) + 2):  # a rate's terms fall as those of k - 1
        term_rate = (step_rate @ term + step @ term_rate) / k
        term = step @ term / k
        flow += term
        sums += term / (k + 1)
        flow_rate += term_rate
        sums_rate += term_rate / (k + 1)
    return flow, far * sums, flow_rate, far * sums_rate


def _exponential(xi: np.ndarray, at: np.ndarray) -> np.ndarray:
    """(..., P, 4, 4) exp(u xi) at distances (P,), of xi (..., 1, 6)."""
    hat = np.zeros((*xi.shape[:-1], 4, 4))
    hat[..., :3, :3], hat[..., :3, 3] = _cross(xi[..., 3:]), xi[..., :3]
    step = at[:, None, None] * hat
    total = term = np.broadcast_to(np.eye(4), step.shape)
    for k in range(1, _terms(step)):
        term = step @ term / k
        total = total + term
    return total


def _terms(step: np.ndarray) -> int:
    """How many terms of the exponential series of matrices (..., k, k) are above rounding."""
    size, term, count = float(np.abs(step).sum(axis=-1).max(initial=0.0)), 1.0, 0
    while term > 1e-18 and count < _MOST_TERMS:
        count += 1
        term *= size / count
    return count + 1
