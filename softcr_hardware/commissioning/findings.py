"""What commissioning found, in words for a person, and who mends it."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

Mend = Literal["file", "hand"]


class Finding(BaseModel):
    """A mistake of wiring or mounting, or a number out of its bound.

    Attributes:
        words: what is wrong, with names.
        mend: `file`: the written files say it as it is; `hand`: somebody must mend it.
        could_be: what else would look the same to the sensors; empty for nothing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    words: str
    mend: Mend = "hand"
    could_be: str = ""


def exchanged_words(what: str, order: Sequence[int], names: Sequence[str]) -> list[str]:
    """Which parts are exchanged.

    Args:
        what: in the plural, as "sensors".
        order: (m,) whose part each chamber has, from 0.
        names: (m,) of the chambers.

    Returns:
        A line for each circle of the exchange.
    """
    words = []
    for circle in circles(order):
        if len(circle) == 2:
            words.append(f"{what} of {names[circle[0]]} and {names[circle[1]]} are swapped")
        elif len(circle) > 2:
            listed = ", ".join(f"{names[each]} has that of {names[order[each]]}" for each in circle)
            words.append(f"{what} are exchanged in a circle: {listed}")
    return words


def circles(order: Sequence[int]) -> list[list[int]]:
    """Circles of a permutation (m,), each begun at its smallest member."""
    left, found = set(range(len(order))), []
    while left:
        circle = [min(left)]
        while (following := int(order[circle[-1]])) != circle[0]:
            circle.append(following)
        left -= set(circle)
        found.append(circle)
    return found


def swaps(order: Sequence[int]) -> int:
    """How many exchanges of two make a permutation (m,)."""
    return len(order) - len(circles(order))


def turn_words(turn: np.ndarray) -> str:
    """A rotation vector (3,) [rad] in words: `turned by 90 deg about z`."""
    degrees = np.degrees(turn)
    angle = float(np.linalg.norm(degrees))
    axis = degrees / max(angle, 1e-12)
    main = int(np.argmax(np.abs(axis)))
    if abs(axis[main]) > np.cos(np.radians(5.0)):
        signed = angle if angle > 179.5 else np.copysign(angle, axis[main])
        return f"turned by {signed:.0f} deg about {'xyz'[main]}"
    listed = ", ".join(f"{each:.2f}" for each in axis)
    return f"turned by {angle:.0f} deg about ({listed})"
