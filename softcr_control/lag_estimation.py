"""The lag of the inputs from commands and readings; the paper fits it once, (32).

Inputs are measured, so the lag needs no model: with a = exp(-pole dt) and b = gain / pole (1 - a) a
reading follows p[k + 1] = a p[k] + b u[k], which is linear in (a, b). All inputs share one lag, as
in the robot file. Least squares with the file's lag as prior; old samples fade back to it.
"""

import math
from dataclasses import dataclass

import numpy as np

from softcr_models.pressure import PressureLag

_UNITS = 100.0  # readings count in hundredths of the input's range: kPa of a range of 1 bar
_NOISE = 0.1  # of a reading against the model [units]
# An input counts while its command is this far away: readings near it are mostly noise, which would
# pass for a faster lag.
_MOVING = 2.0  # [units]
_POLE_DEVIATION, _RATIO_DEVIATION = 0.2, 0.02  # of the file's pole and steady ratio [-]
_MEMORY = 20.0  # of motion [s]
_FOLLOWED = (0.5, 2.0)
"""Motion of readings, as a share of what the file's lag makes of the commands, that passes for
following them. Valves that are not enabled, or that something else moves, tell no lag."""
_PLAUSIBLE = 0.75  # of a reading's motion: how far it may be from that of the file's lag
_FOLLOWED_MEMORY = 0.5  # [s]
_POLE_RANGE, _RATIO_RANGE = 2.0, 1.1  # an estimate stays within value / range and value * range [-]


@dataclass(frozen=True)
class _Scale:
    """Of one input."""

    per_unit: float  # factor of readings, so that they count in units
    moving: float  # distance of a command at which the input counts, in its own unit


class LagEstimator:
    """Learns from readings a few ticks apart.

    Args:
        lag: the file's.
        period: of a tick [s].
        ranges: (m,) highest minus lowest value of each input; what passes for noise or for motion
            is a part of it.

    Attributes:
        lag: the estimate.
    """

    def __init__(self, lag: PressureLag, period: float, ranges: np.ndarray) -> None:
        self._file, self._period = lag, period
        units = (np.asarray(ranges, float) / _UNITS).tolist()
        self._scales = [_Scale(1.0 / unit, _MOVING * unit) for unit in units]
        self._fading = math.exp(-period / _MEMORY)
        self._forgetting = math.exp(-period / _FOLLOWED_MEMORY)
        decay, ratio = math.exp(-lag.pole * period), lag.gain / lag.pole
        self._known = decay, ratio * (1.0 - decay)
        # (a, b) by relative changes of pole and ratio
        by_pole = -lag.pole * period * decay
        slopes = np.array([[by_pole, 0.0], [-ratio * by_pole, ratio * (1.0 - decay)]])
        root = slopes * (_POLE_DEVIATION, _RATIO_DEVIATION)
        information = np.linalg.inv(root @ root.T)
        target = information @ (decay, ratio * (1.0 - decay))
        # of the normal equations [[aa, ab], [ab, bb]] (a, b) = (ta, tb): aa, ab, bb, ta, tb
        self._prior = (*information[[0, 0, 1], [0, 1, 1]].tolist(), *target.tolist())
        self.reset()

    def reset(self) -> None:
        """Back to the file's."""
        self.lag, self._sums = self._file, self._prior
        self._wanted = self._shared = (
            0.0  # what commands should move, and what did with it [units^2]
        )

    def observe(self, before: np.ndarray, commands: np.ndarray, after: np.ndarray) -> None:
        """Learns from readings some ticks apart and from what was commanded in between.

        What is not finite or does not move tells nothing, nor do readings that go other ways than
        the commands. Over several ticks a reading is linear in (a, b) about what is known of them.

        Args:
            before, after: (m,) readings [unit of the inputs].
            commands: (n, m) held in the n ticks in between.
        """
        samples = zip(
            self._scales, before.tolist(), commands.T.tolist(), after.tolist(), strict=True
        )
        moving = [
            (scale.per_unit * p, [scale.per_unit * u for u in held], scale.per_unit * q)
            for scale, p, held, q in samples
            if math.isfinite(q) and any(abs(u - p) > scale.moving for u in held)
        ]
        if not moving or not self._follows(moving):
            return
        # plain numbers: three samples are too few for arrays (41 us instead of 8)
        new = [0.0] * 5
        for p, held, q in filter(self._is_plausible, moving):
            a, b, rest = self._linear(p, held)
            q -= rest
            new = [s + n for s, n in zip(new, (a * a, a * b, b * b, a * q, b * q), strict=True)]
        kept, renewed = self._fading, 1.0 - self._fading
        self._sums = tuple(
            kept * s + renewed * o + n / _NOISE**2
            for s, o, n in zip(self._sums, self._prior, new, strict=True)
        )
        aa, ab, bb, ta, tb = self._sums
        determinant = aa * bb - ab * ab
        self.lag = self._bounded(
            (bb * ta - ab * tb) / determinant, (aa * tb - ab * ta) / determinant
        )

    def _linear(self, p: float, held: list[float]) -> tuple[float, float, float]:
        """Slopes of the reading after held commands by a and by b, and what does not depend on
        them, about what is known of them now; p is the reading before."""
        a = math.exp(-self.lag.pole * self._period)
        b = self.lag.gain / self.lag.pole * (1.0 - a)
        by_a = by_b = 0.0
        rest = p
        for u in held:
            by_a, by_b, rest, p = p + a * by_a, u + a * by_b, -a * (p - rest), a * p + b * u
        return by_a, by_b, rest

    def _asked(self, p: float, held: list[float]) -> float:
        """How far the file's lag has a reading p move under held commands."""
        decay, gain = self._known
        begin = p
        for u in held:
            p = decay * p + gain * u
        return p - begin

    def _follows(self, moving: list[tuple[float, list[float], float]]) -> bool:
        """Whether readings go where the commands ask them to."""
        self._wanted *= self._forgetting
        self._shared *= self._forgetting
        for p, held, q in moving:
            asked = self._asked(p, held)
            self._wanted += asked * asked
            self._shared += asked * (q - p)
        least, most = _FOLLOWED
        return least * self._wanted <= self._shared <= most * self._wanted

    def _is_plausible(self, sample: tuple[float, list[float], float]) -> bool:
        """Whether a reading moved about as the file's lag has it."""
        p, held, q = sample
        asked = self._asked(p, held)
        return abs(q - p - asked) <= _PLAUSIBLE * abs(asked) + 2.0 * _NOISE

    def _bounded(self, decay: float, gain: float) -> PressureLag:
        file = self._file
        fastest = math.exp(-file.pole * _POLE_RANGE * self._period)
        slowest = math.exp(-file.pole / _POLE_RANGE * self._period)
        decay = min(max(decay, fastest), slowest)
        known = file.gain / file.pole
        ratio = min(max(gain / (1.0 - decay), known / _RATIO_RANGE), known * _RATIO_RANGE)
        pole = -math.log(decay) / self._period
        return PressureLag(ratio * pole, pole)
