"""Steps of lookahead, Figs. 4.3 to 4.11 of Pawlowski (2019): the middle circle and what plans cost.

The state is known and the plant finer than the model, as in `mpc`; the thesis prints no number of
these figures.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from softcr_papers.pawlowski2019.studies import mpc
from softcr_papers.pawlowski2019.studies.columns import TICK, Column
from softcr_papers.pawlowski2019.studies.targets import RADII
from softcr_runtime.console.panels import panels
from softcr_studies.frame.study import Cell, Metric, Result, Results, Study

CIRCLE = "middle circle"
AHEAD = (1, 2, 4, 8)
SWEPT = tuple(
    Column(f"{name}, {TICK * ticks:g} s", name.lower(), ticks, 1)
    for name in ("NLSQ", "LQR", "iLQR") for ticks in (1, 5, 10)
)  # fmt: skip
PRINTED = "LQR as printed, 0.05 s"
"""Algorithm 3 without what it leaves out."""
SCHEME = "NLSQ, implicit scheme, 0.1 s"
LOST = "the rod is lost: the scheme finds no further step"
DAMPED = f"{SCHEME}, 1 ahead, 50 times the weight on changes"
"""The thesis's one real-time setting; a controller here looks at least two ticks ahead, so that a
step has two of the scheme, of 0.05 s each."""


def _columns() -> dict[str, Column]:
    found = {
        f"{column.name}, {steps} ahead": replace(column, steps=steps)
        for column in SWEPT
        for steps in AHEAD
        if column.ticks * steps > 1  # a horizon has two ticks at least
    }
    form = {"form": "printed"}
    found |= {f"{PRINTED}, 4 ahead": Column(PRINTED, "lqr", 5, 4, numbers=form)}
    return found | {
        f"{SCHEME}, {steps} ahead": Column(SCHEME, "nlsq", 2, steps, tick=0.05, implicit=True)
        for steps in AHEAD
    } | {DAMPED: Column(DAMPED, "nlsq", 2, 1, tick=0.05, implicit=True,
                        numbers={"costs.input_rate": 1.0})}  # fmt: skip


_COLUMNS = _columns()


def run(cell: Cell) -> Result:
    """One lap."""
    column = _COLUMNS[cell.method]
    found = mpc.lap(column, RADII[CIRCLE], 0.0)
    note = {} if np.isfinite(found["error"]) else {"note": LOST}
    return {**found, **note, "ahead": column.steps}


def draw(results: Results, directory: Path) -> None:
    """Errors and times against steps."""
    labels = ["mean tip error [%]", "real-time ratio"]
    with panels(directory / "lookahead.png", labels, x="steps of lookahead", height=3.2) as rows:
        for axes, entry in zip(rows, ("error", "ratio"), strict=True):
            for column in SWEPT:
                found = [
                    results.first(CIRCLE, name)
                    for name in _COLUMNS
                    if name.startswith(f"{column.name}, ")
                ]
                axes.semilogy([each["ahead"] for each in found], [each[entry] for each in found],
                              "o-", ms=3, label=column.name)  # fmt: skip
        rows[0].legend(loc="upper right", fontsize="small", ncols=3)


STUDY = Study(
    name="pawlowski2019/lookahead",
    source="Pawlowski, MSc thesis, Sec. 4.4.2, Figs. 4.3 to 4.11",
    summary="steps of lookahead of NLSQ, LQR and iLQR on the middle circle",
    run=run,
    cases=(CIRCLE,),
    methods=tuple(_COLUMNS),
    metrics=(
        Metric(mpc.ERROR, "%", "error"),
        Metric(mpc.RATIO, "-", "ratio", timing=True),
        Metric(mpc.RATIO99, "-", "ratio99", timing=True),
    ),
    exact="As pawlowski2019/mpc with a known state and the shipped weights. As printed, LQR "
    "leads states to those of the equilibrium whose tip is the target, counts inputs from zero "
    "and leaves out the affine part; its weights are ours, since the thesis prints none. Where "
    "the implicit scheme is named, it is plant and model, so that the tick of delay costs "
    "nothing: what is lost with one step ahead is lost since each input is made for the end of "
    "its own step alone, and leaves the rod in a swing that the next one has to make up for. Two "
    "steps ahead see that.",
    draw=draw,
    seeded=False,
)
