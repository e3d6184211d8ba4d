"""From the pressures at the valves to those that act on the body: hose, hysteresis, creep."""

import math

import numpy as np

from softcr_models.robots.robot import Robot
from softcr_models.room_kernels import compiled
from softcr_simulation.errors.plant_errors import PLAYS, PlantErrors


@compiled
def through_plays(pressure, plays, radii, weights):
    """The pressure that acts [Pa]; the plays (J,) are moved.

    A play follows at a distance of at most its radius. The acting pressure lies between the true
    one and the plays: with one play of weight 1 it is that play, with many of weights w_j it is a
    smooth loop, p - sum_j w_j (p - play_j).
    """
    acting = pressure
    for j in range(plays.shape[0]):
        plays[j] = min(max(plays[j], pressure - radii[j]), pressure + radii[j])
        acting -= weights[j] * (pressure - plays[j])
    return acting


@compiled
def through_hose(chamber, begin, end, decay, lag):
    """Pressure in the chamber after a sub-step [Pa], exact for a linear one at the valve.

    Args:
        chamber: pressure before [Pa].
        begin, end: at the valve, at begin and end of the sub-step [Pa].
        decay: exp(-pole * sub-step); 0 for a hose without volume.
        lag: 1 / (pole * sub-step).
    """
    if decay == 0.0:
        return end
    behind = lag * (end - begin)
    return end - behind + (chamber - begin + behind) * decay


@compiled
def late_share(pressure, late, shares, decays):
    """The pressure that acts after a sub-step [Pa]: p + sum_k share_k (late_k - p).

    Each `late` (C,) is moved: it goes to the pressure exponentially. At rest all of p acts.
    """
    acting = pressure
    for k in range(late.shape[0]):
        late[k] = pressure + (late[k] - pressure) * decays[k]
        acting += shares[k] * (late[k] - pressure)
    return acting


@compiled
def acting_levels(
    out, levels, chambers, plays, late, hose, radii, weights, creep_shares, creep_decays
):
    """Fill out (S + 1, m) with what acts [Pa]; the memories are changed.

    Args:
        out: (S + 1, m).
        levels: (S + 1, m) at the valves [Pa], linear in between.
        chambers: (m,) pressures in the chambers [Pa].
        plays: (m, J) outputs of the plays [Pa].
        late: (m, C) what has crept [Pa].
        hose: decay and lag of `through_hose`.
        radii, weights: (m, J) of the plays [Pa], [-].
        creep_shares, creep_decays: (C,).
    """
    for step in range(levels.shape[0]):
        for i in range(levels.shape[1]):
            if step > 0:
                begin, end = levels[step - 1, i], levels[step, i]
                chambers[i] = through_hose(chambers[i], begin, end, hose[0], hose[1])
            pressure = through_plays(chambers[i], plays[i], radii[i], weights[i])
            decays = creep_decays if step > 0 else np.ones_like(creep_decays)
            out[step, i] = late_share(pressure, late[i], creep_shares, decays)


class ActingPressures:
    """Hose, hysteresis and creep of a robot's actuators, with their memories."""

    def __init__(self, errors: PlantErrors, robot: Robot) -> None:
        """At rest without pressure."""
        count = len(robot.actuators)
        self._hose_pole = errors.hose_pole
        if errors.hysteresis_share:
            narrow, wide = errors.hysteresis_radius_min, errors.hysteresis_radius_max
            self._radii = np.tile(np.linspace(narrow, wide, PLAYS), (count, 1))
            self._weights = np.full((count, PLAYS), errors.hysteresis_share / PLAYS)
        else:
            self._radii = errors.of_inputs("play_half_width", robot)[:, None]
            self._weights = np.ones((count, 1))
        self._shares = np.array(errors.creep_share, float)
        self._times = np.array(errors.creep_time, float)
        self.chambers = np.zeros(count)
        self._plays = np.zeros_like(self._radii)
        self._late = np.zeros((count, len(self._shares)))

    def reset(self) -> None:
        """At rest without pressure."""
        for memory in (self.chambers, self._plays, self._late):
            memory[:] = 0.0

    def take_over(self, other: "ActingPressures") -> None:
        """Go on from another one's memories.

        Raises:
            ValueError: it has another number of plays, or of parts that creep.
        """
        mine = self.chambers, self._plays, self._late
        for own, memory in zip(mine, (other.chambers, other._plays, other._late), strict=True):
            if own.shape != memory.shape:
                raise ValueError(f"memories {memory.shape} where there is room for {own.shape}")
            own[:] = memory

    def levels(self, levels: np.ndarray, dt: float) -> np.ndarray:
        """(S + 1, m) what acts [Pa], of pressures (S + 1, m) at the valves, `dt` [s] apart."""
        out = np.empty_like(levels)
        hose = (0.0, 0.0)
        if self._hose_pole is not None:
            hose = math.exp(-self._hose_pole * dt), 1.0 / (self._hose_pole * dt)
        acting_levels(
            out, levels, self.chambers, self._plays, self._late, hose, self._radii,
            self._weights, self._shares, np.exp(-dt / self._times),
        )  # fmt: skip
        return out
