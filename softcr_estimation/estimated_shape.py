"""Poses along an estimated robot, computed where somebody makes a message of them, and once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from softcr_models.model import TIP, Model, parameter_values
from softcr_models.rod_model.rod_model import RodModel
from softcr_models.rod_model.rows import poses_of_rows


@dataclass(frozen=True)
class EstimatedShape:
    """Where a robot is.

    Attributes:
        poses: gives (k, 4, 4) poses along it, base to tip [m]; None where a model has no rod.
        tip: gives the (4, 4) pose of its tip [m].
    """

    poses: Callable[[], np.ndarray] | None
    tip: Callable[[], np.ndarray]


def estimated_shape(
    model: Model, state: np.ndarray, parameters: Mapping[str, float]
) -> EstimatedShape:
    """The shape of a state (nx,) of a model with parameters by name."""
    told = parameter_values(model.parameters, parameters)
    if not isinstance(model, RodModel):
        return EstimatedShape(None, lambda: _observed_tip(model, state, told))
    rod = model.rod

    @cache
    def nodes() -> np.ndarray:
        return rod.node_poses(state, model.rod_parameters(told[None])[0])

    return EstimatedShape(
        lambda: np.concatenate((nodes()[:1], poses_of_rows(rod, nodes()))),
        lambda: model.tip_beyond(nodes()[-1], told),
    )


def _observed_tip(model: Model, state: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    pose = model.observe((TIP,), state[None], None, parameters[None])[TIP][0]
    return np.vstack((pose, [0.0, 0.0, 0.0, 1.0]))
