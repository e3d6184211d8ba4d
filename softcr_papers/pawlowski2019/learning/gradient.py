"""Learning through derivatives: actions go down the cost of their motions, and the network follows.

The rods' derivatives carry the cost of a motion back to every action of it, in horizons that end as
those of Xu et al. (2022) do; actions are the network's at every step, so what they change in later
observations counts. A round moves the actions of some motions a little way down, and fits the
network to them; single steps of the network along the gradient would hardly use each motion. The
cost is that of the guided search, the derivatives are those of `linearisation`.
"""

import numpy as np

from softcr_papers.pawlowski2019.learning.linearisation import Linearisation
from softcr_papers.pawlowski2019.learning.motion_learner import MotionLearner, policy_slopes
from softcr_papers.pawlowski2019.learning.motions import Motions
from softcr_papers.pawlowski2019.learning.regression import Targets

_STEP = 0.3
"""By which the action of a motion moves whose gradient is the largest."""


class GradientSearch(MotionLearner):
    """Learning through derivatives, round by round; see `MotionLearner`."""

    def round(self) -> None:
        """Moves actions of new motions against the exact gradient of their costs."""
        own, network = self.settings, self.network
        motions = self.explored(network, self.episodes())
        self.reached = self.share(motions)
        linear = self.linearised(motions)
        pull = self.weights(motions)[:, :, None] * np.where(
            motions.done[:, :, None], motions.errors, 0.0
        )
        slopes = policy_slopes(network, motions, linear)
        by_action = action_gradients(linear, pull, slopes, own.horizon)
        self.memory.append(_moved(motions, linear, by_action))
        self.regression.slow_down(1.0 + (own.last_rate - 1.0) * self.progress)
        self.regression.fit(Targets.joined(self.memory), own.updates, own.batch, 0.0)


def _moved(motions: Motions, linear: Linearisation, by_action: np.ndarray) -> Targets:
    """Actions a step down, each as important as its gradient."""
    sizes = np.abs(by_action).max(axis=2)
    share = sizes / np.maximum(sizes.max(axis=1, keepdims=True), 1e-12)
    direction = by_action / np.maximum(sizes.max(axis=1), 1e-12)[:, None, None]
    wanted = np.clip(motions.actions - _STEP * direction, -1.0, 1.0)
    done, size = motions.done, motions.actions.shape[2]
    weights = share[done][:, None, None] * np.eye(size)
    seen_by = np.zeros_like(linear.seen[done])
    actions_by = np.zeros((len(seen_by), size, seen_by.shape[2]), np.float32)
    return Targets(
        motions.seen[done], wanted[done].astype(np.float32), seen_by, actions_by,
        weights.astype(np.float32),
    )  # fmt: skip


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
