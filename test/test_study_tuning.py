"""Tunings: spaces, the cost (38), a swarm in generations of cells, and small runs of studies."""

import json
import math
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.studies import run_of

from softcr_control.controller_file import named_settings
from softcr_estimation import ModelEstimatorSettings
from softcr_models import CosseratRod, load_robot
from softcr_models.rod.state import RodState
from softcr_studies.frame.catalogue import load_study
from softcr_studies.frame.particle_swarm import particle_swarm
from softcr_studies.frame.search import Tried, ranked
from softcr_studies.frame.table import read_table
from softcr_studies.loops.tracking_loop import with_errors
from softcr_studies.tuning import controllers, tuned
from softcr_studies.tuning import filter as filter_study
from softcr_studies.tuning.controllers import (
    SEARCH,
    changed,
    cost_of,
    follow,
    follows_states,
    loaded,
    source_of,
    values_of,
)
from softcr_studies.tuning.filter import TUNING, errors_of, filter_costs
from softcr_studies.tuning.filter_runs import Judgement, Motion, filtered, kinks_of, looped, record
from softcr_studies.tuning.parameters import (
    FILTER,
    NEMPC,
    ROD_MPC,
    WEIGHTS,
    filter_settings,
    published_values,
)

ROBOT = load_robot("licher2025")
PAIR = FILTER[:2]
START = {"state_noises.velocity": 0.01, "state_noises.angular_velocity": 0.01}


@pytest.fixture(scope="module")
def recording():
    return record(ROBOT, Motion("short", (1.0,), 0.8), 3)


def values_at(space, shares):
    return {
        each.name: each.range.value_at(share) for each, share in zip(space, shares, strict=True)
    }


@given(st.lists(st.floats(0.0, 1.0), min_size=len(FILTER), max_size=len(FILTER)))
def test_a_position_in_the_box_is_a_value_in_its_range_and_back(shares):
    values = values_at(FILTER, shares)
    for parameter, share in zip(FILTER, shares, strict=True):
        assert parameter.range.low <= values[parameter.name] <= parameter.range.high
        assert parameter.range.share_of(values[parameter.name]) == pytest.approx(share, abs=1e-9)
    filter_settings(values)  # accepted


def test_published_values_stand_in_the_table_as_they_were_printed():
    for parameter in (*FILTER, *NEMPC, *WEIGHTS):
        for printed in parameter.published:
            assert parameter.printed(parameter.setting(printed)) == pytest.approx(printed)
    # R = 2.59e-8 m^2; q_velo = 8.92e-6 a tick of 1/70 s
    noises = published_values(FILTER)
    assert noises["position_noise"] == pytest.approx(1.609e-4, rel=1e-3)
    assert noises["state_noises.velocity"] == pytest.approx(math.sqrt(8.92e-6 * 70), rel=1e-6)
    file = changed(loaded("nempc_licher2025", "nempc"), published_values((*NEMPC, *WEIGHTS)))
    chosen = named_settings("nempc", file)
    assert (chosen.parents, chosen.segments) == (0.3897, 1)
    assert (chosen.costs.state["torque"], chosen.costs.input_rate) == (0.186, 2.39)


def test_kinks_are_what_is_left_when_the_strain_is_not_straight():
    view = RodState(np.zeros((2, 72)))
    view.wrenches[0] = np.arange(6)[:, None]  # along a straight line
    view.wrenches[1, 3:, 0] = 3.0  # one axis jumps by 3 in one of 5 differences
    straight, kinked = kinks_of(view.array)
    assert straight == 0.0
    # each window of three differences holds the jump: deviation of (3, 0, 0); six axes
    assert kinked == pytest.approx(math.sqrt(2.0) / 6)


def test_filters_are_judged_by_the_truth(recording):
    usual = filtered(ROBOT, recording, ModelEstimatorSettings())
    moved = recording.true_poses.copy()
    moved[:, 2, 3] += 1e-2
    judged = filtered(ROBOT, replace(recording, true_poses=moved), ModelEstimatorSettings())
    np.testing.assert_array_equal(judged.states, usual.states)  # the filter did the same
    np.testing.assert_allclose(judged.positions, 1e-2, atol=2 * usual.positions.max())


def test_a_plant_that_picks_something_up_is_heavier_from_then_on():
    motion = Motion("heavier", (1.0,), 0.6, later=with_errors(tip_mass_factor=2.0))
    heavier, usual = record(ROBOT, motion, 3), record(ROBOT, replace(motion, later=None), 3)
    assert len(usual.states) == 42
    np.testing.assert_array_equal(heavier.states[:21], usual.states[:21])
    apart = np.linalg.norm(heavier.true_poses - usual.true_poses, axis=(1, 2))
    assert apart[20] == 0.0
    assert apart[-1] > 1e-3


def test_behind_a_controller_a_filter_is_judged_by_the_reference():
    """The rod begins vented, far from the setpoint, and the filter knows it."""
    case = replace(SEARCH[1], duration=0.1)
    source = source_of(ROBOT, case)
    judgement = looped(ROBOT, case, source, (0, 1), ModelEstimatorSettings())
    wanted = source.window(0.0, 1).tip_positions[0]
    vented = CosseratRod(ROBOT, 5).tip_pose(np.zeros(72))[:3, 3]
    assert judgement.positions[0] == pytest.approx(np.linalg.norm(wanted - vented), abs=5e-3)
    assert judgement.positions[0] > 0.05


def test_what_the_search_begins_with_costs_three(recording):
    runs = [partial(filtered, ROBOT, recording)] * 2
    initial, _ = errors_of(runs, {})
    assert TUNING.combined(filter_costs(runs, initial, {})) == pytest.approx(3.0, abs=1e-12)
    noisy = {"state_noises.velocity": 0.1, "state_noises.torque": 0.1}
    assert TUNING.combined(filter_costs(runs, initial, noisy)) > 3.05


def judged(positions, repairs=0):
    errors = np.full(4, positions), np.ones(4), np.ones(4)
    return Judgement(*errors, states=np.ones(4), compliance=np.ones(4), repairs=repairs)


@pytest.mark.parametrize(
    ("positions", "repairs", "expected"),
    [
        ((0.5, 0.5), 0, 2.5),
        ((0.5, 1.5), 0, 3.5),  # the mean is 3, the worst is half above the start
        ((1.0, 1.0), 7, 17.0),
        ((1.0, math.nan), 0, math.inf),
    ],
)
def test_one_plant_is_not_bought_with_another(positions, repairs, expected):
    runs = [lambda settings, p=p: judged(p, repairs) for p in positions]
    assert TUNING.combined(filter_costs(runs, np.ones((2, 3)), {})) == pytest.approx(expected)


def bowl(values):
    """Least at a noise of velocities of 0.001, of angular velocities of 0.03."""
    return sum((math.log(v / b)) ** 2 for v, b in zip(values.values(), (1e-3, 0.03), strict=True))


def test_a_swarm_in_generations_is_the_swarm():
    """Asked generation by generation, in as many processes as one likes, it makes the same way."""
    tuning = replace(filter_study.TUNING, space=PAIR, start=lambda settings: START)
    settings = filter_study.FilterTuning(trials=84, search_seed=1)
    known: list[Tried] = []
    while generation := tuning.next_generation(settings, known):
        numbers = range(len(known), len(known) + tuned.PARTICLES)
        assert [particle.number for particle in generation] == [*numbers]
        known += [Tried(p.number, bowl(dict(p.values)), dict(p.values)) for p in generation]
    assert len(known) == 84
    assert known[0].values == pytest.approx(START)
    best = ranked(known)[0]
    assert best.cost < 1e-2 * bowl(START)
    _, least = particle_swarm(
        lambda position: bowl(values_at(PAIR, position)), np.zeros(2), np.ones(2),
        tuned.PARTICLES, 7, 1,
        start=np.array([each.range.share_of(START[each.name]) for each in PAIR]),
    )  # fmt: skip
    assert best.cost == pytest.approx(least, rel=1e-12)


def test_a_controller_file_with_other_values():
    file = loaded("rod_mpc", "rod_mpc")
    names = [parameter.name for parameter in ROD_MPC]
    assert values_of(file, names)["rod_mpc.knots"] == "1 7"
    other = changed(file, {"rod_mpc.knots": "2 4 7", "costs.input_rate": 0.3})
    settings = named_settings("rod_mpc", other)
    assert (settings.knots, settings.costs.input_rate) == ((2, 4, 7), 0.3)
    assert changed(other, values_of(file, names)) == file
    assert not follows_states(file)
    assert follows_states(loaded("nempc_licher2025", "nempc"))
    for space, shipped in ((NEMPC, "nempc"), (WEIGHTS, "nempc_licher2025")):
        values = values_of(loaded(shipped, "nempc"), [parameter.name for parameter in space])
        for parameter in space:
            fixed = optuna.trial.FixedTrial(values)
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # what lies outside is told by a warning
                assert parameter.range.suggest(fixed, parameter.name) == values[parameter.name]


def test_a_lazy_controller_costs_more_and_the_same_one_the_same():
    case = replace(SEARCH[0], duration=1.1)

    def cost(values):
        file = changed(loaded("rod_mpc", "rod_mpc"), values)
        return cost_of(follow(ROBOT, case, file, (0, 1), 16), by_state=False)

    usual = cost({})
    assert cost({"costs.input_rate": 0.05}) == usual
    assert cost({"costs.input_rate": 500.0}) > 2 * usual


def test_a_lost_filter_or_run_costs_infinity_and_is_ranked_nowhere():
    def lost_filter(settings):
        raise ValueError("covariance: must be finite and positive definite")

    assert TUNING.combined(filter_costs([lost_filter], np.ones((1, 3)), {})) == math.inf
    lost = dict.fromkeys(controllers.FIGURES, math.nan)
    tuning = load_study("tuning/nempc").run.__self__
    assert cost_of(lost, by_state=True) == cost_of(lost, by_state=False) == math.inf
    assert tuning.combined(np.array([1.0, math.inf])) == math.inf
    assert tuning.combined(np.array([1.0, 9.0])) == 5.0
    trials = [Tried(number, cost, {}) for number, cost in enumerate((2.0, math.inf, 1.0))]
    trials.append(Tried(3, 0.5, {}, complete=False))
    assert [each.cost for each in ranked(trials)] == [1.0, 2.0]


@pytest.mark.later
@pytest.mark.parametrize("name", [pytest.param("filter", marks=pytest.mark.slow), "rod-mpc"])
def test_a_small_tuning_from_the_search_to_the_table(name, tmp_path, monkeypatch):
    monkeypatch.setattr(tuned, "PARTICLES", 2)
    monkeypatch.setattr(tuned, "FINAL_SEEDS", 1)
    monkeypatch.setattr(tuned, "LONGER", 1.01)
    for module, cases in ((filter_study, "SEARCH_MOTIONS"), (controllers, "SEARCH")):
        monkeypatch.setattr(module, cases, (replace(getattr(module, cases)[0], duration=1.1),))
    loop = replace(filter_study.SEARCH_LOOP, duration=0.5)
    monkeypatch.setattr(filter_study, "SEARCH_LOOP", loop)
    study = load_study(f"tuning/{name}")
    tuning = study.run.__self__
    tasks = [replace(tuning.tasks[0], duration=1.1), replace(tuning.tasks[-1], duration=1.1)]
    monkeypatch.setitem(tuning.__dict__, "tasks", tasks)
    trials = {"filter": 4, "rod-mpc": 2}[name]
    settings = study.settings(trials=trials, seeds=2)
    directory, shown = run_of(study.name, tmp_path, settings)
    _, rows = read_table(directory / "table.json")
    names = [each.symbol or each.name for each in tuning.space]
    for method in ("shipped", "tuned"):
        found = [row.quantity for row in rows if (row.case, row.method) == ("values", method)]
        assert found == names
    figures = {(row.case, row.method, row.quantity): row for row in rows}
    for task in tasks:
        key = task.name, "tip error"
        parts = [figures[key[0], method, key[1]] for method in ("tuned", "shipped")]
        assert [part.seeds for part in parts] == [2, 2]
        ratio = figures[key[0], "tuned / shipped", key[1]]
        assert (ratio.unit, ratio.must) == ("-", 1.0)
        assert ratio.mean == pytest.approx(parts[0].mean / parts[1].mean, rel=0.2)
    kept = json.loads((directory / "trials.json").read_text())
    assert kept["columns"] == ["cost", *(each.name for each in tuning.space)]
    assert len(kept["trials"]) == trials == figures["search", "all", "trials"].mean
    assert kept["trials"][0][0] == figures["search", "first trial", "cost"].mean
    assert (directory / "search.png").stat().st_size > 1000
    assert "tuned / shipped" in shown
    if name == "rod-mpc":
        written = loaded(str(directory / "tuned.yaml"), "rod_mpc")
        values = values_of(written, [each.name for each in tuning.space])
        assert list(values.values()) in [trial[1:] for trial in kept["trials"]]
