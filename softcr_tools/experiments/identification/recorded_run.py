"""What `softcr experiment identification --bag/--csv` writes: robot file, report, figure, table."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import yaml
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from threadpoolctl import threadpool_limits

from softcr_models import Robot
from softcr_models.identification import (
    DAMPING,
    LAG_PARAMETERS,
    parameters_of,
    predicted_motion,
)
from softcr_runtime.console import say
from softcr_runtime.results import new_run_directory, point_latest_to
from softcr_tools.experiments.identification.recorded import (
    ALL_PARAMETERS,
    STAGES,
    Identified,
    Material,
    identify,
    read_material,
)
from softcr_tools.experiments.results import Row, print_table, write_table

UNITS = {
    "length": "m",
    "tip_mass": "kg",
    "bending_compliance": "rad/(N m m)",
    "dilatation_compliance": "m/(N m)",
    DAMPING: "s",
    LAG_PARAMETERS[0]: "1/s",
    LAG_PARAMETERS[1]: "1/s",
}


def run_recorded(
    robot: Robot,
    bags: Sequence[Path],
    files: Sequence[Path],
    results: Path,
    console: Console,
    intervals: int,
) -> Identified:
    """Identifies a robot from recordings and writes what was found.

    Args:
        robot: the first guess.
        bags, files: the recordings.
        results: where a directory is made.
        console: for progress and table.
        intervals: of the model's rod.

    Raises:
        UserError: a recording cannot be used, or the results cannot be written.
    """
    sources = [str(path) for path in (*bags, *files)]
    material = read_material(bags, files, robot)
    directory = new_run_directory(results)
    columns = TextColumn("{task.description:12}"), BarColumn(), TimeElapsedColumn()
    with threadpool_limits(limits=1, user_api="blas"), Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=STAGES)
        found = identify(
            robot, material, intervals, lambda what: bar.update(task, description=what, advance=1)
        )
        errors = _compare(robot, found.robot, material, intervals, directory)
    rows = [*_rows(found), *_error_rows(errors, robot.length)]
    print_table(console, f"{robot.name}, identified from {', '.join(sources)}", rows)
    lines = _lines(robot, found, material, errors, sources)
    for name in found.not_excited:
        say(console, f"the recordings do not excite {name}: it stays as in the file", "yellow")
    for note in found.notes:
        say(console, note)
    (directory / "report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_robot(found.robot, directory / "identified.yaml", _comments(robot, found, sources))
    write_table(directory, {"experiment": "identification", "sources": sources}, rows)
    point_latest_to(directory)
    say(console, f"robot file: {directory / 'identified.yaml'}")
    say(console, f"report: {directory / 'report.md'}")
    return found


def write_robot(robot: Robot, path: Path, comments: Sequence[str] = ()) -> None:
    """A robot file that `load_robot` reads, with comments above.

    Raises:
        OSError: it cannot be written.
    """
    content = robot.model_dump(mode="json", exclude_none=True)
    content["description"] = f"{robot.description}; identified by softcr".strip("; ")
    head = "".join(f"# {line}\n" for line in comments)
    path.write_text(head + yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def _comments(first: Robot, found: Identified, sources: Sequence[str]) -> list[str]:
    """Values with their 95 % confidence intervals, and what is not known."""
    lines = [f"Identified by softcr from {', '.join(sources)}; first guess {first.name}."]
    lines.append("Values with 95 % confidence intervals (the model's own errors are not in them):")
    for name, one in found.found.items():
        width = one.width * one.value
        lines.append(f"  {name}: {one.value:.6g} +- {width:.2g} {UNITS[name]}, from {one.source}")
    lines += [f"  {name}: not excited, as in the first guess" for name in found.not_excited]
    return lines


def _lines(
    first: Robot,
    found: Identified,
    material: Material,
    errors: dict[str, float],
    sources: Sequence[str],
) -> list[str]:
    """The report."""
    before = dict(zip(ALL_PARAMETERS, parameters_of(first, ALL_PARAMETERS), strict=True))
    lines = [f"# {first.name}, identified", "", f"From {', '.join(sources)}: "
             f"{len(material.static.tips)} configurations at rest, "
             f"{material.different_rests} of them different; "
             + ("no motion." if material.motion is None else
                f"a motion of {len(material.motion) * material.motion.recording.period:.1f} s."),
             "", "| parameter | unit | first guess | identified | 95 % interval | from |",
             "|---|---|---:|---:|---:|---|"]  # fmt: skip
    for name in ALL_PARAMETERS:
        if name in found.found:
            one = found.found[name]
            value, width = f"{one.value:.5g}", f"+- {100 * one.width:.2g} %"
            cells = (name, UNITS[name], f"{before[name]:.5g}", value, width, one.source)
        else:
            cells = (name, UNITS[name], f"{before[name]:.5g}", "as guessed", "", "not excited")
        lines.append("| " + " | ".join(cells) + " |")
    names = ", ".join(found.not_excited) or "none"
    lines += ["", f"Not excited by the recordings: {names}.", ""]
    lines += [f"- {note}" for note in found.notes]
    lines += [f"- tip error, {case}: {1e3 * error:.2f} mm" for case, error in errors.items()]
    return lines


def _rows(found: Identified) -> list[Row]:
    rows = []
    for name, one in found.found.items():
        width = 100 * one.width
        rows.append(Row(name, "least squares", "value", None, one.value, 0.0, UNITS[name], 1))
        rows.append(Row(name, "least squares", "95 % interval, half", None, width, 0.0, "%", 1))
    return rows


def _error_rows(errors: dict[str, float], length: float) -> list[Row]:
    return [
        Row("motion", case, "tip error", None, 100 * error / length, 0.0, "% of length", 1)
        for case, error in errors.items()
    ]


def _compare(
    first: Robot, identified: Robot, material: Material, intervals: int, directory: Path
) -> dict[str, float]:
    """Mean tip errors [m] in the motion of both robots, drawn over time; empty without motion."""
    if material.motion is None:
        return {}
    recording = material.motion.recording
    times = recording.period * np.arange(len(recording.tips))
    figure, plots = plt.subplots(3, 1, figsize=(9.0, 7.0), sharex=True)
    for column, (plot, axis) in enumerate(zip(plots, "xyz", strict=True)):
        plot.plot(times, 1e3 * recording.tips[:, column], "k", label="recorded")
        plot.set_ylabel(f"{axis} of the tip [mm]")
        plot.grid(alpha=0.3)
    errors = {}
    for case, robot, style in (("first guess", first, "C1:"), ("identified", identified, "C2--")):
        tips = predicted_motion(robot, recording, intervals)
        distances = np.linalg.norm(tips - recording.tips, axis=1)
        errors[case] = float(distances[recording.run_in :].mean())
        for column, plot in enumerate(plots):
            plot.plot(times, 1e3 * tips[:, column], style, label=case)
    plots[0].legend(loc="upper right")
    plots[-1].set_xlabel("time [s]")
    figure.tight_layout()
    figure.savefig(directory / "motion.png", dpi=120)
    plt.close(figure)
    return errors
