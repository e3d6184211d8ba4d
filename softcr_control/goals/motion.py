"""Motions of a point that never jump: along a path, or after a target that moves by itself.

Speed and acceleration are limited in every period, so that a new goal, a cancelled one and a
target that jumps all lead to a motion that a robot can follow. Plain numbers; nothing here knows
what time it is.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

_ARRIVED = 1e-6  # from an end this is the end [m]
_SAME = 1e-9  # points of a path that are nearer count once [m]


@dataclass(frozen=True)
class Limits:
    """How fast a point may move.

    Attributes:
        speed: [m/s].
        acceleration: when it speeds up, brakes or turns [m/s^2].
        period: between two steps [s].
    """

    speed: float
    acceleration: float
    period: float

    @property
    def gain(self) -> float:
        """Largest change of speed in a period [m/s]."""
        return self.acceleration * self.period


@dataclass(frozen=True, eq=False)
class Point:
    """Where a point is and how it moves: position (3,) [m], velocity (3,) [m/s]."""

    position: np.ndarray
    velocity: np.ndarray

    @classmethod
    def at_rest(cls, position: np.ndarray) -> "Point":
        """Standing at a position (3,) [m]."""
        return cls(np.array(position, float), np.zeros(3))

    @property
    def stands(self) -> bool:
        """Whether it does not move."""
        return not self.velocity.any()


def braking_speed(distance: Any, last: Any, limits: Limits) -> Any:
    """Highest speed of the next period from which `last` [m/s] is reached after a distance [m].

    From v' (v' + 2 a T) = last^2 + 2 a d: then the period after it fulfils the same with a speed
    that is lower by a T at most, however often. Of arrays, as an array.
    """
    gain = limits.gain
    squares = gain**2 + np.square(last) + 2.0 * limits.acceleration * np.maximum(distance, 0.0)
    return np.sqrt(squares) - gain


def pursued(point: Point, target: np.ndarray | None, limits: Limits) -> Point:
    """The point a period later, on its way to a target (3,) [m] where it is to stand still.

    Without a target it brakes.
    """
    wanted = np.zeros(3)
    if target is not None:
        way = target - point.position
        distance = float(np.linalg.norm(way))
        last = way / limits.period  # of a step to the target
        if distance < _ARRIVED and np.linalg.norm(last - point.velocity) <= limits.gain:
            return Point(target, last)
        if distance >= _ARRIVED:
            speed = min(limits.speed, float(braking_speed(distance, 0.0, limits)))
            wanted = way * (speed / distance)
    change = wanted - point.velocity
    size = float(np.linalg.norm(change))
    if size > limits.gain:
        change *= limits.gain / size
    velocity = point.velocity + change
    if np.linalg.norm(velocity) < 1e-12:
        velocity = np.zeros(3)
    return Point(point.position + limits.period * velocity, velocity)


class Path:
    """A line through points, with the highest speed at each of them.

    It is followed exactly: where it turns sharply its speed is nearly 0.

    Attributes:
        points: (k, 3) [m], k >= 2.
        places: (k,) length of the way to each [m].
        limits: of the motion.
    """

    def __init__(self, points: np.ndarray, limits: Limits, caps: np.ndarray | None = None) -> None:
        """
        Args:
            points: (k, 3) [m]; those that lie on one another count once.
            limits: of the motion.
            caps: (k,) highest speed on the way to each of the points [m/s]; None: the limit's.
        """
        points = np.asarray(points, float)
        steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
        keep = np.r_[True, steps > _SAME]
        self.points = points[keep]
        speeds = np.full(len(points), limits.speed) if caps is None else np.asarray(caps, float)
        self._caps = np.minimum(speeds, limits.speed)[keep]
        self.places = np.r_[0.0, np.cumsum(steps[steps > _SAME])]
        self.limits = limits

    @property
    def length(self) -> float:
        """[m]"""
        return float(self.places[-1])

    def at(self, place: float) -> np.ndarray:
        """(3,) after so much of the way [m]."""
        return np.array([np.interp(place, self.places, axis) for axis in self.points.T])

    def direction(self, place: float) -> np.ndarray:
        """(3,) unit vector of the way after so much of it [m]; 0 on a path without length."""
        if len(self.points) < 2:
            return np.zeros(3)
        after = int(np.clip(np.searchsorted(self.places, place, "right"), 1, len(self.points) - 1))
        way = self.points[after] - self.points[after - 1]
        return np.asarray(way / np.linalg.norm(way))

    @cached_property
    def speeds(self) -> np.ndarray:
        """(k,) highest speed at each point from which all later ones are kept [m/s]."""
        found = np.minimum(self._corners, self._caps)
        found[:-1] = np.minimum(found[:-1], self._caps[1:])
        found[-1] = 0.0
        steps = np.diff(self.places)
        for row in range(len(steps) - 1, -1, -1):
            reached = float(braking_speed(steps[row], found[row + 1], self.limits))
            found[row] = min(found[row], reached)
        return found

    @cached_property
    def _corners(self) -> np.ndarray:
        """(k,) speed at which turning by a corner's angle is no more than the acceleration allows:
        in one period for a corner alone, along its way for corners that follow one another."""
        speeds = np.full(len(self.points), self.limits.speed)
        if len(self.points) < 3:
            return speeds
        ways = np.diff(self.points, axis=0)
        steps = np.linalg.norm(ways, axis=1)
        units = ways / steps[:, None]
        turns = np.linalg.norm(np.diff(units, axis=0), axis=1)  # 2 sin(angle / 2)
        turns = np.maximum(turns, 1e-12)
        alone = self.limits.gain / turns
        along = np.sqrt(self.limits.acceleration * np.minimum(steps[:-1], steps[1:]) / turns)
        speeds[1:-1] = np.minimum(alone, along)
        return speeds

    def speed_after(self, place: float, speed: float) -> float:
        """The highest speed of the next period [m/s], at a place [m] reached with a speed."""
        if len(self.points) < 2:
            return 0.0
        ahead = int(np.searchsorted(self.places, place + 1e-12, "right"))
        ahead = min(ahead, len(self.points) - 1)
        far = self.places[ahead:] - place
        known = braking_speed(far, self.speeds[ahead:], self.limits)
        allowed = min(float(np.min(known)), float(self._caps[ahead]), self.limits.speed)
        return max(min(speed + self.limits.gain, allowed), 0.0)


@dataclass(frozen=True, eq=False)
class OnPath:
    """A point on its way along a path.

    Attributes:
        path: the way.
        place: how much of it is behind [m].
        speed: along it [m/s].
        stops: whether it brakes, and stays where it then stands.
    """

    path: Path
    place: float = 0.0
    speed: float = 0.0
    stops: bool = False

    @property
    def point(self) -> Point:
        """Where it is and how it moves."""
        velocity = self.speed * self.path.direction(self.place)
        return Point(self.path.at(self.place), velocity)

    @property
    def arrived(self) -> bool:
        """Whether it is at the end."""
        return self.place >= self.path.length

    def after(self) -> "OnPath":
        """A period later."""
        path, gain = self.path, self.path.limits.gain
        speed = path.speed_after(self.place, self.speed)
        if self.stops:
            speed = min(speed, max(self.speed - gain, 0.0))
        place = min(self.place + path.limits.period * speed, path.length)
        if not self.stops and path.length - place < _ARRIVED:
            place, speed = path.length, 0.0
        return replace(self, place=place, speed=speed)

    def braking(self) -> "OnPath":
        """The same, on its way to a stop."""
        return replace(self, stops=True)

    def stopped(self) -> "OnPath":
        """Where it will stand if it brakes from now on."""
        found = self.braking()
        while found.speed > 0.0:
            found = found.after()
        return found


@dataclass(frozen=True, eq=False)
class Pursuit:
    """A point after a target that moves by itself.

    Attributes:
        point: where it is and how it moves.
        target: (3,) where it is to stand still [m]; None: it brakes.
        limits: of the motion.
    """

    point: Point
    target: np.ndarray | None
    limits: Limits

    def after(self) -> "Pursuit":
        """A period later, with the target where it is."""
        return replace(self, point=pursued(self.point, self.target, self.limits))

    def braking(self) -> "Pursuit":
        """The same, on its way to a stop."""
        return replace(self, target=None)

    def stopped(self) -> "Pursuit":
        """Where it will stand if it brakes from now on."""
        found = self.braking()
        while not found.point.stands:
            found = found.after()
        return found


def duration(path: Path) -> float:
    """How long the way takes from rest to rest [s]."""
    moving, periods = OnPath(path), 0
    most = 10 * math.ceil(3600.0 / path.limits.period)
    while not moving.arrived and periods < most:
        moving, periods = moving.after(), periods + 1
    return periods * path.limits.period
