"""A camera that looks straight at the plane of a robot, and the marks on its cross-sections."""

from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError


@dataclass(frozen=True)
class Camera:
    """Pixels and metres; the image's rows go down, the robot's y axis goes up.

    Attributes:
        width, height: of the image [pixels].
        scale: [pixels/m].
        base: column and row of the robot's base [pixels], of pixel centres.
    """

    width: int
    height: int
    scale: float
    base: tuple[float, float]

    def __post_init__(self) -> None:
        """Raises UserError for numbers that are not allowed."""
        if self.width < 1 or self.height < 1 or not 0.0 < self.scale < np.inf:
            raise UserError(
                f"camera of {self.width} x {self.height} pixels and {self.scale} pixels/m: must be "
                "above 0"
            )

    @classmethod
    def of_robot(cls, length: float, height: int = 2860, zoom: float = 2.3) -> "Camera":
        """A square image that is `zoom` lengths high, the base 37 % above its lower edge.

        Args:
            length: of the robot [m].
            height: of the image [pixels].
            zoom: [-].
        """
        return cls(height, height, height / (zoom * length), (0.5 * height, (1.0 - 0.37) * height))

    def pixels(self, points: np.ndarray) -> np.ndarray:
        """(..., 2) columns and rows of points (..., 2) of the plane [m]."""
        return np.array(self.base) + np.asarray(points) * [self.scale, -self.scale]

    def points(self, pixels: np.ndarray) -> np.ndarray:
        """(..., 2) points of the plane [m]; the inverse of `pixels`."""
        return (np.asarray(pixels) - self.base) / [self.scale, -self.scale]


@dataclass(frozen=True, eq=False)
class Marks:
    """Dark rectangles on a bright robot, one on each cross-section that is to be found.

    They must be short enough along the backbone not to touch each other where it bends.

    Attributes:
        places: (N,) of the unloaded backbone [m], from 0, the base, on.
        across, along: size across and along the backbone [m].
    """

    places: np.ndarray
    across: float
    along: float

    def __post_init__(self) -> None:
        """Raises UserError for numbers that are not allowed."""
        if not 0.0 < self.along < self.across < np.inf:
            raise UserError(
                f"marks of {self.across} m across and {self.along} m along the backbone: must be "
                "longer across, so that their direction can be seen"
            )

    @classmethod
    def of_robot(cls, length: float, count: int = 21) -> "Marks":
        """Evenly spaced from base to tip, 4 % of the length wide and 1.32 % long."""
        return cls(np.linspace(0.0, length, count), 0.04 * length, 0.0132 * length)

    @property
    def corners(self) -> np.ndarray:
        """(4, 2) of a mark in the frame of its cross-section [m]."""
        half = 0.5 * np.array([self.across, self.along])
        return half * np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
