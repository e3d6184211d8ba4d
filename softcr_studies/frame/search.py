"""Searches whose trials are cells: workers share one Optuna study, wherever they run.

A study that searches names a `Turn` for each trial. Turns find what others tried in a journal file
beside the results, or in a storage that is given by its URL. A turn whose worker was lost is taken
again, with the candidate that it had: it costs this trial and no other.
"""

import fcntl
import hashlib
import json
import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from softcr_models.errors import UserError
from softcr_studies.frame.cell import Cell, Result, StudySettings
from softcr_studies.frame.code_version import code_version
from softcr_studies.frame.results import Results

if TYPE_CHECKING:  # of an extra: studies are listed without
    import optuna

TRIAL = "trial"
"""The only method of a Turn."""
_TURN = "turn"
_OPENINGS = 5  # several workers may be the first to lay the tables of an empty database

Pairs = tuple[tuple[str, Any], ...]
"""Values by name, as a case holds them."""
Trials = Annotated[int, Field(ge=1, le=100_000, description="trials of the search")]


class SearchSettings(StudySettings):
    """See StudySettings."""

    trials: Trials = 50
    search_seed: int = Field(0, ge=0, le=1_000_000, description="seed of the search")
    storage: str = Field(
        "",
        description="URL of an Optuna storage (mysql://...) for workers that share no folder, used "
        "by one run at a time; empty: a file beside the results",
    )


@dataclass(frozen=True)
class Turn:
    """One trial of a search, as a case."""

    number: int  # from 0
    of: str = ""  # what else it depends on: the content of a person's file, in a text
    values: Pairs = ()  # to be tried, where they are known beforehand
    name: str = "search"


def turns(settings: Any, of: str = "") -> list[Turn]:
    """The cases of a search; see Turn."""
    return [Turn(number, of) for number in range(settings.trials)]


@dataclass(frozen=True)
class Range:
    """What a value may be: a number between two ends, or one of some choices."""

    low: float = 0.0
    high: float = 1.0
    log: bool = False  # whether the search is even in the logarithm
    whole: bool = False  # whether it is a whole number
    choices: tuple[Any, ...] = ()  # if there are some, there are no ends

    def suggest(self, trial: "optuna.trial.BaseTrial", name: str) -> Any:
        """A value for a trial."""
        if self.choices:
            return trial.suggest_categorical(name, self.choices)
        if self.whole:
            return trial.suggest_int(name, int(self.low), int(self.high), log=self.log)
        return trial.suggest_float(name, self.low, self.high, log=self.log)

    def share_of(self, value: float) -> float:
        """Where a number stands, 0 to 1; what lies outside stands on the edge."""
        low, high, inside = map(
            math.log if self.log else float,
            (self.low, self.high, min(max(value, self.low), self.high)),
        )
        return (inside - low) / (high - low)

    def value_at(self, share: float) -> float:
        """The number that stands there."""
        low, high = map(math.log if self.log else float, (self.low, self.high))
        value = low + share * (high - low)
        return min(max(math.exp(value) if self.log else value, self.low), self.high)


@dataclass(frozen=True)
class Tried:
    """A trial that has ended."""

    number: int  # of its turn
    cost: float  # what it came to; of one that was stopped early, what it had reached
    values: Mapping[str, Any]  # what was tried
    complete: bool = True  # whether it was not stopped early


@dataclass(frozen=True, eq=False)
class Search:
    """A search by tree-structured Parzen estimators."""

    name: str  # of the study
    file: str  # of it: another version of the code begins another search
    # fewest reports of a trial, and how many of which one goes on; None: no trial is stopped early
    halving: tuple[int, int] | None = None

    def take_turn(
        self, cell: Cell, start: Mapping[str, Any], objective: Callable[["optuna.Trial"], float]
    ) -> Result:
        """Try one candidate, unless the trial of this cell's Turn has ended already.

        Args:
            start: values of the first trial.
            objective: suggests values and says what they cost; may raise optuna.TrialPruned.

        Raises:
            UserError: the storage cannot be opened.
        """
        study, turn = self.open(cell.settings, cell.folder, cell.case.of), cell.case.number
        mine = [each for each in study.get_trials() if each.user_attrs.get(_TURN) == turn]
        ended = [each for each in mine if each.state.name in ("COMPLETE", "PRUNED")]
        trial = ended[0] if ended else _try(study, cell, {} if turn else start, mine, objective)
        cost = math.inf if trial.value is None else float(trial.value)
        return result_of(cost, trial.params, trial.state.name == "COMPLETE")

    def open(self, settings: SearchSettings, folder: Path, of: str = "") -> "optuna.Study":
        """The Optuna study that all turns share, through a folder or a storage; `of`: see Turn.

        Settings with more trials go on with the same search.

        Raises:
            UserError: the storage cannot be opened.
        """
        try:
            import optuna
        except ImportError:
            raise UserError("a search needs optuna: pip install 'softcr[surrogate]'") from None

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        chosen = settings.model_dump_json(exclude={"seeds", "trials", "storage"})
        told = f"{code_version(Path(self.file))} {chosen} {of}"
        digest = hashlib.sha256(told.encode()).hexdigest()
        pruners = optuna.pruners
        pruner = pruners.SuccessiveHalvingPruner(*self.halving) if self.halving else None
        for attempt in range(_OPENINGS):
            try:
                return optuna.create_study(
                    study_name=f"{self.name} {digest[:16]}",
                    storage=settings.storage or _journal(folder / "search.journal"),
                    pruner=pruner or pruners.NopPruner(),
                    load_if_exists=True,
                )
            except Exception as error:  # whatever database drivers raise
                last = error
                time.sleep(0.1 * attempt)
        reason = (str(last).splitlines() or [type(last).__name__])[0]
        place = settings.storage or folder
        raise UserError(f"storage {str(place)!r}: cannot be opened: {reason}") from None


def result_of(cost: float, values: Mapping[str, Any], complete: bool = True) -> Result:
    """A trial as the result of its cell; see Tried."""
    return {"cost": cost, "values": json.dumps(values), "complete": complete}


def tried(results: Results) -> list[Tried]:
    """What the turns of a search tried, in their order."""
    return [
        Tried(cell.case.number, told["cost"], json.loads(told["values"]), told["complete"])
        for cell in results.cells
        if isinstance(cell.case, Turn)
        for told in [results[cell]]
    ]


def ranked(trials: Iterable[Tried]) -> list[Tried]:
    """Those that were not stopped early and have a finite cost, the best first."""
    finite = [each for each in trials if each.complete and math.isfinite(each.cost)]
    return sorted(finite, key=lambda each: (each.cost, each.number))


def importance(trials: Sequence[Tried], space: Mapping[str, Range]) -> dict[str, float]:
    """Name -> share of a value in what makes a trial one of the best tenth (PED-ANOVA).

    `trials` have finite cost. Empty where there are too few of them to tell.
    """
    import optuna
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    study = optuna.create_study()
    for each in trials:
        fixed = optuna.trial.FixedTrial(dict(each.values))
        for name in each.values:
            space[name].suggest(fixed, name)
        study.add_trial(
            optuna.trial.create_trial(
                params=fixed.params, distributions=fixed.distributions, value=each.cost
            )
        )
    try:
        found = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
    except (RuntimeError, ValueError):
        return {}
    return {name: round(share, 3) for name, share in found.items()}


def _try(
    study: "optuna.Study", cell: Cell, fixed: Mapping[str, Any],
    lost: Sequence["optuna.trial.FrozenTrial"], objective: Callable[["optuna.Trial"], float],
) -> "optuna.trial.FrozenTrial":  # fmt: skip
    """One trial; what a lost worker was trying is tried again."""
    import optuna
    from optuna.trial import TrialState

    for each in lost:
        if each.state == TrialState.RUNNING:  # its worker is gone, or nobody took its turn again
            study.tell(each.number, state=TrialState.FAIL)
        fixed = each.params or fixed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        seed = 100_003 * cell.settings.search_seed + cell.case.number
        sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        study.sampler = optuna.samplers.PartialFixedSampler(dict(fixed), sampler)
    trial = study.ask()
    trial.set_user_attr(_TURN, cell.case.number)
    try:
        cost = objective(trial)
    except optuna.TrialPruned:
        return study.tell(trial, state=TrialState.PRUNED)
    return study.tell(trial, math.inf if math.isnan(cost) else cost)


def _journal(path: Path) -> "optuna.storages.BaseStorage":
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    lock: Any = _KernelLock(path.with_suffix(".lock"))
    return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))


class _KernelLock:
    """A lock that a killed worker does not leave behind, as it does with Optuna's lock files."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def acquire(self) -> bool:
        self._held = self._path.open("w")
        fcntl.flock(self._held, fcntl.LOCK_EX)
        return True

    def release(self) -> None:
        self._held.close()
