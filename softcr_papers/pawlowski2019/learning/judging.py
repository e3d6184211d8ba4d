"""When policies are judged while they learn, and what is told of that."""

from collections.abc import Callable
from dataclasses import dataclass

from softcr_papers.pawlowski2019.learning.evaluation import Figures, Judgement
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.tasks import Task
from softcr_papers.pawlowski2019.policy.policy_file import Policy

FRESH = 1_000_003
"""Added to a seed: goals of a judgement are not those of the training."""


@dataclass(frozen=True)
class Report:
    """How far a training is.

    Attributes:
        samples: done.
        seconds: of processor time, without judgements.
        judgement: the last, or the best; None before the first.
    """

    samples: int
    seconds: float
    judgement: Judgement | None

    @property
    def figures(self) -> Figures:
        """Of the judgement."""
        assert self.judgement is not None
        return self.judgement.figures


@dataclass(frozen=True, eq=False)
class Judging:
    """When and how a policy is judged while it learns.

    Attributes:
        plant, task: on which, finer than the training's.
        every: samples between judgements; 0: at the end alone.
        runs: fresh ones of each.
        better: whether the first figures are better than the second; the best policy is kept.
        enough: whether a training may stop with these figures.
    """

    plant: Plant
    task: Task
    every: int = 8000
    runs: int = 512
    better: Callable[[Figures, Figures], bool] = lambda new, old: new.reached > old.reached
    enough: Callable[[Figures], bool] = lambda figures: False


@dataclass(frozen=True, eq=False)
class Trained:
    """What came of a training.

    Attributes:
        policy: the best, by its judgements.
        history: of all judgements.
    """

    policy: Policy
    history: list[Report]
