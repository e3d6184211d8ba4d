"""Networks (x, v, u) -> acceleration of markers, in scaled units.

Valadas et al. (2024), Section IV-D. What the paper does not print (activations of V, shifts of the
Cholesky factors, first values) is as in the authors' public code.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from softcr_models.errors import UserError

_LEAST = 2e-6  # on the diagonal of the Cholesky factor


def entry_count(size: int) -> int:
    """How many entries a lower triangle has."""
    return size * (size + 1) // 2


def cholesky_factor(entries: Tensor, size: int, shift: float = 0.0) -> Tensor:
    """(..., size, size) lower triangle with a positive diagonal.

    Args:
        entries: (..., size (size + 1) / 2): the diagonal, which passes through softplus, then what
            is below it.
        size: of the matrix.
        shift: added to the diagonal.
    """
    return _triangle(softplus(entries[..., :size]) + (shift + _LEAST), entries[..., size:], size)


def cholesky_change(entries: Tensor, change: Tensor, size: int) -> Tensor:
    """(..., size, size) how `cholesky_factor` changes with its entries, along `change`."""
    slope = torch.sigmoid(entries[..., :size]) * change[..., :size]
    return _triangle(slope, change[..., size:], size)


def _triangle(diagonal: Tensor, below: Tensor, size: int) -> Tensor:
    given = torch.cat([diagonal, below, torch.zeros_like(diagonal[..., :1])], dim=-1)
    return given[..., _places(size)].unflatten(-1, (size, size))


@cache
def _places(size: int) -> Tensor:
    """(size^2,) of each element of the square among diagonal, elements below it, and a zero."""
    place = torch.full((size, size), entry_count(size))
    place.diagonal().copy_(torch.arange(size))
    row, column = torch.tril_indices(size, size, -1)
    place[row, column] = torch.arange(size, entry_count(size))
    return place.ravel()


class PositiveMatrix(nn.Module):
    """A constant matrix L L^T."""

    def __init__(self, size: int, scale: float = 1.0) -> None:
        """
        Args:
            size: of the matrix.
            scale: it is this multiple of the unit matrix at first.
        """
        super().__init__()
        self._size = size
        entries = torch.zeros(entry_count(size))
        entries[:size] = math.log(math.expm1(math.sqrt(scale)))
        self.entries = nn.Parameter(entries)

    def forward(self) -> Tensor:
        """(size, size)."""
        factor = cholesky_factor(self.entries, self._size)
        return factor @ factor.mT


WIDTH, LAYERS = 256, 6


def perceptron(
    inputs: int, outputs: int, activation: type[nn.Module], width: int = WIDTH, layers: int = LAYERS
) -> nn.Sequential:
    """Layers of which all but the last have an activation."""
    sizes = [inputs] + [width] * (layers - 1)
    hidden = [each for a, b in pairwise(sizes) for each in (nn.Linear(a, b), activation())]
    return nn.Sequential(*hidden, nn.Linear(sizes[-1], outputs))


def perceptron_change(layers: nn.Sequential, x: Tensor, change: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs of layers with softplus, and how they change where the inputs change so.

    By hand: forward-mode differentiation of torch takes several times as long.
    """
    for layer in layers:
        if isinstance(layer, nn.Linear):
            x, change = layer(x), change @ layer.weight.mT
        else:
            x, change = layer(x), torch.sigmoid(x) * change
    return x, change


class NeuralODE(nn.Module):
    """NODE: six layers of width 256 with tanh.

    Its inputs and outputs are normalised by mean and deviation over the training data.
    """

    input_mean: Tensor
    input_deviation: Tensor
    output_mean: Tensor
    output_deviation: Tensor

    def __init__(self, coordinates: int, torques: int, width: int = WIDTH) -> None:
        super().__init__()
        inputs = 2 * coordinates + torques
        self.layers = perceptron(inputs, coordinates, nn.Tanh, width)
        for name, size in (("input", inputs), ("output", coordinates)):
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_deviation", torch.ones(size))

    def normalise(self, x: Tensor, v: Tensor, u: Tensor, a: Tensor) -> None:
        """Takes mean and deviation of samples (..., size)."""
        for name, values in (("input", torch.cat([x, v, u], dim=-1)), ("output", a)):
            flat = values.reshape(-1, values.shape[-1])
            getattr(self, f"{name}_mean").copy_(flat.mean(dim=0))
            getattr(self, f"{name}_deviation").copy_(flat.std(dim=0).clamp_min(1e-6))

    def forward(self, x: Tensor, v: Tensor, u: Tensor) -> Tensor:
        """(..., coordinates) acceleration."""
        given = (torch.cat([x, v, u], dim=-1) - self.input_mean) / self.input_deviation
        found: Tensor = self.layers(given) * self.output_deviation + self.output_mean
        return found


class LagrangianNetwork(nn.Module):
    """LNN: M(x) a + (dM/dt) v - dT/dx + dU/dx + D v = A u.

    M and U are six layers of width 256 with softplus; D and A are constant. The paper leaves out
    -dT/dx, without which energy is not kept; `printed` does, too.
    """

    def __init__(
        self, coordinates: int, torques: int, width: int = WIDTH, printed: bool = False
    ) -> None:
        super().__init__()
        self._size, self._printed = coordinates, printed
        self.inertia_layers = perceptron(coordinates, entry_count(coordinates), nn.Softplus, width)
        self.potential_layers = perceptron(coordinates, 1, nn.Softplus, width)
        self.damping = PositiveMatrix(coordinates)
        self.actuation = nn.Parameter(torch.eye(coordinates, torques))

    def inertia(self, x: Tensor) -> Tensor:
        """(..., coordinates, coordinates) M."""
        factor = cholesky_factor(self.inertia_layers(x), self._size, shift=1.0)
        return factor @ factor.mT

    def energy(self, x: Tensor, v: Tensor) -> Tensor:
        """(...,) T + U."""
        moving = 0.5 * torch.einsum("...i,...ij,...j->...", v, self.inertia(x), v)
        return moving + self.potential_layers(x)[..., 0]

    def forward(self, x: Tensor, v: Tensor, u: Tensor) -> Tensor:
        """(..., coordinates) acceleration."""
        with torch.enable_grad():
            at = x if x.requires_grad else x.detach().requires_grad_()
            factor, momentum_change = self._factor_and_momentum_change(at, v)
            moving = 0.5 * (factor.mT @ v[..., None]).square().sum(dim=(-2, -1))
            stored = self.potential_layers(at)[..., 0]
            lagrangian = -stored if self._printed else moving - stored
            (slope,) = torch.autograd.grad(lagrangian.sum(), at, create_graph=True)
        force = u @ self.actuation.mT - v @ self.damping() + slope - momentum_change
        return torch.cholesky_solve(force[..., None], factor)[..., 0]

    def _factor_and_momentum_change(self, x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Cholesky factor of M, and (dM/dt) v."""
        entries, change = perceptron_change(self.inertia_layers, x, v)
        factor = cholesky_factor(entries, self._size, shift=1.0)
        rate, moving = cholesky_change(entries, change, self._size), v[..., None]
        found = rate @ (factor.mT @ moving) + factor @ (rate.mT @ moving)
        return factor, found[..., 0]


class CoupledOscillators(nn.Module):
    """CON: z'' = B^-1 (V(u) u - G z - E z' - tanh(z + c)) of z = W x + b, with B, G, E positive.

    V is five layers of width 16 with tanh.
    """

    def __init__(self, coordinates: int, torques: int) -> None:
        super().__init__()
        self._shape = (coordinates, torques)
        self.frame = nn.Parameter(torch.eye(coordinates))
        self.offset = nn.Parameter(torch.zeros(coordinates))
        self.inverse_inertia = PositiveMatrix(coordinates)
        self.stiffness = PositiveMatrix(coordinates)
        self.damping = PositiveMatrix(coordinates)
        self.bias = nn.Parameter(torch.zeros(coordinates))
        self.input_layers = perceptron(torques, coordinates * torques, nn.Tanh, 16, 5)

    def energy(self, x: Tensor, v: Tensor) -> Tensor:
        """(...,) what damping makes less, without torques."""
        z, moving = self._latent(x), v @ self.frame.mT
        inertia = torch.linalg.inv(self.inverse_inertia())
        shifted = z + self.bias
        # log cosh without overflow
        springs = shifted.abs() + torch.log1p(torch.exp(-2.0 * shifted.abs()))
        return (
            0.5 * torch.einsum("...i,ij,...j->...", moving, inertia, moving)
            + 0.5 * torch.einsum("...i,ij,...j->...", z, self.stiffness(), z)
            + springs.sum(dim=-1)
        )

    def forward(self, x: Tensor, v: Tensor, u: Tensor) -> Tensor:
        """(..., coordinates) acceleration."""
        z, moving = self._latent(x), v @ self.frame.mT
        shares = self.input_layers(u).unflatten(-1, self._shape)
        force = (shares @ u[..., None])[..., 0] - torch.tanh(z + self.bias)
        force = force - z @ self.stiffness() - moving @ self.damping()
        return torch.linalg.solve(self.frame, (force @ self.inverse_inertia()).mT).mT

    def _latent(self, x: Tensor) -> Tensor:
        return x @ self.frame.mT + self.offset


NETWORKS: Mapping[str, Callable[[int, int], nn.Module]] = {
    "NODE": NeuralODE,
    "LNN": LagrangianNetwork,
    "CON": CoupledOscillators,
}


def make_network(kind: str, coordinates: int, torques: int) -> nn.Module:
    """A network that knows nothing yet.

    Raises:
        UserError: there is no such kind.
    """
    if kind not in NETWORKS:
        raise UserError(f"network {kind!r}: unknown; allowed are {', '.join(NETWORKS)}")
    return NETWORKS[kind](coordinates, torques)
