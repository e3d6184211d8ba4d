"""Learning through derivatives: the network climbs down its own motions' cost.

The rods' derivatives carry the cost of a motion back to every action of it, and from there to the
network (back-propagation through time), as Xu et al. (2022) do in short horizons. Actions are the
network's at every step, so what they change in later observations counts. The cost is that of the
guided search; the derivatives are those of `linearisation`.
"""

import numpy as np
import torch

from softcr_learning.policy.linearisation import Linearisation
from softcr_learning.policy.motion_learner import MotionLearner, policy_slopes

_LARGEST = 1.0
"""Norm to which a larger gradient is shortened."""


class GradientSearch(MotionLearner):
    """Learning through derivatives, round by round; see `MotionLearner`."""

    def round(self) -> None:
        """One step of Adam along the exact gradient of some motions' mean cost."""
        episodes = self.episodes()
        network = self.network
        motions = self.explored(network, episodes)
        linear = self.linearised(motions)
        slopes = policy_slopes(network, motions, linear)
        pull = self.weights(motions)[:, :, None] * np.where(
            motions.done[:, :, None], motions.errors, 0.0
        )
        by_action = action_gradients(linear, pull, slopes, self.settings.horizon)
        self._descend(motions.seen[motions.done], by_action[motions.done], len(motions.ends))

    def _descend(self, seen: np.ndarray, by_action: np.ndarray, runs: int) -> None:
        """Adam, along the gradient (J, m) of the cost by the actions at observations (J, n)."""
        regression = self.regression
        answer = regression.module(torch.from_numpy(seen))
        product = (answer * torch.from_numpy(by_action.astype(np.float32))).sum() / runs
        regression.optimiser.zero_grad()
        product.backward()
        torch.nn.utils.clip_grad_norm_(regression.module.parameters(), _LARGEST)
        regression.optimiser.step()


def action_gradients(
    linear: Linearisation, pull: np.ndarray, slopes: np.ndarray, horizon: int
) -> np.ndarray:
    """(B, T, m) of the cost of motions by their actions, where later actions answer the state.

    Args:
        linear: of the motions.
        pull: (B, T, 3) derivative of the cost by the tip at the end of each step.
        slopes: (B, T, m, r) of actions by coordinates.
        horizon: steps over which a cost is carried back; longer ones are left out.
    """
    steps = pull.shape[1]
    found = np.zeros(slopes.shape[:3])
    # what a state's coordinates do to costs, of which the ones further ahead than the horizon go
    ahead: list[np.ndarray] = []
    for t in range(steps - 1, -1, -1):
        now = np.einsum("bij,bi->bj", linear.tips[:, t], pull[:, t])
        ahead = [now, *ahead][:horizon]
        stacked = np.stack(ahead)
        by_action = np.einsum("bij,kbi->kbj", linear.control[:, t], stacked)
        found[:, t] = by_action.sum(axis=0)
        back = np.einsum("bij,kbi->kbj", linear.transition[:, t], stacked)
        back += np.einsum("bij,kbi->kbj", slopes[:, t], by_action)
        ahead = list(back)
    return found
