"""Muon and Adam without a look at a value: what a CUDA graph can record.

Those of torch read the learning rate on the host, and a step that must not be done is left out by
the host. Here both stand on the device. All matrices are one batch and all other parameters one
vector, because small kernels cost what their number is, whatever they compute.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch

# as torch.optim.Muon has them
_MOMENTUM, _SERIES_STEPS, _TINY = 0.95, 5, 1e-7
_SERIES = 3.4445, -4.7750, 2.0315


class DeviceOptimiser(torch.optim.Optimizer):
    """What both have in common.

    Attributes:
        rate: () the learning rate that steps have, on the device of the parameters.
    """

    def __init__(self, parameters: Sequence[torch.nn.Parameter], rate: float) -> None:
        """Of parameters on one device."""
        super().__init__(parameters, {"lr": rate})
        self._parameters = tuple(parameters)
        self.rate = torch.zeros((), device=parameters[0].device)

    def tell_rate(self) -> None:
        """Brings the learning rate that a schedule has set to the device."""
        self.rate.fill_(self.param_groups[0]["lr"])

    def step_where(self, good: torch.Tensor) -> None:
        """A step with the gradients of the parameters, where `good` (), a truth value, is true;
        nothing is changed where it is false."""
        raise NotImplementedError

    @property
    def _memory(self) -> dict[str, Any]:
        """What is kept from step to step, with the first parameter, where checkpoints find it."""
        return self.state[self._parameters[0]]

    def _gradients(self) -> list[torch.Tensor]:
        return [each.grad for each in self._parameters if each.grad is not None]


class DeviceMuon(DeviceOptimiser):
    """`torch.optim.Muon` without weight decay, of matrices."""

    def __init__(self, matrices: Sequence[torch.nn.Parameter], rate: float) -> None:
        super().__init__(matrices, rate)
        rows = max(min(each.shape) for each in matrices)
        columns = max(max(each.shape) for each in matrices)
        batch = matrices[0].new_zeros(len(matrices), rows, columns)
        self._memory["momentum"] = batch.detach()

    @torch.no_grad()
    def step_where(self, good: torch.Tensor) -> None:
        momentum = self._memory["momentum"]
        gradients = torch.zeros_like(momentum)
        for place, each in zip(self._places(gradients), self._gradients(), strict=True):
            place.copy_(each)
        changed = momentum.lerp(gradients, 1.0 - _MOMENTUM)
        moves = orthogonal(gradients.lerp(changed, _MOMENTUM)).to(momentum.dtype)
        momentum.copy_(torch.where(good, changed, momentum))
        moves = torch.where(good, self.rate * moves, 0.0)
        for move, matrix in zip(self._places(moves), self._parameters, strict=True):
            rows, columns = matrix.shape
            matrix.sub_(move, alpha=math.sqrt(max(1.0, rows / columns)))

    def _places(self, batch: torch.Tensor) -> list[torch.Tensor]:
        """Where the matrices lie in a batch (M, R, C): the corner, high ones on their side."""
        places = []
        for part, matrix in zip(batch, self._parameters, strict=True):
            rows, columns = matrix.shape
            lies = part[:columns, :rows].T if rows > columns else part[:rows, :columns]
            places.append(lies)
        return places


class DeviceAdam(DeviceOptimiser):
    """`torch.optim.Adam`, of parameters of any shape."""

    def __init__(
        self,
        parameters: Sequence[torch.nn.Parameter],
        rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        super().__init__(parameters, rate)
        self._betas, self._sizes = betas, [each.numel() for each in parameters]
        vector = parameters[0].detach().new_zeros(sum(self._sizes))
        self._memory.update(steps=vector.new_zeros(()), mean=vector, square=vector.clone())

    @torch.no_grad()
    def step_where(self, good: torch.Tensor) -> None:
        memory, (first, second) = self._memory, self._betas
        gradient = torch.cat([each.flatten() for each in self._gradients()])
        steps = memory["steps"] + 1.0
        mean = memory["mean"].lerp(gradient, 1.0 - first)
        square = memory["square"].lerp(gradient.square(), 1.0 - second)
        size = (square / (1.0 - second**steps)).sqrt() + 1e-8
        moves = self.rate / (1.0 - first**steps) * (mean / size)
        for name, new in (("steps", steps), ("mean", mean), ("square", square)):
            memory[name].copy_(torch.where(good, new, memory[name]))
        moves = torch.where(good, moves, 0.0)
        for move, each in zip(moves.split(self._sizes), self._parameters, strict=True):
            each.sub_(move.view_as(each))


def orthogonal(matrices: torch.Tensor) -> torch.Tensor:
    """(M, R, C) in bfloat16: matrices, R <= C, whose singular values were all brought near one.

    Zeros that a matrix was filled up with stay zeros. As in `torch.optim.Muon` by five steps of a
    quintic polynomial, which leaves singular values between 0.5 and 1.5.
    """
    linear, cubic, quintic = _SERIES
    x = matrices.bfloat16()
    x = x / torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True).clamp_min(_TINY)
    for _ in range(_SERIES_STEPS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=cubic, alpha=quintic), x,
                          beta=linear)  # fmt: skip
    return x
