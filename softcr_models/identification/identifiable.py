"""Which numbers of a robot can be identified: their names, units and places in the robot's file.

A robot of one segment has `bending_compliance`, one of several `bending_compliance_1`,
`bending_compliance_2`, ...; where a file gives two bending compliances, `_x` and `_y` follow. What
a robot does not have, a tip mass of 0 or a lag, cannot be identified: what is looked for is its
logarithm.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from softcr_models.chain.elements import elements_of
from softcr_models.errors import UserError
from softcr_models.files.yaml_files import validated
from softcr_models.model import Parameter
from softcr_models.robots.robot import Robot
from softcr_models.robots.short_form import with_segments

Stage = Literal["rest", "motion", "lag", "chain"]
"""What tells a number: configurations at rest, motion, commands beside measured inputs; of a
`pressure_chain`, motion together with all of the rod's."""

Place = tuple[str | int, ...]
"""Where a number stands in the content of a robot file with `segments`."""


class Identifiable(NamedTuple):
    """One number that can be identified.

    Attributes:
        name: unlike every other's.
        unit: SI.
        stage: what tells it.
        places: where it stands. The first has the value, the others keep their proportion to it.
        scale: of a number that may be zero or below: the change that its error is told in. None of
            one that is above zero: its error is told relative to itself.
        low, high: between which a number with a scale is looked for.
    """

    name: str
    unit: str
    stage: Stage
    places: tuple[Place, ...]
    scale: float | None = None
    low: float = -np.inf
    high: float = np.inf


CHAIN_SCALES = {"-": 0.5, "rad": 0.05, "m": 2.5e-3}
"""A tenth of it is worth knowing of a number of a chain, by unit."""


def identifiable(robot: Robot) -> tuple[Identifiable, ...]:
    """Everything that can be identified of a robot, in the order in which it is told."""
    content = content_of(robot)
    return tuple(
        each for each in _all(robot) if each.scale or _value(content, each.places[0]) > 0.0
    )


def names_of(robot: Robot, *stages: Stage) -> tuple[str, ...]:
    """Names of what can be identified; of some stages, if any are given."""
    return tuple(e.name for e in identifiable(robot) if not stages or e.stage in stages)


def chosen_of(robot: Robot, names: Sequence[str]) -> list[Identifiable]:
    """What can be identified, by name.

    Raises:
        UserError: this robot has no such number.
    """
    known = {each.name: each for each in identifiable(robot)}
    for name in names:
        if name not in known:
            raise UserError(
                f"robot {robot.name}: {name}: not to be identified; allowed are {', '.join(known)}"
            )
    return [known[name] for name in names]


def units_of(robot: Robot) -> dict[str, str]:
    """Name -> unit of all that can be identified."""
    return {each.name: each.unit for each in identifiable(robot)}


def parameters_of(robot: Robot, names: Sequence[str]) -> np.ndarray:
    """(P,) values by name.

    Raises:
        UserError: this robot has no such number.
    """
    content = content_of(robot)
    return np.array([_value(content, each.places[0]) for each in chosen_of(robot, names)], float)


def with_parameters(robot: Robot, names: Sequence[str], values: Sequence[float]) -> Robot:
    """The robot with numbers replaced.

    Raises:
        UserError: a value that is not allowed, or this robot has no such number.
    """
    content = content_of(robot)
    for each, number in zip(chosen_of(robot, names), values, strict=True):
        value, before = float(number), _value(content, each.places[0])
        for place in each.places:
            own = _value(content, place)
            _set(content, place, value if own == before else value * own / before)
    return validated(Robot, content, f"robot {robot.name}")


def _all(robot: Robot) -> Iterator[Identifiable]:
    several = len(robot.segments) > 1
    segments = [
        (("segments", k), f"_{k + 1}" if several else "") for k in range(len(robot.segments))
    ]
    for place, suffix in segments:
        yield Identifiable(f"length{suffix}", "m", "rest", ((*place, "length"),))
    yield Identifiable("tip_mass", "kg", "rest", (("tip_mass",),))
    if robot.payload is not None:
        inertia: list[Place] = [("payload", "inertia", axis) for axis in range(3)]
        yield Identifiable("payload_mass", "kg", "rest", (("payload", "mass"), *inertia))
    for place, suffix in segments:
        bending = (*place, "bending_compliance")
        pair = isinstance(robot.segments[place[1]].bending_compliance, tuple)
        for axis, number in zip("xy", range(2), strict=True) if pair else (("", None),):
            where = bending if number is None else (*bending, number)
            name = f"bending_compliance{suffix}{'_' * pair}{axis}"
            yield Identifiable(name, "rad/(N m m)", "rest", (where,))
    for place, suffix in segments:
        name = f"dilatation_compliance{suffix}"
        yield Identifiable(name, "m/(N m)", "rest", ((*place, "dilatation_compliance"),))
    for place, suffix in segments:
        times = tuple((*place, "relaxation_times", axis) for axis in (3, 4))
        yield Identifiable(f"bending_relaxation_time{suffix}", "s", "motion", times)
    yield from _lag(robot)
    yield from _chain(robot)


def _lag(robot: Robot) -> Iterator[Identifiable]:
    """Of what drives the robot, of several quantities together where their lags agree."""
    own = robot.input_lags
    lags = [f"{quantity}_lag" for quantity, lag in own.items() if lag]
    for number in ("gain", "pole") if len(lags) == 1 or len({*own.values()}) == 1 else ():
        places: tuple[Place, ...] = tuple((lag, number) for lag in lags)
        if places:
            yield Identifiable(f"{lags[0]}_{number}", "1/s", "lag", places)


def _chain(robot: Robot) -> Iterator[Identifiable]:
    """What of a stop's weight is a chamber's own is told against that of the first chamber."""
    for parameter in _chain_parameters(robot):
        if not parameter.name.endswith("_of_1"):
            place = ("pressure_chain", "values", parameter.name)
            scale, (low, high) = CHAIN_SCALES[parameter.unit], (parameter.low, parameter.high)
            unit = parameter.unit
            yield Identifiable(parameter.name, unit, "chain", (place,), scale, low, high)


def _chain_parameters(robot: Robot) -> list[Parameter]:
    if robot.pressure_chain is None:
        return []
    elements = elements_of(robot.pressure_chain, len(robot.actuators))
    return [parameter for _, part in elements for parameter in part]


def content_of(robot: Robot) -> dict[str, Any]:
    """Of its file with `segments`, and with all values of its chain; a copy."""
    content = with_segments(robot.model_dump(mode="json"))
    if chained := _chain_parameters(robot):
        content["pressure_chain"]["values"] = {each.name: each.nominal for each in chained}
    return content


def _value(content: Any, place: Place) -> float:
    for key in place:
        content = content[key]
    return float(content)


def _set(content: Any, place: Place, value: float) -> None:
    for key in place[:-1]:
        content = content[key]
    content[place[-1]] = value
