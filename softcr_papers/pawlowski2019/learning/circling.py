"""Goals that go round, as the circles of `softcr up --reference circle` do.

The nominal rod makes the motions: the direction of its inputs turns, as fast and as far as a draw
says. So every goal can be followed, also by a robot of several segments, whose tips under random
inputs fill a volume. Ranges are ours; the circles of Licher et al. (2025), Experiment 5c, up to
0.6 Hz are among them.
"""

import numpy as np

from softcr_control.reference.signals import fade_in, time_grid
from softcr_papers.pawlowski2019.learning.goals import Goals, SeenGoals, require_goals
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.tasks import Episodes

_DURATION, _FADE = 6.0, 1.0  # of a motion, and of its begin from rest [s]
_MEAN, _AMPLITUDE = (0.25, 0.45), (0.05, 0.25)  # of each input's range [-]
_FREQUENCY = (0.1, 0.75)  # [Hz]


class Circling:
    """Follow a tip that goes round, from rest."""

    moving = True

    def __init__(self, plant: Plant, pool: int = 256) -> None:
        """See the class.

        Args:
            plant: whose nominal rod makes the motions.
            pool: how many of them, of which runs are drawn.
        """
        model, period = plant.model, plant.settings.period
        self.name, self._rest = "circle", model.inputs.rest
        times = time_grid(_DURATION, period)
        self.steps = len(times) - 1
        nominal = model.nominal_parameters
        start = model.equilibrium(self._rest, nominal)
        inputs = self.inputs(plant, times, pool, np.random.default_rng(0))
        moved = model.rollout_tips(start, inputs, nominal, period)[:, :, :, 3]
        first = model.tip_poses(start[None], nominal[None])[:, :, 3]
        tips = np.concatenate((np.repeat(first[None], pool, axis=0), moved), axis=1)
        self._tips = tips[np.isfinite(tips).all(axis=(1, 2))].astype(float)
        self._velocities = np.gradient(self._tips, period, axis=1)
        self.goals: Goals = SeenGoals(self._tips[:, ::10].reshape(-1, 3))

    @staticmethod
    def inputs(
        plant: Plant, times: np.ndarray, count: int, random: np.random.Generator
    ) -> np.ndarray:
        """(count, T, m) that the rods feel at times (T,) from 0 on: faded in from rest, the i-th of
        m inputs an m-th of a turn behind the one before it."""
        inputs = plant.model.inputs
        mean = random.uniform(*_MEAN, (count, 1, inputs.size))
        amplitude = random.uniform(*_AMPLITUDE, (count, 1, 1))
        rate = 2.0 * np.pi * random.uniform(*_FREQUENCY, (count, 1, 1))
        rate *= random.choice((-1.0, 1.0), (count, 1, 1))
        begin = random.uniform(0.0, 2.0 * np.pi, (count, 1, 1))
        behind = 2.0 * np.pi * np.arange(inputs.size) / inputs.size
        turned = mean + amplitude * np.cos(begin + rate * times[:, None] - behind)
        wanted = inputs.low + turned * inputs.range
        faded: np.ndarray = inputs.rest + fade_in(times, _FADE)[:, None] * (wanted - inputs.rest)
        return faded

    def episodes(
        self, count: int, random: np.random.Generator, goals: np.ndarray | None = None
    ) -> Episodes:
        """See Task; goals that are given stand still."""
        steps, inputs = np.full(count, self.steps), np.tile(self._rest, (count, 1))
        if goals is not None:
            require_goals(goals, self.goals, "goal")
            return Episodes(goals[:, None], np.zeros((count, 1, 3)), steps, inputs)
        rows = random.integers(len(self._tips), size=count)
        return Episodes(self._tips[rows], self._velocities[rows], steps, inputs)
