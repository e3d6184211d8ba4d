"""Signs that a cameras' stream may have wrong, and how the same poses look without them.

A stream of the wrong handedness has positions of one axis, the rotations about the other two, or
both with the wrong sign. Both together is a consistent world, seen in a mirror.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

Kind = Literal["none", "positions", "orientations", "both"]


@dataclass(frozen=True)
class Mirror:
    """A wrong sign of one axis.

    Attributes:
        kind: of what.
        axis: x, y or z of the cameras' world; empty for none.
    """

    kind: Kind = "none"
    axis: str = ""

    def positions(self, positions: np.ndarray) -> np.ndarray:
        """(..., 3) positions with the right sign."""
        return positions * self._signs(("positions", "both"))

    def rotation(self, rotation: np.ndarray) -> np.ndarray:
        """(3, 3) rotation with the right signs."""
        signs = self._signs(("orientations", "both"))
        return np.asarray(signs[:, None] * rotation * signs)

    @property
    def words(self) -> str:
        """What is wrong; empty for nothing."""
        return {
            "none": "",
            "positions": f"the cameras' positions are mirrored: {self.axis}",
            "orientations": f"the tip body's axes are mirrored: {self.axis}",
            "both": f"the cameras' world is mirrored: {self.axis}",
        }[self.kind]

    def _signs(self, kinds: tuple[Kind, ...]) -> np.ndarray:
        signs = np.ones(3)
        if self.kind in kinds:
            signs["xyz".index(self.axis)] = -1.0
        return signs


KINDS: tuple[Kind, ...] = ("positions", "orientations", "both")
NO_MIRROR = Mirror()
MIRRORS = (NO_MIRROR, *(Mirror(kind, axis) for kind in KINDS for axis in "xyz"))
"""None, and all there are."""
