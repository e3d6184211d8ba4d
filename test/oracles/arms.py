"""Arms of several segments as plain data, for computations that share nothing with softcr.

Twists and wrenches are linear first; SI units; an arm's base frame has z along the straight arm.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.spatial.transform import Rotation

G = 9.81
Route = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Arc lengths (J,) from the base without rigid parts -> offsets (J, 3), their slopes (J, 3)."""


def hat(v: np.ndarray) -> np.ndarray:
    """(..., 3, 3) with hat(v) y = v x y."""
    out = np.zeros((*np.shape(v), 3), np.asarray(v).dtype)
    for i, j, k, sign in ((0, 1, 2, -1), (0, 2, 1, 1), (1, 2, 0, -1)):
        out[..., i, j] = sign * v[..., k]
        out[..., j, i] = -sign * v[..., k]
    return out


@dataclass(frozen=True)
class Body:
    """A rigid body: mass [kg], its centre [m], its inertia about the centre along the axes."""

    mass: float = 0.0
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    inertia: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def matrix(self) -> np.ndarray:
        """(6, 6) about the frame's origin, linear first."""
        c = hat(np.array(self.centre))
        linear = self.mass * np.eye(3)
        angular = np.diag(self.inertia) - self.mass * c @ c
        return np.block([[linear, -self.mass * c], [self.mass * c, angular]])

    def weight(self, up: np.ndarray) -> np.ndarray:
        """(6,) wrench of gravity; `up` (3,) is gravity reversed in the body's frame [m/s^2]."""
        force = -self.mass * up
        return np.concatenate((force, np.cross(self.centre, force)))


@dataclass(frozen=True)
class Connector:
    """A rigid part after a segment: pose of the next segment's start, and a body before it."""

    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    body: Body = Body()

    @property
    def rotation(self) -> np.ndarray:
        """(3, 3) from the next segment's frame to that of the end of the segment before."""
        return Rotation.from_euler("xyz", self.rpy).as_matrix()

    def adjoint(self) -> np.ndarray:
        """(6, 6) X of e+ = X e-."""
        back = self.rotation.T
        shift = hat(np.array(self.translation))
        return np.block([[back, -back @ shift], [np.zeros((3, 3)), back]])


@dataclass(frozen=True)
class Segment:
    """A uniform piece of an arm.

    Attributes:
        length: [m].
        compliance: (6,) of shear x, y, dilatation, bending x, y, torsion.
        relaxation: (6,) [s].
        line_density: [kg/m].
        rotary: (3,) rotary inertia per mass about x, y, z [m^2].
        wrench: (6,) of what pushes constantly along it (chambers).
        connector: after it.
    """

    length: float
    compliance: np.ndarray
    relaxation: np.ndarray
    line_density: float
    rotary: np.ndarray
    wrench: np.ndarray = field(default_factory=lambda: np.zeros(6))
    connector: Connector = Connector()


@dataclass(frozen=True)
class Tendon:
    """A tendon from the base to the end of segment `last`, under `tension` [N]."""

    tension: float
    route: Route
    last: int


@dataclass(frozen=True)
class Arm:
    """Segments in series with their loads.

    Attributes:
        segments: base to tip.
        tendons: through them.
        exact: whether tendons follow the strained arm; else they push along the unstrained route.
        payload: in the frame of the last node.
        up: (3,) gravity reversed in the base frame [m/s^2].
        follower: (6,) wrench on the last node in its frame.
        dead_force: (3,) on the last node in the base frame [N].
        drag: (6,) force per length and velocity of the arm, body axes.
    """

    segments: tuple[Segment, ...]
    tendons: tuple[Tendon, ...] = ()
    exact: bool = True
    payload: Body = Body()
    up: np.ndarray = field(default_factory=lambda: np.zeros(3))
    follower: np.ndarray = field(default_factory=lambda: np.zeros(6))
    dead_force: np.ndarray = field(default_factory=lambda: np.zeros(3))
    drag: np.ndarray = field(default_factory=lambda: np.zeros(6))

    def starts(self) -> np.ndarray:
        """(K + 1,) soft length below each segment, and that of all."""
        return np.concatenate(([0.0], np.cumsum([each.length for each in self.segments])))

    def loaded(self, share: float) -> "Arm":
        """The arm with this share of its actuation, external loads and gravity."""
        segments = tuple(replace(each, wrench=share * each.wrench) for each in self.segments)
        tendons = tuple(replace(each, tension=share * each.tension) for each in self.tendons)
        return replace(
            self, segments=segments, tendons=tendons, up=share * self.up,
            follower=share * self.follower, dead_force=share * self.dead_force,
        )  # fmt: skip


def tendon_wrenches(
    arm: Arm, index: int, arc_lengths: np.ndarray, strains: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Wrenches of all tendons through a segment and how they change with the strain.

    Args:
        index: of the segment.
        arc_lengths: (J,) from the base.
        strains: (J, 6).

    Returns:
        (J, 6), (J, 6, 6).
    """
    total = np.zeros(strains.shape, strains.dtype)
    slope = np.zeros((*strains.shape, 6), strains.dtype)
    reference = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    for tendon in arm.tendons:
        if tendon.last < index:
            continue
        offset, offset_slope = tendon.route(arc_lengths)
        lever = hat(offset)
        # the tendon's tangent is q = B^T xi + r_s with B = [1; r^]
        spread = np.concatenate((np.broadcast_to(np.eye(3), lever.shape), lever), axis=1)
        tangent = np.einsum("jik,ji->jk", spread, strains if arm.exact else strains * 0 + reference)
        tangent = tangent + offset_slope
        length = np.sqrt(np.sum(tangent * tangent, axis=1))[:, None]
        direction = tangent / length
        total = total - tendon.tension * np.einsum("jik,jk->ji", spread, direction)
        if arm.exact:
            across = np.eye(3) - direction[:, :, None] * direction[:, None, :]
            turned = np.einsum("jik,jkl,jml->jim", spread, across, spread)
            slope = slope - tendon.tension / length[:, :, None] * turned
    return total, slope


def straight(radius: float, angle: float = 0.0) -> Route:
    """A route parallel to the axis."""
    return tapered(radius, radius, 1.0, angle)


def tapered(radius: float, end_radius: float, length: float, angle: float = 0.0) -> Route:
    """A route whose distance from the axis goes linearly from the base to `length` [m]."""
    ray = np.array([np.cos(angle), np.sin(angle), 0.0])
    rate = (end_radius - radius) / length

    def route(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (radius + rate * s)[:, None] * ray, np.full((len(s), 1), rate) * ray

    return route


def helical(radius: float, rate: float, angle: float = 0.0) -> Route:
    """A route about the axis, `rate` [rad/m]."""

    def route(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        phase = angle + rate * s
        flat = 0.0 * phase
        offset = radius * np.stack((np.cos(phase), np.sin(phase), flat), axis=1)
        return offset, radius * rate * np.stack((-np.sin(phase), np.cos(phase), flat), axis=1)

    return route
