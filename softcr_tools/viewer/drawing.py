"""What is drawn beside the rod, as lines and dots: for the browser page and for RViz alike."""

from dataclasses import dataclass

import numpy as np

from softcr_runtime.figure_style import ESTIMATE, MEASURED, REFERENCE, TRUTH
from softcr_tools.viewer.picture import Picture

TRAIL = 8.0
"""How long the tip's trail is [s]."""

DOT_SIZE = 0.15
"""Width of a dot over the rod's radius."""


@dataclass(frozen=True, eq=False)
class Line:
    """(k, 3) points [m] in the picture's frame, k >= 2, or None; `width` in pixels."""

    points: np.ndarray | None
    colour: str
    width: float


@dataclass(frozen=True, eq=False)
class Dot:
    """(3,) position [m] in the picture's frame, or None."""

    position: np.ndarray | None
    colour: str


def lines(picture: Picture) -> dict[str, Line]:
    """Every line by name; those of which nothing is known have no points."""
    reference, truth = picture.reference, picture.truth
    return {
        "reference": Line(picture.reference_shape, REFERENCE, 3.0),
        "horizon": _line(None if reference is None else reference.tip_positions, REFERENCE, 2.0),
        "truth": Line(None if truth is None else truth.positions, TRUTH, 2.0),
        "trail": _line(_trail(picture), ESTIMATE, 1.5),
    }


def dots(picture: Picture) -> dict[str, Dot]:
    """Every dot by name; those of which nothing is known have no position."""
    reference = picture.reference
    return {
        "target": Dot(None if reference is None else reference.tip_positions[0], REFERENCE),
        "tip": Dot(picture.estimated_tip, ESTIMATE),
        "measured": Dot(picture.measured_tip, MEASURED),
    }


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green, blue from 0 to 255 of #rrggbb."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _line(points: np.ndarray | None, colour: str, width: float) -> Line:
    return Line(points if points is not None and len(points) >= 2 else None, colour, width)


def _trail(picture: Picture) -> np.ndarray:
    """(k, 3) where the estimated tip has been lately [m]."""
    table = picture.table()
    if not len(table["time"]):
        return np.empty((0, 3))
    points = np.stack([table["tip_x"], table["tip_y"], table["tip_z"]], axis=1)
    return points[(table["time"] >= -TRAIL) & np.isfinite(points).all(axis=1)]
