"""Guided policy search: local controllers of single motions teach one network.

Algorithm 6 of Pawlowski (2019), Sec. 4.3.2, after Levine and Abbeel (2014), with exact
linearisations of the rods in place of ones that are fitted to samples. A round: the network moves
rods towards new goals; their motions are linearised and improved by controllers that stay near the
network, twice; the network is fitted to these. Its deviations count as much as they cost, by the
curvature of the local controllers' costs: an average over different solutions is then one of what
matters little.
"""

import numpy as np

from softcr_papers.pawlowski2019.learning.linearisation import Linearisation
from softcr_papers.pawlowski2019.learning.local_control import LocalControl, local_control
from softcr_papers.pawlowski2019.learning.motion_learner import MotionLearner, policy_slopes
from softcr_papers.pawlowski2019.learning.motions import Motions
from softcr_papers.pawlowski2019.learning.regression import Targets
from softcr_papers.pawlowski2019.learning.tasks import Episodes
from softcr_papers.pawlowski2019.policy.network import PolicyNetwork

_REACH = 0.5  # of feedback: deviations beyond are not linear any more [coordinates]
_MEAN_WEIGHT = 0.25  # of the regression's weights


class GuidedSearch(MotionLearner):
    """A guided policy search, round by round; see `MotionLearner`."""

    def round(self) -> None:
        """Learns from new goals.

        The share of goals that the network reached at first is `reached`, and `taught` that of the
        local controllers.
        """
        own, network, episodes = self.settings, self.network, self.episodes()
        anchor = own.anchor * (own.last_anchor / own.anchor) ** self.progress
        motions = self.explored(network, episodes)
        self.reached = self.share(motions)
        for _ in range(own.passes):
            linear = self.linearised(motions)
            control = local_control(
                linear, motions.errors, self.weights(motions), motions.actions, motions.means,
                policy_slopes(network, motions, linear), anchor,
            )  # fmt: skip
            better = self._improve(network, episodes, motions, control)
        self.taught = self.share(motions)
        self.memory.append(_targets(motions, linear, control, better))
        targets = Targets.joined(self.memory)
        self.regression.slow_down(1.0 + (own.last_rate - 1.0) * self.progress)
        self.regression.fit(targets, own.updates, own.batch, own.around)

    def _improve(
        self,
        network: PolicyNetwork,
        episodes: Episodes,
        motions: Motions,
        control: LocalControl,
    ) -> np.ndarray:
        """Moves rods by the controllers, keeps what is better, and tells which (B,) are."""
        before, taken = motions.states.copy(), motions.actions.copy()

        def act(
            step: int, rows: np.ndarray, states: np.ndarray, seen: np.ndarray
        ) -> tuple[np.ndarray, np.ndarray]:
            off = (states - before[rows, step]) @ self.directions.coordinates
            back = np.einsum(
                "bij,bj->bi", control.feedback[rows, step], np.clip(off, -_REACH, _REACH)
            )
            actions = taken[rows, step] + control.forward[rows, step] + back
            return np.clip(actions, -1.0, 1.0), network(seen)

        again = self.rolled(episodes, act)
        better = self.score(again) <= self.score(motions)
        motions.put(np.flatnonzero(better), again)
        return np.asarray(better)


def _targets(
    motions: Motions, linear: Linearisation, control: LocalControl, better: np.ndarray
) -> Targets:
    """What motions teach that were improved."""
    trace = np.einsum("btii->bt", control.curvature)
    usual = np.sum(trace, axis=1) / np.maximum(motions.ends, 1)
    share = _MEAN_WEIGHT / np.maximum(usual, 1e-9)[:, None, None, None]
    chosen = better[:, None] & motions.done & (trace > 0.0)
    return Targets(
        *(
            np.ascontiguousarray(each[chosen], np.float32)
            for each in (
                motions.seen, motions.actions, linear.seen, control.feedback,
                control.curvature * share,
            )
        )
    )  # fmt: skip
