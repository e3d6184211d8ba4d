"""A trained network for inference: every constant multiplied into the weights beforehand.

Eager torch spends 0.1 ms and more on the many small operations of `DDPINN.advance`; a filter or a
small population then waits for the interpreter, not for the processor. Here a step is half of them.
"""

import torch

from softcr_models.surrogate.ddpinn import DDPINN, directions_of


class FoldedNetwork:
    """Steps of one period by a network with shared shapes, in coordinates over its saturation.

    In these coordinates z = y / c a step is A z + V s(... s(W tanh(z) + U d(z) + w) ...) + v, where
    s are the neurons, d the directions, and w and v hold what the network is told: affine in the
    pressures, constant over a rollout in the parameters.

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
            eye = torch.eye(size, device=linear.device)
            self._move = (eye + limit * linear[:, :size]).T.contiguous()
            self._enter = (limit * weight[:, :size]).T.contiguous()
            self._hidden = [
                (layer.get_parameter("weight").T.contiguous(), layer.get_parameter("bias").clone())
                for layer in others
            ]
            self._leave = (scale * network.last.weight[rows]).T.contiguous()
            left = linear[:, -1] + scale[:, 0] * network.last.bias[rows]
            # what is told acts on the first hidden layer and on the result
            told = slice(size, linear.shape[1] - 1)
            self._told = torch.cat((weight[:, told], linear[:, size:-1])).T.contiguous()
            self._directed = network.architecture.directions
            if self._directed:
                self._point = weight[:, told.stop :].T.contiguous()
                self._bend = (limit * network.bending[:, :-1]).T.contiguous()
                self._bent = network.bending[:, -1].clone()
            self._untold = torch.cat((bias, left))
        self._split = [len(bias), size]
        self._limit = limit

    def rollout(
        self,
        coordinates: torch.Tensor,
        begin: torch.Tensor,
        end: torch.Tensor,
        parameters: torch.Tensor,
    ) -> list[torch.Tensor]:
        """Coordinates (B, nx) of the network after each of T periods.

        Args:
            coordinates: (B, nx) or (1, nx) at first.
            begin, end: (T, B, m) pressures of each period [Pa], linear in between.
            parameters: (B, P) or (1, P).
        """
        pressures = self._network.tell_pressures(begin, end)
        known = self._network.tell_parameters(parameters).expand(len(begin[0]), -1)
        acting = pressures.shape[-1]
        still = torch.addmm(self._untold, known, self._told[acting:])
        z = coordinates.expand(len(begin[0]), -1) / self._limit
        activated = self._network.activated
        compliance = self._network.compliance_of(torch.cat((pressures[0], known), dim=-1))
        rolled = []
        for told in pressures:
            first, last = torch.addmm(still, told, self._told[:acting]).split(self._split, dim=1)
            entered = torch.addmm(first, torch.tanh(z), self._enter)
            if self._directed:
                bent = compliance * torch.addmm(self._bent, z, self._bend)
                entered.addmm_(directions_of(bent), self._point)
            hidden = activated(entered)
            for weight, bias in self._hidden:
                hidden = activated(torch.addmm(bias, hidden, weight))
            z = torch.addmm(last, z, self._move).addmm_(hidden, self._leave)
            rolled.append(z)
        return [self._limit * z for z in rolled]
