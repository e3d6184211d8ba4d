"""What learners have in common that know how rods' motions change with states and actions."""

from collections import deque
from typing import Any

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.pawlowski2019.learning.linearisation import Directions, Linearisation, linearise
from softcr_papers.pawlowski2019.learning.motions import Act, Motions, roll
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.regression import Regression, Targets
from softcr_papers.pawlowski2019.learning.tasks import SUCCESS, Episodes, Task
from softcr_papers.pawlowski2019.learning.training_settings import TrainingSettings
from softcr_papers.pawlowski2019.policy.network import PolicyNetwork
from softcr_papers.pawlowski2019.policy.observation import observation_of

_DISCOUNT = 0.98  # of a step that comes later: a policy does not know the time
_WIDTH = 0.3  # of the soft minimum, over the least distance [-]


def nearest_weights(distances: np.ndarray, floor: float) -> np.ndarray:
    """(B, T) weights [1/m^2] of motions whose tips shall come near their goals once.

    Args:
        distances: (B, T) [m], infinite after a motion's end.
        floor: least width of the soft minimum [m].
    """
    width = np.maximum(floor, _WIDTH * distances.min(axis=1, keepdims=True))
    later = np.log(_DISCOUNT) * np.arange(distances.shape[1])
    logarithm = -0.5 * (distances / width) ** 2 + later
    share = np.exp(logarithm - logarithm.max(axis=1, keepdims=True))
    weights: np.ndarray = share / share.sum(axis=1, keepdims=True) / width**2
    return weights


def even_weights(distances: np.ndarray, width: float) -> np.ndarray:
    """(B, T) weights [1/m^2] of motions whose tips shall stay near moving goals: every step counts
    alike.

    Args:
        distances: (B, T) [m], infinite after a motion's end.
        width: distance that matters [m].
    """
    weights: np.ndarray = np.isfinite(distances) / width**2
    return weights


_FLOOR = 0.6 * SUCCESS  # width of the cost, over the length: nearer is not better
_WIDTH_MOVING = 0.005  # and where goals move
_NOISY = 0.7  # share of the motions that are disturbed
_CALM = 0.25  # of the noise, where goals move: it hides how near a tip can stay
_EXCITED, _EXCITED_STEPS, _HELD = 64, 40, 3  # rods under random inputs, steps, steps of an input


class MotionLearner:
    """A learner that moves rods, linearises their motions, and learns, round by round.

    Attributes:
        plant, task, settings: as given.
        observation: what its policy is told.
        regression: its network in torch.
        directions: of motion, along which it linearises.
        random: numbers.
        samples: steps of rods so far: under random inputs, network and controllers.
        lanes: steps of rods so far for derivatives, which a real robot could not make.
        memory: what the last rounds taught.
    """

    def __init__(self, plant: Plant, task: Task, settings: TrainingSettings) -> None:
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
                f"learning by derivatives: robot {plant.robot.name} does not follow its commands "
                f"within {plant.settings.period:.3g} s; must be one that does"
            )
        self.plant, self.task, self.settings = plant, task, settings
        self.observation = observation_of(
            plant.model, of_goal_velocity=task.moving, of_inputs=False
        )
        self.random = np.random.default_rng(settings.seed)
        sizes = (self.observation.size, *settings.hidden, plant.model.inputs.size)
        self.regression = Regression(sizes, settings.learning_rate, settings.seed)
        self.memory: deque[Targets] = deque(maxlen=settings.memory)
        states = _excited(plant, self.random)
        self.samples, self.lanes = len(states), 0
        self.directions = Directions.of_motion(
            states, plant.model.state.scale, settings.directions, plant.model.rod.segments
        )

    @property
    def state(self) -> dict[str, Any]:
        """All that a learner of the same plant, task and settings needs to go on as this one."""
        return {
            "samples": self.samples,
            "lanes": self.lanes,
            "random": self.random.bit_generator.state,
            "regression": self.regression.state,
            "memory": [vars(each) for each in self.memory],
        }

    def go_on(self, state: dict[str, Any]) -> None:
        """As the learner would have that had this state.

        Raises:
            LookupError, RuntimeError, TypeError, ValueError: it is the state of another learner.
        """
        self.samples, self.lanes = int(state["samples"]), int(state["lanes"])
        self.random.bit_generator.state = state["random"]
        self.regression.go_on(state["regression"])
        for each in state["memory"]:
            targets = Targets(**each)
            targets.require(
                self.observation.size, self.plant.model.inputs.size, self.directions.count
            )
            self.memory.append(targets)

    @property
    def network(self) -> PolicyNetwork:
        """The policy of this moment."""
        return self.regression.network

    @property
    def progress(self) -> float:
        """Share of the samples that are done."""
        return min(self.samples / self.settings.samples, 1.0)

    def round(self) -> None:
        """Learns from new motions."""
        raise NotImplementedError

    def episodes(self) -> Episodes:
        """Those of a round."""
        return self.task.episodes(self.settings.environments, self.random)

    def explored(self, network: PolicyNetwork, episodes: Episodes) -> Motions:
        """Motions of the network, most of them disturbed."""
        size = self.plant.model.inputs.size
        count, steps = len(episodes.steps), int(episodes.steps.max())
        deviation = self.settings.noise * (_CALM if self.task.moving else 1.0)
        noise = deviation * self.random.standard_normal((steps, count, size))
        noise *= self.random.random((count, 1)) < _NOISY

        def act(
            step: int, rows: np.ndarray, states: np.ndarray, seen: np.ndarray
        ) -> tuple[np.ndarray, np.ndarray]:
            means = network(seen)
            return np.clip(means + noise[step, rows], -1.0, 1.0), means

        return self.rolled(episodes, act)

    def rolled(self, episodes: Episodes, act: Act) -> Motions:
        """Motions under a controller, which count as samples."""
        motions = roll(self.plant, self.observation, episodes, act, self.task.moving)
        self.samples += int(motions.ends.sum())
        return motions

    def linearised(self, motions: Motions) -> Linearisation:
        """Derivatives of motions, whose lanes count."""
        found = linearise(self.plant, self.observation, motions, self.directions)
        self.lanes += found.lanes
        return found

    def weights(self, motions: Motions) -> np.ndarray:
        """(B, T) of squared distances at the end of each step [1/m^2]."""
        length = self.plant.robot.length
        if self.task.moving:
            return even_weights(motions.distances, _WIDTH_MOVING * length)
        return nearest_weights(motions.distances, _FLOOR * length)

    def score(self, motions: Motions) -> np.ndarray:
        """(B,) the less the better: least distances, or mean ones where goals move [m]."""
        distances = motions.distances
        if self.task.moving:
            count = np.maximum(motions.ends, 1)
            return np.where(motions.done, distances, 0.0).sum(axis=1) / count
        return np.maximum(distances.min(axis=1), _FLOOR * self.plant.robot.length)

    def share(self, motions: Motions) -> float:
        """Of motions that reach their goals, or stay as near to them on average."""
        return float((self.score(motions) < SUCCESS * self.plant.robot.length).mean())


def policy_slopes(network: PolicyNetwork, motions: Motions, linear: Linearisation) -> np.ndarray:
    """(B, T, m, r) of the network's actions by coordinates of the state."""
    runs, steps, size = motions.seen.shape
    _, slopes = network.with_slopes(motions.seen.reshape(-1, size))
    found: np.ndarray = slopes.reshape(runs, steps, -1, size) @ linear.seen
    return found


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
