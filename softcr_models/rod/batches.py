"""Outputs of many states in one call: a filter asks for those of every sigma point."""

import numba
import numpy as np

from softcr_models.rod.compilation import COMPILE_OPTIONS
from softcr_models.rod.contact import Obstacles
from softcr_models.rod.evaluation import point_of, poses_along, rates
from softcr_models.rod.packing import Body
from softcr_models.rod.section import Fittings, Grid, NodeLoads


@numba.njit(**COMPILE_OPTIONS)
def base_wrenches(
    states: np.ndarray,
    inputs: np.ndarray,
    parameters: np.ndarray,
    body: Body,
    grid: Grid,
    fittings: Fittings | None,
    loads: NodeLoads | None,
    obstacles: Obstacles | None,
) -> np.ndarray:
    """(B, 6) wrenches that the rod's base transmits; see `rates`.

    Args:
        states: (B, nx); inputs: (B, m); parameters: (B, P).
        body, grid, fittings, loads, obstacles: of the rod.
    """
    out = np.empty((len(states), 6))
    for k in range(len(states)):
        out[k] = rates(
            states[k], inputs[k], parameters[k], body, grid, fittings, loads, obstacles
        )[1]  # fmt: skip
    return out


@numba.njit(**COMPILE_OPTIONS)
def poses_at(
    states: np.ndarray,
    parameters: np.ndarray,
    body: Body,
    grid: Grid,
    fittings: Fittings | None,
    loads: NodeLoads | None,
    obstacles: Obstacles | None,
    base_height: float,
    segment: int,
    place: float,
) -> np.ndarray:
    """(B, 4, 4) poses of one place of a rod's body; see `poses_along`.

    Args:
        states: (B, nx); parameters: (B, P).
        body, grid, fittings, loads, obstacles: of the rod.
        base_height: of the rod's base in the frame of the result [m].
        segment, place: which, and arc length from its beginning [m].
    """
    no_inputs = np.zeros(body.pulls.size)
    segments, places = np.array([segment]), np.array([place])
    out = np.empty((len(states), 4, 4))
    for k in range(len(states)):
        point = point_of(
            states[k], no_inputs, parameters[k], body, grid, fittings, loads, obstacles
        )  # fmt: skip
        compliance = point.section.compliance
        out[k] = poses_along(point.s, compliance, grid, fittings, base_height, segments, places)[0]
    return out
