"""Guided policy search with dynamics that are fitted to samples: the thesis's way."""

from collections import deque
from typing import Any

import numpy as np

from softcr_papers.pawlowski2019.learning.fitted_dynamics import fitted_steps, steps_of
from softcr_papers.pawlowski2019.learning.guided import GuidedSearch
from softcr_papers.pawlowski2019.learning.linearisation import Linearisation, with_geometry
from softcr_papers.pawlowski2019.learning.mixture import Mixture
from softcr_papers.pawlowski2019.learning.motions import Motions
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.tasks import Episodes, Task
from softcr_papers.pawlowski2019.learning.training_settings import TrainingSettings

_POINTS = 2000  # of which the prior is fitted


class FittedSearch(GuidedSearch):
    """As `GuidedSearch`, without any derivative of the rods' dynamics."""

    def __init__(self, plant: Plant, task: Task, settings: TrainingSettings) -> None:
        super().__init__(plant, task, settings)
        self._seen: deque[np.ndarray] = deque(maxlen=settings.memory)

    @property
    def state(self) -> dict[str, Any]:
        return super().state | {"seen": list(self._seen)}

    def go_on(self, state: dict[str, Any]) -> None:
        super().go_on(state)
        width = 2 * self.directions.count + self.plant.model.inputs.size
        for each in state["seen"]:
            if each.shape != (len(each), width):
                raise ValueError(f"steps have the shape {each.shape}, must have {width} columns")
            self._seen.append(each)

    def episodes(self) -> Episodes:
        """Those of a round, siblings one after the other."""
        own = self.settings
        few = self.task.episodes(own.environments // own.siblings, self.random)
        return Episodes(*(np.repeat(each, own.siblings, axis=0) for each in vars(few).values()))

    def linearised(self, motions: Motions) -> Linearisation:
        """Of dynamics that siblings share."""
        own, size = self.settings, self.directions.count
        steps, done = steps_of(motions, self.directions), motions.done
        self._seen.append(steps[done])
        points = np.concatenate(self._seen)
        chosen = self.random.choice(len(points), min(_POINTS, len(points)), replace=False)
        mixture = Mixture.fitted(points[chosen], own.clusters, self.random)
        families = (-1, own.siblings)
        transition, control = fitted_steps(
            steps.reshape(*families, *steps.shape[1:]),
            done.reshape(*families, *done.shape[1:]),
            mixture,
            size,
        )
        return with_geometry(
            np.repeat(transition, own.siblings, axis=0),
            np.repeat(control, own.siblings, axis=0),
            0,
            self.plant,
            self.observation,
            motions,
            self.directions,
        )
