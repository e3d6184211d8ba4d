"""Table V: how long a step takes, by batch and way of computing; and a controller's tick on it.

On one thread of this machine, and on its GPU if it has one: rows from there carry its name.
"""

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numba
import numpy as np
import torch

from softcr_control.nempc import Nempc, NempcSettings
from softcr_control.nempc_torch import NempcTorch
from softcr_control.observation import ControlContext, Observation
from softcr_control.references import Reference
from softcr_models.devices import gpu_name, what_cuda_lacks
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod_model import RodModel
from softcr_models.surrogate.card import Card, rod_fields
from softcr_models.surrogate.ddpinn import DDPINN
from softcr_models.surrogate.folded import FoldedNetwork
from softcr_models.surrogate.freed_memory import keep_freed_memory
from softcr_models.surrogate.prediction import SurrogatePrediction

BATCHES = (1, 147, 1000)  # a step, a filter's sigma points, a controller's candidates
REPEATS = 60
PERIOD = 1 / 70
TICK = NempcSettings()  # 1000 candidates, 8 steps
TICK_REPEATS = 20
PERIOD = 1 / 70  # of the controller [s]


@dataclass(frozen=True)
class StepTime:
    """Milliseconds of a step of a whole batch, or of what `way` says: median, 99th percentile."""

    way: str
    batch: int
    median_ms: float
    p99_ms: float


FAST = "network, folded"  # what prediction uses on a processor


def step_times(network: DDPINN, rod: CosseratRod) -> list[StepTime]:
    """Network and exact rod, steps and ticks, on one thread of this machine and on its GPU."""
    threads, lanes = torch.get_num_threads(), numba.get_num_threads()
    numba.set_num_threads(1)
    rows = [
        _timed("exact rod, float32", batch, _exact_step(rod, network.period, batch))
        for batch in BATCHES
    ]
    rows += network_times(network, rod)
    rows += _on_gpu(network, rod)
    rows += [
        _timed(f"NEMPC tick x {TICK.horizon}: {way}", TICK.population, tick, TICK_REPEATS)
        for way, tick in _ticks(network, rod)
    ]
    torch.set_num_threads(threads)
    numba.set_num_threads(lanes)
    return rows


def network_times(network: DDPINN, rod: CosseratRod) -> list[StepTime]:
    """The network by every way of computing, on one thread."""
    keep_freed_memory()  # as prediction does
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
    exact, pressures = RodPrediction(rod), _pressures(rod, batch, 1)
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
    def step() -> torch.Tensor:
        return folded.rollout(coordinates, pressures, pressures, parameters)

    return step


def _on_gpu(network: DDPINN, rod: CosseratRod) -> Iterator[StepTime]:
    """A step at each batch, and a controller's rollout, everything on the GPU."""
    runs = [("", batch, 1) for batch in BATCHES]
    runs.append((f", {TICK.horizon} steps", TICK.population, TICK.horizon))
    for what, batch, steps in runs:
        if not what_cuda_lacks("numba"):
            work = _exact_on_gpu(rod, network.period, batch, steps)
            yield _timed(f"exact rod on {gpu_name()}, float32{what}", batch, work)
        if not what_cuda_lacks("torch") and network.architecture.shapes == "shared":
            work = _network_on_gpu(network, rod, batch, steps)
            yield _timed(f"network on {gpu_name()}, float32{what}", batch, work)


def _exact_on_gpu(rod: CosseratRod, period: float, batch: int, steps: int) -> Callable[[], object]:
    """Up to the end of the work there."""
    from numba import cuda

    from softcr_models.cuda.prediction import CudaRodPrediction

    model = CudaRodPrediction(rod)
    values = (rod.rest_state()[None], _pressures(rod, batch, steps), rod.nominal_parameters[None])
    states, pressures, nominal = (cuda.to_device(value.astype(model.dtype)) for value in values)
    out = cuda.device_array((batch, steps, rod.state_size), model.dtype)

    def work() -> None:
        model.rollout_on_device(states, pressures, nominal, period, out)
        cuda.synchronize()

    return work


def _network_on_gpu(
    network: DDPINN, rod: CosseratRod, batch: int, steps: int
) -> Callable[[], object]:
    """A CUDA graph, up to the end of its work."""
    device = torch.device("cuda")
    folded = FoldedNetwork(copy.deepcopy(network).on(device))
    start = torch.randn(batch, rod.state_size, device=device)
    levels = torch.as_tensor(_pressures(rod, batch, steps), dtype=torch.float32, device=device)
    levels = levels.transpose(0, 1)
    nominal = torch.as_tensor(rod.nominal_parameters[None], dtype=torch.float32, device=device)

    def roll() -> None:
        folded.rollout(start, levels[:-1], levels[1:], nominal)

    with torch.inference_mode():
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            roll()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            roll()

    def work() -> None:
        graph.replay()
        torch.cuda.synchronize()

    return work


def _ticks(network: DDPINN, rod: CosseratRod) -> Iterator[tuple[str, Callable[[], object]]]:
    """Controllers by what they predict with; arrays pass through the processor, tensors do not."""
    yield "exact rod", _tick(Nempc, RodPrediction(rod, substeps=1))
    if not what_cuda_lacks("numba"):
        from softcr_models.cuda.prediction import CudaRodPrediction

        yield f"exact rod on {gpu_name()}, arrays", _tick(Nempc, CudaRodPrediction(rod, 1))
    if network.architecture.shapes != "shared":
        yield "network, arrays", _tick(Nempc, _surrogate(network, rod, "cpu"))
        return
    for kind, what in ((Nempc, "arrays"), (NempcTorch, "tensors")):
        yield f"network, {what}", _tick(kind, _surrogate(network, rod, "cpu"))
        if not what_cuda_lacks("torch"):
            way = f"network on {gpu_name()}, {what}"
            yield way, _tick(kind, _surrogate(network, rod, "cuda"))


def _tick(kind: type[Nempc], prediction: RodModel) -> Callable[[], object]:
    """From an estimate at rest to a command towards a bent rod."""
    rod = prediction.rod
    controller = kind(ControlContext(rod.robot, prediction, PERIOD), TICK)
    pressures = np.zeros(rod.input_size)
    goal = rod.equilibrium(_pressures(rod, 1, 1)[0, 0])
    tip = rod.tip_pose(goal)[:3, 3]
    rows = controller.rows
    reference = Reference(0.0, PERIOD, np.tile(goal, (rows, 1)), np.tile(tip, (rows, 1)))
    seen = Observation(0.0, rod.rest_state(), {}, reference, pressures, prediction)
    return lambda: controller.command(seen)


def _surrogate(network: DDPINN, rod: CosseratRod, device: str) -> SurrogatePrediction:
    """The network as a prediction; its time does not depend on what it was trained with."""
    robot = rod.robot
    card = Card(
        robot=robot.name,
        rod=rod_fields(robot),
        relaxation_times=list(robot.relaxation_times),
        intervals=rod.intervals,
        architecture=network.architecture,
        inputs=network.inputs,
        training={},
        hardware={},
        seconds={},
        iterations=0,
        validation={},
    )
    return SurrogatePrediction(robot, copy.deepcopy(network), card, device)


def _pressures(rod: CosseratRod, batch: int, steps: int) -> np.ndarray:
    """(batch, steps + 1, m) [Pa], the same in each call."""
    return np.random.default_rng(0).uniform(0.0, 5e4, (batch, steps + 1, rod.input_size))


def _timed(way: str, batch: int, step: Callable[[], object], repeats: int = REPEATS) -> StepTime:
    times = []
    for _ in range(5):
        step()
    for _ in range(repeats):
        begun = time.perf_counter()
        step()
        times.append(1e3 * (time.perf_counter() - begun))
    return StepTime(way, batch, float(np.median(times)), float(np.percentile(times, 99)))
