"""What late answers cost: controllers that compute for long, that stop, and messages that are lost.

The loop is the one of the wall clock on virtual time, where computing times are settings and no
processor's speed counts: the simulation's, and the bench's behind the real driver of its valves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from pydantic import Field

from softcr_control.reference.approach import DURATION
from softcr_hardware.emulation.virtual_devices import PLANS, POSES, PRESSURES
from softcr_models.errors import UserError
from softcr_runtime.blocks.system import Computing, Missing, Stop, System
from softcr_runtime.console.panels import panels
from softcr_runtime.settings.node_settings import Seconds, build_settings
from softcr_runtime.settings.registry import GRADIENT_MPC, NEMPC
from softcr_simulation.errors.plant_errors import SAME_STRUCTURE
from softcr_studies.frame.results import Results
from softcr_studies.frame.study import Cell, Metric, Must, Result, Seeds, Study, StudySettings
from softcr_studies.loops.closed_loop import closed_loop, tracked
from softcr_studies.robustness.bench_timing import Bench, run_bench

SETTLED, BEGUN = 2.0, 1.0  # from here on errors are settled, and may be the largest ones [s]
_AT = 4.0  # when something happens once [s]
_ESTIMATING = 0.002  # of an estimate [s]
_HALF_SPEED = (0.05, 0.1)
"""How long a machine stops that gets half of a processor's time, and from one stop to the next
[s]."""
_LONG = (45.0, 60.0, 80.0, 100.0, 200.0)  # computing times beyond any bound [ms]
_ROBOTS = "licher2025", "licher2025_chain", "four_chambers", "two_segments"
_PLANTS = (SAME_STRUCTURE, "typical")
_BACK = DURATION + 0.5  # after a rest, at most, the tip is to be on the reference again [s]
_ON_IT, _STAYS = 5e-3, 0.1
"""So near the reference it is [m], for so long [s]: the reference also passes by where it rests."""
_SETTLED_ERROR, _LARGEST, _SPEED, _RESTED, _AWAY = (
    "settled tip error", "largest tip error", "fastest, of the reference's fastest", "led to rest",
    "time at rest and on the way back",
)  # fmt: skip


@dataclass(frozen=True)
class Late:
    """One way of being late, in simulation or on a bench."""

    name: str
    robot: str = "licher2025"
    plant: str = ""  # of the simulation; empty: the bench
    computing: Computing = field(default=Computing(_ESTIMATING))  # of the controller
    milliseconds: float = float("nan")  # of the same, for the picture
    missing: Mapping[str, tuple[Missing, ...]] = field(default_factory=dict)
    lost: float = 0.0
    whole: bool = False  # whether simulator and filter stop as well


class Settings(StudySettings):
    """How long, and in which steps."""

    seeds: Seeds = 1
    duration: Seconds = Field(8.0, gt=_AT + 1.0, le=3600.0, description="duration of a run")
    step: float = Field(
        1.0, gt=0.0, le=40.0, description="step between computing times up to 40 ms",
        json_schema_extra={"unit": "ms"},
    )  # fmt: skip
    robots: str = Field(
        ",".join(_ROBOTS), description="robots of the simulations, separated by commas"
    )
    bench: bool = Field(True, description="whether the virtual bench also runs")


def _computing(settings: Settings) -> list[tuple[str, Computing, float]]:
    """Computing times that a loop must bear, and those that it may be led to rest by."""
    short = np.arange(settings.step, 40.0 + 1e-9, settings.step).tolist()
    times = sorted({1.0, *short, *_LONG})
    told = [(f"{ms:g} ms", Computing(1e-3 * ms), ms) for ms in times]
    told.append(("5 to 35 ms at random", Computing(0.005, 0.035), float("nan")))
    for seconds in (0.1, 0.3, 1.0):
        stopped = Computing(_ESTIMATING, stops=(Stop(seconds=seconds, at=_AT),))
        told.append((f"stops for {seconds:g} s", stopped, float("nan")))
    for seconds in (0.1, 0.2, 0.3):
        begins = np.arange(2.0, _AT, seconds + 0.1).tolist()
        stops = tuple(Stop(seconds=seconds, at=begin) for begin in begins)
        words = f"stops for {seconds:g} s every {seconds + 0.1:g} s, {len(stops)} times"
        told.append((words, Computing(_ESTIMATING, stops=stops), float("nan")))
    return told


def _stops_of_all(settings: Settings) -> list[tuple[str, Computing]]:
    """Of simulator, filter and controller at once."""
    half = np.arange(BEGUN, settings.duration, _HALF_SPEED[1])
    told = [("stops for {:g} s every {:g} s".format(*_HALF_SPEED), _HALF_SPEED[0], half)]
    told += [(f"stops for {seconds:g} s", seconds, np.array([_AT])) for seconds in (0.1, 0.3, 1.0)]
    often = np.arange(2.0, _AT, 0.3)
    told.append((f"stops for 0.2 s every 0.3 s, {len(often)} times", 0.2, often))
    return [
        (
            words,
            Computing(
                _ESTIMATING, stops=tuple(Stop(seconds=seconds, at=at) for at in begins.tolist())
            ),
        )
        for words, seconds, begins in told
    ]


def _cases(settings: Settings) -> list[Late]:
    computing = _computing(settings)
    robots = [word for word in map(str.strip, settings.robots.split(",")) if word]
    cases = [
        Late(f"{robot}, {plant}: {words}", robot, plant, each, ms)
        for robot in robots
        for plant in _PLANTS
        for words, each, ms in computing
    ]
    cases += [
        Late(f"{robot}, {plant}: the machine {words}", robot, plant, each, whole=True)
        for robot in robots
        for plant in _PLANTS
        for words, each in _stops_of_all(settings)
    ]
    if not settings.bench:
        return cases
    cases += [
        Late(f"bench: {words}", computing=each, milliseconds=ms) for words, each, ms in computing
    ]
    for frames in (1, 3, 6, 12, 30):
        for every, words in ((0.0, "once"), (0.5, "every 0.5 s")):
            gap = {POSES: (Missing(count=frames, at=_AT, every=every),)}
            cases.append(Late(f"bench: {frames} frames missing {words}", missing=gap))
    for topic, count, words in ((PRESSURES, 10, "pressures"), (PLANS, 3, "plans")):
        gap = {topic: (Missing(count=count, at=_AT, every=0.5),)}
        cases.append(Late(f"bench: {count} {words} missing every 0.5 s", missing=gap))
    cases.append(Late("bench: 1 % of all messages lost", lost=0.01))
    return cases


def run(cell: Cell) -> Result:
    """One run; see `tracked` and `run_bench`."""
    late, duration = cell.case, cell.settings.duration
    computing = replace(late.computing, seed=cell.stream("computing"))
    if not late.plant:
        bench = Bench(
            controller=cell.method, delay=1, answering=computing, missing=late.missing,
            lost=late.lost,
        )  # fmt: skip
        try:
            return run_bench(cell, bench, duration)
        except UserError as refusal:  # valves that hear only late commands are not enabled
            return {"skipped": str(refusal)}
    wall = closed_loop(
        cell, cell.method, "trajectory", robot=late.robot, duration=duration,
        of={"plant": {"plant_errors": late.plant}, "reference": {"duration": duration + 1.0}},
    )  # fmt: skip
    result = tracked(cell, _on_the_wall_clock(wall, computing, late.whole))
    return dict(result) | {"vented": bool(np.allclose(result["commands"][-5:], 0.0))}


def _on_the_wall_clock(system: System, answering: Computing, whole: bool) -> System:
    """A loop whose blocks do not wait for each other; filter and controller take their time. If it
    is the whole machine that stops, all of them stop with the controller."""
    parts = []
    for part in system.parts:
        computing = Computing(stops=answering.stops if whole else ())
        if part.name == "estimator":
            computing = replace(computing, shortest=_ESTIMATING)
        elif part.name == system.parts[-1].name:
            computing = answering
        parts.append(replace(part.with_parameters({"mode": "wall"}), computing=computing))
    return replace(system, parts=tuple(parts), simulated_time=False)


def _settled(result: Result) -> float | None:
    """[mm]; none of a robot that was led to rest."""
    if result["vented"]:
        return None
    return float(1e3 * np.mean(result["error"][_follows(result) & (result["times"] >= SETTLED)]))


def _largest(result: Result) -> float | None:
    """[mm] likewise."""
    if result["vented"]:
        return None
    return float(1e3 * np.max(result["error"][_follows(result) & (result["times"] >= BEGUN)]))


def _away(result: Result) -> float | None:
    """[s]; none of a robot that stayed at rest."""
    if result["vented"]:
        return None
    step = result["times"][1] - result["times"][0]
    return float(step * np.sum(~_follows(result) & (result["times"] >= BEGUN)))


def _follows(result: Result) -> np.ndarray:
    """(T,) whether the robot is meant to be on its reference: not while it is led to rest, nor on
    the way back from there, which ends when the tip is near the reference, or should be."""
    times, error, follows = result["times"], result["error"], np.ones(len(result["times"]), bool)
    until = near_since = -np.inf
    for row, command in enumerate(result["sent" if "sent" in result else "commands"]):
        if error[row] >= _ON_IT:
            near_since = times[row]
        if times[row] >= BEGUN and not command.any():
            until = times[row] + _BACK
        elif times[row] - near_since > _STAYS:
            until = -np.inf
        follows[row] = times[row] > until
    return follows


def _speed(result: Result) -> float:
    """Of the tip, by the reference's [-]."""
    steps = np.diff(result["times"])[:, None]
    own, wanted = (
        np.linalg.norm(np.diff(result[name], axis=0) / steps, axis=1).max()
        for name in ("tips", "wanted")
    )
    return float(own / wanted)


def _musts() -> list[Must]:
    """Up to 40 ms, and at random up to 35 ms; beyond, largest errors and speeds."""
    musts = [Must(_SPEED, 2.0)]
    for late in _cases(build_settings(Settings, {})):
        short = late.milliseconds <= 40.0 or "random" in late.name
        bounds = None
        if late.plant and short:
            bounds = (0.2, 0.15, 4.0, 2.0)
            if late.plant != SAME_STRUCTURE:
                bounds = (
                    (1.3, 1.3, 7.0, 7.0) if late.robot == "licher2025" else (0.5, 0.35, 6.0, 4.0)
                )
        elif short:
            bounds = (0.5, 0.35, 6.0, 4.0)
        if bounds:
            musts.append(Must(_RESTED, 0.0, case=late.name))
            musts.append(Must(_SETTLED_ERROR, *bounds[:2], case=late.name))
            musts.append(Must(_LARGEST, *bounds[2:], case=late.name))
            continue
        if late.whole and late.computing.stops[0].seconds == _HALF_SPEED[0]:
            musts.append(Must(_RESTED, 0.0, case=late.name))
            musts.append(Must(_SETTLED_ERROR, 1.5, 0.6, case=late.name))
        gaps = {each.count for each in late.missing.get(POSES, ())}
        frames = max(gaps, default=0)
        most = (3.0, 1.5) if 0 < frames <= 6 else (8.0, 4.0) if 0 < frames <= 12 else (40.0, 20.0)
        if late.lost or (late.missing and not frames):
            most = (3.0, 3.0)
        if most[0] < 40.0:
            musts.append(Must(_RESTED, 0.0, case=late.name))
        musts.append(Must(_LARGEST, *most, case=late.name))
    return musts


def _draw(results: Results, directory: Path) -> None:
    """Settled and largest error against computing time, a column for each controller."""
    lines: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    methods = list(dict.fromkeys(cell.method for cell in results.cells))
    for cell in results.cells:
        found, ms = results.first(cell.case_name, cell.method), cell.case.milliseconds
        if "skipped" in found:
            continue
        settled, largest = _settled(found), _largest(found)
        if np.isfinite(ms) and settled is not None and largest is not None:
            label = cell.case_name.partition(":")[0]
            lines.setdefault((cell.method, label), []).append((ms, settled, largest))
    labels = ("settled tip error [mm]", "largest tip error [mm]")
    with panels(
        directory / "late_answers.png", labels, len(methods), x="computing / ms", sharey=True,
        height=2.6,
    ) as grid:  # fmt: skip
        for (method, label), points in lines.items():
            column = np.reshape(grid, (2, -1))[:, methods.index(method)]
            times, settled, largest = np.array(sorted(points)).T
            column[0].semilogy(times, settled, label=label)
            column[1].semilogy(times, largest, label=label)
            column[0].set_title(method)


STUDY = Study(
    name="robustness/late-answers",
    source="",
    summary="what late answers, stopped controllers and lost messages cost",
    run=run,
    cases=_cases,
    methods=(GRADIENT_MPC, NEMPC),
    settings=Settings,
    metrics=(
        Metric(_SETTLED_ERROR, "mm", _settled),
        Metric(_LARGEST, "mm", _largest),
        Metric(_SPEED, "-", _speed),
        Metric(_RESTED, "-", lambda result: float(result["vented"])),
        Metric(_AWAY, "s", _away),
    ),
    musts=_musts(),
    draw=_draw,
    exact="Time is virtual: computing times are settings, wires of the simulation take no time, "
    "and an estimate takes 2 ms. The plants of the simulation are those of robustness/fair; the "
    "bench's is that of robustness/bench-timing, behind the emulated terminals and the real "
    "driver. The reference is a motion of the nominal rod to 1.5 Hz. A robot that stays at rest "
    "has no tip errors; one that comes back has none from when it is led to rest until its tip is "
    f"within {1e3 * _ON_IT:g} mm of the reference, or {_BACK:g} s have passed.",
    about={"settled_from_s": SETTLED, "largest_from_s": BEGUN},
)
