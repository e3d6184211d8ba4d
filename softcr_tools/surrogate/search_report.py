"""What a search over networks says: the best as lines, all in a figure, a page of both."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console

from softcr_learning.studies import importance
from softcr_models.surrogate.ansatz import PIECES
from softcr_runtime.console import say
from softcr_tools.experiments.tuning.report import markdown

BEST_SHOWN = 5
LISTED = 10
WORST_DRAWN = 100.0  # times the best; the paper's figure ends at a loss of 100
AXES = ("activation", "shapes", "neurons", "layers", "learning_rate", "terms")
LOGARITHMIC = ("neurons", "learning_rate", "terms", "tip error [mm]")


def report(trials: Sequence[FrozenTrial], directory: Path, command: str, console: Console) -> None:
    """Best networks as lines, search.png and search.md.

    Args:
        trials: of the study, in any state.
        directory: where both are written.
        command: that searched, for the page.
        console: for the lines.
    """
    scored = sorted((trial for trial in trials if _score(trial) < np.inf), key=_score)
    complete = [trial for trial in scored if trial.state == TrialState.COMPLETE]
    if not complete:
        say(console, "no network was trained to the end")
        return
    stopped = [trial for trial in scored if trial.state == TrialState.PRUNED]
    lost = sum(trial.state.is_finished() for trial in trials) - len(scored)
    summary = f"{len(complete)} networks trained to the end, {len(stopped)} stopped early"
    summary += f", {lost} whose training diverged" if lost else ""
    say(console, summary)
    for trial in complete[:BEST_SHOWN]:
        numbers = ", ".join(f"{name} {_text(value)}" for name, value in _choices(trial).items())
        say(console, f"{trial.value:8.3f} mm  network-{trial.number}: {numbers}")
    draw(complete, stopped, directory / "search.png")
    (directory / "search.md").write_text(page(complete, command, summary))
    say(console, f"figure and page: {directory / 'search.png'}, search.md")


def draw(complete: Sequence[FrozenTrial], stopped: Sequence[FrozenTrial], path: Path) -> None:
    """Parallel coordinates as Fig. 6 of Licher et al. 2025: best green, the next four blue.

    Args:
        complete: trials that were trained to the end, the best first.
        stopped: those that were not, dotted, where they were when they were stopped.
        path: of the picture.
    """
    most = WORST_DRAWN * _score(complete[0])
    drawn = [trial for trial in (*complete, *stopped) if _score(trial) <= most]
    names = [*AXES, "tip error [mm]"]
    table = {name: [_choices(trial)[name] for trial in drawn] for name in AXES}
    table["tip error [mm]"] = [_score(trial) for trial in drawn]
    figure, axes = plt.subplots(figsize=(10.0, 4.5))
    columns = [_heights(axes, at, name, table[name]) for at, name in enumerate(names)]
    for rank in reversed(range(len(drawn))):
        finished = drawn[rank].state == TrialState.COMPLETE
        shown = finished and rank < BEST_SHOWN
        colour = ("C0" if rank else "C2") if shown else "0.7"
        heights = [column[rank] for column in columns]
        line, width = "-" if finished else ":", 2.0 if shown else 0.8
        axes.plot(heights, line, color=colour, linewidth=width)
    axes.set_xticks(range(len(names)), names)
    axes.tick_params(axis="x", pad=14)
    axes.set_yticks([])
    axes.set_ylim(-0.06, 1.1)
    for side in ("top", "left", "bottom", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def page(complete: Sequence[FrozenTrial], command: str, summary: str) -> str:
    """The search in Markdown; the figure lies beside it."""
    head = ["network", "tip error [mm]", *AXES]
    rows = [
        [str(trial.number), _text(_score(trial)), *(_text(_choices(trial)[name]) for name in AXES)]
        for trial in complete[:LISTED]
    ]
    shares = ", ".join(f"{name} {share:.2f}" for name, share in importance(complete).items())
    lines = [
        "# Search over networks",
        "",
        f"`{command}`: {summary}. The tip error is the mean over the sets of validation, motions "
        "run freely. Best in green, the next four blue, stopped ones dotted with the error they "
        f"had then; beyond {WORST_DRAWN:.0f} times the best nothing is drawn.",
        "",
        "![choices and errors of all networks](search.png)",
        "",
        *markdown(head, rows),
    ]
    if shares:
        lines += ["", f"What decides who of these is best (PED-ANOVA): {shares}."]
    return "\n".join(lines) + "\n"


def _heights(axes: plt.Axes, at: int, name: str, values: Sequence[float | str]) -> np.ndarray:
    """Where values stand on their axis, 0 to 1; its ends or words are written beside it."""
    axes.axvline(at, color="0.6", linewidth=0.8)
    words = sorted({value for value in values if isinstance(value, str)})
    if words:
        places = dict(zip(words, _spread(len(words)), strict=True))
        for word, height in places.items():
            axes.text(at, height, word, ha="center", va="bottom", backgroundcolor="white")
        return np.array([places[str(value)] for value in values])
    numbers = np.array(values, dtype=float)
    axes.text(at, -0.02, _text(float(numbers.min())), ha="center", va="top")
    axes.text(at, 1.02, _text(float(numbers.max())), ha="center", va="bottom")
    if name in LOGARITHMIC:
        numbers = np.log(numbers)
    span = float(np.ptp(numbers))
    return (numbers - numbers.min()) / span if span else np.full(len(numbers), 0.5)


def _spread(count: int) -> np.ndarray:
    return np.linspace(0.2, 0.8, count) if count > 1 else np.array([0.5])


def _choices(trial: FrozenTrial) -> dict[str, float | str]:
    # shared shapes have as many terms as marks: the search does not choose them
    return {name: trial.params.get(name, PIECES) for name in AXES}


def _score(trial: FrozenTrial) -> float:
    """Tip error at the end, or when it was stopped [mm]; infinite where a loss became NaN."""
    value = trial.value
    return float(value) if value is not None and np.isfinite(value) else np.inf


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"
