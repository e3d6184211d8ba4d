"""What a surrogate learns from: steps of the exact rod, with what happens inside a step."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError
from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.parameters import PARAMETERS
from softcr_models.surrogate.ansatz import PIECES
from softcr_papers.licher2025.training.signals import FAMILIES, Signal
from softcr_papers.licher2025.training.training_settings import ParameterRange

SUBSTEPS = 2  # of a piece; after jumps within 0.15 mm of steps of 1 ms (test_surrogate.py)
TOGETHER = 512  # trajectories computed together


def factor_bounds(ranges: Mapping[str, ParameterRange]) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest factors (P,) of all parameters: one where there is no range."""
    found = [ranges.get(name, ParameterRange(1.0, 1.0)) for name in PARAMETERS]
    return np.array([each.low for each in found]), np.array([each.high for each in found])


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Motions of the rod on a grid of ticks.

    Attributes:
        states: (B, T + 1, nx) at the ticks, float32.
        inner: (B, T, PIECES - 1, nx) inside the steps, float32.
        levels: (2, B, T, m) inputs at begin and end of the steps [Pa, N], see `signals`.
        parameters: (B, P) constant over a trajectory.
    """

    states: np.ndarray
    inner: np.ndarray
    levels: np.ndarray
    parameters: np.ndarray

    def random_steps(
        self, count: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """States (count, nx), inputs at begin and at end (count, m), parameters (count, P)."""
        _, batch, ticks, _ = self.levels.shape
        row, tick = rng.integers(0, batch, count), rng.integers(0, ticks, count)
        begin, end = self.levels[:, row, tick]
        return self.states[row, tick], begin, end, self.parameters[row]


def draw_inputs(
    rod: CosseratRod,
    signal: Signal,
    mix: Mapping[str, float],
    ranges: Mapping[str, ParameterRange],
    count: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Levels (2, B, T, m) and parameters (B, P) of `count` motions.

    Args:
        rod: whose nominal parameters are multiplied.
        signal: of its inputs.
        mix: families of signals and their weights.
        ranges: of parameters, drawn uniformly; those without one are nominal.

    Raises:
        UserError: an unknown family or parameter, or no positive weight.
    """
    levels = _draw_levels(signal, mix, count, rng)
    for name in ranges:
        if name not in PARAMETERS:
            raise UserError(f"parameters: {name!r} unknown; known are {', '.join(PARAMETERS)}")
    factors = np.ones((count, len(PARAMETERS)))
    for column, name in enumerate(PARAMETERS):
        if name in ranges:
            factors[:, column] = rng.uniform(ranges[name].low, ranges[name].high, count)
    return levels, rod.nominal_parameters * factors


def judged_inputs(
    rod: CosseratRod,
    family: str,
    count: int,
    ticks: int,
    period: float,
    seed: list[int],
    highest: np.ndarray | float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of motions that networks are judged by: compliance +-20 % from motion to motion.

    Args:
        family: of the signals, up to `highest` [Pa, N], (m,) or one number, or the robot's limits.
        count: motions, of so many ticks of a period [s].
        seed: of everything random.
    """
    signal, rng = Signal.of(rod.robot, ticks, period, highest), np.random.default_rng(seed)
    compliance = {"bending_compliance": ParameterRange(0.8, 1.2)}
    return draw_inputs(rod, signal, {family: 1.0}, compliance, count, rng)


def _draw_levels(
    signal: Signal, mix: Mapping[str, float], count: int, rng: np.random.Generator
) -> np.ndarray:
    """Families in the proportions of `mix`, one after the other."""
    for name in mix:
        if name not in FAMILIES:
            raise UserError(f"signals: {name!r} unknown; known are {', '.join(FAMILIES)}")
    total = sum(mix.values())
    if not total > 0.0:
        raise UserError(f"signals: weights {dict(mix)} must have a positive sum")
    ends = np.round(count * np.cumsum([*mix.values()]) / total).astype(int)
    counts = np.diff(ends, prepend=0).tolist()
    parts = [FAMILIES[name](signal, n, rng) for name, n in zip(mix, counts, strict=True) if n > 0]
    return np.concatenate(parts, axis=1)


def simulate(
    rod: CosseratRod,
    levels: np.ndarray,
    parameters: np.ndarray,
    period: float,
    progress: Callable[[float], None] = lambda _: None,
) -> Trajectories:
    """The rod from rest; motions whose state becomes NaN or infinite are left out.

    Args:
        levels: (2, B, T, m) [Pa, N]; parameters: (B, P).
        period: of a step [s].
        progress: is told the part that is done.
    """
    _, count, ticks, _ = levels.shape
    # written where they stay: to copy them takes longer than what 16 cores need for the motions
    states = np.empty((count, ticks + 1, rod.state_size), np.float32)
    inner = np.empty((count, ticks, PIECES - 1, rod.state_size), np.float32)
    states[:, 0] = 0.0
    kept = np.empty(count, bool)
    for first in range(0, count, TOGETHER):
        rows = slice(first, first + TOGETHER)
        begin, end = levels[:, rows]
        now = np.zeros((len(begin), rod.state_size))
        with np.errstate(over="ignore"):  # a motion that is left out
            for tick in range(ticks):
                ends = step_pieces(rod, now, begin[:, tick], end[:, tick], parameters[rows], period)
                now = ends[:, -1]
                states[rows, tick + 1], inner[rows, tick] = now, ends[:, :-1]
        kept[rows] = np.isfinite(now).all(axis=1)
        progress(min(1.0, (first + TOGETHER) / count))
    if not kept.all():
        states, inner = states[kept], inner[kept]
    return Trajectories(states, inner, levels[:, kept], parameters[kept])


def step_pieces(
    rod: CosseratRod,
    states: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    parameters: np.ndarray,
    period: float,
    pieces: int = PIECES,
) -> np.ndarray:
    """(B, pieces, nx) states at the ends of equal pieces of one step of `period` [s]."""
    marks = np.linspace(0.0, 1.0, pieces + 1)[:, None]
    pressures = begin[:, None] + marks * (end - begin)[:, None]
    run = stepper.Run(
        rod.body, rod.grid, period / pieces, SUBSTEPS, fittings=rod.fittings, loads=rod.loads
    )
    return stepper.rollout(np.ascontiguousarray(states, float), pressures, parameters, run)
