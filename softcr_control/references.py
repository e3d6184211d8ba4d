"""References: where the rod should be over the coming ticks, and where that comes from.

A reference that the rod can follow is one that the rod has made: pressures are chosen, the nominal
model computes the states they cause, and those states are the goal (Licher et al. Sec. V-B2).
Purely geometric tip paths are offered too; their states are unknown (NaN).
"""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from softcr_control.signals import circle_phase, fade_in, time_grid
from softcr_models.errors import UserError
from softcr_models.prediction import PredictionModel


@dataclass(frozen=True, eq=False)
class Reference:
    """Rows of a goal; row j belongs to time stamp + j * period.

    Attributes:
        stamp: time of row 0 [s].
        period: time between rows [s].
        states: (H, nx) wanted states; NaN where only the tip is known.
        tip_positions: (H, 3) wanted tip positions [m], base frame.
    """

    stamp: float
    period: float
    states: np.ndarray
    tip_positions: np.ndarray


class ReferenceSource(Protocol):
    """Anything that can say where the rod should be."""

    @property
    def duration(self) -> float:
        """Time after which the goal stands still [s]."""
        ...

    def window(self, time: float, rows: int) -> Reference:
        """The next `rows` rows from `time` [s] on."""
        ...


class SampledReference:
    """A goal known at the grid of the control period, computed before the motion begins.

    Between grid points it is interpolated; before the first and after the last row that row holds.

    Args:
        period: time between rows [s].
        states: (T, nx); NaN where unknown.
        tip_positions: (T, 3) [m], base frame.

    Raises:
        UserError: shapes that do not belong together, or a tip that is not finite.
    """

    def __init__(self, period: float, states: np.ndarray, tip_positions: np.ndarray) -> None:
        states, tips = np.asarray(states, float), np.asarray(tip_positions, float)
        if states.ndim != 2 or tips.shape != (len(states), 3) or not len(tips):
            raise UserError(
                f"reference: states {states.shape} and tip positions {tips.shape}: "
                "allowed are (T, nx) and (T, 3) with T >= 1"
            )
        bad = ~np.isfinite(tips).all(axis=1)
        if bad.any():
            raise UserError(f"reference: tip position of row {bad.argmax()} is not finite")
        self.period = period
        self.states = states
        self.tip_positions = tips

    @property
    def duration(self) -> float:
        """Time of the last row [s]."""
        return (len(self.tip_positions) - 1) * self.period

    def window(self, time: float, rows: int) -> Reference:
        """The next `rows` rows from `time` [s] on."""
        last = len(self.tip_positions) - 1
        position = time / self.period
        if abs(position - round(position)) < 1e-6:  # on the grid: exactly the computed row
            position = round(position)
        places = np.clip(position + np.arange(rows), 0, last)
        before = places.astype(int)
        after = np.minimum(before + 1, last)
        fraction = (places - before)[:, None]
        if not fraction.any():  # a NaN in the next row must not reach this one
            return Reference(time, self.period, self.states[before], self.tip_positions[before])
        return Reference(
            time,
            self.period,
            (1 - fraction) * self.states[before] + fraction * self.states[after],
            (1 - fraction) * self.tip_positions[before] + fraction * self.tip_positions[after],
        )


def setpoint(prediction: PredictionModel, pressures: np.ndarray, period: float) -> SampledReference:
    """The equilibrium at constant pressures (m,) [Pa] of the nominal model."""
    pressures = _checked_pressures(prediction, np.asarray(pressures, float)[None], "setpoint")[0]
    state = prediction.equilibrium(pressures, prediction.nominal_parameters)
    return _from_states(prediction, state[None], period)


def pressure_trajectory(
    prediction: PredictionModel, pressures: np.ndarray, period: float
) -> SampledReference:
    """The states that a pressure trajectory causes in the nominal model.

    Args:
        prediction: the model.
        pressures: (T, m) chamber pressures [Pa] at the grid of `period`, linear between; the motion
            starts from the equilibrium at row 0.
        period: control period [s].
    """
    pressures = _checked_pressures(prediction, pressures, "pressure trajectory")
    nominal = prediction.nominal_parameters
    start = prediction.equilibrium(pressures[0], nominal)
    states = start[None]
    if len(pressures) > 1:
        moved = prediction.rollout(start, pressures[None], nominal, period)[0]
        states = np.vstack([states, moved])
    if not np.isfinite(states).all():
        row = int((~np.isfinite(states)).any(axis=1).argmax())
        raise UserError(
            f"reference: the model fails at {row * period:.3f} s of the pressure trajectory "
            f"({pressures[row]} Pa); smoother or lower pressures are needed"
        )
    return _from_states(prediction, states, period)


def tip_circle(
    prediction: PredictionModel,
    times: np.ndarray,
    centre: np.ndarray,
    radius: float,
    frequency: float,
    fade_seconds: float,
) -> SampledReference:
    """A circle of the tip in a plane of constant z, as geometry only: states are unknown (NaN).

    Args:
        prediction: says where the unloaded tip is: the path fades in from there.
        times: (T,) grid of the control period from 0 on [s], T >= 2.
        centre: (3,) [m], base frame.
        radius: [m].
        frequency: turns per second [Hz].
        fade_seconds: time to move from the unloaded tip onto the circle [s].
    """
    phase = circle_phase(times, frequency)
    turning = np.stack([np.cos(phase), np.sin(phase), np.zeros_like(phase)], axis=1)
    nominal = prediction.nominal_parameters
    unloaded = prediction.equilibrium(np.zeros(prediction.input_size), nominal)
    start = prediction.tip_poses(unloaded[None], nominal[None])[0, :, 3]
    tips = start + fade_in(times, fade_seconds)[:, None] * (centre + radius * turning - start)
    unknown = np.full((len(times), prediction.state_size), np.nan)
    return SampledReference(times[1] - times[0], unknown, tips)


def from_file(prediction: PredictionModel, path: str | Path, period: float) -> SampledReference:
    """A reference from a CSV or NPZ file, resampled linearly to the control period.

    A CSV has one header line and the columns `time` [s] and either `pressure_1` .. `pressure_m`
    [Pa] or `tip_x`, `tip_y`, `tip_z` [m, base frame]. An NPZ has the arrays `time` (T,) [s] and one
    of `pressures` (T, m) [Pa], `tip_positions` (T, 3) [m, base frame], `states` (T, nx). From
    pressures the nominal model computes the states; with tips only they are unknown. The first time
    becomes 0.

    Raises:
        UserError: one line naming the file, what is wrong and what is allowed.
    """
    path = Path(path)
    columns = _read(path, prediction.input_size)
    goals = [name for name in ("pressures", "tip_positions", "states") if name in columns]
    if "time" not in columns or len(goals) != 1:
        raise UserError(
            f"{path}: holds {', '.join(columns) or 'nothing'}; allowed are time and exactly one of "
            "pressures, tip_positions, states (CSV: time and pressure_1.. or tip_x, tip_y, tip_z)"
        )
    goal = goals[0]
    width = {
        "pressures": prediction.input_size,
        "tip_positions": 3,
        "states": prediction.state_size,
    }[goal]
    values = _resampled(path, columns["time"], columns[goal], goal, width, period)
    if goal == "pressures":
        return pressure_trajectory(prediction, values, period)
    if goal == "states":
        return _from_states(prediction, values, period)
    return SampledReference(period, np.full((len(values), prediction.state_size), np.nan), values)


def tips_of_file(path: str | Path, period: float) -> np.ndarray:
    """(T, 3) tip positions [m] of a file as `from_file` takes, resampled linearly to a period [s].

    Raises:
        UserError: one line naming the file, what is wrong and what is allowed.
    """
    path = Path(path)
    columns = _read(path, chambers=1)
    if not {"time", "tip_positions"} <= columns.keys():
        raise UserError(
            f"{path}: holds {', '.join(columns) or 'nothing'}; an arm needs time and tip_positions "
            "(CSV: time, tip_x, tip_y, tip_z)"
        )
    return _resampled(path, columns["time"], columns["tip_positions"], "tip_positions", 3, period)


def _from_states(
    prediction: PredictionModel, states: np.ndarray, period: float
) -> SampledReference:
    nominal = prediction.nominal_parameters
    tips = prediction.tip_poses(states, nominal[None])[:, :, 3]
    return SampledReference(period, states, tips)


def _checked_pressures(
    prediction: PredictionModel, pressures: np.ndarray, where: str
) -> np.ndarray:
    pressures = np.asarray(pressures, float)
    if pressures.ndim != 2 or pressures.shape[1] != prediction.input_size:
        raise UserError(
            f"reference: {where} has shape {pressures.shape}, allowed is "
            f"(T, {prediction.input_size})"
        )
    if not np.isfinite(pressures).all():
        raise UserError(f"reference: {where} holds a pressure that is not finite")
    return pressures


def _read(path: Path, chambers: int) -> dict[str, np.ndarray]:
    if path.suffix.lower() not in (".csv", ".npz"):
        raise UserError(f"{path}: a reference file must end in .csv or .npz")
    try:
        if path.suffix.lower() == ".npz":
            with np.load(path, allow_pickle=False) as content:
                return {name: np.asarray(content[name], float) for name in content.files}
        header, *lines = path.read_text(encoding="utf-8").splitlines() or [""]
        table = np.loadtxt(lines, delimiter=",", ndmin=2) if lines else np.empty((0, 0))
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        problem = " ".join(str(error).split())
        raise UserError(f"{path}: cannot be read as a reference: {problem}") from None
    names = [name.strip() for name in header.split(",")]
    if not len(table):
        raise UserError(f"{path}: holds no rows; a header line and at least one row are needed")
    if table.shape[1] != len(names):
        raise UserError(
            f"{path}: {len(names)} names in the header, {table.shape[1]} columns below it"
        )
    return _grouped(dict(zip(names, table.T, strict=True)), chambers)


def _grouped(columns: dict[str, np.ndarray], chambers: int) -> dict[str, np.ndarray]:
    """CSV columns under the names an NPZ has; columns of other names stay as they are."""
    groups = {
        "pressures": [f"pressure_{i + 1}" for i in range(chambers)],
        "tip_positions": ["tip_x", "tip_y", "tip_z"],
    }
    for group, members in groups.items():
        if all(member in columns for member in members):
            columns[group] = np.stack([columns.pop(member) for member in members], axis=1)
    return columns


def _resampled(
    path: Path, times: np.ndarray, values: np.ndarray, goal: str, width: int, period: float
) -> np.ndarray:
    if times.ndim != 1 or values.shape != (len(times), width) or not len(times):
        raise UserError(
            f"{path}: time {times.shape} and {goal} {values.shape}: "
            f"allowed are (T,) and (T, {width})"
        )
    for name, column in (("time", times[:, None]), (goal, values)):
        bad = ~np.isfinite(column).all(axis=1)
        if bad.any():
            raise UserError(f"{path}: {name} of row {bad.argmax()} is not finite")
    stuck = np.diff(times) <= 0.0
    if stuck.any():
        row = int(stuck.argmax()) + 1
        raise UserError(
            f"{path}: time of row {row}, {times[row]}, must be above that of the row before"
        )
    grid = time_grid(times[-1] - times[0], period) + times[0]
    return np.stack([np.interp(grid, times, column) for column in values.T], axis=1)
