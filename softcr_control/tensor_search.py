"""Evolution and polish of a population of tensors: `evolution` and `polish` without a host.

Nothing here looks at a value to decide what to do next, shapes are fixed, and there are only
products and element-wise operations: all of it can be recorded in a CUDA graph, which the
decompositions of torch.linalg cannot. Populations are sorted by cost, the best first.
"""

import numpy as np
import torch

from softcr_control.polish import (
    FIT_RIDGE,
    SAMPLES_PER_NUMBER,
    STEP_DAMPING,
    STEP_FRACTIONS,
    TINY,
)

# Parts of the largest curvature that are added to it, beside nothing, which is right where the
# quadratic is convex: powers of ten from the least to 1.
_LEAST_DAMPING = -6
# Projected Newton steps: in the second the coordinates that met a bound are held, and so on.
_ROUNDS = 4


class TensorEvolution:
    """Parents, strangers and children, as `Evolution`.

    Args:
        parents, strangers, children: how many.
        stranger_spread: (m,) standard deviation of strangers [unit of the inputs].
        mutation_probability: chance that one knot of one channel of a child is mutated.
        generator: the only source of chance; its device is that of all tensors.
    """

    def __init__(
        self,
        parents: int,
        strangers: int,
        children: int,
        stranger_spread: torch.Tensor,
        mutation_probability: float,
        generator: torch.Generator,
    ) -> None:
        self._parents, self._strangers, self._children = parents, strangers, children
        self._stranger_spread = stranger_spread
        self._mutation_probability = mutation_probability
        self._generator = generator

    def first_generation(self, centre: torch.Tensor, knots: int) -> torch.Tensor:
        """(B, knots, m) strangers round `centre` (m,); candidate 0 holds it."""
        size = self._parents + self._strangers + self._children
        population = self._drawn_round(centre, size, knots)
        population[0] = centre
        return population

    def next_generation(
        self, population: torch.Tensor, centre: torch.Tensor, mutation: torch.Tensor
    ) -> torch.Tensor:
        """Parents first, then strangers, then children.

        Args:
            population: (B, K, m) candidates [unit of the inputs], the best first.
            centre: (m,) mean of strangers: the previous command [unit of the inputs].
            mutation: (m,) standard deviation of a mutation.

        Returns:
            (B, K, m) candidates [unit of the inputs], not yet limited.
        """
        parents = population[: self._parents]
        strangers = self._drawn_round(centre, self._strangers, population.shape[1])
        return torch.cat((parents, strangers, self._bred(parents, mutation)))

    def _drawn_round(self, centre: torch.Tensor, count: int, knots: int) -> torch.Tensor:
        drawn = self._normal((count, knots, len(centre)), centre)
        return centre + self._stranger_spread * drawn

    def _bred(self, parents: torch.Tensor, mutation: torch.Tensor) -> torch.Tensor:
        """Each channel of a child comes whole from one of two random parents, then knots mutate."""
        shape = (self._children, *parents.shape[1:])
        mates = torch.randint(
            len(parents), (2, self._children), generator=self._generator, device=parents.device
        )
        from_first = self._uniform((self._children, 1, shape[2]), parents) < 0.5
        children = torch.where(from_first, parents[mates[0]], parents[mates[1]])
        mutated = self._uniform(shape, parents) < self._mutation_probability
        return children + mutated * (mutation * self._normal(shape, parents))

    def _normal(self, shape: tuple[int, ...], beside: torch.Tensor) -> torch.Tensor:
        return torch.randn(shape, generator=self._generator, device=beside.device)

    def _uniform(self, shape: tuple[int, ...], beside: torch.Tensor) -> torch.Tensor:
        return torch.rand(shape, generator=self._generator, device=beside.device)


class TensorPolish:
    """What `gauss_newton_proposals` does, for one size of population, in float64.

    Args:
        population: number of candidates.
        knots: K, of a candidate.
        low, high: (m,) the box [unit of the inputs].
        device: of all tensors.

    Attributes:
        samples: candidates that it looks at, the best first.
        possible: whether they are enough.
    """

    def __init__(
        self,
        population: int,
        knots: int,
        low: np.ndarray,
        high: np.ndarray,
        device: torch.device,
    ) -> None:
        dimension = knots * len(low)
        self.samples = min(SAMPLES_PER_NUMBER * dimension, population)
        self.possible = self.samples > dimension
        span = np.tile(high - low, knots)
        self._span, self._low, self._high = (
            torch.as_tensor(value, dtype=torch.float64, device=device)
            for value in (span, np.tile(low, knots) / span, np.tile(high, knots) / span)
        )
        self._eye = torch.eye(dimension, dtype=torch.float64, device=device)
        self._fractions = torch.as_tensor(STEP_FRACTIONS, device=device)[:, None]

    def proposals(
        self, population: torch.Tensor, residuals: torch.Tensor, costs: torch.Tensor
    ) -> torch.Tensor:
        """(8, K, m) candidates [unit of the inputs] on the line from the best one, not yet limited.

        Args:
            population: (S, K, m) at least `samples` candidates inside the box [unit of the
                inputs], the best first.
            residuals: (S, R) whose squares add up to the costs.
            costs: (S,) their costs, ascending. Those that are not finite do not count; where too
                few are, the proposals mean nothing.
        """
        fitted, span = slice(1, self.samples), self._span
        points = population[: self.samples].double().flatten(1) / span
        counts = torch.isfinite(costs[fitted])[:, None]
        offsets = torch.where(counts, points[1:] - points[0], 0.0)
        first = residuals[0].double()
        changes = torch.where(counts, residuals[fitted].double() - first, 0.0)
        normal = self._with_diagonal(offsets.T @ offsets, FIT_RIDGE)
        inverse = solved(normal.expand(len(normal), -1, -1), self._eye)
        slopes = inverse @ (offsets.T @ changes)
        step = bounded_minimum(
            self._with_diagonal(slopes @ slopes.T, STEP_DAMPING),
            slopes @ first,
            (self._low - points[0]).clamp(max=0.0),  # it lies inside, but for rounding
            (self._high - points[0]).clamp(min=0.0),
        )
        moved = (points[0] + self._fractions * step) * span
        return moved.to(population.dtype).view(-1, *population.shape[1:])

    def _with_diagonal(self, matrix: torch.Tensor, part: float) -> torch.Tensor:
        return matrix + (part * matrix.diagonal().mean() + TINY) * self._eye


def bounded_minimum(
    hessian: torch.Tensor, gradient: torch.Tensor, least: torch.Tensor, most: torch.Tensor
) -> torch.Tensor:
    """(d,) with a low gradient x + x hessian x / 2 in least <= x <= most, which holds 0.

    Projected Newton steps from 0, with each damping for itself; the best of all points is the
    answer. It is the minimum where the quadratic is convex and the bounds that hold are found in
    time; where it is not convex, damped steps follow it down to a bound.

    Args:
        hessian: (d, d), symmetric.
        gradient, least, most: (d,).
    """
    dtype, device = hessian.dtype, hessian.device
    count = 1 - _LEAST_DAMPING
    parts = torch.logspace(_LEAST_DAMPING, 0, count, dtype=dtype, device=device)
    parts = torch.cat((torch.zeros_like(parts[:1]), parts))
    damping = parts * hessian.diagonal().abs().amax()
    eye = torch.eye(len(gradient), dtype=dtype, device=device)
    damped = hessian + damping[:, None, None] * eye
    x = torch.zeros_like(gradient).expand(len(damping), -1)
    found = [x]
    for _ in range(_ROUNDS):
        slope = torch.addmm(gradient, x, hessian)
        held = ((x <= least) & (slope > 0.0)) | ((x >= most) & (slope < 0.0))
        free = (~held).to(hessian)
        matrix = damped * free[:, :, None] * free[:, None] + torch.diag_embed(1.0 - free)
        x = torch.clamp(x - solved(matrix, free * slope), least, most)
        found.append(x)
    points = torch.cat(found)
    values = points @ gradient + 0.5 * ((points @ hessian) * points).sum(dim=1)
    values = torch.where(torch.isfinite(values), values, torch.inf)
    return points.index_select(0, values.argmin(dim=0, keepdim=True))[0]


def solved(matrix: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """x (..., n) with matrix (..., n, n) x = right (..., n), by elimination without pivoting.

    Right for positive definite matrices; for others it may be anything, NaN included.
    """
    work = torch.cat((matrix, right[..., None]), dim=-1)
    unit = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    for k in range(matrix.shape[-1]):
        row = work[..., k, :] / work[..., k, k, None]
        column = work[..., k] - unit[k]
        work = torch.addcmul(work, column[..., None], row[..., None, :], value=-1.0)
    return work[..., -1]
