"""Which structure of a surrogate learns best, by asynchronous successive halving.

Neurons, layers, learning rate and ansatz terms, as in the paper; networks that fall behind are
stopped early.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from pydantic import Field

from softcr_models import CosseratRod, load_robot
from softcr_models.errors import UserError
from softcr_studies.search import (
    TRIAL,
    Range,
    Search,
    SearchSettings,
    Tried,
    importance,
    ranked,
    tried,
    turns,
)
from softcr_studies.study import Cell, Result, Results, Row, Study
from softcr_studies.tuning.tuned import write_trials

if TYPE_CHECKING:  # of an extra: studies are listed without
    import optuna

    from softcr_learning.surrogate.training_settings import TrainingSettings

FEWEST_VALIDATIONS = 2  # before a network may be stopped: the paper's grace of 300 epochs
REDUCTION = 3  # of three networks one goes on
BEST_SHOWN, LISTED = 5, 10
WORST_DRAWN = 100.0  # times the best; the paper's figure ends at a loss of 100
SPACE = {
    "activation": Range(choices=("gated", "silu")),
    "shapes": Range(choices=("shared", "network")),
    "neurons": Range(64, 512, log=True, whole=True),
    "layers": Range(1, 3, whole=True),
    "learning_rate": Range(3e-4, 1e-2, log=True),
    "terms": Range(1, 24, log=True, whole=True),
}
ERROR = "tip error"


class StructureSettings(SearchSettings):
    """See SearchSettings."""

    trials: int = SearchSettings.of_trials(72)
    robot: str = Field("licher2025", description="name or YAML file of a robot")
    iterations: int = Field(
        6000, ge=1, le=1_000_000, description="of a network that is not stopped early"
    )


def fixed_settings(settings: Any) -> "TrainingSettings":
    """What all networks of a search have in common, their data among it."""
    from softcr_learning.surrogate.training_settings import TrainingSettings

    return TrainingSettings(
        iterations=settings.iterations, trajectories=800, noisy_samples=100_000,
        seed=settings.search_seed, threads=1, validate_every=0.1,
    )  # fmt: skip


def settings_of(trial: "optuna.Trial", fixed: "TrainingSettings") -> "TrainingSettings":
    """What a trial trains: the paper's space, whether neurons are gated and shapes are shared."""
    from softcr_models.surrogate.ansatz import PIECES
    from softcr_models.surrogate.ddpinn import Architecture

    names = ("activation", "shapes", "neurons", "layers", "learning_rate")
    chosen = {name: SPACE[name].suggest(trial, name) for name in names}
    rate = chosen.pop("learning_rate")
    # shared shapes have as many terms as marks: the search does not choose them
    shared = chosen["shapes"] == "shared"
    architecture = Architecture(
        terms=PIECES if shared else SPACE["terms"].suggest(trial, "terms"), **chosen
    )
    return fixed.model_copy(update={"architecture": architecture, "learning_rate": rate})


def shipped_choice() -> dict[str, Any]:
    """What a training takes by default: what the search has to beat."""
    from softcr_learning.surrogate.training_settings import TrainingSettings

    ours = TrainingSettings()
    names = ("activation", "shapes", "neurons", "layers")
    chosen = {name: getattr(ours.architecture, name) for name in names}
    return {**chosen, "learning_rate": ours.learning_rate}


@cache
def _data(robot: str, fixed: str) -> Any:
    """The same for every network that a process trains."""
    from softcr_learning.surrogate.training_data import rod_data
    from softcr_learning.surrogate.training_settings import TrainingSettings

    settings = TrainingSettings.model_validate_json(fixed)
    return rod_data(CosseratRod(load_robot(robot), settings.intervals), settings)


def run(cell: Cell) -> Result:
    """One network, trained to the end or until it falls behind."""
    import optuna

    from softcr_learning.surrogate import training

    robot, fixed = cell.settings.robot, fixed_settings(cell.settings)

    def objective(trial: optuna.Trial) -> float:
        settings, seen = settings_of(trial, fixed), [-1.0]
        path = cell.folder / f"network-{cell.case.number}"

        def judge(progress: training.Progress) -> None:
            if progress.phase != "training" or not progress.validation:
                return
            value = _score(progress.validation)
            if seen[-1] != value:
                seen.append(value)
                trial.report(value, len(seen) - 1)
                if trial.should_prune():
                    raise optuna.TrialPruned

        try:
            data = _data(robot, fixed.model_dump_json())
            _, card = training.train(
                load_robot(robot), settings, path, judge, resume=False, data=data
            )
        except optuna.TrialPruned:
            path.with_name(path.name + ".checkpoint").unlink(missing_ok=True)
            raise
        except UserError:  # its losses became NaN: a bad choice, not the end of the search
            return float("inf")
        return _score(card.validation)

    return SEARCH.take_turn(cell, shipped_choice(), objective)


def pruner() -> "optuna.pruners.BasePruner":
    """Stops networks that fall behind."""
    import optuna

    return optuna.pruners.SuccessiveHalvingPruner(
        min_resource=FEWEST_VALIDATIONS, reduction_factor=REDUCTION
    )


def rows(results: Results) -> list[Row]:
    """The best networks, how many were trained, what decides who is best."""
    return structure_rows(tried(results))


def structure_rows(trials: Sequence[Tried]) -> list[Row]:
    """See `rows`.

    Raises:
        UserError: no network was trained to the end.
    """
    best = ranked(trials)
    if not best:
        raise UserError("search: no network was trained to the end")
    stopped = sum(not each.complete and np.isfinite(each.cost) for each in trials)
    counts = {
        "trained to the end": len(best),
        "stopped early": stopped,
        "training diverged": len(trials) - len(best) - stopped,
    }
    found = [Row("search", "all", name, float(n), 0.0, "networks", 1) for name, n in counts.items()]
    for each in best[:LISTED]:
        told = ", ".join(f"{name} {_text(value)}" for name, value in _choices(each).items())
        name = f"network {each.number}"
        found.append(Row("best networks", name, ERROR, each.cost, 0.0, "mm", 1, note=told))
    return found + [
        Row("what decides who is best", "importance", name, share, 0.0, "-", 1)
        for name, share in importance(best, SPACE).items()
    ]


def draw(results: Results, directory: Path) -> None:
    """The figure, and every trial as JSON."""
    trials = tried(results)
    write_trials(directory / "trials.json", list(SPACE), trials)
    draw_structures(trials, directory / "search.png")


def draw_structures(trials: Sequence[Tried], path: Path) -> None:
    """Parallel coordinates as Fig. 6 of Licher et al. 2025: best green, the next four blue.

    Networks that were stopped are dotted, with the error that they had then.
    """
    best = ranked(trials)
    stopped = [each for each in trials if not each.complete]
    drawn = [each for each in (*best, *stopped) if each.cost <= WORST_DRAWN * best[0].cost]
    table: dict[str, list[Any]] = {name: [_choices(each)[name] for each in drawn] for name in SPACE}
    table[f"{ERROR} [mm]"] = [each.cost for each in drawn]
    figure, axes = plt.subplots(figsize=(10.0, 4.5))
    columns = [
        _heights(axes, at, name not in SPACE or SPACE[name].log, values)
        for at, (name, values) in enumerate(table.items())
    ]
    for rank in reversed(range(len(drawn))):
        shown = drawn[rank].complete and rank < BEST_SHOWN
        colour = ("C0" if rank else "C2") if shown else "0.7"
        axes.plot(
            [column[rank] for column in columns], "-" if drawn[rank].complete else ":",
            color=colour, linewidth=2.0 if shown else 0.8,
        )  # fmt: skip
    axes.set_xticks(range(len(table)), list(table))
    axes.tick_params(axis="x", pad=14)
    axes.set_yticks([])
    axes.set_ylim(-0.06, 1.1)
    axes.spines[:].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _heights(axes: plt.Axes, at: int, log: bool, values: Sequence[Any]) -> np.ndarray:
    """Where values stand on their axis, 0 to 1; its ends or words are written beside it."""
    axes.axvline(at, color="0.6", linewidth=0.8)
    words = sorted({value for value in values if isinstance(value, str)})
    if words:
        spread = np.linspace(0.2, 0.8, len(words)) if len(words) > 1 else [0.5]
        places = dict(zip(words, spread, strict=True))
        for word, height in places.items():
            axes.text(at, height, word, ha="center", va="bottom", backgroundcolor="white")
        return np.array([places[str(value)] for value in values])
    numbers = np.array(values, dtype=float)
    axes.text(at, -0.02, _text(float(numbers.min())), ha="center", va="top")
    axes.text(at, 1.02, _text(float(numbers.max())), ha="center", va="bottom")
    numbers = np.log(numbers) if log else numbers
    span = float(np.ptp(numbers))
    return (numbers - numbers.min()) / span if span else np.full(len(numbers), 0.5)


def _choices(each: Tried) -> dict[str, Any]:
    from softcr_models.surrogate.ansatz import PIECES

    return {name: each.values.get(name, PIECES) for name in SPACE}


def _score(validation: dict[str, float]) -> float:
    """Mean over the sets of validation [mm]."""
    return float(np.mean(list(validation.values())))


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"


SEARCH = Search("tuning/surrogate-structure", __file__, pruner)
STUDY = Study(
    name=SEARCH.name,
    source="Licher et al. 2025, Sec. IV-B, Fig. 6",
    summary="neurons, layers, learning rate and ansatz terms of the surrogate",
    run=run,
    cases=turns,
    methods=(TRIAL,),
    settings=StructureSettings,
    further_rows=rows,
    draw=draw,
    seeded=False,
    exact="Networks learn from motions of the exact rod. The tip error is the mean over the sets "
    "of validation, motions of the same rod run freely, none of them in the training.",
)
