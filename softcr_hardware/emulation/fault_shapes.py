"""Shapes of faults of a pressure sensor, its chamber, its valve and the supply: one table.

A shape says what goes on from the moment it begins, as a `Course`: studies evaluate it for all
cycles of a run at once, an emulated sensor at each of its readings. A person types it by its name,
with a number and its unit: `offset -1 kPa/s`, `slope 0.7 in 10 s`, `held 0.5 every 0.2 s`, `stuck`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from softcr_hardware.emulation.virtual_channel import FROZEN, HELD, NEW_NOISE, NO_HOLD, Course
from softcr_models.errors import UserError

_PASCAL = {"Pa": 1.0, "kPa": 1e3}
_PASCAL_PER_SECOND = {"Pa/s": 1.0, "kPa/s": 1e3}
_SECOND = {"s": 1.0}
_PER_SECOND = {"1/s": 1.0}
_NO_UNIT = {"": 1.0}
_IN = ("in", 0.0)  # it takes so long to come [s]: at once, where nothing is said
_EVERY = ("every", 1.0)  # it comes again so often [s]


@dataclass(frozen=True)
class FaultShape:
    """One row.

    Attributes:
        name: as it is typed.
        words: what it is, with the meaning of its number.
        units: factors to SI by unit, the first one meant where none is typed; empty: no number.
        low, high: the number's range, SI.
        course: of times since it began (T,) [s], the number, and the time [s].
        time: word that a time may be given behind, and the time where it is not [s]; None for none.
    """

    name: str
    words: str
    units: dict[str, float]
    low: float
    high: float
    course: Callable[[np.ndarray, float, float], Course]
    time: tuple[str, float] | None = None


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
        "stopped", "its converter has stopped, its toggle, too", {}, 0.0, 0.0,
        lambda t, value, within: Course(hold=_constant(t, FROZEN)),
    ),
    FaultShape(
        "stuck", "the same pressure for ever, with noise of its own", {}, 0.0, 0.0,
        lambda t, value, within: Course(hold=_constant(t, NEW_NOISE)),
    ),
    FaultShape(
        "held", "stuck for this share of the time, every second", _NO_UNIT, 0.0, 1.0,
        lambda t, value, every: Course(
            hold=np.where(t % every < value * every, NEW_NOISE, NO_HOLD)
        ),
        time=_EVERY,
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
        time=_IN,
    ),
    FaultShape(
        "offset", "reads so much more", _PASCAL, -1e6, 1e6,
        lambda t, value, within: Course(offset=value * _coming(t, within)),
        time=_IN,
    ),
    FaultShape(
        "offset", "drifts so fast", _PASCAL_PER_SECOND, -1e6, 1e6,
        lambda t, value, within: Course(offset=value * t),
    ),
    FaultShape(
        "wanders", "by so much up and down, every second", _PASCAL, 0.0, 1e6,
        lambda t, value, every: Course(offset=value * np.sin(2.0 * np.pi * t / every)),
        time=_EVERY,
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
        time=_IN,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class GivenFault:
    """A shape with its numbers.

    Attributes:
        shape: of the table.
        value: its number, SI.
        time: see FaultShape [s].
    """

    shape: FaultShape
    value: float = 0.0
    time: float = 0.0

    def course(self, times: np.ndarray) -> Course:
        """At times (T,) since it began [s]."""
        return self.shape.course(times, self.value, self.time)


def given_fault(words: Sequence[str]) -> GivenFault:
    """A fault as it is typed: NAME [NUMBER [UNIT]] [in SECONDS | every SECONDS].

    Raises:
        UserError: no such shape, number, unit or time.
    """
    name, *rest = words or ("",)
    shapes = [shape for shape in SHAPES if shape.name == name]
    if not shapes:
        raise UserError(f"fault {name!r}: unknown; known are {known_shapes()}")
    typed = " ".join(words)
    time = None
    for word in ("in", "every"):
        if word in rest:
            at = rest.index(word)
            time, rest = (word, _number(typed, rest[at + 1 :], _SECOND)), rest[:at]
    shape, value = _valued(typed, shapes, rest)
    allowed, default = shape.time or ("", 0.0)
    if time is None:
        return GivenFault(shape, value, default)
    if time[0] != allowed or not (time[1] > 0.0 or (allowed == "in" and time[1] == 0.0)):
        must = f"{allowed} SECONDS" if allowed else "no time"
        raise UserError(f"fault {typed!r}: {name} takes {must}")
    return GivenFault(shape, value, time[1])


def known_shapes() -> str:
    """Names of the table, once each."""
    return ", ".join(dict.fromkeys(shape.name for shape in SHAPES))


def _valued(
    typed: str, shapes: Sequence[FaultShape], words: Sequence[str]
) -> tuple[FaultShape, float]:
    """Which of the shapes of one name it is, by its unit, and its number."""
    if not shapes[0].units:
        if words:
            raise UserError(f"fault {typed!r}: {shapes[0].name} takes no number")
        return shapes[0], 0.0
    for shape in shapes:
        if len(words) == 1 or (len(words) == 2 and words[1] in shape.units):
            value = _number(typed, words, shape.units)
            if not shape.low <= value <= shape.high:
                unit = next((unit for unit, factor in shape.units.items() if factor == 1.0), "")
                allowed = f"must be from {shape.low:g} to {shape.high:g} {unit}".rstrip()
                raise UserError(f"fault {typed!r}: {allowed}")
            return shape, value
    units = ", ".join(unit for shape in shapes for unit in shape.units if unit)
    must = f"{shapes[0].name} NUMBER" + (f" UNIT, UNIT {units}" if units else "")
    raise UserError(f"fault {typed!r}: must be {must}")


def _number(typed: str, words: Sequence[str], units: dict[str, float]) -> float:
    """A number with or without its unit, SI."""
    first = next(iter(units))
    factor = units.get(words[1]) if len(words) == 2 else units[first]
    try:
        value = float(words[0]) if 1 <= len(words) <= 2 else np.nan
    except ValueError:
        value = np.nan
    if factor is None or not np.isfinite(value):
        raise UserError(f"fault {typed!r}: must be a number{f' of {first}' if first else ''}")
    return value * factor
