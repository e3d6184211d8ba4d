"""Ticks of the NEMPC in closed loop on virtual time, its population on a GPU or on the processor.

Plant, filter and reference always compute on the processor; the controller's ticks alone are timed.
The loop is that of `make sim`: the robot with the pressure chain, on the plant `typical`.
"""

import time
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from softcr_control.reference.references import SampledReference
from softcr_models.devices import gpu_name
from softcr_models.errors import UserError
from softcr_models.robots.robot import load_robot
from softcr_runtime.settings.registry import NEMPC
from softcr_simulation.errors.plant_errors import load_plant_errors
from softcr_studies.frame.study import Result
from softcr_studies.loops.compared_loops import CHAINED, EVERYTHING
from softcr_studies.loops.tracking_loop import FAST, RATE_HZ, SETTLED, Case, reference_of, run_loop
from softcr_studies.speed import timing
from softcr_studies.speed.gpu_batches import GpuEffort, in_milliseconds, require_gpu
from softcr_studies.speed.timing import Skipped

PLANT = "typical"
FIRST = 20
"""Ticks that are told apart: libraries set themselves up, and the tick is recorded."""


@dataclass(frozen=True)
class LoopOf:
    """One closed loop.

    Attributes:
        population: candidates.
        rate_hz: of the loop [Hz].
        horizon: [ticks]; None: as many seconds as at 70 Hz, 0.1 s, but at most 40 ticks.
        prediction_step: ticks from one predicted state to the next.
        device: where the controller computes.
        part: of the run's seconds.
    """

    population: int
    rate_hz: float = RATE_HZ
    horizon: int | None = None
    prediction_step: int = 1
    device: str = "cuda"
    part: float = 1.0

    @property
    def name(self) -> str:
        """Of the row's case."""
        return f"NEMPC tick, {self.population} at {self.rate_hz:g} Hz"


def ticks(loop: LoopOf, effort: GpuEffort) -> Result:
    """Times of the ticks after the first ones, and how well the tip followed.

    Returns:
        As `in_milliseconds`, and: worst [ms]; first, the longest of the first ticks [ms]; missed,
        the share of ticks that took more than a period [%]; tip error, its mean once the filter has
        settled [mm]; wall, what the whole run took [s].
    """
    if loop.device == "cuda":
        require_gpu()
    seconds = max(loop.part * effort.loop_seconds, (FIRST + 10) / loop.rate_hz)
    case = replace(
        FAST, name=loop.name, duration=seconds, rate_hz=loop.rate_hz,
        errors=load_plant_errors(PLANT),
    )  # fmt: skip
    threads = timing.cores_available()
    parameters: dict[str, Any] = {
        "population": loop.population, "device": loop.device, "threads": threads,
        "prediction_step": loop.prediction_step,
    }  # fmt: skip
    if loop.horizon is not None:
        parameters["horizon"] = loop.horizon
    begun = time.perf_counter()
    try:
        found = run_loop(
            load_robot(CHAINED), case, _reference(case), NEMPC, (1, 2),
            parameters=parameters, filter_settings=EVERYTHING,
        )  # fmt: skip
    except UserError as error:
        raise Skipped(str(error)) from None
    wall = time.perf_counter() - begun
    durations = 1e3 * np.asarray(found["ticks"])
    counted = durations[FIRST:] if len(durations) > FIRST else durations
    settled = found["times"] >= min(SETTLED, seconds / 2)
    where = gpu_name() if loop.device == "cuda" else f"{threads} thread(s) of the processor"
    note = f"{CHAINED} on the plant {PLANT!r}, {seconds:g} s; the controller on {where}"
    return {
        **in_milliseconds(counted, note),
        "worst": float(counted.max()),
        "first": float(durations[:FIRST].max()),
        "missed": float(100.0 * np.mean(counted > 1e3 / loop.rate_hz)),
        "tip error": float(1e3 * found["error"][settled].mean()),
        "wall": wall,
    }


def rehearse() -> None:
    """A short loop on the processor, which compiles what loops need."""
    ticks(LoopOf(32, device="cpu"), GpuEffort.model_validate({"loop_seconds": 0.5}))


@cache
def _reference(case: Case) -> SampledReference:
    return reference_of(load_robot("licher2025"), case)
