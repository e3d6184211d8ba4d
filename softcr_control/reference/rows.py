"""What a reference says at any time of its motion, as a value."""

from contextlib import suppress
from functools import cached_property

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_control.predictive.learned_motion import LearnedMotion
from softcr_control.reference.motion import BoundedMotion
from softcr_control.reference.references import SampledReference
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod_model.rows import row_poses
from softcr_runtime.blocks.values import ReferenceRows


class ReferenceSource:
    """Rows of one reference; of one that is known beforehand the poses along the rod are computed
    once, when first asked for.

    Args:
        source: the motion.
        rod: that its states belong to; None of a model that is no rod, whose states are told where
            all rows are known.
        learned: what repetitions have taught; None: nothing.
    """

    def __init__(
        self,
        source: SampledReference | BoundedMotion,
        rod: CosseratRod | None = None,
        learned: LearnedMotion | None = None,
    ) -> None:
        self._source, self._rod, self._learned = source, rod, learned
        self._unknown = None if rod is None else np.full(rod.state_size, np.nan)

    def at(self, time: float, rows: int, stamp: int) -> ReferenceRows:
        """So many rows from `time` [s] of the motion on; stamp [ns].

        States and tips are interpolated in time; poses, for viewers, are of the nearest rows.
        """
        window = self._source.window(time, rows)

        def poses() -> np.ndarray | None:
            known = self._poses
            if known is None:
                return self._poses_of(window.states)
            first = round(time / window.period)
            return known[np.clip(np.arange(first, first + rows), 0, len(known) - 1)]

        states = window.states
        if self._unknown is None:
            states = None if states is None or not np.isfinite(states).all() else states
        elif states is None:
            states = np.tile(self._unknown, (rows, 1))
        turned = _asked(window.tip_orientations, states)
        shift = None
        if self._learned is not None:
            shift = self._learned.at(time + window.period * np.arange(rows))
        return ReferenceRows(
            stamp, window.period, states, window.tip_positions, poses, turned, shift
        )

    @property
    def knows_inputs(self) -> bool:
        """Whether it tells what the nominal model feels. Of a class of somebody's own whose rows
        cannot be had it does not; what is wrong is said where they are needed."""
        if isinstance(self._source, SampledReference):
            return self._source.inputs is not None
        with suppress(Exception):
            return self._source.window(0.0, 1).inputs is not None
        return False

    def inputs_at(self, time: float, rows: int) -> np.ndarray | None:
        """(rows, m) that the nominal model feels from `time` [s] of the motion on; None where they
        are unknown."""
        return self._source.window(time, rows).inputs

    @cached_property
    def _poses(self) -> np.ndarray | None:
        """(T, R + 1, 4, 4) of every row; None if only tips are known, or rows not beforehand."""
        if isinstance(self._source, SampledReference):
            return self._poses_of(self._source.states)
        return None

    def _poses_of(self, states: np.ndarray | None) -> np.ndarray | None:
        if self._rod is None or states is None or not np.isfinite(states).all():
            return None
        rows = np.stack([row_poses(self._rod, state) for state in states])
        return np.concatenate((rows[:, :1], rows), axis=1)


def _asked(rotations: np.ndarray | None, states: np.ndarray | None) -> np.ndarray | None:
    """(H, 4) quaternions of rotations (H, 3, 3) in rows whose state, which tells its own, is
    unknown; NaN in the others."""
    if rotations is None:
        return None
    asked = np.isfinite(rotations).all(axis=(1, 2))
    if states is not None:
        asked &= ~np.isfinite(states).all(axis=1)
    if not asked.any():
        return None
    quaternions = np.full((len(rotations), 4), np.nan)
    quaternions[asked] = Rotation.from_matrix(rotations[asked]).as_quat()
    return quaternions
