"""The samples of a run as a CSV file, which other programs and `softcr identify` read."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from softcr_models.errors import UserError
from softcr_runtime.bags.signals import Signal
from softcr_tools.report.run import Run

_SI = {"kPa": "Pa", "mN m": "N m", "mm": "m"}
"""SI units of those in which inputs are shown."""


class _Columns(NamedTuple):
    """Columns of a file.

    Attributes:
        names: with units.
        signal: (T, width) what stands below them.
    """

    names: tuple[str, ...]
    signal: Signal


def write_samples(run: Run, path: Path) -> int:
    """Writes what was measured, commanded, wanted and estimated of a run, by stamp.

    A line stands for each stamp at which anything was sampled, as `time` since the first [s]; a
    cell is empty where its signal has no sample of that stamp. Nothing is interpolated. Columns
    have their SI units in brackets: pressure_1, tension_1, length_1 or torque_1 ... measured, in
    the order of the robot's actuators; command_1 ... asked for; tip_x, tip_y, tip_z and tip_qx,
    tip_qy, tip_qz, tip_qw measured of the tip; NAME_x, NAME_y, NAME_z of a sensor of the type pose;
    force_x ... moment_z of the sensor below the base; reference_x ..., estimate_x ... and true_x
    ... of the tip. What was not recorded has no column.

    Args:
        run: that was recorded.
        path: of the file.

    Returns:
        The number of lines below the names.

    Raises:
        UserError: nothing of all that was recorded, or the file cannot be written.
    """
    columns = [each for each in _columns(run) if len(each.signal)]
    if not columns:
        raise UserError(f"{path}: not written: the bag holds no samples of inputs or of the tip")
    stamps = np.unique(np.concatenate([each.signal.stamps for each in columns]))
    cells = [[f"{1e-9 * (stamp - stamps[0]):.9f}" for stamp in stamps.tolist()]]
    for each in columns:
        rows = np.searchsorted(stamps, each.signal.stamps)
        for values in each.signal.values.reshape(len(rows), -1).T.tolist():
            column = [""] * len(stamps)
            for row, value in zip(rows.tolist(), values, strict=True):
                column[row] = repr(value) if np.isfinite(value) else ""
            cells.append(column)
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["time [s]", *(name for each in columns for name in each.names)])
            writer.writerows(zip(*cells, strict=True))
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    return len(stamps)


def _columns(run: Run) -> Iterator[_Columns]:
    for signal, what in ((run.readings, ""), (run.commands, "command")):
        yield _of_actuators(run, signal, what)
    tip = run.measured_tip
    yield _triple("tip", tip)
    names = tuple(f"tip_q{axis} [-]" for axis in "xyzw")
    yield _Columns(names, run.bag.signal(tip.topic, "quaternion"))
    if run.robot is not None and run.robot.sees_tip:
        body = run.bag.signal("mocap/body/poses", "positions")
        for place, name in enumerate(run.robot.bodies_seen):
            yield _triple(name, body.like(body.stamps, body.values[:, place]))
    wrench = run.bag.signal("force_torque/wrench", "wrench")
    for place, (name, unit) in enumerate((("force", "N"), ("moment", "N m"))):
        part = wrench.values[:, 3 * place : 3 * place + 3]
        yield _triple(name, wrench.like(wrench.stamps, part), unit)
    yield _triple("reference", run.reference_tip)
    yield _triple("estimate", run.estimated_tip)
    yield _triple("true", run.true_tip)


def _triple(name: str, signal: Signal, unit: str = "m") -> _Columns:
    return _Columns(tuple(f"{name}_{axis} [{unit}]" for axis in "xyz"), signal)


def _of_actuators(run: Run, signal: Signal, what: str) -> _Columns:
    """The inputs in the order of the robot's file, as far as that is known."""
    known = [each.name for each in run.inputs]
    told = [(each.quantity, _SI.get(each.unit, each.unit)) for each in run.inputs]
    if sorted(known) == sorted(signal.columns):
        order = [signal.columns.index(name) for name in known]
        signal = signal.like(signal.stamps, signal.values[:, order])
    else:
        told = [(signal.field, signal.unit)] * len(signal.columns)
    names = (f"{what or kind}_{place} [{unit}]" for place, (kind, unit) in enumerate(told, 1))
    return _Columns(tuple(names), signal)
