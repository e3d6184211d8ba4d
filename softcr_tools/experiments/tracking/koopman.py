"""The baseline of Licher et al. 2025, Sec. V-B3: it learns from the plant it is to control.

15 minutes of random steps on the very plant of the case, through the same pressure chain, delay and
noise. The ridge is the one that predicts left-out steps best; lift, range of the steps and weights
are those that follow two validation references best, which are in no experiment (they tuned its
weights in simulation, too). They sampled at 60 Hz; here the one loop that all controllers share
runs at 70 Hz, and so does this one.
"""

import dataclasses
import hashlib
import inspect
import itertools
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from softcr_control import koopman, koopman_lqr, koopman_selection
from softcr_control.koopman import KoopmanModel, Lift, Trial, identified
from softcr_control.koopman_file import KoopmanDesign, load_design, save_design
from softcr_control.koopman_lqr import StaticModel, Weights
from softcr_control.koopman_selection import select
from softcr_control.reference_settings import ReferenceSettings
from softcr_models import Robot
from softcr_models.errors import UserError
from softcr_studies.virtual_runs import Log, open_loop, run_blocks
from softcr_tools.experiments.tracking.cases import RATE_HZ, RIVAL, Case, Difference
from softcr_tools.experiments.tracking.loop import PERIOD, run_loop, sampled_reference
from softcr_tools.experiments.tracking.plant import DifferentPlant
from softcr_tools.experiments.tracking.table import settled_error_mm

VALIDATION = (
    (ReferenceSettings(kind="trajectory", frequencies=(0.15, 0.5, 1.1)), 6.0),
    (ReferenceSettings(kind="setpoint", inputs=(20e3, 50e3, 35e3)), 4.0),
)
"""References that weights are judged on, and for how long [s]."""


@dataclass(frozen=True)
class Recipe:
    """How the rival is made.

    Attributes:
        seconds: of random steps [s], cut into `parts` for the cross-validation.
        highest: ranges of the steps, from 0 to this pressure [Pa].
        holds: shortest and longest time between steps [s].
        settled: after so long a held step counts as static [s].
        ridges: of which each lift takes the one that predicts best over `horizon` [s].
        lifts: judged in the loop on VALIDATION, with every range, at the first of the weights.
        weights: judged in the loop on VALIDATION, at the best of the lifts.
        seed: of steps and sensors.
    """

    seconds: float = 900.0
    parts: int = 10
    highest: tuple[float, ...] = (60e3,)
    holds: tuple[float, float] = (1.0, 4.0)
    settled: float = 2.0
    ridges: tuple[float, ...] = (1e-8, 1e-6, 1e-4)
    horizon: float = 0.5
    lifts: tuple[Lift, ...] = (Lift(4, 1), Lift(4, 2), Lift(4, 2, True), Lift(8, 2))
    weights: tuple[Weights, ...] = tuple(
        Weights(*numbers) for numbers in itertools.product((0.1, 0.05, 0.2, 0.4), (0.0, 0.1), (30,))
    )
    seed: int = 1000


FULL = Recipe()
_SEEN = "mocap/tip/pose"


def random_steps(
    robot: Robot, difference: Difference, recipe: Recipe, highest: float
) -> list[Trial]:
    """Measured tips (T, 3) [m] and commands (T, m) [Pa] of the plant, in consecutive parts.

    As in the loop, what is commanded at a sample acts from the next one on.
    """
    # every command is followed, every pose seen: it is the motion that is learned
    heard = dataclasses.replace(difference, latency=0, dropout=0.0)
    plant = DifferentPlant(robot, heard, recipe.seed)
    random = np.random.default_rng(recipe.seed)
    samples = round(recipe.seconds / PERIOD)
    commands = _steps(random, samples, recipe.holds, highest, len(robot.actuators))
    log = Log(_SEEN)
    run_blocks(open_loop(robot, plant, commands, samples, RATE_HZ, recipe.seed), log)
    tips = np.array([pose.position for pose in log.values(_SEEN)])
    return [
        Trial(*pair)
        for pair in zip(
            np.array_split(tips, recipe.parts),
            np.array_split(commands, recipe.parts),
            strict=True,
        )
    ]


def learned(
    robot: Robot,
    difference: Difference,
    recipe: Recipe,
    begun: Callable[[str], None] = lambda what: None,
) -> KoopmanDesign:
    """The best of the recipe.

    Args:
        begun: called before each of `work(recipe)` steps.

    Raises:
        UserError: nothing of the recipe stabilises the plant.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        judge = _judge(robot, difference, recipe)
        models = [
            KoopmanDesign(*pair, recipe.weights[0])
            for highest in recipe.highest
            for pair in _models(robot, difference, recipe, highest)
        ]
        lifted = _best(models, judge, lambda: begun("koopman tries lifts"))
        weighed = [dataclasses.replace(lifted, weights=weights) for weights in recipe.weights]
        return _best(weighed, judge, lambda: begun("koopman tries weights"))


def work(recipe: Recipe) -> int:
    """Steps of `learned`."""
    return len(recipe.highest) * len(recipe.lifts) + len(recipe.weights)


def _models(
    robot: Robot, difference: Difference, recipe: Recipe, highest: float
) -> list[tuple[KoopmanModel, StaticModel]]:
    """One for each lift, with the ridge that predicts left-out parts best."""
    trials = random_steps(robot, difference, recipe, highest)
    static = StaticModel.identified(trials, round(recipe.settled / PERIOD))
    steps, folds = round(recipe.horizon / PERIOD), min(3, recipe.parts)
    pairs = []
    for lift in recipe.lifts:
        candidates = [(lift, ridge) for ridge in recipe.ridges]
        ridge = select(trials, candidates, steps, folds, PERIOD)[0].ridge
        pairs.append((identified(trials, lift, ridge, PERIOD), static))
    return pairs


def _best(
    designs: Sequence[KoopmanDesign],
    judge: Callable[[KoopmanDesign], float],
    begun: Callable[[], None],
) -> KoopmanDesign:
    errors = []
    for design in designs:
        begun()
        try:
            errors.append(judge(design))
        except (UserError, ArithmeticError):  # no stabilising gain, or the plant was driven mad
            errors.append(float("inf"))
    best = int(np.argmin(errors))
    if not np.isfinite(errors[best]):
        raise UserError(f"koopman: none of {len(designs)} designs stabilises the plant")
    return designs[best]


def _judge(
    robot: Robot, difference: Difference, recipe: Recipe
) -> Callable[[KoopmanDesign], float]:
    """Mean settled tip error of a design over VALIDATION [mm]."""
    cases = [
        Case("validation", settings.model_copy(update={"duration": seconds}), seconds,
             difference=difference)
        for settings, seconds in VALIDATION
    ]  # fmt: skip
    sources = [sampled_reference(robot, case.reference) for case in cases]

    def judge(design: KoopmanDesign) -> float:
        errors = [
            settled_error_mm(run_loop(robot, case, source, RIVAL, recipe.seed + 1, koopman=design))
            for case, source in zip(cases, sources, strict=True)
        ]
        return float(np.mean(errors))

    return judge


def cached(
    robot: Robot,
    difference: Difference,
    recipe: Recipe,
    begun: Callable[[str], None] = lambda what: None,
) -> KoopmanDesign:
    """What was `learned` before, of the same plant by the same recipe and program, or is now."""
    stem = cache_directory() / _digest(robot, difference, recipe)
    if stem.with_suffix(".json").is_file():
        try:
            return load_design(stem)
        except UserError:  # half written, or of an older form: made again
            pass
    design = learned(robot, difference, recipe, begun)
    stem.parent.mkdir(parents=True, exist_ok=True)
    save_design(stem, design)
    return design


def cache_directory() -> Path:
    """Where designs are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "softcr" / "koopman"


def _digest(robot: Robot, difference: Difference, recipe: Recipe) -> str:
    described = [robot.model_dump(), dataclasses.asdict(difference), dataclasses.asdict(recipe)]
    sources = [inspect.getsource(module) for module in (koopman, koopman_lqr, koopman_selection)]
    text = json.dumps([described, sources, Path(__file__).read_text(encoding="utf-8")])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _steps(
    random: np.random.Generator,
    samples: int,
    holds: tuple[float, float],
    highest: float,
    chambers: int,
) -> np.ndarray:
    """(samples, chambers) [Pa]: every chamber anew after each hold."""
    longest = round(samples * PERIOD / holds[0]) + 1
    lengths = np.rint(random.uniform(*holds, longest) / PERIOD).astype(int)
    values = random.uniform(0.0, highest, (longest, chambers))
    return np.repeat(values, lengths, axis=0)[:samples]
