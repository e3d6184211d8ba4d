"""An arm found in recordings of its motion, with how it was recorded: see `identify --motion`."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from softcr_estimation.identification.chosen_families import left_out_in_motion, with_unknowns
from softcr_estimation.identification.column_map import Trial
from softcr_estimation.identification.misfits import Misfit, in_words, misfits
from softcr_estimation.identification.mistakes import mistakes
from softcr_estimation.identification.motion_errors import (
    BANDS,
    by_band,
    measured_groups,
    true_starts,
    whole_trials,
)
from softcr_estimation.identification.stretches import LONGEST_MOTION, SHORTEST_MOTION, runs
from softcr_estimation.identification.trials import bridged, motions_of
from softcr_models.errors import UserError
from softcr_models.identification.actuation import FAMILIES_IN_MOTION, Actuation, chain_of
from softcr_models.identification.measured_groups import Group
from softcr_models.identification.motion_fit import (
    RUN_IN,
    Motion,
    MotionFit,
    distances,
    motion_fit,
)
from softcr_models.identification.next_motion import NextMotion, next_motion
from softcr_models.identification.rod_identification import Recording, Work
from softcr_models.identification.unknowns import unknowns_of
from softcr_models.robots.robot import Robot
from softcr_models.rod.description import rod_inputs
from softcr_runtime.console.panels import panels
from softcr_runtime.console.results import point_latest_to
from softcr_tools.identified_robot import Progress, directory_of_results
from softcr_tools.plan import write_inputs
from softcr_tools.recorded_arm import (
    BEST,
    as_content,
    best_families,
    families_of,
    gained,
    refused,
    table_of,
    write,
)
from softcr_tools.recorded_options import options_of

HORIZONS = (2.0, 0.5)
"""Of predictions from true starts [s]."""
_DRAWN = 30.0  # of a trial [s]
_NAMED = 12  # motions that are reported one by one


def run(
    robot: Robot,
    trials: Sequence[Trial],
    held_out: Sequence[Trial],
    find: str,
    results: Path,
    console: Console,
    anyway: bool = False,
) -> MotionFit:
    """Find families of unknowns in motions, from a first guess; see `identify`.

    A robot file, `recorded.yaml` with what acts, how late, and where the base is, the inputs of the
    motion to record next, a report and a figure go to a new directory in `results`.

    Raises:
        UserError: a recording cannot be used, is too short, or does not fit such a robot.
    """
    if robot.pressure_chain is not None:
        raise UserError(
            f"robot {robot.name}: has a pressure_chain; a fit in motion finds hysteresis and creep "
            "itself: give a robot without"
        )
    motions = motions_of(trials, held_out)
    judged = motions_of(held_out, trials) if held_out else []
    groups = measured_groups(robot, motions)
    if not groups:
        raise UserError("no position was measured in motion")
    families, choice = families_of(find, FAMILIES_IN_MOTION), list[str]()
    with directory_of_results(results) as directory:
        with threadpool_limits(limits=1, user_api="blas"), Progress(console) as progress:
            if find.strip() == BEST:
                names = with_unknowns(robot, groups, FAMILIES_IN_MOTION)
                left_out = left_out_in_motion(robot, motions, groups)
                families, choice = best_families(names, left_out, progress)
            unknowns = unknowns_of(robot, families, groups, FAMILIES_IN_MOTION)
            work = Work(lambda work: progress.tell("fit in motion", work))
            fit = motion_fit(robot, motions, groups, unknowns, work)
            progress.tell("errors", Work())
            seen = {"fitted": whole_trials(robot, fit.actuation, motions, groups)}
            if judged:
                seen["held out"] = whole_trials(robot, fit.actuation, judged, groups)
            proposed: NextMotion | UserError
            try:
                proposed = next_motion(robot, fit, groups, motions[0].period)
            except UserError as error:
                proposed = error
        console.print(table_of(robot, fit))
        holes, longest = bridged([*trials, *held_out])
        lines = [*choice]
        if holes:
            told = f"{holes} holes of the inputs, up to {longest:.2g} s, are bridged by lines"
            lines.append(told)
        found = _misfits(robot, motions, seen["fitted"], groups)
        clear = _clear(motions, groups)

        def explain() -> Sequence[str]:
            return mistakes("motion", fit.recorded.robot, clear) if clear else ()

        lines += refused(found, " in motion", explain, anyway)
        if fit.lost:
            lines.append(f"warning: the rod is lost in {fit.lost} of {fit.windows} windows")
        with threadpool_limits(limits=1, user_api="blas"), Progress(console) as progress:
            progress.tell("errors from true starts", Work())
            for name, part in (("fitted", motions), ("held out", judged)):
                for line in _judged(robot, fit, part, seen.get(name, []), groups):
                    lines.append(f"{name}: {line}")
        best = "held out" if judged else "fitted"
        console.print(_bands_table(judged or motions, seen[best], groups, best))
        if isinstance(proposed, UserError):
            lines.append(f"no motion to record next is known: {proposed}")
        else:
            told, quantity = gained(fit, proposed.left), rod_inputs(robot).quantity
            lines.append(f"a motion of {proposed.words} would tell most: {told}")
            write_inputs(directory / "next_motion.npz", proposed.inputs, proposed.period, quantity)
        if _rubbing(fit.actuation):
            lines.append("friction of the tendons is in recorded.yaml; no robot file can have it")
        lines += options_of(fit.recorded)
        write(
            directory,
            with_chain(fit.actuation),
            in_motion(fit.actuation),
            fit,
            trials,
            lines,
            console,
        )
        _draw((judged or motions)[0], seen[best][0], groups, directory)
        point_latest_to(directory)
    return fit


def errors(motion: Motion, predicted: np.ndarray, groups: Sequence[Group]) -> dict[str, np.ndarray]:
    """(T, 3) predicted (T, G, 3) minus measured by name of group, of those that were measured."""
    return {
        each.name: predicted[:, g] - motion.outputs[each.name]
        for g, each in enumerate(groups)
        if each.name in motion.outputs
    }


def _judged(
    robot: Robot,
    fit: MotionFit,
    motions: Sequence[Motion],
    seen: Sequence[np.ndarray],
    groups: Sequence[Group],
) -> list[str]:
    """Mean distances: over whole trials, and over each horizon from true starts."""
    if not motions:
        return []
    lines: list[str] = []
    means: dict[Group, dict[str, float]] = defaultdict(dict)
    for motion, predicted in zip(motions, seen, strict=True):
        for group, off in _by_group(groups, errors(motion, predicted, groups)):
            means[group][motion.name] = float(np.nanmean(off))
            lost = np.isfinite(motion.outputs[group.name]).any(axis=1) & np.isnan(off)
            until = f" until its rod is lost at {lost.argmax() * motion.period:.1f} s"
            if len(motions) <= _NAMED or lost.any():
                lines.append(
                    f"{motion.name}: {group.name} {_mean(group, off)} off over the whole"
                    f"{until if lost.any() else ''}"
                )
    for group, each in means.items() if len(motions) > _NAMED else ():
        worst = max(each, key=lambda name: each[name])
        mean = in_words(group, float(np.mean(list(each.values()))))
        lines.append(
            f"{group.name} {mean} off over the whole of {len(each)} motions; most in {worst}, "
            f"{in_words(group, each[worst])}"
        )
    off = true_starts(robot, fit, motions, groups, max(HORIZONS))
    for horizon in HORIZONS:
        ahead = off[:, : round(horizon / motions[0].period)]
        for g, group in enumerate(groups):
            if np.isfinite(ahead[..., g]).any():
                lines.append(
                    f"{group.name} {_mean(group, ahead[..., g])} off over {horizon:g} s from "
                    f"{len(off)} true starts"
                )
    return lines


def _by_group(groups, off):
    known = ((each, distances(off[each.name])) for each in groups if each.name in off)
    return [(each, values) for each, values in known if np.isfinite(values).any()]


def _mean(group: Group, off: np.ndarray) -> str:
    return in_words(group, float(np.nanmean(off)))


def _misfits(
    robot: Robot, motions: Sequence[Motion], seen: Sequence[np.ndarray], groups: Sequence[Group]
) -> tuple[Misfit, ...]:
    """Of the rows in which the rod is not lost.

    Raises:
        UserError: it is lost in all of them.
    """
    measured = {
        each.name: np.vstack([
            m.outputs.get(each.name, np.full((len(m), 3), np.nan)) for m in motions
        ])
        for each in groups
    }  # fmt: skip
    predicted = np.concatenate(seen)
    known = np.isfinite(predicted).all(axis=(1, 2))
    if not known.any():
        raise UserError("the robot does not fit: its rod is lost in all trials")
    inputs = np.vstack([each.inputs for each in motions])
    kept = Recording(inputs, measured, motions[0].period).rows(known)
    values = {each.name: predicted[known, g] for g, each in enumerate(groups)}
    return misfits("motion", robot, kept, values)


def _clear(motions: Sequence[Motion], groups: Sequence[Group]) -> Recording | None:
    """A stretch in which all coordinates of all groups were measured, to look for mistakes in."""
    for motion in motions:
        if not all(each.name in motion.outputs for each in groups):
            continue
        known = [np.isfinite(motion.outputs[each.name]).all(axis=1) for each in groups]
        found = runs(np.all(known, axis=0))
        longest = max(found, key=lambda rows: rows.stop - rows.start, default=slice(0, 0))
        begin, run_in = longest.start, round(RUN_IN / motion.period)
        end = min(longest.stop, begin + round(LONGEST_MOTION / motion.period))
        if (end - begin) * motion.period > RUN_IN + SHORTEST_MOTION:
            outputs = {each.name: motion.outputs[each.name] for each in groups}
            whole = Recording(motion.inputs, outputs, motion.period)
            return whole.rows(slice(begin, end), run_in)
    return None


def _bands_table(
    motions: Sequence[Motion], seen: Sequence[np.ndarray], groups: Sequence[Group], which: str
) -> Table:
    """Root mean square of errors by frequency, that of the signal behind them."""
    edges = [f"to {each:g} Hz" for each in BANDS]
    table = Table("position", *edges, "above", title=f"error and (signal), {which} [mm]",
                  box=box.SIMPLE_HEAD)  # fmt: skip
    for g, group in enumerate(groups):
        rows = []
        for motion, predicted in zip(motions, seen, strict=True):
            if group.name in motion.outputs and np.isfinite(predicted[:, g]).all():
                signal = motion.outputs[group.name]
                off = by_band(predicted[:, g] - signal, motion.period)
                moved = by_band(signal, motion.period, centred=True)
                rows.append((off, moved))
        if rows:
            off, moved = 1e3 * np.sqrt(np.mean(np.square(rows), axis=0))
            cells = [f"{a:.2g} ({b:.2g})" for a, b in zip(off, moved, strict=True)]
            table.add_row(group.name, *cells)
    return table


def with_chain(actuation: Actuation) -> Robot:
    """The robot that was found, with its hysteresis and creep as a `pressure_chain`."""
    chain = chain_of(actuation)
    robot = actuation.recorded.robot
    return robot if chain is None else robot.replace(pressure_chain=chain)


def _rubbing(actuation: Actuation) -> bool:
    """Whether stops stand for the friction of tendons."""
    return any(actuation.weights) and chain_of(actuation) is None


def in_motion(actuation: Actuation) -> Mapping[str, object]:
    """How a robot was recorded, for `recorded.yaml`."""
    content: dict[str, object] = {
        **as_content(actuation.recorded),
        "scale": actuation.recorded.scale,
        "delay": actuation.delay,
    }
    if actuation.curves:
        content["curves"] = list(actuation.curves)
    if actuation.rate is not None:
        content |= {"lag_rate": actuation.rate, "lag_damping": actuation.damping}
    if actuation.venting:
        content["venting"] = actuation.venting
    if _rubbing(actuation):
        stops = {"radii": actuation.radii, "weights": actuation.weights}
        content |= {f"hysteresis_{name}": list(values) for name, values in stops.items()}
    return content


def _draw(motion: Motion, predicted: np.ndarray, groups: Sequence[Group], directory: Path) -> None:
    """Measured and predicted coordinates over time."""
    rows = min(len(motion), round(_DRAWN / motion.period))
    times = motion.period * np.arange(rows)
    shown = [
        (g, k) for g, each in enumerate(groups) for k in range(3)
        if each.name in motion.outputs and np.isfinite(motion.outputs[each.name][:rows, k]).any()
    ]  # fmt: skip
    labels = [f"{groups[g].name}, {'xyz'[k]} [mm]" for g, k in shown]
    with panels(directory / "motion.png", labels, x="time [s]", title=motion.name) as plots:
        for axes, (g, k) in zip(plots, shown, strict=True):
            measured = motion.outputs[groups[g].name][:rows, k]
            axes.plot(times, 1e3 * measured, "k", lw=1.0, label="measured")
            axes.plot(times, 1e3 * predicted[:rows, g, k], "C1--", lw=1.0, label="predicted")
