"""Figs. 4.3 to 4.11 of Pawlowski (2019), Sec. 4.4.2: predictive controllers reach points and follow
circles.

The thesis tells its controllers the state of a plant that is their model. So do the first cases
here, on a finer plant; of the last the plant is stiffer, too, the tip is measured with noise, and
the state is what the filter of the house finds.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from softcr_control.reference.references import SampledReference
from softcr_control.reference.settings import ReferenceSettings
from softcr_estimation import ModelEstimatorSettings
from softcr_papers.pawlowski2019.studies.columns import (
    COLUMNS,
    IMPLICIT,
    INTERVALS,
    SUBSTEPS,
    TICK,
    Column,
)
from softcr_papers.pawlowski2019.studies.columns import far_sighted as seeing_far
from softcr_papers.pawlowski2019.studies.known_state import PLANT_INTERVALS, Path, followed
from softcr_papers.pawlowski2019.studies.robots import floating
from softcr_papers.pawlowski2019.studies.targets import (
    LENGTH,
    RADII,
    STRICT,
    circle,
    share_of,
    static_points,
)
from softcr_simulation.errors.plant_errors import PlantErrors
from softcr_studies.frame.study import (
    Cell,
    Metric,
    Must,
    Published,
    Result,
    Seeds,
    Study,
    StudySettings,
)
from softcr_studies.loops import tracking_loop

STIFFNESS = 1.05  # of the plant whose state is estimated, in bending, of the model's
PERIOD = 4.0  # of a circle [s]
FADE = 1.0  # from rest to the circle [s]
NEAR = 0.05  # of the length: a point is reached [-]
STEADY, LAST = 0.005, 5  # deviation of the length over the last steps of a reach that holds
MOST = 100  # steps of a reach
WARM = 3  # plans that are not counted in times
RATE_HZ = round(1.0 / TICK)

REACH, HOLD = "dynamic reach", "static reach and hold"
ESTIMATED = "middle circle, estimated state"


@dataclass(frozen=True)
class Case:
    """What is asked of the tip."""

    name: str


CASES = tuple(Case(name) for name in (REACH, HOLD, *RADII, ESTIMATED))
_COLUMNS = {column.name: column for column in COLUMNS + IMPLICIT}


class Settings(StudySettings):
    """See StudySettings."""

    seeds: Seeds = 5
    points: int = Field(
        10, ge=1, le=1000, description="number of points to reach, which differ for every seed"
    )


def run(cell: Cell) -> Result:
    """Distances and times of a column in a case."""
    column, case = _COLUMNS[cell.method], cell.case.name
    if case in (REACH, HOLD):
        return _reached(cell, column, case)
    if case == ESTIMATED:
        return estimated(cell, column)
    phase = float(cell.random("phase").uniform())
    return lap(column, RADII[case], phase)


def lap(column: Column, radius: float, phase: float) -> Result:
    """Errors and times of a column on a circle [m] that begins at a phase in turns."""
    before = round((FADE + 1.0) / column.tick)
    found = followed(column, around(radius, phase), before + round(PERIOD / column.tick))
    return _tracked(column, found["error"][before:], found["solve"])


def around(radius: float, phase: float) -> Path:
    """A circle that begins at a phase in turns, faded in from the straight rod's tip."""
    rest = np.array([0.0, 0.0, LENGTH])

    def at(times: np.ndarray) -> np.ndarray:
        share = np.clip(times / FADE, 0.0, 1.0)
        share = (share * share * (3.0 - 2.0 * share))[:, None]
        return rest + share * (circle(radius, phase + times / PERIOD) - rest)

    return at


def _reached(cell: Cell, column: Column, case: str) -> Result:
    once, count = case == REACH, cell.settings.points
    draw = STRICT.sample if once else static_points
    chosen = seeing_far(column) if once else column
    errors, solve, seconds = [], [], []
    for point in draw(count, cell.random("points")):
        found = followed(chosen, _standing(point), MOST * column.ticks, _enough(column, once))
        of_steps = share_of(found["error"][-LAST * column.ticks :])
        errors.append(share_of(found["error"]).min() if once else of_steps.mean())
        solve.append(found["solve"][WARM:])
        seconds.append(column.tick * len(found["error"]))
    reached = np.array(errors) < 100.0 * NEAR
    return _times(column, np.concatenate(solve)) | {
        "reached": 100.0 * reached.mean(), "error": np.mean(errors), "seconds": np.mean(seconds),
        "errors": np.array(errors),
    }  # fmt: skip


def _standing(point: np.ndarray) -> Path:
    return lambda times: np.tile(point, (len(times), 1))


def _enough(column: Column, once: bool) -> Callable[[np.ndarray], bool]:
    """Whether a reach may end: near, and where it is to hold, steadily so."""

    def enough(errors: np.ndarray) -> bool:
        if once:
            return bool(errors[-1] < NEAR * LENGTH)
        last = errors[-LAST * column.ticks :]
        whole = len(last) == LAST * column.ticks
        return bool(whole and last.mean() < NEAR * LENGTH and last.std() < STEADY * LENGTH)

    return enough


def estimated(cell: Cell, column: Column, seconds: float = 12.0, since: float = 4.0) -> Result:
    """The middle circle in the system: simulator, filter, reference and controller as blocks."""
    path = around(RADII["middle circle"], float(cell.random("phase").uniform()))
    motion = SampledReference(TICK, None, path(TICK * np.arange(round((seconds + 2.0) / TICK))))
    case = tracking_loop.Case(
        column.name, ReferenceSettings(kind="tip_circle"), seconds,
        PlantErrors(bending_factor=1.0 / STIFFNESS), PLANT_INTERVALS, rate_hz=RATE_HZ,
        model_intervals=INTERVALS,
    )  # fmt: skip
    run = tracking_loop.run_loop(
        floating(), case, motion, column.controller,
        (cell.stream("plant"), cell.stream("controller")), known=column.robot,
        parameters={"substeps": SUBSTEPS, **column.settings},
        filter_settings=ModelEstimatorSettings(), clock=time.thread_time, bag=cell.bag,
    )  # fmt: skip
    first = round(since / TICK)
    whole = len(run["ticks"]) // column.ticks * column.ticks
    solve = run["ticks"][:whole].reshape(-1, column.ticks).max(axis=1)  # of every step the plan's
    astray = np.linalg.norm(run["tips"] - run["estimated"], axis=1)[first:]
    return _tracked(column, run["error"][first:], solve) | {"filter": share_of(astray).mean()}


def _tracked(column: Column, error: np.ndarray, solve: np.ndarray) -> dict[str, object]:
    share = share_of(error)
    return _times(column, solve[WARM:]) | {"error": share.mean(), "largest": share.max()}


def _times(column: Column, solve: np.ndarray) -> dict[str, object]:
    ratio = solve / column.period
    return {"ratio": ratio.mean(), "ratio99": np.percentile(ratio, 99)}


REACHED, ERROR = "points reached", "mean tip error"
RATIO, RATIO99 = "real-time ratio, mean", "real-time ratio, 99 %"
_PRINTED = {
    "NLSQ, 0.01 s": (100.0, 3.45), "NLSQ, 0.05 s": (100.0, 4.36), "NLSQ, 0.1 s": (100.0, 6.90),
    "NLSQ, Kirchhoff, 0.05 s": (90.0, 1.64), "LQR, 0.05 s": (90.0, 2.03),
    "iLQR, 0.05 s": (90.0, 3.38),
}  # fmt: skip
"""Dynamic reach and middle circle of Table 4.1 [%]."""

STUDY = Study(
    name="pawlowski2019/mpc",
    source="Pawlowski, MSc thesis, Sec. 4.2 and 4.4.2, Figs. 4.3 to 4.11, Table 4.1",
    summary="predictive controllers reach points and follow circles",
    run=run,
    cases=CASES,
    methods=lambda case: [name for name, column in _COLUMNS.items()
                          if not (column.implicit and case.name == ESTIMATED)],
    settings=Settings,
    metrics=(
        Metric(REACHED, "%", "reached"),
        Metric("time of a reach", "s", "seconds"),
        Metric(ERROR, "%", "error"),
        Metric("largest tip error", "%", "largest"),
        Metric("filter's tip error", "%", "filter"),
        Metric(RATIO, "-", "ratio", timing=True),
        Metric(RATIO99, "-", "ratio99", timing=True),
    ),
    published=(
        *(Published(REACHED, reach, "simulation", REACH, name)
          for name, (reach, _) in _PRINTED.items()),
        *(Published(REACHED, 100.0, "simulation", case, name)
          for case in (REACH, HOLD) for name in (column.name for column in IMPLICIT)),
        *(Published(REACHED, 100.0, "simulation", HOLD, name) for name in _PRINTED),
        *(Published(ERROR, error, "simulation", case, name)
          for name, (_, error) in _PRINTED.items() for case in ("middle circle", ESTIMATED)),
        *(Published(ERROR, error, "simulation", "middle circle", f"NLSQ, implicit scheme, {step} s")
          for step, error in (("0.05", 4.36), ("0.1", 6.90))),
        *(Published(RATIO, 0.95, "simulation", None, name)
          for name in ("NLSQ, 0.1 s", "NLSQ, implicit scheme, 0.1 s")),
    ),
    musts=(
        Must(REACHED, 100.0, None, REACH, at_least=True),
        Must(REACHED, 100.0, None, HOLD, at_least=True),
        Must(ERROR, 1.0, 0.3, ESTIMATED),
        *(Must(ERROR, 0.1, 0.02, "middle circle", column.name) for column in IMPLICIT),
        Must(RATIO, 0.5, 0.1),
        Must(RATIO99, 0.9, 0.3),
    ),
    exact="Errors are in per cent of the length of 10 cm; of a dynamic reach it is the least "
    "one, of a static one the mean of the last five steps. Where the implicit scheme is named, "
    "model and plant are one, the thesis's scheme with 20 points, whose time step is that of the "
    "controller, with two steps ahead: one step ahead, as in the thesis's one real-time setting, "
    "loses the rod (see pawlowski2019/lookahead). The other models have 5 intervals, plants 20, "
    "the same equations, and the four tendons and the limit of 10 N/s are ours. With a known "
    "state the plant has the model's stiffness, as in the thesis; with an estimated one it is 5 "
    "% stiffer in bending, the tip is measured every 0.01 s with 0.2 mm of noise in each "
    "coordinate, tensions with 5 mN, and the filter of the house finds state and parameters. "
    "Commands act one tick of 0.01 s after their sample and are kept in their limits in the "
    "optimisation; the thesis has no delay and no limits. Errors count every tick, not the ends "
    "of steps alone; a circle takes 4 s and begins at another phase for each seed. Points of "
    "dynamic reaches are uniform in the box that holds all tips of random motions, which is that "
    "of the policies of pawlowski2019/learning; those of static ones are reachable points of the "
    "static box, others for each seed. Dynamic reaches have a cost of their own, squared "
    "distance over itself plus (15 mm)^2, over longer horizons: with the thesis's cost only "
    "points reached by the first swing are reached. There NLSQ with 0.01 s changes the last 16 "
    "of its 20 steps in fours. LQR differentiates the equations of the robot once for a plan, at "
    "the present state and inputs, and expands the cost, which is of the tip of the linear "
    "motion, anew in each of three passes; iLQR differentiates them along all of the plan, in "
    "one pass. The Kirchhoff column predicts with the rod of the house whose compliances in "
    "shear and extension are a hundredth. The reference solvers have a Kirchhoff rod: the "
    "explicit one needs steps of 60 microseconds, the implicit one with 5 points takes 29 "
    "microseconds for a tick of a candidate, ten times what the rod of the house does, and knows "
    "no filter of its state. The thesis does not print the steps of its LQR, iLQR and Kirchhoff "
    "columns. Times are those of the processor for a plan, on one thread, over the length of a "
    "step; the thesis's are of MATLAB on C models.",
    about={"plant_intervals": PLANT_INTERVALS, "model_intervals": INTERVALS},
    quick={"points": 2},
)  # fmt: skip
