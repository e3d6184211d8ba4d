"""Which structure learns best: asynchronous successive halving over networks.

Licher et al. 2025, Sec. IV-B: neurons, layers, learning rate and ansatz terms; networks that fall
behind are stopped early. Workers on one machine or many share an Optuna storage.
"""

from pathlib import Path

import numpy as np
import optuna

from softcr_learning import studies
from softcr_learning.surrogate import training
from softcr_learning.surrogate.training_data import rod_data
from softcr_learning.surrogate.training_settings import TrainingSettings
from softcr_models.errors import UserError
from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.surrogate.ansatz import PIECES
from softcr_models.surrogate.ddpinn import Architecture

FEWEST_VALIDATIONS = 2  # before a network may be stopped: the paper's grace of 300 epochs
REDUCTION = 3  # of three networks one goes on


def open_study(storage: str, seed: int) -> optuna.Study:
    """The study of a storage: a journal file by default, or an Optuna URL (mysql://, ...).

    Raises:
        UserError: the storage cannot be opened.
    """
    sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
    pruner = optuna.pruners.SuccessiveHalvingPruner(
        min_resource=FEWEST_VALIDATIONS, reduction_factor=REDUCTION
    )
    return studies.open_study("surrogate", storage, sampler, pruner)


def fixed_settings(iterations: int, seed: int) -> TrainingSettings:
    """What all networks of a search have in common, their data among it."""
    return TrainingSettings(
        iterations=iterations,
        trajectories=800,
        noisy_samples=100_000,
        seed=seed,
        threads=1,
        validate_every=0.1,
    )


def settings_of(trial: optuna.Trial, fixed: TrainingSettings) -> TrainingSettings:
    """What a trial trains: the paper's space, whether neurons are gated and shapes are shared."""
    gated = trial.suggest_categorical("activation", ["gated", "silu"]) == "gated"
    shared = trial.suggest_categorical("shapes", ["shared", "network"]) == "shared"
    architecture = Architecture(
        neurons=trial.suggest_int("neurons", 64, 512, log=True),
        layers=trial.suggest_int("layers", 1, 3),
        activation="gated" if gated else "silu",
        shapes="shared" if shared else "network",
        terms=PIECES if shared else trial.suggest_int("terms", 1, 24, log=True),
    )
    rate = trial.suggest_float("learning_rate", 3e-4, 1e-2, log=True)
    return fixed.model_copy(update={"architecture": architecture, "learning_rate": rate})


def shipped_choice() -> dict[str, str | int | float]:
    """What a training takes by default, as the search's own words: what it has to beat."""
    ours = TrainingSettings()
    choice: dict[str, str | int | float] = {"learning_rate": ours.learning_rate}
    for name in ("activation", "shapes", "neurons", "layers"):
        choice[name] = getattr(ours.architecture, name)
    return choice


def work(
    study: optuna.Study, robot: Robot, fixed: TrainingSettings, trials: int, output: Path
) -> None:
    """Trains networks until the study has as many trials as asked for.

    Args:
        study: shared with other workers.
        robot: whose rod is learnt.
        fixed: what all networks have in common.
        trials: of the study in all.
        output: folder of the networks, network-NUMBER.
    """
    if studies.finished(study) >= trials:
        return
    data = rod_data(CosseratRod(robot, fixed.intervals), fixed)  # the same for every network

    def objective(trial: optuna.Trial) -> float:
        settings = settings_of(trial, fixed)
        path = output / f"network-{trial.number}"
        seen: list[float] = []

        def judge(progress: training.Progress) -> None:
            if progress.phase != "training" or not progress.validation:
                return
            value = _score(progress.validation)
            if seen and seen[-1] == value:
                return
            seen.append(value)
            trial.report(value, len(seen))
            if trial.should_prune():
                raise optuna.TrialPruned

        try:
            _, card = training.train(robot, settings, path, judge, resume=False, data=data)
        except optuna.TrialPruned:
            path.with_name(path.name + ".checkpoint").unlink(missing_ok=True)
            raise
        except UserError:  # its losses became NaN: a bad choice, not the end of the search
            return float("inf")
        return _score(card.validation)

    enough = optuna.study.MaxTrialsCallback(trials, states=studies.FINISHED)
    study.optimize(objective, callbacks=[enough])


def _score(validation: dict[str, float]) -> float:
    """Mean over the sets of validation [mm]."""
    return float(np.mean(list(validation.values())))
