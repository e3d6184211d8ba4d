"""One line of the bench: what was measured, the rival beside it, and what was asked for."""

from dataclasses import asdict, dataclass
from typing import Any

from softcr_tools.benchmarks.timing import Timing


@dataclass(frozen=True)
class Requirement:
    """A bound on one figure of a row.

    Attributes:
        value: what was found.
        unit: of value and bounds.
        limit: what must be kept.
        goal: what is hoped for.
        at_least: whether the bounds are lower ones.
    """

    value: float
    unit: str
    limit: float
    goal: float | None = None
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the limit is kept; never by NaN."""
        return self._keeps(self.limit)

    @property
    def reached(self) -> bool:
        """Whether the goal is reached; without a goal the limit is the goal."""
        return self._keeps(self.limit if self.goal is None else self.goal)

    def _keeps(self, bound: float) -> bool:
        return self.value >= bound if self.at_least else self.value <= bound


@dataclass(frozen=True)
class Rival:
    """Another way to the same result, measured in the same run.

    Attributes:
        name: what it is.
        median: its time, in the unit of the row.
    """

    name: str
    median: float


@dataclass(frozen=True)
class Row:
    """One line of the bench.

    Attributes:
        name: what was measured.
        unit: of the times.
        timing: times in `unit`; None when it was skipped.
        tip_error: mean error of the tip that belongs to these times [m]; None: no such thing.
        rival: what it is compared with.
        requirements: what was asked for.
        note: what one must know to understand the figures.
        skipped: why nothing was measured.
    """

    name: str
    unit: str = ""
    timing: Timing | None = None
    tip_error: float | None = None
    rival: Rival | None = None
    requirements: tuple[Requirement, ...] = ()
    note: str = ""
    skipped: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times faster than the rival, medians compared."""
        if self.rival is None or self.timing is None:
            return None
        return self.rival.median / self.timing.median

    @property
    def mark(self) -> str:
        """ "goal", "pass", "MISS", "skipped", or nothing where nothing was asked for."""
        if self.timing is None:
            return "skipped"
        if not self.requirements:
            return ""
        if all(requirement.reached for requirement in self.requirements):
            return "goal"
        return "pass" if all(requirement.met for requirement in self.requirements) else "MISS"

    def as_dict(self) -> dict[str, Any]:
        """For JSON, with what follows from the figures."""
        return {**asdict(self), "ratio": self.ratio, "mark": self.mark}
