"""The tracking studies: what is computed from a run, and a short run of each kind."""

import dataclasses
import multiprocessing

import matplotlib
import numpy as np
import pytest
from kit.studies import results_of

from softcr_control.controller import ControllerBlock
from softcr_control.reference.settings import ReferenceSettings
from softcr_models import load_robot
from softcr_models.rod.description import rod_inputs
from softcr_papers.licher2025.studies import adaptation, compliance
from softcr_runtime.bags.reading import Bag
from softcr_simulation.structural_plant import StructuralPlant
from softcr_studies.control.rate import CASES as RATES
from softcr_studies.frame.catalogue import load_study, study_files
from softcr_studies.frame.cell import Cell
from softcr_studies.koopman.lifted_model import Lift
from softcr_studies.koopman.lqr import Weights
from softcr_studies.loops import koopman_baseline, tracking_study
from softcr_studies.loops.koopman_baseline import Recipe, baseline, cache_directory, random_steps
from softcr_studies.loops.tracking_loop import (
    FAST,
    Case,
    controller_parameters,
    plant_of,
    reference_of,
    run_loop,
    with_errors,
)
from softcr_studies.loops.tracking_study import METHODS, PREDICTIVE, SHIPPED
from softcr_studies.robustness import model_errors

ROBOT = load_robot("licher2025")
QUICK = Recipe(
    seconds=40.0, parts=3, lifts=(Lift(4),), ridges=(1e-6,), weights=(Weights(0.1, 0.0, 20),)
)
SHORT = ((ReferenceSettings(kind="setpoint", inputs=(20e3, 50e3, 35e3)), 2.2),)
TRACKING = [name for name in study_files() if load_study(name).metrics == tracking_study.METRICS]


def result(error_mm, tick_ms=1.0):
    """A run of 4 s whose tip lies this far beside the reference from 2 s on, three times before."""
    times = np.arange(0.0, 4.0, 0.1)
    error = 1e-3 * error_mm * np.where(times >= 2.0 - 1e-9, 1.0, 3.0)
    tips = np.stack([error, 0 * error, 0 * error], axis=1)
    return {
        "times": times, "error": error, "tips": tips, "wanted": 0 * tips, "estimated": tips,
        "state_error": np.full(len(times), 0.02), "compliance": np.full(len(times), 46.0),
        "true_compliance": 50.0, "ticks": np.full(len(times), 1e-3 * tick_ms),
        "commands": np.tile(np.arange(len(times))[:, None] % 2 * 1e3, (1, 3)),
    }  # fmt: skip


def test_rows_are_means_over_seeds_whole_and_settled(tmp_path):
    study = load_study("licher2025/tracking-fast")
    results = results_of(study, tmp_path, lambda cell: result(0.5 + 0.2 * cell.seed), seeds=2)
    rows = {(r.method, r.quantity): r for r in study.rows(results)}
    assert list(dict.fromkeys(method for method, _ in rows)) == list(METHODS)
    settled = rows["nempc", "settled tip error"]
    assert (settled.mean, settled.sd) == (pytest.approx(0.6), pytest.approx(0.1))
    assert (settled.must, settled.mark, settled.published) == (1.5, "goal", {})
    whole = rows["nempc", "tip error"]
    assert whole.mean == pytest.approx(2 * 0.6)  # half of the time three times as far
    assert (whole.published, whole.must) == ({"simulation": 2.68}, None)
    gradient = rows["rod_mpc", "settled tip error"]
    assert (gradient.must, gradient.mark) == (0.7, "pass")
    learned = rows["koopman", "tip error"]
    assert (learned.published, learned.must, learned.mark) == ({}, None, "")
    assert rows["nempc", "state error"].mean == pytest.approx(0.02)
    assert rows["nempc", "largest, from 2 s on"].mean == pytest.approx(0.6)
    assert rows["nempc", "filter's tip error"].mean == pytest.approx(0.0, abs=1e-12)
    assert rows["nempc", "compliance error, at the end"].mean == pytest.approx(8.0)
    assert rows["nempc", "command travel"].mean == pytest.approx(3 * 10.0)
    assert rows["nempc", "tick, median"].mean == pytest.approx(1.0)
    assert rows["rod_mpc", "tick, 99 %"].mark == "goal"
    assert (rows["rod_mpc", "tick, median"].must, rows["nempc", "tick, median"].must) == (1, None)
    assert {q for (_, q), row in rows.items() if row.timing} == {"tick, median", "tick, 99 %"}


def test_adaptation_is_judged_by_the_ratio(tmp_path):
    errors, study = {"adaptive": 0.2, "fixed compliance": 3.0}, adaptation.STUDY
    results = results_of(study, tmp_path, lambda cell: result(errors[cell.case_name]), seeds=1)
    rows = {row.method: row for row in adaptation.ratios(results)}
    assert list(rows) == list(PREDICTIVE), "the baseline has no compliance to adapt"
    assert [rows[name].mark for name in ("nempc", "rod_mpc", "nempc_states")] == ["goal"] * 2 + [""]
    assert rows["nempc"].mean == pytest.approx(0.2 / 3.0)
    assert rows["nempc"].published == {"bench": pytest.approx(0.331, abs=1e-3)}


def test_found_is_when_the_estimate_stays_in_the_band():
    estimates = compliance.TRUE_COMPLIANCE * np.array([1.1, 1.0, 1.03, 1.01, 1.0])

    def time_to_band(values):
        return compliance.time_to_band({"times": np.arange(5.0), "compliance": values})

    assert time_to_band(estimates) == 3.0
    assert time_to_band(estimates[::-1]) == np.inf
    assert time_to_band(np.full(5, compliance.TRUE_COMPLIANCE)) == 0.0


def test_the_plant_differs_where_the_case_says_so():
    known = ROBOT.pressure_lag
    errors = with_errors(lever_factor=(1.05, 1.0, 1.0), lag_pole_factor=9.0 / known.pole)
    plant = plant_of(ROBOT, dataclasses.replace(FAST, errors=errors), 1).simulated
    assert plant.rod.intervals == 20
    lag = plant.rod.robot.pressure_lag
    assert lag.pole == pytest.approx(9.0)
    assert lag.gain / lag.pole == pytest.approx(known.gain / known.pole)
    made = plant.rod.robot
    assert made.chambers[0].lever_arm == pytest.approx(1.05 * ROBOT.chambers[0].lever_arm)
    assert made.chambers[1:] == ROBOT.chambers[1:]
    assert made.bending_compliance == pytest.approx(0.95 * ROBOT.bending_compliance)
    assert made.tip_mass == pytest.approx(1.1 * ROBOT.tip_mass)
    softer = plant_of(ROBOT, adaptation.ADAPTIVE, 1).simulated.rod.robot.bending_compliance
    assert softer == pytest.approx(45.0)
    beam = plant_of(ROBOT, dataclasses.replace(FAST, errors=with_errors(hose_pole=60.0)), 1)
    assert isinstance(beam.simulated, StructuralPlant)


@pytest.mark.parametrize("name", TRACKING)
def test_references_are_finite_and_made_from_pressures_inside_the_box(name):
    for case in load_study(name).cases:
        source = reference_of(ROBOT, dataclasses.replace(case, duration=0.5))
        assert np.isfinite(source.tip_positions).all()
        pressures = case.reference.input_samples(case.period, rod_inputs(ROBOT))
        assert 0.0 <= pressures.min() <= pressures.max() <= ROBOT.pressure_limits.maximum


def test_a_short_run_makes_rows_figures_and_a_bag(tmp_path, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(koopman_baseline, "VALIDATION", SHORT)
    monkeypatch.setattr(tracking_study, "baseline", lambda *plant: baseline(*plant, QUICK))
    few = {name: told | {"population": 32} if told["controller"] == "nempc" else told
           for name, told in PREDICTIVE.items()}  # fmt: skip
    monkeypatch.setattr(tracking_study, "PREDICTIVE", few)
    study = load_study("licher2025/setpoint-edge")

    def run(cell):
        bag = tmp_path / "bags" / cell.method if cell.case == study.cases[0] else None
        short = dataclasses.replace(cell.case, duration=2.2)
        return study.run(dataclasses.replace(cell, case=short, bag=bag))

    results = results_of(study, tmp_path / "run", run, seeds=1)
    rows = study.rows(results)
    errors = [row.mean for row in rows if "error" in row.quantity]
    assert len(errors) >= 5 * len(METHODS)
    assert np.isfinite(errors).all()
    assert {kind for row in rows for kind in row.published} == {"bench"}
    study.draw(results, tmp_path)
    assert len(list(tmp_path.glob("*.png"))) == len(study.cases)
    bags = list((tmp_path / "bags").iterdir())
    assert len(bags) == len(METHODS)
    assert all(Bag(bag).topics["/estimate/rod"].count == 154 for bag in bags)


def test_a_fixed_compliance_stays_what_the_file_says():
    case = dataclasses.replace(adaptation.FIXED, duration=0.2)
    run = run_loop(ROBOT, case, reference_of(ROBOT, case), "rod_mpc", (0, 0))
    np.testing.assert_array_equal(run["compliance"], ROBOT.bending_compliance)
    assert run["true_compliance"] == pytest.approx(45.0)


def test_a_short_search_for_the_compliance_makes_rows_and_a_bag(tmp_path):
    bag = tmp_path / "filter"
    cell = Cell(compliance.CASE, compliance.METHOD, 0, compliance.STUDY.settings(), bag)
    found = compliance.search(cell, 2.2)
    assert np.isfinite(compliance.error_percent(found))
    assert found["compliance"][0] == pytest.approx(ROBOT.bending_compliance)
    assert abs(found["compliance"][-1] - 45.0) < abs(found["compliance"][0] - 45.0)
    assert Bag(bag).topics["/estimate/rod"].count == len(found["times"]) == 154


def test_methods_meet_the_same_noise():
    case = dataclasses.replace(FAST, duration=0.1, errors=with_errors(tip_noise=1e-3))
    seen = {}
    for method in ("nempc", "rod_mpc"):
        told = []
        run_loop(
            ROBOT, case, reference_of(ROBOT, case), method, (3, 4),
            observe=lambda _, out, told=told: told.append(out), parameters={},
        )  # fmt: skip
        seen[method] = next(o.value.position for o in told if o.topic == "mocap/tip/pose")
    np.testing.assert_array_equal(*seen.values())


def plant_of_case(case):
    return {**case.errors.model_dump(), "intervals": case.plant_intervals, "late": case.latency}


def test_the_map_of_model_errors_varies_one_thing_at_a_time(tmp_path):
    axes, runs = model_errors.AXES, model_errors.cases()
    assert len({case.name for case in runs}) == len(runs)
    assert len({dataclasses.replace(case, name="") for case in runs}) == len(runs)
    for axis in axes[:-1]:
        assert plant_of_case(axis.cases[axis.usual]) == plant_of_case(FAST)
        exact = dataclasses.replace(FAST, errors=model_errors.EXACT)
        for cases, base in ((axis.cases, FAST), (axis.alone, exact)):
            for case in cases.values():
                others = plant_of_case(base)
                changed = [k for k, v in plant_of_case(case).items() if v != others[k]]
                assert len(changed) <= 1, case.name
        assert bool(axis.alone) == bool(axis.calibration)
        assert not axis.alone or axis.alone[axis.exact].errors == model_errors.EXACT
    found = {}

    def run(cell):
        key = cell.case_name, cell.method
        return {model_errors.TIP: found.setdefault(key, 0.1 + len(found))}

    results = results_of(model_errors.STUDY, tmp_path, run, seeds=1)
    matplotlib.use("Agg")
    model_errors.STUDY.draw(results, tmp_path)
    assert (tmp_path / "model_errors.png").stat().st_size > 10_000
    assert "What to calibrate first" in (tmp_path / "calibration.md").read_text()
    rows = model_errors.STUDY.rows(results)
    assert {row.method for row in rows} == set(model_errors.METHODS)
    assert {row.mean for row in rows} == set(found.values())


def test_calibration_is_ranked_by_what_an_error_costs():
    """Tip mass costs 3 mm where nothing is estimated, damping 2 mm, whatever the filter leaves."""
    errors = {}
    for axis in model_errors.AXES:
        cost = {"tip mass": 3.0, "damping": 2.0}.get(axis.name, 1.0 if axis.calibration else 0.0)
        for value, case in axis.alone.items():
            worst = value == max(axis.alone)
            errors[case.name, model_errors.UNAIDED] = [0.5 + cost * worst]
        for method in SHIPPED:
            for value, case in axis.cases.items():
                worst = value == max(axis.cases) and value != axis.usual
                left = {"tip mass": 0.08, "damping": 0.12, "latency": 1.12}.get(axis.name, 0.0)
                errors.setdefault((case.name, method), [0.125 + left * worst])
    lines = model_errors.calibration(errors).splitlines()
    first, second = (line for line in lines if line.startswith(("| 1 |", "| 2 |")))
    assert "| tip mass | 0 % ... 50 %, usually 10 % | 3.00 | 0.08 | 0.08 | 0.08 | scales" in first
    assert "| damping |" in second
    assert "| 2.00 | 0.12 |" in second
    [latency] = (line for line in lines if "| latency |" in line)
    assert latency.startswith("|  | latency | 0 ticks ... 3 ticks, usually 0 ticks |  | 1.12 |")


def test_rates_and_finer_models_reach_filter_and_controller():
    def settings_of(name, case):
        told = controller_parameters(name, case) | {"rate_hz": case.rate_hz}
        return ControllerBlock.settings_of(told)

    fast = RATES[1]
    settings = settings_of("rod_mpc", fast)
    assert (settings.rate_hz, settings.horizon) == (500.0, 40)
    finer = next(case for case in model_errors.cases() if case.model_intervals == 10)
    assert settings_of("nempc", finer).intervals == 10
    assert settings_of("nempc", finer).horizon == 7
    twice = dataclasses.replace(FAST, rate_hz=140.0)
    assert settings_of("nempc", twice).horizon == 14
    assert controller_parameters("nempc", twice, "nempc_licher2025")["horizon"] == 16
    fast = dataclasses.replace(fast, duration=0.2)
    run = run_loop(ROBOT, fast, reference_of(ROBOT, fast), "rod_mpc", (0, 0))
    assert len(run["times"]) == 100
    assert np.diff(run["times"]) == pytest.approx(0.002)
    # the reference fades in from the vented rod: so far the tip has hardly left it
    assert run["error"].max() < 1e-3


@pytest.mark.parametrize(("plant", "model"), [(5, 10), (20, 5), (40, 10)])
def test_states_are_compared_at_nodes_that_plant_and_model_have(plant, model):
    case = dataclasses.replace(FAST, duration=0.2, plant_intervals=plant, model_intervals=model)
    run = run_loop(ROBOT, case, reference_of(ROBOT, case), "rod_mpc", (0, 0))
    assert len(run["state_error"]) == len(run["times"]) == 14
    assert (run["state_error"] < 0.1).all()


def test_latency_delays_what_is_sent():
    moved = {}
    for latency in (0, 2):
        quiet = with_errors(tip_noise=0.0)
        case = dataclasses.replace(FAST, duration=0.3, errors=quiet, latency=latency)
        tips = run_loop(ROBOT, case, reference_of(ROBOT, case), "rod_mpc", (0, 0))["tips"]
        moved[latency] = int(np.argmax(np.linalg.norm(tips - tips[0], axis=1) > 1e-9))
    assert moved[2] == moved[0] + 2


def test_published_figures_are_of_the_kind_and_beside_the_controller_that_the_paper_measured():
    kinds = dict.fromkeys(("tracking-fast", "setpoint"), "simulation")
    kinds |= dict.fromkeys(("tracking-slow", "setpoint-edge", "circles", "adaptation"), "bench")
    found = {}
    for name, kind in kinds.items():
        study = load_study(f"licher2025/{name}")
        assert {each.kind for each in study.published} == {kind}, name
        assert set(study.methods) == set(METHODS), name
        found[name] = [(each.method, each.value) for each in study.published]
    slow = dict.fromkeys(PREDICTIVE, 2.57) | {"koopman": 5.68}
    assert dict(found["tracking-slow"]) == slow
    rival = [value for method, value in found["circles"] if method == "koopman"]
    assert rival == [6.8, 8.0, 10.4, 12.3, 13.9, 18.1]


def test_the_baseline_learns_from_the_plant_of_the_case():
    """A step moves the tip two samples later, as in the loop; a biased sensor shifts the tips."""
    recipe = dataclasses.replace(QUICK, seconds=3.0, parts=1, settled=1.0)
    quiet = dataclasses.replace(FAST, errors=with_errors(tip_noise=0.0))
    [trial] = random_steps(ROBOT, quiet, recipe)
    assert trial.outputs.shape == trial.inputs.shape == (210, 3)
    assert 0.0 <= trial.inputs.min() < trial.inputs.max() <= 60e3
    # the vented rod stands until the first command has acted: sample 1 is the last at rest
    moved = np.linalg.norm(trial.outputs - trial.outputs[0], axis=1)
    assert moved[1] < 1e-9 < 1e-6 < moved[2]
    steps = np.flatnonzero(np.diff(trial.inputs, axis=0).any(axis=1))
    assert (np.diff(steps) >= 70 - 1).all()
    errors = with_errors(tip_noise=0.0, pressure_bias=(2e3, 0, 0))
    [biased] = random_steps(ROBOT, dataclasses.replace(FAST, errors=errors), recipe)
    assert np.abs(biased.outputs - trial.outputs).max() > 1e-3


def test_what_the_baseline_learned_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(koopman_baseline, "VALIDATION", SHORT)
    count, made = [], koopman_baseline.learned(ROBOT, FAST, QUICK)
    monkeypatch.setattr(koopman_baseline, "learned", lambda *asked: count.append(1) or made)
    first = baseline(ROBOT, FAST, QUICK)
    again = baseline(ROBOT, FAST, QUICK)
    assert len(count) == 1
    np.testing.assert_array_equal(again.model.transition, first.model.transition)
    [description] = cache_directory().glob("*.json")
    description.write_text("{")
    baseline(ROBOT, FAST, QUICK)
    assert len(count) == 2


def test_processes_that_ask_at_once_learn_once(tmp_path, monkeypatch):
    """The second waits for the first, and finds what that has learned."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    design = koopman_baseline.KoopmanDesign
    context = multiprocessing.get_context("fork")
    count, begun = context.Value("i", 0), context.Event()

    def learn(*asked):
        with count.get_lock():
            count.value += 1
        begun.set()
        return design

    monkeypatch.setattr(koopman_baseline, "learned", learn)
    monkeypatch.setattr(koopman_baseline, "load_design", lambda stem: stem.read_text())
    monkeypatch.setattr(
        koopman_baseline, "save_design",
        lambda stem, made: stem.with_suffix(".json").write_text("{}") and stem.write_text("made"),
    )  # fmt: skip
    asking = [context.Process(target=baseline, args=(ROBOT, FAST)) for _ in range(4)]
    for process in asking:
        process.start()
    for process in asking:
        process.join(30)
        assert process.exitcode == 0
    assert begun.is_set()
    assert count.value == 1


def test_a_case_has_the_teacher_that_it_names():
    changed = Case("", FAST.reference, latency=1, learned_on=FAST)
    assert changed.teacher == FAST
    assert dataclasses.replace(changed, learned_on=None).teacher.latency == 1
