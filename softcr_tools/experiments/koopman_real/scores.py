"""How far each method's prediction lies from a recording it has not seen."""

from collections.abc import Mapping, Sequence

import numpy as np

from softcr_control.koopman import KoopmanModel, Trial
from softcr_control.koopman_selection import rollout_errors
from softcr_tools.experiments.koopman_real.recordings import Recording
from softcr_tools.experiments.results import Row

HOLD = "hold last value"


def errors_of(
    models: Mapping[str, KoopmanModel], trial: Trial, steps: int | None
) -> dict[str, np.ndarray]:
    """Method -> (N, steps) errors [mm] 1 ... steps periods ahead, all from the same samples.

    Args:
        models: beside them the trivial rival that holds the last value is scored.
        steps: None: the whole trial, once, from its beginning.
    """
    oldest = max(model.lift.delays for model in models.values())
    steps = len(trial.outputs) - oldest - 1 if steps is None else steps
    errors = {}
    for name, model in models.items():
        skipped = oldest - model.lift.delays
        errors[name] = rollout_errors(
            model, Trial(trial.outputs[skipped:], trial.inputs[skipped:]), steps
        )
    outputs = trial.outputs[oldest:]
    starts = np.arange(max(0, len(outputs) - steps))
    ahead = starts[:, None] + 1 + np.arange(steps)
    errors[HOLD] = np.linalg.norm(outputs[ahead] - outputs[starts, None], axis=2)
    return errors


def rows_of(
    recordings: Sequence[Recording], models: Mapping[str, KoopmanModel], steps: int, horizon: float
) -> list[Row]:
    """Mean and largest error of every recording and method, and the mean in % of its motion."""
    rows = []
    for recording in recordings:
        near = errors_of(models, recording.trial, steps)
        whole = errors_of(models, recording.trial, None)
        for method in near:
            for reach, errors in ((f"to {horizon:g} s ahead", near), ("whole trial", whole)):
                found = errors[method]
                mean, deviation = float(found.mean()), float(found.std())
                percent = 100.0 / recording.motion
                rows += [
                    Row(recording.name, method, f"{reach}, {what}", None, value, spread, unit, 1)
                    for what, value, spread, unit in (
                        ("mean", mean, deviation, "mm"),
                        ("largest", float(found.max()), 0.0, "mm"),
                        ("mean of motion", percent * mean, percent * deviation, "%"),
                    )
                ]
    return rows
