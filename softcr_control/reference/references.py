"""References: where the robot should be over the coming ticks, and where that comes from.

A reference that a robot can follow is one that its model has made: inputs are chosen, the nominal
model computes the states they cause, and those states are the goal (Licher et al. Sec. V-B2).
Purely geometric tip paths are offered too; their states are unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from softcr_control.reference.signals import circle_phase, fade_in, time_grid
from softcr_control.reference.units import require_unit
from softcr_models.errors import UserError
from softcr_models.files.small_files import LARGEST_ARRAYS, arrays_of, content_of
from softcr_models.model import TIP, Model, nominal_parameters
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod_model.rows import interval_counts, restricted

_QUATERNION_TOLERANCE = 1e-3  # of its length


@dataclass(frozen=True, eq=False)
class Reference:
    """Rows of a goal; row j belongs to time stamp + j * period.

    Attributes:
        stamp: time of row 0 [s].
        period: time between rows [s].
        states: (H, nx) wanted states; a row with NaN is unknown, None: all are.
        tip_positions: (H, 3) wanted tip positions [m], base frame.
        tip_orientations: (H, 3, 3) wanted rotations of the tip; NaN or None where unknown.
        outputs: (H, ...) wanted rows of other outputs of the model, by name; of a pose its position
            (H, 3). NaN where unknown.
        inputs: (H, m) that the nominal model feels in the motion [unit of its inputs]; None where
            they are unknown.
    """

    stamp: float
    period: float
    states: np.ndarray | None
    tip_positions: np.ndarray
    tip_orientations: np.ndarray | None = None
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    inputs: np.ndarray | None = None

    def part(self, rows: slice, tip_offsets: np.ndarray | None = None) -> "Reference":
        """Some of its rows; `tip_offsets` (rows, 3) are taken from wanted tip positions [m]."""
        tips = self.tip_positions[rows]
        return Reference(
            self.stamp + (rows.start or 0) * self.period,
            self.period * (rows.step or 1),
            None if self.states is None else self.states[rows],
            tips if tip_offsets is None else tips - tip_offsets,
            None if self.tip_orientations is None else self.tip_orientations[rows],
            {name: values[rows] for name, values in self.outputs.items()},
        )


def as_rotations(quaternions: np.ndarray | None) -> np.ndarray | None:
    """(H, 3, 3) rotations of quaternions (H, 4) x y z w, NaN where those are; None of None."""
    if quaternions is None:
        return None
    rotations = np.full((len(quaternions), 3, 3), np.nan)
    known = np.isfinite(quaternions).all(axis=1)
    rotations[known] = Rotation.from_quat(quaternions[known]).as_matrix()
    return rotations


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
        states: (T, nx), NaN where unknown; None where all are.
        tip_positions: (T, 3) [m], base frame.
        tip_orientations: (T, 3, 3), NaN where unknown; None where all are. Between grid points the
            nearest row counts.
        outputs: (T, ...) rows of other outputs, by name.
        inputs: (T, m) that the nominal model feels [unit of its inputs]; None where unknown.

    Raises:
        UserError: shapes that do not belong together, or a tip that is not finite.
    """

    def __init__(
        self,
        period: float,
        states: np.ndarray | None,
        tip_positions: np.ndarray,
        tip_orientations: np.ndarray | None = None,
        outputs: Mapping[str, np.ndarray] | None = None,
        inputs: np.ndarray | None = None,
    ) -> None:
        tips = np.asarray(tip_positions, float)
        states = None if states is None else np.asarray(states, float)
        shape = "no states" if states is None else states.shape
        rows = len(tips)
        if tips.shape != (rows, 3) or not rows or (states is not None and states.ndim != 2):
            raise UserError(
                f"reference: states {shape} and tip positions {tips.shape}: "
                "allowed are (T, nx) and (T, 3) with T >= 1"
            )
        others = {"states": states, "tip orientations": tip_orientations, "inputs": inputs}
        others |= outputs or {}
        for name, values in others.items():
            if values is not None and len(values) != rows:
                raise UserError(f"reference: {len(values)} rows of {name}, must be {rows}")
        bad = ~np.isfinite(tips).all(axis=1)
        if bad.any():
            raise UserError(f"reference: tip position of row {bad.argmax()} is not finite")
        self.period = period
        self.states = states
        self.tip_positions = tips
        self.tip_orientations = tip_orientations
        self.outputs = dict(outputs or {})
        self.inputs = inputs

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
        fraction = places - before

        def between(values: np.ndarray) -> np.ndarray:
            if not fraction.any():  # a NaN in the next row must not reach this one
                return values[before]
            part = fraction.reshape(-1, *(1,) * (values.ndim - 1))
            return (1 - part) * values[before] + part * values[after]

        turned = self.tip_orientations
        return Reference(
            time,
            self.period,
            None if self.states is None else between(self.states),
            between(self.tip_positions),
            None if turned is None else turned[np.round(places).astype(int)],
            {name: between(values) for name, values in self.outputs.items()},
            None if self.inputs is None else between(self.inputs),
        )


def at_nodes(source: SampledReference, fine: CosseratRod, coarse: CosseratRod) -> SampledReference:
    """The same for a coarser rod: its states at the nodes that both have."""
    if source.states is None:
        return source
    states = restricted(source.states, interval_counts(fine), interval_counts(coarse))
    return SampledReference(
        source.period,
        states,
        source.tip_positions,
        source.tip_orientations,
        inputs=source.inputs,
    )


def setpoint(model: Model, inputs: np.ndarray, period: float) -> SampledReference:
    """The equilibrium at constant inputs (m,) [unit of the model's inputs] of the nominal model."""
    inputs = _checked_inputs(model, np.asarray(inputs, float)[None], "setpoint")[0]
    state = model.equilibrium(inputs, nominal_parameters(model.parameters))
    return _from_states(model, state[None], period, inputs[None])


def input_trajectory(model: Model, inputs: np.ndarray, period: float) -> SampledReference:
    """The states that a trajectory of the inputs causes in the nominal model.

    Args:
        model: the model.
        inputs: (T, m) as the model feels them [unit of its inputs] at the grid of `period`, linear
            between; the motion starts from the equilibrium at row 0.
        period: control period [s].

    Raises:
        UserError: inputs of another shape or not finite, or the model fails under them.
    """
    quantity = model.inputs.quantity.replace("_", " ")
    inputs = _checked_inputs(model, inputs, f"{quantity} trajectory")
    nominal = nominal_parameters(model.parameters)
    start = model.equilibrium(inputs[0], nominal)
    states = start[None]
    if len(inputs) > 1:
        moved = model.rollout(start, inputs[None], nominal, period)[0]
        states = np.vstack([states, moved])
    if not np.isfinite(states).all():
        row = int((~np.isfinite(states)).any(axis=1).argmax())
        raise UserError(
            f"reference: the model fails at {row * period:.3f} s of the {quantity} trajectory "
            f"({inputs[row]} {model.inputs.unit}); smoother or lower values are needed"
        )
    return _from_states(model, states, period, inputs)


pressure_trajectory = input_trajectory
"""The name for models whose inputs are pressures [Pa]."""


def tip_circle(
    model: Model,
    times: np.ndarray,
    centre: np.ndarray,
    radius: float,
    frequency: float,
    fade_seconds: float,
) -> SampledReference:
    """A circle of the tip in a plane of constant z, as geometry only: states are unknown.

    Args:
        model: says where the tip is at rest: the path fades in from there.
        times: (T,) grid of the control period from 0 on [s], T >= 2.
        centre: (3,) [m], base frame.
        radius: [m].
        frequency: turns per second [Hz].
        fade_seconds: time to move from the tip at rest onto the circle [s].
    """
    phase = circle_phase(times, frequency)
    turning = np.stack([np.cos(phase), np.sin(phase), np.zeros_like(phase)], axis=1)
    nominal = nominal_parameters(model.parameters)
    at_rest = model.equilibrium(model.inputs.rest, nominal)
    start = _tips(model, at_rest[None])[0]
    tips = start + fade_in(times, fade_seconds)[:, None] * (centre + radius * turning - start)
    return SampledReference(times[1] - times[0], None, tips)


def from_file(model: Model, path: str | Path, period: float) -> SampledReference:
    """A reference from a CSV or NPZ file, resampled linearly to the control period.

    Q stands for the quantity of the model's inputs, pressure for a rod's. A CSV has one header line
    and the columns `time` [s] and either `Q_1` .. `Q_m` [unit of the inputs] or `tip_x`, `tip_y`,
    `tip_z` [m, base frame]. An NPZ has the arrays `time` (T,) [s] and one of `Qs` (T, m),
    `tip_positions` (T, 3) [m, base frame], `states` (T, nx). Tips may have orientations beside them
    that are asked for: `tip_orientations` (T, 4), in a CSV `tip_qx`, `tip_qy`, `tip_qz`, `tip_qw`,
    a quaternion in the base frame in every row. From inputs the nominal model computes the states;
    with tips only they are unknown. The first time becomes 0.

    Raises:
        UserError: one line naming the file, what is wrong and what is allowed.
    """
    path, quantity = Path(path), model.inputs.quantity
    columns = _read(path, quantity, model.inputs.size)
    widths = {f"{quantity}s": model.inputs.size, "tip_positions": 3, "states": model.state.size}
    goals = [name for name in widths if name in columns]
    if "time" not in columns or len(goals) != 1:
        raise UserError(
            f"{path}: holds {', '.join(columns) or 'nothing'}; allowed are time and exactly one of "
            f"{', '.join(widths)} (CSV: time and {quantity}_1.. or tip_x, tip_y, tip_z)"
        )
    goal = goals[0]
    values = _resampled(path, columns["time"], columns[goal], goal, widths[goal], period)
    if goal == "tip_positions":
        rest = model.equilibrium(model.inputs.rest, nominal_parameters(model.parameters))
        reach = float(np.linalg.norm(_tips(model, rest[None])))
        require_unit(f"{path}: {goal}", values, "m", reach)
        turned = _turned(path, columns, period) if "tip_orientations" in columns else None
        return SampledReference(period, None, values, turned)
    if goal == "states":
        return _from_states(model, values, period)
    require_unit(f"{path}: {goal}", values, model.inputs.unit, float(model.inputs.range.max()))
    return input_trajectory(model, values, period)


def tips_of_file(path: str | Path, period: float) -> np.ndarray:
    """(T, 3) tip positions [m] of a file as `from_file` takes, resampled linearly to a period [s].

    Raises:
        UserError: one line naming the file, what is wrong and what is allowed.
    """
    path = Path(path)
    columns = _read(path, "pressure", 1)
    if not {"time", "tip_positions"} <= columns.keys():
        raise UserError(
            f"{path}: holds {', '.join(columns) or 'nothing'}; an arm needs time and tip_positions "
            "(CSV: time, tip_x, tip_y, tip_z)"
        )
    return _resampled(path, columns["time"], columns["tip_positions"], "tip_positions", 3, period)


def _from_states(
    model: Model, states: np.ndarray, period: float, inputs: np.ndarray | None = None
) -> SampledReference:
    return SampledReference(period, states, _tips(model, states), inputs=inputs)


def _tips(model: Model, states: np.ndarray) -> np.ndarray:
    """(T, 3) [m] tips of states with nominal parameters."""
    nominal = nominal_parameters(model.parameters)[None]
    tips: np.ndarray = model.observe((TIP,), states, None, nominal)[TIP][:, :, 3]
    return tips


def _checked_inputs(model: Model, inputs: np.ndarray, where: str) -> np.ndarray:
    inputs = np.asarray(inputs, float)
    if inputs.ndim != 2 or inputs.shape[1] != model.inputs.size:
        raise UserError(
            f"reference: {where} has shape {inputs.shape}, allowed is (T, {model.inputs.size})"
        )
    if not np.isfinite(inputs).all():
        raise UserError(f"reference: {where} holds a value that is not finite")
    return inputs


def _read(path: Path, quantity: str, count: int) -> dict[str, np.ndarray]:
    if path.suffix.lower() not in (".csv", ".npz"):
        raise UserError(f"{path}: a reference file must end in .csv or .npz")
    try:
        if path.suffix.lower() == ".npz":
            return {name: np.asarray(value, float) for name, value in arrays_of(path).items()}
        header, *lines = content_of(path, LARGEST_ARRAYS).decode("utf-8").splitlines() or [""]
        table = np.loadtxt(lines, delimiter=",", ndmin=2) if lines else np.empty((0, 0))
    except (OSError, ValueError) as error:
        problem = " ".join(str(error).split())
        raise UserError(f"{path}: cannot be read as a reference: {problem}") from None
    names = [name.strip() for name in header.split(",")]
    if not len(table):
        raise UserError(f"{path}: holds no rows; a header line and at least one row are needed")
    if table.shape[1] != len(names):
        raise UserError(
            f"{path}: {len(names)} names in the header, {table.shape[1]} columns below it"
        )
    return _grouped(dict(zip(names, table.T, strict=True)), quantity, count)


def _grouped(columns: dict[str, np.ndarray], quantity: str, count: int) -> dict[str, np.ndarray]:
    """CSV columns under the names an NPZ has; columns of other names stay as they are."""
    groups = {
        f"{quantity}s": [f"{quantity}_{i + 1}" for i in range(count)],
        "tip_positions": ["tip_x", "tip_y", "tip_z"],
        "tip_orientations": ["tip_qx", "tip_qy", "tip_qz", "tip_qw"],
    }
    for group, members in groups.items():
        if all(member in columns for member in members):
            columns[group] = np.stack([columns.pop(member) for member in members], axis=1)
    return columns


def _turned(path: Path, columns: dict[str, np.ndarray], period: float) -> np.ndarray:
    """(T', 3, 3) orientations of tips at the grid of a period [s], along the shortest turns."""
    times, quaternions = columns["time"], columns["tip_orientations"]
    if quaternions.shape != (len(times), 4):
        raise UserError(
            f"{path}: tip_orientations {quaternions.shape}: allowed is ({len(times)}, 4)"
        )
    lengths = np.linalg.norm(quaternions, axis=1)
    wrong = ~(np.abs(lengths - 1.0) < _QUATERNION_TOLERANCE)
    if wrong.any():
        row = int(wrong.argmax())
        raise UserError(
            f"{path}: tip orientation {quaternions[row].tolist()} of row {row} must have length 1"
        )
    grid = time_grid(times[-1] - times[0], period) + times[0]
    turns = Rotation.from_quat(quaternions)
    if len(times) == 1:
        return turns.as_matrix()
    return Slerp(times, turns)(np.clip(grid, times[0], times[-1])).as_matrix()


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
