"""Learning with the rods' derivatives: costs, linearisations, controllers, search, gradient."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from scipy.stats import multivariate_normal

from softcr_models import CosseratRod, UserError, load_robot
from softcr_papers.pawlowski2019.learning.fitted_search import FittedSearch, Mixture, fitted_steps
from softcr_papers.pawlowski2019.learning.goals import BoxGoals
from softcr_papers.pawlowski2019.learning.guided import GuidedSearch
from softcr_papers.pawlowski2019.learning.judging import Judging
from softcr_papers.pawlowski2019.learning.linearisation import Directions, Linearisation, linearise
from softcr_papers.pawlowski2019.learning.local_control import local_control
from softcr_papers.pawlowski2019.learning.motion_learner import (
    even_weights,
    nearest_weights,
    policy_slopes,
)
from softcr_papers.pawlowski2019.learning.motions import roll
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.plant_settings import PlantSettings
from softcr_papers.pawlowski2019.learning.regression import Regression, Targets
from softcr_papers.pawlowski2019.learning.rounds import (
    GradientSearch,
    action_gradients,
    train_in_rounds,
)
from softcr_papers.pawlowski2019.learning.tasks import Reaching
from softcr_papers.pawlowski2019.learning.training_settings import TrainingSettings
from softcr_papers.pawlowski2019.policy.policy_file import load_policy
from softcr_papers.pawlowski2019.reference.workspace import Workspace

ROBOT = load_robot("tendon_arm").replace(gravity=0.0, gravity_subintervals=1)
PLANT = Plant(ROBOT, PlantSettings(intervals=3))
TASK = Reaching(PLANT, BoxGoals(Workspace(0.1, 12.5, (-0.022, 0.018))), steps=12)
RODS, STEPS, R, M, SEEN = 3, 7, 5, 2, 6


def small_guided(**changes):
    told = {"environments": 6, "updates": 5, "batch": 16, "hidden": (8,), "directions": 12}
    return GuidedSearch(PLANT, TASK, TrainingSettings.of("gps", **told | changes))


# --- costs --------------------------------------------------------------------------------------


def test_weights_of_an_approach_are_the_gradient_of_a_soft_minimum():
    width = 0.003  # the floor, as all distances are small
    distances = np.array([[0.009, 0.004, 0.0035, 0.005, np.inf]])

    def soft_minimum(these):
        later = np.log(0.98) * np.arange(5)
        return -np.log(np.exp(-0.5 * (these / width) ** 2 + later).sum())

    weights = nearest_weights(distances, width)[0]
    for step in range(4):
        moved = np.tile(distances[0], (2, 1))
        moved[:, step] += (-1e-7, 1e-7)
        slope = (soft_minimum(moved[1]) - soft_minimum(moved[0])) / 2e-7
        assert weights[step] * distances[0, step] == pytest.approx(slope, rel=1e-5)
    assert weights[4] == 0.0


def test_far_motions_and_steps_on_the_way_of_a_moving_goal_weigh_as_much_as_others():
    near, far = np.array([[0.01, 0.02, 0.03]]), np.array([[0.1, 0.2, 0.3]])
    together = nearest_weights(np.concatenate((near, far)), 1e-4)
    np.testing.assert_allclose(together[0] * near[0] ** 2, together[1] * far[0] ** 2)
    distances = np.array([[0.02, 0.01, 0.03, np.inf], [1e-4, 1e-4, np.inf, np.inf]])
    weights = even_weights(distances, 0.5)
    np.testing.assert_allclose(weights, [[4.0, 4.0, 4.0, 0.0], [4.0, 4.0, 0.0, 0.0]])


# --- local controllers, against one large least-squares problem ---------------------------------


def random_problem(seed=0):
    random = np.random.default_rng(seed)
    linear = Linearisation(
        0.5 * random.normal(size=(RODS, STEPS, R, R)),
        0.4 * random.normal(size=(RODS, STEPS, R, M)),
        random.normal(size=(RODS, STEPS, 3, R)),
        random.normal(size=(RODS, STEPS, SEEN, R)),
        0,
    )
    errors = random.normal(size=(RODS, STEPS, 3))
    weights = random.uniform(0.1, 1.0, (RODS, STEPS))
    slopes = 0.3 * random.normal(size=(RODS, STEPS, M, R))
    return linear, errors, weights, slopes, random


def moved_by(linear, row):
    """(T, R, T m) coordinates at the end of each step by all changes of actions of a motion."""
    state, found = np.zeros((R, STEPS * M)), []
    for t in range(STEPS):
        state = linear.transition[row, t] @ state
        state[:, t * M : (t + 1) * M] += linear.control[row, t]
        found.append(state)
    return np.array(found)


def test_local_controllers_minimise_cost_and_anchor_together():
    linear, errors, weights, slopes, random = random_problem()
    actions, means = 0.01 * random.normal(size=(2, RODS, STEPS, M))
    anchor = 50.0  # so much that no action meets its limit
    found = local_control(linear, errors, weights, actions, means, slopes, anchor)
    for row in range(RODS):
        ahead = moved_by(linear, row)
        before = np.concatenate((np.zeros((1, R, STEPS * M)), ahead[:-1]))
        rows, right = [], []
        for t in range(STEPS):
            of_step = np.zeros((M, STEPS * M))
            of_step[:, t * M : (t + 1) * M] = np.eye(M)
            rows += [np.sqrt(weights[row, t]) * linear.tips[row, t] @ ahead[t]]
            right += [-np.sqrt(weights[row, t]) * errors[row, t]]
            rows += [np.sqrt(anchor) * (of_step - slopes[row, t] @ before[t])]
            right += [-np.sqrt(anchor) * (actions[row, t] - means[row, t])]
            rows += [np.sqrt(1e-3) * of_step]
            right += [np.zeros(M)]
        best = np.linalg.lstsq(np.concatenate(rows), np.concatenate(right), rcond=None)[0]
        assert np.abs(best).max() < 0.9
        state, taken = np.zeros(R), []
        for t in range(STEPS):
            change = found.forward[row, t] + found.feedback[row, t] @ state
            taken.append(change)
            state = linear.transition[row, t] @ state + linear.control[row, t] @ change
        np.testing.assert_allclose(np.concatenate(taken), best, atol=1e-9)


def test_actions_at_their_limits_stay_there_and_have_no_feedback():
    linear, errors, weights, slopes, random = random_problem(1)
    actions = random.uniform(-1.0, 1.0, (RODS, STEPS, M))
    found = local_control(linear, 100.0 * errors, weights, actions, actions, slopes, 1e-3)
    after = actions + found.forward
    assert np.abs(after).max() <= 1.0
    held = np.abs(after) == 1.0
    assert held.mean() > 0.2
    assert not found.feedback[held].any()
    assert found.feedback[~held].any(axis=1).all()


def test_the_gradient_by_actions_is_that_of_the_closed_loop():
    linear, pull, _, slopes, random = random_problem(2)

    def cost(changes):
        state, total = np.zeros(R), 0.0
        for t in range(STEPS):
            action = changes[t] + slopes[0, t] @ state
            state = linear.transition[0, t] @ state + linear.control[0, t] @ action
            total += pull[0, t] @ linear.tips[0, t] @ state
        return total

    found = action_gradients(linear, pull, slopes, STEPS)[0]
    direction = random.normal(size=(STEPS, M))
    assert cost(direction) == pytest.approx((found * direction).sum(), rel=1e-9)
    short = action_gradients(linear, pull, slopes, 1)[0]
    alone = np.einsum("tij,tki,tk->tj", linear.control[0], linear.tips[0], pull[0])
    np.testing.assert_allclose(short, alone)


# --- motions and their derivatives --------------------------------------------------------------


def test_derivatives_along_directions_are_those_of_the_rod():
    learner = small_guided()
    episodes = TASK.episodes(2, np.random.default_rng(3))
    motions = learner.explored(learner.network, episodes)
    rod = CosseratRod(ROBOT, 3, max_substep=0.0025)
    directions, low = learner.directions, PLANT.model.inputs.low

    def after(state, action):
        held = np.tile(low + 0.5 * (1.0 + action) * PLANT.model.inputs.range, (4, 1))
        return rod.simulate(state, held, 0.0125)[-1]

    step = int(motions.ends[0]) - 1
    state, action = motions.states[0, step].astype(float), motions.actions[0, step].astype(float)
    action = 0.8 * action  # a change of an action stays inside its limits
    motions.actions[0, step] = action
    linear = linearise(PLANT, learner.observation, motions, learner.directions)
    e = 1e-3
    for k in (0, 5):
        change = after(state + e * directions.states[k], action)
        change = (change - after(state - e * directions.states[k], action)) / (2 * e)
        ours = linear.transition[0, step][:, k]
        np.testing.assert_allclose(ours, change @ directions.coordinates, atol=0.03)
    one = e * np.eye(4)[0]
    exact = (after(state, action + one) - after(state, action - one)) / (2 * e)
    exact = exact @ directions.coordinates
    ours = linear.control[0, step][:, 0]
    # the last directions, which hardly move, stretch the rod: not linear in an action
    np.testing.assert_allclose(ours[:8], exact[:8], atol=0.01)
    np.testing.assert_allclose(ours, exact, atol=0.05)
    last = motions.states[0, step + 1].astype(float)
    tips = [rod.tip_pose(last + s * e * directions.states[1])[:3, 3] for s in (-1, 1)]
    np.testing.assert_allclose(linear.tips[0, step][:, 1], (tips[1] - tips[0]) / (2 * e), atol=3e-4)


def test_a_direction_is_one_coordinate_and_the_leading_ones_hold_nearly_all():
    random = np.random.default_rng(0)
    scale = np.linspace(0.5, 2.0, 24)  # one interval: 12 (n + 1)
    sources = random.normal(size=(4, 24))
    states = random.normal(size=(200, 4)) @ sources
    states[:, -6:] = 7.0  # below the base: left out
    found = Directions.of_motion(states, scale, 4, 1)
    np.testing.assert_allclose(found.states @ found.coordinates, np.eye(4), atol=1e-9)
    assert not found.states[:, -6:].any()
    again = states @ found.coordinates @ found.states
    np.testing.assert_allclose(again[:, :-6], states[:, :-6], atol=1e-9)


def test_a_motion_ends_when_its_goal_is_reached_and_not_where_goals_move():
    learner, row = small_guided(), PLANT.model.nominal_parameters[None]
    rest = PLANT.model.tip_poses(np.zeros((1, PLANT.model.state_size)), row)[0, :, 3]
    episodes = TASK.episodes(2, np.random.default_rng(0))
    episodes.goals[0], episodes.goals[1] = rest, rest - (0.05, 0.0, 0.05)

    def still(step, rows, states, seen):
        low = np.full((len(rows), 4), -1.0)
        return low, low

    found = roll(PLANT, learner.observation, episodes, still, moving=False)
    assert found.ends.tolist() == [1, 12]
    assert found.distances[0, 0] < 1e-6
    assert np.isinf(found.distances[0, 1:]).all()
    assert roll(PLANT, learner.observation, episodes, still, moving=True).ends.tolist() == [12, 12]


# --- learners -----------------------------------------------------------------------------------


def test_deviations_that_cost_nothing_yield_to_those_that_do():
    random = np.random.default_rng(0)
    seen = np.tile(random.normal(size=(1, 3)), (2, 1)).astype(np.float32)
    weights = np.stack((np.diag([1.0, 0.0]), np.diag([0.0, 1.0]))).astype(np.float32)
    targets = Targets(
        seen, np.array([[0.5, 0.5], [-0.5, -0.5]], np.float32), np.zeros((2, 3, 1), np.float32),
        np.zeros((2, 2, 1), np.float32), weights,
    )  # fmt: skip
    regression = Regression((3, 16, 2), 0.02, 0)
    regression.fit(targets, 120, 16, 0.0)
    np.testing.assert_allclose(regression.network(seen[:1])[0], [0.5, -0.5], atol=0.05)
    again = regression.module(torch.from_numpy(seen)).detach().numpy()
    np.testing.assert_allclose(regression.network(seen), again, atol=1e-6)


def test_a_round_counts_what_it_computes():
    learner = small_guided()
    assert learner.samples == 64 * 40  # random inputs
    learner.round()
    assert 0 < learner.samples - 64 * 40 <= 3 * 6 * 12  # network and two controllers, six goals
    assert learner.lanes % (1 + 12 + 4) == 0
    assert 0 < learner.lanes <= 2 * 6 * 12 * (1 + 12 + 4)


def test_controllers_come_nearer_than_the_network():
    learner = small_guided(passes=3, anchor=0.1)
    learner.round()
    assert learner.taught > learner.reached


def test_a_step_along_the_gradient_moves_the_network():
    told = {"environments": 4, "hidden": (8,), "directions": 12, "updates": 3, "batch": 32}
    learner = GradientSearch(PLANT, TASK, TrainingSettings.of("gradient", **told))
    before = learner.network
    learner.round()
    assert np.abs(learner.network.weights[0] - before.weights[0]).max() > 1e-4


def test_the_gradient_is_that_of_the_cost_of_new_motions():
    """Actions moved along the gradient change the motions' soft minimum by what it says."""
    told = TrainingSettings.of("gradient", environments=4, hidden=(8,), directions=20, noise=0.0)
    learner = GradientSearch(PLANT, TASK, told)
    episodes = TASK.episodes(4, np.random.default_rng(1))
    network = learner.network
    motions = learner.explored(network, episodes)
    linear = learner.linearised(motions)
    weights = learner.weights(motions)
    pull = weights[:, :, None] * np.where(motions.done[:, :, None], motions.errors, 0.0)
    gradient = action_gradients(linear, pull, policy_slopes(network, motions, linear), 100)

    def linear_cost(scale):
        def act(step, rows, states, seen):
            means = network(seen)
            return means + scale * gradient[rows, step].astype(np.float32), means

        again = roll(PLANT, learner.observation, episodes, act, moving=True)
        return (again.tips[:, 1:] * pull).sum()

    scale = 0.02 / np.abs(gradient).max()
    change = (linear_cost(scale) - linear_cost(-scale)) / (2.0 * scale)
    assert change == pytest.approx((gradient**2).sum(), rel=0.05)


@pytest.mark.parametrize("algorithm", ["gps", "fitted_gps", "gradient"])
def test_a_training_in_rounds_is_told_and_ends_alike_where_it_was_stopped(algorithm, tmp_path):
    told = {"environments": 6, "hidden": (8,), "directions": 8, "updates": 2, "batch": 16}
    if algorithm == "fitted_gps":
        told["clusters"] = 2
    settings, shown = TrainingSettings.of(algorithm, samples=2900, **told), []
    judging = Judging(PLANT, TASK, every=50, runs=4)
    whole = train_in_rounds(PLANT, TASK, settings, judging, None, shown.append)
    assert whole.history[-1].samples >= 2900
    assert len(shown) >= len(whole.history) >= 1

    def stop(report):
        if report.samples > 2700:
            raise KeyboardInterrupt

    judging = Judging(PLANT, TASK, 50, 4)
    with pytest.raises(KeyboardInterrupt):
        train_in_rounds(PLANT, TASK, settings, judging, tmp_path, stop)
    again = train_in_rounds(PLANT, TASK, settings, judging, tmp_path)
    assert [each.samples for each in again.history] == [each.samples for each in whole.history]
    assert len(again.history) > 2
    ends = again.policy.network.weights, whole.policy.network.weights
    for ours, theirs in zip(*ends, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    other = settings.model_copy(update={"seed": 1})
    with pytest.raises(UserError, match="other settings"):
        train_in_rounds(PLANT, TASK, other, judging, tmp_path)
    card = load_policy(tmp_path / "policy").card
    assert card == again.policy.card
    assert card.task == "reach"
    assert card.training["judged"]["runs"] == 4
    assert card.training["samples"] > 2560
    if algorithm != "fitted_gps":
        assert card.training["derivative_lanes"] > card.training["samples"] - 2560


def test_robots_whose_inputs_lag_are_refused():
    plant = Plant(load_robot("licher2025"), PlantSettings(intervals=3))
    with pytest.raises(UserError, match="licher2025 does not follow its commands"):
        GuidedSearch(plant, TASK, TrainingSettings.of("gps"))


# --- dynamics fitted to samples: the mixture that is their prior, the fit, the search with them ---


def test_a_mixture_finds_clusters_and_tells_probabilities_as_scipy_does():
    random = np.random.default_rng(0)
    parts = [random.normal((0.0, 0.0), (0.5, 0.1), (600, 2)), random.normal((8, 3), 1.0, (300, 2))]
    found = Mixture.fitted(np.concatenate(parts), 2, random)
    order = np.argsort(found.means[:, 0])
    np.testing.assert_allclose(found.shares[order], [2 / 3, 1 / 3], atol=1e-3)
    np.testing.assert_allclose(found.means[order], [[0.0, 0.0], [8.0, 3.0]], atol=0.15)
    np.testing.assert_allclose(found.covariances[order[0]], np.diag([0.25, 0.01]), atol=0.03)
    points = np.array([[4.0, 1.0], [6.0, 2.5]])
    parts = zip(*vars(found).values(), strict=True)
    weighted = [share * multivariate_normal(*about).pdf(points) for share, *about in parts]
    densities = np.stack(weighted, axis=1)
    exact = densities / densities.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.belongs(points), exact, rtol=1e-6)
    mean, covariance = (each[0] for each in found.around(points[None, :1]))
    share = exact[0]
    np.testing.assert_allclose(mean, share @ found.means)
    parts = zip(share, found.means, found.covariances, strict=True)
    second = sum(s * (c + np.outer(m, m)) for s, m, c in parts)
    np.testing.assert_allclose(covariance, second - np.outer(mean, mean), atol=1e-9)


@pytest.mark.parametrize(("samples", "tolerance"), [(4, 0.05), (400, 0.02)])
def test_dynamics_are_found_from_few_samples_with_a_prior_of_many(samples, tolerance):
    random = np.random.default_rng(1)
    a, b = 0.6 * random.normal(size=(3, 3)), random.normal(size=(3, 2))
    before, actions = random.normal(size=(3000, 3)), 0.5 * random.normal(size=(3000, 2))
    after = before @ a.T + actions @ b.T + 0.01 * random.normal(size=(3000, 3))
    rows = np.concatenate((before, actions, after), axis=1)
    mixture = Mixture.fitted(rows[:1000], 3, random)
    own = rows[1000 : 1000 + 2 * samples].reshape(1, samples, 2, -1)
    done = np.ones((1, samples, 2), bool)
    done[0, :, 1] = False
    transition, control = fitted_steps(own, done, mixture, 3)
    np.testing.assert_allclose(transition[0, 0], a, atol=tolerance)
    np.testing.assert_allclose(control[0, 0], b, atol=tolerance)
    assert not transition[0, 1].any()  # a step that nobody took


def test_a_fitted_search_takes_no_lanes_and_its_siblings_share_goals():
    told = {"environments": 6, "siblings": 3, "updates": 2, "batch": 16, "hidden": (8,)}
    settings = TrainingSettings.of("fitted_gps", **told, directions=8, clusters=2)
    learner = FittedSearch(PLANT, TASK, settings)
    goals = learner.episodes().goals[:, 0]
    assert (goals[:3] == goals[0]).all()
    assert (goals[0] != goals[3]).all()
    before = learner.network
    learner.round()
    assert learner.lanes == 0
    assert np.abs(learner.network.weights[0] - before.weights[0]).max() > 1e-4
    with pytest.raises(ValidationError, match="must be a multiple of 6, the siblings"):
        TrainingSettings.of("fitted_gps", environments=20)
