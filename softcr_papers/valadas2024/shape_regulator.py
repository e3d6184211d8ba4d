"""A regulator of strains: P-satI-D with the model's feed-forward.

Valadas et al. (2024), Eqs. (11) and (12), after Pustina et al.:

    torque = g(q_d) + K q_d + K_p (q_d - q) - K_d q' + K_i int tanh(Upsilon (q_d - q)) dt.

Whatever tells M, C, g, K and D (`Lagrangian`) can be its model, a learned one among them.

The law is meant to be continuous. Strains of a light robot have so little inertia that K_d times a
velocity that is a millisecond old makes them diverge, and an integral that is half a period old
makes them swing. `tick` is for a controller with a period: it asks the model where the strains will
be at the period's end, and takes all three terms there. For the proportional and the derivative
one that is stable proportional-derivative control (Tan, Liu and Turk, 2011).
"""

from dataclasses import dataclass, fields

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.valadas2024.lagrangian import Lagrangian


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
        """(m,) torque to hold over a period [s] that begins now.

        Args:
            q, rate: (m,) strains now.
            wanted: (m,) strains.
            period: until the next tick, and since the last one [s].

        Raises:
            UserError: the period is not above 0, or the state is not finite.
        """
        self.integrate(q, wanted, period)
        return self.held_torque(q, rate, wanted, period, self.integral)

    def held_torque(
        self,
        q: np.ndarray,
        rate: np.ndarray,
        wanted: np.ndarray,
        period: float,
        integral: np.ndarray,
    ) -> np.ndarray:
        """(m,) torque to hold over a period [s], its terms taken at the period's end.

        The motion until then is the model's, linear in the torque: an implicit Euler step. The
        integral there is extrapolated for this torque alone; what is kept is that of strains that
        were measured, so that a model's error leaves no lasting error.

        Args:
            q, rate: (m,) strains when the period begins.
            wanted: (m,) strains.
            period: [s].
            integral: (m,) when the period begins [s].

        Raises:
            UserError: as `tick`.
        """
        if not 0.0 < period < np.inf:
            raise UserError(f"period {period} s: must be finite and above 0")
        if not (np.isfinite(q).all() and np.isfinite(rate).all() and np.isfinite(wanted).all()):
            raise UserError("regulator: strains, rates and wanted strains must be finite")
        model, gains, h = self.model, self.gains, period
        stiffness, damping = model.stiffness_matrix(), model.damping_matrix()
        ahead = q + h * rate  # where the strains are at the period's end without acceleration
        bent = np.tanh(gains.saturation * (wanted - ahead))
        # of -torque by the strains at the period's end: proportional, and that of the integral
        slopes = gains.proportional + h * gains.integral * gains.saturation * (1.0 - bent**2)
        torque = self.feedforward(wanted) + gains.integral * (integral + h * bent)
        torque = torque + gains.proportional * (wanted - ahead) - gains.derivative * rate
        resisting = model.coriolis(q, rate) @ rate + model.gravity_force(q)
        resisting = resisting + stiffness @ ahead + damping @ rate
        dampers = damping + np.diag(gains.derivative)
        effective = model.inertia(q) + h * dampers + h * h * (stiffness + np.diag(slopes))
        acceleration = np.linalg.solve(effective, torque - resisting)
        return self._limited(torque - h * (h * slopes + gains.derivative) * acceleration)

    def _limited(self, torque: np.ndarray) -> np.ndarray:
        return np.clip(torque, -self._largest, self._largest)
