"""Numbers of references that are in another unit, by what the robot can do."""

import numpy as np

from softcr_models.errors import UserError
from softcr_models.files.csv_files import UNITS

_TOO_SMALL, _TOO_LARGE = 1e-3, 10.0  # of the robot's reach, where another unit explains it
_LIKELY = (0.01, 1.2)  # of the reach, what explains it


def require_unit(what: str, values: object, unit: str, reach: float) -> None:
    """Refuses numbers that are far too small or too large for a robot, where another unit of the
    same quantity explains them.

    Args:
        what: they are, for the message.
        values: numbers of any shape [unit].
        unit: SI.
        reach: the largest that makes sense [unit].

    Raises:
        UserError: one line with the likely unit.
    """
    largest = float(np.abs(np.asarray(values, float)).max(initial=0.0))
    if largest == 0.0 or _TOO_SMALL * reach < largest < _TOO_LARGE * reach:
        return
    found = {other: size * largest for other, size in UNITS.get(unit, {}).items()}
    likely = [n for n in found if _LIKELY[0] * reach <= found[n] <= _LIKELY[1] * reach]
    if likely:
        other = min(likely, key=lambda name: abs(np.log(found[name] / reach)))
        raise UserError(
            f"{what}: the largest is {largest:g} {unit}, where the robot reaches {reach:.4g} "
            f"{unit}; {largest:g} {other} would be {found[other]:g} {unit}"
        )
