"""One search for the best values: by particle swarm or by Bayesian optimisation, side by side.

What has been evaluated is kept in an Optuna journal: a search that was stopped goes on from there.
"""

import json
import math
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial
from threadpoolctl import threadpool_limits

from softcr_learning.studies import finished, open_study
from softcr_models.errors import UserError
from softcr_models.particle_swarm import particle_swarm
from softcr_tools.experiments.results import Row
from softcr_tools.experiments.tuning.space import Parameter, Values, positions_of, values_at

Cost = Callable[[Values], float]
Costs = Callable[[Iterable[Values]], Iterator[float]]
"""As `map` of a cost."""

PARTICLES = 12
_DESCRIPTION = "description"


@dataclass(frozen=True)
class Search:
    """What is searched, and how.

    Attributes:
        name: of the study.
        space: what is tuned.
        start: the first that is tried: what is shipped.
        swarm: whether by particle swarm; if not, by Bayesian optimisation.
        seed: of the search.
        description: what values are judged on; a study of another description is not gone on with.
    """

    name: str
    space: tuple[Parameter, ...]
    start: dict[str, Any]
    swarm: bool
    seed: int
    description: dict[str, Any]


def opened(search: Search, journal: Path) -> optuna.Study:
    """The study of a search, begun or gone on with.

    Raises:
        UserError: the journal cannot be opened, or holds a study of something else.
    """
    sampler = optuna.samplers.TPESampler(seed=search.seed, constant_liar=True)
    study = open_study(search.name, str(journal), sampler)
    described = json.loads(json.dumps({**search.description, "start": search.start}))
    if _DESCRIPTION not in study.user_attrs:
        study.set_user_attr(_DESCRIPTION, described)
        if not search.swarm:
            study.enqueue_trial(search.start)
    elif study.user_attrs[_DESCRIPTION] != described:
        raise UserError(
            f"{journal}: holds a study of {study.user_attrs[_DESCRIPTION]}, not of {described}; "
            "take another --output"
        )
    return study


@contextmanager
def evaluator(cost: Cost, workers: int) -> Iterator[Costs]:
    """A `map` of the cost, in so many processes; in this one if it is one."""
    if workers == 1:
        yield lambda candidates: map(cost, candidates)
        return
    # the threads of compiled kernels do not survive a fork
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _begin_worker, (cost,)) as pool:
        yield lambda candidates: pool.map(_cost_in_worker, candidates)


def run(
    study: optuna.Study,
    search: Search,
    costs: Costs,
    trials: int,
    side_by_side: int,
    progress: Callable[[int], None],
) -> None:
    """Evaluates until the study has so many trials.

    Args:
        side_by_side: how many candidates are asked for at a time.
        progress: called with the number of trials that are done.
    """
    if search.swarm:
        _swarm(study, search, costs, trials, progress)
        return
    distributions = {parameter.name: parameter.distribution for parameter in search.space}
    done = finished(study)
    progress(done)
    while done < trials:
        asked = [study.ask(distributions) for _ in range(min(side_by_side, trials - done))]
        for trial, value in zip(asked, costs([t.params for t in asked]), strict=True):
            study.tell(trial, value)
            done += 1
            progress(done)


def ranked(study: optuna.Study) -> list[FrozenTrial]:
    """Trials of finite cost, the best first."""
    trials = [t for t in study.get_trials() if t.state == TrialState.COMPLETE]
    finite = [t for t in trials if t.value is not None and math.isfinite(t.value)]
    return sorted(finite, key=lambda trial: (trial.value, trial.number))


def write_record(
    study: optuna.Study, search: Search, path: Path, about: dict[str, Any], rows: Sequence[Row]
) -> None:
    """Keeps what was searched, every trial and the judgement: what stays in the repository.

    Raises:
        OSError: it cannot be written.
    """
    names = [parameter.name for parameter in search.space]
    trials = [
        [number(trial.value), *(_rounded(trial.params[name]) for name in names)]
        for trial in study.get_trials()
        if trial.state == TrialState.COMPLETE
    ]
    judged = [
        [row.case, row.method, row.quantity, number(row.mean), number(row.sd), row.unit]
        for row in rows
    ]
    head = {**about, "study": study.user_attrs[_DESCRIPTION], "columns": ["cost", *names]}
    lists = {"trials": trials, "judged": judged}
    tail = ",\n".join(
        f' "{name}": [\n' + ",\n".join(f"  {json.dumps(line)}" for line in lines) + "\n ]"
        for name, lines in lists.items()
    )
    begin = json.dumps(head, indent=1).removesuffix("\n}")
    path.write_text(f"{begin},\n{tail}\n}}\n", encoding="utf-8")


def _swarm(
    study: optuna.Study,
    search: Search,
    costs: Costs,
    trials: int,
    progress: Callable[[int], None],
) -> None:
    """The swarm from its beginning: what is in the study already is not evaluated again."""
    space, size = search.space, len(search.space)
    distributions = {parameter.name: parameter.distribution for parameter in space}
    known = {_key(trial.params): float(trial.value or 0.0) for trial in study.get_trials()}
    done = 0

    def evaluate(_: object, positions: np.ndarray) -> Iterator[float]:
        candidates = [values_at(space, position) for position in positions]
        new = costs([values for values in candidates if _key(values) not in known])
        for values in candidates:
            if _key(values) not in known:
                known[_key(values)] = next(new)
                study.add_trial(
                    create_trial(
                        params=values, distributions=distributions, value=known[_key(values)]
                    )
                )
            yield known[_key(values)]

    def count(evaluations: int) -> None:
        nonlocal done
        done += evaluations
        progress(done)

    particle_swarm(
        lambda position: math.nan,  # `evaluate` knows the cost
        np.zeros(size),
        np.ones(size),
        min(PARTICLES, trials),
        math.ceil(trials / PARTICLES),
        search.seed,
        count,
        positions_of(space, search.start),
        evaluate,
    )


def _key(values: Values) -> str:
    return json.dumps(dict(values), sort_keys=True)


def number(value: float | None) -> float | None:
    """To six digits for JSON, which knows no infinity: None."""
    return _rounded(value) if value is not None and math.isfinite(value) else None


def _rounded(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


_cost: Cost


def _begin_worker(cost: Cost) -> None:
    global _cost
    _cost = cost
    numba.set_num_threads(1)
    threadpool_limits(1, user_api="blas")


def _cost_in_worker(values: Values) -> float:
    return _cost(values)
