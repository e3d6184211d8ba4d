"""Batches of the exact rod and of its network over a horizon, on a GPU and on the processor."""

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from pydantic import Field

from softcr_models.devices import gpu_name, what_cuda_lacks
from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction, RodSettings
from softcr_models.robots.robot import load_robot
from softcr_models.rod_model.rod_model import RodModel
from softcr_studies.frame.study import Result
from softcr_studies.speed import timing
from softcr_studies.speed.motion import PERIOD, three_phase_pressures
from softcr_studies.speed.timing import Effort, Skipped

HORIZON = 8
COMPARED = 4096  # candidates: enough for a largest deviation
BEFORE = 70  # periods of the reference motion before the batch
_FEWEST = 5


class GpuEffort(Effort):
    """How much is measured, and of what size."""

    repeats: int = Field(
        500, ge=3, le=100_000, description="number of repetitions of every measurement"
    )
    seconds: float = Field(
        1.0, gt=0.0, le=600.0, description="longest duration of one measurement",
        json_schema_extra={"unit": "s"},
    )  # fmt: skip
    largest: int = Field(
        65_536, ge=1, le=1_000_000, description="largest number of candidates in a batch"
    )
    loop_seconds: float = Field(
        60.0, gt=0.0, le=3600.0, description="virtual time of a closed loop",
        json_schema_extra={"unit": "s"},
    )  # fmt: skip
    training_seconds: float = Field(
        60.0, gt=0.0, le=3600.0, description="planned duration of the training on the GPU",
        json_schema_extra={"unit": "s"},
    )  # fmt: skip


def require_gpu() -> None:
    """Raises `Skipped` with one line where PyTorch has no GPU."""
    if lacks := what_cuda_lacks("torch"):
        raise Skipped(f"compiled, not run: {lacks}")


# -- the exact rod --------------------------------------------------------------------------------


def rod_on_gpu(robot: str, count: int, substeps: int, effort: GpuEffort) -> Result:
    """A rollout of tips in float32 with all arrays on the GPU.

    Returns:
        `in_milliseconds` of replays of a CUDA graph, and: launched, the median without the graph
        [ms]; per candidate-step [ns]; deviation, the largest of a tip from float64 on the
        processor [mm].
    """
    require_gpu()
    import torch

    _check_size(count, effort)
    try:
        model: Any = _rod(robot, RodSettings(device="cuda", substeps=substeps))
    except UserError as error:
        raise Skipped(str(error)) from None
    state, inputs = _batch(robot, count)
    given = [
        torch.as_tensor(values, dtype=torch.float32, device="cuda").contiguous()
        for values in (state[None], inputs, model.nominal_parameters[None])
    ]
    out = torch.full((count, HORIZON, 3, 4), torch.nan, device="cuda")

    def work() -> None:
        model.rollout_tips_on_device(*given, PERIOD, out)

    launched, replayed = on_gpu(work, effort)
    note = f"on {gpu_name()}, float32, {substeps} sub-step(s), a CUDA graph; arrays on the GPU"
    return {
        **_per_step(replayed, count, note),
        "launched": float(np.median(launched)),
        "deviation": _deviation(out.cpu().numpy(), robot, substeps),
    }


def rod_on_processor(
    robot: str, count: int, substeps: int, threads: int, effort: GpuEffort
) -> Result:
    """The same on so many threads; 0: on all cores. See `rod_on_gpu`."""
    _check_size(count, effort)
    model = _rod(robot, RodSettings(substeps=substeps))
    state, inputs = _batch(robot, count)
    threads = threads or timing.cores_available()
    tips: list[np.ndarray] = []

    def work() -> None:
        tips[:] = [model.rollout_tips(state, inputs, model.nominal_parameters, PERIOD)]

    with timing.cores(threads):
        durations = 1e3 * timing.measure(work, effort)
    note = f"float32, {substeps} sub-step(s), {threads} thread(s)"
    return {
        **_per_step(durations, count, note),
        "deviation": _deviation(tips[0], robot, substeps),
    }


@cache
def _rod(robot: str, settings: RodSettings) -> RodModel:
    return RodPrediction.of_robot(load_robot(robot), settings)


@cache
def _batch(robot: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """(nx,) a state in motion and (count, HORIZON + 1, m) pressures [Pa] behind the lag of random
    commands."""
    model = _rod(robot, RodSettings(single_precision=False))
    levels = three_phase_pressures(BEFORE + 1)[None]
    rest = model.rod.rest_state()
    state = model.rollout(rest, levels, model.nominal_parameters, PERIOD)[0, -1]
    commands = np.random.default_rng(0).uniform(0.0, 6e4, (count, HORIZON, model.inputs.size))
    lag = model.rod.robot.pressure_lag
    return state, lag.trajectory(levels[0, -1], commands, PERIOD)


def _deviation(tips: np.ndarray, robot: str, substeps: int) -> float:
    """Largest distance [mm] of tips (B, T, 3, 4) from the processor's in float64; NaN where
    one of them is not finite; the first COMPARED are compared."""
    exact = _rod(robot, RodSettings(single_precision=False, substeps=substeps))
    state, inputs = _batch(robot, len(tips))
    some = slice(COMPARED)
    others = exact.rollout_tips(state, inputs[some], exact.nominal_parameters, PERIOD)
    distances = np.linalg.norm(tips[some, :, :, 3] - others[:, :, :, 3], axis=-1)
    finite = np.isfinite(tips).all() and np.isfinite(distances).all()
    return float(1e3 * distances.max()) if finite else float("nan")


# -- its network ----------------------------------------------------------------------------------


def network_on(device: str, count: int, effort: GpuEffort) -> Result:
    """The network of licher2025, folded, over a horizon in float32.

    Returns:
        As `rod_on_gpu` without deviation, and: rate, of a candidate's steps [1/s].
    """
    if device == "cuda":
        require_gpu()
    import torch

    from softcr_models.surrogate.folded import FoldedNetwork
    from softcr_models.surrogate.prediction import SurrogatePrediction

    _check_size(count, effort)
    model = SurrogatePrediction.load(load_robot("licher2025"), device="cpu")
    folded = FoldedNetwork(copy.deepcopy(model.network).on(torch.device(device)))
    random = torch.Generator().manual_seed(0)
    start = torch.randn(count, model.rod.state_size, generator=random).to(device)
    levels = 5e4 * torch.rand(HORIZON + 1, count, model.inputs.size, generator=random).to(device)
    nominal = torch.as_tensor(model.nominal_parameters[None], dtype=torch.float32, device=device)

    @torch.inference_mode()
    def work() -> None:
        folded.rollout(start, levels[:-1], levels[1:], nominal)

    if device == "cuda":
        launched, replayed = on_gpu(work, effort)
        note = f"on {gpu_name()}, float32, a CUDA graph"
        return _per_second(replayed, count, note) | {"launched": float(np.median(launched))}
    threads = timing.cores_available()
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        durations = 1e3 * timing.measure(work, effort)
    finally:
        torch.set_num_threads(before)
    return _per_second(durations, count, f"float32, {threads} thread(s)")


# -- how a GPU is measured ------------------------------------------------------------------------


def on_gpu(work: Callable[[], object], effort: Effort) -> tuple[np.ndarray, np.ndarray]:
    """Durations [ms] of `work()`, which only enqueues, by events of the GPU.

    Returns:
        (R,) launched by Python, (S,) replayed as a CUDA graph.
    """
    import torch

    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(timing.WARM_UP):  # before the graph: libraries set themselves up
            work()
    torch.cuda.current_stream().wait_stream(aside)
    torch.cuda.synchronize()
    launched = _by_events(work, effort)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return launched, _by_events(graph.replay, effort)


def _by_events(work: Callable[[], object], effort: Effort) -> np.ndarray:
    """(R,) [ms] on the GPU from the beginning of `work`'s first to the end of its last kernel."""
    import torch

    def once() -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end))

    first = max(1e-6, 1e-3 * max(once() for _ in range(timing.WARM_UP)))
    count = int(np.clip(effort.seconds / first, _FEWEST, effort.repeats))
    return np.array([once() for _ in range(count)])


def in_milliseconds(durations: np.ndarray, note: str) -> dict[str, Any]:
    """Median, 99th percentile and count of durations (R,) [ms]."""
    median, p99 = np.percentile(durations, (50, 99)).tolist()
    return {"median": median, "p99": p99, "repeats": len(durations), "note": note}


def _per_step(durations: np.ndarray, count: int, note: str) -> dict[str, Any]:
    told = in_milliseconds(durations, note)
    return told | {"per candidate-step": 1e6 * told["median"] / (count * HORIZON)}


def _per_second(durations: np.ndarray, count: int, note: str) -> dict[str, Any]:
    told = _per_step(durations, count, note)
    return told | {"rate": 1e3 * count * HORIZON / told["median"]}


def _check_size(count: int, effort: GpuEffort) -> None:
    if count > effort.largest:
        raise Skipped(f"{count} candidates: more than {effort.largest} were not asked for")
