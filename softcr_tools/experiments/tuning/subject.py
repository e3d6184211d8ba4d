"""What a tuning needs to know of its subject, and its judgement as rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from softcr_studies.control import rate
from softcr_studies.different_plant import Difference
from softcr_studies.licher2025.circles import circle
from softcr_studies.licher2025.setpoint import SETPOINT
from softcr_studies.tracking_loop import FAST, Case
from softcr_tools.experiments.results import Row
from softcr_tools.experiments.tuning.space import Parameter, Values
from softcr_tools.experiments.tuning.study import Cost

RATIO = "tuned / shipped"
SEARCH_SEED, FINAL_SEEDS, FIRST_HELD_OUT = 0, (10, 11), 100

Errors = Mapping[tuple[str, str], Sequence[float]]
"""(case, quantity) -> a figure per seed; quantities as "name [unit]"."""


@dataclass(frozen=True)
class Effort:
    """How long the runs are.

    Attributes:
        search, final: factors on the motions of tuning.
        population: of an NEMPC during the search.
    """

    search: float = 1.0
    final: float = 1.3
    population: int = 256


@dataclass(frozen=True, eq=False)
class Subject:
    """Something to tune.

    Attributes:
        space: its parameters.
        start: their values to begin with.
        swarm: whether it is searched by a particle swarm.
        described: what the search judges on.
        cost: of the search.
        final_cost: of those that came out best: other seeds, longer, and all candidates.
        shipped: values of what the tuned is compared with.
        contenders: (tuned values) -> name -> what is judged: the tuned, the shipped and, where it
            can be run, what the paper printed.
        judge: (a contender, seeds, progress) -> figures on what the search never saw; NaN where a
            run did not get to its end.
        runs: of one `judge` per seed.
        write: the file of values.
    """

    space: tuple[Parameter, ...]
    start: dict[str, Any]
    swarm: bool
    described: dict[str, Any]
    cost: Cost
    final_cost: Cost
    shipped: dict[str, Any]
    contenders: Callable[[Values], dict[str, Any]]
    judge: Callable[[Any, Sequence[int], Callable[[], None]], Errors]
    runs: int
    write: Callable[[Values, Path], None]


def held_out(name: str, seconds: float, difference: Difference | None = None) -> Case:
    """A case of the experiments, shortened, perhaps on another plant: no search sees it."""
    case = next(each for each in (FAST, SETPOINT, circle(1.0), *rate.CASES) if each.name == name)
    return replace(case, duration=seconds, difference=difference or case.difference)


def rows_of(judged: Mapping[str, Errors], count: int) -> list[Row]:
    """A row per case, contender and quantity, and what "tuned" makes of "shipped"."""
    compared = {
        key: np.divide(errors, judged["shipped"][key]) for key, errors in judged["tuned"].items()
    }
    rows = []
    for case in dict.fromkeys(case for case, _ in compared):
        for contender, errors in {**judged, RATIO: compared}.items():
            for quantity in (quantity for name, quantity in compared if name == case):
                name, _, unit = quantity.removesuffix("]").partition(" [")
                values = np.asarray(errors[case, quantity])
                mean, sd = float(values.mean()), float(values.std())
                if contender != RATIO:
                    rows.append(Row(case, contender, name, None, mean, sd, unit, count))
                else:
                    limit = 1.0 if "error" in name else None
                    rows.append(Row(case, contender, name, None, mean, sd, "-", count, limit))
    return rows


def write_yaml(content: Mapping[str, Any], path: Path) -> None:
    """A file of values."""
    path.write_text(yaml.safe_dump(dict(content), sort_keys=False), encoding="utf-8")
