"""A policy's network fitted to local controllers, each deviation weighted by what it costs."""

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from softcr_papers.pawlowski2019.policy.network import PolicyNetwork
from softcr_studies.frame.checkpoints import put_optimiser

_EVEN = 0.003
"""Weight of deviations that cost nothing, so that the network says something there, too."""

_SMALL = 0.1  # of the last layer's first weights: actions begin in the middle


@dataclass(frozen=True, eq=False)
class Targets:
    """What a network is to answer, at J places and around them.

    Attributes:
        seen: (J, n) observations.
        actions: (J, m) there.
        seen_by, actions_by: (J, n, r) and (J, m, r) by coordinates of the state.
        weights: (J, m, m) what a deviation costs.
    """

    seen: np.ndarray
    actions: np.ndarray
    seen_by: np.ndarray
    actions_by: np.ndarray
    weights: np.ndarray

    def require(self, n: int, m: int, r: int) -> None:
        """Compares the shapes with those of a learner.

        Raises:
            ValueError: they are others.
        """
        places = len(self.seen)
        wanted = [(places, *each) for each in ((n,), (m,), (n, r), (m, r), (m, m))]
        found = [each.shape for each in vars(self).values()]
        if found != wanted:
            raise ValueError(f"targets have the shapes {found}, must have {wanted}")

    @classmethod
    def joined(cls, parts: "deque[Targets]") -> "Targets":
        """All of some."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(*(np.concatenate(each) for each in columns))


class Regression:
    """A network in torch and its optimiser.

    Attributes:
        module: in torch, from observations to actions.
    """

    def __init__(self, sizes: tuple[int, ...], learning_rate: float, seed: int) -> None:
        """A network that answers the middle of the actions' range.

        Args:
            sizes: of an observation, hidden layers and actions.
            learning_rate: of Adam.
            seed: of weights and samples.
        """
        torch.manual_seed(seed)
        layers = [torch.nn.Linear(a, b) for a, b in pairwise(sizes)]
        with torch.no_grad():
            layers[-1].weight *= _SMALL
        parts = [part for layer in layers for part in (layer, torch.nn.ReLU())]
        self._layers = layers
        self.module = torch.nn.Sequential(*parts[:-1], torch.nn.Tanh())
        self.optimiser = torch.optim.Adam(self.module.parameters(), lr=learning_rate)
        self._rate = learning_rate
        self._random = np.random.default_rng(seed)

    @property
    def network(self) -> PolicyNetwork:
        """Of this moment, in numpy."""
        return PolicyNetwork.of_layers(
            [(each.weight.detach().numpy().copy(), each.bias.detach().numpy().copy())
             for each in self._layers]
        )  # fmt: skip

    @property
    def state(self) -> dict[str, Any]:
        """All that changes as it is fitted."""
        return {
            "module": self.module.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "random": self._random.bit_generator.state,
        }

    def go_on(self, state: dict[str, Any]) -> None:
        """As the regression would have that had this state.

        Raises:
            ValueError, RuntimeError: it is the state of another network.
        """
        self.module.load_state_dict(state["module"])
        put_optimiser(self.optimiser, state["optimiser"])
        self._random.bit_generator.state = state["random"]

    def slow_down(self, share: float) -> None:
        """Goes on with a share of the first learning rate."""
        for group in self.optimiser.param_groups:
            group["lr"] = share * self._rate

    def fit(self, targets: Targets, updates: int, batch: int, spread: float) -> float:
        """Steps of Adam towards targets.

        Args:
            targets: to choose from.
            updates: number of steps.
            batch: places of a step.
            spread: standard deviation of the places around those of the targets [coordinates].

        Returns:
            Mean of the losses.
        """
        total = 0.0
        for _ in range(updates):
            rows = self._random.integers(len(targets.seen), size=batch)
            width = targets.seen_by.shape[2]
            around = (spread * self._random.standard_normal((batch, width, 1))).astype(np.float32)
            seen = targets.seen[rows] + (targets.seen_by[rows] @ around)[:, :, 0]
            wanted = targets.actions[rows] + (targets.actions_by[rows] @ around)[:, :, 0]
            answer = self.module(torch.from_numpy(seen))
            off = answer - torch.from_numpy(np.clip(wanted, -1.0, 1.0))
            costs = off[:, None, :] @ torch.from_numpy(targets.weights[rows]) @ off[:, :, None]
            loss = costs.mean() + _EVEN * (off**2).mean()
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()
            total += loss.item()
        return total / max(updates, 1)
