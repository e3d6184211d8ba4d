"""The tendon-driven arm in motion: Dalenberg's true system, (33) to (38).

Every body is a line of mass on its backbone (cross-sections have no rotary inertia, as in the
supervisor's public toolbox), a payload is a point at the tip. With J of each mass point,
M = sum m J^T J, and what Lagrange's equations leave beside M q'' and gravity is sum m J^T J' q',
exactly; the sum over a body is Gauss-Legendre quadrature. Elasticity is linear, E I / L_0 in
bending and E A / L_0 in elongation, damping is stiffness times relaxation time. Tendons and payload
act by virtual work, tau = B u and J_tip^T m (g - x'').
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.constant_curvature.kernel import kernels
from softcr_papers.constant_curvature.kinematics import ConstantCurvatureChain
from softcr_papers.dalenberg2024.arm import Arm


@dataclass(frozen=True)
class TendonGains:
    """PID loops that make the arm follow tendon lengths; defaults of the thesis, Appendix A.

    The thesis gives the gains times I_9, and not what they act on: tendons and model coordinates
    are nine both. In `tendon` space every tendon has a loop of its own, u = PID(y_d - y). In
    `configuration` space it is tau = PID(q_d - q) on the model's coordinates, which the tendons'
    lengths tell, q = B^-T y, and the forces u = B^-1 tau are what makes tau: together
    u = (B^T B)^-1 PID(y_d - y).

    Attributes:
        space: which.
        proportional: [N/m].
        integral: [N/(m s)].
        derivative: [N s/m].
        unilateral: whether tendons only pull; in the thesis's simulations they also push.
    """

    space: Literal["tendon", "configuration"] = "tendon"
    proportional: float = 750.0
    integral: float = 1.0
    derivative: float = 5.0
    unilateral: bool = False

    @property
    def numbers(self) -> np.ndarray:
        """(3,) proportional, integral, derivative."""
        return np.array([self.proportional, self.integral, self.derivative])


@dataclass(eq=False)
class ArmState:
    """Where an arm is and how it moves; `ArmDynamics.advance` changes it.

    Attributes:
        q, rate: (3 n,) coordinates [m], rates [m/s].
        integral: (a,) of the tendons' length errors [m s].
    """

    q: np.ndarray
    rate: np.ndarray
    integral: np.ndarray


class ArmDynamics:
    """Equations of motion of an arm with a payload. q and its rates are (3 n,) and may be batched.

    Attributes:
        arm: the data.
        payload: point mass at the tip [kg].
        chain: its kinematics.
        actuation: (3 n, a) B [-].
        stiffness, damping: (3 n,) diagonals [N/m], [N s/m].
    """

    def __init__(self, arm: Arm, payload: float = 0.0, quadrature: int = 5) -> None:
        """
        Args:
            arm: the data.
            payload: point mass at the tip [kg].
            quadrature: points per body; with five M of a body that bends by 1 rad is exact to 1e-9,
                with three to 1e-5.

        Raises:
            UserError: a negative payload.
        """
        if not 0.0 <= payload < np.inf:
            raise UserError(f"payload: {payload} kg is not allowed: at least 0")
        self.arm, self.payload = arm, payload
        self.chain: ConstantCurvatureChain = arm.chain
        # contiguous: the compiled steps multiply it by BLAS
        self.actuation = np.ascontiguousarray(arm.tendons().actuation(arm.rest_lengths))
        model = arm.tendons().actuation(arm.model_lengths)
        # from the loops' outputs to tendon forces, see TendonGains
        self._shaping = {
            "tendon": np.eye(model.shape[1]),
            "configuration": np.ascontiguousarray(np.linalg.pinv(model.T @ model)),
        }
        area = np.pi * arm.radius**2
        self._masses = arm.density * area * arm.rest_lengths
        bending = arm.youngs_modulus * 0.25 * area * arm.radius**2 / arm.rest_lengths
        elongation = arm.youngs_modulus * area / arm.rest_lengths
        self.stiffness = np.stack([bending, bending, elongation], axis=-1).ravel()
        self.damping = arm.relaxation_time * self.stiffness
        points, weights = np.polynomial.legendre.leggauss(quadrature)
        self._nodes, self._weights = 0.5 * (points + 1.0), 0.5 * weights
        self._gravity = np.array([0.0, 0.0, -arm.gravity])
        self._fixed = (
            self.actuation, arm.rest_lengths, self._masses, self.chain.radius, self.chain.base,
            self._gravity, self._nodes, self._weights,
        )  # fmt: skip

    def rest(self) -> ArmState:
        """Straight and still."""
        size, tendons = self.actuation.shape
        return ArmState(np.zeros(size), np.zeros(size), np.zeros(tendons))

    def inertia(self, q: np.ndarray) -> np.ndarray:
        """(..., 3 n, 3 n) M of (35) [kg]."""
        return self._terms(q, np.zeros_like(q), self._gravity)[0]

    def bias(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """(..., 3 n) C q' + G of (35) [N]."""
        return self._terms(q, rate, self._gravity)[1]

    def coriolis(self, q: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """(3 n, 3 n) C of (36), (37) at q (3 n,), rate (3 n,) [N s/m].

        C q' is a quadratic form in q'; its polarisation is the matrix of Christoffel symbols.
        """

        def form(rates: np.ndarray) -> np.ndarray:
            return self._terms(q, rates, np.zeros(3))[1]

        units = np.eye(len(q))
        return 0.5 * (form(rate + units) - form(rate) - form(units)).T

    def force(self, q: np.ndarray, rate: np.ndarray, tendons: np.ndarray) -> np.ndarray:
        """(..., 3 n) generalised force of tendons (..., a) [N], springs and dampers [N]."""
        pulled: np.ndarray = tendons @ self.actuation.T
        return pulled - self.stiffness * q - self.damping * rate

    def acceleration(self, q: np.ndarray, rate: np.ndarray, tendons: np.ndarray) -> np.ndarray:
        """(..., 3 n) q'' [m/s^2] under tendon forces (..., a) [N], negative where they pull."""
        inertia, bias = self._terms(q, rate, self._gravity)
        force = self.force(q, rate, tendons) - bias
        return np.linalg.solve(inertia, force[..., None])[..., 0]

    def energy(self, q: np.ndarray, rate: np.ndarray) -> float:
        """Kinetic, gravitational and elastic energy at q, rate (3 n,) [J]."""
        kinetic = 0.5 * rate @ self.inertia(q) @ rate
        lengths, bodies = self.arm.rest_lengths, len(self._masses)
        covered = np.tri(bodies, bodies, -1)[:, None] + np.eye(bodies)[:, None] * np.multiply.outer(
            self._nodes, np.ones(bodies)
        )
        places = self.chain.position(q, lengths, covered)  # (n, k, 3)
        masses = self._masses[:, None] * self._weights
        potential = -np.einsum("nk,nki,i->", masses, places, self._gravity)
        potential -= self.payload * self.chain.position(q, lengths) @ self._gravity
        return float(kinetic + potential + 0.5 * self.stiffness @ q**2)

    def advance(
        self,
        state: ArmState,
        reference: np.ndarray,
        seconds: float,
        gains: TendonGains | None = None,
        longest_step: float = 1e-3,
    ) -> np.ndarray:
        """Let the tendons follow a reference for some time; `state` changes.

        Args:
            state: of the arm.
            reference: (a,) wanted changes of tendon length, held [m].
            seconds: how long.
            gains: of the tendons' loops.
            longest_step: of the integration, first order [s].

        Returns:
            (a,) tendon forces at the end [N], negative where they pull.

        Raises:
            numpy.linalg.LinAlgError: the motion is no longer finite.
        """
        loop = gains or TendonGains()
        steps = max(1, int(np.ceil(seconds / longest_step - 1e-9)))
        forces: np.ndarray = kernels().arm_steps(
            state.q, state.rate, state.integral, np.asarray(reference, float),
            loop.numbers, self._shaping[loop.space], loop.unilateral, self.stiffness, self.damping,
            self.payload, *self._fixed, seconds / steps, steps,
        )  # fmt: skip
        return forces

    def rollout(
        self,
        states: np.ndarray,
        references: np.ndarray,
        parameters: np.ndarray,
        dt: float,
        substeps: int,
        gains: TendonGains,
    ) -> np.ndarray:
        """(B, T, 6 n + a) states after each step of many candidates; NaN where one diverged.

        Args:
            states: (B, 6 n + a), or (1, 6 n + a) for all: q, rate and integral of `ArmState`.
            references: (B, T + 1, a) wanted changes of tendon length at the grid points [m],
                linear in between.
            parameters: (B, 2), or (1, 2): factor of stiffness and damping [-], payload [kg] in the
                place of the arm's.
            dt: length of a step [s].
            substeps: of the integration per step, by the linearly implicit midpoint rule.
            gains: of the tendons' loops.
        """
        out = np.empty((len(references), references.shape[1] - 1, states.shape[1]))
        kernels().arm_rollout(
            states, references, parameters, gains.numbers, self._shaping[gains.space],
            gains.unilateral, self.stiffness, self.damping, *self._fixed, dt, substeps, out,
        )  # fmt: skip
        return out

    def static_force(
        self,
        q: np.ndarray,
        reference: np.ndarray,
        stiffness_factor: float,
        payload: float,
        gains: TendonGains,
    ) -> np.ndarray:
        """(..., 3 n) force [N] on the arm at rest at q: tendons, springs and weight; 0 if it stays.

        Args:
            q: (..., 3 n).
            reference: (a,) wanted changes of tendon length [m]; the integrals are 0.
            stiffness_factor, payload: as of `rollout`.
            gains: of the tendons' loops.
        """
        error = reference - q @ self.actuation
        forces = gains.proportional * error @ self._shaping[gains.space]
        if gains.unilateral:
            forces = np.minimum(forces, 0.0)
        weight = self._terms(q, np.zeros_like(q), self._gravity, payload)[1]
        force: np.ndarray = forces @ self.actuation.T - stiffness_factor * self.stiffness * q
        return force - weight

    def _terms(
        self,
        q: np.ndarray,
        rate: np.ndarray,
        gravity: np.ndarray,
        payload: float | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        terms: tuple[np.ndarray, np.ndarray] = kernels().arm_terms(
            q, rate, self.arm.rest_lengths, self._masses,
            self.payload if payload is None else payload, self.chain.radius, self.chain.base,
            gravity, self._nodes, self._weights,
        )  # fmt: skip
        return terms
