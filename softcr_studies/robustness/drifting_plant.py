"""A structural plant whose errors drift: a body that ages, valves and sensors that wander."""

from collections.abc import Callable

import numpy as np

from softcr_models.robots.robot import Robot
from softcr_simulation.errors.plant_errors import PlantErrors, about_field
from softcr_simulation.plants import RodPlant
from softcr_simulation.structural_plant import StructuralPlant

_RENEWED = 5.0
"""After so long the plant's numbers are renewed [s]: in an hour's drift the tip then moves by
hundredths of a millimetre at once."""


def worst_drift(errors: PlantErrors) -> PlantErrors:
    """Plant errors with each field at that end of its spread which is farther from its value now;
    calibration, sensors and events stay."""
    moved = {}
    for name, value in errors.changed().items():
        about = about_field(name)
        if about.group not in ("body", "actuation", "pressure") or about.spread is None:
            continue
        low, high = about.spread
        ends = [high if high - each > each - low else low for each in np.atleast_1d(value)]
        moved[name] = tuple(ends) if isinstance(value, tuple) else ends[0]
    return errors.model_copy(update=moved)


def between(begin: PlantErrors, end: PlantErrors, share: float) -> PlantErrors:
    """Errors that are so much of the way from some to others; both have the same fields."""
    found = {}
    for name, last in end.changed().items():
        first = getattr(begin, name)
        mixed = (1.0 - share) * np.asarray(first) + share * np.asarray(last)
        found[name] = tuple(mixed.tolist()) if isinstance(last, tuple) else float(mixed)
    return begin.model_copy(update=found)


class DriftingPlant(RodPlant):
    """A plant whose errors are a function of time; its body and all memories go on.

    Kinds of hysteresis and the number of parts that creep must not change.
    """

    def __init__(
        self, robot: Robot, drift: Callable[[float], PlantErrors], seed: int, intervals: int = 20
    ) -> None:
        """
        Args:
            robot: as its file has it.
            drift: time since the plant's start [s] -> its errors.
            seed: of the sensors.
            intervals: elements of each segment.
        """
        self._drift, self._seed, self._intervals = drift, seed, intervals
        self._use(robot, StructuralPlant(robot, drift(0.0), seed, intervals))
        self._due = _RENEWED

    def reset(self) -> None:
        self._use(
            self._robot,
            StructuralPlant(self._robot, self._drift(0.0), self._seed, self._intervals),
        )
        self._due = _RENEWED

    def advance(self, duration: float) -> None:
        super().advance(duration)
        old = self.simulated
        assert isinstance(old, StructuralPlant)
        if old.time >= self._due:
            self._due += _RENEWED
            errors = self._drift(old.time)
            changed = StructuralPlant(self._robot, errors, self._seed, self._intervals)
            changed.take_over(old)
            self.simulated = changed
