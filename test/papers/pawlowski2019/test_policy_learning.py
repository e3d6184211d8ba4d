"""Environments that policies learn in: rewards, truncation, seeds, batched as single."""

import numpy as np
import pytest

from softcr_models import UserError, load_robot
from softcr_papers.pawlowski2019.learning import task_settings
from softcr_papers.pawlowski2019.learning.circling import Circling
from softcr_papers.pawlowski2019.learning.environment import Environment
from softcr_papers.pawlowski2019.learning.evaluation import Circle, CircleTask, judge
from softcr_papers.pawlowski2019.learning.goals import (
    BoxGoals,
    OneGoal,
    Polar,
    SeenGoals,
    box_around,
    tips_in_motion,
)
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.plant_settings import PlantSettings
from softcr_papers.pawlowski2019.learning.rewards import tip_reward
from softcr_papers.pawlowski2019.learning.task_settings import TaskSettings
from softcr_papers.pawlowski2019.learning.tasks import Reaching, Tracking, quartic
from softcr_papers.pawlowski2019.policy.policy_file import load_policy
from softcr_papers.pawlowski2019.reference.dynamic_workspace import Excitation
from softcr_papers.pawlowski2019.reference.workspace import Workspace

FLOATING = load_robot("tendon_arm").replace(gravity=0.0)
COARSE = PlantSettings(intervals=5, linearisations=2)
PLANT = Plant(FLOATING, COARSE)
TRACKING = Tracking(PLANT, pool=24)
BOX = BoxGoals(Workspace(0.1, 12.5, (-0.022, 0.018)))


def random_actions(steps, batch, seed=0, inputs=4):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.0, 1.0, (steps, batch, inputs)).astype(np.float32)


# --- rewards, (4.40) ----------------------------------------------------------------------------


def test_the_reward_is_that_of_the_thesis_for_the_tip_of_the_environment():
    away = np.array([0.0, 0.015, 0.03, 0.0301, 9.0])
    assert tip_reward(away, 0.1) == pytest.approx([0.0, -0.5, -1.0, -1.0, -1.0])
    assert tip_reward(away, 0.1, beta=1.0) == pytest.approx(np.maximum(-away / 0.1, -1.0))
    environment = Environment(PLANT, Reaching(PLANT, BOX), 3, seed=2)
    for actions in random_actions(4, 3):
        outcome = environment.step(actions)
    away = np.linalg.norm(environment.tips[:, :, 3] - environment.goals, axis=1)
    np.testing.assert_allclose(outcome.rewards, np.maximum(-away / 0.03, -1.0), rtol=1e-5)
    np.testing.assert_allclose(outcome.distances, away, rtol=1e-6)


# --- the plant ----------------------------------------------------------------------------------


def test_a_plant_moves_as_the_rod_does():
    lanes = PLANT.at_rest(np.zeros((3, 4)))
    commands = np.array([[0.5, 0, 0, 0], [0.2, 0.3, 0, 0], [0, 0, 0, 0.4]])
    for _ in range(3):
        assert PLANT.advance(lanes, commands).all()
    model = Plant(FLOATING, PlantSettings(intervals=5, linearisations=20, substeps=4)).model
    state, row = np.zeros((3, model.state_size)), model.nominal_parameters[None]
    for _ in range(60):
        state = model.step(state, commands, commands, row, 0.0025)
    tips = model.tip_poses(state, row)[:, :, 3]
    assert np.linalg.norm(tips[0] - (0, 0, 0.1)) > 0.02
    # steps of 5 ms and one linearisation in 25: within 2 mm
    np.testing.assert_allclose(PLANT.tips(lanes)[:, :, 3], tips, atol=2e-3)


def test_inputs_lag_and_are_limited_in_rate():
    plant = Plant(load_robot("licher2025"), PlantSettings(intervals=3, linearisations=3))
    assert plant.lags
    lanes = plant.at_rest(np.zeros((1, 3)))
    plant.advance(lanes, np.array([[3e4, 0.0, 0.0]]))
    expected = 11.0 / 10.94 * 3e4 * (1.0 - np.exp(-10.94 * 0.05))
    np.testing.assert_allclose(lanes.acting, [[expected, 0.0, 0.0]], rtol=1e-9)
    quick = Plant(FLOATING, PlantSettings(intervals=3, period=0.01, linearisations=1))
    lanes = quick.at_rest(np.zeros((1, 4)))
    quick.advance(lanes, np.array([[0.5, 0.05, 0.0, 0.0]]))
    np.testing.assert_allclose(lanes.sent, [[0.1, 0.05, 0.0, 0.0]])  # 10 N/s


def test_a_state_that_no_rod_has_ends_a_run_and_spoils_no_other():
    environment = Environment(PLANT, Reaching(PLANT, BOX), 3, seed=1)
    environment.lanes.states[1] = 1e20
    environment.lanes.states[2] = np.nan
    outcome = environment.step(np.zeros((3, 4), np.float32))
    assert outcome.broken.tolist() == [False, True, True]
    assert outcome.done.tolist() == [False, True, True]
    assert outcome.rewards[1] == outcome.rewards[2] == -1.0
    assert outcome.rewards[0] > -1.0 or outcome.distances[0] > 0.03
    environment.restart(outcome.done)
    assert np.isfinite(environment.observe()).all()
    assert environment.clock.tolist() == [1, 0, 0]


def test_a_run_ends_after_its_steps_and_a_seed_makes_the_same_goals():
    environment = Environment(PLANT, Reaching(PLANT, BOX, steps=3), 2)
    ends = [environment.step(each).over.tolist() for each in random_actions(3, 2)]
    assert ends == [[False, False], [False, False], [True, True]]
    task = Reaching(PLANT, BOX)
    first, again, other = (Environment(PLANT, task, 4, seed).observe() for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_parameters_differ_within_the_spread():
    plant = Plant(FLOATING, COARSE.model_copy(update={"spread": 0.1}))
    lanes = plant.at_rest(np.zeros((200, 4)), np.random.default_rng(0))
    ratio = lanes.parameters[:, 0] / plant.model.nominal_parameters[0]
    assert 0.9 < ratio.min() <= ratio.max() < 1.1
    assert np.ptp(ratio) > 0.15
    assert (lanes.parameters[:, 1] == 0.0).all()  # the robot has no tip mass
    moved = Environment(plant, Reaching(plant, BOX), 2, seed=3)
    moved.step(np.array([[1, -1, -1, -1]] * 2, np.float32))
    assert np.ptp(moved.tips[:, 0, 3]) > 1e-5


# --- environments -------------------------------------------------------------------------------


def test_a_batch_is_its_rows():
    goals = BOX.sample(3, np.random.default_rng(0))
    task, actions = Reaching(PLANT, BOX), random_actions(5, 3)
    together = Environment(PLANT, task, 3)
    together.reset(goals)
    for each in actions:
        outcome = together.step(each)
    for i in range(3):
        alone = Environment(PLANT, task, 1)
        alone.reset(goals[i : i + 1])
        for each in actions:
            single = alone.step(each[i : i + 1])
        np.testing.assert_array_equal(alone.observe()[0], together.observe()[i])
        assert single.rewards[0] == outcome.rewards[i]


def test_what_is_not_allowed_gets_one_line():
    environment = Environment(PLANT, Reaching(PLANT, BOX), 2)
    for actions in (np.zeros((2, 3)), np.full((2, 4), 1.1), np.full((2, 4), np.nan)):
        with pytest.raises(UserError, match="actions"):
            environment.step(actions)
    with pytest.raises(UserError, match=r"linearisations: 1 in 0.05 s is not allowed"):
        Plant(FLOATING, PlantSettings(intervals=5, linearisations=1))


def test_gymnasium_finds_nothing_wrong():
    checker = pytest.importorskip("gymnasium.utils.env_checker")
    from softcr_papers.pawlowski2019.learning.gym_environments import RodEnv

    for task in (Reaching(PLANT, BOX), TRACKING):
        with pytest.warns(UserWarning, match="infinity"):
            checker.check_env(RodEnv(PLANT, task), skip_render_check=True)


def test_vectorised_runs_begin_again_in_the_same_step():
    pytest.importorskip("gymnasium")
    from softcr_papers.pawlowski2019.learning.gym_environments import RodEnv, RodVectorEnv

    task, goal = Reaching(PLANT, BOX, steps=4), [0.02, 0.01, 0.0955]
    many, one = RodVectorEnv(PLANT, task, 2), RodEnv(PLANT, task)
    seen, _ = many.reset(seed=4, options={"goal": goal})
    first, _ = one.reset(options={"goal": goal})
    np.testing.assert_array_equal(seen[1], first)
    for actions in random_actions(4, 2):
        seen, rewards, ended, cut, infos = many.step(actions)
        last, reward, *_ = one.step(actions[1])
    assert cut.all()
    assert not ended.any()
    assert rewards[1] == reward
    np.testing.assert_array_equal(infos["final_obs"][1], last)
    assert (seen[1] != last).any()  # of another run
    with pytest.raises(UserError, match="outside of the workspace"):
        one.reset(options={"goal": [0.09, 0.0, 0.0]})
    with pytest.raises(UserError, match="goal of shape"):
        many.reset(options={"goal": [[0.0, 0.0, 0.1]]})
    with pytest.raises(UserError, match="allowed is goal"):
        one.reset(options={"aim": goal})


def test_stable_baselines_hears_where_a_run_was_cut_off():
    pytest.importorskip("stable_baselines3")
    from softcr_papers.pawlowski2019.learning.sb3_environment import LanesVecEnv

    runs = LanesVecEnv(Environment(PLANT, Reaching(PLANT, BOX, steps=2), 2), squashed=True)
    runs.reset()
    for actions in 3.0 * random_actions(2, 2):
        seen, _, done, infos = runs.step(actions)
    assert done.all()
    assert all(info["TimeLimit.truncated"] for info in infos)
    assert (infos[0]["terminal_observation"] != seen[0]).any()
    assert runs.env_is_wrapped(object) == [False, False]


# --- tasks and goals ----------------------------------------------------------------------------


def test_goals_of_every_kind_contain_what_they_give():
    rng = np.random.default_rng(0)
    seen = SeenGoals(BOX.sample(200, rng))
    for goals in (BOX, seen, OneGoal(np.array([0.02, 0.0, 0.09]))):
        assert goals.contains(goals.sample(20, rng)).all()
        assert not goals.contains(np.array([[0.0, 0.0, -0.05]])).any()
        assert str(goals)


def test_boxes_hold_the_tips_of_a_robot_with_caps():
    plant = Plant(load_robot("licher2025"), PlantSettings(intervals=3, linearisations=3))
    tips = tips_in_motion(plant, excitation=Excitation(runs=8, steps=10))
    box = box_around(plant, tips)  # runs with numbers that blew up are left out
    tips = tips[np.isfinite(tips).all(axis=(1, 2))]
    assert len(tips) > 2
    assert box.contains(tips.reshape(-1, 3)).all()
    polar = Polar.of_plant(plant)
    assert polar.height == pytest.approx(0.024)
    np.testing.assert_allclose(polar.tips(polar.bends(tips)), tips, atol=1e-12)


def test_trajectories_go_from_one_steady_tip_to_another():
    task = TRACKING
    found = task.episodes(6, np.random.default_rng(3))
    slopes = (found.goals[:, 2:] - found.goals[:, :-2]) / 0.1
    for i in range(6):
        begin = np.linalg.norm(task.tips - found.goals[i, 0], axis=1)
        row, inner = int(begin.argmin()), slice(0, found.steps[i] - 2)
        assert begin[row] < 1e-9
        np.testing.assert_array_equal(found.inputs[i], task.inputs[row])
        np.testing.assert_allclose(slopes[i, inner], found.velocities[i, 1:-1][inner], atol=2e-3)
    assert 40 <= found.steps.min() <= found.steps.max() <= 100
    steps = np.arange(6), found.steps - 1
    for ours, all_ in zip(found.at(steps[1]), (found.goals, found.velocities), strict=True):
        np.testing.assert_array_equal(ours, all_[steps])


def test_a_quartic_has_its_ends_rates_and_detour():
    t, h = np.array([0.0, 2.0, 1.0]), 1e-6
    args = (2.0, 1.0, 3.0, 0.5, -0.25, 0.7)
    np.testing.assert_allclose(quartic(t, *args)[:2], [1.0, 3.0])
    straight = quartic(t, *args[:-1], 0.0)
    assert quartic(t, *args)[2] - straight[2] == pytest.approx(0.7)
    rates = (quartic(t[:2] + h, *args) - quartic(t[:2] - h, *args)) / (2 * h)
    np.testing.assert_allclose(rates, [0.5, -0.25], atol=1e-6)


def test_tasks_of_a_person_s_words(monkeypatch):
    monkeypatch.setattr(task_settings, "STEADY", 24)
    place = TRACKING.tips[0].round(6)
    steady = ", ".join(map(str, place))
    task = TaskSettings(goals="steady", goal=steady).made(PLANT)
    np.testing.assert_array_equal(task.episodes(1, np.random.default_rng(0)).goals[0, 0], place)
    with pytest.raises(UserError, match=r"goal \(0.09, 0, 0\) m: is outside of the workspace"):
        TaskSettings(goals="steady", goal="0.09, 0, 0").made(PLANT)
    for goal in ("1, 2", "a, b, c"):
        with pytest.raises(UserError, match="must be x, y, z"):
            TaskSettings(goals="steady", goal=goal).made(PLANT)


# --- judging and training -----------------------------------------------------------------------


def pull(inputs):
    """A policy that always commands the same, from -1 to 1."""
    return lambda seen: np.tile(np.asarray(inputs, np.float32), (len(seen), 1))


def test_a_policy_is_judged_by_its_smallest_distance():
    task = Reaching(PLANT, OneGoal([0.03, 0, 0.092]))
    reached = judge(pull([1, -1, -1, -1]), PLANT, task, 2, 0).figures
    missed = judge(pull([-1, -1, -1, -1]), PLANT, task, 2, 0).figures
    assert reached.reached == 1.0
    assert reached.least < 0.05 < reached.mean
    assert missed.reached == 0.0
    assert missed.least == pytest.approx(np.hypot(0.3, 0.08), rel=1e-6)


def test_a_circle_begins_where_the_robot_stands():
    circle = Circle(radius=0.01, height=0.0976, laps=1)
    task = CircleTask(PLANT, circle)
    assert task.start_error < 1e-5
    found = judge(pull(2.0 * task.episodes(1, None).inputs[0] / 0.5 - 1.0), PLANT, task, 1, 0)
    assert found.distances.shape == (1, 80)
    # it stays where it is: the farthest point of the circle is a diameter away
    assert np.nanmax(found.distances) == pytest.approx(0.2, abs=0.002)
    times = np.linspace(0.0, 4.0, 9)
    slope = (circle.at(times + 1e-6) - circle.at(times - 1e-6)) / 2e-6
    np.testing.assert_allclose(circle.velocities(times), slope, atol=1e-9)


@pytest.mark.parametrize("name", ["licher2025", "two_segments"])
def test_goals_that_go_round_are_where_the_rod_goes_whose_inputs_turn(name):
    plant = Plant(load_robot(name), PlantSettings(intervals=2))
    task = Circling(plant, pool=3)
    episodes = task.episodes(40, np.random.default_rng(1))
    assert episodes.goals.shape == (40, 121, 3)
    slopes = (episodes.goals[:, 2:] - episodes.goals[:, :-2]) / 0.1
    np.testing.assert_allclose(episodes.velocities[:, 1:-1], slopes, atol=1e-9)
    # the same motion, one rod, on the fine steps of the model by itself
    times = 0.05 * np.arange(121)
    levels = Circling.inputs(plant, times, 3, np.random.default_rng(0))
    low, high = plant.model.inputs.low, plant.model.inputs.high
    assert ((low <= levels) & (levels <= high)).all()
    model, row = plant.model, plant.model.nominal_parameters[None]
    state = model.equilibrium(np.zeros(model.inputs.size), row[0])
    for k in range(40):
        for part in np.linspace(0.0, 1.0, 5)[:-1]:
            begin = levels[0, k] + part * (levels[0, k + 1] - levels[0, k])
            end = begin + 0.25 * (levels[0, k + 1] - levels[0, k])
            state = model.step(state[None], begin[None], end[None], row, 0.0125)[0]
    tip = model.tip_poses(state[None], row)[0, :, 3]
    nearest = np.linalg.norm(episodes.goals[:, 40] - tip, axis=1).min()
    assert nearest < 0.002
    assert np.ptp(episodes.goals[:, :, 0]) > 0.02
    given = task.goals.sample(1, np.random.default_rng(0))
    assert task.episodes(1, np.random.default_rng(0), given).goals.shape == (1, 1, 3)


@pytest.mark.slow
def test_trainings_go_on_and_leave_a_policy(tmp_path):
    pytest.importorskip("stable_baselines3")
    from softcr_papers.pawlowski2019.learning.training import Judging, train
    from softcr_papers.pawlowski2019.learning.training_settings import TrainingSettings

    task = Reaching(PLANT, BOX)
    for algorithm, more in (("td3", {}), ("ddpg", {}), ("sac", {}),
                            ("ppo", {"rollout": 5, "batch": 40})):  # fmt: skip
        own = {"environments": 8, "hidden": (16,), "updates": 1, "start": 160, "buffer": 1000}
        settings = TrainingSettings.of(algorithm, samples=400, **(own | more))
        judging, run = Judging(PLANT, task, 200, 4), tmp_path / algorithm
        first = train(PLANT, task, settings, judging, run)
        assert first.history[-1].samples >= 400
        again = train(PLANT, task, settings.model_copy(update={"samples": 640}), judging, run)
        assert again.history[0].samples > 400
        policy = load_policy(run / "policy")
        assert policy.card.sizes[0] == 27
        assert policy.card.training["settings"]["algorithm"] == algorithm
        with pytest.raises(UserError, match="other settings"):
            train(PLANT, task, settings.model_copy(update={"seed": 1}), judging, run)
