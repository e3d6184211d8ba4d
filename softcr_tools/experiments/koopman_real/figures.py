"""What the models predicted of a real arm."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from softcr_control.koopman import KoopmanModel
from softcr_tools.experiments.koopman_real.recordings import Recording
from softcr_tools.experiments.koopman_real.scores import errors_of
from softcr_tools.report_axes import STYLE

_SHOWN = 40.0  # seconds of a trial


def draw(
    path: Path, recordings: Sequence[Recording], models: Mapping[str, KoopmanModel], steps: int
) -> None:
    """First how the error grows with time, then every trial's beginning, predicted blindly."""
    width = max(recording.trial.outputs.shape[1] for recording in recordings)
    with rc_context(STYLE):
        figure = Figure(figsize=(11.0, 2.4 * (1 + len(recordings))), layout="constrained")
        grid = figure.subplots(1 + len(recordings), width, squeeze=False)
        for axes in grid[0, 1:]:
            axes.set_visible(False)
        _draw_growth(grid[0, 0], recordings, models, steps)
        for recording, axes_of in zip(recordings, grid[1:], strict=True):
            for number, axes in enumerate(axes_of):
                _draw_beginning(axes, recording, models, number)
        grid[1, 0].legend(loc="upper right", ncols=3)
        figure.savefig(path)


def _draw_growth(
    axes: Axes, recordings: Sequence[Recording], models: Mapping[str, KoopmanModel], steps: int
) -> None:
    period = next(iter(models.values())).period
    found = [errors_of(models, recording.trial, steps) for recording in recordings]
    for method in found[0]:
        mean = np.vstack([errors[method] for errors in found]).mean(axis=0)
        axes.plot(period * (1 + np.arange(steps)), mean, marker=".", label=method)
    axes.set_xlabel("time ahead / s")
    axes.set_ylabel("mean error / mm")
    axes.legend()


def _draw_beginning(
    axes: Axes, recording: Recording, models: Mapping[str, KoopmanModel], number: int
) -> None:
    period = next(iter(models.values())).period
    outputs, inputs = recording.trial.outputs, recording.trial.inputs
    rows = min(len(outputs), round(_SHOWN / period))
    times = period * np.arange(rows)
    axes.plot(times, outputs[:rows, number], color="black", label="measured")
    for method, model in models.items():
        delays = model.lift.delays
        start = model.lifted(outputs[: delays + 1], inputs[: delays + 1])[0]
        predicted = model.rollout(start, inputs[delays : rows - 1])
        axes.plot(times[delays + 1 :], predicted[:, number], linewidth=1.0, label=method)
    axes.set_xlabel("time / s")
    axes.set_ylabel(f"{recording.name}: tip {number + 1} / mm")
