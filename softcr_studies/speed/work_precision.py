"""Tip error against computing time of four simulators on three arms in motion.

PyElastica and SoRoMoX simulate in processes of their own, see pyelastica_process.py and
soromox_process.py.
"""

import importlib.util
import itertools
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field
from scipy.integrate import solve_ivp

from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_runtime.console.panels import panels
from softcr_studies.frame.cell import Cell, StudySettings
from softcr_studies.frame.study import Metric, Result, Results, Row, Study
from softcr_studies.speed import motion
from softcr_studies.speed.arms import ARMS, PERIOD, Arm
from softcr_studies.speed.beside import answers
from softcr_studies.speed.rod import OURS
from softcr_studies.speed.timing import Skipped

SCIPY, ELASTICA, SOROMOX = "SciPy BDF, exact Jacobian", "PyElastica", "SoRoMoX"
BOUNDS = (1.0, 0.3, 0.1)  # mm
UNIT = "ms per simulated second"
REPEATS = 5
LONGEST_WAIT = 3000.0
# sub-steps of a period, and intervals of each segment on average, of the motion taken as true
FINE_SUBSTEPS, FINE = 16, (16, 32)
# intervals of each segment on average, sub-steps of a period
OUR_GRIDS = [(n, k) for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16) for k in (1, 2)]
SCIPY_GRIDS = [(n, 10.0**-k) for n in (3, 6, 12) for k in (2, 3)]
# elements in multiples of five, so that segments end between elements; steps per period
ELASTICA_FINE = ((30, 75), (60, 150))
ELASTICA_GRIDS = [(n, round(k * n)) for n in (5, 10, 15, 20, 25, 30, 35, 40) for k in (1.3, 2.0)]
SOROMOX_GRIDS = (1, 2, 3, 5, 7, 10)


class WorkSettings(StudySettings):
    """What is simulated, and where SoRoMoX is."""

    periods: int = Field(
        100, ge=4, le=1000, description="number of periods of 10 ms of each motion"
    )
    soromox_python: str = Field(
        "", description="Python program that has SoRoMoX, if this one does not"
    )


def run(cell: Cell) -> Result:
    """Errors [mm] and times [ms per simulated second] of all discretisations of a method."""
    arm = next(each for each in ARMS if each.name == cell.case)
    try:
        labels, errors, seconds, note = METHODS[cell.method](arm, cell.settings)
    except Skipped as reason:
        return {"skipped": str(reason)}
    milliseconds = 1e3 * np.array(seconds) / (PERIOD * cell.settings.periods)
    points = {"labels": np.array(labels), "errors": 1e3 * np.array(errors), "times": milliseconds}
    best = {name: best_time(points, bound) for bound, name in zip(BOUNDS, NAMES, strict=True)}
    return points | {name: value for name, value in best.items() if value} | {"note": note}


NAMES = [f"time for a tip error of {bound:g} mm" for bound in BOUNDS]
Points = tuple[list[str], list[float], list[float], str]


def best_time(points: Result, bound: float) -> float:
    """The least time of those whose error is within the bound [mm]; 0: there is none."""
    # NaN of a diverged run is within no bound
    within = points["times"][points["errors"] <= bound]
    return float(within.min()) if len(within) else 0.0


def ours(arm: Arm, settings: WorkSettings) -> Points:
    """Our rod on `OUR_GRIDS`."""
    true, tensions = fine_tips(arm, settings.periods), inputs_of(arm, settings.periods)
    labels, errors, seconds = [], [], []
    for intervals, substeps in OUR_GRIDS:
        rod = CosseratRod(arm.robot(), intervals, max_substep=PERIOD / substeps)
        states, shortest = timed(partial(rod.simulate, rod.rest_state(), tensions, PERIOD))
        labels.append(f"{rod.total_intervals} intervals, {substeps} steps per 10 ms")
        errors.append(motion.mean_distance(motion.tip_positions(rod, states), true))
        seconds.append(shortest)
    note = (
        f"{arm.about}; errors against what {FINE[0]} and {FINE[1]} intervals for each segment "
        f"extrapolate to, {FINE_SUBSTEPS} steps per 10 ms"
    )
    return labels, errors, seconds, note


def scipy(arm: Arm, settings: WorkSettings) -> Points:
    """The same equations on our grids by SciPy."""
    true, tensions = fine_tips(arm, settings.periods), inputs_of(arm, settings.periods)
    labels, errors, seconds = [], [], []
    for intervals, tolerance in SCIPY_GRIDS:
        rod = CosseratRod(arm.robot(), intervals)
        states, shortest = timed(partial(_by_scipy, rod, tensions, tolerance), 1)
        labels.append(f"{rod.total_intervals} intervals, rtol {tolerance:g}")
        errors.append(motion.mean_distance(motion.tip_positions(rod, states), true))
        seconds.append(shortest)
    return labels, errors, seconds, "right-hand side and Jacobian are our compiled ones"


def pyelastica(arm: Arm, settings: WorkSettings, pace: float = 1.0) -> Points:
    """PyElastica's rod, against its own finest run, with `pace` times as many steps per period."""
    if importlib.util.find_spec("elastica") is None:
        raise Skipped("PyElastica is not installed: pip install pyelastica")
    grids = [(n, round(pace * k)) for n, k in (*ELASTICA_FINE, *ELASTICA_GRIDS)]
    order = elastica_order(arm, settings.periods) | {"runs": grids}
    script = Path(__file__).with_name("pyelastica_process.py")
    (coarse, _), (fine, _), *others = answers(script, order, ELASTICA, LONGEST_WAIT)
    finest = extrapolated(coarse, fine, ELASTICA_FINE[1][0] / ELASTICA_FINE[0][0])
    apart = 1e3 * motion.mean_distance(fine_tips(arm, settings.periods), finest)
    labels = [f"{n} elements, {k} steps per 10 ms" for n, k in grids[len(ELASTICA_FINE) :]]
    errors = [motion.mean_distance(tips, finest) for tips, _ in others]
    note = (
        f"errors against what {ELASTICA_FINE[0][0]} and {ELASTICA_FINE[1][0]} of its elements "
        "extrapolate to. Equal: geometry, masses, EA, EI, GA, GJ, gravity, tensions (as intrinsic "
        "strains). Not equal: damping (uniform, fitted to the slowest mode, since it has no "
        "Kelvin-Voigt), "
        "large strain (its stiffness falls with stretch), tendons that keep pushing along the "
        f"section's normal; so what it converges to is {apart:.2f} mm from ours"
    )
    return labels, errors, [seconds for _, seconds in others], note


def soromox(arm: Arm, settings: WorkSettings) -> Points:
    """SoRoMoX's piecewise constant strain arm."""
    python = settings.soromox_python
    if not has_soromox(python):
        raise Skipped(
            "SoRoMoX is not installed: pip install soromox, here or in another environment whose "
            "Python is then given as --soromox-python"
        )
    order = {"arm": arm.order(settings.periods), "runs": SOROMOX_GRIDS}
    script = Path(__file__).with_name("soromox_process.py")
    found = answers(script, order, SOROMOX, LONGEST_WAIT, python)
    true = fine_tips(arm, settings.periods)
    labels = [f"{links} links" for links in SOROMOX_GRIDS]
    errors = [motion.mean_distance(tips, true) for tips, _ in found]
    note = (
        "piecewise constant strain with Tsit5, its default; errors against the same motion as "
        "ours: the same equations, Kelvin-Voigt and tendons included; compiled before it is timed, "
        "on the CPU in float64"
    )
    return labels, errors, [seconds for _, seconds in found], note


METHODS: dict[str, Callable[[Arm, WorkSettings], Points]] = {
    OURS: ours, SCIPY: scipy, ELASTICA: pyelastica, SOROMOX: soromox,
}  # fmt: skip


def has_soromox(python: str) -> bool:
    """Whether a Python program, or this one, can import SoRoMoX."""
    if not python:
        return importlib.util.find_spec("soromox") is not None
    find = "import importlib.util, sys; sys.exit(importlib.util.find_spec('soromox') is None)"
    try:
        done = subprocess.run([python, "-c", find], capture_output=True, check=False, timeout=60.0)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def inputs_of(arm: Arm, periods: int) -> np.ndarray:
    """(T, m) inputs of our rod, which has a tendon in any case."""
    return arm.tensions(periods) if arm.tendons else np.zeros((periods, 1))


@cache
def fine_tips(arm: Arm, periods: int) -> np.ndarray:
    """(T, 3) tips that two fine runs of ours extrapolate to: errors are of second order [m]."""
    coarse, fine = (_tips(arm, periods, intervals) for intervals in FINE)
    return extrapolated(coarse, fine, FINE[1] / FINE[0])


def extrapolated(coarse: np.ndarray, fine: np.ndarray, finer: float) -> np.ndarray:
    """Where two runs of second order, one so many times finer, converge to."""
    found: np.ndarray = fine + (fine - coarse) / (finer**2 - 1.0)
    return found


def _tips(arm: Arm, periods: int, intervals: int) -> np.ndarray:
    rod = CosseratRod(arm.robot(), intervals, max_substep=PERIOD / FINE_SUBSTEPS)
    states = rod.simulate(rod.rest_state(), inputs_of(arm, periods), PERIOD)
    return motion.tip_positions(rod, states)


def timed(work: Callable[[], np.ndarray], repeats: int = REPEATS) -> tuple[np.ndarray, float]:
    """What work gives, and the least time it took [s], after it was done once."""
    found, seconds = work(), []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return found, min(seconds)


def elastica_order(arm: Arm, periods: int) -> dict[str, Any]:
    """An arm for pyelastica_process.py, in the frame of its base.

    The wrench of a straight tendon, taken as in the straight arm, is constant along a segment, so
    what it does to an elastic rod is what an intrinsic strain does.
    """
    robot = arm.robot()
    strains = np.einsum(
        "kc,kcm,tm->tkc", robot.segment_compliances, robot.segment_actuation,
        inputs_of(arm, periods),
    )  # fmt: skip
    bodies = [
        {"length": each.length, "area": area, "second_moment_of_area": second_moment,
         "density": each.density, "stiffness": 1.0 / compliance}
        for each, area, second_moment, compliance in zip(
            robot.segments, robot.segment_areas, robot.segment_second_moments,
            robot.segment_compliances, strict=True,
        )
    ]  # fmt: skip
    rod = {
        "segments": bodies, "tip_mass": 0.0, "tip_mass_fraction": 1.0, "gravity": arm.gravity,
        "damping_constant": damping_constant(CosseratRod(robot, 8)),
    }  # fmt: skip
    return {"period": PERIOD, "intrinsic_strains": strains, "rod": rod}


def damping_constant(rod: CosseratRod) -> float:
    """Uniform damping [1/s] with which the slowest oscillation about rest decays as ours does."""
    unloaded = np.zeros(rod.input_size)
    modes = np.linalg.eigvals(rod.linearize(rod.equilibrium(unloaded), unloaded)[0])
    oscillating = modes[modes.imag > 0.1 * np.abs(modes)]
    return float(-2.0 * oscillating[np.abs(oscillating).argmin()].real)


def _by_scipy(rod: CosseratRod, tensions: np.ndarray, tolerance: float) -> np.ndarray:
    """(T, nx) states from rest, one integration."""
    last = len(tensions) - 1

    def held(now: float) -> np.ndarray:
        return tensions[min(last, int(now / PERIOD + 1e-9))]

    solution = solve_ivp(
        lambda now, y: rod.derivative(y, held(now)), (0.0, len(tensions) * PERIOD),
        rod.rest_state(), method="BDF", jac=lambda now, y: rod.linearize(y, held(now))[0],
        t_eval=np.arange(1, len(tensions) + 1) * PERIOD, rtol=tolerance,
        atol=0.1 * tolerance * RodPrediction(rod).state_scale,
    )  # fmt: skip
    return np.ascontiguousarray(solution.y.T)


def ratios(results: Results) -> Iterator[Row]:
    """How many times faster we are than each of the others at equal tip errors."""
    for arm, theirs in itertools.product(ARMS, (SCIPY, ELASTICA, SOROMOX)):
        mine, other = results.first(arm.name, OURS), results.first(arm.name, theirs)
        for bound, name in zip(BOUNDS, NAMES, strict=True):
            if name in mine and name in other:
                quantity = f"times faster than {theirs} at {bound:g} mm"
                asked: dict[str, Any] = {"must": 50.0, "goal": 200.0} if asks(arm, theirs) else {}
                yield Row(arm.name, OURS, quantity, other[name] / mine[name], 0.0, "x", 1,
                          at_least=True, timing=True, **asked)  # fmt: skip


def asks(arm: Arm, theirs: str) -> bool:
    """Whether a bound is asked of a ratio: of simulators of others, on arms that tendons move."""
    return bool(arm.tendons) and theirs != SCIPY


def draw(results: Results, directory: Path) -> None:
    """A work-precision diagram for each arm."""
    for arm in ARMS:
        file = directory / f"{arm.name.replace(' ', '_')}.png"
        with panels(file, [UNIT], x="mean tip error [mm]", height=4.0) as (axes,):
            axes.set_title(arm.name)
            for marker, method in zip("os^D", METHODS, strict=True):
                found = results.first(arm.name, method)
                if "errors" in found:
                    axes.loglog(found["errors"], found["times"], marker, label=method)
            axes.set_xlim(right=100.0)


STUDY = Study(
    name="speed/work-precision",
    source="",
    summary="tip error against computing time of our rod, SciPy, PyElastica and SoRoMoX",
    run=run,
    cases=tuple(arm.name for arm in ARMS),
    methods=tuple(METHODS),
    settings=WorkSettings,
    metrics=[Metric(name, UNIT, name, timing=True) for name in NAMES],
    exact="All simulate the same arms: solid round segments of an incompressible material with "
    "E = 0.5 MPa, density 1070 kg/m^3, shear factor 1, every strain delayed by 5 ms, tensions held "
    "for 10 ms; what differs is said beside each. Times are those of one core, the least of "
    "several; the tip error is the mean over one second.",
    further_rows=ratios,
    draw=draw,
    seeded=False,
    serial=True,
)
