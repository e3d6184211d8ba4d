"""The lag of the inputs from commands and readings; the paper fits it once, (32).

Inputs are measured, so the lag needs no model: with a = exp(-pole dt) and b = gain / pole (1 - a) a
reading follows p[k + 1] = a p[k] + b (u[k] + w (u[k - 1] - u[k])), which is linear in (a, b, b w).
The weight w of the command before its own tick's says how late commands begin to act, in ticks,
whatever the cause: the ramp of the valves, or a delay that nobody told. All inputs share one lag,
as in the robot file. Least squares with the file's lag as prior; old samples fade back to it.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from softcr_models.chain.pressure import PressureLag

_UNITS = 100.0  # readings count in hundredths of the input's range: kPa of a range of 1 bar
_NOISE = 0.1  # of a reading against the model [units]
# An input counts while its command is this far away: readings near it are mostly noise, which would
# pass for a faster lag.
_MOVING = 2.0  # [units]
_POLE_DEVIATION, _RATIO_DEVIATION = 0.2, 0.02  # of the file's pole and steady ratio [-]
_WEIGHT_DEVIATION = 0.2  # of the command before [-]
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
        weight: of the command before, as it is told; see `command_ramp`.

    Attributes:
        lag: the estimate.
        weight: the estimate, from 0 to 1.
    """

    def __init__(
        self, lag: PressureLag, period: float, ranges: np.ndarray, weight: float = 0.0
    ) -> None:
        self._file, self._told, self._period = lag, weight, period
        units = (np.asarray(ranges, float) / _UNITS).tolist()
        self._scales = [_Scale(1.0 / unit, _MOVING * unit) for unit in units]
        self._fading = math.exp(-period / _MEMORY)
        self._forgetting = math.exp(-period / _FOLLOWED_MEMORY)
        decay, ratio = math.exp(-lag.pole * period), lag.gain / lag.pole
        self._known = decay, ratio * (1.0 - decay)
        # (a, b, b w) by relative changes of pole and ratio, and by w
        by_pole, by_ratio = -lag.pole * period * decay, ratio * (1.0 - decay)
        slopes = np.array(
            [
                [by_pole, 0.0, 0.0],
                [-ratio * by_pole, by_ratio, 0.0],
                [-weight * ratio * by_pole, weight * by_ratio, by_ratio],
            ]
        )
        root = slopes * (_POLE_DEVIATION, _RATIO_DEVIATION, _WEIGHT_DEVIATION)
        information = np.linalg.inv(root @ root.T)
        target = information @ (decay, by_ratio, weight * by_ratio)
        # of the normal equations: their upper triangle, row by row, then their right-hand side
        self._prior = (*information[np.triu_indices(3)].tolist(), *target.tolist())
        self.reset()

    def reset(self) -> None:
        """Back to the file's."""
        self.lag, self.weight, self._sums = self._file, self._told, self._prior
        self._wanted = self._shared = (
            0.0  # what commands should move, and what did with it [units^2]
        )

    def observe(self, before: np.ndarray, commands: np.ndarray, after: np.ndarray) -> None:
        """Learns from readings some ticks apart and from what was commanded in between.

        What is not finite or does not move tells nothing, nor do readings that go other ways than
        the commands. Over several ticks a reading is linear in (a, b) about what is known of them.

        Args:
            before, after: (m,) readings [unit of the inputs].
            commands: (1 + n, m) of the tick before, and of the n ticks in between.
        """
        samples = zip(
            self._scales, before.tolist(), commands.T.tolist(), after.tolist(), strict=True
        )
        moving = [
            (scale.per_unit * p, [scale.per_unit * u for u in sent], scale.per_unit * q)
            for scale, p, sent, q in samples
            if math.isfinite(q) and any(abs(u - p) > scale.moving for u in sent[1:])
        ]
        if not moving or not self._follows(moving):
            return
        # plain numbers: three samples are too few for arrays (41 us instead of 8)
        new = [0.0] * 9
        for p, sent, q in filter(self._is_plausible, moving):
            a, b, c, rest = self._linear(p, sent)
            q -= rest
            products = (a * a, a * b, a * c, b * b, b * c, c * c, a * q, b * q, c * q)
            new = [s + n for s, n in zip(new, products, strict=True)]
        kept, renewed = self._fading, 1.0 - self._fading
        self._sums = tuple(
            kept * s + renewed * o + n / _NOISE**2
            for s, o, n in zip(self._sums, self._prior, new, strict=True)
        )
        aa, ab, ac, bb, bc, cc, *right = self._sums
        normal = ((aa, ab, ac), (ab, bb, bc), (ac, bc, cc))
        decay, gain, of_before = np.linalg.solve(normal, right).tolist()
        self.lag = self._bounded(decay, gain)
        self.weight = min(max(of_before / gain, 0.0), 1.0) if gain > 0.0 else self._told

    def _linear(self, p: float, sent: list[float]) -> tuple[float, float, float, float]:
        """Slopes of the reading after commands by a, b and b w, and what does not depend on them,
        about what is known of them now; p is the reading before."""
        a = math.exp(-self.lag.pole * self._period)
        b = self.lag.gain / self.lag.pole * (1.0 - a)
        by_a = by_b = by_c = 0.0
        rest = p
        for last, u in pairwise(sent):
            held = u + self.weight * (last - u)
            by_a, by_b, by_c = p + a * by_a, u + a * by_b, last - u + a * by_c
            rest, p = -a * (p - rest), a * p + b * held
        return by_a, by_b, by_c, rest

    def _asked(self, p: float, sent: list[float]) -> float:
        """How far the file's lag has a reading p move under commands."""
        decay, gain = self._known
        begin = p
        for last, u in pairwise(sent):
            p = decay * p + gain * (u + self.weight * (last - u))
        return p - begin

    def _follows(self, moving: list[tuple[float, list[float], float]]) -> bool:
        """Whether readings go where the commands ask them to."""
        self._wanted *= self._forgetting
        self._shared *= self._forgetting
        for p, sent, q in moving:
            asked = self._asked(p, sent)
            self._wanted += asked * asked
            self._shared += asked * (q - p)
        least, most = _FOLLOWED
        return least * self._wanted <= self._shared <= most * self._wanted

    def _is_plausible(self, sample: tuple[float, list[float], float]) -> bool:
        """Whether a reading moved about as the file's lag has it."""
        p, sent, q = sample
        asked = self._asked(p, sent)
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
