"""A step of the exact rod that torch can differentiate through: for learners and optimisers."""

from typing import Any

import numpy as np
import torch

from softcr_models.arguments import ArgumentError
from softcr_models.rod.cosserat_rod import CosseratRod


def rod_step(
    rod: CosseratRod,
    states: torch.Tensor,
    begin: torch.Tensor,
    end: torch.Tensor,
    parameters: torch.Tensor,
    dt: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """States after a step, and the tip's poses there, with exact gradients by all four arguments.

    The gradients are those of the computed step, see `CosseratRod.linearize_step`: forward mode,
    so a step costs one Jacobian per candidate, whatever is asked of it later.

    Args:
        rod: which.
        states: (B, nx) float64 on the processor.
        begin, end: (B, m) inputs at begin and end of the step, linear in between [Pa, N].
        parameters: (B, P).
        dt: at most 18 ms, one linearisation [s].

    Returns:
        (B, nx) states and (B, 3, 4) poses of the tip, rotation beside position [m].

    Raises:
        UserError: a wrong shape, type or sign, or a dt out of range.
    """
    given = {"states": states, "begin": begin, "end": end, "parameters": parameters}
    for name, values in given.items():
        if values.dtype != torch.float64 or values.device.type != "cpu":
            raise ArgumentError(
                f"rod_step: {name} of {values.dtype} on {values.device}: allowed is torch.float64 "
                "on cpu"
            )
        if values.ndim != 2 or len(values) != len(states):
            raise ArgumentError(
                f"rod_step: {name} of shape {tuple(values.shape)}: allowed is ({len(states)}, ...)"
            )
    after, tips = _RodStep.apply(rod, dt, *given.values())
    return after, tips


class _RodStep(torch.autograd.Function):
    """Keeps the Jacobians of the forward pass for the backward one."""

    @staticmethod
    def forward(ctx: Any, rod: CosseratRod, dt: float, *arguments: torch.Tensor) -> Any:
        rows = zip(*(each.detach().numpy() for each in arguments), strict=True)
        steps = [rod.linearize_step(x, u, v, dt, p) for x, u, v, p in rows]
        for name in ("state", "begin", "end", "parameters"):
            of_state = np.stack([getattr(step, f"by_{name}") for step in steps])
            of_tip = np.stack([getattr(step, f"tip_by_{name}") for step in steps])
            setattr(ctx, name, (torch.from_numpy(of_state), torch.from_numpy(of_tip)))
        after = torch.from_numpy(np.stack([step.state for step in steps]))
        return after, torch.from_numpy(np.stack([step.tip for step in steps]))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        of_states, of_tips = gradients
        found = []
        for name in ("state", "begin", "end", "parameters"):
            by_state, by_tip = getattr(ctx, name)
            total = torch.einsum("bi,bij->bj", of_states, by_state)
            found.append(total + torch.einsum("bkl,bklj->bj", of_tips, by_tip))
        return None, None, *found
