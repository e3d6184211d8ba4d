"""What a reference says on reference/rod, at any time of its motion."""

from typing import Any

import numpy as np

from softcr_control.references import SampledReference
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_runtime.rod_clouds import reference_cloud_message


class ReferenceMessages:
    """Messages of one reference; the poses along the rod are computed once, beforehand.

    Args:
        rod: that the states belong to.
        source: the motion.
    """

    def __init__(self, rod: CosseratRod, source: SampledReference) -> None:
        self._source = source
        self._unknown = np.full(rod.state_size, np.nan)
        self._poses = _known_poses(rod, source.states)

    def at(self, time: float, rows: int, stamp: int) -> Any:
        """reference/rod of so many rows from `time` [s] of the motion on; stamp [ns].

        States and tips are interpolated in time; poses, for viewers, are of the nearest rows.
        """
        window = self._source.window(time, rows)
        poses = None
        if self._poses is not None:
            first = round(time / window.period)
            poses = self._poses[np.clip(np.arange(first, first + rows), 0, len(self._poses) - 1)]
        states = np.tile(self._unknown, (rows, 1)) if window.states is None else window.states
        return reference_cloud_message(
            states, poses, window.tip_positions, stamp, window.period
        )


def _known_poses(rod: CosseratRod, states: np.ndarray | None) -> np.ndarray | None:
    """(T, n + 2, 4, 4) of every row; None if only tips are known."""
    if states is None or not np.isfinite(states).all():
        return None
    nodes = np.stack([rod.node_poses(state) for state in states])
    return np.concatenate((nodes[:, :1], nodes), axis=1)
