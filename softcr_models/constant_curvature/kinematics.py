"""Piecewise constant curvature in Delta coordinates, smooth through the straight pose.

Della Santina, Bicchi and Rus (2020), as used in Dalenberg's thesis (003), eqs. (1) and (3), and by
Mehl et al. (004), eq. (1). Each section has q_i = [Delta_x, Delta_y, dL] [m]: it bends by the angle
theta = |Delta| / d towards (Delta_x, Delta_y) and has the length L_0 + dL. The scaling radius d is
the robot's outer radius in 004 and 1 m in 003.

Erratum: the printed (1) bends the translation towards +Delta and the rotation towards -Delta, so
sections would not join smoothly. Here the rotation follows the translation,
R = Rz(phi) Ry(theta) Rz(-phi) (specs/003.md, S1).

An arc is a screw motion: T(s) = exp(s [0, 0, L, -Delta_y/d, Delta_x/d, 0]) for the part s of it.
"""

from dataclasses import dataclass, field

import numpy as np

from softcr_models.constant_curvature.kernel import TIP, point_motion, stumpff
from softcr_models.errors import UserError


@dataclass(frozen=True)
class ConstantCurvatureChain:
    """Sections of constant curvature one after the other.

    Everything broadcasts over leading axes of the coordinates, of the rest lengths (which a
    controller may adapt) and of `fraction`. Twists are linear first, in the frame of the pose they
    belong to (body Jacobians). Complex numbers pass through.

    Attributes:
        sections: number of sections, n >= 1.
        radius: scaling radius d of Delta [m], > 0.
        base: (4, 4) pose of the chain's base in the frame all poses are given in.
    """

    sections: int
    radius: float = 1.0
    base: np.ndarray = field(default_factory=lambda: np.eye(4))

    def __post_init__(self) -> None:
        """Raises UserError for a number that is not allowed."""
        if self.sections < 1:
            raise UserError(f"sections: {self.sections} is not allowed: at least 1")
        if not 0.0 < self.radius < np.inf:
            raise UserError(f"radius: {self.radius} m is not allowed: must be above 0")
        if np.shape(self.base) != (4, 4):
            raise UserError(f"base: shape {np.shape(self.base)} is not allowed: (4, 4)")

    def pose(
        self,
        q: np.ndarray,
        rest_lengths: np.ndarray,
        section: int | None = None,
        fraction: np.ndarray | float = 1.0,
    ) -> np.ndarray:
        """(..., 4, 4) pose of a point of the chain, by default of its tip; (3) with a partial end.

        Args:
            q: (..., 3 n) coordinates [m].
            rest_lengths: (..., n) L_0 of the sections [m].
            section: the point's section, 0 to n - 1; default the last.
            fraction: (...) where on it, from 0 at its begin to 1 at its end [-].
        """
        coordinates, lengths, last = self._checked(q, rest_lengths, section)
        pose: np.ndarray = np.asarray(self.base)
        for i in range(last):
            pose = pose @ section_pose(coordinates[..., i, :], lengths[..., i], self.radius)
        end = section_pose(coordinates[..., last, :], lengths[..., last], self.radius, fraction)
        return pose @ end

    def position(
        self,
        q: np.ndarray,
        rest_lengths: np.ndarray,
        section: int | None = None,
        fraction: np.ndarray | float = 1.0,
    ) -> np.ndarray:
        """(..., 3) position [m] of a point of the chain; arguments as `pose`."""
        return self.pose(q, rest_lengths, section, fraction)[..., :3, 3]

    def backbone(self, q: np.ndarray, rest_lengths: np.ndarray, points: int) -> np.ndarray:
        """(..., points, 4, 4) poses at equal steps of material length, base to tip, at least 2."""
        _, lengths, _ = self._checked(q, rest_lengths, None)
        if points < 2:
            raise UserError(f"points: {points} is not allowed: a backbone has at least 2")
        if lengths.ndim > 1:
            raise UserError("backbone: rest_lengths must be (n,), the same for all coordinates")
        ends = np.cumsum(lengths)
        poses = []
        for place in np.linspace(0.0, ends[-1], points):
            section = min(int(np.searchsorted(ends, place)), self.sections - 1)
            begin = ends[section] - lengths[section]
            fraction = (place - begin) / lengths[section]
            poses.append(self.pose(q, lengths, section, fraction))
        return np.stack(poses, axis=-3)

    def position_jacobian(
        self,
        q: np.ndarray,
        rest_lengths: np.ndarray,
        section: int | None = None,
        fraction: np.ndarray | float = 1.0,
    ) -> np.ndarray:
        """(..., 3, 3 n) derivative of `position` by q [-]; zero columns beyond the section."""
        rotation = self.pose(q, rest_lengths, section, fraction)[..., :3, :3]
        return rotation @ self.body_jacobian(q, rest_lengths, section, fraction)[..., :3, :]

    def body_jacobian(
        self,
        q: np.ndarray,
        rest_lengths: np.ndarray,
        section: int | None = None,
        fraction: np.ndarray | float = 1.0,
    ) -> np.ndarray:
        """(..., 6, 3 n): body twist of `pose` = jacobian @ q', linear [-], angular [1/m] rows.

        Zero columns beyond the section. Arguments as `pose`.
        """
        coordinates, lengths, last = self._checked(q, rest_lengths, section)
        own = section_jacobian(coordinates[..., last, :], lengths[..., last], self.radius, fraction)
        columns = [own]
        to_point = section_pose(
            coordinates[..., last, :], lengths[..., last], self.radius, fraction
        )
        for i in range(last - 1, -1, -1):
            own = section_jacobian(coordinates[..., i, :], lengths[..., i], self.radius)
            columns.insert(0, _carried(own, to_point))
            to_point = section_pose(coordinates[..., i, :], lengths[..., i], self.radius) @ to_point
        lead = np.broadcast_shapes(*(column.shape[:-2] for column in columns))
        beyond = np.zeros((6, 3 * (self.sections - 1 - last)))
        columns.append(beyond)
        return np.concatenate(
            [np.broadcast_to(column, (*lead, *column.shape[-2:])) for column in columns], axis=-1
        )

    def _checked(
        self, q: np.ndarray, rest_lengths: np.ndarray, section: int | None
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Coordinates (..., n, 3), rest lengths (..., n), index of the section."""
        q, lengths = np.asarray(q), np.asarray(rest_lengths)
        if q.shape[-1:] != (3 * self.sections,):
            raise UserError(f"q of shape {q.shape}: must be (..., {3 * self.sections})")
        if lengths.shape[-1:] != (self.sections,):
            raise UserError(
                f"rest_lengths of shape {lengths.shape}: must be (..., {self.sections})"
            )
        last = self.sections - 1 if section is None else section
        if not 0 <= last < self.sections:
            raise UserError(f"section: {section} is not allowed: 0 to {self.sections - 1}")
        return q.reshape(*q.shape[:-1], self.sections, 3), lengths, last


def section_pose(
    q: np.ndarray,
    rest_length: np.ndarray | float,
    radius: float,
    fraction: np.ndarray | float = 1.0,
) -> np.ndarray:
    """(..., 4, 4) pose of one arc's part, eq. (1) of 003 with corrected signs.

    Args:
        q: (..., 3) Delta_x, Delta_y, dL [m].
        rest_length: (...) L_0 [m].
        radius: scaling radius d [m].
        fraction: (...) which part of the arc, 0 to 1 [-].
    """
    u, v, length, c = _arc(q, rest_length, radius, fraction)
    pose = np.zeros((*u.shape, 4, 4), c.dtype)
    pose[..., 0, 0], pose[..., 1, 1] = 1.0 - c[..., 2] * u * u, 1.0 - c[..., 2] * v * v
    pose[..., 0, 1] = pose[..., 1, 0] = -c[..., 2] * u * v
    pose[..., 0, 2], pose[..., 1, 2] = c[..., 1] * u, c[..., 1] * v
    pose[..., 2, 0], pose[..., 2, 1] = -c[..., 1] * u, -c[..., 1] * v
    pose[..., 2, 2], pose[..., 3, 3] = c[..., 0], 1.0
    pose[..., 0, 3], pose[..., 1, 3] = length * u * c[..., 2], length * v * c[..., 2]
    pose[..., 2, 3] = length * c[..., 1]
    return pose


def section_jacobian(
    q: np.ndarray,
    rest_length: np.ndarray | float,
    radius: float,
    fraction: np.ndarray | float = 1.0,
) -> np.ndarray:
    """(..., 6, 3) body Jacobian of `section_pose`: linear rows [-], angular rows [1/m]."""
    u, v, length, c = _arc(q, rest_length, radius, fraction)
    part = np.stack([u * radius, v * radius, length], axis=-1)
    _, along, _ = point_motion(part, np.zeros_like(part), 0.0, radius, TIP)
    rotation = section_pose(q, rest_length, radius, fraction)[..., :3, :3]
    jacobian = np.empty((*u.shape, 6, 3), c.dtype)
    jacobian[..., :3, :] = np.swapaxes(rotation, -1, -2) @ along
    # The right Jacobian of SO(3), 1 - c_2 [w] + c_3 [w]^2 with w = (-v, u, 0), times dw/dq.
    c2, c3 = c[..., 2], c[..., 3]
    jacobian[..., 3, 0], jacobian[..., 3, 1] = -c3 * u * v, c3 * u * u - 1.0
    jacobian[..., 4, 0], jacobian[..., 4, 1] = 1.0 - c3 * v * v, c3 * u * v
    jacobian[..., 5, 0], jacobian[..., 5, 1] = c2 * v, -c2 * u
    jacobian[..., 3:, :2] /= radius
    jacobian[..., 3:, 2] = 0.0
    return jacobian * np.asarray(fraction)[..., None, None]


def coordinates_of_tip(
    position: np.ndarray, rest_length: np.ndarray | float, radius: float
) -> np.ndarray:
    """(..., 3) coordinates q [m] of the one arc from the origin, along z, to a tip (..., 3) [m].

    Mehl et al. invert (1) by Newton's method; here is the solution it converges to: the chord
    leans by theta / 2, and its length is L c_1((theta / 2)^2). Angles below pi; the tip must lie
    above the base, z > 0.
    """
    x, y, z = np.moveaxis(np.asarray(position, float), -1, 0)
    across = np.hypot(x, y)
    half = np.arctan2(across, z)
    # half / across, smooth through the straight pose
    ratio = np.where(across > 1e-9 * np.abs(z), half / np.where(across > 0.0, across, 1.0), 1.0 / z)
    length = np.sqrt(across**2 + z**2) / stumpff(half**2)[..., 1]
    delta = 2.0 * radius * ratio
    return np.stack([delta * x, delta * y, length - rest_length], axis=-1)


def _arc(
    q: np.ndarray, rest_length: np.ndarray | float, radius: float, fraction: np.ndarray | float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Bending u, v [rad], length [m] and Stumpff's functions (..., COUNT) of a part of an arc."""
    q, fraction = np.asarray(q), np.asarray(fraction, float)
    u, v = fraction * q[..., 0] / radius, fraction * q[..., 1] / radius
    length = fraction * (rest_length + q[..., 2])
    u, v, length = np.broadcast_arrays(u, v, length)
    return u, v, length, stumpff(u * u + v * v)


def _carried(jacobian: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """The body Jacobian (..., 6, k) of a frame, for a point at `pose` (..., 4, 4) fixed to it."""
    rotation = np.swapaxes(pose[..., :3, :3], -1, -2)
    position = pose[..., :3, 3, None]
    linear, angular = jacobian[..., :3, :], jacobian[..., 3:, :]
    moved = linear + np.cross(angular, position, axis=-2)
    return np.concatenate([rotation @ moved, rotation @ angular], axis=-2)
