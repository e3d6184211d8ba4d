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
from softcr_studies.frame import search
from softcr_studies.frame.search import Range, Search, Tried, ranked, tried
from softcr_studies.frame.study import Cell, Result, Results, Row, Study
from softcr_studies.tuning.tuned import write_trials

if TYPE_CHECKING:  # of an extra: studies are listed without
    import optuna

    from softcr_papers.licher2025.training.training_settings import TrainingSettings

# Validations before a network may be stopped, the paper's grace of 300 epochs; one of 3 goes on.
HALVING = (2, 3)
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


class StructureSettings(search.SearchSettings):
    """See SearchSettings."""

    trials: search.Trials = 72
    robot: str = Field("licher2025", description="name or YAML file of a robot")
    iterations: int = Field(
        6000,
        ge=1,
        le=1_000_000,
        description="number of iterations of a network that is not stopped early",
    )


def fixed_settings(settings: Any) -> "TrainingSettings":
    """What all networks of a search have in common, their data among it."""
    from softcr_papers.licher2025.training.training_settings import TrainingSettings

    return TrainingSettings(
        iterations=settings.iterations, trajectories=800, noisy_samples=100_000,
        seed=settings.search_seed, threads=1, validate_every=0.1,
    )  # fmt: skip


def settings_of(trial: "optuna.trial.BaseTrial", fixed: "TrainingSettings") -> "TrainingSettings":
    """What a trial trains: the paper's space, whether neurons are gated and shapes are shared."""
    from softcr_models.surrogate.ansatz import PIECES
    from softcr_models.surrogate.architecture import Architecture

    chosen = {name: SPACE[name].suggest(trial, name) for name in SPACE if name != "terms"}
    rate = chosen.pop("learning_rate")
    # shared shapes have as many terms as marks: the search does not choose them
    shared = chosen["shapes"] == "shared"
    terms = PIECES if shared else SPACE["terms"].suggest(trial, "terms")
    architecture = Architecture(terms=terms, **chosen)
    return fixed.model_copy(update={"architecture": architecture, "learning_rate": rate})


def shipped_choice() -> dict[str, Any]:
    """What a training takes by default: what the search has to beat."""
    from softcr_papers.licher2025.training.training_settings import TrainingSettings

    ours = TrainingSettings()
    names = ("activation", "shapes", "neurons", "layers")
    chosen = {name: getattr(ours.architecture, name) for name in names}
    return {**chosen, "learning_rate": ours.learning_rate}


@cache
def _data(robot: str, fixed: str) -> Any:
    """The same for every network that a process trains."""
    from softcr_papers.licher2025.training.training_data import rod_data
    from softcr_papers.licher2025.training.training_settings import TrainingSettings

    settings = TrainingSettings.model_validate_json(fixed)
    return rod_data(CosseratRod(load_robot(robot), settings.intervals), settings)


def run(cell: Cell) -> Result:
    """One network, trained to the end or until it falls behind."""
    import optuna

    from softcr_papers.licher2025.training import training

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


def structure_rows(trials: Sequence[Tried]) -> list[Row]:
    """The best networks, how many were trained, what decides who is best.

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
    found = [Row.of("search", "all", name, [count], "networks") for name, count in counts.items()]
    for each in best[:LISTED]:
        note = ", ".join(f"{name} {_text(value)}" for name, value in _choices(each).items())
        network = f"network {each.number}"
        found.append(Row.of("best networks", network, ERROR, [each.cost], "mm", note=note))
    return found + [
        Row.of("what decides who is best", "importance", name, [share], "-")
        for name, share in search.importance(best, SPACE).items()
    ]


def draw(results: Results, directory: Path) -> None:
    """Every trial as JSON, and parallel coordinates as Fig. 6 of Licher et al. 2025.

    The best is green, the next four blue. Networks that were stopped are dotted, with the error
    that they had then.
    """
    trials = tried(results)
    write_trials(directory, list(SPACE), trials)
    best = ranked(trials)
    stopped = [each for each in trials if not each.complete]
    drawn = [each for each in (*best, *stopped) if each.cost <= WORST_DRAWN * best[0].cost]
    table: dict[str, list[Any]] = {name: [_choices(each)[name] for each in drawn] for name in SPACE}
    table[f"{ERROR} [mm]"] = [each.cost for each in drawn]
    figure, axes = plt.subplots(figsize=(10.0, 4.5))
    heights = np.empty((len(table), len(drawn)))
    for at, (name, values) in enumerate(table.items()):
        axes.axvline(at, color="0.6", linewidth=0.8)
        heights[at], texts = _heights(values, name not in SPACE or SPACE[name].log)
        for height, text in texts.items():
            below = "top" if height < 0.0 else "bottom"
            axes.text(at, height, text, ha="center", va=below, backgroundcolor="white")
    for rank in reversed(range(len(drawn))):
        complete = drawn[rank].complete
        shown = complete and rank < BEST_SHOWN
        axes.plot(
            heights[:, rank], "-" if complete else ":", linewidth=2.0 if shown else 0.8,
            color=("C0" if rank else "C2") if shown else "0.7",
        )  # fmt: skip
    axes.set_xticks(range(len(table)), list(table))
    axes.tick_params(axis="x", pad=14)
    axes.set_yticks([])
    axes.set_ylim(-0.06, 1.1)
    axes.spines[:].set_visible(False)
    figure.tight_layout()
    figure.savefig(directory / "search.png", dpi=110)
    plt.close(figure)


def _heights(values: Sequence[Any], log: bool) -> tuple[np.ndarray, dict[float, str]]:
    """Where values stand on their axis, 0 to 1; height -> text beside it, of ends or words."""
    if isinstance(values[0], str):
        words, places = np.unique(values, return_inverse=True)
        spread = np.linspace(0.2, 0.8, len(words)) if len(words) > 1 else np.array([0.5])
        return spread[places], dict(zip(spread, words, strict=True))
    ends = {-0.02: _text(min(values)), 1.02: _text(max(values))}
    numbers = np.log(values) if log else np.array(values, dtype=float)
    span = np.ptp(numbers)
    return (numbers - numbers.min()) / span if span else np.full(len(numbers), 0.5), ends


def _choices(each: Tried) -> dict[str, Any]:
    from softcr_models.surrogate.ansatz import PIECES

    return {name: each.values.get(name, PIECES) for name in SPACE}


def _score(validation: dict[str, float]) -> float:
    """Mean over the sets of validation [mm]."""
    return float(np.mean(list(validation.values())))


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"


SEARCH = Search("licher2025/surrogate-structure", __file__, HALVING)
STUDY = Study(
    name=SEARCH.name,
    source="Licher et al. 2025, Sec. IV-B, Fig. 6",
    summary="neurons, layers, learning rate and ansatz terms of the surrogate",
    run=run,
    cases=search.turns,
    methods=(search.TRIAL,),
    settings=StructureSettings,
    further_rows=lambda results: structure_rows(tried(results)),
    draw=draw,
    seeded=False,
    exact="Networks learn from motions of the exact rod. The tip error is the mean over the sets "
    "of validation, motions of the same rod run freely, none of them in the training.",
)
