"""Piecewise constant curvature in Delta coordinates, smooth through the straight pose.

Della Santina, Bicchi and Rus (2020), as used in Dalenberg's MSc thesis, eqs. (1) and (3), and by
Mehl et al., eq. (1). Each section has q_i = [Delta_x, Delta_y, dL] [m]: it bends by the angle
theta = |Delta| / d towards (Delta_x, Delta_y) and has the length L_0 + dL. The scaling radius d is
the robot's outer radius in Mehl et al. and 1 m in the thesis.

Erratum: the printed (1) bends the translation towards +Delta and the rotation towards -Delta, so
sections would not join smoothly. Here the rotation follows the translation,
R = Rz(phi) Ry(theta) Rz(-phi): only so is the backbone's tangent the z axis.

An arc is a screw motion: T(s) = exp(s [0, 0, L, -Delta_y/d, Delta_x/d, 0]) for the part s of it.

A point of a chain is told by its coverage: how much of each section lies between the base and it,
[1, 1, 0.3, 0] for 0.3 of the third of four sections. `coverage_of` makes it of a place in metres of
rest length, which is the thesis's Algorithm 1.
"""

from dataclasses import dataclass, field

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.constant_curvature.kernel import chain_motion


@dataclass(frozen=True)
class ConstantCurvatureChain:
    """Sections of constant curvature one after the other.

    Everything broadcasts over leading axes of the coordinates, of the rest lengths (which a
    controller may adapt) and of the coverage. Twists are linear first. Complex coordinates pass
    through.

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
        self, q: np.ndarray, rest_lengths: np.ndarray, coverage: np.ndarray | None = None
    ) -> np.ndarray:
        """(..., 4, 4) pose of a point of the chain, by default of its tip; (3) with a partial end.

        Args:
            q: (..., 3 n) coordinates [m].
            rest_lengths: (..., n) L_0 of the sections [m].
            coverage: (..., n) which point, see `coverage_of`; default the tip.
        """
        return self.motion(q, np.zeros_like(q), rest_lengths, coverage)[0]

    def position(
        self, q: np.ndarray, rest_lengths: np.ndarray, coverage: np.ndarray | None = None
    ) -> np.ndarray:
        """(..., 3) position [m] of a point of the chain; arguments as `pose`."""
        return self.pose(q, rest_lengths, coverage)[..., :3, 3]

    def backbone(self, q: np.ndarray, rest_lengths: np.ndarray, points: int) -> np.ndarray:
        """(..., points, 4, 4) poses at equal steps of material length, base to tip, at least 2."""
        if points < 2:
            raise UserError(f"points: {points} is not allowed: a backbone has at least 2")
        lengths = np.asarray(rest_lengths)
        places = np.multiply.outer(lengths.sum(axis=-1), np.linspace(0.0, 1.0, points))
        coverage = coverage_of(places, lengths)
        return self.pose(np.asarray(q)[..., None, :], lengths[..., None, :], coverage)

    def position_jacobian(
        self, q: np.ndarray, rest_lengths: np.ndarray, coverage: np.ndarray | None = None
    ) -> np.ndarray:
        """(..., 3, 3 n) derivative of `position` by q [-]; zero columns beyond the point."""
        return self.motion(q, np.zeros_like(q), rest_lengths, coverage)[1][..., :3, :]

    def body_jacobian(
        self, q: np.ndarray, rest_lengths: np.ndarray, coverage: np.ndarray | None = None
    ) -> np.ndarray:
        """(..., 6, 3 n): twist of `pose` in its own axes = jacobian @ q', [-] then [1/m] rows.

        Zero columns beyond the point. Arguments as `pose`.
        """
        pose, jacobian, _ = self.motion(q, np.zeros_like(q), rest_lengths, coverage)
        return in_body_axes(pose, jacobian)

    def motion(
        self,
        q: np.ndarray,
        rate: np.ndarray,
        rest_lengths: np.ndarray,
        coverage: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pose (..., 4, 4) of a point, its Jacobian (..., 6, 3 n) and drift (..., 6).

        The Jacobian maps rates q' (..., 3 n) [m/s] to velocity [m/s] and angular velocity [rad/s]
        of the point in the axes that poses are given in; the drift J' q' is what they change with
        while q'' = 0. Other arguments as `pose`.
        """
        coordinates, lengths = np.asarray(q), np.asarray(rest_lengths)
        if coordinates.shape[-1:] != (3 * self.sections,):
            raise UserError(f"q of shape {coordinates.shape}: must be (..., {3 * self.sections})")
        if lengths.shape[-1:] != (self.sections,):
            raise UserError(
                f"rest_lengths of shape {lengths.shape}: must be (..., {self.sections})"
            )
        covered = np.ones(self.sections) if coverage is None else np.asarray(coverage)
        if covered.shape[-1:] != (self.sections,):
            raise UserError(f"coverage of shape {covered.shape}: must be (..., {self.sections})")
        motion: tuple[np.ndarray, np.ndarray, np.ndarray] = chain_motion(
            coordinates, rate, lengths, covered, self.radius, self.base
        )
        return motion


def coverage_of(places: np.ndarray, rest_lengths: np.ndarray) -> np.ndarray:
    """(..., k, n) how much of each section lies before places; Dalenberg, Alg. 1, (22) to (26).

    It is 1 for sections j < j_i of (24), the normalised abscissa of (25) for j_i and 0 beyond. A
    place beyond the last section is at its tip (Remark 3), one before the first at the base.

    Args:
        places: (..., k) material abscissae X_i [m] along the unstrained backbone.
        rest_lengths: (..., n) L_0 of the sections [m], each above 0.
    """
    lengths = np.asarray(rest_lengths, float)[..., None, :]
    begins = np.cumsum(lengths, axis=-1) - lengths
    covered: np.ndarray = np.clip((np.asarray(places)[..., None] - begins) / lengths, 0.0, 1.0)
    return covered


def in_body_axes(pose: np.ndarray, jacobian: np.ndarray) -> np.ndarray:
    """(..., 6, k) body Jacobian of a frame from its pose (..., 4, 4) and `motion`'s Jacobian."""
    rotation = np.swapaxes(pose[..., :3, :3], -1, -2)
    return np.concatenate(
        [rotation @ jacobian[..., :3, :], rotation @ jacobian[..., 3:, :]], axis=-2
    )


def section_pose(
    q: np.ndarray,
    rest_length: np.ndarray | float,
    radius: float,
    fraction: np.ndarray | float = 1.0,
) -> np.ndarray:
    """(..., 4, 4) pose of one arc's part, eq. (1) of Dalenberg with corrected signs.

    Args:
        q: (..., 3) Delta_x, Delta_y, dL [m].
        rest_length: (...) L_0 [m].
        radius: scaling radius d [m].
        fraction: (...) which part of the arc, 0 to 1 [-].
    """
    chain = ConstantCurvatureChain(1, radius)
    return chain.pose(q, np.asarray(rest_length)[..., None], np.asarray(fraction)[..., None])


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
