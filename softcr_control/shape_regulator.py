"""A regulator of strains: P-satI-D with the model's feed-forward.

Valadas et al. (2024), Eqs. (11) and (12), after Pustina et al.:

    torque = g(q_d) + K q_d + K_p (q_d - q) - K_d q' + K_i int tanh(Upsilon (q_d - q)) dt.

Whatever tells M, C, g, K and D (`Lagrangian`) can be its model, a learned one among them.

The law is meant to be continuous. Strains of a light robot have so little inertia that K_d times a
velocity that is a millisecond old makes them diverge. `tick` is for a controller with a period: it
asks the model where the strains will be at the period's end, and takes proportional and derivative
terms there (stable proportional-derivative control, Tan, Liu and Turk, 2011).
"""

from dataclasses import dataclass, fields

import numpy as np

from softcr_models.errors import UserError
from softcr_models.model import Lagrangian


@dataclass(frozen=True, eq=False)
class RegulatorGains:
    """Gains of each of m strains.

    Attributes:
        proportional: (m,) K_p, torque per strain: larger is stiffer.
        integral: (m,) K_i, torque per second at full error; what remains of the feed-forward's
            error goes away so fast, and so slowly is a last setpoint forgotten.
        derivative: (m,) K_d, torque per rate.
        saturation: (m,) Upsilon, one over the error at which the integral grows no faster.
    """

    proportional: np.ndarray
    integral: np.ndarray
    derivative: np.ndarray
    saturation: np.ndarray

    def __post_init__(self) -> None:
        """Raises UserError for gains that are not allowed."""
        for field in fields(self):
            value = np.array(getattr(self, field.name), float)
            object.__setattr__(self, field.name, value)
            if value.shape != self.proportional.shape or value.ndim != 1:
                raise UserError(f"{field.name} {value.tolist()}: must have a gain for each strain")
            if not (np.isfinite(value) & (value >= 0.0)).all():
                raise UserError(f"{field.name} {value.tolist()}: must be finite and not below 0")


class ShapeRegulator:
    """The law with its integral.

    Attributes:
        model: that the feed-forward is of.
        gains: of the feedback.
        integral: (m,) of tanh(Upsilon (q_d - q)) [s].
    """

    def __init__(
        self, model: Lagrangian, gains: RegulatorGains, largest: np.ndarray | None = None
    ) -> None:
        """
        Args:
            model: that the feed-forward is of.
            gains: of the feedback.
            largest: (m,) torques that can be asked for; None: any.

        Raises:
            UserError: the model has another number of strains than the gains.
        """
        size = len(model.stiffness_matrix())
        if gains.proportional.shape != (size,):
            raise UserError(
                f"gains of {len(gains.proportional)} strains: the model has {size} strains"
            )
        self.model, self.gains = model, gains
        self._largest = np.full(size, np.inf) if largest is None else np.asarray(largest, float)
        self.integral = np.zeros(size)

    def reset(self) -> None:
        """Forgets the integral."""
        self.integral = np.zeros_like(self.integral)

    def feedforward(self, wanted: np.ndarray) -> np.ndarray:
        """(m,) torque that holds the strains wanted (m,), as the model has it."""
        held: np.ndarray = self.model.gravity_force(wanted) + self.model.stiffness_matrix() @ wanted
        return held

    def torque(self, q: np.ndarray, rate: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """(m,) Eq. (11) now, at strains q and rate (m,)."""
        gains = self.gains
        feedback = gains.proportional * (wanted - q) - gains.derivative * rate
        return self._limited(self.feedforward(wanted) + feedback + gains.integral * self.integral)

    def integrate(self, q: np.ndarray, wanted: np.ndarray, dt: float) -> None:
        """Eq. (12) over a time dt [s] at strains q (m,)."""
        self.integral = self.integral + dt * np.tanh(self.gains.saturation * (wanted - q))

    def tick(
        self, q: np.ndarray, rate: np.ndarray, wanted: np.ndarray, period: float
    ) -> np.ndarray:
        """(m,) torque to hold over a period [s]; then the integral goes on.

        Args:
            q, rate: (m,) strains now.
            wanted: (m,) strains.
            period: until the next tick [s].

        Raises:
            UserError: the period is not above 0, or the state is not finite.
        """
        if not 0.0 < period < np.inf:
            raise UserError(f"period {period} s: must be finite and above 0")
        if not (np.isfinite(q).all() and np.isfinite(rate).all() and np.isfinite(wanted).all()):
            raise UserError("regulator: strains, rates and wanted strains must be finite")
        model, gains, h = self.model, self.gains, period
        stiffness, damping = model.stiffness_matrix(), model.damping_matrix()
        constant = self.feedforward(wanted) + gains.integral * self.integral
        ahead = q + h * rate  # where the strains are at the period's end without acceleration
        torque = constant + gains.proportional * (wanted - ahead) - gains.derivative * rate
        resisting = model.coriolis(q, rate) @ rate + model.gravity_force(q)
        resisting = resisting + stiffness @ ahead + damping @ rate
        dampers = damping + np.diag(gains.derivative)
        springs = stiffness + np.diag(gains.proportional)
        effective = model.inertia(q) + h * dampers + h * h * springs
        acceleration = np.linalg.solve(effective, torque - resisting)
        torque = torque - h * (h * gains.proportional + gains.derivative) * acceleration
        self.integrate(q, wanted, h)
        return self._limited(torque)

    def _limited(self, torque: np.ndarray) -> np.ndarray:
        return np.clip(torque, -self._largest, self._largest)
