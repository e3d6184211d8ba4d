"""A Koopman model fitted to a real pneumatic arm predicts trials that it has not seen.

Outputs are predicted up to a horizon ahead and over whole trials, knowing the commands alone.
Beside the Koopman model: a linear ARX model, the same without a lift, and holding the last value.
Lift, delays and ridge of both models are chosen on the training trials, by cross-validation.

A file is an .npz as of Bruder et al., with, for every trial i = 0, 1, ...: t{i} (N,) increasing
times [s], u{i} (N, m) commands [V], each held until the next, y{i} (N, p) tip position [cm].
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import Field

from softcr_models.errors import UserError
from softcr_models.files.small_files import arrays_of
from softcr_runtime.console.panels import panels
from softcr_runtime.settings.node_settings import Seconds
from softcr_studies.frame.study import Cell, Result, Results, Row, Study, StudySettings
from softcr_studies.koopman.lifted_model import KoopmanModel, Lift, Trial, identified
from softcr_studies.koopman.selection import grid, rollout_errors, select

FILE = "bruder2020_train.npz"
MOST_FOLDS = 5
DELAYS = (1, 2, 4, 8, 16, 24)
RIDGES = (1e-8, 1e-6, 1e-4)
CANDIDATES: dict[str, list[tuple[Lift, float]]] = {
    "koopman": grid(DELAYS, (2, 3), RIDGES),
    "linear ARX": grid(DELAYS, (1,), RIDGES),
}
HOLD = "hold last value"
_TRAINING, _ALL = "training trials", "all"
_MM_PER_CM = 10.0
_DRAWN = 40.0  # seconds of a trial
_CHOSEN = (
    ("chosen delays", "", "delays"), ("chosen degree", "", "degree"),
    ("previous input lifted", "", "lift_inputs"), ("chosen ridge", "", "ridge"),
    ("mean error, cross-validated", "mm", "error"),
)  # fmt: skip


class Settings(StudySettings):
    """Which recordings, and how far they are predicted."""

    data: str = Field("", description="folder of the recordings")
    train: str = Field(
        FILE, min_length=1, description="names of the files to train on, separated by commas"
    )
    score: str = Field(
        "",
        description="names of the files to score on; empty: every fourth training trial is held "
        "out",
    )
    period: Seconds = Field(
        1 / 12, ge=1e-3, le=1e3, description="period of the grid to which trials are resampled"
    )
    horizon: Seconds = Field(2.0, ge=1e-3, le=1e3, description="horizon of the predictions")

    @property
    def steps(self) -> int:
        """Of the horizon."""
        return max(1, round(self.horizon / self.period))


@dataclass(frozen=True, eq=False)
class Recording:
    """One trial on a uniform grid; outputs (T, p) tip [mm], inputs (T, m) commands [V]."""

    name: str  # file and number
    trial: Trial

    @property
    def extent(self) -> float:
        """Diagonal of the smallest box round the tip's path [mm]."""
        return float(np.linalg.norm(np.ptp(self.trial.outputs, axis=0)))


def load_recordings(path: Path, period: float) -> list[Recording]:
    """All trials of a file on a grid of `period` [s]: tips interpolated linearly, commands held.

    Raises:
        UserError: no such file, not of the form above, or not finite.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; recordings of a soft arm (.npz) are needed")
    try:
        arrays = {name: np.asarray(value, float) for name, value in arrays_of(path).items()}
    except (OSError, ValueError, TypeError) as error:
        problem = " ".join(str(error).split())
        raise UserError(f"{path}: cannot be read as recordings (.npz): {problem}") from None
    count = sum(f"t{number}" in arrays for number in range(len(arrays)))
    if not count or "t0" not in arrays:
        raise UserError(f"{path}: holds {sorted(arrays)}; arrays t0, u0, y0, ... are needed")
    return [_resampled(path, arrays, number, period) for number in range(count)]


def _resampled(path: Path, arrays: dict[str, np.ndarray], number: int, period: float) -> Recording:
    def wrong(what: str) -> UserError:
        return UserError(f"{path}: trial {number}: {what}")

    missing = [letter for letter in "tuy" if f"{letter}{number}" not in arrays]
    if missing:
        raise wrong(f"{missing[0]}{number} is missing")
    times, inputs, outputs = (arrays[f"{letter}{number}"] for letter in "tuy")
    times = times.ravel()
    if inputs.ndim != 2 or outputs.ndim != 2 or not len(times) == len(inputs) == len(outputs) > 1:
        raise wrong(f"t {times.shape}, u {inputs.shape}, y {outputs.shape}: allowed are (N,), "
                    "(N, m), (N, p) with N > 1")  # fmt: skip
    if not all(np.isfinite(values).all() for values in (times, inputs, outputs)):
        raise wrong("holds numbers that are not finite")
    if (np.diff(times) <= 0.0).any():
        row = int((np.diff(times) <= 0.0).argmax()) + 1
        raise wrong(f"time of row {row} is not above the one before")
    at = np.arange(times[0], times[-1], period)
    tips = np.stack([np.interp(at, times, column) for column in outputs.T], axis=1)
    held = inputs[np.searchsorted(times, at, side="right") - 1]
    return Recording(f"{path.stem} {number}", Trial(_MM_PER_CM * tips, held))


def recordings_of(settings: Settings) -> tuple[list[Recording], list[Recording]]:
    """Those to train on and those to score on.

    Raises:
        UserError: a file cannot be used; trials have other widths, or are too few or too short.
    """
    train, score = (
        [one for name in map(str.strip, names.split(",")) if name
         for one in load_recordings(Path(settings.data) / name, settings.period)]
        for names in (settings.train, settings.score)
    )  # fmt: skip
    if not score and len(train) < 5:
        raise UserError(f"{len(train)} trials: at least 5 are needed to hold every fourth out; or "
                        "name files with --score")  # fmt: skip
    first, needed = train[0], max(DELAYS) + settings.steps + 2
    for each in [*train, *score]:
        outputs, inputs = each.trial.outputs, each.trial.inputs
        widths = outputs.shape[1], inputs.shape[1]
        wanted = first.trial.outputs.shape[1], first.trial.inputs.shape[1]
        if len(outputs) < needed:
            raise UserError(f"trial {each.name}: {len(outputs)} samples of {settings.period:g} s; "
                            f"at least {needed} are needed")  # fmt: skip
        if widths != wanted:
            raise UserError(f"trial {each.name}: {widths[0]} outputs and {widths[1]} inputs, "
                            f"{first.name} has {wanted[0]} and {wanted[1]}")  # fmt: skip
    if score:
        return train, score
    return [one for number, one in enumerate(train) if not number or number % 4], train[4::4]


def errors_of(
    models: dict[str, KoopmanModel], trial: Trial, steps: int | None
) -> dict[str, np.ndarray]:
    """Method -> (N, steps) errors [mm] 1 ... steps periods ahead, all from the same samples.

    Beside the models, holding the last value is scored; steps = None: the whole trial, once, from
    its beginning.
    """
    oldest = max(model.lift.delays for model in models.values())
    steps = len(trial.outputs) - oldest - 1 if steps is None else steps
    errors = {}
    for name, model in models.items():
        skipped = oldest - model.lift.delays
        later = Trial(trial.outputs[skipped:], trial.inputs[skipped:])
        errors[name] = rollout_errors(model, later, steps)
    outputs = trial.outputs[oldest:]
    starts = np.arange(max(0, len(outputs) - steps))
    ahead = starts[:, None] + 1 + np.arange(steps)
    errors[HOLD] = np.linalg.norm(outputs[ahead] - outputs[starts, None], axis=2)
    return errors


def run(cell: Cell) -> Result:
    """Both models chosen, fitted, scored.

    Returns:
        of each trial scored and method the errors near_ and whole_ and what is drawn, tips_ and
        blind_ (NaN where nothing is predicted); (methods,) of everything in _CHOSEN.
    """
    settings: Settings = cell.settings
    train, score = recordings_of(settings)
    trials = [recording.trial for recording in train]
    folds = min(MOST_FOLDS, len(trials))
    chosen = {
        name: select(trials, listed, settings.steps, folds, settings.period)[0]
        for name, listed in CANDIDATES.items()
    }
    models = {
        name: identified(trials, choice.lift, choice.ridge, settings.period)
        for name, choice in chosen.items()
    }
    told = [vars(choice.lift) | vars(choice) for choice in chosen.values()]
    result: dict[str, object] = {
        "methods": [*models, HOLD],
        "scored": [one.name for one in score],
        "extents": [one.extent for one in score],
        **{key: [float(each[key]) for each in told] for _, _, key in _CHOSEN},
    }
    for number, recording in enumerate(score):
        for reach, steps in (("near", settings.steps), ("whole", None)):
            errors = errors_of(models, recording.trial, steps)
            result |= {f"{reach}_{number}_{k}": each for k, each in enumerate(errors.values())}
        result[f"tips_{number}"] = recording.trial.outputs[: round(_DRAWN / settings.period)]
        for k, model in enumerate(models.values()):
            result[f"blind_{number}_{k}"] = _predicted(model, recording.trial, settings)
    return result


def _predicted(model: KoopmanModel, trial: Trial, settings: Settings) -> np.ndarray:
    """(T, p) a trial's beginning from its first samples and the commands alone [mm]."""
    rows, delays = min(len(trial.outputs), round(_DRAWN / settings.period)), model.lift.delays
    start = model.lifted(trial.outputs[: delays + 1], trial.inputs[: delays + 1])[0]
    unknown = np.full((delays + 1, trial.outputs.shape[1]), np.nan)
    return np.vstack([unknown, model.rollout(start, trial.inputs[delays : rows - 1])])


def rows(results: Results) -> Iterable[Row]:
    """What was chosen; mean and largest error of every trial and method.

    Deviations are over the samples of a trial.
    """
    found, horizon = results.first(_ALL, _ALL), results.settings.horizon
    methods, scored = found["methods"].tolist(), found["scored"].tolist()
    for k, method in enumerate(methods[: len(CANDIDATES)]):
        for quantity, unit, key in _CHOSEN:
            yield Row.of(_TRAINING, method, quantity, [float(found[key][k])], unit)
    for number, (name, extent) in enumerate(zip(scored, found["extents"].tolist(), strict=True)):
        yield Row.of(name, "measured", "extent of the motion", [extent], "mm")
        for k, method in enumerate(methods):
            for reach, key in ((f"to {horizon:g} s ahead", "near"), ("whole trial", "whole")):
                errors, percent = found[f"{key}_{number}_{k}"], 100.0 / extent
                mean, deviation = float(errors.mean()), float(errors.std())
                yield Row(name, method, f"{reach}, mean", mean, deviation, "mm", 1)
                yield Row(name, method, f"{reach}, largest", float(errors.max()), 0.0, "mm", 1)
                yield Row(name, method, f"{reach}, mean of motion", percent * mean,
                          percent * deviation, "%", 1)  # fmt: skip


def draw(results: Results, directory: Path) -> None:
    """How the error grows with time, and every trial's beginning, predicted blindly."""
    found, settings = results.first(_ALL, _ALL), results.settings
    scored, methods = found["scored"].tolist(), found["methods"].tolist()
    ahead = settings.period * (1 + np.arange(settings.steps))
    with panels(directory / "errors.png", ["mean error / mm"], x="time ahead / s") as (axes,):
        for k, method in enumerate(methods):
            errors = np.vstack([found[f"near_{number}_{k}"] for number in range(len(scored))])
            axes.plot(ahead, errors.mean(axis=0), marker=".", label=method)
    labels, width = [f"{name}\ntip / mm" for name in scored], found["tips_0"].shape[1]
    with panels(directory / "koopman.png", labels, width, sharex=False) as grid:
        rows_of_trials = grid.reshape(len(scored), width)
        for number, axes in enumerate(rows_of_trials[0], start=1):
            axes.set_title(f"tip {number}")
        for number, row in enumerate(rows_of_trials):
            lines = {"measured": found[f"tips_{number}"]}
            lines |= {methods[k]: found[f"blind_{number}_{k}"] for k in range(len(CANDIDATES))}
            for (method, tips), style in zip(lines.items(), ("k", "C0", "C1"), strict=True):
                times = settings.period * np.arange(len(tips))
                for axes, column in zip(row, tips.T, strict=True):
                    named = method if axes is grid.flat[0] else None
                    axes.plot(times, column, style, linewidth=1.0, label=named)


STUDY = Study(
    name="recordings/koopman",
    source="",
    summary="a Koopman model predicts a real soft arm it was fitted to",
    run=run,
    cases=(_ALL,),
    methods=(_ALL,),
    settings=Settings,
    further_rows=rows,
    draw=draw,
    seeded=False,
    needs=("data",),
    exact="Nothing is simulated: a real arm was recorded (Bruder et al., IEEE T-RO 37, 2021). "
    "Deviations are over the samples of a trial. Commands are known without noise or delay.",
    about={"folds": MOST_FOLDS, "ours": "recording"},
)
