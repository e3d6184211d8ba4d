"""`softcr tune`: spaces, the cost (38), searches that go on, and a small run."""

import json
import math
from dataclasses import replace
from functools import partial

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from softcr_control.controller_file import named_settings
from softcr_estimation import EstimatorSettings, RodEstimator
from softcr_hardware.plant import Mismatch
from softcr_models import CosseratRod, load_robot
from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction
from softcr_models.rod.description import rod_layout
from softcr_models.rod.state import RodState
from softcr_studies.different_plant import Difference
from softcr_tools.cli import main as softcr
from softcr_tools.experiments.tuning import (
    command,
    controller_subject,
    filter_cost,
    filter_subject,
    study,
)
from softcr_tools.experiments.tuning.controller_cost import (
    ControllerCost,
    changed,
    follows_states,
    loaded,
    task_of,
    values_of,
)
from softcr_tools.experiments.tuning.filter_runs import (
    Judgement,
    Motion,
    filtered,
    kinks_of,
    looped,
    record,
)
from softcr_tools.experiments.tuning.space import (
    FILTER,
    NEMPC,
    ROD_MPC,
    WEIGHTS,
    positions_of,
    published_values,
    values_at,
)
from softcr_tools.experiments.tuning.subject import Effort, rows_of

ROBOT = load_robot("licher2025")
SHORT = Effort(1.0, 1.0, 16)
PAIR = FILTER[:2]
START = {"velocity_noise": 0.01, "angular_velocity_noise": 0.01}


@pytest.fixture(scope="module")
def recording():
    return record(ROBOT, Motion("short", (1.0,), 0.8), 3)


@given(st.lists(st.floats(0.0, 1.0), min_size=len(FILTER), max_size=len(FILTER)))
def test_a_position_in_the_box_is_a_value_in_its_range_and_back(shares):
    values = values_at(FILTER, np.array(shares))
    for parameter in FILTER:
        assert parameter.distribution.low <= values[parameter.name] <= parameter.distribution.high
    EstimatorSettings(**values)  # accepted
    np.testing.assert_allclose(positions_of(FILTER, values), shares, atol=1e-9)


def test_published_values_stand_in_the_table_as_they_were_printed():
    for parameter in (*FILTER, *NEMPC, *WEIGHTS):
        if parameter.published is not None:
            assert parameter.printed(parameter.setting(parameter.published)) == pytest.approx(
                parameter.published
            )
    # R = 2.59e-8 m^2; q_velo = 8.92e-6 a tick of 1/70 s
    noises = published_values(FILTER)
    assert noises["tip_position_noise"] == pytest.approx(1.609e-4, rel=1e-3)
    assert noises["velocity_noise"] == pytest.approx(math.sqrt(8.92e-6 * 70), rel=1e-6)
    file = changed(loaded("nempc_licher2025", "nempc"), published_values((*NEMPC, *WEIGHTS)))
    chosen = named_settings("nempc", file)
    assert (chosen.parents, chosen.segments) == (0.3897, 1)
    assert (chosen.costs.state["torque"], chosen.costs.input_rate) == (0.186, 2.39)


def test_a_number_for_each_kind_of_state():
    layout = rod_layout(CosseratRod(ROBOT, 5))
    numbers = {
        "velocity": 1.0,
        "angular_velocity": 2.0,
        "force": 3.0,
        "force_z": 4.0,
        "torque": 5.0,
    }
    view = RodState(layout.by_group(numbers))
    np.testing.assert_array_equal(view.velocities, np.tile([1, 1, 1, 2, 2, 2], (5, 1)))
    np.testing.assert_array_equal(view.wrenches, np.tile([3, 3, 4, 5, 5, 5], (6, 1)))
    np.testing.assert_array_equal(view.base_wrench, [3, 3, 4, 5, 5, 5])


def test_a_group_of_states_may_have_its_own_noise():
    """Just after the start, a tick adds noise^2 dt to the variance of what is not yet coupled."""
    model = RodPrediction(CosseratRod(ROBOT, 2), single_precision=False)

    def deviations(**noises):
        numbers = {"state_noise": 1e-3, "initial_state_deviation": 1e-6, **noises}
        estimator = RodEstimator(model, EstimatorSettings(parameters=(), **numbers))
        estimator.start(np.zeros(3), 0.0)
        covariance = estimator.update(np.zeros(3), None, 1 / 70).covariance
        return RodState(np.sqrt(covariance.diagonal()) / model.state_scale)

    usual, fast = deviations(), deviations(velocity_noise=0.5)
    expected = np.sqrt(1 / 70) * np.array([0.5, 0.5, 0.5, 1e-3, 1e-3, 1e-3])
    np.testing.assert_allclose(fast.velocities, np.tile(expected, (2, 1)), rtol=1e-2)
    np.testing.assert_allclose(fast.wrenches, usual.wrenches, rtol=1e-9)
    assert deviations(force_noise=1e-3).array == pytest.approx(usual.array)


def test_kinks_are_what_is_left_when_the_strain_is_not_straight():
    view = RodState(np.zeros((2, 72)))
    view.wrenches[0] = np.arange(6)[:, None]  # along a straight line
    view.wrenches[1, 3:, 0] = 3.0  # one axis jumps by 3 in one of 5 differences
    straight, kinked = kinks_of(view.array)
    assert straight == 0.0
    # each window of three differences holds the jump: deviation of (3, 0, 0); six axes
    assert kinked == pytest.approx(math.sqrt(2.0) / 6)


def test_filters_are_judged_by_the_truth(recording):
    usual = filtered(ROBOT, recording, EstimatorSettings())
    moved = recording.true_poses.copy()
    moved[:, 2, 3] += 1e-2
    judged = filtered(ROBOT, replace(recording, true_poses=moved), EstimatorSettings())
    np.testing.assert_array_equal(judged.states, usual.states)  # the filter did the same
    np.testing.assert_allclose(judged.positions, 1e-2, atol=2 * usual.positions.max())


def test_a_plant_that_picks_something_up_is_heavier_from_then_on():
    motion = Motion("heavier", (1.0,), 0.6, later=Difference(Mismatch(0.95, 2.0)))
    heavier, usual = record(ROBOT, motion, 3), record(ROBOT, replace(motion, later=None), 3)
    assert len(usual.states) == 42
    np.testing.assert_array_equal(heavier.states[:21], usual.states[:21])
    apart = np.linalg.norm(heavier.true_poses - usual.true_poses, axis=(1, 2))
    assert apart[20] == 0.0
    assert apart[-1] > 1e-3


def test_behind_a_controller_a_filter_is_judged_by_the_reference():
    """The rod begins vented, far from the setpoint, and the filter knows it."""
    task = task_of(ROBOT, replace(controller_subject.SEARCH[1], duration=0.1))
    judgement = looped(ROBOT, task, 0, EstimatorSettings())
    wanted = task.source.window(0.0, 1).tip_positions[0]
    vented = CosseratRod(ROBOT, 5).tip_pose(np.zeros(72))[:3, 3]
    assert judgement.positions[0] == pytest.approx(np.linalg.norm(wanted - vented), abs=5e-3)
    assert judgement.positions[0] > 0.05


def test_what_the_search_begins_with_costs_three(recording):
    cost = filter_cost.filter_cost([partial(filtered, ROBOT, recording)] * 2, {})
    assert cost({}) == pytest.approx(3.0, abs=1e-12)
    assert cost({"velocity_noise": 0.1, "torque_noise": 0.1}) > 3.05


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
    assert filter_cost.FilterCost(runs, np.ones((2, 3)))({}) == pytest.approx(expected)


def test_a_filter_that_is_lost_costs_infinity():
    def lost(settings):
        raise ValueError("covariance: must be finite and positive definite")

    assert filter_cost.FilterCost([lost], np.ones((1, 3)))({}) == math.inf


def bowl(values):
    """Least at velocity_noise 0.001, angular_velocity_noise 0.03."""
    return sum((math.log(v / b)) ** 2 for v, b in zip(values.values(), (1e-3, 0.03), strict=True))


def search_of(swarm, description="a"):
    return study.Search("bowl", PAIR, START, swarm, 1, {"judged on": description})


def searched(journal, swarm, trials, side_by_side=1):
    evaluated = []

    def cost(values):
        evaluated.append(values)
        return bowl(values)

    search = search_of(swarm)
    found = study.opened(search, journal)
    with study.evaluator(cost, 1) as costs:
        study.run(found, search, costs, trials, side_by_side, lambda done: None)
    return found, len(evaluated)


@pytest.mark.parametrize(("swarm", "trials"), [(True, (24, 84)), (False, (5, 12))])
def test_a_search_goes_on_where_it_was_stopped(swarm, trials, tmp_path):
    begun, evaluated = searched(tmp_path / "one.journal", swarm, trials[0])
    assert begun.get_trials()[0].params == pytest.approx(START)
    found, more = searched(tmp_path / "one.journal", swarm, trials[1])
    assert (evaluated, more) == (trials[0], trials[1] - trials[0])
    assert len(found.get_trials()) == trials[1]
    best = study.ranked(found)[0]
    assert best.value == pytest.approx(bowl(best.params))
    assert best.value <= bowl(START)
    if swarm:  # the same as without a stop
        at_once, _ = searched(tmp_path / "two.journal", swarm, trials[1])
        assert [t.params for t in at_once.get_trials()] == [t.params for t in found.get_trials()]
        assert best.value < 1e-2 * bowl(START)


def test_a_study_of_something_else_is_refused(tmp_path):
    study.opened(search_of(False), tmp_path / "one.journal")
    with pytest.raises(UserError, match=r"one.journal: holds a study of .*take another --output"):
        study.opened(search_of(False, "b"), tmp_path / "one.journal")


def test_processes_side_by_side_give_the_same():
    candidates = [{"a": 1.0}, {"a": 1.0, "b": 2.0}, {}]
    with study.evaluator(len, 2) as costs:
        assert list(costs(candidates)) == [1, 2, 0]


def test_a_controller_file_with_other_values():
    file = loaded("rod_mpc", "rod_mpc")
    names = [parameter.name for parameter in ROD_MPC]
    assert values_of(file, names)["rod_mpc.knots"] == "2 8"
    other = changed(file, {"rod_mpc.knots": "2 4 8", "costs.input_rate": 0.3})
    settings = named_settings("rod_mpc", other)
    assert (settings.knots, settings.costs.input_rate) == ((2, 4, 8), 0.3)
    assert changed(other, values_of(file, names)) == file
    assert not follows_states(file)
    assert follows_states(loaded("nempc_licher2025", "nempc"))
    for space, shipped in ((NEMPC, "nempc"), (WEIGHTS, "nempc_licher2025")):
        values = values_of(loaded(shipped, "nempc"), [parameter.name for parameter in space])
        for parameter in space:
            assert parameter.distribution._contains(
                parameter.distribution.to_internal_repr(values[parameter.name])
            ), parameter.name


def test_a_lazy_controller_costs_more_and_the_same_one_the_same():
    task = task_of(ROBOT, replace(controller_subject.SEARCH[0], duration=1.1))
    cost = ControllerCost(ROBOT, loaded("rod_mpc", "rod_mpc"), [task], (0,), 16)
    usual = cost({})
    assert cost({"costs.input_rate": 0.05}) == usual
    assert cost({"costs.input_rate": 500.0}) > 2 * usual


def test_tuned_is_divided_by_shipped_seed_by_seed():
    key = "4a", "tip error [mm]"
    rows = rows_of({"shipped": {key: [0.2, 0.4]}, "tuned": {key: [0.1, 0.4]}}, 2)
    assert [(row.method, row.mean, row.unit) for row in rows] == [
        ("shipped", pytest.approx(0.3), "mm"),
        ("tuned", pytest.approx(0.25), "mm"),
        ("tuned / shipped", pytest.approx(0.75), "-"),
    ]
    assert [row.mark for row in rows] == ["", "", "goal"]


@pytest.mark.parametrize("what", ["filter", "rod_mpc"])
def test_a_small_tuning_from_the_search_to_the_table(what, tmp_path, monkeypatch):
    monkeypatch.setattr(study, "PARTICLES", 2)
    for module, name in (
        (filter_subject, "SEARCH_MOTIONS"),
        (filter_subject, "HELD_OUT_MOTIONS"),
        (filter_subject, "HELD_OUT_LOOPS"),
        (controller_subject, "SEARCH"),
        (controller_subject, "HELD_OUT"),
    ):
        monkeypatch.setattr(module, name, (replace(getattr(module, name)[0], duration=1.1),))
    loop = replace(filter_subject.SEARCH_LOOP, duration=0.5)
    monkeypatch.setattr(filter_subject, "SEARCH_LOOP", loop)
    for module in (filter_subject, controller_subject):
        monkeypatch.setattr(module, "FINAL_SEEDS", (10,))
    trials = {"filter": 4, "rod_mpc": 2}[what]
    given = command._parser().parse_args([what, "--trials", str(trials), "--seeds", "1"])
    given.output = tmp_path
    console = Console(width=118, record=True)
    tuned = command.tune(given, SHORT, console)
    table = json.loads((tmp_path / "table.json").read_text())
    assert table["command"] == f"softcr tune {what} --trials {trials} --seeds 1 --output {tmp_path}"
    assert [row["setting"] for row in table["parameters"]] == list(tuned)
    methods = {row["method"] for row in table["rows"]}
    assert methods >= {"shipped", "tuned", "tuned / shipped"}
    kept = json.loads((tmp_path / "study.json").read_text())
    assert len(kept["trials"]) == trials
    assert kept["columns"] == ["cost", *tuned]
    assert len(kept["judged"]) == len(table["rows"])
    page = (tmp_path / "study.md").read_text()
    assert page.count("\n| ") == 4 + len(tuned) + len(kept["judged"]) // len(methods)
    assert (tmp_path / "study.png").stat().st_size > 1000
    assert "never saw" in console.export_text()
    if what == "rod_mpc":
        written = loaded(str(tmp_path / "tuned.yaml"), "rod_mpc")
        assert values_of(written, list(tuned)) == tuned


def test_wrong_options_are_one_line(capsys, tmp_path):
    with pytest.raises(SystemExit):
        command.main(["filter", "--trials", "0"])
    assert "'0': must be a whole number from 1 on" in capsys.readouterr().err
    assert softcr(["tune", "nempc", "--controller", "nemo", "--output", str(tmp_path)]) == 2
    assert "'nemo': unknown; known are nempc" in capsys.readouterr().err


def test_costs_without_a_number_are_ranked_nowhere():
    found = optuna.create_study()
    for value in (2.0, math.inf, 1.0):
        found.add_trial(optuna.trial.create_trial(value=value))
    assert [trial.value for trial in study.ranked(found)] == [1.0, 2.0]
