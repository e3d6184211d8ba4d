"""The numbers of a strain model's equations of motion, whoever found them."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.valadas2024.strain.kinematics import STRAINS


@dataclass(frozen=True, eq=False)
class StrainNumbers:
    """M(q) q'' + C(q, q') q' + g(q) + K q + D q' = torque of the strains that are kept.

    S segments have n = 3 S strains, of which m are kept; the others are always 0.

    Attributes:
        lengths: (S,) rest lengths [m].
        mass: (S,) mass per length [kg/m].
        inertia: (S,) moment of inertia of the cross-section's mass per length [kg m].
        weight: (S,) weight per length [N/m].
        down: (2,) unit vector along gravity in the plane, in the frame of the base.
        stiffness: (m,) diagonal of K: [N m^2] of bending, [N] of shear and axial strain.
        damping: (m,) diagonal of D: [N m^2 s], [N s].
        active: (m,) indices of the strains kept, rising.
    """

    lengths: np.ndarray
    mass: np.ndarray
    inertia: np.ndarray
    weight: np.ndarray
    down: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    active: np.ndarray

    def __post_init__(self) -> None:
        """Raises UserError for shapes that do not fit."""
        for field in dataclasses.fields(self):
            kind = np.int64 if field.name == "active" else float
            value = np.array(getattr(self, field.name), dtype=kind, order="C")
            if not np.isfinite(value).all():
                raise UserError(f"{field.name} {value.tolist()}: must be finite")
            object.__setattr__(self, field.name, value)
        segments, kept = len(self.lengths), len(self.active)
        for name in ("mass", "inertia", "weight"):
            if getattr(self, name).shape != (segments,):
                raise UserError(f"{name}: must have a number for each of {segments} segments")
        for name in ("stiffness", "damping"):
            if getattr(self, name).shape != (kept,):
                raise UserError(f"{name}: must have a number for each of {kept} strains kept")
        places = self.active
        if not kept or (np.diff(places) <= 0).any() or places[0] < 0 or places[-1] >= 3 * segments:
            raise UserError(f"strains {places.tolist()}: must rise from 0 to {3 * segments - 1}")

    @property
    def names(self) -> tuple[str, ...]:
        """(m,) of the strains kept, such as `bending_1`."""
        return tuple(strain_name(index) for index in self.active)

    @property
    def size(self) -> int:
        """m, the number of strains kept."""
        return len(self.active)

    def replace(self, **changes: Any) -> "StrainNumbers":
        """The same with other numbers."""
        return dataclasses.replace(self, **changes)

    def full(self, q: np.ndarray) -> np.ndarray:
        """(..., n) all strains of those that are kept (..., m)."""
        q = np.asarray(q, float)
        out = np.zeros((*q.shape[:-1], 3 * len(self.lengths)))
        out[..., self.active] = q
        return out


def strain_name(index: int) -> str:
    """The name of a strain among n, such as `shear_2` for 4."""
    return f"{STRAINS[index % 3]}_{index // 3 + 1}"
