"""An arm found in recordings of it at rest, with how it was recorded: see `identify --find`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import yaml
from rich import box
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from softcr_estimation.identification import stages
from softcr_estimation.identification.chosen_families import (
    LeftOut,
    chosen,
    left_out_at_rest,
    with_unknowns,
)
from softcr_estimation.identification.column_map import Trial
from softcr_estimation.identification.misfits import Misfit, in_words, misfits, worst
from softcr_estimation.identification.mistakes import mistakes
from softcr_estimation.identification.trials import payload_of, rests_of
from softcr_models.errors import UserError
from softcr_models.identification.measured_groups import Group
from softcr_models.identification.motion_fit import distances, loaded
from softcr_models.identification.prior_fit import (
    PriorFit,
    centre_lines,
    next_rest,
    predicted_at_rest,
    prior_fit,
)
from softcr_models.identification.rod_identification import Recording, Work, fitted_groups
from softcr_models.identification.unknowns import (
    FAMILIES,
    Fit,
    Recorded,
    refuse_unknown,
    unknowns_of,
)
from softcr_models.identification.unknowns import in_words as value_in_words
from softcr_models.robots.robot import Robot
from softcr_models.rod.description import rod_inputs
from softcr_runtime.console.panels import panels
from softcr_runtime.console.results import point_latest_to
from softcr_runtime.console.terminal import say
from softcr_tools.identified_robot import Progress, directory_of_results, residuals
from softcr_tools.recorded_options import options_of

ALL, BEST = "all", "best"
_POINTS = 40  # of a drawn centre line
_TOLD = 0.5  # of a prior's variance: less was told by the recordings than by the guess [-]


def run(
    first: Robot,
    trials: Sequence[Trial],
    held_out: Sequence[Trial],
    find: str,
    results: Path,
    console: Console,
    anyway: bool = False,
) -> PriorFit:
    """Find families of unknowns, from a first guess; see `identify`.

    A robot file, `recorded.yaml` with what acts and where the base is, a report and a figure go to
    a new directory in `results`.

    Raises:
        UserError: a recording cannot be used, has no rests, or does not fit such a robot.
    """
    families, robot = families_of(find, FAMILIES), loaded(first, payload_of(trials))
    choice: list[str] = []
    fitted = rests_of(trials, robot)
    judged = rests_of(held_out, robot) if held_out else None
    groups = [
        each
        for each in fitted_groups(robot, fitted)
        if np.isfinite(fitted.outputs[each.name]).any()
    ]
    if not groups:
        raise UserError("nothing was measured at rest")
    with directory_of_results(results) as directory:
        work = Work()
        with threadpool_limits(limits=1, user_api="blas"), Progress(console) as progress:
            if find.strip() == BEST:
                left_out = left_out_at_rest(robot, fitted, groups)
                names = with_unknowns(robot, groups, FAMILIES)
                families, choice = best_families(names, left_out, progress)
            unknowns = unknowns_of(robot, families, groups)

            def tell(share: float) -> None:
                work.done, work.expected = share, 1.0
                progress.tell("fit", work)

            tell(0.0)
            fit = prior_fit(robot, fitted, groups, unknowns, tell)
        parts = {"fitted": fitted} | ({"held out": judged} if judged is not None else {})
        judgements = (_judged(name, part, fit, groups) for name, part in parts.items())
        lines = [*choice, *(line for each in judgements for line in each)]
        console.print(table_of(robot, fit))
        found = _misfits(robot, fitted, fit, groups)
        console.print(residuals(found, ", fitted"))

        def explain() -> Sequence[str]:
            return mistakes("rest", fit.recorded.robot, whole_rows(fitted))

        lines += refused(found, "", explain, anyway)
        if fit.lost:
            lines.append(f"warning: no steady state in {fit.lost} of {len(fitted)} rows")
        lines.append(_next(robot, fit, groups))
        lines += options_of(fit.recorded)
        unloaded = fit.recorded.robot.model_copy(update={"payload": first.payload})
        write(directory, unloaded, as_content(fit.recorded), fit, trials, lines, console)
        _draw(fit, parts, groups, directory)
        point_latest_to(directory)
    return fit


def refused(
    found: Sequence[Misfit], where: str, explain: Callable[[], Sequence[str]], anyway: bool
) -> list[str]:
    """Warnings of what does not fit, with the mistakes that would explain it.

    Args:
        found: what is left of each group.
        where: what is said behind it.
        explain: looks for mistakes in the recordings.
        anyway: whether what does not fit is used all the same.

    Raises:
        UserError: it does not fit, and is not used anyway.
    """
    if not any(each.suspicious for each in found):
        return []
    told = "; ".join(explain())
    if bad := [each for each in found if each.bad]:
        each = worst(bad)
        line = (
            f"the robot does not fit: {each.group.name} is "
            f"{in_words(each.group, each.residual)} off{where}; {told or stages.UNEXPLAINED}"
        )
        if not anyway:
            raise UserError(line)
        return [f"warning: {line}"]
    return [f"warning: {told}"] if told else []


def whole_rows(recording: Recording) -> Recording:
    """The rows in which all was measured, of what was at all; no orientations."""
    outputs = {
        name: values for name, values in recording.outputs.items() if np.isfinite(values).any()
    }
    known = [np.isfinite(values).all(axis=1) for values in outputs.values()]
    rows = np.all(known, axis=0)
    return Recording(recording.inputs, outputs, recording.period, recording.run_in).rows(
        rows, recording.run_in
    )


def families_of(find: str, known: Collection[str]) -> list[str]:
    """Names of families, of what `--find` says.

    Raises:
        UserError: there is no such family.
    """
    whole = find.strip() in (ALL, BEST)
    names = list(known) if whole else [word.strip() for word in find.split(",")]
    refuse_unknown(names, known)
    return names


def best_families(
    names: Sequence[str], left_out: LeftOut, progress: Progress
) -> tuple[list[str], list[str]]:
    """Those families that lower the error of what is left out of a fit, and lines about each.

    Args:
        names: of families, in the order in which they are tried.
        left_out: see `chosen`.
        progress: told how far the choice has come.

    Raises:
        UserError: none of them lowers it.
    """
    work = Work()

    def tell(share: float) -> None:
        work.done, work.expected = share, 1.0
        progress.tell("choice of unknowns", work)

    tell(0.0)
    without, tried = chosen(names, left_out, tell)
    lines = [f"left out, nothing found: {100 * without:.3g} % of how far it moved"]
    lines += [
        f"left out, with {each.name}: {100 * each.error:.3g} %{', found' * each.kept}"
        for each in tried
    ]
    kept = [each.name for each in tried if each.kept]
    if not kept:
        raise UserError(
            f"--find {BEST}: no unknown lowers the error of what is left out; {lines[0]}"
        )
    return kept, lines


def write(
    directory: Path,
    robot: Robot,
    recorded: Mapping[str, object],
    fit: Fit,
    trials: Sequence[Trial],
    lines: Sequence[str],
    console: Console,
) -> None:
    """Robot file, `recorded.yaml` and report of a fit; lines that judge it are said."""
    little = [each.name for each, told in zip(fit.unknowns, fit.told, strict=True) if told < _TOLD]
    lines = [*lines]
    lines += [
        f"{one} and {other} are hardly told apart, correlation {value:.2f}"
        for one, other, value in fit.alike
    ]
    if little:
        lines.append(f"mostly as guessed, the recordings tell little of {', '.join(little)}")
    for line in lines:
        say(console, line)
    sources = ", ".join(each.name for each in trials)
    comments = [f"Found by softcr from {sources}; first guess {robot.name}.", *_told(fit), *lines]
    stages.write_robot(robot, directory / "identified.yaml", comments)
    content = yaml.safe_dump(dict(recorded), sort_keys=False)
    (directory / "recorded.yaml").write_text(content, encoding="utf-8")
    report = [f"# {robot.name}, found in {sources}", "", *(f"- {line}" for line in comments[1:])]
    (directory / "report.md").write_text("\n".join(report) + "\n", encoding="utf-8")
    say(console, f"robot file: {directory / 'identified.yaml'}")
    say(console, f"report: {directory / 'report.md'}")


def _misfits(
    robot: Robot, part: Recording, fit: PriorFit, groups: Sequence[Group]
) -> tuple[Misfit, ...]:
    """Of the rows in which the rod has a steady state; the others are counted by the fit."""
    seen = predicted_at_rest(fit.recorded, part.inputs, groups)
    known = np.all([np.isfinite(values).all(axis=1) for values in seen.values()], axis=0)
    measured = {each.name: part.outputs[each.name] for each in groups}
    kept = Recording(part.inputs, measured).rows(known)
    return misfits("rest", robot, kept, {name: values[known] for name, values in seen.items()})


def _judged(name: str, part: Recording, fit: PriorFit, groups: Sequence[Group]) -> list[str]:
    """Mean distances of positions, and what is left of other groups."""
    seen = predicted_at_rest(fit.recorded, part.inputs, groups)
    lines = []
    for group in groups:
        if group.name not in part.outputs:
            continue
        off = distances(seen[group.name] - part.outputs[group.name])
        if np.isfinite(off).any():
            told = in_words(group, float(np.nanmean(off)))
            lines.append(f"{name}: {group.name} {told} off on the mean of {len(part)} rows")
    return lines


def _next(robot: Robot, fit: PriorFit, groups: Sequence[Group]) -> str:
    """The rest to record next, and what it would tell most of."""
    readings, left = next_rest(robot, fit, groups)
    inputs = rod_inputs(robot)
    where = ", ".join(
        f"{name} {reading:.3g}" for name, reading in zip(inputs.names, readings, strict=True)
    )
    return f"a rest at {where} {inputs.unit} would tell most: {gained(fit, left)}"


def gained(fit: Fit, left: np.ndarray) -> str:
    """Which of the unknowns is known so much better than the others with deviations (P,), and how
    well."""
    best = int(np.argmin(left / fit.deviations))
    unknown, value = fit.unknowns[best], list(fit.values.values())[best]
    return f"{unknown.name} {value_in_words(unknown, value, float(left[best]))}"


def _told(fit: Fit) -> list[str]:
    rows = zip(fit.unknowns, fit.values.values(), fit.deviations, strict=True)
    return [f"{each.name}: {value_in_words(each, value, float(std))}" for each, value, std in rows]


def table_of(robot: Robot, fit: Fit) -> Table:
    """What was found of each unknown."""
    title = f"{robot.name}, with one standard deviation"
    table = Table("unknown", "found", "told by the recordings", title=title, box=box.SIMPLE_HEAD)
    for line, told in zip(_told(fit), fit.told, strict=True):
        name, _, value = line.partition(": ")
        table.add_row(name, value, f"{100 * told:.0f} %")
    return table


def as_content(recorded: Recorded) -> dict[str, object]:
    """How a robot was recorded, for `recorded.yaml`."""
    return {
        "gains": recorded.gains.tolist(),
        "offsets": recorded.offsets.tolist(),
        "base_position": recorded.position.tolist(),
        "base_rotation_vector": recorded.rotation.tolist(),
    }


def _draw(
    fit: PriorFit, parts: dict[str, Recording], groups: Sequence[Group], directory: Path
) -> None:
    """Centre lines and recorded positions from two sides, a column for each part."""
    planes = ((0, 2), (1, 2))
    labels = ["z [m] over x [m]", "z [m] over y [m]"]
    with panels(directory / "rests.png", labels, len(parts), x="[m]", height=4.0) as grid:
        for column, (name, part) in zip(
            np.reshape(grid, (len(planes), -1)).T, parts.items(), strict=True
        ):
            shapes = centre_lines(fit.recorded, part.inputs, _POINTS)
            for axes, (across, along) in zip(column, planes, strict=True):
                axes.plot(shapes[..., across].T, shapes[..., along].T, "C0-", lw=0.8)
                for group in groups:
                    if group.unit == "m" and group.name in part.outputs:
                        values = part.outputs[group.name]
                        axes.plot(values[:, across], values[:, along], "k.", ms=4)
                axes.set_aspect("equal")
                axes.invert_yaxis()
            column[0].set_title(name)
