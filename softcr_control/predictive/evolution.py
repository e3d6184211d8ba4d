"""The evolutionary step of the NEMPC (Licher et al. Sec. V-B, after Hyatt and Killpack 2020)."""

import numpy as np


class Evolution:
    """Parents, strangers and children of one population of candidates.

    Args:
        parents: number of best candidates carried over unchanged, at least 1.
        strangers: number of fresh candidates.
        children: number of candidates bred from the parents.
        stranger_spread: (m,) standard deviation of strangers [unit of the inputs].
        mutation_probability: chance that one knot of one channel of a child is mutated.
        generator: the only source of chance; an attribute, too.
    """

    def __init__(
        self,
        parents: int,
        strangers: int,
        children: int,
        stranger_spread: np.ndarray,
        mutation_probability: float,
        generator: np.random.Generator,
    ) -> None:
        self._parents = parents
        self._strangers = strangers
        self._children = children
        self._stranger_spread = stranger_spread
        self._mutation_probability = mutation_probability
        self.generator = generator

    def first_generation(self, centre: np.ndarray, knots: int) -> np.ndarray:
        """(B, knots, m) strangers round `centre` (m,); candidate 0 holds it."""
        size = self._parents + self._strangers + self._children
        population = self._drawn_round(centre, size, knots)
        population[0] = centre
        return population

    def next_generation(
        self, population: np.ndarray, costs: np.ndarray, centre: np.ndarray, mutation: np.ndarray
    ) -> np.ndarray:
        """Parents first, then strangers, then children.

        Args:
            population: (B, K, m) candidates [unit of the inputs].
            costs: (B,) their costs.
            centre: (m,) mean of strangers: the previous command.
            mutation: (m,) standard deviation of a mutation.

        Returns:
            (B, K, m) candidates, not yet limited.
        """
        parents = population[np.argpartition(costs, self._parents - 1)[: self._parents]]
        strangers = self._drawn_round(centre, self._strangers, population.shape[1])
        return np.concatenate([parents, strangers, self._bred(parents, mutation)])

    def _drawn_round(self, centre: np.ndarray, count: int, knots: int) -> np.ndarray:
        drawn = self.generator.standard_normal((count, knots, len(centre)))
        drawn *= self._stranger_spread
        drawn += centre
        return drawn

    def _bred(self, parents: np.ndarray, mutation: np.ndarray) -> np.ndarray:
        """Each channel of a child comes whole from one of two random parents, then knots mutate."""
        draw = self.generator
        shape = (self._children, *parents.shape[1:])
        first, second = draw.integers(len(parents), size=(2, self._children))
        from_first = draw.random((self._children, 1, shape[2])) < 0.5
        children = np.where(from_first, parents[first], parents[second])
        mutated = draw.random(shape) < self._mutation_probability
        noise = draw.standard_normal(shape)
        noise *= mutation
        noise *= mutated
        children += noise
        return children
