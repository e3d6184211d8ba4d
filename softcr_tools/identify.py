"""`softcr identify`: a robot's parameters from recordings: robot file, report, figure, table."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from threadpoolctl import threadpool_limits

from softcr_estimation.identification import stages
from softcr_estimation.identification.stages import Identified, Material
from softcr_models import Robot, load_robot
from softcr_models.identifiable import names_of, parameters_of, units_of
from softcr_models.identification import predicted_motion
from softcr_runtime.command_line import command
from softcr_runtime.console import say
from softcr_runtime.panels import panels
from softcr_runtime.results import new_run_directory, point_latest_to

_HEADS = ("parameter", "unit", "first guess", "identified", "95 % interval", "from")


@command
def identify(
    recordings: list[Path], /, *, robot: str = "licher2025", results: Path = Path("results")
) -> int:
    """Find a robot's parameters in recordings and write its YAML file.

    A robot file with 95 % confidence intervals, a report that names what the recordings do not
    excite, and a figure go to results/identification/latest.

    Record each actuator, each pair and all of them at six levels (42 configurations of three),
    each held until the tip has come to rest for a second; then, from rest, 10 s of 0.1, 0.5 and
    1 Hz and a step to the least inputs. One recording may hold it all, or several may share it.

    Of a robot with a pressure_chain its numbers are found, too, in the longest motion, which begins
    at rest without pressure; they are written to its values.

    An arm of several segments has its lengths, compliances and relaxation times in each segment
    (bending_compliance_1, bending_compliance_2, ...).

    A bag needs pressure/state, mocap/tip/pose and force_torque/wrench, and for the pressure lag
    pressure/sent or pressure/command: `make sim`, a bench and tracking studies record them.

    A file ending in .csv has a line of column names and a line per sample, in SI units: pressure_1
    ... pressure_m (gauge, actuators in the robot file's order; tension_1 ... tension_m where they
    are tendons), tip_x, tip_y, tip_z (base frame), force_x, force_y, force_z, moment_x, moment_y,
    moment_z (of the sensor below the base), time (without it every line is a configuration at
    rest), and for the lag command_1 ... command_m (inputs asked for). Their order is free, other
    columns are not read.

    Args:
        recordings: bags and CSV files.
        robot: first guess: name or YAML file.
        results: directory.

    Raises:
        UserError: the robot or a recording cannot be used, or the results cannot be written.
    """
    run(load_robot(robot), recordings, results / "identification")
    return 0


def run(
    robot: Robot,
    recordings: Sequence[Path],
    results: Path,
    intervals: int | None = None,
    console: Console | None = None,
) -> Identified:
    """Identify a robot, from a first guess, see `identify`.

    The model's rod has so many intervals in each segment; None: those of `stages.identify`.
    Progress and table go to the console, all else to a new directory in `results`.
    """
    console, intervals = console or Console(), intervals or stages.model_intervals(robot)
    sources = ", ".join(map(str, recordings))
    material = stages.read_material(recordings, robot)
    directory = new_run_directory(results)
    columns = TextColumn("{task.description:12}"), BarColumn(), TimeElapsedColumn()
    with threadpool_limits(limits=1, user_api="blas"), Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=stages.STAGES)
        found = stages.identify(
            robot, material, intervals, lambda what: bar.update(task, description=what, advance=1)
        )
        errors = _compare(robot, found.robot, material, intervals, directory)
    cells = _cells(robot, found)
    table = Table(*_HEADS, title=f"{robot.name}, identified from {sources}", box=box.SIMPLE_HEAD)
    for row in cells:
        table.add_row(*row)
    console.print(table)
    for name in found.not_excited:
        say(console, f"the recordings do not excite {name}: it stays as in the file", "yellow")
    notes = [*found.notes, *(f"tip error, {who}: {1e3 * e:.2f} mm" for who, e in errors.items())]
    for note in notes:
        say(console, note)
    report = _report(robot, found, material, cells, notes, sources)
    (directory / "report.md").write_text(report, encoding="utf-8")
    described = directory / "identified.yaml"
    stages.write_robot(found.robot, described, _comments(robot, found, sources))
    content = {"experiment": "identification", "sources": sources,
               "rows": _rows(found, units_of(robot), errors, robot.length)}  # fmt: skip
    (directory / "table.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    point_latest_to(directory)
    say(console, f"robot file: {described}")
    say(console, f"report: {directory / 'report.md'}")
    return found


def _cells(first: Robot, found: Identified) -> list[tuple[str, ...]]:
    """A row for each parameter, below _HEADS."""
    rows, units, chained = [], units_of(first), names_of(first, "chain")
    for name, before in zip(units, parameters_of(first, tuple(units)), strict=True):
        told: tuple[str, ...] = "as guessed", "", "not excited"
        if name in found.found:
            one = found.found[name]
            # what may be zero has no error relative to itself
            off = f"{abs(one.width * one.value):.2g}" if name in chained else ""
            told = f"{one.value:.5g}", f"+- {off or f'{100 * one.width:.2g} %'}", one.source
        rows.append((name, units[name], f"{before:.5g}", *told))
    return rows


def _report(
    first: Robot,
    found: Identified,
    material: Material,
    cells: Sequence[Sequence[str]],
    notes: Sequence[str],
    sources: str,
) -> str:
    motion = material.motion
    lines = [
        f"# {first.name}, identified", "",
        f"From {sources}: {len(material.static.tips)} configurations at rest, "
        f"{material.different_rests} of them different; "
        + (f"a motion of {len(motion) * motion.recording.period:.1f} s." if motion
           else "no motion."), "",
        *("| " + " | ".join(row) + " |" for row in (_HEADS, ("---",) * len(_HEADS), *cells)), "",
        f"Not excited by the recordings: {', '.join(found.not_excited) or 'none'}.", "",
        *(f"- {note}" for note in notes),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _comments(first: Robot, found: Identified, sources: str) -> list[str]:
    """Values with their 95 % confidence intervals, and what is not known."""
    lines = [
        f"Identified by softcr from {sources}; first guess {first.name}.",
        "Values with 95 % confidence intervals (the model's own errors are not in them):",
    ]
    units = units_of(first)
    for name, one in found.found.items():
        width = abs(one.width * one.value)
        lines.append(f"  {name}: {one.value:.6g} +- {width:.2g} {units[name]}, from {one.source}")
    return lines + [f"  {name}: not excited, as in the first guess" for name in found.not_excited]


def _rows(
    found: Identified, units: dict[str, str], errors: dict[str, float], length: float
) -> list[dict[str, object]]:
    """As in the tables of studies."""
    names = ("case", "method", "quantity", "mean", "unit")
    rows: list[tuple[object, ...]] = []
    for name, one in found.found.items():
        rows.append((name, "least squares", "value", one.value, units[name]))
        rows.append((name, "least squares", "95 % interval, half", 100 * one.width, "%"))
    for who, error in errors.items():
        rows.append(("motion", who, "tip error", 100 * error / length, "% of length"))
    return [dict(zip(names, row, strict=True)) for row in rows]


def _compare(
    first: Robot, found: Robot, material: Material, intervals: int, directory: Path
) -> dict[str, float]:
    """Mean tip errors [m] in the motion of both robots, drawn over time; empty without motion."""
    if material.motion is None:
        return {}
    recording = material.motion.recording
    times = recording.period * np.arange(len(recording.tips))
    tips = {
        "first guess": predicted_motion(first, recording, intervals),
        "identified": predicted_motion(found, recording, intervals),
    }
    lines = {"recorded": recording.tips, **tips}
    labels = [f"{axis} of the tip [mm]" for axis in "xyz"]
    with panels(directory / "motion.png", labels, x="time [s]", height=2.2) as plots:
        for (who, positions), style in zip(lines.items(), ("k", "C1:", "C2--"), strict=True):
            for plot, column in zip(plots, positions.T, strict=True):
                plot.plot(times, 1e3 * column, style, label=who)
    off = {who: np.linalg.norm(each - recording.tips, axis=1) for who, each in tips.items()}
    return {who: float(each[recording.run_in :].mean()) for who, each in off.items()}
