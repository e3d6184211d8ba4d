"""The error of the self-loop in few operations: a quarter of what automatic differentiation does.

On a GPU an operation of a small batch takes as long as its launch. Here what the steps share is one
operation for all of them: what the network is told, the gradients of the weights, and everything in
the gradient that does not depend on the next step's.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from softcr_models.surrogate.ddpinn import DDPINN
from softcr_papers.licher2025.training.losses import error_size


def gathered_loop_error(
    network: DDPINN, first: torch.Tensor, states: torch.Tensor, told: torch.Tensor, distance: float
) -> torch.Tensor:
    """What `losses.loop_error` is, but for rounding; of a network with shared shapes."""
    compute, size, steps = network.compute_type, network.state_size, told.shape[1]
    later = told[:, 1:].transpose(0, 1)
    flat = later.reshape(-1, told.shape[-1])
    layer, *others = network.hidden
    weight, bias = layer.get_parameter("weight"), layer.get_parameter("bias")
    limit, beside = network.architecture.saturation, size + told.shape[-1]
    loop = _loop_of(network, later, flat)
    across = beside + 2 * loop.nodes
    enter = torch.cat(
        (limit * weight[:, :size], math.pi * weight[:, beside:across], weight[:, across:]), dim=1
    )
    known = weight[:, size:beside].to(compute)
    parts = torch.addmm(bias.to(compute), flat.to(compute), known.T)
    rows = slice(-size, None)  # of the end of the step
    scale = network.output_scale[rows]
    weights = [each.to(compute) for layer in others for each in (layer.weight, layer.bias)]
    weights += [
        (scale[:, None] * network.last.weight[rows]).to(compute),
        (scale * network.last.bias[rows]).to(compute),
    ]
    parts = parts.view(steps - 1, len(told), -1)
    rolled = _Rolled.apply(loop, first, parts, enter.to(compute), *weights)
    errors = (rolled - states[:, 2:].transpose(0, 1)) * network.weight
    return error_size(errors, distance).sum() / (len(told) * steps)


class _Loop(NamedTuple):
    """What is not trained.

    Attributes:
        activation: of the neurons.
        limit: of the coordinates, where they saturate.
        nodes: n, whose directions the network is told; 0 if it is not.
        move: (nx, nx + 2 n) from coordinates to where the linear part brings them, and to the
            angles of the cross-sections [half turns] per compliance.
        constants: (K, B, nx + 2 n) what is added to both in each step.
        compliance: (B, 1).
    """

    activation: str
    limit: float
    nodes: int
    move: torch.Tensor
    constants: torch.Tensor
    compliance: torch.Tensor


@torch.no_grad()
def _loop_of(network: DDPINN, told: torch.Tensor, flat: torch.Tensor) -> _Loop:
    """For steps told (K, B, k), which are the rows of `flat`, too."""
    size, rows = network.state_size, slice(-network.state_size, None)
    linear, compliance = network.linear[rows], told.new_zeros(())
    eye = torch.eye(size, device=linear.device)
    move, of_told, of_one = linear[:, :size] + eye, linear[:, size:-1], linear[:, -1]
    nodes = 0
    if network.architecture.directions:
        bending = network.bending / math.pi
        nodes = len(bending) // 2
        move, of_one = (
            torch.cat(both) for both in ((move, bending[:, :-1]), (of_one, bending[:, -1]))
        )
        of_told = torch.cat((of_told, of_told.new_zeros(2 * nodes, told.shape[-1])))
        parameters = 2 * len(network.inputs.actuation_scale)
        compliance = network.compliance_of(told[0, :, parameters:])
    constants = torch.addmm(of_one, flat, of_told.T).view(*told.shape[:2], -1)
    architecture = network.architecture
    return _Loop(
        architecture.activation, architecture.saturation, nodes, move.T, constants, compliance
    )


class _Rolled(torch.autograd.Function):
    """Coordinates (K, B, nx) after each of K steps, each from the one before."""

    @staticmethod
    def forward(
        ctx: Any,
        loop: _Loop,
        first: torch.Tensor,
        parts: torch.Tensor,
        enter: torch.Tensor,
        *weights: torch.Tensor,
    ) -> torch.Tensor:
        """Steps as in `softcr_models.surrogate.folded`.

        Args:
            loop: what is not trained.
            first: (B, nx) coordinates.
            parts: (K, B, h) what the first layer is told, multiplied by its weights.
            enter: (h, nx + 3 n) its weights of coordinates and directions.
            weights: pairs of weights and biases of the other layers, the last one's in coordinates.
        """
        size, nodes, compute = first.shape[1], loop.nodes, enter.dtype
        activated = _ACTIVATIONS[loop.activation][0]
        coordinates, rolled, moves, rows = first, [], [], []
        sums: list[list[torch.Tensor]] = [[] for _ in weights[::2]]  # of neurons, by layer
        for part, constant in zip(parts, loop.constants, strict=True):
            moved = torch.addmm(constant, coordinates, loop.move)
            row = [torch.tanh(coordinates / loop.limit)]
            if nodes:
                angles = (moved[:, size:] * loop.compliance).view(-1, 2, nodes)
                bent = torch.hypot(angles[:, 0], angles[:, 1])
                row += [(angles * torch.sinc(bent)[:, None]).flatten(1), torch.cos(math.pi * bent)]
            rows.append(torch.cat(row, dim=1).to(compute))
            hidden = torch.addmm(part, rows[-1], enter.T)
            for weight, bias, kept in zip(weights[::2], weights[1::2], sums, strict=True):
                kept.append(hidden)
                hidden = torch.addmm(bias, activated(hidden), weight.T)
            coordinates = moved[:, :size] + hidden
            rolled.append(coordinates)
            moves.append(moved)
        result = torch.stack(rolled)
        stacked = [torch.stack(each) for each in (moves, rows, *sums)]
        ctx.save_for_backward(first, result, enter, *weights, *stacked)
        ctx.loop = loop
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Of everything but what is not trained."""
        loop: _Loop = ctx.loop
        first, rolled, enter, *others = ctx.saved_tensors
        layers = len(others) // 3  # pairs, moves, rows, sums: 2 L + 2 + L
        weights, (moves, rows, *sums) = others[: 2 * layers], others[2 * layers :]
        activated, activated_backward = _ACTIVATIONS[loop.activation]
        size, nodes = first.shape[1], loop.nodes
        before = torch.cat((first[None], rolled[:-1]))
        slope = (1.0 - torch.tanh(before / loop.limit).square()) / loop.limit
        if nodes:
            angles = (moves[..., size:] * loop.compliance).unflatten(-1, (2, nodes))
            bent = torch.hypot(angles[..., 0, :], angles[..., 1, :])
            share, cosine = torch.sinc(bent), torch.cos(math.pi * bent)
            along = (cosine - share) / bent.square().clamp_min(1e-12)
            along = along[..., None, :] * angles
            # of the cosines: their row is not in half turns
            down = -(math.pi**2) * share
        (answered,) = gradients
        at_end = answered[-1]
        left: list[torch.Tensor] = []
        at_sums: list[list[torch.Tensor]] = [[] for _ in range(layers)]
        for step in reversed(range(len(rolled))):
            back = at_end.to(enter.dtype)
            left.append(back)
            for layer in reversed(range(layers)):
                back = activated_backward(back @ weights[2 * layer], sums[layer][step])
                at_sums[layer].append(back)
            entered = (back @ enter).to(at_end.dtype)
            moved = at_end
            if nodes:
                across = entered[:, size : size + 2 * nodes].unflatten(-1, (2, nodes))
                turned = (across * along[step]).sum(dim=1)
                turned = torch.addcmul(turned, entered[:, size + 2 * nodes :], down[step])
                bending = torch.addcmul(
                    across * share[step][:, None], angles[step], turned[:, None]
                )
                moved = torch.cat((at_end, bending.flatten(1) * loop.compliance), dim=1)
            at_end = moved @ loop.move.T
            if step > 0:
                at_end = at_end + answered[step - 1]
            at_end = torch.addcmul(at_end, entered[:, :size], slope[step])
        # the last step came first
        out, inner = torch.stack(left[::-1]), [torch.stack(each[::-1]) for each in at_sums]
        of_weights: list[torch.Tensor] = []
        for layer, after in enumerate((*inner[1:], out)):
            flat = after.flatten(0, 1)
            hidden = activated(sums[layer]).flatten(0, 1)
            of_weights += [flat.T @ hidden, flat.sum(dim=0)]
        of_enter = inner[0].flatten(0, 1).T @ rows.flatten(0, 1)
        return None, at_end, inner[0], of_enter, *of_weights


_ACTIVATIONS: dict[str, tuple[Callable[..., torch.Tensor], Callable[..., torch.Tensor]]] = {
    "gated": (
        torch.nn.functional.glu,
        lambda gradient, sums: torch.ops.aten.glu_backward(gradient, sums, -1),
    ),
    "silu": (torch.nn.functional.silu, torch.ops.aten.silu_backward),
}
"""Of the neurons: what they answer to their sums, and the gradient of the sums."""
