"""Controllers and filter on rod and surrogate: error, time of a tick, calm of commands.

The case is the trajectory of Experiment 4a; every prediction runs on one thread.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from softcr_models import load_robot
from softcr_models.devices import DeviceName, resolve_device
from softcr_models.models import ModelName
from softcr_runtime.blocks.system import Parameters
from softcr_runtime.settings.registry import GRADIENT_MPC, NEMPC
from softcr_studies.frame.study import (
    Cell,
    Metric,
    Result,
    Results,
    Row,
    Seeds,
    Study,
    StudySettings,
)
from softcr_studies.loops.closed_loop import mean_error_mm
from softcr_studies.loops.tracking_loop import FAST, SETTLED, reference_of, run_loop
from softcr_studies.loops.tracking_study import PLANT, SENSORS, SETTLED_TIP, SIMPLER, TIP, settled

ALLOWED = 1.3  # a surrogate's error over the exact rod's


@dataclass(frozen=True)
class Way:
    """Who controls on which model."""

    population: int  # candidates of the NEMPC; 0: the gradient MPC, which has none
    model: ModelName  # of the controller
    filter_model: ModelName = "rod"
    device: DeviceName = "cpu"  # of the controller's model

    @property
    def controller(self) -> str:
        """Its name."""
        return NEMPC if self.population else GRADIENT_MPC

    @property
    def key(self) -> tuple[str, str]:
        """Case and method, as the table says them."""
        model = "exact rod" if self.model == "rod" else "network"
        model += ", filter too" if self.filter_model == "ddpinn" else ""
        method = f"{self.controller}, {model}" + (", GPU" if self.device == "cuda" else "")
        return f"population {self.population}" if self.population else "gradient", method


def ways() -> dict[tuple[str, str], Way]:
    """(case, method) -> what is compared; with GPU rows where there is one."""
    gpu = "cuda" in (resolve_device("auto", "torch"), resolve_device("auto", "rod"))
    devices: tuple[DeviceName, ...] = ("cpu", "cuda") if gpu else ("cpu",)
    models: tuple[ModelName, ...] = ("rod", "ddpinn")
    listed = [
        Way(population, model, device=device)
        for population in (64, 96, 150, 400, 1000) for device in devices for model in models
    ]  # fmt: skip
    listed += [Way(400, "ddpinn", "ddpinn"), Way(0, "rod"), Way(0, "ddpinn")]
    return {way.key: way for way in listed}


class Settings(StudySettings):
    """See StudySettings."""

    seeds: Seeds = 3
    network: str = Field(
        "", description="path of the network without ending; empty: the shipped one"
    )


def run(cell: Cell) -> Result:
    """One run of the loop."""
    way, robot = ways()[cell.case, cell.method], load_robot("licher2025")
    network: Parameters = {"network": cell.settings.network} if cell.settings.network else {}
    models: list[Parameters] = [{"model": name} | ({} if name == "rod" else network)
                                for name in (way.model, way.filter_model)]  # fmt: skip
    told = models[0] | {"device": way.device}
    told |= {"population": way.population} if way.population else {}
    result = run_loop(
        robot, FAST, reference_of(robot, FAST), way.controller,
        (cell.stream("plant"), cell.stream("controller")), parameters=told,
        filter_parameters=models[1], bag=cell.bag,
    )  # fmt: skip
    return {**result, "candidates": way.population}


def command_change_kpa(result: Result) -> float:
    """Root mean square of what a chamber's command changes from tick to tick [kPa]."""
    return float(1e-3 * np.sqrt((np.diff(settled(result, "commands"), axis=0) ** 2).mean()))


def _tick_of_each_us(result: Result) -> float | None:
    ticks, candidates = result["ticks"], result["candidates"]
    return float(1e6 * np.median(ticks) / candidates) if candidates else None


def bounded_rows(results: Results) -> Iterator[Row]:
    """Settled errors; a network's bound is the exact rod's with the same controller."""
    errors = {
        way: [mean_error_mm(each, SETTLED) for each in results.of(*key)]
        for key, way in ways().items()
    }
    for way, found in errors.items():
        exact = Way(way.population, "rod")
        must = None if way == exact else ALLOWED * float(np.mean(errors[exact]))
        yield Row.of(*way.key, SETTLED_TIP, found, "mm", must=must)


STUDY = Study(
    name="licher2025/models",
    source="",
    summary="both controllers on the exact rod and on its network, by population",
    run=run,
    cases=lambda settings: list(dict.fromkeys(case for case, _ in ways())),
    methods=lambda case: [method for each, method in ways() if each == case],
    settings=Settings,
    metrics=(
        Metric(TIP, "mm", mean_error_mm),
        Metric("tick, median", "ms", lambda result: 1e3 * np.median(result["ticks"]), timing=True),
        Metric("change of a command", "kPa", command_change_kpa),
        Metric("tick per candidate", "us", _tick_of_each_us, timing=True),
    ),
    exact=f"{SIMPLER}{PLANT}{SENSORS}The network has learned the model's rod; ticks are of one "
    "thread.",
    further_rows=bounded_rows,
)
