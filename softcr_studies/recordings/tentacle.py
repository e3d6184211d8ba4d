"""A rod found in fourteen rests of a real tentacle predicts rests that it has not seen.

Every rest of the shipped recording has one tendon pulled. Each level of tension is left out once
and predicted from the others; `data` names further rests, predicted from all shipped ones. Beside
the rod, as `softcr identify --find` finds it: polynomials of the tensions, and the mean pose.

A file is an .npz with tension (N, 2) [N] and markers (N, 4, 3) [m], in the frame of SoRoMoX.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from pydantic import Field

from softcr_estimation.identification.stages import read_material
from softcr_models.errors import UserError
from softcr_models.files.config import config_directory
from softcr_models.files.small_files import arrays_of
from softcr_models.identification.measured_groups import Group
from softcr_models.identification.prior_fit import centre_lines, predicted_at_rest, prior_fit
from softcr_models.identification.rod_identification import Recording, fitted_groups
from softcr_models.identification.unknowns import unknowns_of
from softcr_models.robots.robot import Robot, load_robot
from softcr_runtime.console.panels import panels
from softcr_studies.frame.study import Cell, Result, Results, Row, Study, StudySettings

FAMILIES = ("stiffness", "taper", "stiffening", "gains", "offsets", "registration", "markers")
ROD, MEAN = "rod", "mean pose"
POLYNOMIALS = {"linear": 1, "quadratic": 2, "cubic": 3}
METHODS = (ROD, *POLYNOMIALS, MEAN)
MARKERS = ("marker_1", "marker_2", "marker_3", "marker_tip")
_LEVELS, _FILE, _ALL = "levels left out", "file", "all"
_TO_SOFTCR = np.array([1.0, -1.0, -1.0])
_POINTS = 40
_RIDGE = 1e-9


class Settings(StudySettings):
    """What is predicted."""

    data: str = Field(
        "", description="further rests (.npz) to predict; empty: levels of the shipped ones alone"
    )
    folds: int = Field(4, ge=2, le=4, description="levels of tension that are left out in turn")


def shipped() -> tuple[Robot, Recording, list[Group]]:
    """First guess, recording, and its groups."""
    folder = config_directory() / "recordings"
    robot = load_robot(folder / "tentacle_guess.yaml")
    recording = read_material([folder / "tentacle.csv"], robot).static
    named = {each.name: each for each in fitted_groups(robot, recording)}
    return robot, recording, [named[f"{name} position"] for name in MARKERS]


def rests_of(path: Path, groups: list[Group]) -> Recording:
    """Rests of a file of the form above.

    Raises:
        UserError: it cannot be read, or is not of that form.
    """
    try:
        arrays = arrays_of(path)
        inputs = np.asarray(arrays["tension"], float)
        markers = np.asarray(arrays["markers"], float) * _TO_SOFTCR
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path}: cannot be read as rests (.npz): {error}") from None
    if inputs.shape != (len(inputs), 2) or markers.shape != (len(inputs), len(groups), 3):
        raise UserError(
            f"{path}: tension {inputs.shape}, markers {markers.shape}: allowed are (N, 2), "
            f"(N, {len(groups)}, 3)"
        )
    outputs = {each.name: markers[:, k] for k, each in enumerate(groups)}
    return Recording(inputs, outputs)


def predictions(
    robot: Robot, train: Recording, inputs: np.ndarray, groups: list[Group]
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Method -> (N, 4, 3) markers of readings (N, 2), and the rod's centre lines (N, points, 3)."""
    fit = prior_fit(robot, train, groups, unknowns_of(robot, FAMILIES, groups))
    seen = predicted_at_rest(fit.recorded, inputs, groups)
    known = np.stack([train.outputs[each.name] for each in groups], axis=1)
    found = {ROD: np.stack([seen[each.name] for each in groups], axis=1)}
    scale = train.inputs.max(axis=0)
    for name, degree in POLYNOMIALS.items():
        here, there = (_monomials(each / scale, degree) for each in (train.inputs, inputs))
        square = here.T @ here + _RIDGE * np.eye(here.shape[1])
        weights = np.linalg.solve(square, here.T @ known.reshape(len(known), -1))
        found[name] = (there @ weights).reshape(len(inputs), *known.shape[1:])
    found[MEAN] = np.broadcast_to(known.mean(axis=0), (len(inputs), *known.shape[1:]))
    return found, centre_lines(fit.recorded, inputs, _POINTS)


def _monomials(x: np.ndarray, degree: int) -> np.ndarray:
    powers = [(a, b) for a in range(degree + 1) for b in range(degree + 1 - a)]
    return np.stack([x[:, 0] ** a * x[:, 1] ** b for a, b in powers], axis=1)


def run(cell: Cell) -> Result:
    """Everything predicted.

    Returns:
        of each part its measured_ (N, 4, 3), lines_ (N, points, 3) and, of each method,
        predicted_ (N, 4, 3).
    """
    robot, recording, groups = shipped()
    settings: Settings = cell.settings
    levels = recording.inputs.max(axis=1)
    order = np.argsort(levels, kind="stable")
    result: dict[str, object] = {}
    parts = [_LEVELS]
    tested: list[np.ndarray] = []
    found: list[tuple[dict[str, np.ndarray], np.ndarray]] = []
    for fold in np.array_split(order, settings.folds):
        left = np.isin(np.arange(len(levels)), fold)
        found.append(predictions(robot, recording.rows(~left), recording.inputs[fold], groups))
        tested.append(fold)
    rows = np.concatenate(tested)
    measured = np.stack([recording.outputs[each.name] for each in groups], axis=1)
    result["measured_0"] = measured[rows]
    result["lines_0"] = np.concatenate([lines for _, lines in found])
    for k, method in enumerate(METHODS):
        result[f"predicted_0_{k}"] = np.concatenate([each[method] for each, _ in found])
    if settings.data:
        other = rests_of(Path(settings.data), groups)
        seen, lines = predictions(robot, recording, other.inputs, groups)
        parts.append(_FILE)
        result["measured_1"] = np.stack([other.outputs[each.name] for each in groups], axis=1)
        result["lines_1"] = lines
        result |= {f"predicted_1_{k}": seen[method] for k, method in enumerate(METHODS)}
    return result | {"parts": parts}


def rows(results: Results) -> Iterable[Row]:
    """Mean distance of every marker; deviations are over the rests."""
    found = results.first(_ALL, _ALL)
    for number, part in enumerate(found["parts"].tolist()):
        measured = found[f"measured_{number}"]
        for k, method in enumerate(METHODS):
            errors = 1e3 * np.linalg.norm(found[f"predicted_{number}_{k}"] - measured, axis=2)
            for marker, column in zip(MARKERS, errors.T, strict=True):
                if np.isfinite(column).any():
                    yield Row.of(part, method, f"{marker}, mean distance", column, "mm")


def draw(results: Results, directory: Path) -> None:
    """The rod over what was measured, from two sides."""
    found = results.first(_ALL, _ALL)
    parts = found["parts"].tolist()
    labels = ["z over x / m", "z over y / m"]
    with panels(directory / "rests.png", labels, len(parts), x="m", height=4.0) as grid:
        for number, column in enumerate(np.reshape(grid, (2, -1)).T):
            lines, measured = found[f"lines_{number}"], found[f"measured_{number}"]
            for axes, across in zip(column, (0, 1), strict=True):
                axes.plot(lines[..., across].T, lines[..., 2].T, "C0-", lw=0.8)
                seen = found[f"predicted_{number}_0"]
                axes.plot(seen[..., across].ravel(), seen[..., 2].ravel(), "C0+", ms=4)
                axes.plot(measured[..., across].ravel(), measured[..., 2].ravel(), "k.", ms=4)
                axes.set_aspect("equal")
                axes.invert_yaxis()
            column[0].set_title(parts[number])


STUDY = Study(
    name="recordings/tentacle",
    source="",
    summary="a rod found in rests of a real tentacle predicts others",
    run=run,
    cases=(_ALL,),
    methods=(_ALL,),
    settings=Settings,
    further_rows=rows,
    draw=draw,
    seeded=False,
    exact="Nothing is simulated: a real arm was recorded (SoRoMoX contributors, MIT). Deviations "
    "are over the rests. Published, on 8 other rests with both tendons pulled, of the authors' own "
    "identified rod: 12.9, 6.2, 8.9 and 25.8 mm, our means over their arrays.",
    about={"families": ", ".join(FAMILIES), "ours": "recording"},
)
