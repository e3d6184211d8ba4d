"""Tips that the reference solvers find of an arm in motion, one per period, and what they take."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np

from softcr_papers.pawlowski2019.reference.explicit_motion import ExplicitMotion, Kind, MotionFailed
from softcr_papers.pawlowski2019.reference.implicit_motion import ImplicitMotion, Space, StepFailed
from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod
from softcr_papers.pawlowski2019.studies.robots import processor_time
from softcr_studies.speed.arms import PERIOD, UPSIDE_DOWN, Arm, Tendon
from softcr_studies.speed.work_precision import inputs_of

MATERIAL = {"young": 1e6, "density": 1000.0, "relaxation": 9e-4}
"""Of Table 2.1, and 300 Pa s of shear viscosity with Trouton's ratio 3."""
SHAPE = ((0.1, 0.01),)
LYING = (0.0, -np.pi / 2, 0.0)


@dataclass(frozen=True)
class SteppedArm(Arm):
    """An arm whose tendons are pulled in steps.

    Attributes:
        hold: how long each tension is held [s].
        levels: (tendons,) of each step in turn, in parts of a tendon's largest tension.
    """

    hold: float = 0.5
    levels: tuple[tuple[float, ...], ...] = ((1.0,),)

    def tensions(self, periods: int) -> np.ndarray:
        step = (np.arange(periods) * PERIOD / self.hold + 1e-9).astype(int) % len(self.levels)
        return np.array(self.levels)[step] * [each.top for each in self.tendons]


CANTILEVER = Arm(
    "in motion, its weight", SHAPE, (), LYING,
    "the rod of Table 2.1 lies, and falls under its weight", **MATERIAL,
)  # fmt: skip
PULLED = SteppedArm(
    "in motion, steps of tension", SHAPE,
    (Tendon(4e-3, 0.0, 0, 0.5, 1.0), Tendon(0.0, 4e-3, 0, 0.5, 1.0)), UPSIDE_DOWN,
    "the same rod hangs; two tendons are pulled with up to 0.5 N, in steps", **MATERIAL,
    hold=0.2, levels=((1.0, 0.0), (0.4, 0.8), (0.0, 0.2), (0.8, 0.6), (0.2, 0.0)),
)  # fmt: skip

_SHORT = 2.0  # [s]

Sampled = tuple[np.ndarray, np.ndarray]
"""(T,) indices of periods, (T, 3) tips at their ends [m]; NaN where a scheme failed."""


def explicit_tips(
    arm: Arm, periods: int, points: int, kind: Kind = "cosserat", share: float | None = None
) -> Sampled:
    """By the variational integrator; `share` of the bounds for its step, None: its usual step."""
    motion = ExplicitMotion(ReferenceRod.of_robot(arm.robot()), points, kind)
    longest = motion.dt
    if share is not None:
        longest = share * min(motion.bounds.waves, motion.bounds.diffusion)
    per_period = int(np.ceil(PERIOD / longest))
    motion.dt = PERIOD / per_period
    state, tips = motion.rest_state(), np.full((periods, 3), np.nan)
    for loads, rows in _held(arm, periods):
        try:
            found = motion.advance(state, loads, len(rows) * per_period)
        except MotionFailed:
            break
        tips[rows] = found[per_period - 1 :: per_period]
    return np.arange(periods), tips


def implicit_tips(
    arm: Arm, periods: int, points: int, dt: float, space: Space = "euler", shear: bool = True
) -> Sampled:
    """By midpoint in time and shooting in space; `shear`: whether shear and stretch are free."""
    rod = ReferenceRod.of_robot(arm.robot())
    motion = ImplicitMotion(rod if shear else rod.kirchhoff(), points, dt, space)
    state, tips = motion.rest_state(), []
    rows = _periods_met(periods, dt)
    for loads, each in _held(arm, periods):
        try:
            tips.append(motion.advance(state, loads, round(len(each) * PERIOD / dt)))
        except StepFailed:
            return rows, np.full((len(rows), 3), np.nan)
    every = max(1, round(PERIOD / dt))
    return rows, np.concatenate(tips)[every - 1 :: every]


def _periods_met(periods: int, dt: float) -> np.ndarray:
    """Indices of the periods at whose ends a step ends."""
    every = max(1, round(dt / PERIOD))
    return np.arange(every - 1, periods, every)


def _held(arm: Arm, periods: int) -> Iterator[tuple[Loads, np.ndarray]]:
    """Loads, and the indices of the periods during which they are held."""
    rows = inputs_of(arm, periods)
    for inputs, group in groupby(range(periods), key=lambda row: tuple(rows[row].tolist())):
        yield Loads(inputs=inputs), np.array(list(group))


@dataclass(frozen=True)
class Discretisation:
    """A solver with its numbers; called with an arm and a number of periods."""

    label: str
    work: partial[Sampled]

    def measured(self, arm: Arm, periods: int, true: np.ndarray) -> tuple[float, float]:
        """Mean error of the tip [m], and the least processor time [s]; slow ones run once."""
        begin = time.process_time()
        rows, tips = self.work(arm, periods)
        seconds = time.process_time() - begin
        error = float(np.linalg.norm(tips - true[rows], axis=1).mean())
        if seconds < _SHORT:
            seconds = processor_time(lambda: self.work(arm, periods), 3)
        return error, seconds


def explicit_runs(kind: Kind) -> list[Discretisation]:
    """On several grids, with the usual step and with the longest stable one."""
    grids = [(points, share) for points in (5, 10, 15) for share in (None, 0.9)]
    grids += [(points, None) for points in (20, 30)]  # diffusion bounds both steps alike
    if kind != "cosserat":  # its usual step is 0.9 of the bound
        grids = [(points, None) for points in (5, 10, 15)]
    return [
        Discretisation(
            f"{points} points, {'usual' if share is None else 'longest'} step",
            partial(explicit_tips, points=points, kind=kind, share=share),
        )
        for points, share in grids
    ]


def implicit_runs(space: Space, shear: bool = True) -> list[Discretisation]:
    """On several grids with several steps."""
    sizes = (10, 20, 40, 80, 160, 320) if space == "euler" else (7, 10, 15, 20, 30, 40, 80)
    return [
        Discretisation(
            f"{points} points, {1e3 * dt:g} ms",
            partial(implicit_tips, points=points, dt=dt, space=space, shear=shear),
        )
        for points in sizes
        for dt in (0.05, 0.02, 0.01, 0.005, 0.0025)
    ]
