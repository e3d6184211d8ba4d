"""The tracking experiments: what is computed from a trace, and a short run of each kind."""

import dataclasses
import json

import numpy as np
import pytest
from rich.console import Console

from softcr_control.koopman import Lift
from softcr_control.koopman_lqr import Weights
from softcr_control.reference_settings import ReferenceSettings
from softcr_models import load_robot
from softcr_models.errors import UserError
from softcr_models.rod.description import rod_inputs
from softcr_runtime.bags.reading import Bag
from softcr_tools.experiments.command import EXPERIMENTS as LISTED
from softcr_tools.experiments.command import main
from softcr_tools.experiments.tracking import calibration, command, koopman, robustness
from softcr_tools.experiments.tracking.cases import CONTROLLERS, EXPERIMENTS, Difference
from softcr_tools.experiments.tracking.compliance import TRUE_COMPLIANCE, Search
from softcr_tools.experiments.tracking.koopman import (
    Recipe,
    cache_directory,
    cached,
    random_steps,
    work,
)
from softcr_tools.experiments.tracking.loop import (
    Trace,
    controller_settings,
    plant_of,
    run_loop,
    sampled_reference,
)
from softcr_tools.experiments.tracking.table import adaptation_rows, rows_of

ROBOT = load_robot("licher2025")
QUICK = Recipe(
    seconds=60.0,
    parts=3,
    highest=(60e3,),
    lifts=(Lift(4),),
    ridges=(1e-6,),
    weights=(Weights(0.1, 0.0, 20),),
)
SHORT = ((ReferenceSettings(kind="setpoint", inputs=(20e3, 50e3, 35e3)), 2.2),)


def trace(error_mm, tick_ms=1.0):
    """A run of 4 s whose tip lies this far beside the reference from 2 s on, three times before."""
    times = np.arange(0.0, 4.0, 0.1)
    error = 1e-3 * error_mm * np.where(times >= 2.0 - 1e-9, 1.0, 3.0)
    tips = np.stack([error, 0 * error, 0 * error], axis=1)
    zeros = np.zeros((len(times), 3))
    commands = np.tile(np.arange(len(times))[:, None] % 2 * 1e3, (1, 3))
    compliance = np.full(len(times), 46.0)
    ticks = np.full(len(times), 1e-3 * tick_ms)
    return Trace(times, tips, zeros, tips, compliance, 50.0, commands, ticks)


def test_rows_are_means_over_seeds_of_what_is_settled():
    [case] = EXPERIMENTS["4a"]
    traces = {(case.name, name): [trace(0.5), trace(0.7)] for name in CONTROLLERS}
    rows = {(r.method, r.quantity): r for r in rows_of([case], traces)}
    nempc, gradient, rival = (rows[name, "tip error"] for name in CONTROLLERS)
    assert (nempc.mean, nempc.sd) == (pytest.approx(0.6), pytest.approx(0.1))
    assert (nempc.paper, nempc.limit, nempc.mark) == (2.68, 1.5, "goal")
    assert (gradient.limit, gradient.mark) == (0.7, "pass")
    assert (rival.method, rival.paper, rival.limit, rival.mark) == ("koopman", None, None, "")
    assert rows["nempc", "largest, from 2 s on"].mean == pytest.approx(0.6)
    assert rows["nempc", "filter's tip error"].mean == pytest.approx(0.0, abs=1e-12)
    assert rows["nempc", "compliance error, at the end"].mean == pytest.approx(8.0)
    assert rows["nempc", "command travel"].mean == pytest.approx(3 * 10.0)
    assert rows["nempc", "tick, median"].mean == pytest.approx(1.0)
    assert rows["rod_mpc", "tick, 99 %"].mark == "goal"
    assert (rows["rod_mpc", "tick, median"].limit, rows["nempc", "tick, median"].limit) == (1, None)


def test_adaptation_is_judged_by_the_ratio():
    traces = {
        (name, controller): [trace(error)]
        for controller in CONTROLLERS
        for name, error in (("adaptive", 0.2), ("fixed compliance", 3.0))
    }
    # the rival has no compliance to adapt
    assert [row.method for row in adaptation_rows(traces)] == ["nempc", "rod_mpc"]
    assert [row.mark for row in adaptation_rows(traces)] == ["goal", "goal"]
    assert adaptation_rows(traces)[0].mean == pytest.approx(0.2 / 3.0)


def test_found_is_when_the_estimate_stays_in_the_band():
    times = np.arange(5.0)
    estimates = TRUE_COMPLIANCE * np.array([1.1, 1.0, 1.03, 1.01, 1.0])
    assert Search(times, estimates, times).time_to_band == 3.0
    assert Search(times, estimates[::-1].copy(), times).time_to_band == np.inf
    assert Search(times, np.full(5, TRUE_COMPLIANCE), times).time_to_band == 0.0


def test_the_plant_differs_where_the_case_says_so():
    plant = plant_of(ROBOT, Difference(lever_factor=1.05, lag_pole=9.0), 1)
    assert plant.rod.intervals == 20
    lag, known = plant.rod.robot.pressure_lag, ROBOT.pressure_lag
    assert lag.pole == 9.0
    assert lag.gain / lag.pole == pytest.approx(known.gain / known.pole)
    assert plant.rod.robot.chambers[0].lever_arm == pytest.approx(
        1.05 * ROBOT.chambers[0].lever_arm
    )
    assert plant.rod.robot.chambers[1:] == ROBOT.chambers[1:]
    assert plant.rod.robot.bending_compliance == pytest.approx(0.95 * ROBOT.bending_compliance)
    assert plant.rod.robot.tip_mass == pytest.approx(1.1 * ROBOT.tip_mass)
    softer = plant_of(ROBOT, EXPERIMENTS["6"][0].difference, 1).rod.robot.bending_compliance
    assert softer == pytest.approx(45.0)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_references_are_finite_and_made_from_pressures_inside_the_box(name):
    for case in EXPERIMENTS[name]:
        settings = case.reference.model_copy(update={"duration": 1.0})
        source = sampled_reference(ROBOT, settings)
        assert np.isfinite(source.tip_positions).all()
        pressures = settings.input_samples(case.period, rod_inputs(ROBOT))
        assert pressures.min() >= 0.0
        assert pressures.max() <= ROBOT.pressure_limits.maximum


@pytest.mark.parametrize("name", ["3", "5b", "6"])
def test_a_short_run_writes_table_and_figures(name, tmp_path, monkeypatch):
    console = Console(width=118, record=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(koopman, "VALIDATION", SHORT)
    rows = command.run(name, ROBOT, 1, tmp_path, console, 2.2, QUICK)
    latest = tmp_path / "latest"
    table = json.loads((latest / "table.json").read_text())
    assert [row["quantity"] for row in table["rows"]] == [row.quantity for row in rows]
    assert table["plant_intervals"] > table["model_intervals"]
    assert all(np.isfinite(row.mean) for row in rows if row.quantity == "tip error")
    assert list(latest.glob("*.png"))
    bags = list((latest / "bags").iterdir())
    assert len(bags) == (1 if name == "3" else len(CONTROLLERS) * len(EXPERIMENTS[name]))
    assert all(Bag(bag).topics["/estimate/rod"].count == 154 for bag in bags)
    assert f"softcr experiment {name}" in console.export_text()


def test_the_map_of_robustness_varies_one_thing_at_a_time(tmp_path):
    axes = robustness.axes()
    runs = robustness.cases_of(axes)
    assert len({case.name for case in runs}) == len(runs)
    assert len({dataclasses.replace(case, name="") for case in runs}) == len(runs)
    for axis in axes[:-1]:
        assert axis.cases[axis.usual].difference == robustness.USUAL
        for cases, base in ((axis.cases, robustness.USUAL), (axis.alone, robustness.EXACT)):
            for case in cases.values():
                values = vars(case.difference).items()
                changed = [k for k, v in values if v != getattr(base, k)]
                assert len(changed) <= 1, case.name
        assert bool(axis.alone) == bool(axis.calibration)
        assert not axis.alone or axis.alone[axis.exact].difference == robustness.EXACT
    errors = {
        (case.name, controller): [0.1 + number]
        for number, case in enumerate(runs)
        for controller in case.controllers
    }
    robustness.draw(tmp_path / "map.png", axes, errors)
    assert (tmp_path / "map.png").stat().st_size > 10_000
    rows = robustness.rows_of(axes, errors)
    assert {row.method for row in rows} == set(robustness.METHODS)
    assert {row.mean for row in rows} == {value for [value] in errors.values()}


def test_a_map_that_was_stopped_goes_on(tmp_path, monkeypatch):
    done = []

    def run_or_stop(robot, case, source, controller, seed, *others, **named):
        if len(done) == 6:
            raise KeyboardInterrupt
        done.append((case.name, controller, seed))
        return trace(0.1 * len(done))

    lag = [axis for axis in robustness.axes() if axis.name == "lag pole"]
    monkeypatch.setattr(robustness, "axes", lambda: lag)
    monkeypatch.setattr(command, "cached", lambda *arguments: None)
    monkeypatch.setattr(command, "run_loop", run_or_stop)
    console = Console(width=118, record=True)

    def run():
        return command.run("robustness", ROBOT, 2, tmp_path, console)

    with pytest.raises(KeyboardInterrupt):
        run()
    before, done[:] = done[:], []
    monkeypatch.setattr(command, "run_loop", lambda *a, **k: done.append(a) or trace(1.0))
    rows = run()
    cases = robustness.cases_of(lag)
    assert len(before) + len(done) == 2 * sum(len(case.controllers) for case in cases)
    assert (rows[0].mean, rows[0].seeds) == (pytest.approx(0.55), 2)  # before and after the stop
    assert not (tmp_path / "unfinished.jsonl").exists()
    (tmp_path / "unfinished.jsonl").write_text("[1]\n")
    with pytest.raises(UserError, match=r"unfinished.jsonl: line 1 is '\[1\]', must be \[key"):
        run()


def test_calibration_is_ranked_by_what_an_error_costs():
    """Tip mass costs 3 mm where nothing is estimated, damping 2 mm, whatever the filter leaves."""
    costs = {"tip mass": ("50 %", 3.0), "damping": ("30 %", 2.0)}
    described = {axis["name"]: axis for axis in robustness.described()}
    axes = [described[name] for name in ("damping", "tip mass", "latency")]
    rows = []
    for name, (value, cost) in costs.items():
        usual, exact = described[name]["usual"], described[name]["exact"]
        for method in robustness.METHODS:
            without = exact if method == robustness.UNAIDED else usual
            worse = cost if method == robustness.UNAIDED else 0.25 / cost
            for quantity, mean in ((without, 0.5), (value, 0.5 + worse)):
                rows.append(
                    {"case": name, "method": method, "quantity": quantity, "mean": mean, "sd": 0.01}
                )
    for method in CONTROLLERS:
        for quantity, mean in (("0 ticks", 0.125), ("3 ticks", 1.25)):
            about = {"case": "latency", "method": method, "quantity": quantity}
            rows.append({**about, "mean": mean, "sd": 0.01})
    table = {"axes": axes, "rows": rows, "seeds": 3, "machine": {"time": "2026-11-21T10:00:00"}}
    lines = calibration.page(table).splitlines()
    first, second = (line for line in lines if line.startswith(("| 1 |", "| 2 |")))
    assert "| tip mass |" in first
    assert "| 3.00 | 0.08 | 0.08 | 0.08 | scales" in first
    assert "| damping |" in second
    assert "| 2.00 | 0.12 |" in second
    assert "| latency | 0 ticks ... 3 ticks, usually 0 ticks | 1.12 | 1.12 | 1.12 |" in lines
    assert "| latency | 3 ticks |  | 1.25 (0.01) | 1.25 (0.01) | 1.25 (0.01) |" in lines


def test_rates_and_finer_models_reach_filter_and_controller():
    fast = EXPERIMENTS["rate"][1]
    settings = controller_settings("rod_mpc", 0, fast)
    assert (settings.rate_hz, settings.horizon) == (500.0, 40)
    finer = next(c for c in robustness.cases_of(robustness.axes()) if c.model_intervals == 10)
    assert controller_settings("nempc", 0, finer).intervals == 10
    assert controller_settings("nempc", 0, finer).horizon == 8
    fast = dataclasses.replace(fast, duration=0.2)
    source = sampled_reference(ROBOT, fast.reference, fast.period)
    run = run_loop(ROBOT, fast, source, "rod_mpc", 0, lambda: 0.0)
    assert len(run.times) == 100
    assert np.diff(run.times) == pytest.approx(0.002)
    # the reference fades in from the vented rod: so far the tip has hardly left it
    assert run.error.max() < 1e-3


def test_latency_delays_what_is_sent():
    late = dataclasses.replace(
        EXPERIMENTS["4a"][0], duration=0.3, difference=Difference(latency=2, tip_noise=0.0)
    )
    source = sampled_reference(ROBOT, late.reference)
    moved = {}
    for difference in (Difference(tip_noise=0.0), late.difference):
        case = dataclasses.replace(late, difference=difference)
        tips = run_loop(ROBOT, case, source, "rod_mpc", 0, lambda: 0.0).tips
        moved[difference.latency] = int(np.argmax(np.linalg.norm(tips - tips[0], axis=1) > 1e-9))
    assert moved[2] == moved[0] + 2


def test_published_figures_stand_beside_the_controller_that_made_them():
    [case] = EXPERIMENTS["5a"]
    assert [case.published(name) for name in CONTROLLERS] == [2.57, 2.57, 5.68]
    assert [case.bound(name) for name in CONTROLLERS] == [(1.2, 0.5), (0.5, 0.2), (None, None)]
    rival = [case.published("koopman") for case in EXPERIMENTS["5c"]]
    assert rival == [6.8, 8.0, 10.4, 12.3, 13.9, 18.1]


def test_the_rival_learns_from_the_plant_of_the_case():
    """A step moves the tip two samples later, as in the loop; a biased sensor shifts the tips."""
    recipe = dataclasses.replace(QUICK, seconds=3.0, parts=1, settled=1.0)
    quiet = Difference(tip_noise=0.0)
    [trial] = random_steps(ROBOT, quiet, recipe, 60e3)
    assert trial.outputs.shape == trial.inputs.shape == (210, 3)
    assert 0.0 <= trial.inputs.min() < trial.inputs.max() <= 60e3
    # the vented rod stands until the first command has acted: sample 1 is the last at rest
    moved = np.linalg.norm(trial.outputs - trial.outputs[0], axis=1)
    assert moved[1] < 1e-9 < 1e-6 < moved[2]
    steps = np.flatnonzero(np.diff(trial.inputs, axis=0).any(axis=1))
    assert (np.diff(steps) >= 70 - 1).all()
    [biased] = random_steps(
        ROBOT, Difference(tip_noise=0.0, pressure_bias=(2e3, 0, 0)), recipe, 60e3
    )
    assert np.abs(biased.outputs - trial.outputs).max() > 1e-3


def test_what_the_rival_learned_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(koopman, "VALIDATION", SHORT)
    steps = []
    first = cached(ROBOT, Difference(), QUICK, steps.append)
    assert len(steps) == work(QUICK) == 2
    again = cached(ROBOT, Difference(), QUICK, steps.append)
    assert len(steps) == 2
    np.testing.assert_array_equal(again.model.transition, first.model.transition)
    [description] = cache_directory().glob("*.json")
    description.write_text("{")
    cached(ROBOT, Difference(), QUICK, steps.append)
    assert len(steps) == 4


def test_every_experiment_is_listed_and_a_wrong_one_is_refused(capsys, tmp_path):
    assert set(command.NAMES) <= LISTED.keys()
    with pytest.raises(SystemExit) as ending:
        main(["4a", "--seeds", "0"])
    assert ending.value.code == 2
    assert "'0': must be a whole number from 1" in capsys.readouterr().err
    with pytest.raises(UserError, match="nemo"):
        main(["4a", "--robot", "nemo", "--results", str(tmp_path)])
