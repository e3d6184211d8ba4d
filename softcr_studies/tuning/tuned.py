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
from softcr_models.particle_swarm import particle_swarm
from softcr_studies.cell import name_of
from softcr_studies.search import (
    TRIAL,
    Search,
    SearchSettings,
    Tried,
    Turn,
    importance,
    ranked,
    tried,
    turns,
)
from softcr_studies.study import Cell, Metric, Result, Results, Row, Study
from softcr_studies.tuning.parameters import Parameter, Values, positions_of, values_at

SHIPPED, TUNED, RATIO = "shipped", "tuned", "tuned / shipped"
FULL_EFFORT = "at full effort"
FINAL_SEEDS = 2
LONGER = 1.3
"""The runs at full effort are so many times as long as those of the search."""
# The best, and others whose ranks tell what the search's short runs are worth.
FINALISTS, SPREAD = 2, 2
PARTICLES = 12


@dataclass(frozen=True)
class Particle(Turn):
    """A trial of a particle swarm: `values` as pairs; it depends on earlier generations."""

    values: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Finalist:
    """A candidate that is run again at full effort; `of` as in Turn."""

    values: tuple[tuple[str, Any], ...]
    of: str = ""
    name: str = FULL_EFFORT


@dataclass(frozen=True)
class Judged:
    """A contender on a motion or plant that no search saw.

    Attributes:
        task: with a name.
        values: of the contender that was tuned; the others need none.
        of: as in Turn.
    """

    task: Any
    values: tuple[tuple[str, Any], ...] = ()
    of: str = ""

    @property
    def name(self) -> str:
        """Of the row."""
        return name_of(self.task)


@dataclass(frozen=True, eq=False)
class Tuning:
    """Something to tune.

    Attributes:
        name, file: of the study.
        space: its parameters.
        start: (settings) -> values to begin with.
        shipped: (settings) -> values of what the tuned is compared with.
        costs: (cell, values, how many times as long) -> (R,) costs of the runs of a cell.
        combined: (R,) costs of runs -> their cost together.
        tasks: what no search saw.
        judge: (cell, contender's name, task, values of the tuned) -> figures; NaN where a run did
            not get to its end.
        figures: quantity -> its unit, of a judgement; its key there is the quantity.
        contenders: (settings) -> names.
        content: (settings, values) -> what the file of tuned values says.
        depends_on: (settings) -> content of the files that they name, as a text.
        swarm: whether it is searched by a particle swarm.
    """

    name: str
    file: str
    space: tuple[Parameter, ...]
    start: Callable[[Any], dict[str, Any]]
    shipped: Callable[[Any], dict[str, Any]]
    costs: Callable[[Cell, Values, float], np.ndarray]
    combined: Callable[[np.ndarray], float]
    tasks: Sequence[Any]
    judge: Callable[[Cell, str, Any, Values], Result]
    figures: Mapping[str, str]
    contenders: Callable[[Any], Sequence[str]]
    content: Callable[[Any, Values], Mapping[str, Any]]
    depends_on: Callable[[Any], str]
    swarm: bool = False

    def study(self, settings: type[SearchSettings], **about: Any) -> Study:
        """The study of this tuning; `about` are other attributes of it."""
        return Study(
            name=self.name, run=self.run, cases=self.first_cases, methods=(TRIAL,),
            settings=settings, seeded=False, later=self.later, further_rows=self.rows,
            draw=self.draw,
            metrics=[Metric(quantity, unit, quantity) for quantity, unit in self.figures.items()],
            **about,
        )  # fmt: skip

    def first_cases(self, settings: Any) -> Sequence[Turn]:
        """All turns; of a swarm its first generation."""
        if self.swarm:
            return self.next_generation(settings, [])
        return turns(settings, self._of(settings))

    def run(self, cell: Cell) -> Result:
        """A trial, a run of a finalist, or of a contender."""
        case = cell.case
        if isinstance(case, Judged):
            return self.judge(cell, cell.method, case.task, dict(case.values))
        if isinstance(case, Finalist):
            return {"costs": self.costs(cell, dict(case.values), LONGER)}
        if isinstance(case, Particle):
            cost = self.combined(self.costs(cell, dict(case.values), 1.0))
            return {"cost": cost, "values": json.dumps(dict(case.values)), "complete": True}

        def objective(trial: Any) -> float:
            values = {each.name: each.range.suggest(trial, each.name) for each in self.space}
            return self.combined(self.costs(cell, values, 1.0))

        return Search(self.name, self.file).take_turn(cell, self.start(cell.settings), objective)

    def next_generation(self, settings: Any, known: Sequence[Tried]) -> list[Particle]:
        """The swarm's particles after those whose costs are known; none after the last."""
        size, particles = len(self.space), min(PARTICLES, settings.trials)
        costs = iter([each.cost for each in known])

        def evaluate(_: object, positions: np.ndarray) -> list[float]:
            found = list(itertools.islice(costs, particles))
            if len(found) < particles:
                raise _UnknownError(positions)
            return found

        try:
            particle_swarm(
                lambda position: math.nan, np.zeros(size), np.ones(size), particles,
                math.ceil(settings.trials / particles), settings.search_seed,
                start=positions_of(self.space, self.start(settings)), evaluate=evaluate,
            )  # fmt: skip
        except _UnknownError as unknown:
            (positions,) = unknown.args
            candidates = [values_at(self.space, position) for position in positions]
            return [Particle(len(known) + number, self._of(settings), values=_pairs(values))
                    for number, values in enumerate(candidates)]  # fmt: skip
        return []

    def later(self, results: Results) -> list[Cell]:
        """The swarm's next generation; when the search has ended its finalists; then the judged."""
        settings, trials = results.settings, tried(results)
        more = self.next_generation(settings, trials) if self.swarm else []
        if more:
            return [Cell(particle, TRIAL, 0, settings) for particle in more]
        of = self._of(settings)
        cells = [
            Cell(Finalist(_pairs(each.values), of), _trial(each), seed, settings)
            for each in finalists(trials)
            for seed in range(FINAL_SEEDS)
        ]
        if not self.final_costs(results):
            return cells
        told = {TUNED: _pairs(self.chosen(results).values)}
        return cells + [
            Cell(Judged(task, told.get(name, ()), of), name, seed, settings)
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
        trials, finals = ranked(tried(results)), self.final_costs(results)
        shares = importance(trials, {each.name: each.range for each in self.space})
        values = value_rows(
            self.space, self.shipped(results.settings), self.chosen(results).values, shares
        )
        return [*values, *search_rows(tried(results), finals, _trial(self.chosen(results))),
                *self.ratios(results)]  # fmt: skip

    def ratios(self, results: Results) -> list[Row]:
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
        names = [each.name for each in self.space]
        write_trials(directory / "trials.json", names, trials)
        finite = ranked(trials)
        shares = importance(finite, {each.name: each.range for each in self.space})
        draw_search(directory / "search.png", self.space, trials, best, shares)


class _UnknownError(Exception):
    """The costs at some positions of the swarm are not known yet."""


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


def value_rows(
    space: Sequence[Parameter], shipped: Values, tuned: Values, shares: Mapping[str, float]
) -> list[Row]:
    """Table VI or VII: ours in the table's units, what was printed beside them."""
    rows = []
    for name, values in ((SHIPPED, shipped), (TUNED, tuned)):
        for each in space:
            printed, value = each.printed(values[each.name]), values[each.name]
            text = f"{value:.4g}" if isinstance(value, float) else str(value)
            number = math.nan if isinstance(printed, str) else float(printed)
            published = {kind: float(figure) for kind, figure in each.published.items()}
            rows.append(
                Row("values", name, each.symbol or each.name, number, 0.0, "-", 1, published,
                    note=f"{each.name} = {text}; range {each.told}" * (name == TUNED))
            )  # fmt: skip
    return rows + [
        Row("values", "importance", each.symbol or each.name, shares[each.name], 0.0, "-", 1)
        for each in space
        if each.name in shares
    ]


def search_rows(trials: Sequence[Tried], finals: Mapping[str, float], best: str) -> list[Row]:
    """What the search came to, and what its cheap runs are worth.

    Args:
        trials: of the search.
        finals: finalist -> cost at full effort.
        best: of them.
    """
    order, costs = ranked(trials), {_trial(each): each.cost for each in trials}

    def row(case: str, method: str, quantity: str, value: float, note: str = "") -> Row:
        return Row(case, method, quantity, value, 0.0, "-", 1, note=note)

    found = math.nan
    if len(finals) > 2:
        found = float(spearmanr([costs[name] for name in finals], list(finals.values())).statistic)
    return [
        row("search", "all", "trials", float(len(trials))),
        row("search", "first trial", "cost", trials[0].cost),
        row("search", "best trial", "cost", order[0].cost),
        *(row(FULL_EFFORT, name, "cost", cost, "the tuned values" * (name == best))
          for name, cost in finals.items()),
        row(FULL_EFFORT, "all", "rank correlation with the search", found),
    ]  # fmt: skip


def write_trials(path: Path, names: Sequence[str], trials: Sequence[Tried]) -> None:
    """A line for each trial: its cost, then its values; JSON knows no infinity: null."""
    lines = [
        json.dumps([each.cost if math.isfinite(each.cost) else None, *map(each.values.get, names)])
        for each in trials
    ]
    body = ",\n".join(f"  {line}" for line in lines)
    columns = json.dumps(["cost", *names])
    path.write_text(f'{{\n "columns": {columns},\n "trials": [\n{body}\n ]\n}}\n')


def draw_search(
    path: Path, space: Sequence[Parameter], trials: Sequence[Tried], best: Tried,
    shares: Mapping[str, float],
) -> None:  # fmt: skip
    """Cost over the trials, what the parameters matter, cost over each of them; the best green."""
    costs = np.array([each.cost for each in trials])
    finite = np.isfinite(costs)
    rows = 1 + math.ceil(len(space) / 4)
    figure = plt.figure(figsize=(11.0, 2.3 * rows), layout="constrained")
    grid = figure.add_gridspec(rows, 4)
    history = figure.add_subplot(grid[0, :2])
    history.plot(np.flatnonzero(finite), costs[finite], "C0.", markersize=3, label="trial")
    history.step(range(len(costs)), np.minimum.accumulate(costs), "C2", where="post", label="best")
    low, top = costs[finite].min(), float(np.quantile(costs[finite], 0.9))
    history.set(xlabel="trial", ylabel="cost", ylim=(low - 0.05 * (top - low), top + 1e-12))
    history.legend()
    bars = figure.add_subplot(grid[0, 2:])
    names = [each.symbol or each.name for each in space]
    bars.bar(range(len(names)), [shares.get(each.name, 0.0) for each in space])
    bars.set_xticks(range(len(names)), names, rotation=60, ha="right", fontsize=7)
    bars.set_ylabel("importance")
    for number, each in enumerate(space):
        axes = figure.add_subplot(grid[1 + number // 4, number % 4])
        values = [_drawn(trial.values[each.name]) for trial in trials]
        axes.plot(np.array(values)[finite], costs[finite], "C0.", markersize=3)
        axes.plot(_drawn(best.values[each.name]), best.cost, "C2o")
        if each.range.log:
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set(xlabel=each.name, ylim=history.get_ylim())
    figure.savefig(path, dpi=75)
    plt.close(figure)


def _pairs(values: Values) -> tuple[tuple[str, Any], ...]:
    return tuple(values.items())


def _trial(each: Tried) -> str:
    return f"trial {each.number}"


def _drawn(value: Any) -> Any:
    """Words and truths stand on an axis as words."""
    return str(value) if isinstance(value, bool | str) else value
