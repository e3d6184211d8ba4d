"""Loads at single places of a rod."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from softcr_models.arguments import ArgumentError
from softcr_models.rod.section import Grid, NodeLoads


@dataclass(frozen=True)
class PointLoad:
    """A load at the tip or at a node.

    Attributes:
        force: (3,) that keeps its direction, base frame [N].
        wrench: (6,) force [N], then moment [N m], that follow the body, frame of the node.
        node: 1 to N, counted from the base; the tip when None: a force then acts at the tip cap's
            outer face, a wrench at the last node.
    """

    force: ArrayLike = (0.0, 0.0, 0.0)
    wrench: ArrayLike = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    node: int | None = None


def node_loads(grid: Grid, loads: Sequence[PointLoad], forces: int) -> NodeLoads:
    """Loads as the kernels take them.

    Args:
        grid: of the rod.
        loads: which.
        forces: 3 for a rod whose force at the tip is estimated, else 0.

    Raises:
        ArgumentError: a node that is not there, or a number that is not finite.
    """
    rows = int(grid.first_row[-1])
    nodes = rows - grid.segments
    of_node = [row for row in range(rows) if row not in grid.first_row.tolist()]
    made = NodeLoads(np.zeros((rows, 3)), np.zeros((rows, 6)), np.zeros(3), 0, 0)
    for load in loads:
        force, wrench = _floats(load.force, "force"), _floats(load.wrench, "wrench")
        if force.shape != (3,) or wrench.shape != (6,):
            raise ArgumentError(
                f"load: force of shape {force.shape} and wrench of shape {wrench.shape}: allowed "
                "are (3,) and (6,)"
            )
        if not (np.isfinite(force).all() and np.isfinite(wrench).all()):
            raise ArgumentError(
                f"load: force {force.tolist()}, wrench {wrench.tolist()}: must be finite"
            )
        if load.node is None:
            made.tip_force[:] += force
            made.wrenches[-1] += wrench
            continue
        if not (isinstance(load.node, (int, np.integer)) and 1 <= load.node <= nodes):
            raise ArgumentError(f"load: node {load.node!r} is not allowed: 1 to {nodes}")
        made.forces[of_node[load.node - 1]] += force
        made.wrenches[of_node[load.node - 1]] += wrench
    directed = forces > 0 or bool(made.forces.any() or made.tip_force.any())
    acting = directed or bool(made.wrenches.any())
    return made._replace(acting=int(acting), directed=int(directed))


def _floats(value: ArrayLike, what: str) -> np.ndarray:
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError):
        raise ArgumentError(f"load: {what} {value!r} is not allowed: must be numbers") from None
