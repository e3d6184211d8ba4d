"""An hour of virtual time on a plant that drifts all the while: no restart, no lock-in.

The plant begins as `typical`, and every error of its body, actuation and pressures moves evenly to
the end of its spread that is farther away. The motion to 1.5 Hz is repeated. While it runs, what
was found so far stands in a file beside the results, a line a minute.
"""

import json
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from pydantic import Field

from softcr_control.reference.references import SampledReference
from softcr_models import load_robot
from softcr_runtime.blocks.block import Output
from softcr_runtime.blocks.virtual_run import run_blocks
from softcr_simulation.errors.plant_errors import load_plant_errors
from softcr_studies.frame.study import (
    Cell,
    Metric,
    Must,
    Result,
    Results,
    Seeds,
    Study,
    StudySettings,
)
from softcr_studies.loops.closed_loop import ESTIMATOR, mean_error_mm
from softcr_studies.loops.compared_loops import (
    LOCK_IN_EXPLAINED,
    LOCK_IN_METRICS,
    LOOPS,
    OURS,
    PLAIN,
    SILENT_TIP,
)
from softcr_studies.loops.tracking_loop import (
    FAST,
    REFERENCE_INTERVALS,
    SETTLED,
    Case,
    loop_blocks,
    reference_of,
    tip_sigmas,
)
from softcr_studies.robustness.drifting_plant import DriftingPlant, between, worst_drift

_TURN = 2.0  # of the motion to 1.5 Hz, whose sines are of 0.5, 1 and 1.5 Hz [s]
_FADED = 4.0  # from here on it repeats itself [s]
_MINUTE = 60.0


class Settings(StudySettings):
    """See StudySettings."""

    seeds: Seeds = 1
    minutes: float = Field(
        60.0, ge=0.2, le=60.0, description="duration of virtual time, and of the drift [min]"
    )


def repeated(source: SampledReference, duration: float) -> SampledReference:
    """A motion that goes on turning after it has faded in."""
    rows = round(duration / source.period) + 1
    turn, faded = round(_TURN / source.period), round(_FADED / source.period)
    numbers = np.arange(rows)
    places = np.where(numbers < faded, numbers, faded + (numbers - faded) % turn)
    states = None if source.states is None else source.states[places]
    return SampledReference(source.period, states, source.tip_positions[places])


class _Kept:
    """What is kept of every cycle, and told once a minute."""

    def __init__(self, path: Path, estimator: Any) -> None:
        self._path, self._estimator, self._begun = path, estimator, time.perf_counter()
        self.tips: list[np.ndarray] = []
        self.wanted: list[np.ndarray] = []
        self.estimated: list[Any] = []
        self.warned: list[bool] = []
        self.sigmas: list[float] = []

    def __call__(self, _: str, output: Output) -> None:
        value = output.value
        if output.topic == "simulation/truth/tip/pose":
            self.tips.append(value.position)
        elif output.topic == "reference/rod":
            self.wanted.append(value.tip_positions[0])
        elif output.topic == "estimate/tip/pose":
            apart = self.tips[-1] - value.pose().position
            self.sigmas.append(float(tip_sigmas(apart[None], [value])[0]))
            self.warned.append(bool(self._estimator.warnings()))
            if len(self.sigmas) % round(_MINUTE / FAST.period) == 0:
                self._tell()

    def error(self) -> np.ndarray:
        """(T,) distance of the true tip from the wanted one [m]."""
        count = min(len(self.tips), len(self.wanted))
        apart = np.array(self.tips[:count]) - np.array(self.wanted[:count])
        found: np.ndarray = np.linalg.norm(apart, axis=1)
        return found

    def _tell(self) -> None:
        rows = round(_MINUTE / FAST.period)
        told = {
            "minute": len(self.sigmas) // rows,
            "mean_error_mm": float(1e3 * self.error()[-rows:].mean()),
            "largest_error_mm": float(1e3 * self.error()[-rows:].max()),
            "fallbacks": self._estimator.describe()["fallbacks"],
            "wall_s": time.perf_counter() - self._begun,
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")


def run(cell: Cell) -> Result:
    """The whole time in one run."""
    duration, loop = 60.0 * cell.settings.minutes, LOOPS[cell.method]
    begin = load_plant_errors(cell.case.name)
    end = worst_drift(begin)
    source = repeated(reference_of(load_robot(PLAIN), cell.case), duration)
    robot = load_robot(loop.robot)
    seeds = cell.stream("plant"), cell.stream("controller")
    plant = DriftingPlant(
        robot, lambda t: between(begin, end, min(t / duration, 1.0)), seeds[0], REFERENCE_INTERVALS
    )
    lasting = Case(cell.case.name, cell.case.reference, duration, errors=begin)
    blocks = loop_blocks(
        robot, lasting, source, loop.controller, seeds, plant=plant,
        parameters=loop.parameters, filter_settings=loop.filter,
    )  # fmt: skip
    estimator = blocks[ESTIMATOR]
    kept = _Kept(cell.folder / f"minutes_{cell.seed}.jsonl", estimator.estimator)
    run_blocks(blocks, kept)
    told = estimator.describe()
    error = kept.error()
    return {
        "times": np.arange(len(error)) * FAST.period,
        "error": error,
        "tip_sigmas": np.array(kept.sigmas)[: len(error)],
        "warned": np.array(kept.warned)[: len(error)],
        "restarts": told["restarts"],
        "fallbacks": told["fallbacks"],
    }


def _per_minute(result: Result) -> np.ndarray:
    """Mean errors of the minutes, the first one after the motion has settled [mm]."""
    settled = 1e3 * result["error"][result["times"] >= SETTLED]
    pieces = max(1, round(len(settled) * FAST.period / _MINUTE))
    return np.array([piece.mean() for piece in np.array_split(settled, pieces)])


def draw(results: Results, directory: Path) -> None:
    """Mean error of every minute."""
    figure, plot = plt.subplots(figsize=(7.0, 2.5), layout="constrained")
    for (case, method), found in results.by_method().items():
        for seed, result in enumerate(found):
            label = f"{case}, {method}, seed {seed}"
            plot.plot(_per_minute(result), label=label)
    plot.set_xlabel("minute")
    plot.set_ylabel("mean tip error [mm]")
    plot.set_ylim(bottom=0.0)
    plot.legend()
    figure.savefig(directory / "hour.png", dpi=80)
    plt.close(figure)


STUDY = Study(
    name="robustness/hour",
    source="",
    summary="an hour on a plant whose errors drift across their spread",
    run=run,
    cases=(Case("typical", FAST.reference),),
    methods=(OURS,),
    settings=Settings,
    metrics=(
        Metric("settled tip error", "mm", lambda result: mean_error_mm(result, SETTLED)),
        Metric("worst minute", "mm", lambda result: float(_per_minute(result).max())),
        Metric("largest, from 2 s on", "mm",
               lambda result: 1e3 * result["error"][result["times"] >= SETTLED].max()),
        Metric("restarts", "-", "restarts"),
        Metric("fallbacks", "-", "fallbacks"),
        LOCK_IN_METRICS[0],
        LOCK_IN_METRICS[-1],
    ),
    musts=(
        Must("settled tip error", 0.5),
        Must("worst minute", 0.5),
        Must("restarts", 0.0),
        Must("fallbacks", 0.0),
        Must(SILENT_TIP, 1.0, 0.3),
    ),
    exact="The plant begins as typical, a chain of 20 beam elements with all that its file says. "
    "In the hour each of its errors of body, actuation and pressures (length, compliances, tip "
    "mass and where it sits, tilt of the base, stiffness by curvature, chamber angles, hysteresis, "
    "creep, noise and bias of the pressures) goes evenly to that end of its spread which is "
    "farther away; its numbers are renewed every 5 s. The motion to 1.5 Hz repeats itself every "
    "2 s. " + LOCK_IN_EXPLAINED,
    draw=draw,
)  # fmt: skip
