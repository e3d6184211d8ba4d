"""Where a rod's tip gets, as a box of curvature and stretch, Pawlowski (2019), Sec. 2.7.3.

A rod of constant bending w [rad/m] in the direction phi [rad] and stretch eps [-] has the twist
[0, 0, 1 + eps, w, 0, 0] turned by phi about z; the thesis's (2.117) has w in the next place, which
is a bending about y and does not lead to (2.120).
"""

from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError


def tip_of(coordinates: np.ndarray, length: float) -> np.ndarray:
    """(..., 3) tips [m] of curvatures, directions and stretches (..., 3), (2.120)."""
    curvature, direction, stretch = np.moveaxis(np.asarray(coordinates, float), -1, 0)
    half = 0.5 * length * curvature
    chord = length * (1.0 + stretch) * np.sinc(half / np.pi)
    aside = chord * np.sin(half)
    return np.stack(
        (aside * np.sin(direction), -aside * np.cos(direction), chord * np.cos(half)), axis=-1
    )


def coordinates_of(tips: np.ndarray, length: float) -> np.ndarray:
    """(..., 3) curvatures from 0 to 2 pi / L, directions from -pi to pi, stretches of tips
    (..., 3), (2.121) to (2.127)."""
    x, y, z = np.moveaxis(np.asarray(tips, float), -1, 0)
    half = np.arctan2(np.hypot(x, y), z)
    chord = np.sqrt(x * x + y * y + z * z)
    with np.errstate(divide="ignore"):  # half a turn brings the tip to the base
        stretch = chord / (length * np.sinc(half / np.pi)) - 1.0
    return np.stack((2.0 * half / length, np.arctan2(x, -y), stretch), axis=-1)


@dataclass(frozen=True)
class Workspace:
    """Tips of a box of coordinates, any direction.

    Attributes:
        length: of the rod [m].
        curvature: bound [rad/m].
        stretch: least and largest [-].
    """

    length: float
    curvature: float
    stretch: tuple[float, float]

    @classmethod
    def around(cls, tips: np.ndarray, length: float, share: float = 1.0) -> "Workspace":
        """The least one that contains all tips (J, 3), or a share of them.

        Args:
            tips: [m].
            length: of the rod [m].
            share: of the tips that are inside each of the three bounds.

        Raises:
            UserError: there is no tip, or one that is not finite; a share that is not above 0.5
                and at most 1.
        """
        if not 0.5 < share <= 1.0:
            raise UserError(f"share: {share} is not allowed: above 0.5, at most 1")
        found = coordinates_of(np.reshape(tips, (-1, 3)), length)
        if not len(found) or not np.isfinite(found).all():
            raise UserError("tips: a workspace needs at least one, all finite")
        curvature, _, stretch = found.T
        low, high = np.quantile(stretch, (1.0 - share, share))
        return cls(length, float(np.quantile(curvature, share)), (float(low), float(high)))

    def contains(self, tips: np.ndarray) -> np.ndarray:
        """(...,) of tips (..., 3); the bounds themselves, to rounding, are inside."""
        curvature, _, stretch = np.moveaxis(coordinates_of(tips, self.length), -1, 0)
        low, high = self.stretch
        inside = (curvature <= self.curvature * (1.0 + 1e-9)) & (stretch >= low - 1e-9)
        return inside & (stretch <= high + 1e-9)

    def sample(self, count: int, random: np.random.Generator) -> np.ndarray:
        """(count, 3) tips, uniform in curvature, direction and stretch [m]."""
        low, high = self.stretch
        box = random.uniform((0.0, -np.pi, low), (self.curvature, np.pi, high), (count, 3))
        return tip_of(box, self.length)
