"""From what was read or told of an input to what acts on a rod: delay, lag, venting, hysteresis,
creep.

Of an arm that was recorded in motion, beside what `unknowns` says of it at rest: the delay t_d of
the inputs, actuators that follow them as

    x'' = w^2 (u(t - t_d) - x) - 2 d w x',

chambers that empty more slowly than their reading falls, by turbulent flow through hose and valve
(Bernoulli's law of an orifice: it goes with the root of the pressure difference),

    y' = -(2 / T) sqrt(x_max (y - x)) while y > x, otherwise y = x,

act as y (1 + c y / x_max), less what stops hold back, as those of a `pressure_chain`, of the
stretch of chambers or by the friction of tendons, and more by the creep of chambers. What acts
depends on the readings alone, so it is known along a whole trial before the rod moves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numba
import numpy as np
from scipy.signal import cont2discrete, lfilter, lfilter_zi

from softcr_models.chain.acting import LARGEST_WEIGHTS
from softcr_models.chain.memory import ChainMemory
from softcr_models.identification.measured_groups import Group
from softcr_models.identification.unknowns import (
    FACTOR,
    FAMILIES,
    Make,
    Recorded,
    Unknown,
    recorded_as,
)
from softcr_models.robots.robot import Robot
from softcr_models.rod.description import rod_inputs

LAG_RATE, LAG_DAMPING, VENTING_TIME, CREEP_TIME = 30.0, 1.0, 6.5, 5.0
"""First guesses: of the actuators' lag [rad/s], [-], of venting (of the arm of
`recordings/asu-two-segments`, whose tip stops 6 s after its chambers are let off), of creep [s]."""
STOPS = (0.03, 0.1, 0.3)
"""Radii of the stops, shares of the inputs' largest range [-]."""


@dataclass(frozen=True, eq=False)
class Actuation:
    """How inputs act on a recorded robot in motion.

    Attributes:
        recorded: robot, gains and offsets of its inputs, registration.
        delay: of the inputs [s]; negative where the positions' clock is late.
        rate, damping: of the actuators' lag [rad/s], [-]; a rate of None: they follow at once.
        venting: in which a chamber of the highest pressure empties [s]; 0: as its reading falls.
        radii, weights: (J,) of stops [Pa], [-].
        creep_time, creep: [s], weight [-].
        curves: (m,) by how much more a reading of an input's whole range acts than in proportion to
            a small one [-]; empty: 0.
    """

    recorded: Recorded
    delay: float = 0.0
    rate: float | None = None
    damping: float = LAG_DAMPING
    venting: float = 0.0
    radii: tuple[float, ...] = ()
    weights: tuple[float, ...] = ()
    creep_time: float = CREEP_TIME
    creep: float = 0.0
    curves: tuple[float, ...] = ()

    @property
    def width(self) -> float:
        """Half of the widest loop that stops make: how far what acts depends on the past [Pa]."""
        return float(np.dot(self.weights, self.radii))

    def acting(
        self, readings: np.ndarray, period: float, begun: np.ndarray | None = None
    ) -> np.ndarray:
        """(T, m) inputs that act [Pa, N], of readings (T, m) so long apart [s], before which the
        first one has stood for long.

        Args:
            readings: of the inputs.
            period: between two of them.
            begun: (m,) where the stops of each input begin, as shares of their radii, -1 to 1: the
                past of a trial; None: the input has slowly risen from zero.
        """
        acts = readings
        if self.delay:
            times = period * np.arange(len(acts))
            acts = np.stack([np.interp(times - self.delay, times, u) for u in acts.T], axis=1)
        if self.rate is not None:
            acts = _lagged(acts, self.rate, self.damping, period)
        highest = np.asarray(rod_inputs(self.recorded.robot).high)
        if self.venting:
            acts = _vented(np.ascontiguousarray(acts), np.sqrt(highest) * period / self.venting)
        if self.curves:
            acts = acts * (1.0 + np.array(self.curves) * acts / highest)
        acts = self.recorded.acting(acts)
        if not any(self.weights) and not self.creep:
            return acts
        count, stops = acts.shape[1], len(self.radii)
        memory = ChainMemory(count, self.radii, (self.creep_time,))
        remembered = memory.begin(acts[0])
        if begun is not None:
            remembered[: count * stops] = np.outer(begun, self.radii).ravel()
        past = memory.along(remembered, np.ascontiguousarray(acts)[None], period)[0]
        stopped = past[:, : count * stops].reshape(len(acts), count, stops)
        pushed = stopped @ np.array(self.weights)
        changed: np.ndarray = acts - pushed + self.creep * past[:, count * stops :]
        return changed


def _lagged(inputs: np.ndarray, rate: float, damping: float, period: float) -> np.ndarray:
    """(T, m) exactly, of inputs linear between samples."""
    numerator, denominator = _filter(rate, damping, period)
    begin = lfilter_zi(numerator, denominator)[:, None] * inputs[0]
    lagged: np.ndarray = lfilter(numerator, denominator, inputs, axis=0, zi=begin)[0]
    return lagged


@numba.njit(cache=True)
def _vented(levels: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """(T, m) exactly, of inputs that are held for a period; their roots fall by `steps` (m,) in
    it."""
    found = levels.copy()
    for row in range(1, levels.shape[0]):
        for column in range(levels.shape[1]):
            above = found[row - 1, column] - levels[row, column]
            if above > 0.0:
                found[row, column] += max(0.0, np.sqrt(above) - steps[column]) ** 2
    return found


@lru_cache(maxsize=256)
def _filter(rate: float, damping: float, period: float) -> tuple[np.ndarray, np.ndarray]:
    lag = [rate * rate], [1.0, 2.0 * damping * rate, rate * rate]
    numerator, denominator, _ = cont2discrete(lag, period, method="foh")
    return numerator.ravel(), denominator


def actuation_as(robot: Robot, values: Mapping[str, float]) -> Actuation:
    """A robot and its recording in motion at values of unknowns, by name; absent ones are zero.

    Raises:
        UserError: a robot that cannot be.
    """
    # a stop of negative weight would do work in every cycle
    weights = tuple(max(0.0, values.get(name, 0.0)) for name in _stops())
    if sum(weights) > LARGEST_WEIGHTS:  # as a chain does
        weights = tuple(LARGEST_WEIGHTS / sum(weights) * each for each in weights)
    rate = LAG_RATE * float(np.exp(values["lag_rate"])) if "lag_rate" in values else None
    return Actuation(
        recorded_as(robot, values),
        values.get("delay", 0.0),
        rate,
        LAG_DAMPING * float(np.exp(values.get("lag_damping", 0.0))),
        VENTING_TIME * float(np.exp(values["venting"])) if "venting" in values else 0.0,
        _radii(robot) if any(weights) else (),
        weights if any(weights) else (),
        CREEP_TIME * float(np.exp(values.get("creep_time", 0.0))),
        values.get("creep", 0.0),
        tuple(values.get(f"curve_{k + 1}", 0.0) for k in range(len(robot.actuators)))
        if "curve_1" in values
        else (),
    )


def chain_of(actuation: Actuation) -> dict[str, object] | None:
    """The section `pressure_chain` of a robot file that acts likewise; None without such, and of
    tendons, whose friction no robot file has."""
    chambers = set(actuation.recorded.robot.quantities) == {"pressure"}
    if not chambers or not (any(actuation.weights) or actuation.creep):
        return None
    values = {f"hysteresis_{j + 1}": weight for j, weight in enumerate(actuation.weights)}
    chain: dict[str, object] = {}
    if actuation.weights:
        chain["hysteresis_radii"] = list(actuation.radii)
    if actuation.creep:
        chain["creep_time"] = actuation.creep_time
        values["creep"] = actuation.creep
    return chain | {"values": values}


def _stops() -> list[str]:
    return [f"hysteresis_{j + 1}" for j in range(len(STOPS))]


def _radii(robot: Robot) -> tuple[float, ...]:
    limits = rod_inputs(robot)
    span = float(np.max(np.asarray(limits.high) - limits.low))
    return tuple(share * span for share in STOPS)


def _delay(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    return [Unknown("delay", "s", 0.03)]


def _lag(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    return [
        Unknown("lag_rate", FACTOR, 1.0, LAG_RATE, "rad/s"),
        Unknown("lag_damping", FACTOR, 0.3, LAG_DAMPING, "of critical"),
    ]


def _venting(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    if set(robot.quantities) != {"pressure"}:
        return []
    # Known rather than found: a fit to few trials takes slower venting for the memory of stops, and
    # predicts trials that are held out half as well.
    return [Unknown("venting", FACTOR, 0.01, VENTING_TIME, "s")]


def _relaxation(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    count = len(robot.segments)
    own = [Unknown(f"relaxation_{number + 1}", FACTOR, 0.5) for number in range(count)]
    return [Unknown("relaxation", FACTOR, 0.7), *(own if count > 1 else [])]


def _hysteresis(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    return [Unknown(name, "-", 0.1) for name in _stops()]


def _creep(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    if robot.tendons:
        return []
    return [Unknown("creep", "-", 0.1), Unknown("creep_time", FACTOR, 0.5, CREEP_TIME, "s")]


def _curves(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    return [Unknown(f"curve_{k + 1}", "-", 0.2) for k in range(len(robot.actuators))]


def _scale(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    return [Unknown("scale", FACTOR, 0.05)]


FAMILIES_IN_MOTION: Mapping[str, Make] = {
    **FAMILIES,
    "scale": _scale,
    "curves": _curves,
    "delay": _delay,
    "lag": _lag,
    "venting": _venting,
    "relaxation": _relaxation,
    "hysteresis": _hysteresis,
    "creep": _creep,
}
"""Name -> what is unknown of a motion: what is at rest, `scale` of the positions, `curves` of the
inputs, their `delay`, `lag` of the actuators, `relaxation` times of the material, `venting`,
`hysteresis` of chambers or tendons, and `creep` of chambers."""
