"""Models of one recorded arm, fitted to some of its trials, predict the others.

A rod fitted by `identify --motion`, a Koopman model and a linear ARX model as of
`recordings/koopman`, a linear map of the inputs, and the mean pose. Whole trials are predicted from
their beginning, knowing the inputs alone, and 2 s and 0.5 s from each of many starts, where the
outputs up to the start are known too: an ARX model has its delays, the rod's predictions are moved
by as much as it is off at the start. What the rod leaves may be learned as well, see `residual`,
and where markers were seen besides the tip, a filter that sees the tip alone estimates them, see
`filtered`. Of a trial of another day all models are shown the first 30 s, in which the rod's
offsets, registration and delay are found anew. All are judged at `plateaus` of the trials, too, a
rod with memory beside one without.

Without a map and a robot, the file is that of Bruder et al., see `recordings/koopman`: regulator
commands [V] and the tip in a plane [cm]. Its robot is a first guess of ours, with chambers where
the static linear map of the trials has them; what was published of the arm is not used.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields, replace
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from softcr_estimation.identification.column_map import ColumnMap, load_map
from softcr_estimation.identification.motion_errors import (
    BANDS,
    EVERY,
    by_band,
    measured_groups,
    true_starts,
    whole_trials,
)
from softcr_estimation.identification.trials import motions_of, read_parts
from softcr_models.errors import UserError
from softcr_models.files.config import config_directory
from softcr_models.identification.actuation import FAMILIES_IN_MOTION
from softcr_models.identification.measured_groups import Group
from softcr_models.identification.motion_fit import Motion, distances, motion_fit
from softcr_models.identification.unknowns import unknowns_of
from softcr_models.model import TIP
from softcr_models.robots.robot import Robot, load_robot
from softcr_runtime.console.panels import panels
from softcr_studies.frame.study import Cell, Metric, Result, Results, Row, Study, StudySettings
from softcr_studies.koopman.lifted_model import KoopmanModel, Trial, identified, ridge_regression
from softcr_studies.koopman.selection import select
from softcr_studies.recordings.filtered import filtered
from softcr_studies.recordings.koopman import CANDIDATES, DELAYS, MOST_FOLDS
from softcr_studies.recordings.plateaus import at_plateaus, plateaus, rod_without_memory
from softcr_studies.recordings.residual import Residual, learned

RESIDUAL, FILTER = "rod and learned residual", "filter that sees the tip"
FORGETFUL = "rod without memory"
"""Further methods, of the rod's fit."""
PLATEAUS = "plateaus"
ROD, STATIC, MEAN = "rod", "static linear map", "mean pose"
METHODS = (ROD, *CANDIDATES, STATIC, MEAN)
HORIZONS = (2.0, 0.5)
"""Of predictions from true starts, the longest one first [s]."""
FIND = "stiffness,gains,offsets,registration,scale,curves,delay,lag,relaxation,hysteresis,creep"
FITTED, PREDICTED = (
    "what is fitted of the rod, separated by commas",
    "trials to predict, separated by commas",
)
ANOTHER_DAY = (
    "those of them of another day, separated by commas: their first 30 s tell registration, "
    "offsets and delay anew"
)
BRUDER = {
    "time": {"column": "t"},
    "inputs": [{"column": f"u_{k + 1}", "unit": "V", "gain": 1e4} for k in range(3)],
    "positions": {"tip": {"columns": ["y_1", "y_2"], "unit": "cm"}},
    "frame": {"axes": ["x", "y"]},
}
"""Column map of the file; 7 V are 0.7 bar to the robot, whatever they are to the arm."""
_GUESS = {
    "name": "bruder_guess",
    "length": 0.27,
    "outer_diameter": 0.05,
    "inner_diameter": 0.0,
    "density": 400.0,
    "bending_compliance": 6.0,
    "dilatation_compliance": 0.003,
    "relaxation_times": [0.1] * 6,
    "tip_mass": 0.05,
    "base_orientation": [np.pi, 0.0, 0.0],
    "sensor_to_base_cap": 0.0,
    "base_cap_length": 0.0,
    "tip_cap_length": 0.0,
    "pressure_limits": {"minimum": 0.0, "maximum": 7e4, "maximum_rate": 1e6},
}
_MANY = 5
"""Trials of which some are held out whole."""
_BEFORE = max(DELAYS) + 1  # samples that a prediction of a whole trial may know of it
_ALL = "all trials"
_DRAWN = 40.0  # of a trial [s]
_FILTERED = 30.0  # likewise
_ANEW = ("offsets", "registration", "delay")  # families that another day changes
_TELLING = 30.0  # of another day, that they are found in [s]


class Shipped(NamedTuple):
    """Files of `config/recordings` that a study takes where no recording is given."""

    data: str
    map: str
    robot: str


class Settings(StudySettings):
    """Which recording, what is known of it, and what is predicted."""

    shipped: ClassVar[Shipped | None] = None

    data: str = Field("", description="files of the recording, separated by commas")
    map: str = Field("", description="column map of the file; empty: that of Bruder et al.")
    robot: str = Field("", description="first guess of the robot; empty: of Bruder et al.")
    find: str = Field("", description=f"{FITTED}; empty: {FIND}, and directions of a given robot")
    hold_out: str = Field(
        "", description=f"{PREDICTED}; empty: every fourth, or the last quarter of each of a few"
    )
    another_day: str = Field("", description=ANOTHER_DAY)

    def filled(self) -> "Settings":
        """With what is shipped, unless a recording is given."""
        if self.shipped is None or self.data:
            return self
        folder = config_directory() / "recordings"
        known = {name: str(folder / file) for name, file in self.shipped._asdict().items()}
        return self.model_copy(update=known)


def parts_of(settings: Settings) -> tuple[Robot, list[Motion], list[Motion], tuple[Group, ...]]:
    """The robot's first guess, motions to fit to and to predict, and what was measured.

    Raises:
        UserError: the recording, map or robot cannot be used, or nothing is left to fit to.
    """
    settings = settings.filled()
    known = load_map(Path(settings.map)) if settings.map else ColumnMap.model_validate(BRUDER)
    robot = load_robot(settings.robot) if settings.robot else _guess([0.0, 2.0, 4.0])
    paths = [Path(word) for word in settings.data.split(",")]
    names = [word.strip() for word in settings.hold_out.split(",") if word]
    trials, judged = read_parts(paths, names, known, robot)
    if not judged and len(trials) >= _MANY:
        judged = trials[4::4]
        trials = [each for number, each in enumerate(trials) if not number or number % 4]
    fitted, held = motions_of(trials, judged), motions_of(judged, trials) if judged else []
    if not judged:
        held = [_part(each, "the last quarter", 0.75, 1.0) for each in fitted]
        fitted = [_part(each, "to its last quarter", 0.0, 0.75) for each in fitted]
    groups = measured_groups(robot, fitted)
    if not settings.robot:
        slopes, _ = _static(fitted, groups)
        # a chamber pushes the tip away from it; x and y of a hanging arm are columns 1 and 2
        robot = _guess(np.arctan2(-slopes[1], -slopes[0]).tolist())
    return robot, fitted, held, groups


def _part(motion: Motion, which: str, begin: float, end: float) -> Motion:
    """From one share of a motion's rows to another."""
    rows = slice(round(begin * len(motion)), round(end * len(motion)))
    seen = {name: values[rows] for name, values in motion.outputs.items()}
    name = f"{motion.name}, {which}"
    return replace(motion, name=name, inputs=motion.inputs[rows], outputs=seen)


def begun(settings: Settings, held: Sequence[Motion]) -> tuple[list[Motion | None], list[Motion]]:
    """What tells of another day, None for trials of the same one, and what is left to predict.

    Raises:
        UserError: no such trial is held out, or nothing is left of it.
    """
    names = [word.strip() for word in settings.another_day.split(",") if word]
    for name in set(names).difference(each.name for each in held):
        raise UserError(f"another_day: trial {name} is not held out")
    begins: list[Motion | None] = []
    left: list[Motion] = []
    for each in held:
        share = _TELLING / (len(each) * each.period)
        if each.name in names and share >= 1.0:
            raise UserError(f"another_day: trial {each.name} has no more than {_TELLING:g} s")
        anew = each.name in names
        begins.append(_part(each, "its first 30 s", 0.0, share) if anew else None)
        left.append(_part(each, "after 30 s", share, 1.0) if anew else each)
    return begins, left


def _guess(angles: Sequence[float]) -> Robot:
    chambers = [
        {"type": "chamber", "name": f"chamber_{k + 1}", "angle": angle, "area": 2e-4,
         "lever_arm": 0.018}
        for k, angle in enumerate(angles)
    ]  # fmt: skip
    return load_robot("licher2025").replace(**_GUESS, actuators=chambers)


def outputs_of(motion: Motion, groups: Sequence[Group]) -> np.ndarray:
    """(T, G, 3) what was measured [m]; coordinates that never were are NaN."""
    nothing = np.full((len(motion), 3), np.nan)
    return np.stack([motion.outputs.get(each.name, nothing) for each in groups], axis=1)


def _columns(motions: Sequence[Motion], groups: Sequence[Group]) -> np.ndarray:
    """(G, 3) which coordinates are measured in all motions."""
    known = [np.isfinite(outputs_of(each, groups)).any(axis=0) for each in motions]
    return np.all(known, axis=0)


def _trials(motions: Sequence[Motion], groups: Sequence[Group], seen: np.ndarray) -> list[Trial]:
    """What models of numbers see: gaps of positions are filled linearly [m]."""
    found = []
    for motion in motions:
        columns = outputs_of(motion, groups)[:, seen]
        rows = np.arange(len(motion))
        filled = [np.interp(rows, rows[k := np.isfinite(c)], c[k]) for c in columns.T]
        found.append(Trial(np.stack(filled, axis=1), motion.inputs))
    return found


def _static(motions: Sequence[Motion], groups: Sequence[Group]) -> tuple[np.ndarray, np.ndarray]:
    """Slopes (p, m) and intercept (p,) of the outputs by the inputs."""
    trials = _trials(motions, groups, _columns(motions, groups))
    inputs = np.vstack([each.inputs for each in trials])
    scale = np.maximum(inputs.std(axis=0), 1e-9)
    outputs = np.vstack([each.outputs for each in trials])
    slopes, intercept = ridge_regression(inputs / scale, outputs, 1e-9)
    return slopes / scale, intercept


def run(cell: Cell) -> Result:
    """One model fitted, and its errors.

    Returns:
        whole_K (T, G) of each trial held out and near_K (S, H, G) from its starts, distances [m];
        tips_K, blind_K (T, p) what is drawn [m].
    """
    robot, fitted, held, groups = parts_of(cell.settings)
    begins, held = begun(cell.settings, held)
    seen = _columns([*fitted, *held], groups)
    steps = round(HORIZONS[0] / fitted[0].period)
    result: dict[str, object] = {
        "trials": [each.name for each in held],
        "groups": [each.name for each in groups],
        "period": fitted[0].period,
    }
    if cell.method == ROD:
        found = cell.settings.find or (f"{FIND},directions" if cell.settings.robot else FIND)
        families = [word.strip() for word in found.split(",")]
        unknowns = unknowns_of(robot, families, groups, FAMILIES_IN_MOTION)
        began = perf_counter()
        fit = motion_fit(robot, fitted, groups, unknowns)
        result["seconds"] = perf_counter() - began
        result["note"] = "; ".join(f"{k} {v:.3g}" for k, v in fit.values.items())
        anew = unknowns_of(robot, _ANEW, groups, FAMILIES_IN_MOTION)
        fits = [
            motion_fit(robot, [begin], groups, anew, known=fit.values) if begin else fit
            for begin in begins
        ]
        whole, near = [], []
        for day, motion in zip(fits, held, strict=True):
            whole += whole_trials(robot, day.actuation, [motion], groups)
            near.append(true_starts(robot, day, [motion], groups, HORIZONS[0]))
        seen_here = whole_trials(robot, fit.actuation, fitted, groups)
        residual = learned(
            [each.inputs for each in fitted],
            [each[:, seen] for each in seen_here],
            [outputs_of(each, groups)[:, seen] for each in fitted],
            fitted[0].period,
        )
        result |= {f"residual_{name}": value for name, value in asdict(residual).items()}
        others = [g for g, each in enumerate(groups) if each.output != TIP]
        for k, motion in enumerate(held):
            measured = outputs_of(motion, groups)
            better = whole[k].copy()
            better[:, seen] += residual.along(motion.inputs, whole[k][:, seen])
            result[f"better_{k}"] = distances(better - measured)[_BEFORE:]
            if others and seen[[g for g in range(len(groups)) if g not in others]].all():
                rows = min(len(motion), round(_FILTERED / motion.period))
                off = filtered(fits[k].actuation, motion, groups, rows) - measured[:rows]
                result[f"filtered_{k}"] = distances(off)[_BEFORE:, others]
        result["others"] = [groups[g].name for g in others]
        if {"hysteresis", "creep"}.intersection(families):
            without = rod_without_memory(robot, families, fitted, held, groups)
            result |= {f"forgetful_{k}": off for k, off in enumerate(without)}
    else:
        told = [*fitted, *(begin for begin in begins if begin)]
        whole, near = _of_numbers(cell.method, told, held, groups, seen, steps)
    for k, (motion, predicted) in enumerate(zip(held, whole, strict=True)):
        measured = outputs_of(motion, groups)
        result[f"whole_{k}"] = distances(predicted - measured)[_BEFORE:]
        result[f"near_{k}"] = near[k]
        still = at_plateaus(predicted - measured, plateaus(robot, motion))
        result[f"plateaus_{k}"] = distances(still)
        off = (predicted - measured)[_BEFORE + 1 :]
        result[f"bands_{k}"] = [by_band(off[:, g], motion.period) for g in range(len(groups))]
        drawn = round(_DRAWN / motion.period)
        result[f"tips_{k}"] = measured[:drawn, seen]
        result[f"blind_{k}"] = predicted[:drawn, seen]
    return result


def _of_numbers(
    method: str, fitted: Sequence[Motion], held: Sequence[Motion], groups: Sequence[Group],
    seen: np.ndarray, steps: int,
) -> tuple[list[np.ndarray], list[np.ndarray]]:  # fmt: skip
    """(T, G, 3) of whole trials, NaN where nothing is predicted, and (S, H, G) distances."""
    train, period = _trials(fitted, groups, seen), fitted[0].period
    model: KoopmanModel | None = None
    slopes, intercept = _static(fitted, groups)
    if method == MEAN:
        slopes, intercept = 0.0 * slopes, np.vstack([e.outputs for e in train]).mean(axis=0)
    if method in CANDIDATES:
        parts = train if len(train) > 1 else _cut(train[0])
        folds = min(MOST_FOLDS, len(parts))
        choice = select(parts, CANDIDATES[method], steps, folds, period)[0]
        model = identified(train, choice.lift, choice.ridge, period)
    whole, near = [], []
    for motion, trial in zip(held, _trials(held, groups, seen), strict=True):
        starts = np.arange(_BEFORE, len(motion) - steps, max(1, round(EVERY / period)))
        ahead = starts[:, None] + 1 + np.arange(steps)
        if model is None:
            predicted = trial.inputs @ slopes.T + intercept
            from_starts = predicted[ahead]
        else:
            delays = model.lift.delays
            lifted = model.lifted(trial.outputs, trial.inputs)
            rolled = model.rollout(lifted[_BEFORE - delays], trial.inputs[_BEFORE:-1])
            predicted = np.vstack((np.full((_BEFORE + 1, rolled.shape[1]), np.nan), rolled))
            from_starts = model.rollout(lifted[starts - delays], trial.inputs[ahead - 1])
        measured = outputs_of(motion, groups)
        whole.append(_as_groups(predicted, seen))
        near.append(distances(_as_groups(from_starts, seen) - measured[ahead]))
    return whole, near


def _cut(trial: Trial) -> list[Trial]:
    """A single trial in parts, to leave out in turn."""
    bounds = np.linspace(0, len(trial.inputs), MOST_FOLDS + 1).astype(int)
    return [Trial(trial.outputs[a:b], trial.inputs[a:b]) for a, b in pairwise(bounds.tolist())]


def _as_groups(values: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """(..., G, 3) of measured coordinates (..., p); NaN of the others."""
    found = np.full((*values.shape[:-1], *seen.shape), np.nan)
    found[..., seen] = values
    return found


def rows(results: Results) -> Iterable[Row]:
    """Mean errors of every trial, model and marker, and over all trials; there, errors of the first
    marker by frequency, too."""
    found = {method: results.first(_ALL, method) for method in METHODS}
    trials = found[ROD]["trials"].tolist()
    means: dict[tuple[str, str], list[float]] = {}
    for k, trial in enumerate(trials):
        for method in METHODS:
            for owner, quantity, off in _errors(method, found[method], k):
                known = 1e3 * off[np.isfinite(off)]
                if len(known):
                    mean, deviation = float(known.mean()), float(known.std())
                    every = known.tolist() if quantity.endswith(PLATEAUS) else [mean]
                    means.setdefault((owner, quantity), []).extend(every)
                    yield Row(trial, owner, quantity, mean, deviation, "mm", 1)
    for (owner, quantity), each in means.items():
        yield Row.of(_ALL, owner, quantity, each, "mm")
    edges = [f"to {each:g} Hz" for each in BANDS] + [f"above {BANDS[-1]:g} Hz"]
    for method in METHODS:
        parts = np.array([found[method][f"bands_{k}"][0] for k in range(len(trials))])
        name = found[method]["groups"].tolist()[0]
        for edge, values in zip(edges, parts.T, strict=True):
            yield Row.of(_ALL, method, f"{name}, rms error {edge}", 1e3 * values, "mm")


def _errors(method: str, found: Result, trial: int) -> Iterable[tuple[str, str, np.ndarray]]:
    """Method, quantity and errors [m] of one trial, by marker."""
    names = found["groups"].tolist()
    for g, name in enumerate(names):
        yield method, f"{name}, whole trial", found[f"whole_{trial}"][:, g]
        for horizon in HORIZONS:
            steps = round(horizon / float(found["period"]))
            quantity = f"{name}, {horizon:g} s from true starts"
            yield method, quantity, found[f"near_{trial}"][:, :steps, g]
        yield method, f"{name}, {PLATEAUS}", found[f"plateaus_{trial}"][:, g]
        if f"forgetful_{trial}" in found:
            yield FORGETFUL, f"{name}, {PLATEAUS}", found[f"forgetful_{trial}"][:, g]
        if f"better_{trial}" in found:
            yield RESIDUAL, f"{name}, whole trial", found[f"better_{trial}"][:, g]
    if f"filtered_{trial}" in found:
        for g, name in enumerate(found["others"].tolist()):
            yield FILTER, f"{name}, first {_FILTERED:g} s", found[f"filtered_{trial}"][:, g]


def draw(results: Results, directory: Path) -> None:
    """Every trial's beginning, predicted blindly; beside it the learned residual as a file."""
    found = {method: results.first(_ALL, method) for method in METHODS}
    first = found[ROD]
    names = [each.name for each in fields(Residual)]
    residual = Residual(**{name: np.asarray(first[f"residual_{name}"]) for name in names})
    residual.save(directory / "residual.safetensors")
    trials, period = first["trials"].tolist(), float(first["period"])
    labels = [f"{name}\n[mm]" for name in trials]
    width = min(3, first["tips_0"].shape[1])  # of the first marker
    with panels(directory / "models.png", labels, width, x="time [s]") as grid:
        for k, row in enumerate(np.reshape(grid, (len(trials), width))):
            for column, axes in enumerate(row):
                measured = 1e3 * first[f"tips_{k}"][:, column]
                times = period * np.arange(len(measured))
                first_row = k == 0 and column == 0
                axes.plot(times, measured, "k", lw=1.2, label="measured" if first_row else None)
                for n, method in enumerate((ROD, *CANDIDATES)):
                    blind = 1e3 * found[method][f"blind_{k}"][:, column]
                    label = method if first_row else None
                    axes.plot(times, blind, f"C{n}", lw=0.9, label=label)


STUDY = Study(
    name="recordings/models",
    source="",
    summary="a rod, Koopman and linear models of a recorded arm predict what they were not "
    "fitted to",
    run=run,
    cases=(_ALL,),
    methods=METHODS,
    settings=Settings,
    metrics=(Metric("fit", "s", "seconds", timing=True),),
    further_rows=rows,
    draw=draw,
    seeded=False,
    needs=("data",),
    about={"ours": "recording"},
    exact="Nothing is simulated: a real arm was recorded. Deviations are over the samples of a "
    f"trial, of all trials over their means or over all plateaus. The first {_BEFORE} samples of "
    "whole trials are not judged, since models with delays know them. The filter sees the tip and "
    "estimates the others. Of another day's trial all models are shown the first 30 s, in which "
    "the registration of the rod and the offsets of its inputs are found anew. On a plateau "
    "pressures stay and the arm has stopped; a rod without memory is fitted to other plateaus.",
)
