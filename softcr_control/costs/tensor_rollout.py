"""What cost terms look at where the candidates are tensors on a device: `rollout` for torch."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch

from softcr_control.costs.keep_away import KeepAway
from softcr_control.costs.output_error import OutputError
from softcr_control.costs.term import CostTerm
from softcr_models.cuda.device_model import DeviceFutures
from softcr_models.errors import UserError
from softcr_models.model import TIP


@dataclass(frozen=True, eq=False)
class TensorRollout:
    """What `Rollout` is, on a device; for `residuals` of cost terms.

    Attributes:
        futures: states and tip poses of the candidates.
        commands: (B, N, m) [unit of the inputs].
        previous_command: (m,).
        wanted_states: (N, nx), zeros where unknown.
        reference_known: (N,) 1 where the wanted state is known, else 0.
        reference_tip_positions: (N, 3) [m].
        wanted_tip_rotations: (N, 3, 3), zeros where unknown.
        orientation_known: (N,) 1 where the wanted orientation is known, else 0.
        wanted_tip_directions: (N, 3) third axes that are asked for, zeros where none is.
        direction_asked: (N,) 1 where one is asked for, else 0.
        delay: () ticks from the estimate to the first of `commands`.
    """

    futures: DeviceFutures
    commands: torch.Tensor
    previous_command: torch.Tensor
    wanted_states: torch.Tensor
    reference_known: torch.Tensor
    reference_tip_positions: torch.Tensor
    wanted_tip_rotations: torch.Tensor
    orientation_known: torch.Tensor
    wanted_tip_directions: torch.Tensor
    direction_asked: torch.Tensor
    delay: torch.Tensor

    @property
    def states(self) -> torch.Tensor:
        """(B, N, nx) predicted states."""
        return self.futures.states

    @property
    def tip_poses(self) -> torch.Tensor:
        """(B, N, 3, 4) predicted tip poses, rotation beside position [m]."""
        return self.futures.tip_poses

    def output(self, name: str) -> torch.Tensor:
        """(B, N, 3, 4) the tip; there is no other output on a device.

        Raises:
            UserError: any other name.
        """
        if name != TIP:
            raise UserError(f"controller: on a GPU there is no output {name!r}, only {TIP!r}")
        return self.tip_poses

    @cached_property
    def command_path(self) -> torch.Tensor:
        """(B, N + 1, m) the command active before, then `commands`."""
        first = self.previous_command.expand_as(self.commands[:, :1])
        return torch.cat((first, self.commands), dim=1)


def with_tensors(term: CostTerm, device: torch.device) -> CostTerm:
    """The same term, its arrays as tensors, so that its residuals can be asked on a device.

    Raises:
        UserError: the term looks at what no device computes.
    """
    for kind, field in ((OutputError, "outputs"), (KeepAway, "obstacles")):
        if isinstance(term, kind):
            raise UserError(f"costs.{field}: none on a GPU; allowed on the device cpu")
    tensors = {
        name: torch.as_tensor(value, dtype=torch.float32, device=device)
        for name, value in term.arrays.items()
    }
    return replace(term, **tensors)  # type: ignore[arg-type]
