"""Which lift and which ridge: those that predict best what the model has not seen."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from softcr_models.errors import UserError
from softcr_studies.koopman.lifted_model import KoopmanModel, Lift, Trial, identified


@dataclass(frozen=True)
class Choice:
    """One candidate and how well it predicts.

    Attributes:
        lift, ridge: of `identified`.
        error: mean cross-validated rollout error, in the outputs' unit; inf if it diverges.
    """

    lift: Lift
    ridge: float
    error: float


def rollout_errors(model: KoopmanModel, trial: Trial, steps: int, every: int = 1) -> np.ndarray:
    """(N, steps) distance of the outputs after 1 ... steps periods, from every `every`-th sample.

    Empty (0, steps) if the trial is too short.
    """
    delays = model.lift.delays
    states = model.lifted(trial.outputs, trial.inputs)
    starts = np.arange(0, len(states) - steps, every)
    if not len(starts):
        return np.empty((0, steps))
    ahead = starts[:, None] + delays + np.arange(steps)
    predicted = model.rollout(states[starts], trial.inputs[ahead])
    with np.errstate(over="ignore", invalid="ignore"):
        return np.linalg.norm(predicted - trial.outputs[ahead + 1], axis=2)


def select(
    trials: Sequence[Trial],
    candidates: Sequence[tuple[Lift, float]],
    steps: int,
    folds: int,
    period: float,
    progress: Callable[[], None] = lambda: None,
) -> list[Choice]:
    """All candidates, best first, by rollouts of `steps` periods in trials left out in turn.

    Fold f leaves out the trials f, f + folds, ...

    Raises:
        UserError: fewer than two folds or fewer trials than folds, no candidate, or every candidate
            diverges.
    """
    if not 2 <= folds <= len(trials) or not candidates:
        raise UserError(
            f"cross-validation: {folds} folds of {len(trials)} trials with {len(candidates)} "
            "candidates: at least 2 folds, as many trials and one candidate are needed"
        )
    choices = []
    for lift, ridge in candidates:
        choices.append(Choice(lift, ridge, _error(trials, lift, ridge, steps, folds, period)))
        progress()
    choices.sort(key=lambda choice: choice.error)
    if not np.isfinite(choices[0].error):
        raise UserError(f"cross-validation: all {len(candidates)} candidates diverge")
    return choices


def grid(
    delays: Sequence[int],
    degrees: Sequence[int],
    ridges: Sequence[float],
) -> list[tuple[Lift, float]]:
    """All combinations; monomials with and without the previous input."""
    lifts = [
        Lift(delay, degree, lift_inputs)
        for delay, degree in itertools.product(delays, degrees)
        for lift_inputs in ((False, True) if degree > 1 and delay else (False,))
    ]
    return list(itertools.product(lifts, ridges))


def _error(
    trials: Sequence[Trial], lift: Lift, ridge: float, steps: int, folds: int, period: float
) -> float:
    errors = []
    for fold in range(folds):
        kept = [trial for number, trial in enumerate(trials) if number % folds != fold]
        try:
            model = identified(kept, lift, ridge, period)
        except UserError:  # too little excitation for this candidate
            return float("inf")
        errors += [
            rollout_errors(model, trial, steps, every=max(1, steps // 4)).ravel()
            for trial in trials[fold::folds]
        ]
    everything = np.concatenate(errors)
    mean = float(everything.mean()) if everything.size else float("inf")
    return mean if np.isfinite(mean) else float("inf")
