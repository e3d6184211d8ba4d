"""The rows of a rod: its nodes, of which a boundary between two segments has two; see `section`.

Whoever exchanges states, draws rods or compares rods of different grids needs them.
"""

import numpy as np

from softcr_models.errors import UserError
from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.discretise import share_intervals
from softcr_models.rod.state import RodState


def interval_counts(rod: CosseratRod) -> tuple[int, ...]:
    """(K,) number of intervals of each segment."""
    return tuple((np.diff(rod.grid.first_row) - 1).tolist())


def row_poses(
    rod: CosseratRod, state: np.ndarray, parameters: np.ndarray | None = None
) -> np.ndarray:
    """(R, 4, 4) poses of the rows in the base frame [m]; of a boundary before the connector and
    after it.

    Args:
        rod: whose.
        state: (nx,).
        parameters: (P,); None: the robot's.
    """
    return poses_of_rows(rod, rod.node_poses(state, parameters))


def poses_of_rows(rod: CosseratRod, nodes: np.ndarray) -> np.ndarray:
    """(R, 4, 4) poses of the rows [m] of those (N + 1, 4, 4) of the nodes."""
    if rod.segments == 1:
        return nodes
    parts, first = [nodes[:1]], 1
    for segment, count in zip(rod.robot.segments, interval_counts(rod), strict=True):
        parts.append(nodes[first : first + count])
        first += count
        if first < len(nodes):
            beyond = parts[-1][-1:].copy()
            if segment.connector is not None:
                beyond[0, :3, 3] += beyond[0, :3, :3] @ segment.connector.offset
                beyond[0, :3, :3] = beyond[0, :3, :3] @ segment.connector.rotation_matrix
            parts.append(beyond)
    return np.concatenate(parts)


def with_matching_nodes(robot: Robot, intervals: int) -> Robot:
    """A copy with fixed numbers of intervals per segment, so that finer grids contain the nodes of
    coarser ones; a robot of one segment as it is.

    Args:
        robot: whose shares of a grid follow from lengths.
        intervals: of each segment on average.
    """
    if len(robot.segments) == 1:
        return robot
    counts = share_intervals(robot, intervals)
    shares = zip(robot.segments, counts, strict=True)
    return robot.replace(segments=[each.model_dump() | {"intervals": n} for each, n in shares])


def restricted(states: np.ndarray, fine: tuple[int, ...], coarse: tuple[int, ...]) -> np.ndarray:
    """States of a rod seen only at the nodes of a coarser grid.

    Args:
        states: (..., nx) of a rod whose segments have `fine` numbers of intervals.
        fine, coarse: (K,) numbers of intervals, each of `fine` a multiple of that of `coarse`.

    Returns:
        (..., nx) of the coarser grid.

    Raises:
        UserError: if the coarser nodes are not among the finer ones.
    """
    if len(fine) != len(coarse) or any(f % c for f, c in zip(fine, coarse, strict=True)):
        raise UserError(
            f"intervals {_told(coarse)}: the nodes of a rod of {_told(fine)} do not include "
            "theirs; allowed are divisors of it"
        )
    rod, velocities, wrenches, first = RodState(states, len(fine)), [], [], 0
    for segment, (f, c) in enumerate(zip(fine, coarse, strict=True)):
        every, row = f // c, first + segment
        velocities.append(rod.velocities[..., first + every - 1 : first + f : every, :])
        wrenches.append(rod.wrenches[..., row : row + f + 1 : every, :])
        first += f
    moving, elastic = (np.concatenate(parts, axis=-2) for parts in (velocities, wrenches))
    return RodState.join(moving, elastic, rod.base_wrench, len(fine)).array


def _told(counts: tuple[int, ...]) -> str:
    return " + ".join(map(str, counts))
