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
from pydantic import BaseModel, ConfigDict, Field

from softcr_control.policy.network import PolicyNetwork
from softcr_control.policy.observation import observation_of
from softcr_learning.policy.linearisation import Directions, Linearisation, linearise
from softcr_learning.policy.local_control import LocalControl, local_control
from softcr_learning.policy.motions import Act, Motions, roll
from softcr_learning.policy.plant import Plant
from softcr_learning.policy.regression import Regression, Targets
from softcr_learning.policy.tasks import SUCCESS, Episodes, Task
from softcr_learning.policy.tip_costs import even_weights, nearest_weights
from softcr_models.errors import UserError

_FLOOR = 0.6 * SUCCESS  # width of the cost, over the length: nearer is not better
_REACH = 0.5  # of feedback: deviations beyond are not linear any more [coordinates]
_NOISY = 0.7  # share of the motions that are disturbed
_EXCITED, _EXCITED_STEPS, _HELD = 64, 40, 3  # rods under random inputs, steps, steps of an input
_MEAN_WEIGHT = 0.25  # of the regression's weights


class GuidedSettings(BaseModel):
    """Numbers of a guided policy search."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    samples: int = Field(250_000, ge=100, description="steps of rods under network or controllers")
    seed: int = Field(0, ge=0, description="of goals, weights and noise")
    goals: int = Field(48, ge=1, le=4096, description="new ones of a round")
    passes: int = Field(2, ge=1, le=20, description="improvements of a round's motions")
    directions: int = Field(16, ge=4, le=64, description="of motion that are perturbed")
    anchor: float = Field(
        0.3, gt=0.0, le=100.0, description="weight of the network's actions in the controllers' "
        "costs at the begin",
    )  # fmt: skip
    last_anchor: float = Field(0.03, gt=0.0, le=100.0, description="and at the end")
    noise: float = Field(0.2, ge=0.0, le=2.0, description="of actions while it learns")
    hidden: tuple[int, ...] = Field((128, 128), description="widths of the network's layers")
    learning_rate: float = Field(1e-3, gt=0.0, le=0.1, description="of the regression")
    updates: int = Field(300, ge=1, le=100_000, description="of the network in a round")
    batch: int = Field(512, ge=1, le=1_000_000, description="places of an update")
    memory: int = Field(10, ge=1, le=1000, description="rounds whose controllers are remembered")
    spread: float = Field(
        0.1, ge=0.0, le=1.0, description="of places around a motion, over the deviation of "
        "motions under random inputs",
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


class GuidedSearch:
    """A guided policy search, round by round.

    Attributes:
        samples: steps of rods so far: random inputs, network and controllers.
        lanes: steps of rods so far for derivatives, which are no samples of a real robot's kind.
    """

    def __init__(self, plant: Plant, task: Task, settings: GuidedSettings) -> None:
        """Moves rods by random inputs to find their directions of motion.

        Args:
            plant: on which it learns.
            task: what it learns.
            settings: how.

        Raises:
            UserError: the plant's inputs follow their commands late.
        """
        if plant.lags:
            raise UserError(
                f"guided policy search: robot {plant.robot.name} does not follow its commands "
                f"within {plant.settings.period:.3g} s; must be one that does"
            )
        self.plant, self.task, self.settings = plant, task, settings
        self.observation = observation_of(
            plant.model, of_goal_velocity=task.moving, of_inputs=False
        )
        self._random = np.random.default_rng(settings.seed)
        size = plant.model.inputs.size
        sizes = (self.observation.size, *settings.hidden, size)
        self._regression = Regression(sizes, settings.learning_rate, settings.seed)
        self._memory: deque[Targets] = deque(maxlen=settings.memory)
        states = _excited(plant, self._random)
        self.samples, self.lanes = len(states), 0
        self._directions = Directions.of_motion(
            states, plant.model.state.scale, settings.directions, plant.model.rod.segments
        )

    @property
    def network(self) -> PolicyNetwork:
        """The policy of this moment."""
        return self._regression.network

    def round(self) -> Round:
        """Learns from new goals."""
        own, random = self.settings, self._random
        network = self.network
        done = min(self.samples / own.samples, 1.0)
        anchor = own.anchor * (own.last_anchor / own.anchor) ** done
        episodes = self.task.episodes(own.goals, random)
        motions = self._explored(network, episodes)
        reached = self._share(motions)
        for _ in range(own.passes):
            linear = linearise(self.plant, self.observation, motions, self._directions)
            self.lanes += linear.lanes
            control = self._control(network, motions, linear, anchor)
            better = self._improve(network, episodes, motions, control)
        self._memory.append(_targets(motions, linear, control, better))
        loss = self._regression.fit(
            Targets.joined(self._memory), own.updates, own.batch, own.spread
        )
        return Round(reached, self._share(motions), loss)

    def _explored(self, network: PolicyNetwork, episodes: Episodes) -> Motions:
        """Motions of the network, most of them disturbed."""
        random, size = self._random, self.plant.model.inputs.size
        count, steps = len(episodes.steps), int(episodes.steps.max())
        noise = self.settings.noise * random.standard_normal((steps, count, size))
        noise *= random.random((count, 1)) < _NOISY

        def act(
            step: int, rows: np.ndarray, states: np.ndarray, seen: np.ndarray
        ) -> tuple[np.ndarray, np.ndarray]:
            means = network(seen)
            return np.clip(means + noise[step, rows], -1.0, 1.0), means

        return self._rolled(episodes, act)

    def _control(
        self, network: PolicyNetwork, motions: Motions, linear: Linearisation, anchor: float
    ) -> LocalControl:
        _, slopes = network.with_slopes(motions.seen.reshape(-1, motions.seen.shape[2]))
        slopes = slopes.reshape(*motions.seen.shape[:2], *slopes.shape[1:]) @ linear.seen
        return local_control(
            linear, motions.errors, self._weights(motions), motions.actions, motions.means,
            slopes, anchor,
        )  # fmt: skip

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
            off = (states - before[rows, step]) @ self._directions.coordinates
            back = np.einsum(
                "bij,bj->bi", control.feedback[rows, step], np.clip(off, -_REACH, _REACH)
            )
            actions = taken[rows, step] + control.forward[rows, step] + back
            return np.clip(actions, -1.0, 1.0), network(seen)

        again = self._rolled(episodes, act)
        better = self._score(again) <= self._score(motions)
        motions.put(np.flatnonzero(better), again)
        return np.asarray(better)

    def _rolled(self, episodes: Episodes, act: Act) -> Motions:
        motions = roll(self.plant, self.observation, episodes, act, self.task.moving)
        self.samples += int(motions.ends.sum())
        return motions

    def _weights(self, motions: Motions) -> np.ndarray:
        weigh = even_weights if self.task.moving else nearest_weights
        return weigh(motions.distances, _FLOOR * self.plant.robot.length)

    def _score(self, motions: Motions) -> np.ndarray:
        """(B,) the less the better: least distances, or mean ones where goals move [m]."""
        distances = motions.distances
        if self.task.moving:
            count = np.maximum(motions.ends, 1)
            return np.where(motions.done, distances, 0.0).sum(axis=1) / count
        return np.maximum(distances.min(axis=1), _FLOOR * self.plant.robot.length)

    def _share(self, motions: Motions) -> float:
        return float((self._score(motions) < SUCCESS * self.plant.robot.length).mean())


def _excited(plant: Plant, random: np.random.Generator) -> np.ndarray:
    """(J, nx) states of rods under random inputs that are held for some steps."""
    inputs, found = plant.model.inputs, []
    lanes = plant.at_rest(np.tile(inputs.rest, (_EXCITED, 1)))
    for step in range(_EXCITED_STEPS):
        if step % _HELD == 0:
            commands = random.uniform(inputs.low, inputs.high, (_EXCITED, inputs.size))
        plant.advance(lanes, commands)
        found.append(lanes.states.astype(float))
    return np.concatenate(found)


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
