"""What a surrogate learns from: steps of the exact rod, with what happens inside a step."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from softcr_learning.surrogate.signals import FAMILIES, Levels, Signal
from softcr_models.errors import UserError
from softcr_models.robot import Robot
from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.stepper import Run
from softcr_models.surrogate.ansatz import PIECES

SUBSTEPS = 2  # of a piece; after jumps within 0.15 mm of steps of 1 ms (test_surrogate.py)
TOGETHER = 512  # trajectories computed together


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Motions of the rod on a grid of ticks.

    Attributes:
        states: (B, T + 1, nx) at the ticks, float32.
        inner: (B, T, PIECES - 1, nx) inside the steps, float32.
        levels: pressures.
        parameters: (B, P) constant over a trajectory.
        lost: trajectories that left the numbers and are not among these.
    """

    states: np.ndarray
    inner: np.ndarray
    levels: Levels
    parameters: np.ndarray
    lost: int = 0


@dataclass(frozen=True)
class ParameterRange:
    """Where a parameter lies: factors on its nominal value."""

    low: float
    high: float


def signal_of(robot: Robot, ticks: int, period: float, high: float | None = None) -> Signal:
    """The signal of a robot's chambers, up to `high` [Pa] or to its limit."""
    limits = robot.pressure_limits
    top = limits.maximum if high is None else high
    return Signal(ticks, period, len(robot.chambers), limits.minimum, top, robot.pressure_lag)


def draw_parameters(
    nominal: np.ndarray,
    names: tuple[str, ...],
    ranges: Mapping[str, ParameterRange],
    count: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """(count, P) uniform in the ranges of those that have one, nominal otherwise.

    Raises:
        UserError: a range names a parameter that does not exist.
    """
    for name in ranges:
        if name not in names:
            raise UserError(f"parameters: {name!r} unknown; known are {', '.join(names)}")
    factors = np.ones((count, len(names)))
    for column, name in enumerate(names):
        if name in ranges:
            factors[:, column] = rng.uniform(ranges[name].low, ranges[name].high, count)
    return nominal * factors


def draw_levels(
    mix: Mapping[str, float], signal: Signal, count: int, rng: np.random.Generator
) -> Levels:
    """Levels of `count` trajectories, families in the proportions of `mix`.

    Raises:
        UserError: an unknown family, or no positive weight.
    """
    for name in mix:
        if name not in FAMILIES:
            raise UserError(f"signals: {name!r} unknown; known are {', '.join(FAMILIES)}")
    total = sum(mix.values())
    if not total > 0.0:
        raise UserError(f"signals: weights {dict(mix)} must have a positive sum")
    marks = np.round(count * np.cumsum([0.0, *mix.values()]) / total).astype(int)
    parts = [
        FAMILIES[name](signal, int(end - begin), rng)
        for name, begin, end in zip(mix, marks[:-1], marks[1:], strict=True)
        if end > begin
    ]
    return Levels(
        np.concatenate([part.begin for part in parts]), np.concatenate([part.end for part in parts])
    )


def simulate(
    rod: CosseratRod,
    levels: Levels,
    parameters: np.ndarray,
    period: float,
    progress: Callable[[float], None] = lambda _: None,
) -> Trajectories:
    """The rod from rest under pressures (B, T, m); `progress` is told the part that is done."""
    kept, states, inner = [], [], []
    for begin in range(0, len(parameters), TOGETHER):
        rows = slice(begin, begin + TOGETHER)
        chunk = Levels(levels.begin[rows], levels.end[rows])
        computed = _simulate_chunk(rod, chunk, parameters[rows], period)
        finite = np.isfinite(computed[:, -1, -1]).all(axis=1)
        kept.append(finite)
        states.append(computed[finite, :, -1].astype(np.float32))
        inner.append(computed[finite, 1:, :-1].astype(np.float32))
        progress(min(1.0, (begin + TOGETHER) / len(parameters)))
    good = np.concatenate(kept)
    return Trajectories(
        np.concatenate(states),
        np.concatenate(inner),
        Levels(levels.begin[good], levels.end[good]),
        parameters[good],
        int((~good).sum()),
    )


def _simulate_chunk(
    rod: CosseratRod, levels: Levels, parameters: np.ndarray, period: float
) -> np.ndarray:
    """(B, T + 1, PIECES, nx): the ends of the pieces of each step; all rest at first."""
    batch, ticks, _ = levels.begin.shape
    computed = np.zeros((batch, ticks + 1, PIECES, rod.state_size))
    for tick in range(ticks):
        computed[:, tick + 1] = step_pieces(
            rod, computed[:, tick, -1], levels.begin[:, tick], levels.end[:, tick], parameters,
            period,
        )  # fmt: skip
    return computed


def step_pieces(
    rod: CosseratRod,
    states: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    parameters: np.ndarray,
    period: float,
) -> np.ndarray:
    """(B, PIECES, nx) states at the ends of the pieces of one step of `period` [s]."""
    marks = np.linspace(0.0, 1.0, PIECES + 1)[:, None]
    pressures = begin[:, None] + marks * (end - begin)[:, None]
    run = Run(rod.body, rod.grid, period / PIECES, SUBSTEPS)
    return stepper.rollout(np.ascontiguousarray(states, float), pressures, parameters, run)
