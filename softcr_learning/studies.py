"""Optuna studies that processes share and that go on where they were stopped."""

from collections.abc import Sequence

import optuna
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from softcr_models.errors import UserError

FINISHED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)


def open_study(
    name: str,
    storage: str,
    sampler: optuna.samplers.BaseSampler,
    pruner: optuna.pruners.BasePruner | None = None,
) -> optuna.Study:
    """The study of that name in a storage: a journal file, or an Optuna URL (mysql://, ...).

    Raises:
        UserError: the storage cannot be opened.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        kept: BaseStorage | str = storage
        if "://" not in storage:
            kept = JournalStorage(JournalFileBackend(storage))
        return optuna.create_study(
            study_name=name, storage=kept, sampler=sampler, pruner=pruner, load_if_exists=True
        )
    except Exception as error:  # whatever database drivers raise
        reason = str(error).splitlines()[0]
        raise UserError(f"storage {storage!r}: cannot be opened: {reason}") from None


def finished(study: optuna.Study) -> int:
    """How many trials have ended, one way or another."""
    return sum(trial.state in FINISHED for trial in study.get_trials(deepcopy=False))


def importance(trials: Sequence[FrozenTrial]) -> dict[str, float]:
    """Share of each parameter in what makes a trial one of the best tenth (PED-ANOVA).

    Args:
        trials: of finite cost.

    Returns:
        Name -> share; empty where there are too few trials to tell.
    """
    try:
        told = optuna.create_study()
        told.add_trials(trials)
        found = get_param_importances(told, evaluator=PedAnovaImportanceEvaluator())
    except (RuntimeError, ValueError):
        return {}
    return {name: round(share, 3) for name, share in found.items()}
