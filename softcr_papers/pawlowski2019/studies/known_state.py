"""A controller on a plant whose state it is told, as in the thesis."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from softcr_control.command import Command
from softcr_control.controller_file import named_settings
from softcr_control.observation import ControlContext
from softcr_control.reference.references import Reference
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_papers.pawlowski2019.studies.columns import Column
from softcr_papers.pawlowski2019.studies.robots import floating
from softcr_runtime.settings import registry
from softcr_runtime.settings.node_settings import nested
from softcr_studies.frame.cell import Result
from softcr_studies.loops.known_state import KnownState

PLANT_INTERVALS, PLANT_SUBSTEPS = 20, 8

Path = Callable[[np.ndarray], np.ndarray]
"""Wanted tips (T, 3) [m] at times (T,) [s]."""


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
    model: Any = column.model()
    plant = model
    if not column.implicit:
        finer = CosseratRod(floating(), PLANT_INTERVALS)
        plant = RodPrediction(finer, PLANT_SUBSTEPS, single_precision=False)
    rest = np.zeros(model.inputs.size)
    begin_state = plant.equilibrium(rest, plant.nominal_parameters)
    loop = KnownState(model, plant, begin_state, rest, column.tick)
    kind = registry.resolve("controller", column.controller)
    settings = named_settings(column.controller, given=nested(column.settings))
    controller = kind(ControlContext(column.robot, model, column.tick), settings)
    errors, solve = [], []
    for tick in range(ticks):
        wanted = path(loop.now + column.tick * np.arange(controller.rows))
        errors.append(float(np.linalg.norm(loop.tip - wanted[0])))
        if enough is not None and enough(np.array(errors)):
            break
        observation = loop.observe(Reference(loop.now, column.tick, None, wanted))
        begin = time.thread_time()
        answer = controller.command(observation)
        if tick % column.ticks == 0:
            solve.append(time.thread_time() - begin)
        loop.follow(answer.pressures if isinstance(answer, Command) else answer)
    return {"error": np.array(errors), "solve": np.array(solve)}
