"""The files of a commissioned bench: station, cameras' calibration, mounting of the sensor."""

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from softcr_hardware.commissioning.session import Session
from softcr_hardware.commissioning.steps import STEPS
from softcr_hardware.ethercat.terminals import Chamber, Station, load_station
from softcr_hardware.force_torque.mounting import KeptBias, Mounting, load_mounting
from softcr_hardware.optitrack.calibration import MocapCalibration, load_calibration
from softcr_models.errors import UserError
from softcr_runtime.bags.whole_files import write_whole

_NEEDED = ("zero", "exhaust", "survey", "wiring", "slope", "leak", "flow")


def commissioned(session: Session) -> bool:
    """Whether flow, dead band and lag were measured, and nothing is left to be mended by hand."""
    done = session.record.steps
    return all(step.name in done and done[step.name].good for step in STEPS)


def new_station(session: Session) -> Station:
    """The station file as the bench is: zeros, slopes, wires, valves, flow.

    Raises:
        UserError: a step that it needs was not done.
    """
    old = session.bench.station
    for step in _NEEDED:
        if step not in session.record.steps:
            raise UserError(f"station file: step {step} must be done before it is written")
    chambers: list[Chamber | None] = [None] * len(old.chambers)
    zeros = session.value("zero", "volts")
    ratios = session.value("slope", "ratios")
    for channel, (sensor, chamber) in enumerate(
        zip(session.answers(), session.value("wiring", "bends"), strict=True)
    ):
        seen, ratio = old.chambers[sensor].sensor, ratios[sensor]
        slope = seen.pascal_per_volt * (ratio if ratio is not None and ratio > 0.0 else 1.0)
        update = {"zero": round(zeros[sensor], 4), "pascal_per_volt": _digits(slope)}
        chambers[chamber] = old.chambers[chamber].model_copy(
            update={
                "sensor": seen.model_copy(update=update),
                "valve": old.chambers[channel].valve,
            }
        )
    common = session.value("flow", "common")
    closed = 0.5 * (common["fill_edge"] + common["exhaust_edge"])
    dead_band = 0.5 * abs(common["fill_edge"] - common["exhaust_edge"])
    valve = old.flow_valve.model_copy(
        update={
            "closed": round(closed, 4),
            "dead_band": round(dead_band, 4),
            "lag": round(min(common["lag"] + common["age"], 0.05), 5),
        }
    )
    flow = old.flow.model_copy(
        update={
            "fill_rate": _digits(common["fill_rate"]),
            "exhaust_rate": _digits(common["exhaust_rate"]),
        }
    )
    return old.model_copy(
        update={
            "chambers": tuple(chambers),
            "valve": valve,
            "flow": flow,
            "guard": old.guard.model_copy(update={"commissioned": commissioned(session)}),
        }
    )


def write_files(session: Session, directory: Path) -> list[str]:
    """Write station, calibration and mounting, each complete and read back.

    Args:
        session: all of whose steps are done.
        directory: where they go, as STATION.yaml and so on.

    Returns:
        A line for each file.

    Raises:
        UserError: a step is missing, or a file cannot be written.
    """
    record, lines = session.record, []
    station = new_station(session)
    path = directory / "station.yaml"
    lines += _written(path, station.model_dump(mode="json", exclude_unset=True), session)
    load_station(path, session.robot.chamber_names)
    if session.has("base", "calibration"):
        path = directory / "calibration.yaml"
        calibration = MocapCalibration.model_validate(session.value("base", "calibration"))
        lines += _written(path, calibration.model_dump(mode="json"), session)
        load_calibration(path)
    if session.has("force_torque", "quaternion"):
        path = directory / "mounting.yaml"
        lines += _written(path, _mounting(session).model_dump(mode="json"), session)
        load_mounting(path)
    if not commissioned(session):
        lines.append("station.yaml: guard.commissioned is false until everything is corrected")
    record.save(directory / "record.yaml")
    return lines


def _mounting(session: Session) -> Mounting:
    """The sensor's axes as they were found, and its bias."""
    bias = KeptBias(
        wrench=tuple(session.value("force_torque", "bias")),
        taken=session.record.steps["force_torque"].done,  # type: ignore[arg-type]  # parsed
        calibration_serial=session.mounting.calibration_serial,
    )
    quaternion = tuple(session.value("force_torque", "quaternion"))
    return session.mounting.model_copy(update={"quaternion": quaternion, "bias": bias})


def _written(path: Path, content: dict[str, Any], session: Session) -> list[str]:
    when = max(step.done for step in session.record.steps.values())
    told = {"description": f"commissioned {when}, see record.yaml beside it"}
    content = told | {key: each for key, each in content.items() if key not in told}
    head = f"# {path.name}: written by softcr commission for {session.robot.name}; SI units.\n"
    text = head + yaml.safe_dump(content, sort_keys=False, width=100, default_flow_style=None)
    kept = write_whole(path, text, backup=True)
    line = f"{path} written"
    return [line if kept is None else f"{line}; the one before is {kept.name}"]


def _digits(number: float) -> float:
    """Five digits of a number."""
    return float(np.format_float_positional(number, precision=5, fractional=False))
