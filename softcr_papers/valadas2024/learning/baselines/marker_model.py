"""A network with its units, and the motion that it predicts."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from softcr_models.errors import UserError
from softcr_papers.valadas2024.learning.baselines.marker_motion import MarkerMotion

POSE_SCALE = (0.15, 0.15, 5.0)
"""Of x, y [m] and theta [rad], as in the authors' public code."""

TIME_SCALE = 0.05
"""[s]; rates and accelerations of the training data are about one in this unit, which is ours."""


@dataclass(frozen=True)
class Units:
    """What is one in the network.

    Attributes:
        pose: of each coordinate [m, m, rad, ...].
        time: [s].
        torque: of each torque [N m, N, N, ...].
    """

    pose: tuple[float, ...]
    time: float
    torque: tuple[float, ...]


def units_of(motion: MarkerMotion) -> Units:
    """Units in which a motion's torques have a deviation of one."""
    markers = motion.poses.shape[-1] // 3
    torque = motion.torques.reshape(-1, motion.torques.shape[-1]).std(axis=0)
    if not (torque > 0.0).all():
        raise UserError("motion: a torque never changes; drive all strains and record again")
    return Units(POSE_SCALE * markers, TIME_SCALE, tuple(torque.tolist()))


@dataclass(frozen=True, eq=False)
class MarkerModel:
    """A network of accelerations that are held for a step.

    Over a step v' = v + h a(x, v, u) and x' = x + h (v + v') / 2. The same steps are learned and
    predicted with: equations of motion of a strain model are so stiff that a network of true
    accelerations diverges in explicit steps of a millisecond.

    Attributes:
        network: (x, v, u) -> acceleration, in units.
        units: of it.
        period: of a step [s].
    """

    network: nn.Module
    units: Units
    period: float

    @property
    def step(self) -> float:
        """Of time, in units."""
        return self.period / self.units.time

    def scaled(self, motion: MarkerMotion) -> tuple[Tensor, Tensor, Tensor]:
        """Poses, rates and torques (R, T, .) in units, in the network's precision."""
        pose = np.array(self.units.pose)
        kind = next(self.network.parameters()).dtype
        x, v = motion.poses / pose, motion.rates * (self.units.time / pose)
        u = motion.torques / np.array(self.units.torque)
        scaled = (torch.from_numpy(each).to(kind) for each in (x, v, u))
        return tuple(scaled)  # type: ignore[return-value]

    def advance(self, x: Tensor, v: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        """Pose and rate (B, .) after a step, in units."""
        change = self.step * self.network(x, v, u)
        return x + self.step * (v + 0.5 * change), v + change

    def predict(self, begin: np.ndarray, rates: np.ndarray, torques: np.ndarray) -> np.ndarray:
        """(R, T + 1, 3 N) poses at the start and after each torque [m, m, rad].

        A motion that becomes infinite is NaN from there on.

        Args:
            begin, rates: (R, 3 N) pose and rate at the start.
            torques: (R, T, n) each held for a period.
        """
        motion = MarkerMotion(begin[:, None], rates[:, None], torques, self.period)
        x, v, u = self.scaled(motion)
        now, moving, found = x[:, 0], v[:, 0], [x[:, 0]]
        with torch.no_grad():
            for k in range(u.shape[1]):
                now, moving = self.advance(now, moving, u[:, k])
                found.append(now)
                if not torch.isfinite(now).all(dim=1).any():
                    break
        found += [torch.full_like(now, torch.nan)] * (u.shape[1] + 1 - len(found))
        poses = torch.stack(found, dim=1).double().numpy() * np.array(self.units.pose)
        finite = np.logical_and.accumulate(np.isfinite(poses).all(axis=2, keepdims=True), axis=1)
        return np.where(finite, poses, np.nan)
