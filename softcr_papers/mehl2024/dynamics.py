"""One pneumatic constant-curvature section with a force-torque sensor under its base.

Mehl et al., eqs. (2) to (7): the robot's mass is a point at the arc's centre of gravity,
markers or a cap are a point at the tip, bending and elongation are linear springs and dampers. The
base floats first (nine coordinates, q_f = [x, y, z, alpha, beta, gamma, q_r]) and is fixed
afterwards; what remains of its six equations is the base reaction.

With x = x_b + R(alpha, beta, gamma) p(q_r) of each point, J = dx/dq_f and free fall g, Lagrange's
equations are M = sum m J^T J, C = sum m J^T J', gravity force sum m J^T g: exact, and M' - 2 C is
skew by construction. At the fixed base the reaction is the rate of momentum, sum m (x'' - g), and
its moment.

Pressures act by virtual work on the end caps of their chambers: a chamber at (x, y) of the cross
section has the length L - (x Delta_x + y Delta_y) / r, so its generalised force is
p A [-x / r, -y / r, 1], whatever the pose.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_models.errors import UserError
from softcr_models.robots.robot import Robot
from softcr_papers.constant_curvature.kernel import (
    CENTRE_OF_GRAVITY,
    TIP,
    kernels,
    point_motion,
)

_GENERATORS = np.array(
    [
        [[0, 0, 0], [0, 0, -1], [0, 1, 0]],
        [[0, 0, 1], [0, 0, 0], [-1, 0, 0]],
        [[0, -1, 0], [1, 0, 0], [0, 0, 0]],
    ],
    dtype=float,
)
_WRENCH = np.zeros(6)


@dataclass(frozen=True, eq=False)
class ConstantCurvatureModel:
    """Numbers of one section, named as in Mehl et al., Table I, and its equations.

    States are q = [Delta_x, Delta_y, dL] [m] and their rates [m/s], batched over leading axes.

    Attributes:
        radius: scaling radius r of Delta, the outer radius [m].
        rest_length: L_0 [m].
        mass: m, at the arc's centre of gravity [kg].
        tip_mass: m_m, at the tip [kg].
        bending_stiffness, elongation_stiffness: k_theta, k_dL [N/m].
        bending_damping, elongation_damping: d_theta, d_dL [N s/m].
        actuation: (3, chambers) generalised force per gauge pressure [N/Pa].
        gravity: (3,) acceleration of gravity in the base frame [m/s^2].
    """

    radius: float
    rest_length: float
    mass: float
    tip_mass: float
    bending_stiffness: float
    bending_damping: float
    elongation_stiffness: float
    elongation_damping: float
    actuation: np.ndarray
    gravity: np.ndarray

    def __post_init__(self) -> None:
        """Raises UserError for a number that is not allowed."""
        for name in ("radius", "rest_length", "mass", "bending_stiffness", "elongation_stiffness"):
            self._check(name, getattr(self, name), getattr(self, name) > 0.0, "above 0")
        for name in ("tip_mass", "bending_damping", "elongation_damping"):
            self._check(name, getattr(self, name), getattr(self, name) >= 0.0, "at least 0")

    @classmethod
    def of_robot(cls, robot: Robot) -> "ConstantCurvatureModel":
        """From a robot's geometry and material.

        Stiffnesses are those of the rod under constant strain, k_theta = E I / (L_0 r^2) and
        k_dL = E A / L_0, damping is stiffness times relaxation time; mass and damping of a rod that
        moves are better identified (`replace`).

        Raises:
            UserError: the robot has more than one segment with chambers.
        """
        robot.require_one_segment_of_chambers("constant curvature")
        radius, length = 0.5 * robot.outer_diameter, robot.length
        bending = 1.0 / (robot.bending_compliance * length * radius**2)
        elongation = 1.0 / (robot.dilatation_compliance * length)
        columns = [
            chamber.area
            * np.array(
                [
                    -chamber.lever_arm * np.cos(chamber.angle) / radius,
                    -chamber.lever_arm * np.sin(chamber.angle) / radius,
                    1.0,
                ]
            )
            for chamber in robot.chambers
        ]
        world_to_base = Rotation.from_euler("xyz", robot.base_orientation).as_matrix().T
        return cls(
            radius=radius,
            rest_length=length,
            mass=robot.density * robot.cross_section_area * length,
            tip_mass=robot.tip_mass,
            bending_stiffness=bending,
            bending_damping=bending * robot.relaxation_times[3],
            elongation_stiffness=elongation,
            elongation_damping=elongation * robot.relaxation_times[2],
            actuation=np.array(columns).T,
            gravity=world_to_base @ np.array([0.0, 0.0, -robot.gravity]),
        )

    def replace(self, **changes: Any) -> "ConstantCurvatureModel":
        """A copy with some numbers changed, checked again."""
        return dataclasses.replace(self, **changes)

    # -- base fixed -------------------------------------------------------------------------------

    def tip(self, q: np.ndarray) -> np.ndarray:
        """(..., 3) tip [m], f_EE of (1), in the frame of the arc's base."""
        return self.tip_and_jacobian(q)[0]

    def tip_and_jacobian(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tip (..., 3) [m] and its Jacobian (..., 3, 3) by q [-], f_EE and J of (1)."""
        still = np.zeros_like(q)
        position, jacobian, _ = point_motion(q, still, self.rest_length, self.radius, TIP)
        return position, jacobian

    def tip_velocity(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """(..., 3) velocity of the tip [m/s], (1)."""
        jacobian = self.tip_and_jacobian(q)[1]
        return (jacobian @ np.asarray(rate)[..., None])[..., 0]

    def rate_of_tip(self, q: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """(..., 3) rates q' [m/s] at which the tip has a velocity (..., 3) [m/s]."""
        jacobian = self.tip_and_jacobian(q)[1]
        return np.linalg.solve(jacobian, np.asarray(velocity)[..., None])[..., 0]

    def motion(
        self,
        q: np.ndarray,
        rate: np.ndarray,
        pressures: np.ndarray,
        bending_stiffness: np.ndarray | float | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Acceleration and base reaction, (4) to (7).

        Args:
            q, rate: (..., 3).
            pressures: (..., chambers) gauge [Pa].
            bending_stiffness: (...) k_theta [N/m] in the place of the model's.

        Returns:
            q'' (..., 3) [m/s^2] and tau_react (..., 6): force [N], then moment [N m] about the
            arc's base, that the ground puts on the robot; base frame.
        """
        force = self.internal_force(q, rate, bending_stiffness) + self.actuation_force(pressures)
        acceleration, reaction = kernels().fixed_base_motion(
            q, rate, force, self.rest_length, self.radius, self.mass, self.tip_mass, self.gravity,
            _WRENCH,
        )  # fmt: skip
        return acceleration, reaction

    def actuation_force(self, pressures: np.ndarray) -> np.ndarray:
        """(..., 3) generalised force tau_act [N] of gauge pressures (..., chambers) [Pa]."""
        force: np.ndarray = np.asarray(pressures) @ self.actuation.T
        return force

    def internal_force(
        self,
        q: np.ndarray,
        rate: np.ndarray,
        bending_stiffness: np.ndarray | float | None = None,
    ) -> np.ndarray:
        """(..., 3) generalised force [N] of springs and dampers."""
        stiffness = self.bending_stiffness if bending_stiffness is None else bending_stiffness
        force = np.empty(np.broadcast_shapes(np.shape(q), (*np.shape(stiffness), 3)))
        bending = np.asarray(stiffness)[..., None]
        force[..., :2] = -bending * q[..., :2] - self.bending_damping * rate[..., :2]
        force[..., 2] = -self.elongation_stiffness * q[..., 2]
        force[..., 2] -= self.elongation_damping * rate[..., 2]
        return force

    def mass_points(
        self, q: np.ndarray, rate: np.ndarray
    ) -> list[tuple[float, np.ndarray, np.ndarray, np.ndarray]]:
        """Of the centre of gravity and the tip: mass [kg], position (..., 3) [m], its Jacobian
        (..., 3, 3) by q [-] and the Jacobian's time derivative [1/s], in the arc's base frame."""
        return [
            (mass, *point_motion(q, rate, self.rest_length, self.radius, order))
            for mass, order in ((self.mass, CENTRE_OF_GRAVITY), (self.tip_mass, TIP))
        ]

    # -- base floating ----------------------------------------------------------------------------

    def inertia(self, q_f: np.ndarray) -> np.ndarray:
        """(9, 9) M of (2) and (3) at q_f = [x, y, z, alpha, beta, gamma, q_r] (9,).

        Cardan angles: R = Rx(alpha) Ry(beta) Rz(gamma), base to world; the paper does not say, and
        at the fixed base it does not matter.
        """
        return self._floating(q_f, np.zeros(9))[0]

    def coriolis(self, q_f: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """(9, 9) C at q_f (9,) and rate (9,): C @ rate are Coriolis and centrifugal forces."""
        return self._floating(q_f, rate)[1]

    def bias(self, q_f: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """(9,) b of (2) and (3): Coriolis, gravity and material forces."""
        _, coriolis, gravity = self._floating(q_f, rate)
        force = coriolis @ rate - gravity
        force[6:] -= self.internal_force(q_f[6:], rate[6:])
        return force

    def energy(self, q_f: np.ndarray, rate: np.ndarray) -> float:
        """Kinetic, gravitational and elastic energy [J] at q_f (9,), rate (9,)."""
        rotation, _, _ = _rotation(q_f[3:6])
        energy = 0.5 * rate @ self.inertia(q_f) @ rate
        for mass, position, _, _ in self.mass_points(q_f[6:], rate[6:]):
            energy -= mass * self.gravity @ (q_f[:3] + rotation @ position)
        stiffness = np.array([self.bending_stiffness] * 2 + [self.elongation_stiffness])
        return float(energy + 0.5 * stiffness @ q_f[6:] ** 2)

    def _floating(
        self, q_f: np.ndarray, rate: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """M (9, 9), C (9, 9) and the generalised force of gravity (9,)."""
        rotation, first, second = _rotation(q_f[3:6])
        first_rate = np.einsum("ijkl,j->ikl", second, rate[3:6])
        rotation_rate = np.einsum("ikl,i->kl", first, rate[3:6])
        inertia, coriolis, gravity = np.zeros((9, 9)), np.zeros((9, 9)), np.zeros(9)
        for mass, position, along, along_rate in self.mass_points(q_f[6:], rate[6:]):
            jacobian = np.hstack([np.eye(3), (first @ position).T, rotation @ along])
            jacobian_rate = np.hstack(
                [
                    np.zeros((3, 3)),
                    (first_rate @ position + first @ along @ rate[6:]).T,
                    rotation_rate @ along + rotation @ along_rate,
                ]
            )
            inertia += mass * jacobian.T @ jacobian
            coriolis += mass * jacobian.T @ jacobian_rate
            gravity += mass * jacobian.T @ self.gravity
        return inertia, coriolis, gravity

    @staticmethod
    def _check(name: str, value: float, good: bool, allowed: str) -> None:
        if not (good and np.isfinite(value)):
            raise UserError(f"{name}: {value} is not allowed: must be finite and {allowed}")


def _rotation(angles: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """R = Rx Ry Rz (3, 3), its derivatives (3, 3, 3) and second derivatives (3, 3, 3, 3)."""
    sines, cosines = np.sin(angles)[:, None, None], np.cos(angles)[:, None, None]
    squares = _GENERATORS @ _GENERATORS
    factors = np.eye(3) + sines * _GENERATORS + (1.0 - cosines) * squares

    def product(*differentiated: int) -> np.ndarray:
        result = np.eye(3)
        for axis in range(3):
            # a generator commutes with the rotation about its own axis
            for _ in range(differentiated.count(axis)):
                result = result @ _GENERATORS[axis]
            result = result @ factors[axis]
        return result

    first = np.array([product(i) for i in range(3)])
    second = np.array([[product(i, j) for j in range(3)] for i in range(3)])
    return product(), first, second
