"""A trained network for inference: every constant multiplied into the weights beforehand.

Eager torch spends 0.1 ms and more on the many small operations of `DDPINN.advance`; a filter or a
small population then waits for the interpreter, not for the processor. Here products that share a
factor are one product, and what a rollout knows from its beginning is one product for all steps.
"""

import math

import torch

from softcr_models.surrogate.ddpinn import DDPINN


class FoldedNetwork:
    """Steps of one period by a network with shared shapes, in coordinates over its saturation.

    In these coordinates z = y / c a step is A (z, p, 1) + V s(... s(W (p, 1, tanh(z), d(z))) ...),
    where s are the neurons, d the directions, and p is what the network is told. All that enters a
    step lies in one row (z, p, 1, tanh(z), d(z)), of which each product takes a part: constants
    beside the products would be copied and added.

    Args:
        network: trained; its weights are copied.

    Raises:
        ValueError: a network that says its own shapes has no such form.
    """

    def __init__(self, network: DDPINN) -> None:
        if network.architecture.shapes != "shared":
            raise ValueError("only networks with shared shapes can be folded")
        self._network = network
        size, limit = network.state_size, network.architecture.saturation
        rows = slice(-size, None)  # of the end of the step
        with torch.no_grad():
            linear = network.linear[rows] / limit
            first, *others = network.hidden
            weight, bias = first.get_parameter("weight"), first.get_parameter("bias")
            scale = network.output_scale[rows, None] / limit
            told = slice(size, linear.shape[1] - 1)
            bending = network.bending if network.architecture.directions else linear[:0, : size + 1]
            bending = bending / math.pi  # angles in half turns: see `_point`
            self._nodes = len(bending) // 2
            self._leave = (scale * network.last.weight[rows]).T.contiguous()
            left = linear[:, -1] + scale[:, 0] * network.last.bias[rows]
            eye = torch.eye(size, device=linear.device)
            # what is linear: the step's linear part, and the angles of the cross-sections
            of_state = torch.cat((eye + limit * linear[:, :size], limit * bending[:, :-1]))
            of_told = torch.cat((linear[:, told], linear.new_zeros(len(bending), told.stop - size)))
            of_one = torch.cat((left, bending[:, -1]))
            self._move = torch.cat((of_state, of_told, of_one[:, None]), dim=1).T.contiguous()
            across = slice(told.stop, told.stop + 2 * self._nodes)
            enters = [weight[:, told], bias[:, None], limit * weight[:, :size]]
            enters += [math.pi * weight[:, across], weight[:, across.stop :]]
            self._enter = torch.cat(enters, dim=1).T.contiguous()
            self._hidden = [
                (layer.get_parameter("weight").T.contiguous(), layer.get_parameter("bias").clone())
                for layer in others
            ]
        self._limit = limit

    @property
    def _size(self) -> int:
        return self._network.state_size

    def rollout(
        self,
        coordinates: torch.Tensor,
        begin: torch.Tensor,
        end: torch.Tensor,
        parameters: torch.Tensor,
    ) -> torch.Tensor:
        """Coordinates (T, B, nx) of the network after each of T periods.

        Args:
            coordinates: (B, nx) or (1, nx) at first.
            begin, end: (T, B, m) pressures of each period [Pa], linear in between.
            parameters: (B, P) or (1, P).
        """
        batch, size = len(begin[0]), self._size
        acting = self._network.tell_pressures(begin, end)
        known = self._network.tell_parameters(parameters)
        compliance = self._network.compliance_of(known)
        parts = [size, acting.shape[-1], known.shape[-1], 1, size, 3 * self._nodes]
        row = acting.new_ones((batch, sum(parts)))
        z, pressures, parameter, _, smooth, directions = row.split(parts, dim=1)
        linear = row[:, : len(self._move)]
        z.copy_(coordinates / self._limit)
        parameter.copy_(known)
        rolled = row.new_empty((len(begin), batch, size))
        for tick, out in enumerate(rolled):
            pressures.copy_(acting[tick])
            moved = torch.mm(linear, self._move)
            torch.tanh(z, out=smooth)
            if self._nodes:
                self._point(moved[:, size:], compliance, directions)
            hidden = self._network.activated(torch.mm(row[:, size:], self._enter))
            for weight, bias in self._hidden:
                hidden = self._network.activated(torch.addmm(bias, hidden, weight))
            z.copy_(torch.addmm(moved[:, :size], hidden, self._leave, out=out))
        return rolled.mul_(self._limit)

    def _point(self, angles: torch.Tensor, compliance: torch.Tensor, out: torch.Tensor) -> None:
        """`directions_of` angles (B, 2 n) in half turns per compliance; sines over pi."""
        nodes = self._nodes
        turned = (angles * compliance).view(-1, 2, nodes)
        bent = torch.hypot(turned[:, 0], turned[:, 1])
        across = out[:, : 2 * nodes].unflatten(1, (2, nodes))
        torch.mul(turned, torch.sinc(bent)[:, None], out=across)
        torch.cos(bent.mul_(math.pi), out=out[:, 2 * nodes :])
