"""Table V: how long a step takes, by batch and way of computing, on one thread."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numba
import numpy as np
import torch

from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.surrogate.ddpinn import DDPINN
from softcr_models.surrogate.folded import FoldedNetwork

BATCHES = (1, 147, 1000)  # a step, a filter's sigma points, a controller's candidates
REPEATS = 60


@dataclass(frozen=True)
class StepTime:
    """Milliseconds of one step of a whole batch: median and 99th percentile."""

    way: str
    batch: int
    median_ms: float
    p99_ms: float


FAST = "network, folded"  # what prediction uses on a processor


def step_times(network: DDPINN, rod: CosseratRod) -> list[StepTime]:
    """Network by every way of computing, and the exact rod, each on one thread of this machine."""
    lanes = numba.get_num_threads()
    numba.set_num_threads(1)
    rows = [
        _timed("exact rod, float32", batch, _exact_step(rod, network.period, batch))
        for batch in BATCHES
    ]
    numba.set_num_threads(lanes)
    return rows + network_times(network, rod)


def network_times(network: DDPINN, rod: CosseratRod) -> list[StepTime]:
    """The network by every way of computing, on one thread."""
    # numba's loops change the number of threads of the pool they share with torch
    threads, kept = torch.get_num_threads(), network.compute_type
    torch.set_num_threads(1)
    rows = []
    for batch in BATCHES:
        for way, kind in _KINDS.items():
            network.compute_type = kind
            rows.append(_timed(way, batch, _network_step(network, rod, batch)))
        if network.architecture.shapes == "shared":
            rows.append(_timed(FAST, batch, _folded_step(network, rod, batch)))
    network.compute_type = kept
    torch.set_num_threads(threads)
    return rows


_KINDS = {"network, float32": torch.float32, "network, bfloat16": torch.bfloat16}


def _exact_step(rod: CosseratRod, period: float, batch: int) -> Callable[[], object]:
    exact, rng = RodPrediction(rod), np.random.default_rng(0)
    pressures = rng.uniform(0.0, 5e4, (batch, 2, rod.input_size))
    state = rod.rest_state()
    return lambda: exact.rollout(state, pressures, rod.nominal_parameters, period)


def _network_step(network: DDPINN, rod: CosseratRod, batch: int) -> Callable[[], object]:
    coordinates = torch.randn(batch, rod.state_size)
    pressures = 5e4 * torch.rand(batch, rod.input_size)
    parameters = torch.tensor(rod.nominal_parameters, dtype=torch.float32).expand(batch, -1)

    known = network.tell_parameters(parameters)

    @torch.inference_mode()
    def step() -> torch.Tensor:
        told = torch.cat((network.tell_pressures(pressures, pressures), known), dim=-1)
        return network.advance(coordinates, told)

    return step


def _folded_step(network: DDPINN, rod: CosseratRod, batch: int) -> Callable[[], object]:
    folded = FoldedNetwork(network)
    coordinates = torch.randn(batch, rod.state_size)
    pressures = 5e4 * torch.rand(1, batch, rod.input_size)
    parameters = torch.tensor(rod.nominal_parameters, dtype=torch.float32)[None]

    @torch.inference_mode()
    def step() -> list[torch.Tensor]:
        return folded.rollout(coordinates, pressures, pressures, parameters)

    return step


def _timed(way: str, batch: int, step: Callable[[], object]) -> StepTime:
    times = []
    for _ in range(5):
        step()
    for _ in range(REPEATS):
        begun = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - begun))
    return StepTime(way, batch, float(np.median(times)), float(np.percentile(times, 99)))
