"""How fast a network is trained on a GPU and on the processor, and when it is good enough."""

import math
import tempfile
from pathlib import Path
from typing import Any

from softcr_models.devices import gpu_name
from softcr_models.robots.robot import load_robot
from softcr_studies.frame.study import Result
from softcr_studies.speed import timing
from softcr_studies.speed.gpu_batches import GpuEffort, require_gpu

ROBOT = "licher2025"
_RATED = 60  # iterations that tell a rate
_OF_PROBE: dict[str, Any] = {"trajectories": 200, "noisy_samples": 20_000, "validate_every": 1.0}


def on_processor(effort: GpuEffort) -> Result:
    """Iterations per second [1/s] of a short training by the recipe of the shipped network."""
    from softcr_papers.licher2025.training.training import train
    from softcr_papers.licher2025.training.training_settings import TrainingSettings

    threads = timing.cores_available()
    # a part of what is usual where little time is given
    iterations = max(8, round(_RATED * min(1.0, effort.training_seconds / 60.0)))
    settings = TrainingSettings(
        iterations=iterations, device="cpu", threads=threads, **_OF_PROBE
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        _, card = train(load_robot(ROBOT), settings, Path(folder) / "network", resume=False)
    return {
        "rate": iterations / max(card.seconds["training"], 0.1),
        "iterations": iterations,
        "note": f"{threads} thread(s), {iterations} iterations of the shipped network's recipe",
    }


def until_good_enough(effort: GpuEffort) -> Result:
    """A whole training on the GPU by its preset, ended after `training_seconds`.

    Returns:
        reached: when all figures were as good as they must be for the first time [s], counted from
        the first iteration, without the time in which the network was judged; NaN if never. data,
        prepared: what came before [s]; smooth, steps: last mean errors of the tip at full range
        [mm]; rate [1/s] and number of iterations.
    """
    require_gpu()
    from softcr_papers.licher2025.training.time_to_musts import time_to_musts

    found = time_to_musts(
        "cuda", effort.training_seconds, ROBOT, lambda line: print(line, flush=True)
    )
    last = {name.split(" [")[0]: value for name, value in found.figures.items()}
    return {
        "reached": math.nan if found.all_reached is None else found.all_reached,
        "data": found.data,
        "prepared": found.prepared,
        "smooth": last.get("smooth 100 %: tip position", math.nan),
        "steps": last.get("lagged steps 100 %: tip position", math.nan),
        "iterations": found.iterations,
        "rate": found.rate,
        "note": f"on {gpu_name()}, preset gpu; all six figures, as long as iterations took",
    }
