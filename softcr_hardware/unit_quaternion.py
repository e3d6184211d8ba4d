"""A rotation in a file: x, y, z, w of length 1."""

import math
from typing import Annotated

from pydantic import AfterValidator, Field

from softcr_models.files.number_types import Finite

_LENGTH_TOLERANCE = 1e-3


def _of_length_one(quaternion: tuple[float, ...]) -> tuple[float, ...]:
    length = math.sqrt(sum(value**2 for value in quaternion))
    if abs(length - 1.0) > _LENGTH_TOLERANCE:
        raise ValueError(f"x, y, z, w must have length 1, has {length:.4f}")
    return quaternion


UnitQuaternion = Annotated[
    tuple[Finite, ...], Field(min_length=4, max_length=4), AfterValidator(_of_length_one)
]
"""x, y, z, w."""
