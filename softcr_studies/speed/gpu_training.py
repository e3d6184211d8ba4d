"""How fast a network is trained on a GPU and on the processor, and when it is good enough."""

import math
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from softcr_models.devices import gpu_name
from softcr_models.robot import load_robot
from softcr_studies.speed import timing
from softcr_studies.speed.gpu_batches import GpuEffort, require_gpu
from softcr_studies.study import Result

ROBOT = "licher2025"
GOOD_ENOUGH = {"tip smooth mm": 0.55, "tip steps mm": 0.9}
"""Mean tip error [mm] of free-running motions; those of study licher2025/surrogate-accuracy."""

_RATED = {"cuda": 1500, "cpu": 60}  # iterations that tell a rate
_OF_PROBE: dict[str, Any] = {"trajectories": 200, "noisy_samples": 20_000, "validate_every": 1.0}


class _TimeIsUp(Exception):
    """The training took longer than it may."""


@cache
def rate(device: str, effort: GpuEffort) -> Result:
    """Iterations per second [1/s] over all stages of a short training with the usual numbers."""
    if device == "cuda":
        require_gpu()
    from softcr_learning.surrogate.training import train
    from softcr_learning.surrogate.training_settings import TrainingSettings

    threads = timing.cores_available()
    # a part of what is usual where little time is given
    iterations = max(8, round(_RATED[device] * min(1.0, effort.training_seconds / 60.0)))
    settings = TrainingSettings(
        iterations=iterations, device=device, threads=threads, **_OF_PROBE  # type: ignore[arg-type]
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        _, card = train(load_robot(ROBOT), settings, Path(folder) / "network", resume=False)
    where = f"on {gpu_name()}" if device == "cuda" else f"{threads} thread(s)"
    return {
        "rate": iterations / max(card.seconds["training"], 0.1),
        "iterations": iterations,
        "note": f"{where}, {iterations} iterations of the shipped recipe, stages in their shares",
    }


def until_good_enough(effort: GpuEffort) -> Result:
    """A whole training on the GPU, as many iterations as fit into the time that is given.

    Returns:
        reached: when both errors of GOOD_ENOUGH were kept for the first time [s], counted from the
        first iteration, NaN if never; data: what came before [s]; the last errors [mm];
        iterations done.
    """
    require_gpu()
    from softcr_learning.surrogate import training_data
    from softcr_learning.surrogate.training import Progress, fitting, train
    from softcr_learning.surrogate.training_settings import TrainingSettings
    from softcr_models.rod.cosserat_rod import CosseratRod

    usual = TrainingSettings()
    known = rate("cuda", effort)["rate"]
    # three quarters: what is validated, and a first iteration that records, take their part
    iterations = int(min(usual.iterations, max(200, 0.75 * known * effort.training_seconds)))
    settings = usual.model_copy(
        update={"iterations": iterations, "device": "cuda", "threads": timing.cores_available()}
    )
    robot = load_robot(ROBOT)
    rod = CosseratRod(robot, settings.intervals)
    begun = time.monotonic()
    data = training_data.rod_data(rod, fitting(settings, rod))
    made = time.monotonic()
    first: list[float] = []  # when the first iteration was over
    figures: dict[str, float] = {}
    reached = math.nan

    def report(progress: Progress) -> None:
        nonlocal reached
        now = time.monotonic()
        if progress.phase == "training" and not first:
            first.append(now)
        if progress.validation:
            figures.update(progress.validation)
            good = all(figures.get(name, math.inf) <= most
                       for name, most in GOOD_ENOUGH.items())  # fmt: skip
            if good and first and math.isnan(reached):
                reached = now - first[0]
        if first and now - first[0] > 2.0 * effort.training_seconds:
            raise _TimeIsUp

    with tempfile.TemporaryDirectory() as folder, suppress(_TimeIsUp):
        train(robot, settings, Path(folder) / "network", report, resume=False, data=data)
    prepared = (first[0] if first else time.monotonic()) - made
    return {
        "reached": reached,
        "data": made - begun,
        "prepared": prepared,
        "smooth": figures.get("tip smooth mm", math.nan),
        "steps": figures.get("tip steps mm", math.nan),
        "iterations": iterations,
        "rate": known,
        "note": f"on {gpu_name()}, the shipped recipe with {iterations} iterations",
    }
