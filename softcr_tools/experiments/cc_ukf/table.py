"""The rows of the experiment, each beside its figure in Mehl et al., Table II, Sim."""

from collections.abc import Sequence

import numpy as np

from softcr_tools.experiments.cc_ukf.scores import Score
from softcr_tools.experiments.results import Row

_NAMES = ("Δx", "Δy", "δL", "Δx'", "Δy'", "δL'")
_PAPER_FULL = (4.3, 4.6, 6.4, 18.4, 26.0, 12.7)
_PAPER_TICK = 8.0 / 13.5


def plant_rows(case: str, largest: np.ndarray) -> list[Row]:
    """Rows of the plant's motion from (seeds, 2) deflections [mm] and velocities [mm/s]."""
    seeds = len(largest)
    return [
        Row(case, "plant", name, paper, *_mean_sd(column), unit, seeds)
        for name, paper, unit, column in (
            ("max deflection", 57.4, "mm", largest[:, 0]),
            ("max velocity", 275.7, "mm/s", largest[:, 1]),
        )
    ]


def rows_of(
    case: str, method: str, by_seed: Sequence[Sequence[Score]], required: bool
) -> list[Row]:
    """Rows of one filter; means and deviations over all parts of all seeds.

    The paper's figures are those of its full data set, 'worst part' that of its part 10; its mean
    leaves out the two parts that did not converge, ours leaves out nothing. Its computing time is
    that of a tick at 8 ms, in compiled MATLAB.
    """
    scores = [score for scores in by_seed for score in scores]
    nrmse = np.array([score.nrmse for score in scores])
    worst = np.array([max(score.nrmse.mean() for score in part) for part in by_seed])
    lost = np.array([sum(not score.converged for score in part) for part in by_seed])

    def row(
        quantity: str,
        paper: float | None,
        values: np.ndarray | Sequence[float],
        unit: str,
        *bounds: float,
    ) -> Row:
        asked = bounds if required else ()
        mean, sd = _mean_sd(values)
        return Row(case, method, quantity, paper, mean, sd, unit, len(by_seed), *asked)

    return [
        *(
            row(f"NRMSE {name}", paper, nrmse[:, axis], "%")
            for axis, (name, paper) in enumerate(zip(_NAMES, _PAPER_FULL, strict=True))
        ),
        row("NRMSE mean", 12.0, nrmse.mean(axis=1), "%", 12.0, 8.0),
        row("NRMSE mean, worst part", 15.3, worst, "%"),
        row("tip error", 3.1, [score.tip for score in scores], "mm", 3.1, 2.0),
        row("tip velocity error", 57.5, [score.velocity for score in scores], "mm/s", 57.5, 40.0),
        row("parts not converged", 2.0, lost, "", 0.0),
        row("tick", _PAPER_TICK, [score.tick for score in scores], "ms", 0.3),
    ]


def _mean_sd(values: np.ndarray | Sequence[float]) -> tuple[float, float]:
    deviation = float(np.std(values)) if np.isfinite(values).all() else np.nan
    return float(np.mean(values)), deviation
