"""The course of a tuning: a search, its best again at full effort, the best of these judged.

The plant is never the model. What comes out best is tried again, longer and on other random
numbers, with what the search began with; the better one is judged, beside what is shipped, on
seeds and motions that neither saw. No setting is changed: the values are written down for a person
to take over, or not.
"""

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import yaml
from matplotlib.ticker import NullFormatter
from scipy.stats import spearmanr

from softcr_models.errors import UserError
from softcr_studies.frame import search
from softcr_studies.frame.cell import name_of
from softcr_studies.frame.particle_swarm import particle_swarm
from softcr_studies.frame.search import Pairs, Tried, Turn, ranked, tried
from softcr_studies.frame.study import Cell, Metric, Result, Results, Row, Study
from softcr_studies.frame.table import KINDS
from softcr_studies.tuning.parameters import Parameter, Values

SHIPPED, TUNED, RATIO = "shipped", "tuned", "tuned / shipped"
FULL_EFFORT = "at full effort"
FINAL_SEEDS = 2
LONGER = 1.3
"""The runs at full effort are so many times as long as those of the search."""
# The best, and others whose ranks tell what the search's short runs are worth.
FINALISTS, SPREAD = 2, 2
PARTICLES = 12
EXACT = (
    "Plants have the model's equations, with 20 intervals instead of 5. The usual plant has "
    "compliance -5 % and tip mass +10 %; others are named. The tip is measured with 0.2 mm of "
    "noise in each coordinate, pressures with none; a command acts one cycle after its sample."
)


@dataclass(frozen=True)
class Candidate:
    """Values that are run again at full effort or, on a task that no search saw, judged."""

    values: Pairs  # of contenders that were not tuned: none
    of: str  # as in Turn
    task: Any = None

    @property
    def name(self) -> str:
        """Of the row."""
        return FULL_EFFORT if self.task is None else name_of(self.task)


@dataclass(frozen=True, eq=False)
class Tuning:
    """Something to tune."""

    name: str  # of the study
    file: str  # of it
    space: tuple[Parameter, ...]
    start: Callable[[Any], dict[str, Any]]  # settings -> values to begin with
    shipped: Callable[[Any], dict[str, Any]]  # settings -> what the tuned ones are compared with
    costs: Callable[[Cell, Values, float], np.ndarray]  # the last: times as long -> (R,) of runs
    tasks: Sequence[Any]  # what no search saw
    judge: Callable[[Cell, str, Any, Values], Result]  # contender, task, tuned values -> figures
    figures: Mapping[str, str]  # quantity -> unit; NaN where a run did not get to its end
    contenders: Callable[[Any], Sequence[str]]  # settings -> names
    content: Callable[[Any, Values], Mapping[str, Any]]  # what the file of tuned values says
    depends_on: Callable[[Any], str]  # settings -> content of the files that they name
    ceiling: float = math.inf  # cost of a run above which it counts more
    swarm: bool = False  # whether it is searched by a particle swarm

    def study(self, settings: type[search.SearchSettings], **about: Any) -> Study:
        """The study of this tuning; `about` are other attributes of it."""
        return Study(
            name=self.name, run=self.run, cases=self.first_cases, methods=(search.TRIAL,),
            settings=settings, seeded=False, later=self.later, further_rows=self.rows,
            draw=self.draw, exact=EXACT,
            metrics=[Metric(quantity, unit, quantity) for quantity, unit in self.figures.items()],
            **about,
        )  # fmt: skip

    def first_cases(self, settings: Any) -> Sequence[Turn]:
        """All turns; of a swarm its first generation."""
        if self.swarm:
            return self.next_generation(settings, [])
        return search.turns(settings, self._of(settings))

    def run(self, cell: Cell) -> Result:
        """A trial, a run of a finalist, or of a contender."""
        case = cell.case
        if isinstance(case, Candidate):
            values = dict(case.values)
            if case.task is None:
                return {"costs": self.costs(cell, values, LONGER)}
            return self.judge(cell, cell.method, case.task, values)
        if case.values:  # of a swarm
            values = dict(case.values)
            return search.result_of(self.combined(self.costs(cell, values, 1.0)), values)

        def objective(trial: Any) -> float:
            values = {each.name: each.range.suggest(trial, each.name) for each in self.space}
            return self.combined(self.costs(cell, values, 1.0))

        began = self.start(cell.settings)
        return search.Search(self.name, self.file).take_turn(cell, began, objective)

    def combined(self, costs: np.ndarray) -> float:
        """The mean of several runs (R,), and what the worst costs above the ceiling.

        One plant is not bought with another; infinite if one run diverged.
        """
        if not np.isfinite(costs).all():
            return math.inf
        return float(costs.mean() + max(0.0, costs.max() - self.ceiling))

    def next_generation(self, settings: Any, known: Sequence[Tried]) -> list[Turn]:
        """The swarm's particles after those whose costs are known; none after the last."""
        size, particles = len(self.space), min(PARTICLES, settings.trials)
        began, costs = self.start(settings), iter([each.cost for each in known])
        unknown: list[np.ndarray] = []  # positions (particles, P) of 0 to 1

        def evaluate(_: object, positions: np.ndarray) -> list[float]:
            found = list(itertools.islice(costs, particles))
            unknown.extend([] if found else [positions])
            return found

        particle_swarm(
            lambda position: math.nan, np.zeros(size), np.ones(size), particles,
            math.ceil(settings.trials / particles), settings.search_seed,
            start=np.array([each.range.share_of(began[each.name]) for each in self.space]),
            evaluate=evaluate,
        )  # fmt: skip
        generation = unknown[0].tolist() if unknown else []
        return [
            Turn(number, self._of(settings), self._values_at(shares))
            for number, shares in enumerate(generation, len(known))
        ]

    def _values_at(self, shares: Sequence[float]) -> Pairs:
        each_share = zip(self.space, shares, strict=True)
        return tuple((each.name, each.range.value_at(share)) for each, share in each_share)

    def later(self, results: Results) -> list[Cell]:
        """The swarm's next generation; when the search has ended its finalists; then the judged."""
        settings, trials = results.settings, tried(results)
        more = self.next_generation(settings, trials) if self.swarm else []
        if more:
            return [Cell(particle, search.TRIAL, 0, settings) for particle in more]
        of = self._of(settings)
        cells = [
            Cell(Candidate(_pairs(each.values), of), _trial(each), seed, settings)
            for each in finalists(trials)
            for seed in range(FINAL_SEEDS)
        ]
        if not self.final_costs(results):
            return cells
        told = {TUNED: _pairs(self.chosen(results).values)}
        return cells + [
            Cell(Candidate(told.get(name, ()), of, task), name, seed, settings)
            for task in self.tasks
            for name in self.contenders(settings)
            for seed in range(settings.seeds)
        ]

    def _of(self, settings: Any) -> str:
        return hashlib.sha256(self.depends_on(settings).encode()).hexdigest()[:16]

    def final_costs(self, results: Results) -> dict[str, float]:
        """Finalist -> cost at full effort; empty before they have run."""
        return {
            method: self.combined(np.concatenate([each["costs"] for each in found]))
            for (case, method), found in results.by_method().items()
            if case == FULL_EFFORT
        }

    def chosen(self, results: Results) -> Tried:
        """The best at full effort."""
        finals = self.final_costs(results)
        best = min(finals, key=lambda name: finals[name])
        return next(each for each in tried(results) if _trial(each) == best)

    def rows(self, results: Results) -> list[Row]:
        """The values beside those printed, what the search came to, tuned over shipped."""
        values = (SHIPPED, self.shipped(results.settings)), (TUNED, self.chosen(results).values)
        return [
            *(self._value_row(name, each, told[each.name])
              for name, told in values for each in self.space),
            *(_row("values", "importance", name, share)
              for name, share in self._importance(results).items() if share is not None),
            *self._search_rows(results),
            *self._ratios(results),
        ]  # fmt: skip

    def _value_row(self, method: str, parameter: Parameter, value: Any) -> Row:
        """Of Table VI or VII: ours in the table's unit, what was printed beside it."""
        printed = parameter.printed(value)
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        note = f"{parameter.name} = {text}; range {parameter.told}" if method == TUNED else ""
        published = dict(zip(KINDS, map(float, parameter.published), strict=False))
        number = math.nan if isinstance(printed, str) else float(printed)
        return _row("values", method, parameter.label, number, published=published, note=note)

    def _importance(self, results: Results) -> dict[str, float | None]:
        """Label -> share of each parameter; None where nothing is known."""
        ranges = {each.name: each.range for each in self.space}
        shares = search.importance(ranked(tried(results)), ranges)
        return {each.label: shares.get(each.name) for each in self.space}

    def _search_rows(self, results: Results) -> list[Row]:
        """What the search came to, and what its cheap runs are worth."""
        trials, finals = tried(results), self.final_costs(results)
        costs, best = {_trial(each): each.cost for each in trials}, _trial(self.chosen(results))
        agreement = math.nan
        if len(finals) > 2:
            agreement = spearmanr([costs[name] for name in finals], list(finals.values())).statistic
        return [
            _row("search", "all", "trials", len(trials)),
            _row("search", "first trial", "cost", trials[0].cost),
            _row("search", "best trial", "cost", ranked(trials)[0].cost),
            *(_row(FULL_EFFORT, name, "cost", cost, note="the tuned values" * (name == best))
              for name, cost in finals.items()),
            _row(FULL_EFFORT, "all", "rank correlation with the search", agreement),
        ]  # fmt: skip

    def _ratios(self, results: Results) -> list[Row]:
        """What "tuned" makes of "shipped", seed by seed."""
        rows = []
        for case in map(name_of, self.tasks):
            both = list(zip(results.of(case, TUNED), results.of(case, SHIPPED), strict=True))
            for quantity in self.figures:
                if all(quantity in each for pair in both for each in pair):
                    ratios = [ours[quantity] / theirs[quantity] for ours, theirs in both]
                    must = 1.0 if "error" in quantity else None
                    rows.append(Row.of(case, RATIO, quantity, ratios, "-", must=must))
        return rows

    def draw(self, results: Results, directory: Path) -> None:
        """The search's figure, every trial as JSON, and the tuned values as a file."""
        trials, best = tried(results), self.chosen(results)
        content = self.content(results.settings, best.values)
        (directory / "tuned.yaml").write_text(yaml.safe_dump(dict(content), sort_keys=False))
        write_trials(directory, [each.name for each in self.space], trials)
        draw_search(directory, self.space, trials, best, self._importance(results))


def streams(cell: Cell, longer: float | None = None) -> tuple[int, int]:
    """Seeds of plant and controller: no stage of a tuning sees another one's noise.

    `longer` says how many times as long as the search's the runs are; None: they are judged.
    """
    stage = "judged" if longer is None else "search" if longer == 1.0 else "full effort"
    return cell.stream(f"plant, {stage}"), cell.stream(f"controller, {stage}")


def finalists(trials: Sequence[Tried]) -> list[Tried]:
    """The first trial, the best ones, and some of the better half.

    Raises:
        UserError: no candidate came to its end.
    """
    order = ranked(trials)
    if not order:
        raise UserError("search: no candidate came to its end")
    better = order[FINALISTS : max(FINALISTS, len(order) // 2)]
    chosen = [*order[:FINALISTS], *better[:: max(1, len(better) // SPREAD)][:SPREAD]]
    first = [each for each in order if each.number == 0 and each not in chosen]
    return [*first, *chosen]


def write_trials(directory: Path, names: Sequence[str], trials: Sequence[Tried]) -> None:
    """A line for each trial: its cost, then its values; JSON knows no infinity: null."""
    lines = [
        json.dumps([each.cost if math.isfinite(each.cost) else None, *map(each.values.get, names)])
        for each in trials
    ]
    body = ",\n".join(f"  {line}" for line in lines)
    text = f'{{\n "columns": {json.dumps(["cost", *names])},\n "trials": [\n{body}\n ]\n}}\n'
    (directory / "trials.json").write_text(text)


def draw_search(
    directory: Path, space: Sequence[Parameter], trials: Sequence[Tried], best: Tried,
    shares: Mapping[str, float | None],
) -> None:  # fmt: skip
    """Cost over the trials, what the parameters matter, cost over each of them; the best green."""
    costs = np.array([each.cost for each in trials])
    finite = np.isfinite(costs)
    low, top = costs[finite].min(), float(np.quantile(costs[finite], 0.9))
    rows = 1 + math.ceil(len(space) / 4)
    figure = plt.figure(figsize=(11.0, 2.3 * rows), layout="constrained")
    grid = figure.add_gridspec(rows, 4)
    history, bars = figure.add_subplot(grid[0, :2]), figure.add_subplot(grid[0, 2:])
    history.plot(np.flatnonzero(finite), costs[finite], "C0.", markersize=3, label="trial")
    history.step(range(len(costs)), np.minimum.accumulate(costs), "C2", where="post", label="best")
    history.set(xlabel="trial", ylabel="cost", ylim=(low - 0.05 * (top - low), top + 1e-12))
    history.legend()
    bars.bar(range(len(shares)), [share or 0.0 for share in shares.values()])
    bars.set_xticks(range(len(shares)), list(shares), rotation=60, ha="right", fontsize=7)
    bars.set_ylabel("importance")
    for number, each in enumerate(space):
        axes = figure.add_subplot(grid[1 + number // 4, number % 4])
        values = np.array([trial.values[each.name] for trial in trials])
        values = values.astype(str) if each.range.choices else values
        axes.plot(values[finite], costs[finite], "C0.", markersize=3)
        axes.plot(values[best.number], best.cost, "C2o")
        if each.range.log:
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set(xlabel=each.name, ylim=history.get_ylim())
    figure.savefig(directory / "search.png", dpi=75)
    plt.close(figure)


def _row(case: str, method: str, quantity: str, value: float, **more: Any) -> Row:
    return Row(case, method, quantity, float(value), 0.0, "-", 1, **more)


def _pairs(values: Values) -> Pairs:
    return tuple(values.items())


def _trial(each: Tried) -> str:
    return f"trial {each.number}"
