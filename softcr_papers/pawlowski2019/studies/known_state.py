"""A controller on a plant whose state it is told, as in the thesis; the plant is another rod.

What is decided at a tick acts from the next one on.
"""

import time
from collections.abc import Callable

import numpy as np

from softcr_control.command import Command
from softcr_control.controller_file import named_settings
from softcr_control.observation import ControlContext, Observation
from softcr_control.reference.references import Reference
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod_model.rows import interval_counts, restricted
from softcr_papers.pawlowski2019.studies.columns import TICK, Column
from softcr_papers.pawlowski2019.studies.robots import floating
from softcr_runtime.settings import registry
from softcr_runtime.settings.node_settings import nested
from softcr_studies.frame.cell import Result

PLANT_INTERVALS, PLANT_SUBSTEPS = 20, 8

Path = Callable[[np.ndarray], np.ndarray]
"""Wanted tips (T, 3) [m] at times (T,) [s]."""


class Plant:
    """A finer rod, at rest at first, whose tensions go evenly to what is commanded."""

    def __init__(self) -> None:
        rod = CosseratRod(floating(), PLANT_INTERVALS)
        self._model = RodPrediction(rod, PLANT_SUBSTEPS, single_precision=False)
        self._state = rod.rest_state()
        self._counts = interval_counts(rod)
        self.tensions = np.zeros(rod.input_size)

    @property
    def tip(self) -> np.ndarray:
        """(3,) [m]."""
        numbers = self._model.nominal_parameters[None]
        return self._model.tip_poses(self._state[None], numbers)[0, :, 3]

    def at_nodes_of(self, model: RodPrediction) -> np.ndarray:
        """(nx,) its state at the nodes of a coarser rod."""
        return restricted(self._state[None], self._counts, interval_counts(model.rod))[0]

    def follow(self, command: np.ndarray) -> None:
        """One tick."""
        begin, end = self.tensions[None], command[None]
        numbers = self._model.nominal_parameters[None]
        self._state = self._model.step(self._state[None], begin, end, numbers, TICK)[0]
        self.tensions = command


def followed(
    column: Column, path: Path, ticks: int, enough: Callable[[np.ndarray], bool] | None = None
) -> Result:
    """A run from rest.

    Args:
        column: the controller.
        path: wanted.
        ticks: of the run, at most.
        enough: told the errors (T,) [m] so far; whether the run may end.

    Returns:
        error (T,) distance of the tip from what is wanted [m], solve: processor times of the plans
        that were made [s].
    """
    model, plant = column.model(), Plant()
    kind = registry.resolve("controller", column.controller)
    settings = named_settings(column.controller, given=nested(column.settings))
    controller = kind(ControlContext(column.robot, model, TICK), settings)
    pending, errors, solve = np.zeros(model.inputs.size), [], []
    for tick in range(ticks):
        stamp = TICK * tick
        wanted = path(stamp + TICK * np.arange(controller.rows))
        errors.append(float(np.linalg.norm(plant.tip - wanted[0])))
        if enough is not None and enough(np.array(errors)):
            break
        observation = Observation(
            stamp, plant.at_nodes_of(model), {}, Reference(stamp, TICK, None, wanted),
            plant.tensions, model,
        )  # fmt: skip
        begin = time.thread_time()
        answer = controller.command(observation)
        if tick % column.ticks == 0:
            solve.append(time.thread_time() - begin)
        plant.follow(pending)
        pending = answer.pressures if isinstance(answer, Command) else answer
    return {"error": np.array(errors), "solve": np.array(solve)}
