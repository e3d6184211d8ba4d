"""What a paper claims, and whether the tables of its studies show it.

A claim names rows of a table. Whether it is reproduced follows from their figures alone.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from softcr_studies.frame.table import KINDS, Kind, Row, figure

Verdict = Literal["yes", "partly", "no", "not run"]


@dataclass(frozen=True)
class Claim:
    """A claim of a paper about rows of one study.

    A row holds where it is at least as good as the bound. The claim is reproduced where every row
    holds in its worst seed, and partly where some rows hold, or rows hold in the mean alone.

    Attributes:
        says: the claim, in words.
        study: name of the study.
        quantity: of the rows, or several.
        cases, methods: of the rows; empty: of any that has the quantity and a bound.
        at_least: whether more is better.
        bound: what is claimed, in the rows' unit; None: each row's published figure.
        published_by: the method of the same case whose published figure it is; empty: the row's.
        than: a method instead: a row must be better than that method's of the same case.
        why: said where the claim is not, or only partly, reproduced.
    """

    says: str
    study: str
    quantity: str | tuple[str, ...]
    cases: Sequence[str] = ()
    methods: Sequence[str] = ()
    at_least: bool = False
    bound: float | None = None
    published_by: str = ""
    than: str = ""
    why: str = ""

    def judged(self, rows: Sequence[Row] | None) -> "Judged":
        """The claim beside our figures.

        Args:
            rows: of the study's table; None: there is no table.
        """
        if rows is None:
            return Judged(self, "not run", [], [])
        by_key = {row.key: row for row in rows}
        found: list[tuple[Row, float]] = []
        for row in rows:
            bound = self._bound(row, by_key)
            if self._means(row) and row.seeds and bound is not None:
                found.append((row, bound))
        missing = {*self.cases} - {row.case for row, _ in found}
        missing |= {*self.methods} - {row.method for row, _ in found}
        if not found:
            return Judged(self, "not run", [], sorted(missing))
        in_mean = [self._holds(row.mean, bound) for row, bound in found]
        in_worst = [self._holds(self._worst(row), bound) for row, bound in found]
        some = "partly" if any(in_mean) else "no"
        verdict: Verdict = "yes" if all(in_worst) and not missing else some  # type: ignore[assignment]
        return Judged(self, verdict, found, sorted(missing))

    def _means(self, row: Row) -> bool:
        return (
            row.quantity in ((self.quantity,) if isinstance(self.quantity, str) else self.quantity)
            and (not self.cases or row.case in self.cases)
            and (not self.methods or row.method in self.methods)
            and row.method != self.than
        )

    def _bound(self, row: Row, by_key: dict[tuple[str, str, str], Row]) -> float | None:
        if self.than:
            other = by_key.get((row.case, self.than, row.quantity))
            return None if other is None else other.mean
        if self.bound is not None:
            return self.bound
        source = by_key.get((row.case, self.published_by, row.quantity), row)
        return source.paper

    def _holds(self, value: float, bound: float) -> bool:
        if self.than:  # better, not as good
            return value > bound if self.at_least else value < bound
        return value >= bound if self.at_least else value <= bound

    def _worst(self, row: Row) -> float:
        """Of the seeds; a row knows the largest where it knows no direction."""
        if row.worst is None or row.at_least != self.at_least:
            return row.mean
        return row.worst


@dataclass(frozen=True)
class Judged:
    """A claim and what was found.

    Attributes:
        claim: which.
        verdict: whether it is reproduced.
        found: rows that it is about, each with what it had to keep.
        missing: cases and methods that it names and that have no row.
    """

    claim: Claim
    verdict: Verdict
    found: Sequence[tuple[Row, float]]
    missing: Sequence[str]

    @property
    def kind(self) -> Kind:
        """Where what it had to keep was found; of a bound or another method, in simulation."""
        compared = self.claim.than or self.claim.bound is not None
        kinds = {kind for row, _ in self.found for kind in row.published}
        return "bench" if kinds == {"bench"} and not compared else "simulation"

    def cells(self, kinds: Sequence[Kind]) -> list[str]:
        """claim, published of each kind, ours, spread, reproduced, why."""
        claim = self.claim
        if not self.found:
            words = f"`softcr study run {claim.study}` makes its table"
            return [claim.says, *("" for _ in kinds), "", "", self.verdict, words]
        rows = [row for row, _ in self.found]
        unit = rows[0].unit
        sign = {True: "more than ", False: "less than "}[claim.at_least] if claim.than else ""
        published = sign + _range([bound for _, bound in self.found], unit)
        published += f" ({claim.than})" if claim.than else ""
        whys = [claim.why] if claim.why and self.verdict != "yes" else []
        if self.verdict == "partly":
            whys.insert(0, self._how_many())
        whys += [f"no row of {', '.join(self.missing)}"] if self.missing else []
        return [
            claim.says, *(published * (kind == self.kind) for kind in kinds),
            _range([row.mean for row in rows], unit), _spread(rows), self.verdict, "; ".join(whys),
        ]  # fmt: skip

    def _how_many(self) -> str:
        claim, count = self.claim, len(self.found)
        in_mean = sum(claim._holds(row.mean, bound) for row, bound in self.found)
        in_worst = sum(claim._holds(claim._worst(row), bound) for row, bound in self.found)
        return f"{in_mean} of {count} rows in the mean, {in_worst} in the worst seed"


def _spread(rows: Sequence[Row]) -> str:
    """Median and worst of the seeds; over several rows, how far they range."""
    known = [row for row in rows if row.median is not None and row.worst is not None]
    if not known:
        return f"{max(row.seeds for row in rows)} seed" + "s" * (max(row.seeds for row in rows) > 1)
    medians, worsts = ([getattr(row, name) for row in known] for name in ("median", "worst"))
    return f"median {_range(medians, '')}, worst {_range(worsts, '')}, {known[0].seeds} seeds"


def _range(values: Sequence[float], unit: str) -> str:
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return "lost"
    low, high = figure(min(known)), figure(max(known))
    lost = ", others lost" if len(known) < len(values) else ""
    return _unit(low if low == high else f"{low} to {high}", unit) + lost


def _unit(text: str, unit: str) -> str:
    return text if unit in ("", "-") else f"{text} {unit}"


def claims_table(claims: Sequence[Claim], rows_of: Callable[[str], Sequence[Row] | None]) -> str:
    """Markdown: the claims of a paper and what is reproduced.

    Args:
        claims: of the paper.
        rows_of: name of a study -> rows of its table; None: there is no table.
    """
    judged = [claim.judged(rows_of(claim.study)) for claim in claims]
    kinds = [kind for kind in KINDS if any(each.kind == kind for each in judged)]
    columns = (f"published, {kind}" for kind in kinds)
    heads = ["claim", *columns, "ours, simulation", "spread", "reproduced", "why"]
    lines = [heads, ["---"] * len(heads), *(each.cells(kinds) for each in judged)]
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in escaped)
