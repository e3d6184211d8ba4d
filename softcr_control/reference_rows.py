"""What a reference says at any time of its motion, as a value."""

import numpy as np

from softcr_control.references import SampledReference
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_runtime.values import ReferenceRows


class ReferenceSource:
    """Rows of one reference; the poses along the rod are computed once, beforehand.

    Args:
        source: the motion.
        rod: that its states belong to; None where states are not told.
    """

    def __init__(self, source: SampledReference, rod: CosseratRod | None = None) -> None:
        self._source = source
        self._unknown = None if rod is None else np.full(rod.state_size, np.nan)
        self._poses = None if rod is None else _known_poses(rod, source.states)

    def at(self, time: float, rows: int, stamp: int) -> ReferenceRows:
        """So many rows from `time` [s] of the motion on; stamp [ns].

        States and tips are interpolated in time; poses, for viewers, are of the nearest rows.
        """
        window = self._source.window(time, rows)

        def poses() -> np.ndarray | None:
            if self._poses is None:
                return None
            first = round(time / window.period)
            return self._poses[np.clip(np.arange(first, first + rows), 0, len(self._poses) - 1)]

        states = None
        if self._unknown is not None:
            states = window.states
            states = np.tile(self._unknown, (rows, 1)) if states is None else states
        return ReferenceRows(stamp, window.period, states, window.tip_positions, poses)


def _known_poses(rod: CosseratRod, states: np.ndarray | None) -> np.ndarray | None:
    """(T, n + 2, 4, 4) of every row; None if only tips are known."""
    if states is None or not np.isfinite(states).all():
        return None
    nodes = np.stack([rod.node_poses(state) for state in states])
    return np.concatenate((nodes[:, :1], nodes), axis=1)
