"""Evolution and polish of a population of tensors: `evolution` and `polish` without a host.

Nothing here looks at a value to decide what to do next, shapes are fixed, and there are only
products and element-wise operations: all of it can be recorded in a CUDA graph, which the
decompositions of torch.linalg cannot. There an operation costs microseconds whatever its size, so
few large ones are better than many small ones. Populations are sorted by cost, the best first.
"""

import numpy as np
import torch

from softcr_control.predictive.polish import (
    FIT_RIDGE,
    SAMPLES_PER_NUMBER,
    STEP_DAMPING,
    STEP_FRACTIONS,
)

# Penalties of `BoundedMinimum` are 0 and these powers of ten times the largest curvature.
_PENALTIES = np.concatenate(([0.0], np.logspace(-6, 1, 16)))
_ROUNDS = 12
_RELAXATION = 1.5


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
        size = parents + strangers + children
        self._first_spread = stranger_spread.repeat(size, 1, 1)
        self._first_spread[0] = 0.0

    def first_generation(self, centre: torch.Tensor, knots: int) -> torch.Tensor:
        """(B, knots, m) strangers round `centre` (m,); candidate 0 holds it."""
        drawn = self._normal(len(self._first_spread), knots, centre)
        return torch.addcmul(centre, self._first_spread, drawn)

    def next_generation(
        self, population: torch.Tensor, centre: torch.Tensor, mutation: torch.Tensor
    ) -> torch.Tensor:
        """Parents first, then strangers, then children.

        Each channel of a child comes whole from one of two random parents, then knots mutate.

        Args:
            population: (parents or more, K, m) candidates [unit of the inputs], the best first.
            centre: (m,) mean of strangers: the previous command [unit of the inputs].
            mutation: (m,) standard deviation of a mutation.

        Returns:
            (B, K, m) candidates [unit of the inputs], not yet limited.
        """
        parents, count = population[: self._parents], self._children
        knots, channels = parents.shape[1:]
        drawn = self._normal(self._strangers + count, knots, centre)
        strangers = torch.addcmul(centre, self._stranger_spread, drawn[: self._strangers])
        mates = torch.randint(
            len(parents), (2 * count,), generator=self._generator, device=parents.device
        )
        first, second = parents.index_select(0, mates).view(2, count, knots, channels)
        chance = torch.rand(
            (count, 1 + knots, channels), generator=self._generator, device=parents.device
        )
        children = torch.where(chance[:, :1] < 0.5, first, second)
        mutates = chance[:, 1:] < self._mutation_probability
        spread = torch.where(mutates, mutation, 0.0)
        children = torch.addcmul(children, spread, drawn[self._strangers :])
        return torch.cat((parents, strangers, children))

    def _normal(self, count: int, knots: int, beside: torch.Tensor) -> torch.Tensor:
        shape = (count, knots, len(beside))
        return torch.randn(shape, generator=self._generator, device=beside.device)


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
        self._minimum = BoundedMinimum(dimension, device)

    def proposals(
        self, population: torch.Tensor, residuals: torch.Tensor, costs: torch.Tensor
    ) -> torch.Tensor:
        """(8, K, m) candidates [unit of the inputs] on the line from the best one, not yet limited.

        Args:
            population: (S, K, m) at least `samples` candidates inside the box [unit of the
                inputs], the best first.
            residuals: (S, R) whose squares add up to the costs.
            costs: (S,) their costs, ascending. Those that are not finite do not count; where too
                few are, the proposals mean nothing, or are NaN.
        """
        samples, size = self.samples, len(self._span)
        points = population[:samples].flatten(1) / self._span  # in float64, as all that follows
        rows = torch.cat((points, residuals[:samples]), dim=1)
        counts = torch.isfinite(costs[1:samples])[:, None]
        changes = torch.where(counts, rows[1:] - rows[0], 0.0)
        fit = changes[:, :size].T @ changes
        self._add_to_diagonal(fit[:, :size], FIT_RIDGE)
        slopes = eliminated(fit, self._eye)
        start, residual = rows[0, :size], rows[0, size:]
        hessian = slopes @ slopes.T
        self._add_to_diagonal(hessian, STEP_DAMPING)
        step = self._minimum(
            hessian,
            torch.mv(slopes, residual),
            (self._low - start).clamp(max=0.0),  # it lies inside, but for rounding
            (self._high - start).clamp(min=0.0),
        )
        moved = torch.addcmul(start, self._fractions, step) * self._span
        return moved.to(population.dtype).view(-1, *population.shape[1:])

    def _add_to_diagonal(self, matrix: torch.Tensor, part: float) -> None:
        """Adds a part of its mean, in place."""
        matrix.addcmul_(matrix.diagonal().mean(), self._eye, value=part)


class BoundedMinimum:
    """The minimum of gradient x + x hessian x / 2 in a box, for one number of coordinates.

    By splitting (Douglas and Rachford; Lions and Mercier, SIAM J. Numer. Anal. 16, 1979): steps to
    the minimum near a point of the box, and back into the box, in turn, which is two operations a
    round. How near is a penalty's to say; many are tried side by side, and the best of all points
    is the answer. Where the quadratic is not convex, large penalties follow it down to a bound.

    Args:
        size: d, number of coordinates.
        device: of all tensors.
    """

    def __init__(self, size: int, device: torch.device) -> None:
        self._eye = torch.eye(size, dtype=torch.float64, device=device)
        self._penalties = torch.as_tensor(_PENALTIES, device=device)[:, None, None]
        self._eyes = self._eye.expand(len(_PENALTIES), -1, -1)
        self._beside = (2.0 - _RELAXATION) * self._eye
        self._origin = self._eye.new_zeros(1, size)

    def __call__(
        self,
        hessian: torch.Tensor,
        gradient: torch.Tensor,
        least: torch.Tensor,
        most: torch.Tensor,
    ) -> torch.Tensor:
        """(d,) x in least <= x <= most, which holds 0; 0 where all others are NaN.

        Args:
            hessian: (d, d), symmetric.
            gradient, least, most: (d,).
        """
        size = len(gradient)
        penalties = self._penalties * hessian.diagonal().abs().amax()
        matrices = torch.addcmul(hessian, penalties, self._eye)
        right = gradient.expand(len(matrices), -1)[..., None]
        found = eliminated(torch.cat((matrices, self._eyes, right), dim=2), self._eye)
        inverse, newton = found[..., :size], found[..., size:].transpose(1, 2)
        # v, what a step arrives at, and z, its nearest in the box, become
        # v + relaxation (M (2 z - v) - newton - z) with M = penalty * inverse; both are one row
        of_v = torch.addcmul(self._eye, penalties, inverse, value=-_RELAXATION)
        of_z = torch.add(self._beside, of_v, alpha=-2.0)
        rule = torch.cat((of_v, of_z), dim=1).repeat(1, 1, 2)
        newtons = torch.cat((newton, newton), dim=2)
        both = -newtons
        inside = both[..., size:].clamp_(least, most)
        for _ in range(_ROUNDS):
            both = torch.baddbmm(newtons, both, rule, beta=-_RELAXATION)
            inside = both[..., size:].clamp_(least, most)
        points = torch.cat((self._origin, inside[:, 0]))
        values = (torch.addmm(gradient, points, hessian, alpha=0.5) * points).sum(dim=1)
        values = values.nan_to_num(nan=torch.inf)
        return points.index_select(0, values.argmin(dim=0, keepdim=True))[0]


def eliminated(work: torch.Tensor, eye: torch.Tensor) -> torch.Tensor:
    """X (..., n, r) with A X = B, by elimination without pivoting.

    Right for positive definite matrices; for others it may be anything, NaN included.

    Args:
        work: (..., n, n + r), A (..., n, n) beside B (..., n, r).
        eye: (n, n), the identity.
    """
    for k in range(len(eye)):
        row = work[..., k, :] / work[..., k, k, None]
        column = work[..., k] - eye[k]
        work = torch.addcmul(work, column[..., None], row[..., None, :], value=-1.0)
    return work[..., len(eye) :]
