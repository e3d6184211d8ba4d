"""Tendons parallel to the centre line, in closed form: Dalenberg, (45) to (49).

In a section of constant curvature such a tendon is an arc of its own. One at (x, y) of the
cross-section changes its length by dL - (x Delta_x + y Delta_y) / d over a section, and by the
covered part of that where it begins or ends inside. So B depends on the rest lengths alone, through
the coverage, and y = B^T q is exact. Tendon forces u act by virtual work, tau = B u; y and u are
negative where a tendon is shortened and pulls.

Coupled routing, the thesis's simulations: every tendon begins at the base and acts on all sections
it runs through. Independent routing, its hardware: a tendon begins at the rack before its own.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.constant_curvature.kinematics import coverage_of

Routing = Literal["coupled", "independent"]


@dataclass(frozen=True, eq=False)
class Tendons:
    """Where the tendons of an arm run.

    Attributes:
        offsets: (a, 2) place in the cross-section [m].
        begins, ends: (a,) material abscissae between which they act [m].
    """

    offsets: np.ndarray
    begins: np.ndarray
    ends: np.ndarray

    def __post_init__(self) -> None:
        """Raises UserError for numbers that are not allowed."""
        if not np.all((self.begins >= 0.0) & (self.begins < self.ends)):
            raise UserError(
                f"tendons from {np.asarray(self.begins).tolist()} m to "
                f"{np.asarray(self.ends).tolist()} m: each must begin at 0 or later, and end after"
            )

    @classmethod
    def of_racks(
        cls,
        racks: np.ndarray,
        radius: float,
        angles: np.ndarray,
        routing: Routing = "coupled",
    ) -> "Tendons":
        """Some tendons to each rack, at the same distance from the centre line.

        Args:
            racks: (r,) material abscissae where tendons are fixed, increasing [m].
            radius: distance from the centre line [m].
            angles: (r, k) of each rack's tendons about z from the x axis [rad].
            routing: coupled or independent.
        """
        racks, angles = np.asarray(racks, float), np.asarray(angles, float)
        if np.any(np.diff(racks, prepend=0.0) <= 0.0):
            raise UserError(f"racks: {racks.tolist()} m are not allowed: must rise from above 0")
        if angles.ndim != 2 or len(angles) != len(racks):
            raise UserError(f"angles of shape {angles.shape}: must be ({len(racks)}, tendons)")
        before = np.r_[0.0, racks[:-1]] if routing == "independent" else np.zeros(len(racks))
        count = angles.shape[1]
        offsets = radius * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        return cls(offsets.reshape(-1, 2), np.repeat(before, count), np.repeat(racks, count))

    def __len__(self) -> int:
        """Number of tendons."""
        return len(self.ends)

    def actuation(self, rest_lengths: np.ndarray, radius: float = 1.0) -> np.ndarray:
        """(..., 3 n, a) matrix B [-] of (45), for rest lengths (..., n) [m]: tau = B u, y = B^T q.

        Args:
            rest_lengths: of the sections, true ones or estimates.
            radius: scaling radius d of Delta [m].
        """
        lengths = np.asarray(rest_lengths, float)
        acting = coverage_of(self.ends, lengths) - coverage_of(self.begins, lengths)
        arms = np.hstack([-self.offsets / radius, np.ones((len(self), 1))])
        columns = acting[..., None] * arms[:, None, :]  # (..., a, n, 3)
        flat = columns.reshape(*columns.shape[:-2], -1)
        return np.swapaxes(flat, -1, -2)
