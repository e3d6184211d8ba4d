"""Guided policy search: local controllers of single motions teach one network.

Algorithm 6 of Pawlowski (2019), Sec. 4.3.2, after Levine and Abbeel (2014), with exact
linearisations of the rods in place of ones that are fitted to samples. A round: the network moves
rods towards new goals; their motions are linearised and improved by controllers that stay near the
network, twice; the network is fitted to these. Its deviations count as much as they cost, by the
curvature of the local controllers' costs: an average over different solutions is then one of what
matters little.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from softcr_control.policy.network import PolicyNetwork
from softcr_learning.policy.linearisation import Linearisation
from softcr_learning.policy.local_control import LocalControl, local_control
from softcr_learning.policy.motion_learner import MotionLearner, MotionSettings, policy_slopes
from softcr_learning.policy.motions import Motions
from softcr_learning.policy.plant import Plant
from softcr_learning.policy.regression import Targets
from softcr_learning.policy.tasks import Episodes, Task

_REACH = 0.5  # of feedback: deviations beyond are not linear any more [coordinates]
_MEAN_WEIGHT = 0.25  # of the regression's weights


class GuidedSettings(MotionSettings):
    """Numbers of a guided policy search."""

    updates: int = Field(300, ge=1, le=100_000, description="of the network in a round")
    batch: int = Field(512, ge=1, le=1_000_000, description="places of an update")
    passes: int = Field(2, ge=1, le=20, description="improvements of a round's motions")
    anchor: float = Field(
        0.3, gt=0.0, le=100.0, description="weight of the network's actions in the controllers' "
        "costs at the begin",
    )  # fmt: skip
    last_anchor: float = Field(0.03, gt=0.0, le=100.0, description="and at the end")
    memory: int = Field(10, ge=1, le=1000, description="rounds whose controllers are remembered")
    around: float = Field(
        0.1, ge=0.0, le=1.0, description="distance of places from a motion's, at which the network "
        "is fitted, too, over the deviation of motions under random inputs",
    )  # fmt: skip


@dataclass(frozen=True)
class Round:
    """What a round came to.

    Attributes:
        reached: share of the goals that the network reached before it learned from them.
        taught: share that the controllers reached.
        loss: of the regression.
    """

    reached: float
    taught: float
    loss: float


class GuidedSearch(MotionLearner):
    """A guided policy search, round by round; see `MotionLearner`."""

    settings: GuidedSettings

    def __init__(self, plant: Plant, task: Task, settings: GuidedSettings) -> None:
        """See `MotionLearner`."""
        super().__init__(plant, task, settings)
        self._memory: deque[Targets] = deque(maxlen=settings.memory)

    def round(self) -> Round:
        """Learns from new goals."""
        own = self.settings
        network = self.network
        done = min(self.samples / own.samples, 1.0)
        anchor = own.anchor * (own.last_anchor / own.anchor) ** done
        episodes = self.episodes()
        motions = self.explored(network, episodes)
        reached = self.share(motions)
        for _ in range(own.passes):
            linear = self.linearised(motions)
            control = local_control(
                linear, motions.errors, self.weights(motions), motions.actions, motions.means,
                policy_slopes(network, motions, linear), anchor,
            )  # fmt: skip
            better = self._improve(network, episodes, motions, control)
        self._memory.append(_targets(motions, linear, control, better))
        targets = Targets.joined(self._memory)
        loss = self.regression.fit(targets, own.updates, own.batch, own.around)
        return Round(reached, self.share(motions), loss)

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
