"""Error against computing time of every solver of a rod on five problems, Pawlowski (2019).

Three steady states and two motions, see `CASES`. PyElastica and SoRoMoX simulate in processes of
their own, as in speed/work-precision.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod
from softcr_papers.pawlowski2019.reference.statics import (
    METHODS,
    Method,
    NoEquilibrium,
    equilibrium,
)
from softcr_papers.pawlowski2019.studies import statics
from softcr_papers.pawlowski2019.studies.robots import floating, lying, processor_time
from softcr_papers.pawlowski2019.studies.solvers import (
    CANTILEVER,
    PULLED,
    Discretisation,
    explicit_runs,
    implicit_runs,
)
from softcr_runtime.console.panels import panels
from softcr_studies.frame.study import Cell, Metric, Result, Results, Row, Study
from softcr_studies.speed import motion
from softcr_studies.speed import work_precision as speed
from softcr_studies.speed.arms import PERIOD, Arm
from softcr_studies.speed.timing import Skipped

HELIX = {"type": "tendon", "name": "helix", "angle": 0.0, "lever_arm": 0.004,
         "routing": {"kind": "helical", "pitch": 0.2 * np.pi}}  # fmt: skip
"""10 rad/m, so that a turn takes 0.2 pi m."""


@dataclass(frozen=True)
class Still:
    """A steady state whose solvers are compared; errors in % of the length, or of the base wrench.

    Attributes:
        name: for tables.
        clamped: whether both ends are.
        helix: whether a tendon with `statics.TENSION` bends it, instead of its weight.
    """

    name: str
    clamped: bool = False
    helix: bool = False


STILL = (
    Still("at rest, its weight"),
    Still("at rest, clamped at both ends", clamped=True),
    Still("at rest, a helical tendon", helix=True),
)
MOVING = (CANTILEVER, PULLED)
CASES: tuple[Still | Arm, ...] = (*STILL, *MOVING)

HOUSE, MIDPOINT = "rod of the house", "implicit, midpoint in space"
REFERENCES: dict[str, list[Discretisation]] = {
    "explicit": explicit_runs("cosserat"),
    "explicit, Kirchhoff": explicit_runs("kirchhoff"),
    "implicit": implicit_runs("euler"),
    "implicit, Kirchhoff": implicit_runs("euler", shear=False),
    MIDPOINT: implicit_runs("midpoint"),
}
THESIS = [name for name in REFERENCES if name != MIDPOINT]

POINTS = (5, 7, 10, 15, 20, 30, 50, 100, 200, 500, 1000)
SPECTRAL = (4, 5, 6, 7, 8, 9, 11, 13, 16, 20)
INTERVALS = (2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 64)
HOUSE_STEPS = {1: (1, 2, 4, 8), 2: (1, 2), 4: (1, 2, 3, 4), 5: (1, 2, 3, 4)}
"""Periods of 10 ms that one linearisation serves, and sub-steps in that time; the implicit scheme
has steps of 2.5 to 50 ms, too."""
HOUSE_GRIDS = [
    (n, periods, k)
    for n in (2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14, 16, 20, 24)
    for periods, substeps in HOUSE_STEPS.items()
    for k in substeps
]
PACE = 3.0  # waves need so much less time per element than on the arms of speed/work-precision

STILL_TIMES = {each: f"time of a solution within {each:g} %" for each in (1.0, 0.1, 0.01)}
MOVING_TIMES = {each: f"time for a tip error of {each:g} mm" for each in (3.0, 1.0, 0.3, 0.1)}


def run(cell: Cell) -> Result:
    """Errors and times of all discretisations of a method."""
    case = next(each for each in CASES if each.name == cell.case_name)
    if isinstance(case, Still):
        return told(still(case, cell.method), 100.0, 1e3, STILL_TIMES)
    try:
        found = moving(case, cell.method, cell.settings)
    except Skipped as reason:
        return {"skipped": str(reason)}
    return told(found, 1e3, 1e3 / (PERIOD * cell.settings.periods), MOVING_TIMES)


def told(found: speed.Points, in_unit: float, per: float, names: dict[float, str]) -> Result:
    """Errors and times in their units, and the least time within each bound."""
    labels, errors, seconds, note = found
    points = {
        "labels": np.array(labels), "errors": in_unit * np.array(errors),
        "times": per * np.array(seconds),
    }  # fmt: skip
    best = {name: speed.best_time(points, bound) for bound, name in names.items()}
    return points | {name: value for name, value in best.items() if value} | {"note": note}


# -- steady states --------------------------------------------------------------------------------


def still(case: Still, method: str) -> speed.Points:
    """Of a solver of the statics."""
    runs: dict[str, partial[float]]
    if method == HOUSE:
        runs = {f"{n} intervals": partial(house_at_rest, case, n) for n in INTERVALS}
    else:
        grids, scheme = SPECTRAL if method == "pseudospectral" else POINTS, cast(Method, method)
        runs = {f"{n} points": partial(reference_at_rest, case, scheme, n) for n in grids}
    labels, errors, seconds = [], [], []
    for label, solve in runs.items():
        try:
            errors.append(solve())
        except NoEquilibrium:
            continue
        labels.append(label)
        seconds.append(processor_time(solve, 5))
    return labels, errors, seconds, ""


def reference_at_rest(case: Still, method: Method, points: int) -> float:
    """Error of a solution [-]."""
    if case.helix:
        loads = Loads(inputs=[statics.TENSION])
        return _tip_error(case, equilibrium(_coiled(), loads, method, points).tip)
    if case.clamped:
        return 0.01 * statics.error(statics.CLAMPED, statics.solve(statics.CLAMPED, method, points))
    return _tip_error(case, statics.solve(statics.WEIGHT, method, points).tip)


def house_at_rest(case: Still, intervals: int) -> float:
    """Error of a solution of `CosseratRod` [-]."""
    rod = _house(case, intervals)
    tensions = np.array([statics.TENSION]) if case.helix else np.zeros(4)
    return _tip_error(case, rod.tip_pose(rod.equilibrium(tensions))[:3, 3])


@cache
def _house(case: Still, intervals: int) -> CosseratRod:
    return CosseratRod(_coiled_robot() if case.helix else lying(), intervals)


def _coiled_robot() -> Any:
    return floating().replace(actuators=[HELIX], tendon_model="exact")


@cache
def _coiled() -> ReferenceRod:
    return ReferenceRod.of_robot(_coiled_robot())


def _tip_error(case: Still, tip: np.ndarray) -> float:
    """In parts of the length."""
    return float(np.linalg.norm(tip - true_tip(case)) / _coiled().length)


@cache
def true_tip(case: Still) -> np.ndarray:
    """(3,) of SciPy's integrator, or of a collocation of 25 points with the helical tendon [m]."""
    if case.helix:
        loads = Loads(inputs=[statics.TENSION])
        return equilibrium(_coiled(), loads, "pseudospectral", 25).tip
    return statics.true_tip_or_wrench(statics.WEIGHT)


# -- motions --------------------------------------------------------------------------------------


def moving(arm: Arm, method: str, settings: speed.WorkSettings) -> speed.Points:
    """Of a simulator."""
    if method == HOUSE:
        return house_in_motion(arm, settings)
    if method == speed.ELASTICA:
        return speed.pyelastica(arm, settings, PACE)
    if method == speed.SOROMOX:
        return speed.soromox(arm, settings)
    true = speed.fine_tips(arm, settings.periods)
    found = [each.measured(arm, settings.periods, true) for each in REFERENCES[method]]
    note = "errors against the same motion as the rod of the house"
    if failed := sum(np.isnan(error) for error, _ in found):
        note += f"; {failed} of {len(found)} discretisations found no step"
    labels = [each.label for each in REFERENCES[method]]
    return labels, [error for error, _ in found], [seconds for _, seconds in found], note


def house_in_motion(arm: Arm, settings: speed.WorkSettings) -> speed.Points:
    """Of `CosseratRod`, whose states are looked at where a linearisation's time ends.

    Tensions must not change within this time; those of `PULLED` do so every 0.2 s.
    """
    true, inputs = speed.fine_tips(arm, settings.periods), speed.inputs_of(arm, settings.periods)
    labels, errors, seconds = [], [], []
    for intervals, periods, substeps in HOUSE_GRIDS:
        dt, held = periods * PERIOD, inputs[periods - 1 :: periods]
        rod = CosseratRod(arm.robot(), intervals, max_substep=dt / substeps)
        states, shortest = speed.timed(partial(rod.simulate, rod.rest_state(), held, dt))
        tips = motion.tip_positions(rod, states)
        labels.append(f"{intervals} intervals, {substeps} steps per {1e3 * dt:g} ms")
        errors.append(motion.mean_distance(tips, true[periods - 1 :: periods]))
        seconds.append(shortest)
    note = (
        f"{arm.about}; errors against what {speed.FINE[0]} and {speed.FINE[1]} intervals "
        f"extrapolate to, {speed.FINE_SUBSTEPS} steps per 10 ms"
    )
    return labels, errors, seconds, note


def methods(case: Still | Arm) -> Sequence[str]:
    """PyElastica and SoRoMoX have no solver of the statics; our rod has a free end."""
    if isinstance(case, Still):
        return METHODS if case.clamped else (*METHODS, HOUSE)
    return (*REFERENCES, HOUSE, speed.ELASTICA, speed.SOROMOX)


# -- tables and figures ---------------------------------------------------------------------------


def ratios(results: Results) -> Iterator[Row]:
    """How many times faster the rod of the house is, at equal errors."""
    rivals: tuple[tuple[str, list[str]], ...] = (
        ("the thesis's solvers", THESIS),
        ("the best reference solver", list(REFERENCES)),
        (speed.ELASTICA, [speed.ELASTICA]), (speed.SOROMOX, [speed.SOROMOX]),
    )  # fmt: skip
    for arm, (name, theirs) in itertools.product(MOVING, rivals):
        mine = results.first(arm.name, HOUSE)
        for bound, key in MOVING_TIMES.items():
            others = [results.first(arm.name, each).get(key) for each in theirs]
            known = [time for time in others if time]
            if key not in mine or not known:
                continue
            asks = arm == CANTILEVER and theirs[0] in REFERENCES
            asked: dict[str, Any] = {"must": 20.0, "goal": 100.0} if asks else {}
            yield Row(arm.name, HOUSE, f"times faster than {name} at {bound:g} mm",
                      min(known) / mine[key], 0.0, "x", 1, at_least=True, timing=True,
                      **asked)  # fmt: skip


def draw(results: Results, directory: Path) -> None:
    """A work-precision diagram for each case."""
    for case in CASES:
        file = directory / f"{case.name.replace(' ', '_').replace(',', '')}.png"
        is_still = isinstance(case, Still)
        y = "ms per solution" if is_still else speed.UNIT
        x = "error [%]" if is_still else "mean tip error [mm]"
        with panels(file, [y], x=x, height=4.0) as (axes,):
            axes.set_title(case.name)
            for marker, method in zip("os^vDP*X", methods(case), strict=False):
                found = results.first(case.name, method)
                if "errors" in found:
                    label = method.replace("_", " ")
                    axes.loglog(found["errors"], found["times"], marker, label=label)
            if not is_still:
                axes.set_xlim(right=100.0)


def _metrics(names: Iterable[str], unit: str) -> list[Metric]:
    return [Metric(name, unit, name, timing=True) for name in names]


STUDY = Study(
    name="pawlowski2019/work-precision",
    source="Pawlowski, MSc thesis, Sec. 2.7 and 3.4",
    summary="error against computing time of the thesis's solvers, the rod of the house, "
    "PyElastica and SoRoMoX",
    run=run,
    cases=CASES,
    methods=methods,
    settings=speed.WorkSettings,
    metrics=[
        *_metrics(STILL_TIMES.values(), "ms"),
        *_metrics(MOVING_TIMES.values(), speed.UNIT),
    ],
    exact="All have the rod of Table 2.1 with 300 Pa s of viscosity; in motion with a shear "
    "modulus of E / 3 instead of 0.33 MPa. Tensions are ours, those of Fig. 3.6 are a plot. Errors "
    "at rest are of the tip in % of the length, or of the wrench at the clamped rod's base; in "
    "motion the mean over the ends of periods of 10 ms, for one second from the straight rod at "
    "rest, against what the rod of the house extrapolates to. The restriction of Kirchhoff is "
    "judged against the same. Times are the least of several on one core; those of the reference "
    "solvers processor time, which other processes do not prolong.",
    about={
        "independence of the truth in motion": "the implicit scheme with the midpoint rule in "
        "space shares no equation of space or time with the rod of the house and comes within "
        "0.1 mm of it, with errors that fall with the square of its step"
    },
    further_rows=ratios,
    draw=draw,
    seeded=False,
    serial=True,
)
