"""A simulated tendon-driven arm: what the simulator puts in the place of motors and cameras."""

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from softcr_models.constant_curvature.arm import Arm
from softcr_models.constant_curvature.arm_dynamics import ArmDynamics, TendonGains
from softcr_models.constant_curvature.kinematics import coverage_of
from softcr_simulation.plant import passes

_SETTLING = 3.0
"""The arm has sagged under its weight and payload before anybody looks [s]."""

_STEP = 2e-3
"""Longest step of the integration [s]; with twice of it a motion is 0.3 % off."""


@dataclass(frozen=True, eq=False)
class ArmMeasurement:
    """One sample of all sensors, with the truth behind it.

    Attributes:
        stamp: time of the sample [ns].
        poses: (r, 4, 4) measured poses of the racks, base to tip [m]; in the frame of the arm's
            base with the world's axes, as everything here.
        lengths: (a,) changes of tendon length against the zero state [m].
        forces: (a,) of the tendons [N], negative where they pull.
        q: (3 n,) true coordinates of the arm's bodies [m].
        true_tip_pose: (4, 4) of the arm's end [m].
    """

    stamp: int
    poses: np.ndarray
    lengths: np.ndarray
    forces: np.ndarray
    q: np.ndarray
    true_tip_pose: np.ndarray


class ArmPlant:
    """Bodies of constant curvature with a payload, tendon motors and cameras (Dalenberg, IV-C).

    The motors hold positions: each tendon follows the length that was asked for last, by the
    thesis's PID loops (see `TendonGains`), whether commands come or not.

    Attributes:
        arm: the data.
        command: (a,) lengths that the motors follow [m].
        dynamics: the equations of motion.
    """

    def __init__(
        self,
        arm: Arm,
        payload: float = 0.0,
        noise: float = 0.0,
        seed: int = 0,
        gains: TendonGains | None = None,
    ) -> None:
        """
        Args:
            arm: the data.
            payload: point mass at the tip [kg].
            noise: standard deviation of each coordinate of a measured position [m]. Orientations
                are off as if it were that of markers at the arm's surface: noise / radius [rad].
            seed: of the noise.
            gains: of the tendons' loops; None: in configuration space.

        Raises:
            UserError: a negative payload.
        """
        self.arm, self._noise, self._seed = arm, noise, seed
        self.dynamics = ArmDynamics(arm, payload)
        self._racks = coverage_of(np.array(arm.racks), arm.rest_lengths)
        self._gains = gains or TendonGains(space="configuration")
        self.reset()

    def reset(self) -> None:
        """Hanging still, with its tendons held at the zero state; the noise is seeded again."""
        self._random = np.random.default_rng(self._seed)
        self._state = self.dynamics.rest()
        self.command = np.zeros(len(self.arm.tendon_names))
        self.advance(_SETTLING)

    def follow(self, command: np.ndarray) -> None:
        """From now on the motors follow these lengths (a,) [m]."""
        self.command = np.array(command, float)

    def advance(self, duration: float) -> None:
        """Let `duration` [s] pass.

        Raises:
            ArithmeticError: the arm's motion left what numbers can hold.
            ValueError: time cannot pass so.
        """
        if not passes(duration):
            return
        try:
            self._forces = self.dynamics.advance(
                self._state, self.command, duration, self._gains, _STEP
            )
        except np.linalg.LinAlgError:
            raise ArithmeticError(
                f"the arm diverged at tendon lengths {self.command.tolist()} m"
            ) from None

    def measure(self, stamp: int) -> ArmMeasurement:
        """Read all sensors at `stamp` [ns]."""
        q, lengths = self._state.q, self.arm.rest_lengths
        chain = self.dynamics.chain
        seen = chain.pose(q, lengths, self._racks)
        for pose in seen:
            pose[:3, 3] += self._noise * self._random.standard_normal(3)
            turn = self._noise / self.arm.radius * self._random.standard_normal(3)
            pose[:3, :3] = pose[:3, :3] @ pin.exp3(turn)
        return ArmMeasurement(
            stamp=stamp,
            poses=seen,
            lengths=self.dynamics.actuation.T @ q,
            forces=self._forces.copy(),
            q=q.copy(),
            true_tip_pose=chain.pose(q, lengths),
        )
