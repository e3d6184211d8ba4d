"""What a study is: a file with a STUDY of this form. Everything else is the runner's.

A study is run cell by cell. A cell is a function of what it is given and of nothing else, so cells
run in any order, in any process, on any machine of a cluster, and a run that was stopped goes on
with those that are missing.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softcr_studies.frame.cell import Cell, Result, Seeds, StudySettings
from softcr_studies.frame.results import Results
from softcr_studies.frame.table import Kind, Row

__all__ = ["Cell", "Metric", "Must", "Published", "Result", "Results", "Row", "Seeds",
           "Study", "StudySettings"]  # fmt: skip


@dataclass(frozen=True)
class Metric:
    """A figure of a cell's result: a row of the table for each case and method that has it.

    Attributes:
        quantity, unit: as the table says them.
        value: of a result, None where it has no such figure; a text names an entry of the result.
        timing: whether it measures the machine, so that it differs from run to run.
    """

    quantity: str
    unit: str
    value: Callable[[Result], float | None] | str
    timing: bool = False

    def of(self, result: Result) -> float | None:
        """The figure; None: the result has none."""
        found = result.get(self.value) if isinstance(self.value, str) else self.value(result)
        return None if found is None else float(found)


@dataclass(frozen=True)
class Published:
    """A published figure.

    Attributes:
        quantity: whose row it stands in.
        value: in the row's unit.
        kind: whether it was measured in simulation or on a bench.
        case, method: of the row; None: of every one.
    """

    quantity: str
    value: float
    kind: Kind
    case: str | None = None
    method: str | None = None


@dataclass(frozen=True)
class Must:
    """What is asked of a figure.

    Attributes:
        quantity: whose row it stands in.
        bound: what must be kept, in the row's unit.
        goal: what is hoped for; None: the bound.
        case, method: of the row; None: of every one.
        at_least: whether the bounds are lower ones.
        of_worst: whether the worst seed must keep them; otherwise the mean.
    """

    quantity: str
    bound: float
    goal: float | None = None
    case: str | None = None
    method: str | None = None
    at_least: bool = False
    of_worst: bool = False


@dataclass(frozen=True, eq=False)
class Study:
    """A study.

    Attributes:
        name: `group/name`, as its file is called.
        source: the paper and section that it repeats; empty: nothing was published.
        summary: one line.
        run: a cell -> its result. An entry `note` of it is told beside its rows; one of a cell
            that cannot be run here has `skipped`, the reason, alone.
        cases: what is varied beside the methods; a function of the settings where they choose.
        methods: what is compared; a function of a case where they differ.
        settings: class of what a person may choose.
        metrics: a row of each for every case and method.
        published, musts: figures to compare with, and bounds.
        exact: what plant and model share and what differs, in a sentence beside the figures.
        about: other facts that the table's reader needs.
        further_rows: rows that need more than one cell.
        draw: writes figures into a directory.
        later: cells that depend on results; asked again until it names nothing new.
        seeded: whether the seed changes anything; if not, one is run.
        needs: settings that must be given (a recording); without them it is no part of a group.
        serial: whether cells run one at a time, with all cores, since they measure times.
        after: names of the studies whose newest tables in the same results it reads.
        quick: settings of a quick run, which only shows that everything works.
    """

    name: str
    source: str
    summary: str
    run: Callable[[Cell], Result]
    cases: Sequence[Any] | Callable[[Any], Sequence[Any]]
    methods: Sequence[str] | Callable[[Any], Sequence[str]]
    settings: type[StudySettings] = StudySettings
    metrics: Sequence[Metric] = ()
    published: Sequence[Published] = ()
    musts: Sequence[Must] = ()
    exact: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    further_rows: Callable[[Results], Iterable[Row]] | None = None
    draw: Callable[[Results, Path], None] | None = None
    later: Callable[[Results], Iterable[Cell]] | None = None
    seeded: bool = True
    needs: Sequence[str] = ()
    serial: bool = False
    after: Sequence[str] = ()
    quick: Mapping[str, Any] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """What stands before the slash."""
        return self.name.partition("/")[0]

    def cells(self, settings: StudySettings) -> list[Cell]:
        """Every case, method and seed, seed by seed; those of `later` come later."""
        cases = self.cases(settings) if callable(self.cases) else self.cases
        return [
            Cell(case, method, seed, settings)
            for seed in range(settings.seeds if self.seeded else 1)
            for case in cases
            for method in (self.methods(case) if callable(self.methods) else self.methods)
        ]

    def rows(self, results: Results) -> list[Row]:
        """Rows of the metrics, then the further ones, each with what was published and is asked."""
        rows = []
        for (case, method), found in results.by_method().items():
            note = str(found[0].get("note", ""))
            if reason := found[0].get("skipped"):
                first = self.metrics[0]
                rows.append(Row(case, method, first.quantity, math.nan, 0.0, first.unit, 0,
                                timing=first.timing, note=f"skipped: {reason}"))  # fmt: skip
                continue
            for metric in self.metrics:
                values = [value for value in map(metric.of, found) if value is not None]
                if values:
                    about = self.asked(case, method, metric.quantity) | {
                        "timing": metric.timing, "note": note,
                    }  # fmt: skip
                    rows.append(Row.of(case, method, metric.quantity, values, metric.unit, **about))
        return [*rows, *(self.further_rows(results) if self.further_rows else ())]

    def asked(self, case: str, method: str, quantity: str) -> dict[str, Any]:
        """What was published for a row, and what it is asked."""

        def meant(each: Published | Must) -> bool:
            return (
                each.quantity == quantity
                and each.case in (None, case)
                and each.method in (None, method)
            )

        published = {each.kind: each.value for each in self.published if meant(each)}
        must = next(filter(meant, self.musts), None)
        if must is None:
            return {"published": published}
        bounds = {"must": must.bound, "goal": must.goal, "at_least": must.at_least,
                  "of_worst": must.of_worst}  # fmt: skip
        return {"published": published} | bounds
