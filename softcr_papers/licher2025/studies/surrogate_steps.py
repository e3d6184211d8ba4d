"""How long steps of a surrogate and of its rod take, and a controller's tick on them, on one thread
of this machine. What a GPU takes measures the study speed/gpu."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from softcr_control.observation import ControlContext, Observation
from softcr_control.predictive.nempc import Nempc, NempcSettings
from softcr_control.reference.references import Reference
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod_model.rod_model import RodModel
from softcr_models.surrogate.card import Card
from softcr_models.surrogate.ddpinn import DDPINN
from softcr_models.surrogate.folded import FoldedNetwork
from softcr_models.surrogate.freed_memory import keep_freed_memory
from softcr_models.surrogate.prediction import SurrogatePrediction
from softcr_studies.speed.motion import PERIOD
from softcr_studies.speed.timing import Effort, cores, measure

BATCHES = (1, 147, 1000)  # a step, a filter's sigma points, a controller's candidates
STEPS, TICKS = (
    Effort.model_validate({"repeats": repeats, "seconds": 600.0}) for repeats in (60, 20)
)
TICK = NempcSettings()  # 1000 candidates, 8 steps
FAST = "network, folded"  # what prediction uses on a processor
_KINDS = {"network, float32": torch.float32, "network, bfloat16": torch.bfloat16}
Work = Callable[[], object]


@dataclass(frozen=True)
class StepTime:
    """Milliseconds of a step of a whole batch, or of what `way` says: median, 99th percentile."""

    way: str
    batch: int
    median_ms: float
    p99_ms: float


@contextmanager
def _one_thread() -> Iterator[None]:
    """For torch and for compiled kernels, which share a pool."""
    threads = torch.get_num_threads()
    with cores(1):
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


@_one_thread()
def step_times(network: DDPINN, card: Card, rod: CosseratRod) -> list[StepTime]:
    """Network and exact rod, steps and ticks, on one thread of this machine."""
    exact, rest = RodPrediction(rod), rod.rest_state()
    rows = []
    for batch in BATCHES:
        work = partial(
            exact.rollout, rest, _pressures(rod, batch, 1), rod.nominal_parameters, network.period
        )
        rows.append(_timed("exact rod, float32", batch, work))
    rows += network_times(network, rod)
    rows += [
        _timed(f"NEMPC tick x {TICK.horizon}: {way}", TICK.population, tick, TICKS)
        for way, tick in _ticks(network, card, rod)
    ]
    return rows


@_one_thread()
@torch.inference_mode()
def network_times(network: DDPINN, rod: CosseratRod) -> list[StepTime]:
    """The network by every way of computing, on one thread."""
    keep_freed_memory()  # as prediction does
    kept = network.compute_type
    rows = []
    for batch in BATCHES:
        for way, work in _network_steps(network, rod, batch):
            # numba's loops change the number of threads of the pool they share with torch
            torch.set_num_threads(1)
            rows.append(_timed(way, batch, work))
    network.compute_type = kept
    return rows


def _network_steps(network: DDPINN, rod: CosseratRod, batch: int) -> Iterator[tuple[str, Work]]:
    coordinates = torch.randn(batch, rod.state_size)
    pressures = 5e4 * torch.rand(1, batch, rod.input_size)
    parameters = torch.tensor(rod.nominal_parameters[None], dtype=torch.float32)
    known = network.tell_parameters(parameters.expand(batch, -1))

    def step() -> torch.Tensor:
        acting = network.tell_pressures(pressures[0], pressures[0])
        return network.advance(coordinates, torch.cat((acting, known), dim=-1))

    for way, kind in _KINDS.items():
        network.compute_type = kind
        yield way, step
    if network.architecture.shapes == "shared":
        folded = FoldedNetwork(network)
        yield FAST, lambda: folded.rollout(coordinates, pressures, pressures, parameters)


def _ticks(network: DDPINN, card: Card, rod: CosseratRod) -> Iterator[tuple[str, Work]]:
    """Controllers by what they predict with, on the processor."""
    yield "exact rod", _tick(RodPrediction(rod, substeps=1))
    surrogate = SurrogatePrediction(rod.robot, copy.deepcopy(network), card, "cpu")
    yield "network, arrays", _tick(surrogate)


def _tick(prediction: RodModel) -> Work:
    """From an estimate at rest to a command towards a bent rod."""
    rod = prediction.rod
    controller = Nempc(ControlContext(rod.robot, prediction, PERIOD), TICK)
    goal = rod.equilibrium(_pressures(rod, 1, 1)[0, 0])
    rows, tip = controller.rows, rod.tip_pose(goal)[:3, 3]
    reference = Reference(0.0, PERIOD, np.tile(goal, (rows, 1)), np.tile(tip, (rows, 1)))
    none = np.zeros(rod.input_size)
    seen = Observation(0.0, rod.rest_state(), {}, reference, none, prediction)
    return lambda: controller.command(seen)


def _pressures(rod: CosseratRod, batch: int, steps: int) -> np.ndarray:
    """(batch, steps + 1, m) [Pa], the same in each call."""
    return np.random.default_rng(0).uniform(0.0, 5e4, (batch, steps + 1, rod.input_size))


def _timed(way: str, batch: int, work: Work, effort: Effort = STEPS) -> StepTime:
    median, p99 = np.percentile(1e3 * measure(work, effort), (50, 99)).tolist()
    return StepTime(way, batch, median, p99)
