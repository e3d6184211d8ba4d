"""Fig. 2.4 of Pawlowski (2019): how five solvers of the statics converge with their points.

The thesis prints no number of that figure but the largest error of a determinant. Truths are found
beside the solvers: by SciPy's DOP853 and the formula of an arc.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import cast

import numpy as np
from pydantic import Field
from scipy.integrate import solve_ivp
from scipy.optimize import root

from softcr_papers.pawlowski2019.lie import so3
from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod
from softcr_papers.pawlowski2019.reference.statics import (
    METHODS,
    Method,
    NoEquilibrium,
    equilibrium,
)
from softcr_papers.pawlowski2019.reference.steady import Equilibrium
from softcr_papers.pawlowski2019.studies.robots import floating, lying, processor_time
from softcr_runtime.console.panels import panels
from softcr_studies.frame.study import (
    Cell,
    Metric,
    Must,
    Published,
    Result,
    Results,
    Study,
    StudySettings,
)

POINTS = (5, 10, 15, 20, 50, 100)
SPECTRAL = (5, 7, 9, 11, 15, 20)
FINE = (201, 401)
"""Points between which the order is measured."""

GOAL = np.array([[1.0, 0, 0, 0.01], [0, 1, 0, 0], [0, 0, 1, 0.1], [0, 0, 0, 1]])
"""(2.115)."""

TENSION = 0.5  # [N], the largest of Sec. 2.7.3


@dataclass(frozen=True)
class Case:
    """What loads the rod; the error of a clamped rod is that of the wrench at its base."""

    name: str
    unit: str

    @property
    def error(self) -> str:
        """What its errors are called."""
        return "error of the tip" if self.unit == "mm" else "error of the wrench at the base"


WEIGHT = Case("its weight", "mm")
CLAMPED = Case("clamped at both ends", "%")
ARC = Case("a tendon", "mm")
CASES = (WEIGHT, CLAMPED, ARC)


class Settings(StudySettings):
    """See StudySettings."""

    repeats: int = Field(
        20, ge=1, le=1000, description="number of repetitions of each timed solution"
    )


def run(cell: Cell) -> Result:
    """Errors by points, order, largest error of a determinant, time with 20 points."""
    case, method = cell.case, cast(Method, cell.method)
    grids = SPECTRAL if method == "pseudospectral" else POINTS
    errors, worst, failed = [], 0.0, []
    for points in grids:
        try:
            found = solve(case, method, points)
        except NoEquilibrium:
            errors.append(math.nan)
            failed.append(str(points))
            continue
        errors.append(error(case, found))
        worst = max(worst, found.determinant_error)
    result = {f"{points} points": error for points, error in zip(grids, errors, strict=True)}
    if method != "pseudospectral" and case != ARC:
        coarse, fine = (error(case, solve(case, method, points)) for points in FINE)
        result["order"] = float(np.log(coarse / fine) / np.log((FINE[1] - 1) / (FINE[0] - 1)))
    seconds = processor_time(lambda: solve(case, method, 20), cell.settings.repeats)
    note = f"no solution with {', '.join(failed)} points" if failed else ""
    return result | {
        "grids": np.array(grids), "errors": np.array(errors), "determinant": worst,
        "time": 1e3 * seconds, "note": note, "unit": case.unit,
    }  # fmt: skip


def solve(case: Case, method: Method, points: int) -> Equilibrium:
    if case == WEIGHT:
        return equilibrium(_rod(WEIGHT), None, method, points)
    if case == CLAMPED:
        return equilibrium(_rod(CLAMPED), None, method, points, GOAL)
    return equilibrium(_rod(ARC), Loads(inputs=[TENSION, 0.0, 0.0, 0.0]), method, points)


@cache
def _rod(case: Case) -> ReferenceRod:
    return ReferenceRod.of_robot(lying() if case == WEIGHT else floating())


def error(case: Case, found: Equilibrium) -> float:
    """Distance of the tip [mm], or of the wrench at the base [%], with forces in parts of EI / L^2
    and moments in parts of EI / L."""
    truth = true_tip_or_wrench(case)
    if case == CLAMPED:
        scales = _rod(case).scales
        off = np.linalg.norm((found.base_wrench - truth) / scales)
        return 100.0 * float(off / np.linalg.norm(truth / scales))
    return 1e3 * float(np.linalg.norm(found.tip - truth))


@cache
def true_tip_or_wrench(case: Case) -> np.ndarray:
    """(3,) tip [m], or (6,) wrench at the base of the clamped rod [N, N m]."""
    rod = _rod(case)
    if case == ARC:
        curvature = TENSION * 4e-3 / rod.stiffness[4]
        stretch = (1.0 - TENSION / rod.stiffness[2]) / curvature
        angle = curvature * rod.length
        return stretch * np.array([1.0 - np.cos(angle), 0.0, np.sin(angle)])

    def miss(base: np.ndarray) -> np.ndarray:
        turn, place, wrench = march(rod, base * rod.scales)
        if case == WEIGHT:
            return wrench / rod.scales
        return np.concatenate(((place - GOAL[:3, 3]) / rod.length, so3.log(turn)))

    guess = solve(case, "pseudospectral", 15).base_wrench / rod.scales
    base = root(miss, guess, tol=1e-12).x * rod.scales
    return base if case == CLAMPED else march(rod, base)[1]


def march(rod: ReferenceRod, base: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rotation (3, 3), place (3,) and wrench (6,) at the end, from the wrench at the base (6,)."""

    def slopes(_: float, y: np.ndarray) -> np.ndarray:
        turn, force, moment = y[:9].reshape(3, 3), y[12:15], y[15:]
        strain = rod.rest_strain + y[12:] / rod.stiffness
        linear, angular = strain[:3], strain[3:]
        force_rate = np.cross(force, angular) - turn.T @ rod.weight
        moment_rate = np.cross(force, linear) + np.cross(moment, angular)
        return np.concatenate(
            ((turn @ so3.hat(angular)).ravel(), turn @ linear, force_rate, moment_rate)
        )

    begin = np.concatenate((np.eye(3).ravel(), np.zeros(3), base))
    end = solve_ivp(slopes, (0.0, rod.length), begin, "DOP853", rtol=1e-12, atol=1e-14).y[:, -1]
    return end[:9].reshape(3, 3), end[9:12], end[12:]


def _in_unit(case: Case, points: int, found: Result) -> float | None:
    """An error of a result, if it has the unit of the case."""
    return found.get(f"{points} points") if found["unit"] == case.unit else None


def draw(results: Results, directory: Path) -> None:
    """Errors against points."""
    with panels(directory / "errors.png", [f"{each.error} [{each.unit}]" for each in CASES[:2]],
                x="points", height=3.2) as rows:  # fmt: skip
        for axes, case in zip(rows, CASES[:2], strict=True):
            axes.set_title(case.name)
            for marker, method in zip("os^vD", METHODS, strict=True):
                found = results.first(case.name, method)
                label = method.replace("_", " ")
                axes.loglog(found["grids"], found["errors"], f"{marker}-", label=label)


ORDERS: Mapping[str, float] = {
    "explicit_euler": 1.0, "implicit_euler": 1.0, "explicit_midpoint": 2.0,
    "implicit_midpoint": 2.0,
}  # fmt: skip
DETERMINANT, ORDER = "largest error of a determinant", "order from 201 to 401 points"

STUDY = Study(
    name="pawlowski2019/statics",
    source="Pawlowski, MSc thesis, Sec. 2.7 and Fig. 2.4",
    summary="five solvers of a rod's statics converge",
    run=run,
    cases=CASES,
    methods=METHODS,
    settings=Settings,
    metrics=(
        *(
            Metric(f"{case.error}, {points} points", case.unit, partial(_in_unit, case, points))
            for case in CASES[:2] for points in sorted({*POINTS, *SPECTRAL})
        ),
        Metric(ORDER, "-", "order"),
        Metric(DETERMINANT, "-", "determinant"),
        Metric("processor time, 20 points", "ms", "time", timing=True),
    ),
    published=(Published(DETERMINANT, 5e-16, "simulation", WEIGHT.name),),
    musts=(
        Must(DETERMINANT, 1e-15),
        *(Must(ORDER, 0.95 * order, None, None, name, True) for name, order in ORDERS.items()),
    ),
    exact="All solve the same equations of the same rod; truths are those of SciPy's DOP853 with a "
    "tolerance of 1e-12, and of an arc, to which a tendon bends the rod.",
    about={
        "figures of the thesis": "Fig. 2.4 is a plot without numbers; its text has midpoint faster "
        "than Euler, collocation fastest for the cantilever, an implicit midpoint that does not "
        "find the clamped rod with 15 points, and says that its largest error of a determinant is "
        "that of all schemes"
    },
    draw=draw,
    seeded=False,
    serial=True,
)  # fmt: skip
