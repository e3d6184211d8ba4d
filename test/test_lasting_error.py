"""The covariance of an error that lasts, and that it makes an estimate's own honest."""

from dataclasses import replace

import numpy as np
import pytest
from test_model_estimator import Swing, SwingPlant

from softcr_estimation import ModelEstimator, ModelEstimatorSettings
from softcr_estimation.filters.lasting_error import MEMORY, LastingError
from softcr_models.model import TIP

NOISE = 2e-4  # [m]


def of(differences):
    """(3, 3) after all of them."""
    error = LastingError()
    for each in differences:
        error.add(each)
    return error.covariance


def noises(count, seed):
    return NOISE * np.random.default_rng(seed).standard_normal((count, 3))


def test_noise_alone_is_next_to_no_error():
    """Of 350 products the mean has a deviation of 4 % of the variance, its eigenvalues up to 3."""
    found = [np.linalg.eigvalsh(of(noises(2000, seed))) for seed in range(20)]
    assert np.max(found) < 0.2 * NOISE**2
    assert np.min(found) > -1e-18


@pytest.mark.parametrize("count", [400, pytest.param(2000, marks=pytest.mark.later)])
def test_what_may_be_missed_is_as_large_as_the_deviation_of_the_mean(count):
    """In one direction, so that the mean is a number, whose positive part is 0.4 deviations on the
    average; its deviation comes from the means of many runs."""
    runs = NOISE * np.random.default_rng(4).standard_normal((400, count))
    kept = (1.0 - 1.0 / MEMORY) ** np.arange(count - 1)[::-1]
    means = (runs[:, 1:] * runs[:, :-1]) @ kept / kept.sum()
    found = [of(np.outer(each, [1.0, 0.0, 0.0]))[0, 0] for each in runs[:150]]
    assert np.mean(found) == pytest.approx(1.4 * means.std(), rel=0.1)


def test_a_constant_error_is_found_in_size_and_direction_and_one_that_swings_by_its_mean_square():
    error = np.array([1e-4, -2e-4, 0.5e-4])
    found = of(error + noises(2000, 1))
    np.testing.assert_allclose(found, np.outer(error, error), atol=0.25 * NOISE**2)
    phase = 2.0 * np.pi * np.arange(2000) / 70.0
    error = 3e-4 * np.column_stack((np.sin(phase), np.zeros(2000), np.cos(phase)))
    found = of(error + noises(2000, 2))
    np.testing.assert_allclose(np.diag(found), [4.5e-8, 0.0, 4.5e-8], atol=0.25 * NOISE**2)


def test_the_first_measurements_tell_next_to_nothing():
    error = LastingError()
    assert not error.covariance.any()
    for each in 1e-3 + noises(3, 3):
        error.add(each)
    assert np.trace(error.covariance) < 0.1 * 3e-6
    error.restart()
    assert not error.covariance.any()


class KnownSwing(Swing):
    """Takes its length and tilt for known."""

    parameters = tuple(replace(each, noise=0.0, deviation=1e-6) for each in Swing.parameters)


def sigmas(length, lasting):
    """Root mean square of the tip's error along the swing's way, in its standard deviations."""
    estimator = ModelEstimator(KnownSwing(), ModelEstimatorSettings(state_noise=1e-2))
    plant, found = SwingPlant(length, 0.0), []
    estimator.start(plant.read(0.0), 0.0)
    for tick in range(630):
        inputs, samples, stamp = plant.advance()
        estimate = estimator.update(inputs, {TIP: samples[TIP][:, 3]}, stamp)
        covariance = estimate.tip_position_covariance
        if not lasting:
            covariance = covariance - estimate.tip_lasting_covariance
        along = np.cross([0.0, 1.0, 0.0], plant.pose[:, 3]) / 0.2
        if tick >= 280:
            apart = along @ (estimate.tip_position - plant.pose[:, 3])
            found.append(apart / np.sqrt(along @ covariance @ along))
    return float(np.sqrt(np.mean(np.square(found))))


def test_an_estimate_is_as_good_as_it_says_though_its_model_is_wrong():
    """The plant is 5 % longer than the model, and nothing of that is estimated but the offset of
    the tip, which follows it late."""
    assert sigmas(0.21, lasting=False) > 2.5
    assert 0.7 < sigmas(0.21, lasting=True) < 1.2
    assert sigmas(0.208, lasting=True) < 1.2
    assert 0.7 < sigmas(0.2, lasting=True) < 1.2  # a right model's says little else
