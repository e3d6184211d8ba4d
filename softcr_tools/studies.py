"""Optuna studies that processes share and that go on where they were stopped."""

import optuna
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

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
