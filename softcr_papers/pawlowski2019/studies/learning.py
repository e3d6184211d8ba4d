"""Sec. 4.4.3 of Pawlowski (2019): policies that bring the tip to points and along trajectories.

Tasks and reward are the thesis's. DDPG is that of stable-baselines3, guided policy search (GPS) is
our own, with exact derivatives or, as in the thesis, with dynamics fitted to motions. Every policy
learns on a rod of 10 intervals and is judged on one of 20 with half the time steps, on goals that
it has not seen. No gravity, as in the thesis.
"""

import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from softcr_papers.pawlowski2019.learning.environment import Environment
from softcr_papers.pawlowski2019.learning.evaluation import Circle, CircleTask, Judgement, judge
from softcr_papers.pawlowski2019.learning.goals import (
    QUANTILE,
    BoxGoals,
    OneGoal,
    box_around,
    tips_in_motion,
)
from softcr_papers.pawlowski2019.learning.judging import Judging
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.plant_settings import PlantSettings
from softcr_papers.pawlowski2019.learning.tasks import Reaching, Tracking
from softcr_papers.pawlowski2019.learning.training import train
from softcr_papers.pawlowski2019.learning.training_settings import TrainingSettings
from softcr_papers.pawlowski2019.policy.network import PolicyNetwork
from softcr_papers.pawlowski2019.policy.policy_file import save_policy
from softcr_papers.pawlowski2019.reference.workspace import tip_of
from softcr_papers.pawlowski2019.studies import targets
from softcr_papers.pawlowski2019.studies.robots import floating
from softcr_papers.pawlowski2019.studies.targets import LENGTH, RADII, circle_height
from softcr_runtime.console.panels import panels
from softcr_studies.frame.study import (
    Cell,
    Metric,
    Must,
    Published,
    Result,
    Results,
    Row,
    Study,
    StudySettings,
)

POINT, ANY, TRACK = "RL1, a single point", "RL2, any point", "RL3, trajectories"
SPEED = "steps of the environment"

STRICT, COMMON = BoxGoals(targets.STRICT), BoxGoals(targets.COMMON)
"""Goals in the boxes of all tips in motion and of nearly all."""

STATIC_BEND = 5.8  # [1/m], the largest at rest
CIRCLE = Circle(RADII["middle circle"], circle_height(RADII["middle circle"]))
"""The circle of the study of predictive controllers, in four seconds, two laps."""

ALGORITHMS = {
    "GPS": "gps", "fitted GPS": "fitted_gps", "gradient": "gradient", "TD3": "td3", "DDPG": "ddpg",
    "SAC": "sac", "PPO": "ppo",
}  # fmt: skip

_POINTS: dict[str, dict[str, Any]] = {
    "GPS": {"environments": 8, "updates": 100},
    "TD3": {"noise": 1.0, "last_rate": 1.0},
    "DDPG": {"noise": 1.0, "last_rate": 1.0},
}
_TRACKS: dict[str, dict[str, Any]] = {
    "GPS": {"environments": 24}, "TD3": {"noise": 0.3}, "DDPG": {"noise": 0.3},
}  # fmt: skip
"""What differs from the algorithms' defaults."""

_LONGER = dict.fromkeys(("DDPG", "GPS", "fitted GPS", "gradient"), 2)
"""Samples for any point over those of the settings: within 250 k samples and five minutes."""

_NEVER = "the bounds of both boxes were never kept at once while it learned"

FRESH = 2_000_003
ROUGH = 1.0
"""Largest error of a step while policies learn [1/s]: ten times the usual one saves five sixths of
the time."""


class Settings(StudySettings):
    """See StudySettings; the samples are per policy."""

    points: int = Field(2, ge=1, le=100, description="single points, which differ for every seed")
    samples: int = Field(
        90_000,
        ge=100,
        description="samples for any point, TD3 and SAC; twice as many for the others",
    )
    ppo_samples: int = Field(3_500_000, ge=100, description="samples for any point, PPO")
    tracking_samples: int = Field(30_000, ge=100, description="samples for trajectories")
    point_samples: int = Field(
        30_000, ge=100, description="largest number of samples for one point"
    )
    goals: int = Field(
        1024, ge=1, le=65536, description="number of new goals of the last evaluation"
    )


def run(cell: Cell) -> Result:
    """See the functions below."""
    if cell.case == SPEED:
        return _speed(int(cell.method.split()[0]))
    work = {POINT: _points, ANY: _any_point, TRACK: _trajectories}[cell.case]
    return work(cell)


def _settings(cell: Cell, samples: int, **given: Any) -> TrainingSettings:
    """Of the method of a cell."""
    return TrainingSettings.of(ALGORITHMS[cell.method], seed=cell.seed, samples=samples, **given)


@cache
def _plants() -> tuple[Plant, Plant, Plant]:
    """What policies learn on, what chooses the best while they learn, what they are judged on."""
    rough = PlantSettings(largest_error=ROUGH)
    fine, exact = rough.finer(), PlantSettings().finer()
    return Plant(floating(), rough), Plant(floating(), fine), Plant(floating(), exact)


def _points(cell: Cell) -> Result:
    """RL1: a policy for each of some points that no tip can stand at."""
    learnt, _, judged = _plants()
    found, seconds, samples = [], [], []
    count = cell.settings.points
    for i, place in enumerate(far_points(count, cell.random("points"))):
        task = Reaching(learnt, OneGoal(place))
        given, seed = _POINTS[cell.method], count * cell.seed + i
        own = _settings(cell, cell.settings.point_samples, **given).model_copy(
            update={"seed": seed}
        )
        judging = Judging(judged, task, 800, 1, enough=lambda figures: figures.reached == 1.0)
        last = train(learnt, task, own, judging).history[-1]
        found.append(100.0 * last.figures.reached)
        seconds.append(last.seconds)
        samples.append(last.samples)
    return {
        "reached": np.mean(found), "longest": np.max(seconds), "seconds": np.mean(seconds),
        "samples": np.mean(samples),
    }  # fmt: skip


def far_points(count: int, random: np.random.Generator) -> np.ndarray:
    """(count, 3) points of the common box, bent further than any tip at rest [m]."""
    low = (1.2 * STATIC_BEND, -np.pi, -0.015)
    high = (COMMON.box.curvature, np.pi, 0.0)
    return tip_of(random.uniform(low, high, (count, 3)), LENGTH)


def _any_point(cell: Cell) -> Result:
    """RL2: one policy for all points of the strict box."""
    learnt, watched, judged = _plants()
    task = Reaching(learnt, STRICT)
    samples = cell.settings.ppo_samples if cell.method == "PPO" else cell.settings.samples
    settings = _settings(cell, samples * _LONGER.get(cell.method, 1))
    trained = train(learnt, task, settings, Judging(watched, task, samples // 12, 512))
    save_policy(trained.policy, cell.folder / f"{ALGORITHMS[cell.method]}_{cell.seed}")
    training, network = trained.policy.card.training, trained.policy.network
    goals = cell.settings.goals
    strict = judge(network, judged, task, goals, FRESH + cell.seed)
    common = judge(network, judged, Reaching(judged, COMMON), goals, FRESH + cell.seed)
    coarse = judge(network, learnt, task, goals, FRESH + cell.seed)
    curve = np.array([_shares(report.judgement) for report in trained.history])
    spent = np.array([(report.samples, report.seconds) for report in trained.history])
    asked = [STUDY.asked(ANY, cell.method, each) for each in (STRICTLY, COMMONLY)]
    wanted = [each.get("must", np.inf) for each in asked]  # nothing is asked of some methods
    enough = np.flatnonzero((curve >= wanted).all(axis=1))
    first = {} if not enough.size else {
        "samples to the bounds": spent[enough[0], 0], "seconds to the bounds": spent[enough[0], 1]
    }  # fmt: skip
    return first | {
        "strict": 100.0 * strict.figures.reached, "common": 100.0 * common.figures.reached,
        "strict, 10 intervals": 100.0 * coarse.figures.reached,
        "least": 100.0 * strict.figures.least, "broken": 100.0 * strict.figures.broken,
        "samples": spent[-1, 0], "seconds": spent[-1, 1],
        "ratio": _ratio(network, Environment(judged, task, 1, FRESH)),
        "curve": np.column_stack((spent, curve)),
        "goals": strict.goals, "reached goals": strict.reached,
        **({} if first or np.inf in wanted else {"note": _NEVER}),
        **({"lanes": lanes} if (lanes := training.get("derivative_lanes")) is not None else {}),
    }  # fmt: skip


def _ratio(network: PolicyNetwork, environment: Environment, count: int = 1000) -> float:
    """Processor time of observation and action of one rod over the period they hold for [-]."""
    for _ in range(count // 10):
        network(environment.observe())
    begin = time.process_time()
    for _ in range(count):
        network(environment.observe())
    return (time.process_time() - begin) / count / environment.plant.settings.period


def _shares(found: Judgement | None) -> tuple[float, float]:
    """Goals of the strict box that were reached, and of those of the common box [%]."""
    assert found is not None
    inside = COMMON.contains(found.goals)
    return 100.0 * found.reached.mean(), 100.0 * found.reached[inside].mean()


def _trajectories(cell: Cell) -> Result:
    """RL3: one policy for random trajectories, tried on a circle."""
    learnt, watched, judged = _plants()
    task = Tracking(learnt)
    judging = Judging(watched, task, 6000, 96, better=lambda new, old: new.mean < old.mean)
    settings = _settings(cell, cell.settings.tracking_samples, **_TRACKS[cell.method])
    trained = train(learnt, task, settings, judging)
    save_policy(trained.policy, cell.folder / f"{cell.method.lower()}_track_{cell.seed}")
    network = trained.policy.network
    circle = judge(network, judged, CircleTask(judged, CIRCLE), 1, 0).distances[0]
    others = judge(network, judged, task, 256, FRESH + cell.seed).figures
    lap = len(circle) // CIRCLE.laps
    return {
        "circle": 100.0 * circle.mean(), "later laps": 100.0 * circle[lap:].mean(),
        "trajectories": 100.0 * others.mean, "samples": trained.history[-1].samples,
        "seconds": trained.history[-1].seconds, "path": 100.0 * circle,
    }  # fmt: skip


def _speed(intervals: int) -> Result:
    """Steps of the environment in a second of processor time, with observation and reward."""
    plant = Plant(
        floating(),
        PlantSettings(intervals=intervals, linearisations=2 * intervals // 5, largest_error=ROUGH),
    )
    environment = Environment(plant, Reaching(plant, STRICT), 1024)
    random, durations = np.random.default_rng(0), []
    for _ in range(100):
        actions = random.uniform(-1.0, 1.0, (1024, 4)).astype(np.float32)
        begin = time.process_time()
        done = environment.step(actions).done
        environment.restart(done)
        environment.observe()
        durations.append(time.process_time() - begin)
    # of two runs each, so that a run's begin is in the mean
    return {"rate": 1e-3 * 1024 / np.mean(durations[50:])}


def boxes(results: Results) -> Iterable[Row]:
    """How large the boxes are that the plant's own tips under random held inputs ask for."""
    plant = _plants()[0]
    tips = tips_in_motion(plant)
    for name, share in (("strict box", 1.0), ("common box", QUANTILE)):
        box = box_around(plant, tips, share).box
        yield Row.of("boxes around tips in motion", name, "largest bending", [box.curvature], "1/m")
        for word, value in zip(("least", "largest"), box.stretch, strict=True):
            yield Row.of("boxes around tips in motion", name, f"{word} stretch", [value], "-")


def draw(results: Results, directory: Path) -> None:
    """Shares of goals that are reached, while the policies learn."""
    with panels(directory / "learning.png", ["reached, strict box [%]", "reached, common box [%]"],
                x="processor time of the training [s]", height=3.2) as rows:  # fmt: skip
        for (case, method), found in results.by_method().items():
            if case != ANY:
                continue
            for i, each in enumerate(found):
                label = method if i == 0 else None
                for axes, column in zip(rows, (2, 3), strict=True):
                    axes.plot(each["curve"][:, 1], each["curve"][:, column], label=label)


def _published(method: str, *values: float) -> list[Published]:
    """Figures of the thesis: points and samples for them; share, smallest distance and samples of
    any point; circle and samples of trajectories."""
    rows = (
        (POINT, REACHED), (POINT, "samples"), (ANY, STRICTLY), (ANY, LEAST), (ANY, "samples"),
        (TRACK, AROUND), (TRACK, "samples"),
    )  # fmt: skip
    return [
        Published(quantity, value, "simulation", case, method)
        for (case, quantity), value in zip(rows, values, strict=True)
    ]


def _methods(case: str) -> tuple[str, ...]:
    if case == SPEED:
        return ("5 intervals", "10 intervals")
    return ("GPS", "fitted GPS", "DDPG") if case == ANY else ("GPS", "DDPG")


REACHED, LONGEST = "points reached", "longest processor time of a point"
STRICTLY, COMMONLY = "goals reached, strict box", "goals reached, common box"
RATIO = "real-time ratio"
LEAST, AROUND = "smallest distance", "circle, distance"
SECONDS, RATE = "processor time until both boxes are kept", "steps per second"

STUDY = Study(
    name="pawlowski2019/learning",
    source="Pawlowski, MSc thesis, Sec. 4.4.3 and Table 4.1",
    summary="policies that bring the tip to points and along trajectories",
    run=run,
    cases=(POINT, ANY, TRACK, SPEED),
    methods=_methods,
    settings=Settings,
    metrics=(
        Metric(REACHED, "%", "reached"),
        Metric(LONGEST, "s", "longest", timing=True),
        Metric(STRICTLY, "%", "strict"),
        Metric(COMMONLY, "%", "common"),
        Metric("goals reached, strict box, 10 intervals", "%", "strict, 10 intervals"),
        Metric(LEAST, "% of L", "least"),
        Metric("broken rods", "%", "broken"),
        Metric(SECONDS, "s", "seconds to the bounds", timing=True),
        Metric("samples until both boxes are kept", "-", "samples to the bounds"),
        Metric(AROUND, "% of L", "circle"),
        Metric("circle, distance after the first lap", "% of L", "later laps"),
        Metric("random trajectories, distance", "% of L", "trajectories"),
        Metric("samples", "-", "samples"),
        Metric("lanes for derivatives", "-", "lanes"),
        Metric("processor time", "s", "seconds", timing=True),
        Metric(RATIO, "-", "ratio", timing=True),
        Metric(RATE, "1000/s", "rate", timing=True),
    ),
    published=(
        *_published("GPS", 100.0, 5_000, 94.0, 2.5, 250_000, 10.3, 500_000),
        *_published("fitted GPS", 100.0, 5_000, 94.0, 2.5, 250_000, 10.3, 500_000),
        *_published("DDPG", 100.0, 500_000, 83.6, 5.2, 500_000, 6.4, 1_000_000),
        *_published("TD3", 100.0, 500_000, 83.6, 5.2, 500_000, 6.4, 1_000_000),
    ),
    musts=(
        Must(REACHED, 100.0, at_least=True),
        Must(LONGEST, 30.0),
        *(Must(STRICTLY, 94.0, 97.0, None, each, at_least=True, of_worst=True)
          for each in ("GPS", "fitted GPS")),
        *(Must(STRICTLY, 90.0, 97.0, None, each, at_least=True, of_worst=True)
          for each in ("TD3", "DDPG")),
        *(Must(COMMONLY, 90.0, 97.0, None, each, at_least=True) for each in ("GPS", "fitted GPS")),
        *(Must(COMMONLY, 99.0, 99.9, None, each, at_least=True) for each in ("TD3", "DDPG")),
        Must(LEAST, 2.5, None, None, "GPS"),
        Must(LEAST, 5.2, None, None, "DDPG"),
        Must(AROUND, 5.0, 1.0, None, "GPS"),
        Must(SECONDS, 300.0, 90.0),
        Must(AROUND, 3.0, 1.0),
        Must(RATE, 150.0, 300.0, SPEED, "5 intervals", at_least=True),
        Must(RATE, 60.0, 95.0, SPEED, "10 intervals", at_least=True),
    ),
    exact="Policies learn on a rod of 10 intervals and steps of 2.5 ms and are judged on one of "
    "20 and 1.25 ms, without noise, on goals that they have not seen: the equations are the "
    "same, the grid and the steps are not, and a step may be ten times less exact while they "
    "learn. A goal is reached when the tip comes within 5 % of the length at some step of 50. "
    "The policy that is judged at the end is the one that was best while it learned, on other "
    "goals.",
    about={
        "strict box": str(STRICT),
        "common box": str(COMMON),
        "figures of the thesis": "RL2: goals of its own "
        "dynamic workspace, whose bounds it does not print; DDPG: mean of five trainings of 50 "
        "goals; GPS: of ten. Its circle has no period",
        "samples of GPS, fitted GPS and gradient": "steps of rods along motions; those for "
        "derivatives are counted apart. Fitted GPS, the thesis's way, takes none",
        "processor time": "of the training, on the machine named above, busy with other work; "
        "judgements are not counted",
        "steps of the environment": "5 intervals: 10 sub-steps, 2 linearisations a step; 10 "
        "intervals: 20 sub-steps, 4 linearisations; 1024 rods, observation, reward and the begin "
        "of runs included",
    },
    further_rows=boxes,
    draw=draw,
    quick={"points": 1, "samples": 5000, "ppo_samples": 100_000, "tracking_samples": 5000,
           "point_samples": 5000, "goals": 256},
)  # fmt: skip
