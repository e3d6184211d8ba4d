"""Shapes of faults of a pressure sensor, its chamber, its valve and the supply: one table.

A shape says what goes on from the moment it begins, as a `Course`: studies evaluate it for all
cycles of a run at once, an emulated sensor at each of its readings. A person types it by its name,
with a number and its unit: `offset -1 kPa/s`, `slope 0.7 in 10 s`, `stuck`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from softcr_hardware.virtual_channel import HELD, NEW_NOISE, NO_HOLD, Course
from softcr_models.errors import UserError

_PASCAL = {"Pa": 1.0, "kPa": 1e3}
_PASCAL_PER_SECOND = {"Pa/s": 1.0, "kPa/s": 1e3}
_SECOND = {"s": 1.0}
_PER_SECOND = {"1/s": 1.0}
_NO_UNIT = {"": 1.0}


@dataclass(frozen=True)
class FaultShape:
    """One row.

    Attributes:
        name: as it is typed.
        words: what it is, with the meaning of its number.
        units: factors to SI by unit, the first one meant where none is typed; empty: no number.
        low, high: the number's range, SI.
        course: of times since it began (T,) [s], the number, and how long it takes to come [s].
        gradual: whether it may be given a time to come, as `in 10 s`.
    """

    name: str
    words: str
    units: dict[str, float]
    low: float
    high: float
    course: Callable[[np.ndarray, float, float], Course]
    gradual: bool = False


def _constant(times: np.ndarray, value: float) -> np.ndarray:
    return np.full(len(times), value)


def _coming(times: np.ndarray, within: float) -> np.ndarray:
    """(T,) from 0 to 1 in so long [s]; at once for 0."""
    share: np.ndarray = np.minimum(times / within, 1.0) if within else np.ones(len(times))
    return share


SHAPES: tuple[FaultShape, ...] = (
    FaultShape(
        "frozen", "the very same count for ever", {}, 0.0, 0.0,
        lambda t, value, within: Course(hold=_constant(t, HELD)),
    ),
    FaultShape(
        "stuck", "the same pressure for ever, with noise of its own", {}, 0.0, 0.0,
        lambda t, value, within: Course(hold=_constant(t, NEW_NOISE)),
    ),
    FaultShape(
        "held", "stuck for this share of each second", _NO_UNIT, 0.0, 1.0,
        lambda t, value, within: Course(hold=np.where(t % 1.0 < value, NEW_NOISE, NO_HOLD)),
    ),
    FaultShape(
        "fades", "towards 0 with this time constant", _SECOND, 1e-3, 1e4,
        lambda t, value, within: Course(slope=np.exp(-t / value)),
    ),
    FaultShape(
        "kinked", "its line is: a lag of so long", _SECOND, 0.0, 1e4,
        lambda t, value, within: Course(lag=_constant(t, value)),
    ),
    FaultShape(
        "slope", "reads this factor times the pressure", _NO_UNIT, -10.0, 10.0,
        lambda t, value, within: Course(slope=1.0 + (value - 1.0) * _coming(t, within)),
        gradual=True,
    ),
    FaultShape(
        "offset", "reads so much more", _PASCAL, -1e6, 1e6,
        lambda t, value, within: Course(offset=value * _coming(t, within)),
        gradual=True,
    ),
    FaultShape(
        "offset", "drifts so fast", _PASCAL_PER_SECOND, -1e6, 1e6,
        lambda t, value, within: Course(offset=value * t),
    ),
    FaultShape(
        "quantised", "reads in steps of so much", _PASCAL, 0.0, 1e6,
        lambda t, value, within: Course(step=_constant(t, value)),
    ),
    FaultShape(
        "leak", "the chamber loses air at this rate", _PER_SECOND, 0.0, 1e4,
        lambda t, value, within: Course(leak=_constant(t, value)),
    ),
    FaultShape(
        "valve", "sticks at this opening: 1 fills, -1 exhausts", _NO_UNIT, -1.0, 1.0,
        lambda t, value, within: Course(stuck=_constant(t, value)),
    ),
    FaultShape(
        "supply", "of all chambers is this factor of the regulator's", _NO_UNIT, 0.0, 100.0,
        lambda t, value, within: Course(supply=1.0 + (value - 1.0) * _coming(t, within)),
        gradual=True,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class GivenFault:
    """A shape with its numbers.

    Attributes:
        shape: of the table.
        value: its number, SI.
        within: how long it takes to come [s].
    """

    shape: FaultShape
    value: float = 0.0
    within: float = 0.0

    def course(self, times: np.ndarray) -> Course:
        """At times (T,) since it began [s]."""
        return self.shape.course(times, self.value, self.within)


def given_fault(words: Sequence[str]) -> GivenFault:
    """A fault as it is typed: NAME [NUMBER [UNIT]] [in SECONDS s].

    Raises:
        UserError: no such shape, number, or unit.
    """
    if not words:
        raise UserError(f"fault: missing; known are {known_shapes()}")
    name, *rest = words
    shapes = [shape for shape in SHAPES if shape.name == name]
    if not shapes:
        raise UserError(f"fault {name!r}: unknown; known are {known_shapes()}")
    typed = " ".join(words)
    within = 0.0
    if len(rest) >= 2 and "in" in rest:
        at = rest.index("in")
        within, rest = _number(typed, [*rest[at + 1 :]], shapes[0], _SECOND), rest[:at]
        if not shapes[0].gradual or within < 0.0:
            raise UserError(f"fault {typed!r}: {name} takes no time to come")
    if not shapes[0].units:
        if rest:
            raise UserError(f"fault {typed!r}: {name} takes no number")
        return GivenFault(shapes[0])
    for shape in shapes:
        if len(rest) == 1 or (len(rest) == 2 and rest[1] in shape.units):
            value = _number(typed, rest, shape, shape.units)
            if not shape.low <= value <= shape.high:
                raise UserError(
                    f"fault {typed!r}: must be from {shape.low:g} to {shape.high:g} "
                    f"{next(iter(shape.units))}".rstrip()
                )
            return GivenFault(shape, value, within)
    units = ", ".join(unit for shape in shapes for unit in shape.units if unit)
    raise UserError(f"fault {typed!r}: must be {name} NUMBER{f' UNIT, UNIT {units}' * bool(units)}")


def known_shapes() -> str:
    """Names of the table, once each."""
    return ", ".join(dict.fromkeys(shape.name for shape in SHAPES))


def _number(typed: str, words: Sequence[str], shape: FaultShape, units: dict[str, float]) -> float:
    """A number with or without its unit, SI."""
    factor = units.get(words[1]) if len(words) == 2 else next(iter(units.values()))
    try:
        value = float(words[0]) if words and len(words) <= 2 else np.nan
    except ValueError:
        value = np.nan
    if factor is None or not np.isfinite(value):
        raise UserError(f"fault {typed!r}: {shape.words}: must be a number of {next(iter(units))}")
    return value * factor
