"""One tick of A-PCC: sensor poses and a target in, tendon differentials out (thesis, III, IV)."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.constant_curvature.kernel import kernels
from softcr_papers.constant_curvature.kinematics import ConstantCurvatureChain, coverage_of
from softcr_papers.dalenberg2024.apcc.adaptation import Adaptation, adapted
from softcr_papers.dalenberg2024.apcc.inference import Inference, infer
from softcr_papers.dalenberg2024.apcc.inverse_kinematics import (
    elongation_descent,
    limited,
    task_rate,
)
from softcr_papers.dalenberg2024.apcc.settings import ApccSettings
from softcr_papers.dalenberg2024.regressor import regressor
from softcr_papers.dalenberg2024.tendons import Tendons


class WindowVelocity:
    """Rates from the last few configurations."""

    def __init__(self, window: int, order: int) -> None:
        """
        Args:
            window: how many configurations are looked at, more than `order`.
            order: of the polynomial, at least 1.
        """
        self._order = order
        self._stamps: deque[float] = deque(maxlen=window)
        self._configurations: deque[np.ndarray] = deque(maxlen=window)

    def add(self, stamp: float, configuration: np.ndarray) -> np.ndarray:
        """(3 n,) rate [m/s] with the newest configuration (3 n,) [m], at `stamp` [s].

        Zero until the window is full.
        """
        self._stamps.append(stamp)
        self._configurations.append(configuration)
        if len(self._stamps) < (self._stamps.maxlen or 0):
            return np.zeros_like(configuration)
        times = np.array(self._stamps) - stamp
        scale = -times[0]
        powers = np.vander(times / scale, self._order + 1, increasing=True)
        rate: np.ndarray = np.linalg.pinv(powers)[1] @ np.array(self._configurations) / scale
        return rate

    def forget(self) -> None:
        """Begin anew, after a jump in time or in the model."""
        self._stamps.clear()
        self._configurations.clear()


@dataclass(frozen=True, eq=False)
class ApccCommand:
    """What a tick decides, and what it knows.

    Attributes:
        configuration: (3 n,) commanded, q_d [m].
        rate: (3 n,) with which it was reached, (16) [m/s].
        tendons: (a,) wanted changes of tendon length, (49) [m].
        rest_lengths: (n,) estimates after the tick [m].
        error: (3,) target minus tip [m].
        inference: what the sensors said.
        adaptation: whether bounds were at work.
    """

    configuration: np.ndarray
    rate: np.ndarray
    tendons: np.ndarray
    rest_lengths: np.ndarray
    error: np.ndarray
    inference: Inference
    adaptation: Adaptation


class Apcc:
    """Adaptive inverse kinematics of a constant-curvature model of any number of sections.

    controller = Apcc(chain, rest_lengths, sensors, tendons, settings)
    command = controller.tick(stamp, poses, target)

    """

    def __init__(
        self,
        chain: ConstantCurvatureChain,
        rest_lengths: np.ndarray,
        sensors: np.ndarray,
        tendons: Tendons,
        settings: ApccSettings | None = None,
    ) -> None:
        """
        Args:
            chain: the model, with the base's pose.
            rest_lengths: (n,) where the estimates start [m].
            sensors: (n_s,) material abscissae of the sensors; the last is the tip's [m].
            tendons: of the arm, by material abscissae.
            settings: of the control law.

        Raises:
            UserError: lengths or gains that do not fit the chain.
        """
        self.settings = settings or ApccSettings()
        self._chain, self._tendons = chain, tendons
        self._sensors, self._initial = np.array(sensors, float), np.array(rest_lengths, float)
        if self._initial.shape != (chain.sections,) or not (self._initial > 0.0).all():
            raise UserError(
                f"rest_lengths: {self._initial.tolist()} m: must be {chain.sections} above 0"
            )
        gains = len(self.settings.adaptation.gains)
        if gains not in (1, chain.sections):
            raise UserError(f"adaptation gains: {gains} given: must be 1 or {chain.sections}")
        self._velocity = WindowVelocity(self.settings.window, self.settings.order)
        kernels()  # no tick may wait for a compiler
        self.start()

    def start(self, configuration: np.ndarray | None = None) -> None:
        """Begin anew with the initial lengths, at a configuration (3 n,) [m]; default straight."""
        start = np.zeros(3 * self._chain.sections) if configuration is None else configuration
        self._commanded, self._inferred = np.array(start, float), np.array(start, float)
        self.rest_lengths = self._initial.copy()
        self._stamp: float | None = None
        self._velocity.forget()

    def pause(self) -> None:
        """Let no time pass until the next tick, which only looks: after a gap in what was seen."""
        self._stamp = None
        self._velocity.forget()

    def tick(
        self,
        stamp: float,
        poses: np.ndarray,
        target: np.ndarray,
        target_velocity: np.ndarray | None = None,
        true_configuration: np.ndarray | None = None,
    ) -> ApccCommand:
        """Answer what the sensors see.

        The first tick after `start` or `pause` only looks: time begins with it.

        Args:
            stamp: when the poses were seen [s].
            poses: (n_s, 4, 4) of the sensors [m].
            target: (3,) x_d [m].
            target_velocity: (3,) x_d' [m/s]; default at rest.
            true_configuration: (3 n,) q [m], for jacobian_state "true" alone.
        """
        settings = self.settings
        dt = 0.0 if self._stamp is None else stamp - self._stamp
        self._stamp = stamp
        coverage = coverage_of(self._sensors, self.rest_lengths)
        inference = infer(
            self._chain, self.rest_lengths, coverage, poses, self._inferred, settings.inference
        )
        self._inferred = inference.configuration
        inferred_rate = self._velocity.add(stamp, inference.configuration)
        error = target - self._tip(poses)
        wanted = settings.gain * error
        if target_velocity is not None:
            wanted = wanted + target_velocity
        state = self._jacobian_state(true_configuration)
        rate = self._rate(state, wanted)
        if settings.jacobian_state == "true":
            moving = state, rate
        else:
            moving = inference.configuration, inferred_rate
        y, _ = regressor(self._chain, *moving)
        adaptation = adapted(self.rest_lengths, y, error, dt, settings.adaptation)
        self._commanded = self._commanded + dt * rate
        self.rest_lengths = adaptation.rest_lengths
        tendons = self._tendons.actuation(self.rest_lengths, self._chain.radius).T
        return ApccCommand(
            configuration=self._commanded,
            rate=rate,
            tendons=tendons @ self._commanded,
            rest_lengths=self.rest_lengths,
            error=error,
            inference=inference,
            adaptation=adaptation,
        )

    def _tip(self, poses: np.ndarray) -> np.ndarray:
        """(3,) the tip of (13) [m]; the model's is what the sensors and the lengths say it is."""
        if self.settings.tip_source == "sensor":
            return poses[-1, :3, 3]
        return self._chain.position(self._inferred, self.rest_lengths)

    def _rate(self, state: np.ndarray, tip_velocity: np.ndarray) -> np.ndarray:
        settings = self.settings
        jacobian = self._chain.position_jacobian(state, self.rest_lengths)
        secondary = elongation_descent(state, settings.null_space_gain, settings.objective)
        return limited(task_rate(jacobian, tip_velocity, secondary), settings.fastest)

    def _jacobian_state(self, true_configuration: np.ndarray | None) -> np.ndarray:
        mode = self.settings.jacobian_state
        if mode == "true":
            if true_configuration is None:
                raise UserError("jacobian_state true: needs the true configuration at every tick")
            return true_configuration
        return self._commanded if mode == "commanded" else self._inferred
