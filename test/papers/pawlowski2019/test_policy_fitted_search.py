"""Dynamics fitted to samples: the mixture that is their prior, the fit, the search with them."""

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import multivariate_normal

from softcr_models import load_robot
from softcr_papers.pawlowski2019.learning.fitted_search import FittedSearch, Mixture, fitted_steps
from softcr_papers.pawlowski2019.learning.goals import BoxGoals
from softcr_papers.pawlowski2019.learning.plant import Plant
from softcr_papers.pawlowski2019.learning.plant_settings import PlantSettings
from softcr_papers.pawlowski2019.learning.tasks import Reaching
from softcr_papers.pawlowski2019.learning.training_settings import TrainingSettings
from softcr_papers.pawlowski2019.reference.workspace import Workspace

R, M = 3, 2


def steps_of_a_linear_system(count, random, noise=0.01):
    """(count, 2 R + M) rows of coordinates, actions and coordinates after, and A, B."""
    a, b = 0.6 * random.normal(size=(R, R)), random.normal(size=(R, M))
    before, actions = random.normal(size=(count, R)), 0.5 * random.normal(size=(count, M))
    after = before @ a.T + actions @ b.T + noise * random.normal(size=(count, R))
    return np.concatenate((before, actions, after), axis=1), a, b


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
    rows, a, b = steps_of_a_linear_system(3000, random)
    mixture = Mixture.fitted(rows[:1000], 3, random)
    own = rows[1000 : 1000 + 2 * samples].reshape(1, samples, 2, -1)
    done = np.ones((1, samples, 2), bool)
    done[0, :, 1] = False
    transition, control = fitted_steps(own, done, mixture, R)
    np.testing.assert_allclose(transition[0, 0], a, atol=tolerance)
    np.testing.assert_allclose(control[0, 0], b, atol=tolerance)
    assert not transition[0, 1].any()  # a step that nobody took


def test_a_fitted_search_takes_no_lanes_and_its_siblings_share_goals():
    robot = load_robot("tendon_arm").replace(gravity=0.0, gravity_subintervals=1)
    plant = Plant(robot, PlantSettings(intervals=3))
    task = Reaching(plant, BoxGoals(Workspace(0.1, 12.5, (-0.022, 0.018))), steps=6)
    told = {"environments": 6, "siblings": 3, "updates": 2, "batch": 16, "hidden": (8,)}
    settings = TrainingSettings.of("fitted_gps", **told, directions=8, clusters=2)
    learner = FittedSearch(plant, task, settings)
    goals = learner.episodes().goals[:, 0]
    assert (goals[:3] == goals[0]).all()
    assert (goals[0] != goals[3]).all()
    before = learner.network
    learner.round()
    assert learner.lanes == 0
    assert np.abs(learner.network.weights[0] - before.weights[0]).max() > 1e-4


def test_siblings_that_do_not_share_a_round_are_refused():
    with pytest.raises(ValidationError, match="must be a multiple of 6, the siblings"):
        TrainingSettings.of("fitted_gps", environments=20)
