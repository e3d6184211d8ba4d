"""How long a training takes until its network is as good as it must be.

    python -m softcr_papers.licher2025.training.time_to_musts --device cuda --seconds 60

A line for every time the network was judged, and all that was found as JSON at the end. With
`--set loop_batch=768 learning_rate=0.004` a recipe other than the preset is tried.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numba
import torch

from softcr_models.robots.robot import load_robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.surrogate.ddpinn import DDPINN
from softcr_papers.licher2025.training import training_data
from softcr_papers.licher2025.training.sampling import Trajectories
from softcr_papers.licher2025.training.training import Progress, fitting, train
from softcr_papers.licher2025.training.training_settings import PRESETS, TrainingSettings
from softcr_papers.licher2025.training.verification import MOTIONS, QUANTITIES, Verification

# motions of `Verification`, quantity -> mean distance from the rod that is small enough
MUSTS = {
    ("smooth 70 %", "tip position"): 0.27,
    ("smooth 70 %", "tip rotation"): 0.003,
    ("smooth 70 %", "base force"): 0.06,
    ("smooth 70 %", "base moment"): 1.0,
    ("smooth 100 %", "tip position"): 0.55,
    ("lagged steps 100 %", "tip position"): 0.9,
}
COUNT, TICKS = 8, 700  # motions of each kind that a network is judged by, and their steps


@dataclass
class TimeToMusts:
    """What was found. Times [s] are without those in which the network was judged.

    Attributes:
        data: time that the motions of the rod took.
        prepared: ... what came after it, until the first iteration.
        training: ... all iterations that were done.
        done: part of the planned iterations that was done.
        iterations: their number.
        rate: iterations per second [1/s].
        reached: name of a figure -> time from the first iteration until it first met its must.
        all_reached: ... until all met theirs at once; None if they never did.
        figures: name -> the last value, in the units of QUANTITIES.
    """

    data: float = 0.0
    prepared: float = 0.0
    training: float = 0.0
    done: float = 0.0
    iterations: int = 0
    rate: float = 0.0
    reached: dict[str, float] = field(default_factory=dict)
    all_reached: float | None = None
    figures: dict[str, float] = field(default_factory=dict)


class _TimeIsUp(Exception):
    """The training took longer than it may."""


class _Observer:
    """Looks on while a network is trained: what `train` reports to, and judges the network by."""

    def __init__(self, rod: CosseratRod, seconds: float, tell: Callable[[str], None]) -> None:
        """For a network of a rod that may be trained for so long [s]; every line is told."""
        self._rod, self._seconds, self._tell = rod, seconds, tell
        self._motions: dict[str, Trajectories] = {}
        self.found = TimeToMusts()
        self.begun: float | None = None  # first iteration, on the clock of `now`
        self._judging = 0.0

    def now(self) -> float:
        """A clock [s] that stands still while the network is judged."""
        return time.monotonic() - self._judging

    def report(self, progress: Progress) -> None:
        """Of `train`; ends it when its time is up."""
        if progress.phase != "training":
            return
        if self.begun is None:
            self.begun = self.now()
        self.found.training = self.now() - self.begun
        self.found.done = progress.done
        if self.found.training > self._seconds:
            raise _TimeIsUp

    def judge(self, network: DDPINN) -> dict[str, float]:
        """Mean distances from the rod, by name of the motions and of the quantity."""
        if network.mean.device.type == "cuda":
            torch.cuda.synchronize()
        begun = time.monotonic()
        since = self.now() - (self.begun or self.now())
        verification = Verification(self._rod, network, COUNT, TICKS)
        figures: dict[tuple[str, str], float] = {}
        for name in MOTIONS:
            motions = self._motions.get(name) or verification.motions(name)
            self._motions[name] = motions
            table, _ = verification.table(motions)
            figures |= {(name, quantity): mean for quantity, (mean, _) in table.items()}
        met = [key for key, most in MUSTS.items() if figures[key] <= most]
        found = self.found
        found.figures = {_name(key): figures[key] for key in MUSTS}
        for key in met:
            found.reached.setdefault(_name(key), since)
        if len(met) == len(MUSTS) and found.all_reached is None:
            found.all_reached = since
        told = ", ".join(f"{name} {value:.4g}" for name, value in found.figures.items())
        self._tell(f"{since:6.1f} s: {told}; {len(met)} of {len(MUSTS)} are good enough")
        self._judging += time.monotonic() - begun
        return found.figures


def time_to_musts(
    device: str,
    seconds: float,
    robot: str = "licher2025",
    tell: Callable[[str], None] = lambda line: None,
    **changes: Any,
) -> TimeToMusts:
    """Trains a network from nothing, and says when it met MUSTS.

    Args:
        device: "cuda": the preset "gpu"; "cpu": the preset "softcr".
        seconds: after which the training is stopped.
        robot: name or YAML file.
        tell: told of every line.
        changes: other values of TrainingSettings.

    Raises:
        UserError: the robot or the settings cannot be used, or losses were not finite.
    """
    preset = PRESETS["gpu" if device == "cuda" else "softcr"]()
    told = {"device": device, "validate_every": 0.1, **changes}
    settings = TrainingSettings.model_validate(preset.model_dump() | told)
    described = load_robot(robot)
    rod = CosseratRod(described, settings.intervals)
    numba.set_num_threads(min(settings.threads, numba.config.NUMBA_NUM_THREADS))
    begun = time.monotonic()
    data = training_data.rod_data(rod, fitting(settings, rod))
    made = time.monotonic()
    tell(f"data: {made - begun:.1f} s with {numba.get_num_threads()} threads")
    observer = _Observer(rod, seconds, tell)
    with tempfile.TemporaryDirectory() as folder, suppress(_TimeIsUp):
        train(described, settings, Path(folder) / "network", observer.report, resume=False,
              data=data, validation=observer.judge)  # fmt: skip
    found = observer.found
    found.data, found.prepared = made - begun, (observer.begun or observer.now()) - made
    found.iterations = round(found.done * settings.iterations)
    found.rate = found.iterations / max(found.training, 1e-3)
    return found


def _name(key: tuple[str, str]) -> str:
    """Of a figure, with its unit."""
    return f"{key[0]}: {key[1]} [{QUANTITIES[key[1]]}]"


def _value(word: str) -> Any:
    """A number or a list, or the word itself."""
    try:
        return json.loads(word)
    except json.JSONDecodeError:
        return word


def main(words: Sequence[str]) -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m softcr_papers.licher2025.training.time_to_musts", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="longest duration of the training [s]"
    )
    parser.add_argument("--robot", default="licher2025", help="name or YAML file")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE",
                        help="settings of the training")  # fmt: skip
    given = parser.parse_args(words)
    changes = dict(each.split("=", 1) for each in given.set)
    changes = {name: _value(value) for name, value in changes.items()}
    found = time_to_musts(
        given.device, given.seconds, given.robot, lambda line: print(line, flush=True), **changes
    )
    print(json.dumps(asdict(found), indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
