"""What can be tuned: its space, its cost, and how it is judged on what the search never saw."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from softcr_control.controller_file import load_nempc, load_rod_mpc
from softcr_estimation import EstimatorSettings
from softcr_hardware.plant import Mismatch
from softcr_models import Robot
from softcr_tools.experiments.results import Row
from softcr_tools.experiments.tracking.cases import EXPERIMENTS, SETTLED, Case, Difference
from softcr_tools.experiments.tracking.compliance import TRUE_COMPLIANCE
from softcr_tools.experiments.tracking.loop import PERIOD, run_loop
from softcr_tools.experiments.tuning.controller_cost import (
    ControllerCost,
    ControllerFile,
    Followed,
    Task,
    changed,
    follow,
    follows_states,
    tasks_of,
    tip_error_mm,
    tuning_tasks,
    values_of,
)
from softcr_tools.experiments.tuning.filter_cost import filter_cost
from softcr_tools.experiments.tuning.filter_runs import Motion, Recording, filtered, record
from softcr_tools.experiments.tuning.space import (
    FILTER,
    NEMPC,
    ROD_MPC,
    WEIGHTS,
    Parameter,
    Values,
    published_values,
)
from softcr_tools.experiments.tuning.study import Cost

POPULATION = 1000  # of an NEMPC that is judged
RATIO = "tuned / shipped"
# The plants' parameters stand still, so the search lets the filter forget how to follow them; and
# sigma points closer than a deviation (alpha < 1) need downdates, which fail from a cold start. A
# filter that takes over neither is judged, too.
_NOISES = (
    "velocity_noise", "angular_velocity_noise", "force_noise", "force_z_noise", "torque_noise",
    "tip_position_noise",
)  # fmt: skip
JUDGED = ("tip error [mm]", "state error [1e-3]", "compliance error [%]")  # of a filter
SEARCH_SEED, FINAL_SEEDS, FIRST_HELD_OUT = 0, (10,), 100

Errors = Mapping[tuple[str, str], Sequence[float]]
"""(case, quantity) -> a figure per seed; quantities as "name [unit]"."""


@dataclass(frozen=True)
class Effort:
    """How long the runs are.

    Attributes:
        motions: factor on the filter's recordings.
        search, final: motion and setpoint of a controller [s].
        population: of an NEMPC during the search.
    """

    motions: float = 1.0
    search: tuple[float, float] = (3.0, 2.0)
    final: tuple[float, float] = (4.0, 2.5)
    population: int = 256


@dataclass(frozen=True, eq=False)
class Subject:
    """Something to tune.

    Attributes:
        space: its parameters.
        start: their values to begin with.
        swarm: whether it is searched by a particle swarm.
        described: what the search judges on.
        cost: of the search.
        final_cost: of those that came out best: other seeds, longer, and all candidates.
        shipped: values of what the tuned is compared with.
        contenders: (tuned values) -> name -> what is judged: the tuned, the shipped and, where it
            can be run, what the paper printed.
        judge: (a contender, seeds, progress) -> figures on what the search never saw; NaN where a
            run did not get to its end.
        runs: of one `judge` per seed.
        write: the file of values.
    """

    space: tuple[Parameter, ...]
    start: dict[str, Any]
    swarm: bool
    described: dict[str, Any]
    cost: Cost
    final_cost: Cost
    shipped: dict[str, Any]
    contenders: Callable[[Values], dict[str, Any]]
    judge: Callable[[Any, Sequence[int], Callable[[], None]], Errors]
    runs: int
    write: Callable[[Values, Path], None]


# Short, and with everything that the filter has to find out.
SEARCH_MOTIONS = (
    Motion("to 1.2 Hz, lever -3 %", (0.2, 0.7, 1.2), 4.0, Difference(lever_factor=0.97)),
)
FINAL_MOTIONS = (
    *SEARCH_MOTIONS,
    Motion("to 1.2 Hz", (0.3, 0.7, 1.2), 4.0),
    Motion("to 0.35 Hz", (0.15, 0.35), 4.0),
)
HELD_OUT_MOTIONS = (
    Motion("circle of Experiment 3, compliance 45", (0.5,), 5.0,
           Difference(Mismatch(TRUE_COMPLIANCE / 49.9, tip_mass_factor=1.1))),
    Motion("motion of 4a", (0.5, 1.0, 1.5), 4.0),
    Motion("4a, lever of chamber 1 +5 %", (0.5, 1.0, 1.5), 4.0, Difference(lever_factor=1.05)),
    Motion("4a, compliance +15, mass +50, damping -30 %", (0.5, 1.0, 1.5), 4.0,
           Difference(Mismatch(1.15, 1.5, 0.7))),
)  # fmt: skip
HELD_OUT_SECONDS = {
    "trajectory to 1.5 Hz": 4.0,
    "setpoint (45, 25, 15) kPa": 2.5,
    "circle 1 Hz": 3.0,
}


def filter_subject(robot: Robot, effort: Effort) -> Subject:
    """The filter's noises and sigma points, by swarm and (38)."""
    motions = [_longer(motion, effort.motions) for motion in SEARCH_MOTIONS]
    finals = [_longer(motion, effort.motions) for motion in FINAL_MOTIONS]
    loops = held_out_tasks(robot)[:2]
    defaults = EstimatorSettings()
    start = {
        p.name: defaults.state_noise if (value := getattr(defaults, p.name)) is None else value
        for p in FILTER
    }

    recordings: dict[tuple[Motion, int], Recording] = {}

    def recorded(motion: Motion, seed: int) -> Recording:
        if (motion, seed) not in recordings:
            recordings[motion, seed] = record(robot, motion, seed)
        return recordings[motion, seed]

    def judge(
        settings: EstimatorSettings, seeds: Sequence[int], progress: Callable[[], None]
    ) -> Errors:
        errors: dict[tuple[str, str], list[float]] = {}
        for seed in seeds:
            for motion in HELD_OUT_MOTIONS:
                for quantity, error in _judged(robot, recorded(motion, seed), settings).items():
                    errors.setdefault((motion.name, quantity), []).append(error)
                progress()
            for task in loops:
                error = _loop_error(robot, task, settings, seed)
                key = f"{task.case.name}, rod_mpc", "tip error [mm]"
                errors.setdefault(key, []).append(error)
                progress()
        return errors

    return Subject(
        space=FILTER,
        start=start,
        swarm=True,
        described={"motions": [m.name for m in motions], "seconds": [m.duration for m in motions]},
        cost=filter_cost(robot, [record(robot, m, SEARCH_SEED) for m in motions], start),
        final_cost=filter_cost(
            robot, [record(robot, m, seed) for m in finals for seed in FINAL_SEEDS], start
        ),
        shipped=start,
        contenders=lambda values: {
            "Table VI": EstimatorSettings(**published_values(FILTER)),
            "shipped": defaults,
            "tuned noises only": EstimatorSettings(**{name: values[name] for name in _NOISES}),
            "tuned": EstimatorSettings(**values),
        },
        judge=judge,
        runs=len(HELD_OUT_MOTIONS) + len(loops),
        write=lambda values, path: _write_yaml(dict(values), path),
    )


def controller_subject(
    robot: Robot, kind: str, controller: str, against: str, effort: Effort
) -> Subject:
    """An NEMPC's numbers ("nempc"), its state weights ("weights"), or a gradient MPC's ("rod_mpc").

    Args:
        controller: name or file to begin with.
        against: name or file that the tuned one is compared with.

    Raises:
        UserError: a file that cannot be used.
    """
    load: Callable[[str], ControllerFile] = load_rod_mpc if kind == "rod_mpc" else load_nempc
    space = {"nempc": NEMPC, "weights": WEIGHTS, "rod_mpc": ROD_MPC}[kind]
    file, shipped = load(controller), load(against)
    names = [parameter.name for parameter in space]
    held_out = held_out_tasks(robot)

    def contenders(values: Values) -> dict[str, ControllerFile]:
        ours = {"shipped": shipped, "tuned": changed(file, values)}
        if not follows_states(file):
            return ours
        return {"Table VII": changed(file, published_values((*NEMPC, *WEIGHTS))), **ours}

    def judge(
        candidate: ControllerFile, seeds: Sequence[int], progress: Callable[[], None]
    ) -> Errors:
        errors: dict[tuple[str, str], list[float]] = {}
        for seed, task in itertools.product(seeds, held_out):
            try:
                run = follow(robot, task, candidate, seed, POPULATION)
            except ArithmeticError:  # the plant was driven mad
                run = Followed(np.nan, np.nan, np.nan)
            for quantity, error in (
                ("tip error [mm]", run.tip),
                ("state error [1e-3]", 1e3 * run.state),
                ("command travel [kPa/s]", run.travel),
            ):
                errors.setdefault((task.case.name, quantity), []).append(error)
            progress()
        return errors

    cost = ControllerCost(
        robot, file, tuning_tasks(robot, effort.search), (SEARCH_SEED,), effort.population
    )
    return Subject(
        space=space,
        start=values_of(file, names),
        swarm=False,
        described={
            "begins with": file.model_dump(mode="json"),
            "seconds": list(effort.search),
            "population": effort.population,
        },
        cost=cost,
        final_cost=ControllerCost(
            robot, file, tuning_tasks(robot, effort.final), FINAL_SEEDS, POPULATION
        ),
        shipped=values_of(shipped, names),
        contenders=contenders,
        judge=judge,
        runs=len(held_out),
        write=lambda values, path: _write_yaml(changed(file, values).model_dump(mode="json"), path),
    )


def held_out_tasks(robot: Robot) -> list[Task]:
    """Experiments 4a, 4b and a circle of 5c, shortened."""
    cases = [case for cases in EXPERIMENTS.values() for case in cases]
    return tasks_of(
        robot,
        [
            dataclasses.replace(_named(cases, name), duration=seconds)
            for name, seconds in HELD_OUT_SECONDS.items()
        ],
    )


def rows_of(judged: Mapping[str, Errors], count: int) -> list[Row]:
    """A row per case, contender and quantity, and what "tuned" makes of "shipped"."""
    compared = {
        key: np.divide(errors, judged["shipped"][key]) for key, errors in judged["tuned"].items()
    }
    rows = []
    for case in dict.fromkeys(case for case, _ in compared):
        for contender, errors in {**judged, RATIO: compared}.items():
            for quantity in (quantity for name, quantity in compared if name == case):
                name, _, unit = quantity.removesuffix("]").partition(" [")
                values = np.asarray(errors[case, quantity])
                mean, sd = float(values.mean()), float(values.std())
                if contender != RATIO:
                    rows.append(Row(case, contender, name, None, mean, sd, unit, count))
                else:
                    limit = 1.0 if "error" in name else None
                    rows.append(Row(case, contender, name, None, mean, sd, "-", count, limit))
    return rows


def _judged(robot: Robot, recording: Recording, settings: EstimatorSettings) -> dict[str, float]:
    """What a filter makes of a motion, by the truth, after SETTLED."""
    try:
        run = filtered(robot, settings, recording)
    except (ArithmeticError, ValueError):  # the filter lost the numbers
        return dict.fromkeys(JUDGED, np.nan)
    settled = slice(min(round(SETTLED / PERIOD), len(run.tips) // 2), None)
    errors = 1e3 * run.tips, 1e3 * run.states, 100 * run.compliance
    means = (float(error[settled].mean()) for error in errors)
    return dict(zip(JUDGED, means, strict=True))


def _loop_error(robot: Robot, task: Task, settings: EstimatorSettings, seed: int) -> float:
    """Tip error [mm] of the shipped gradient MPC behind a filter."""
    try:
        trace = run_loop(
            robot, task.case, task.source, "rod_mpc", seed, lambda: 0.0, filter_settings=settings
        )
    except (ArithmeticError, ValueError):  # the filter lost the numbers, or drove the plant mad
        return np.nan
    return tip_error_mm(trace)


def _longer(motion: Motion, factor: float) -> Motion:
    return dataclasses.replace(motion, duration=factor * motion.duration)


def _named(cases: Sequence[Case], name: str) -> Case:
    return next(case for case in cases if case.name == name)


def _write_yaml(content: Mapping[str, Any], path: Path) -> None:
    path.write_text(yaml.safe_dump(dict(content), sort_keys=False), encoding="utf-8")
