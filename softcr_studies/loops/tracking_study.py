"""Studies that follow a reference: the controllers that are compared, their figures and bounds."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import Field

from softcr_models import load_robot
from softcr_runtime.blocks.system import Parameters
from softcr_runtime.console.panels import panels
from softcr_runtime.settings.registry import GRADIENT_MPC, NEMPC
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
from softcr_studies.frame.table import Kind
from softcr_studies.loops.closed_loop import mean_error_mm
from softcr_studies.loops.koopman_baseline import baseline
from softcr_studies.loops.tracking_loop import BASELINE, SETTLED, Case, reference_of, run_loop

PAPERS: Mapping[str, Parameters] = {
    "nempc_licher2025": {"controller": NEMPC, "controller_file": "nempc_licher2025"},
    "nempc_states": {"controller": NEMPC, "controller_file": "nempc_states"},
}
"""The paper's form of the NEMPC, as printed and with tuned numbers."""
OURS: Mapping[str, Parameters] = {
    "nempc without refinement": {"controller": NEMPC, "polish": False},
    NEMPC: {"controller": NEMPC},
    GRADIENT_MPC: {"controller": GRADIENT_MPC},
}
PREDICTIVE = {**PAPERS, **OURS}
METHODS = (*PREDICTIVE, BASELINE)
SHIPPED = (NEMPC, GRADIENT_MPC, BASELINE)

TIP, SETTLED_TIP, STATE = "tip error", "settled tip error", "state error"
SIMPLER = (
    "Plant and model share equations, time integrator, material law, pressure lag and geometry. "
    "The plant has 20 intervals, the model 5; what differs beside is estimated by the filter: "
)
PLANT = "bending compliance -5 % and tip mass +10 %. "
SENSORS = (
    "The tip is measured with 0.2 mm of noise in each coordinate, pressures with none (0 Pa); a "
    "command acts one tick after its sample, as controllers know. The reference is a motion of the "
    "nominal rod. "
)
COMPARED = (
    "Published figures are of the paper's own NEMPC and Koopman regulator. nempc_licher2025 has "
    "the numbers of its Table VII but for the weight on moments, 20 instead of 0.186; nempc_states "
    "has the same costs with numbers tuned here; nempc, which looks at the tip and refines its "
    "best candidate, and rod_mpc are ours. The Koopman baseline has learned from 15 minutes of the "
    "plant itself. Tip and state error count from t = 0, the settled tip error from 2 s on; the "
    "state error is the root mean square over all states, each in the scale of the model."
)
EXACT = SIMPLER + PLANT + SENSORS + COMPARED


class Settings(StudySettings):
    """See StudySettings."""

    robot: str = Field("licher2025", description="name of a pneumatic rod, or its YAML file")


def run(cell: Cell) -> Result:
    """One run of the loop: see `run_loop`."""
    robot, case = load_robot(cell.settings.robot), cell.case
    learned = baseline(robot, case.teacher) if cell.method == BASELINE else None
    told = PREDICTIVE.get(cell.method, {})
    return run_loop(
        robot, case, reference_of(robot, case), str(told.get("controller", cell.method)),
        (cell.stream("plant"), cell.stream("controller")),
        design=learned, parameters=told, bag=cell.bag,
    )  # fmt: skip


def settled(result: Result, name: str) -> np.ndarray:
    """Rows of an array of the result from SETTLED on."""
    rows: np.ndarray = result[name][result["times"] >= SETTLED]
    return rows


def travel_kpa(result: Result) -> float:
    """How far the commands move per second, all chambers, after SETTLED [kPa/s]."""
    steps = np.abs(np.diff(settled(result, "commands"), axis=0)).sum(axis=1)
    return float(1e-3 * steps.mean() / (result["times"][1] - result["times"][0]))


def _filter_mm(result: Result) -> float:
    apart = settled(result, "estimated") - settled(result, "tips")
    return float(1e3 * np.linalg.norm(apart, axis=1).mean())


def _tick_ms(percentile: float) -> Callable[[Result], float]:
    return lambda result: float(1e3 * np.percentile(settled(result, "ticks"), percentile))


METRICS = (
    Metric(TIP, "mm", mean_error_mm),
    Metric(SETTLED_TIP, "mm", lambda result: mean_error_mm(result, SETTLED)),
    Metric(STATE, "-", lambda result: float(np.sqrt(np.mean(result["state_error"] ** 2)))),
    Metric("largest, from 2 s on", "mm", lambda result: 1e3 * settled(result, "error").max()),
    Metric("filter's tip error", "mm", _filter_mm),
    Metric("compliance error, at the end", "%",
           lambda result: 100 * abs(result["compliance"][-1] / result["true_compliance"] - 1.0)),
    Metric("command travel", "kPa/s", travel_kpa),
    Metric("tick, median", "ms", _tick_ms(50.0), timing=True),
    Metric("tick, 99 %", "ms", _tick_ms(99.0), timing=True),
)  # fmt: skip
_TICK_MUSTS = (
    Must("tick, median", 1.0, 0.4, method=GRADIENT_MPC),
    Must("tick, 99 %", 3.0, 1.0, method=GRADIENT_MPC),
)


def musts(
    nempc: tuple[float, float], rod_mpc: tuple[float, float], case: str | None = None
) -> tuple[Must, ...]:
    """Must and goal of the settled tip error [mm] of our two controllers."""
    return (
        Must(SETTLED_TIP, *nempc, case=case, method=NEMPC),
        Must(SETTLED_TIP, *rod_mpc, case=case, method=GRADIENT_MPC),
    )


def published(
    quantity: str, mpc: float, koopman: float | None, kind: Kind, case: str | None = None
) -> list[Published]:
    """What the paper's NEMPC reached, beside every predictive controller, and its baseline."""
    figures = [Published(quantity, mpc, kind, case, method) for method in PREDICTIVE]
    if koopman is not None:
        figures.append(Published(quantity, koopman, kind, case, BASELINE))
    return figures


def tracking_study(
    name: str,
    source: str,
    summary: str,
    cases: Sequence[Case],
    *,
    exact: str = EXACT,
    methods: Sequence[str] = METHODS,
    published: Sequence[Published] = (),
    musts: Sequence[Must] = (),
    further_rows: Callable[[Results], Iterable[Row]] | None = None,
) -> Study:
    """A study of controllers that follow references; arguments as those of Study."""
    return Study(
        name, source, summary, run, cases, methods, Settings, METRICS, published,
        (*musts, *_TICK_MUSTS), exact, further_rows=further_rows, draw=_draw,
        about={"settled_from_s": SETTLED, "tip_noise_mm": 0.2, "pressure_noise_pa": 0.0},
    )  # fmt: skip


def _draw(results: Results, directory: Path) -> None:
    """A figure for each case, a column for each method: the first seed."""
    shown: dict[str, dict[str, Result]] = {}
    for case, method in dict.fromkeys((cell.case_name, cell.method) for cell in results.cells):
        shown.setdefault(case, {})[method] = results.first(case, method)
    for case, runs in shown.items():
        name = re.sub(r"\W+", "_", case).strip("_")
        _draw_case(directory / f"{name}.png", case, runs)


def _draw_case(path: Path, title: str, runs: Mapping[str, Result]) -> None:
    """Tip against reference, error and commands of each method."""
    labels = ("tip (reference dashed) [mm]", "tip error [mm]", "command [kPa]")
    with panels(path, labels, len(runs), title=title, sharey=True, height=2.1) as grid:
        for column, (method, found) in zip(grid.reshape(3, -1).T, runs.items(), strict=True):
            column[0].plot(found["times"], 1e3 * found["tips"], label=list("xyz"))
            column[0].plot(found["times"], 1e3 * found["wanted"], "k--", linewidth=0.8)
            column[1].semilogy(found["times"], 1e3 * np.maximum(found["error"], 1e-6), "C3")
            column[2].plot(found["times"], 1e-3 * found["commands"], label=["1", "2", "3"])
            column[0].set_title(method)
