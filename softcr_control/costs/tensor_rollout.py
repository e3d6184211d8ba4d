"""What cost terms look at where the candidates are tensors on a device: `rollout` for torch."""

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import torch

from softcr_control.costs.rollout import CostTerm
from softcr_models.surrogate.ddpinn import DDPINN
from softcr_models.surrogate.tip_poses import TipPoses


@dataclass(frozen=True, eq=False)
class TensorRollout:
    """What `Rollout` is, on a device; for `residuals` of cost terms.

    Attributes:
        coordinates: (B, N, nx) predicted, in those of the network.
        commands: (B, N, m) [Pa].
        previous_command: (m,) [Pa].
        wanted_states: (N, nx), zeros where unknown.
        reference_known: (N,) 1 where the wanted state is known, else 0.
        reference_tip_positions: (N, 3) [m].
        wanted_tip_rotations: (N, 3, 3), zeros where unknown.
        bending_compliance: () [rad/(N m m)].
        network, poses: that coordinates belong to.
    """

    coordinates: torch.Tensor
    commands: torch.Tensor
    previous_command: torch.Tensor
    wanted_states: torch.Tensor
    reference_known: torch.Tensor
    reference_tip_positions: torch.Tensor
    wanted_tip_rotations: torch.Tensor
    bending_compliance: torch.Tensor
    network: DDPINN
    poses: TipPoses

    @cached_property
    def states(self) -> torch.Tensor:
        """(B, N, nx) predicted states."""
        return self.network.decode(self.coordinates)

    @cached_property
    def tip_poses(self) -> torch.Tensor:
        """(B, N, 3, 4) predicted tip poses, rotation beside position [m]."""
        poses = self.poses(self.coordinates.flatten(0, 1), self.bending_compliance)
        return poses.view(*self.coordinates.shape[:2], 3, 4)

    @cached_property
    def command_path(self) -> torch.Tensor:
        """(B, N + 1, m) the command active before, then `commands` [Pa]."""
        first = self.previous_command.expand_as(self.commands[:, :1])
        return torch.cat((first, self.commands), dim=1)


def with_tensors(term: CostTerm, device: torch.device) -> CostTerm:
    """The same term, its arrays as tensors, so that its residuals can be asked on a device."""
    arrays = {
        field.name: torch.as_tensor(value, dtype=torch.float32, device=device)
        for field in fields(term)  # type: ignore[arg-type]
        if isinstance(value := getattr(term, field.name), np.ndarray)
    }
    return replace(term, **arrays)  # type: ignore[type-var]
