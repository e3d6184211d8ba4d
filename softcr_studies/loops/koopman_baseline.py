"""The baseline of Licher et al. 2025, Sec. V-B3: it learns from the plant it is to control.

15 minutes of random steps on the very plant of the case, through the same pressure chain, delay and
noise. The ridge is the one that predicts left-out steps best; lift and weights are those that
follow three validation references best, which are in no study (the paper tuned its weights in
simulation, too). One of them lies near the edge of the pressures: designs that are equally good in
the middle differ there from 5 to 42 mm, by the noise of the data alone. The paper sampled at 60 Hz;
here the one loop that all controllers share runs at 70 Hz, and so does this one.
"""

import dataclasses
import fcntl
import hashlib
import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from softcr_control.reference.settings import ReferenceSettings
from softcr_models import Robot
from softcr_models.errors import UserError
from softcr_models.kernel_cache import cache_home
from softcr_runtime.blocks.virtual_run import Log, run_blocks
from softcr_studies.frame.code_version import code_version
from softcr_studies.koopman.file import KoopmanDesign, load_design, save_design
from softcr_studies.koopman.lifted_model import KoopmanModel, Lift, Trial, identified
from softcr_studies.koopman.lqr import StaticModel, Weights
from softcr_studies.koopman.selection import select
from softcr_studies.loops.closed_loop import mean_error_mm, open_loop
from softcr_studies.loops.tracking_loop import (
    BASELINE,
    PERIOD,
    RATE_HZ,
    SETTLED,
    Case,
    plant_of,
    run_loop,
    sampled_reference,
    with_errors,
)

VALIDATION = (
    (ReferenceSettings(kind="trajectory", frequencies=(0.15, 0.5, 1.1)), 6.0),
    (ReferenceSettings(kind="setpoint", inputs=(20e3, 50e3, 35e3)), 4.0),
)
"""References in the middle of the pressures, and for how long [s]."""
_NEAR_THE_EDGE = (ReferenceSettings(kind="setpoint", inputs=(2e3, 55e3, 28e3)), 4.0)


@dataclass(frozen=True)
class Recipe:
    """How the baseline is made.

    Attributes:
        seconds: of random steps [s], cut into `parts` for the cross-validation.
        highest: of the steps, which begin at 0 [Pa].
        holds: shortest and longest time between steps [s].
        settled: after so long a held step counts as static [s].
        ridges: of which each lift takes the one that predicts best over `horizon` [s].
        lifts: judged in the loop on validation references, at the first of the weights.
        weights: likewise, at the best of the lifts.
        seed: of the steps; sensors have streams of their own.
    """

    seconds: float = 900.0
    parts: int = 10
    highest: float = 60e3
    holds: tuple[float, float] = (1.0, 4.0)
    settled: float = 2.0
    ridges: tuple[float, ...] = (1e-8, 1e-6, 1e-4)
    horizon: float = 0.5
    lifts: tuple[Lift, ...] = (Lift(4, 1), Lift(4, 2), Lift(4, 2, True), Lift(8, 2))
    weights: tuple[Weights, ...] = tuple(
        Weights(*numbers) for numbers in itertools.product((0.2, 0.1, 0.05, 0.4), (0.0, 0.1), (30,))
    )
    seed: int = 1000


FULL = Recipe()
_SEEN = "mocap/tip/pose"


def baseline(robot: Robot, teacher: Case, recipe: Recipe = FULL) -> KoopmanDesign:
    """What was learned before, of the same plant by the same recipe and code, or is learned now.

    Processes that ask for the same at once wait for the first of them, which learns it.

    Raises:
        UserError: nothing of the recipe stabilises the plant.
    """
    stem = cache_directory() / _digest(robot, teacher, recipe)
    stem.parent.mkdir(parents=True, exist_ok=True)
    with stem.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # ends with the process that holds it, too
        if stem.with_suffix(".json").is_file():
            try:
                return load_design(stem)
            except UserError:  # half written: made again
                pass
        design = learned(robot, teacher, recipe)
        save_design(stem, design)
        return design


def learned(robot: Robot, teacher: Case, recipe: Recipe) -> KoopmanDesign:
    """The best of the recipe.

    Raises:
        UserError: nothing of the recipe stabilises the plant.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        judge = _judge(robot, teacher, recipe)
        trials = random_steps(robot, teacher, recipe)
        static = StaticModel.identified(trials, round(recipe.settled / PERIOD))
        models = [_model(trials, lift, recipe) for lift in recipe.lifts]
        lifted = _best([KoopmanDesign(each, static, recipe.weights[0]) for each in models], judge)
        weighed = [dataclasses.replace(lifted, weights=weights) for weights in recipe.weights]
        return _best(weighed, judge)


def random_steps(robot: Robot, teacher: Case, recipe: Recipe) -> list[Trial]:
    """Measured tips (T, 3) [m] and commands (T, m) [Pa] of the plant, in consecutive parts.

    As in the loop, what is commanded at a sample acts from the next one on.
    """
    # every command is followed, every pose seen: it is the motion that is learned
    heard = dataclasses.replace(teacher, errors=with_errors(teacher.errors, dropout=0.0))
    sensors = recipe.seed + 1
    plant = plant_of(robot, heard, sensors)
    random = np.random.default_rng(recipe.seed)
    samples = round(recipe.seconds / PERIOD)
    longest = round(samples * PERIOD / recipe.holds[0]) + 1  # steps that there can be
    lengths = np.rint(random.uniform(*recipe.holds, longest) / PERIOD).astype(int)
    levels = random.uniform(0.0, recipe.highest, (longest, len(robot.actuators)))
    commands = np.repeat(levels, lengths, axis=0)[:samples]
    log = Log(_SEEN)
    run_blocks(open_loop(robot, plant, commands, samples, RATE_HZ, sensors), log)
    tips = np.array([pose.position for pose in log.values(_SEEN)])
    parts = (np.array_split(values, recipe.parts) for values in (tips, commands))
    return [Trial(*pair) for pair in zip(*parts, strict=True)]


def cache_directory() -> Path:
    """Where designs are kept."""
    return cache_home() / "koopman"


def _model(trials: Sequence[Trial], lift: Lift, recipe: Recipe) -> KoopmanModel:
    """With the ridge that predicts left-out parts best."""
    candidates = [(lift, ridge) for ridge in recipe.ridges]
    steps, folds = round(recipe.horizon / PERIOD), min(3, recipe.parts)
    return identified(
        trials, lift, select(trials, candidates, steps, folds, PERIOD)[0].ridge, PERIOD
    )


def _best(
    designs: Sequence[KoopmanDesign], judge: Callable[[KoopmanDesign], float]
) -> KoopmanDesign:
    errors = []
    for design in designs:
        try:
            errors.append(judge(design))
        except (UserError, ArithmeticError):  # no stabilising gain, or the simulated plant diverged
            errors.append(float("inf"))
    best = int(np.argmin(errors))
    if not np.isfinite(errors[best]):
        raise UserError(f"koopman: none of {len(designs)} designs stabilises the plant")
    return designs[best]


def _judge(robot: Robot, teacher: Case, recipe: Recipe) -> Callable[[KoopmanDesign], float]:
    """Mean settled tip error of a design over the validation references [mm]."""
    cases = [
        Case(
            "validation", settings.model_copy(update={"duration": seconds}), seconds,
            **_of_plant(teacher),
        )
        for settings, seconds in (*VALIDATION, _NEAR_THE_EDGE)
    ]  # fmt: skip
    sources = [sampled_reference(robot, case.reference) for case in cases]
    seeds = recipe.seed + 2, 0  # the regulator draws nothing

    def judge(design: KoopmanDesign) -> float:
        runs = [
            run_loop(robot, case, source, BASELINE, seeds, design=design)
            for case, source in zip(cases, sources, strict=True)
        ]
        return float(np.mean([mean_error_mm(run, SETTLED) for run in runs]))

    return judge


def _of_plant(teacher: Case) -> dict[str, Any]:
    """What a case says of its plant."""
    names = ("errors", "plant_intervals", "beam", "latency")
    return {name: getattr(teacher, name) for name in names}


def _digest(robot: Robot, teacher: Case, recipe: Recipe) -> str:
    plant = _of_plant(teacher) | {"errors": teacher.errors.changed()}
    described = [robot.model_dump(), plant, dataclasses.asdict(recipe)]
    text = json.dumps([described, code_version(Path(__file__))])
    return hashlib.sha256(text.encode()).hexdigest()[:24]
