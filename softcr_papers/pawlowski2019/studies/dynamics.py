"""Figs. 3.3 to 3.6 and the computing times of Pawlowski (2019): a rod in motion, by two schemes.

Beside them the rod of the house, which shares no equation with them. The thesis prints plots, and
of numbers what its text says of them and the fits T(n) of computing times, (4.18) and (4.21).
"""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_papers.pawlowski2019.reference.explicit_motion import ExplicitMotion, Kind
from softcr_papers.pawlowski2019.reference.growth import growth_rate
from softcr_papers.pawlowski2019.reference.implicit_motion import ImplicitMotion, StepFailed
from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod
from softcr_papers.pawlowski2019.studies.robots import floating, lying, processor_time, undamped
from softcr_runtime.console.panels import panels
from softcr_studies.frame.study import (
    Cell,
    Metric,
    Must,
    Published,
    Result,
    Results,
    Row,
    Study,
    StudySettings,
)

PULL = Loads(inputs=[0.5, 0.0, 0.0, 0.0])
FREE, DAMPED = "weight, no viscosity", "weight, 300 Pa s"
STEP, COST = "a step of tension, 0.5 N", "one step of time"
EXPLICIT, IMPLICIT, HOUSE = "explicit", "implicit", "rod of the house"
HELD, NAIVE = "explicit, Kirchhoff", "explicit, Kirchhoff as printed"
SIZES = (10, 20, 40, 60, 100)


class Settings(StudySettings):
    """See StudySettings."""

    duration: float = Field(
        10.0, ge=1.0, le=60.0, description="duration of the cantilever's motion",
        json_schema_extra={"unit": "s"},
    )  # fmt: skip
    repeats: int = Field(
        10, ge=1, le=1000, description="number of repetitions of each time measurement"
    )


Motion = tuple[float, np.ndarray]
"""The step [s] and (T, 3) tips [m]."""


def explicit(rod: ReferenceRod, points: int, loads: Loads, duration: float) -> Motion:
    """By the variational integrator with the thesis's step, (3.44), or that of viscosity."""
    motion = ExplicitMotion(rod, points)
    count = math.ceil(duration / motion.dt)
    return motion.dt, motion.advance(motion.rest_state(), loads, count)


def implicit(rod: ReferenceRod, points: int, dt: float, loads: Loads, duration: float) -> Motion:
    """By midpoint in time and shooting in space."""
    motion = ImplicitMotion(rod, points, dt)
    return dt, motion.advance(motion.rest_state(), loads, round(duration / dt))


def grown(rod: ReferenceRod, points: int, dt: float, settings: Settings) -> Result:
    """The cantilever's motion by the implicit scheme, and how fast disturbances grow in it."""
    found = cantilever(partial(implicit, rod, points, dt, Loads()), settings)
    return {**found, "growth": growth_rate(rod, points, dt)}


def house(robot: Any, intervals: int, inputs: list[float], duration: float) -> Motion:
    """By `CosseratRod`."""
    rod, dt = CosseratRod(robot, intervals, max_substep=5e-4), 0.005
    held = np.tile(inputs, (round(duration / dt), 1))
    states = rod.simulate(rod.rest_state(), held, dt)
    return dt, np.array([rod.backbone(state, 2)[-1, :3, 3] for state in states])


def cantilever(
    move: Callable[[float], Motion], settings: Settings, longest: float = np.inf
) -> Result:
    """How far it falls, how fast, and how far in the last second, if it moves that long."""
    try:
        dt, tips = move(min(settings.duration, longest))
    except StepFailed as problem:
        return {"note": str(problem), "known until": problem.time}
    second = round(1.0 / dt)
    lowest, again = tips[:second, 0], tips[-second:, 0]
    return {
        "lowest": 1e3 * lowest.min(),
        **({"lowest at the end": 1e3 * again.min()} if len(tips) > 2 * second else {}),
        "known until": dt * len(tips),
        "period": _period(tips[:second, 0]) * dt,
        "times": dt * np.arange(1, second + 1)[:: max(1, second // 500)],
        "tips": 1e3 * lowest[:: max(1, second // 500)],
    }


def _period(x: np.ndarray) -> float:
    """Steps between the first falls and rises through its mean."""
    below = x < x.mean()
    falls = np.flatnonzero(below[1:] & ~below[:-1]).astype(float)
    return float((falls[-1] - falls[0]) / (len(falls) - 1)) if len(falls) > 1 else math.nan


def pulled(move: Callable[[], Motion], settings: Settings) -> Result:
    """The first peak, within 0.2 s."""
    dt, tips = move()
    x = 1e3 * tips[:, 0]
    return {
        "peak": x.max(), "time of the peak": 1e3 * dt * (1 + x.argmax()),
        "times": dt * np.arange(1, len(x) + 1)[:: max(1, len(x) // 500)],
        "tips": x[:: max(1, len(x) // 500)],
    }  # fmt: skip


def costs(measure: Callable[[int, int], float], settings: Settings) -> Result:
    """Times of a step by points [us]."""
    found = [1e6 * measure(points, settings.repeats) for points in SIZES]
    per_point, fixed = np.polyfit(SIZES, found, 1)
    return {"20 points": found[1], "fixed": fixed, "per point": per_point}


def explicit_time(kind: Kind, points: int, repeats: int) -> float:
    """Of a step of the pulled rod with viscosity [s]."""
    motion = ExplicitMotion(ReferenceRod.of_robot(floating()), points, kind)
    state, count = motion.rest_state(), 1000
    return processor_time(lambda: motion.advance(state, PULL, count), repeats) / count


def implicit_time(viscous: bool, points: int, repeats: int) -> float:
    """Of a step of 0.05 s of the cantilever [s]: the least of its first 20 steps, again and again.

    Without viscosity and with few points the scheme fails later, see `DAMPED`.
    """
    rod = ReferenceRod.of_robot(lying()) if viscous else undamped(lying())
    motion, count = ImplicitMotion(rod, points, 0.05), 20

    def work() -> None:
        motion.advance(motion.rest_state(), Loads(), count)

    return processor_time(work, repeats) / count


def _work() -> dict[tuple[str, str], Callable[[Settings], Result]]:
    found: dict[tuple[str, str], Callable[[Settings], Result]] = {}
    for points in (5, 10, 15, 20, 40):
        move = partial(explicit, undamped(lying()), points, Loads())
        found[FREE, f"{EXPLICIT}, {points} points"] = partial(
            cantilever, move, longest=10.0 if points < 10 else 1.05
        )
    for points, dt in ((100, 0.1), (100, 0.05), (100, 0.02), (100, 0.01), (20, 0.05), (20, 0.04),
                       (20, 0.03), (20, 0.02), (20, 0.01)):  # fmt: skip
        for case, rod in ((FREE, undamped(lying())), (DAMPED, ReferenceRod.of_robot(lying()))):
            found[case, f"{IMPLICIT}, {points} points, {dt:g} s"] = partial(grown, rod, points, dt)
    for points in (10, 20):
        move = partial(explicit, ReferenceRod.of_robot(lying()), points, Loads())
        found[DAMPED, f"{EXPLICIT}, {points} points"] = partial(cantilever, move)
    rod = ReferenceRod.of_robot(floating())
    found[DAMPED, HOUSE] = partial(cantilever, partial(house, lying(), 20, [0.0] * 4))
    for name, its in (("Cosserat", rod), ("Kirchhoff", rod.kirchhoff())):
        found[STEP, f"{IMPLICIT}, {name}"] = partial(
            pulled, partial(implicit, its, 100, 0.01, PULL, 0.2)
        )
    found[STEP, EXPLICIT] = partial(pulled, partial(explicit, rod, 20, PULL, 0.2))
    found[STEP, HELD] = partial(pulled, partial(restricted, "kirchhoff", rod, 0.2))
    found[STEP, NAIVE] = partial(pulled, partial(restricted, "kirchhoff_naive", rod, 0.2))
    found[STEP, HOUSE] = partial(pulled, partial(house, floating(), 20, [0.5, 0, 0, 0], 0.2))
    found[COST, EXPLICIT] = partial(costs, partial(explicit_time, "cosserat"))
    found[COST, HELD] = partial(costs, partial(explicit_time, "kirchhoff"))
    found[COST, IMPLICIT] = partial(costs, partial(implicit_time, False))
    found[COST, f"{IMPLICIT}, 300 Pa s"] = partial(costs, partial(implicit_time, True))
    return found


def restricted(kind: Kind, rod: ReferenceRod, duration: float) -> Motion:
    """Without shear and stretch, with and without the force that holds them."""
    motion = ExplicitMotion(rod, 20, kind)
    count = math.ceil(duration / motion.dt)
    return motion.dt, motion.advance(motion.rest_state(), PULL, count)


WORK = _work()
CASES = tuple(dict.fromkeys(case for case, _ in WORK))


def run(cell: Cell) -> Result:
    """What `WORK` says."""
    return WORK[cell.case, cell.method](cell.settings)


def draw(results: Results, directory: Path) -> None:
    """Tips in the first second, and after the step of tension."""
    shown: Mapping[str, Iterable[str]] = {
        FREE: [f"{EXPLICIT}, {points} points" for points in (5, 10, 20, 40)],
        DAMPED: [f"{EXPLICIT}, 20 points", f"{IMPLICIT}, 20 points, 0.05 s",
                 f"{IMPLICIT}, 100 points, 0.01 s", HOUSE],
        STEP: [method for case, method in WORK if case == STEP],
    }  # fmt: skip
    with panels(
        directory / "tips.png", ["x of the tip [mm]"] * 3, sharex=False, height=3.2
    ) as rows:
        for axes, (case, methods) in zip(rows, shown.items(), strict=True):
            axes.set_title(case)
            for method in methods:
                found = results.first(case, method)
                if "tips" in found:
                    axes.plot(found["times"], found["tips"], label=method)


def fits(results: Results) -> Iterable[Row]:
    """T(n) = a + b n of each scheme, beside the thesis's."""
    printed = {EXPLICIT: (49.0, 6.5), IMPLICIT: (-200.0, 98.7)}
    for method in (EXPLICIT, HELD, IMPLICIT, f"{IMPLICIT}, 300 Pa s"):
        found = results.first(COST, method)
        theirs = printed.get(method)
        for k, (name, key) in enumerate((("fixed part", "fixed"), ("per point", "per point"))):
            yield Row(
                COST, method, f"processor time, {name}", found[key], 0.0, "us", 1,
                published={"simulation": theirs[k]} if theirs else {}, timing=True,
            )  # fmt: skip


def laws(results: Results) -> Iterable[Row]:
    """How many points each scheme may have in real time, by its T(n): (4.19), (4.20) and (4.21)."""
    for method, theirs, kinds in (
        (EXPLICIT, (49e-6, 6.5e-6), [(0.1, modulus) for modulus in MODULI]),
        (HELD, (49e-6, 6.5e-6), [(0.9, modulus) for modulus in MODULI]),
        (IMPLICIT, (-200e-6, 98.7e-6), [(step, None) for step in (0.05, 0.1)]),
    ):
        found = results.first(COST, method)
        ours = 1e-6 * found["fixed"], 1e-6 * found["per point"]
        for size, modulus in kinds:
            printed = real_time_points(theirs, size, modulus)
            of = f"steps of {size:g} s" if modulus is None else f"E = {1e-3 * modulus:g} kPa"
            yield Row(COST, method, f"{LAW}, {of}", real_time_points(ours, size, modulus), 0.0, "-",
                      1, published={"simulation": printed}, must=printed, at_least=True,
                      timing=True)  # fmt: skip


def real_time_points(cost: tuple[float, float], size: float, modulus: float | None) -> float:
    """The number of points n with which a step takes as long to compute as it lasts.

    Args:
        cost: a, b of T(n) = a + b n [s].
        size: of a step, over that of a wave from point to point, (3.44); without a modulus in [s].
        modulus: Young's modulus [Pa] of a rod of 10 cm and 1000 kg/m^3, as in the thesis.

    Returns:
        n of T(n) (n - 1) = size L sqrt(rho / E), (4.16); without a modulus of T(n) = size, (4.21).
    """
    fixed, each = cost
    if modulus is None:
        return (size - fixed) / each
    lasts = size * 0.1 * math.sqrt(1000.0 / modulus)
    half = 0.5 * (fixed - each) / each
    return math.sqrt(half**2 + (fixed + lasts) / each) - half


def shortest(results: Results) -> Iterable[Row]:
    """The shortest step of those tried with which the implicit scheme comes to the end."""
    for points in (20, 100):
        steps = [
            float(method.split(", ")[2].split()[0])
            for case, method in WORK
            if case == FREE and method.startswith(f"{IMPLICIT}, {points} points")
            and "tips" in results.first(case, method)
        ]  # fmt: skip
        if steps:
            yield Row(FREE, f"{IMPLICIT}, {points} points", "shortest step of those tried",
                      min(steps), 0.0, "s", 1,
                      published={"simulation": 0.04} if points == 20 else {})  # fmt: skip


LAW, MODULI = "points in real time", (1e5, 1e6)
KNOWN = "motion is known until"
TIME = "processor time, 20 points"
GROWTH = "rate at which disturbances grow"
STUDY = Study(
    name="pawlowski2019/dynamics",
    source="Pawlowski, MSc thesis, Sec. 3.4 and 4.2",
    summary="a rod in motion by an explicit and an implicit scheme, and what a step costs",
    run=run,
    cases=CASES,
    methods=lambda case: [method for other, method in WORK if other == case],
    settings=Settings,
    metrics=(
        Metric(KNOWN, "s", "known until"),
        Metric("lowest point in the first second", "mm", "lowest"),
        Metric("lowest point in the last second", "mm", "lowest at the end"),
        Metric("period", "s", "period"),
        Metric(GROWTH, "1/s", "growth"),
        Metric("first peak", "mm", "peak"),
        Metric("time of the first peak", "ms", "time of the peak"),
        Metric(TIME, "us", "20 points", timing=True),
    ),
    published=(
        Published(TIME, 179.0, "simulation", COST, EXPLICIT),
        Published(TIME, 1774.0, "simulation", COST, IMPLICIT),
    ),
    musts=(
        Must(TIME, 30.0, 12.0, COST, EXPLICIT),
        Must(TIME, 150.0, 60.0, COST, IMPLICIT),
        Must(TIME, 150.0, 60.0, COST, f"{IMPLICIT}, 300 Pa s"),
    ),
    exact="The thesis prints no number of its motions, and its times are those of a C program on a "
    "processor of 2.1 GHz, by its fits. Our rods have the material of Table 2.1; the tendons are "
    "ours. Linear theory of the first mode: 0.226 s. The rod of the house has 20 intervals.",
    further_rows=lambda results: [*shortest(results), *fits(results), *laws(results)],
    about={
        "shortest step": "marching along the rod by explicit Euler gives energy to short waves; "
        "the rate of the fastest about the straight rod stands beside each motion, and what is "
        "known until 10 s may have grown with it: from about 1 per second on it has"
    },
    draw=draw,
    seeded=False,
    serial=True,
)
