"""Where a rod's tip gets in motion, Pawlowski (2019), Sec. 3.4.1: random inputs, each held for
several control steps so that momentum is built up.

The thesis says neither for how long inputs were held nor how many there were; both can be chosen
here. The motion is that of the rod of the house, many runs in one call: the reference solvers would
take hours for as many tips.
"""

from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError
from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod, linearisations
from softcr_models.rod.description import rod_inputs
from softcr_papers.pawlowski2019.reference.workspace import Workspace

_BLOCK = 512  # runs in one call
_FARTHEST = 1.5  # lengths: a tip farther from the base than this shows that numbers blew up


@dataclass(frozen=True)
class Excitation:
    """Random inputs, uniform within their limits; all of a run change at the same time.

    Attributes:
        runs: each begins at rest.
        steps: of control in a run.
        period: of a step of control [s].
        held: least and most steps for which inputs stay.
    """

    runs: int = 4096
    steps: int = 50
    period: float = 0.05
    held: tuple[int, int] = (5, 10)

    def __post_init__(self) -> None:
        if min(self.runs, self.steps) < 1 or not self.period > 0.0:
            raise UserError(
                f"excitation: {self.runs} runs of {self.steps} steps of {self.period} s are not "
                "allowed: all must be above 0"
            )
        if not 1 <= self.held[0] <= self.held[1]:
            raise UserError(f"excitation: held: {self.held} must ascend from 1 or more")

    def inputs(self, low: np.ndarray, high: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """(runs, steps, m) between `low` and `high` (m,), a row for each step."""
        rows = np.empty((self.runs, self.steps, len(low)))
        count = -(-self.steps // self.held[0])  # enough if all are held for the shortest time
        for run in rows:
            lengths = random.integers(*self.held, count, endpoint=True)
            levels = random.uniform(low, high, (count, len(low)))
            run[:] = np.repeat(levels, lengths, axis=0)[: self.steps]
        return rows


def reached_tips(
    rod: CosseratRod, excitation: Excitation, random: np.random.Generator
) -> np.ndarray:
    """(runs, steps, 3) tips at the end of each step [m], base frame; inputs jump at its begin.

    A run whose numbers blow up, as they do where steps are too long, is NaN as a whole.

    Args:
        rod: its `max_substep` is the step of the time integration.
        excitation: what drives it.
        random: of the inputs.
    """
    limits = rod_inputs(rod.robot)
    held = excitation.inputs(limits.low, limits.high, random)
    pieces = linearisations(excitation.period)
    # the last row repeated: what comes after the end is not looked at
    levels = np.repeat(np.concatenate((held, held[:, -1:]), axis=1), pieces, axis=1)
    levels = levels[:, : excitation.steps * pieces + 1]
    dt = excitation.period / pieces
    substeps = int(np.ceil(dt / rod.max_substep - 1e-9))
    run = stepper.Run(
        rod.body, rod.grid, dt, substeps, held=1, fittings=rod.fittings, loads=rod.loads
    )
    rest, numbers = rod.rest_state()[None], rod.nominal_parameters[None]
    parts = [
        stepper.rollout_tips(rest, levels[at : at + _BLOCK], numbers, run)[:, pieces - 1 :: pieces]
        for at in range(0, len(levels), _BLOCK)
    ]
    tips = np.concatenate(parts)[..., 3]
    away = np.linalg.norm(tips, axis=2).max(axis=1)
    tips[~(away < _FARTHEST * rod.robot.length)] = np.nan
    return tips


def dynamic_workspace(tips: np.ndarray, length: float, share: float = 1.0) -> Workspace:
    """The box around tips (..., 3); runs of NaN are left out.

    Args:
        tips: as `reached_tips` gives them [m].
        length: of the rod [m].
        share: of the tips, for each bound alone; 1 contains all, as in the thesis, whose box is
            then made by the few widest of them.

    Raises:
        UserError: a share that is not above 0.5 and at most 1, or no tip.
    """
    rows = np.reshape(tips, (-1, 3))
    return Workspace.around(rows[np.isfinite(rows).all(axis=1)], length, share)
