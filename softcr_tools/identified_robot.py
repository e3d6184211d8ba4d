"""A robot's parameters from recordings: robot file, report, figure, table; see `identify`."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as BarOfRich
from rich.table import Table
from threadpoolctl import threadpool_limits

from softcr_estimation.identification import stages
from softcr_estimation.identification.misfits import SCALES, Misfit, in_words
from softcr_estimation.identification.stages import Identified, Material, UnlikeRobot
from softcr_models import Robot
from softcr_models.identification.identifiable import names_of, parameters_of, units_of
from softcr_models.identification.rod_identification import Work, fitted_groups, in_motion
from softcr_runtime.console.panels import panels
from softcr_runtime.console.results import new_run_directory, point_latest_to
from softcr_runtime.console.terminal import say

SECONDS_BETWEEN_LINES = 10.0  # of progress, where there is no terminal
_HEADS = ("parameter", "unit", "guess", "identified", "95 % interval", "from")


def run(
    robot: Robot,
    recordings: Sequence[Path],
    results: Path,
    intervals: int | None = None,
    console: Console | None = None,
    anyway: bool = False,
) -> Identified:
    """Identify a robot, from a first guess, see `identify`.

    The model's rod has so many intervals in each segment; None: those of `stages.identify`.
    Progress and tables go to the console, all else to a new directory in `results`.
    """
    console, intervals = console or Console(), intervals or stages.model_intervals(robot)
    sources = ", ".join(map(str, recordings))
    material = stages.read_material(recordings, robot)
    with directory_of_results(results) as directory:
        with threadpool_limits(limits=1, user_api="blas"), Progress(console) as progress:
            try:
                found = stages.identify(robot, material, intervals, progress.tell, anyway)
            except UnlikeRobot as error:
                console.print(residuals(error.misfits))
                raise
            errors = _compare(robot, found.robot, material, intervals, directory)
        cells = _cells(robot, found)
        table = Table(*_HEADS[:-1], title=f"{robot.name}, identified", box=box.SIMPLE_HEAD)
        table.columns[0].no_wrap = True
        for row in cells:
            table.add_row(*row[:-1])
        console.print(table)
        console.print(residuals(found.misfits))
        for name in found.not_excited:
            say(console, f"the recordings do not excite {name}: it stays as in the file", "yellow")
        for warning in found.warnings:
            say(console, f"warning: {warning}", "yellow")
        notes = [*found.notes, *(f"{who}: {told}" for who, told in errors.items())]
        for note in notes:
            say(console, note)
        report = _report(robot, found, material, cells, notes, sources)
        (directory / "report.md").write_text(report, encoding="utf-8")
        described = directory / "identified.yaml"
        stages.write_robot(found.robot, described, _comments(robot, found, sources))
        content = {"experiment": "identification", "sources": sources,
                   "rows": _rows(found, units_of(robot))}  # fmt: skip
        text = json.dumps(content, indent=1) + "\n"
        (directory / "table.json").write_text(text, encoding="utf-8")
        point_latest_to(directory)
    say(console, f"robot file: {described}")
    say(console, f"report: {directory / 'report.md'}")
    return found


class Progress:
    """How far an identification has come: a bar on a terminal, elsewhere a line now and then."""

    def __init__(self, console: Console) -> None:
        """Progress on a console; see `tell`."""
        self._console = console
        columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}")
        self._bar = BarOfRich(*columns, console=console, transient=True)
        self._task = self._bar.add_task("", total=1.0, left="")
        self._stage, self._began, self._said = "", 0.0, 0.0

    def __enter__(self) -> "Progress":
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def tell(self, what: str, work: Work) -> None:
        """What is being done, and how much of it is."""
        now, stage = time.monotonic(), what.partition(",")[0]
        if new := stage != self._stage:
            self._stage, self._began = stage, now
        share = work.done / work.expected if work.expected else 0.0
        left = work.expected - work.done
        if share > 0.05:  # the machine's own speed is known
            left = (now - self._began) * (1.0 - share) / share
        told = f"about {max(1.0, left):.0f} s left" if work.expected else ""
        if self._console.is_terminal:
            self._bar.update(self._task, description=what, completed=share, left=told)
        elif new or now - self._said > SECONDS_BETWEEN_LINES:
            self._said = now
            say(self._console, f"{what}: {100 * share:.0f} %, {told}" if told else what)


@contextmanager
def directory_of_results(results: Path) -> Iterator[Path]:
    """A new directory; what ends early leaves no empty one."""
    directory = new_run_directory(results)
    try:
        yield directory
    except BaseException:
        with suppress(OSError):
            directory.rmdir()
        raise


def residuals(found: Sequence[Misfit], of: str = "") -> Table:
    """What is left of each group beside its noise, `of` some part of the recordings."""
    title = f"root mean square residual of each coordinate{of}"
    table = Table("measured", "", "residual", "noise", "ratio", title=title, box=box.SIMPLE_HEAD)
    for each in found:
        style = "red" if each.bad else "yellow" if each.suspicious else ""
        table.add_row(*_residual(each), style=style)
    return table


def _residual(each: Misfit) -> tuple[str, ...]:
    where = {"rest": "at rest", "motion": "in motion"}[each.where]
    noise = in_words(each.group, each.group.noise)
    told = in_words(each.group, each.residual)
    return each.group.name, where, told, noise, f"{each.times_noise:.3g}"


def _cells(first: Robot, found: Identified) -> list[tuple[str, ...]]:
    """A row for each parameter, below _HEADS."""
    rows, units, chained = [], units_of(first), names_of(first, "chain")
    for name, before in zip(units, parameters_of(first, tuple(units)), strict=True):
        told: tuple[str, ...] = "as guessed", "not excited", ""
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
        f"From {sources}: {len(material.static)} configurations at rest, "
        f"{material.different_rests} of them different; "
        + (f"a motion of {len(motion) * motion.recording.period:.1f} s." if motion
           else "no motion."), "",
        *("| " + " | ".join(row) + " |" for row in (_HEADS, ("---",) * len(_HEADS), *cells)), "",
        f"Not excited by the recordings: {', '.join(found.not_excited) or 'none'}.", "",
        "| measured | | residual, rms | noise of its sensor | residual / noise |",
        "|---|---|---|---|---|",
        *("| " + " | ".join(_residual(each)) + " |" for each in found.misfits), "",
        *(f"- Warning: {warning}." for warning in found.warnings),
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
    lines += [f"  {name}: not excited, as in the first guess" for name in found.not_excited]
    lines.append("Residuals of each coordinate, and the noise of its sensor:")
    for each in found.misfits:
        name, where, left, noise, _ = _residual(each)
        lines.append(f"  {name} {where}: {left}, noise {noise}")
    return lines + [f"Warning: {warning}" for warning in found.warnings]


def _rows(found: Identified, units: dict[str, str]) -> list[dict[str, object]]:
    """As in the tables of studies."""
    names = ("case", "method", "quantity", "mean", "unit")
    rows: list[tuple[object, ...]] = []
    for name, one in found.found.items():
        rows.append((name, "least squares", "value", one.value, units[name]))
        rows.append((name, "least squares", "95 % interval, half", 100 * one.width, "%"))
    for each in found.misfits:
        group = each.group
        rows.append(
            (each.where, "identified", f"{group.name}, residual", each.residual, group.unit)
        )
        rows.append((each.where, "sensor", f"{group.name}, noise", group.noise, group.unit))
    return [dict(zip(names, row, strict=True)) for row in rows]


def _compare(
    first: Robot, found: Robot, material: Material, intervals: int, directory: Path
) -> dict[str, str]:
    """Mean errors in the motion of both robots, in words, and a figure over time of the tip or of
    the first other group that was recorded; empty without motion."""
    if material.motion is None:
        return {}
    recording = material.motion.recording
    group = fitted_groups(first, recording)[0]
    measured = recording.outputs[group.name]
    times = recording.period * np.arange(len(recording))
    seen = {
        who: in_motion(robot, recording, (group,), intervals)[group.name]
        for who, robot in (("first guess", first), ("identified", found))
    }
    factor, unit = SCALES[group.unit]
    labels = [f"{group.name}, {axis} [{unit}]" for axis in "xyz"]
    with panels(directory / "motion.png", labels, x="time [s]", height=2.2) as plots:
        lines = {"recorded": measured, **seen}.items()
        for (who, values), style in zip(lines, ("k", "C1:", "C2--"), strict=True):
            for plot, column in zip(plots, values.T, strict=True):
                plot.plot(times, factor * column, style, label=who)
    off = {who: np.linalg.norm(each - measured, axis=1) for who, each in seen.items()}
    return {
        f"mean error of the {group.name} in motion, {who}":
            in_words(group, float(each[recording.run_in :].mean()))
        for who, each in off.items()
    }  # fmt: skip
