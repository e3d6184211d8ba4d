"""Numbers in files.

Quantities have the range that they can have in a robot. It is wide, and there to notice a number in
another unit: a length of 125 is one in millimetres.
"""

import math
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

_ENDINGS = (".yaml", ".yml", ".json", ".safetensors", ".py")


_TEXT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?(inf|nan)", re.I)


def number_in(text: str) -> float:
    """The number that a text of a person holds, written as in YAML and JSON; Python would also take
    underscores and digits of other scripts.

    Raises:
        ValueError: it is none.
    """
    if _TEXT.fullmatch(text.strip()) is None:
        raise ValueError(text)
    return float(text)


def whole_number_in(text: str) -> int:
    """The same of a whole number; see `number_in`."""
    if re.fullmatch(r"[-+]?[0-9]+", text.strip()) is None:
        raise ValueError(text)
    return int(text)


def _as_file_name(name: str) -> str:
    forbidden = {*"/\\:~\"'", *map(chr, range(32))} & {*name}
    if forbidden or name.startswith(".") or name.endswith(_ENDINGS):
        raise ValueError(
            "files are called by it: it must not begin with a dot, have one of / \\ : ~, or end "
            f"in {', '.join(_ENDINGS)}"
        )
    return name


Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Count = Annotated[int, Field(ge=1)]
Name = Annotated[str, Field(min_length=1)]
FileName = Annotated[str, Field(min_length=1), AfterValidator(_as_file_name)]
"""A name that files are called by: of a robot, whose network and calibration have its name."""

Triple = Annotated[tuple[Finite, ...], Field(min_length=3, max_length=3)]


def within(low: float, high: float, unit: str, **others: float) -> AfterValidator:
    """A range of numbers, or of tuples of them, whose error names units that may be meant.

    Args:
        low, high: the range; it is closed.
        unit: of the number.
        others: units that people also use, without spaces, and what one of them is in `unit`.
    """

    def require(value: Any) -> Any:
        for number in value if isinstance(value, tuple) else (value,):
            if not low <= number <= high:
                meant = "".join(
                    f"; {number:g} {other} would be {number * factor:.6g} {unit}"
                    for other, factor in others.items()
                    if low <= number * factor <= high
                )
                raise ValueError(f"must be from {low:.6g} to {high:.6g} {unit}{meant}")
        return value

    return AfterValidator(require)


_TURN = 2.0 * math.pi
_LENGTH = within(-20.0, 20.0, "m", mm=1e-3)
_WIDTH = within(-2.0, 2.0, "m", mm=1e-3)
_ANGLE = within(-_TURN, _TURN, "rad", degrees=math.pi / 180.0)


def _three_angles(value: Any) -> Any:
    """Refuses what is no rotation of this kind: a matrix, a quaternion, text."""
    angles = [
        each
        for each in (value if isinstance(value, (list, tuple)) else ())
        if isinstance(each, (int, float)) and not isinstance(each, bool) and math.isfinite(each)
    ]
    if len(angles) != 3 or len(value) != 3:
        raise ValueError("must be three angles, roll, pitch, yaw, from -2 pi to 2 pi [rad]")
    return value


Angle = Annotated[Finite, _ANGLE]
RollPitchYaw = Annotated[Triple, BeforeValidator(_three_angles), _ANGLE]
"""A rotation, about the fixed axes x, y, z one after the other [rad]."""
Length = Annotated[Positive, _LENGTH]
Place = Annotated[Triple, _LENGTH]
Width = Annotated[Positive, _WIDTH]
"""Of what lies across a rod, or is a small part of it [m]."""
WidthOrNone = Annotated[NonNegative, _WIDTH]
Offset = Annotated[Triple, _WIDTH]
LengthNoise = Annotated[NonNegative, within(0.0, 0.1, "m", mm=1e-3)]
Area = Annotated[Positive, within(0.0, 1.0, "m^2", mm2=1e-6)]
Modulus = Annotated[Positive, within(500.0, 1e15, "Pa", kPa=1e3, MPa=1e6, GPa=1e9)]
Density = Annotated[Positive, within(20.0, math.inf, "kg/m^3", **{"g/cm^3": 1e3})]
Mass = Annotated[NonNegative, within(0.0, 20.0, "kg", g=1e-3)]
Gravity = Annotated[NonNegative, within(0.0, 300.0, "m/s^2", **{"mm/s^2": 1e-3})]
