"""The exact rod, the NEMPC's tick and the network on a GPU, beside the processor of the machine.

`python -m softcr_studies.speed.gpu_kit` measures the same on a machine where the package is not
installed, each part in a process and a time of its own.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

from softcr_models.plugins import in_a_line
from softcr_runtime.settings import registry
from softcr_studies.frame.study import Cell, Metric, Must, Published, Result, Study
from softcr_studies.speed import gpu_batches, gpu_code, gpu_loops
from softcr_studies.speed.gpu_batches import HORIZON, GpuEffort, require_gpu
from softcr_studies.speed.gpu_loops import LoopOf
from softcr_studies.speed.timing import Skipped

GPU, ALL_CORES, ONE_THREAD = "GPU", "processor, all cores", "processor, one thread"
FEWER_SUBSTEPS = "GPU, 1 sub-step"
ROBOTS = ("licher2025", "licher2025_chain")
BATCHES = (256, 1000, 4096, 16_384, 65_536)
OF_CONTROLLER, LARGEST = 1000, BATCHES[-1]
NETWORK_BATCHES = (1000, 20_000, 65_536)
FAST_LOOP = LoopOf(1000, 500.0, horizon=40, prediction_step=8, part=1 / 4)
LOOPS = (LoopOf(1000), LoopOf(20_000), FAST_LOOP, LoopOf(4096, part=1 / 4))
"""The most important first. At 500 Hz a tick plans 80 ms ahead, and predicts states 16 ms apart: as
good as at each tick, for an eighth of the steps. A quarter of the seconds has 7500 ticks."""
ON_PROCESSOR = LoopOf(1000, device="cpu", part=0.25)
MUSTS = "network, trained until it is good enough"

OF_PAPER_MS = 1000 * 0.802e-3
"""A step of 1000 candidates [ms]; a thousandth of it is printed."""

GpuWork = Callable[[GpuEffort], Result]
"""Measures something; may raise `Skipped`."""

_TREE = Path(__file__).parents[2]


def rollout(robot: str, count: int) -> str:
    """Case of a batch of the exact rod."""
    return f"{robot}, {count} x {HORIZON}"


def network(count: int) -> str:
    """Case of a batch of the network."""
    return f"network, {count} x {HORIZON}"


def run_tests(effort: GpuEffort) -> Result:
    """The tests that need a GPU, in a process of their own: how many passed and failed."""
    require_gpu()
    files = [str(path) for path in sorted((_TREE / "test").rglob("test_*.py"))
             if "mark.gpu" in path.read_text(encoding="utf-8")]  # fmt: skip
    if not files:
        raise Skipped("tests: the package's tree is not here")
    workers = ["-n", "4"] if find_spec("xdist") else []
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-v", "-rfE", "--tb=short",
               "-p", "no:cacheprovider", *workers, *files]  # fmt: skip
    told: list[str] = []
    with subprocess.Popen(
        command, cwd=_TREE, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            told.append(line)
            print(line, end="", flush=True)
    return counted("".join(told)) | {"note": "pytest -m gpu"}


def counted(output: str) -> dict[str, int]:
    """passed, failed, skipped of what pytest wrote; without its closing line one has failed."""
    closing = re.findall(r"^(?=.* in [\d.]+s)(?:=+ )?(.*)$", output, re.MULTILINE)
    words = {
        word: int(number) for number, word in re.findall(r"(\d+) (\w+)", (closing or [""])[-1])
    }
    failed = words.get("failed", 0) + words.get("error", 0) + words.get("errors", 0)
    found = {"passed": words.get("passed", 0), "failed": failed,
             "left out": words.get("skipped", 0)}  # fmt: skip
    return found if any(found.values()) else {**found, "failed": 1}


def _batches() -> dict[tuple[str, str], GpuWork]:
    """Batches of the exact rod, the controller's first."""
    work: dict[tuple[str, str], GpuWork] = {}
    rod, on_processor = gpu_batches.rod_on_gpu, gpu_batches.rod_on_processor
    for count in (OF_CONTROLLER, LARGEST, *BATCHES):
        for robot in ROBOTS:
            case = rollout(robot, count)
            work[case, GPU] = partial(rod, robot, count, 2)
            work[case, FEWER_SUBSTEPS] = partial(rod, robot, count, 1)
    for robot in ROBOTS:
        for count in BATCHES:
            work[rollout(robot, count), ALL_CORES] = partial(on_processor, robot, count, 2, 0)
        one = partial(on_processor, robot, OF_CONTROLLER, 2, 1)
        work[rollout(robot, OF_CONTROLLER), ONE_THREAD] = one
    return work


def compiled(architecture: str) -> str:
    """Method of the machine code for an architecture."""
    return f"compiled, {architecture}"


PARTS: Mapping[str, Mapping[tuple[str, str], GpuWork]] = {
    "code": {
        (rollout(robot, OF_CONTROLLER), compiled(architecture)): partial(
            gpu_code.code_of, robot, architecture, OF_CONTROLLER
        )
        for architecture in gpu_code.ARCHITECTURES
        for robot in gpu_code.ROBOTS
    },
    "tests": {("tests on a GPU", "pytest"): run_tests},
    "batches": _batches(),
    "loops": {
        **{(loop.name, GPU): partial(gpu_loops.ticks, loop) for loop in LOOPS},
        (ON_PROCESSOR.name, ALL_CORES): partial(gpu_loops.ticks, ON_PROCESSOR),
    },
    "network": {
        (network(count), method): partial(gpu_batches.network_on, device, count)
        for device, method in (("cuda", GPU), ("cpu", ALL_CORES))
        for count in NETWORK_BATCHES
    },
    "training": {
        (case, each.summary): resolve_name(each.place)
        for case, each in registry.functions("training on a GPU").items()
    },
}
"""Part -> (case, method) -> what measures it, the most important first."""

_WORK = {cell: work for part in PARTS.values() for cell, work in part.items()}


def run(cell: Cell) -> Result:
    """One measurement, or why there is none."""
    try:
        return _WORK[cell.case, cell.method](cell.settings)
    except Skipped as reason:
        return {"skipped": str(reason)}


def measured(cell: Cell) -> Result:
    """As `run`; what a measurement raises is shown, and becomes the reason why there is none."""
    try:
        return run(cell)
    except Exception as error:
        import traceback

        traceback.print_exc(file=sys.stdout)
        return {"skipped": f"failed: {in_a_line(error)}"}


_CONTROLLERS = [rollout(robot, OF_CONTROLLER) for robot in ROBOTS]
_LARGEST = [rollout(robot, LARGEST) for robot in ROBOTS]
STUDY = Study(
    name="speed/gpu",
    source="Licher et al. 2025, Sec. IV-C, Table V",
    summary="batches of the rod, ticks of the NEMPC and the network on a GPU",
    run=run,
    cases=tuple(dict.fromkeys(case for case, _ in _WORK)),
    methods=lambda case: [method for other, method in _WORK if other == case],
    settings=GpuEffort,
    metrics=(
        *(Metric(name, "ms", name, timing=True)
          for name in ("median", "p99", "worst", "launched", "first")),
        Metric("per candidate-step", "ns", "per candidate-step", timing=True),
        Metric("ticks over a period", "%", "missed", timing=True),
        Metric("tip error", "mm", "tip error"),
        Metric("largest tip deviation from float64", "mm", "deviation"),
        Metric("whole run", "s", "wall", timing=True),
        *(Metric(name, "-", name) for name in ("passed", "failed", "left out")),
        Metric("time until it is good enough", "s", "reached", timing=True),
        Metric("data from the rod", "s", "data", timing=True),
        Metric("prepared", "s", "prepared", timing=True),
        Metric("rate", "1/s", "rate", timing=True),
        Metric("tip error, smooth", "mm", "smooth"),
        Metric("tip error, steps", "mm", "steps"),
        Metric("iterations", "-", "iterations"),
        Metric("registers", "-", "registers"),
        Metric("stack", "B", "stack"),
        Metric("spills", "B", "spills"),
        Metric("double instructions in the time loop", "-", "doubles"),
        Metric("instructions", "-", "instructions"),
        Metric("estimate from the machine code", "ms", "estimate"),
    ),
    published=tuple(
        Published("median", HORIZON * OF_PAPER_MS, "simulation", case, GPU)
        for case in (*_CONTROLLERS, network(OF_CONTROLLER))
    ),
    musts=(
        *(Must("median", 1.0, 0.3, case, GPU) for case in _CONTROLLERS),
        *(Must("per candidate-step", 20.0, 5.0, case, GPU) for case in _LARGEST),
        Must("median", 2.0, 0.6, LOOPS[0].name, GPU),
        Must("p99", 14.3, case=LoopOf(20_000).name, method=GPU),
        Must("p99", 2.0, case=FAST_LOOP.name, method=GPU),
        Must("failed", 0.0),
        Must("time until it is good enough", 60.0, case=MUSTS),
        *(Must(quantity, bound, goal, case, compiled("sm_90"))
          for case in _CONTROLLERS
          for quantity, bound, goal in (
              ("registers", 168.0, 128.0), ("stack", 1024.0, 0.0), ("spills", 0.0, None),
              ("double instructions in the time loop", 0.0, None),
              ("estimate from the machine code", 1.0, 0.3))),
    ),
    exact="The published figure is of eight of the paper's steps of 1000 candidates: what its "
    "network's predictions alone take on an RTX 3070. Ours on the GPU are steps of 1/70 s of the "
    "exact rod, two sub-steps each, or of the network, as replays of a CUDA graph. A tick is "
    "everything from an estimate to a command, copies included; its rod makes one sub-step. "
    "The estimate from the machine code is a warp's chain of instructions and latencies without "
    "the time to fetch instructions; licher2025 took 1.5 times as long "
    "on an H200.",
    seeded=False,
    serial=True,
)  # fmt: skip
