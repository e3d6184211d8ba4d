"""A filter that finds that it is wrong: the colour of its innovations, and what it then opens."""

import numpy as np
import pytest
from test_model_estimator import DT, Swing, SwingPlant

from softcr_estimation import ModelEstimator, ModelEstimatorSettings
from softcr_estimation.filters.reopening import SLOW_WINDOW, InnovationColour
from softcr_models.model import TIP, Parameter


def coloured(share, count, rng):
    """(count, 3) of variance 1, each `share` of the one before it."""
    values = rng.standard_normal((count, 3))
    for k in range(1, count):
        values[k] = share * values[k - 1] + np.sqrt(1.0 - share**2) * values[k]
    return values


def judged(innovations):
    """(T,) opening by the fast and the slow window, and correlation, once both are full; whether a
    lasting error is told, and its size."""
    colour, found = InnovationColour(), []
    for each in innovations:
        colour.add(each)
        found.append((colour.fast, colour.slow, colour.correlation, colour.lasts, colour.lasting))
    fast, slow, correlation, told, size = np.array(found, float).T
    return *(each[SLOW_WINDOW:] for each in (fast, slow, correlation)), told, size


@pytest.mark.parametrize("deviation", [1.0, 5.0, 20.0])
def test_white_innovations_of_any_size_open_next_to_nothing(deviation):
    """Five minutes at 70 Hz. Both ramps begin nearly 4 deviations of a mean of white ones away."""
    innovations = deviation * np.random.default_rng(1).standard_normal((21_000, 3))
    fast, slow, correlation, told, size = judged(innovations)
    assert np.mean(fast > 0.0) < 2e-3
    assert np.mean(slow > 0.0) < 2e-3
    assert max(fast.max(), slow.max()) < 0.3
    assert abs(correlation.mean()) < 0.01
    assert told.mean() < 1e-3  # a lasting error
    assert abs(size[-1]) < 0.1


@pytest.mark.parametrize("share", [0.4, 0.8])
def test_the_correlation_is_that_of_neighbouring_innovations(share):
    """Of an autoregression it is its share; the cut of the products takes a part of it."""
    _, _, correlation, *_ = judged(coloured(share, 10_000, np.random.default_rng(2)))
    assert 0.7 * share < correlation.mean() < share


def test_an_event_opens_the_fast_finding_and_leaves_the_slow_one_alone():
    innovations = np.random.default_rng(3).standard_normal((400, 3))
    innovations[200:208] += 8.0
    fast, slow, *_ = judged(innovations)
    assert fast.max() == 1.0
    assert slow.max() < 0.05


def test_a_lasting_error_opens_the_slow_finding():
    innovations = np.random.default_rng(4).standard_normal((400, 3))
    innovations[200:] += 1.2
    fast, slow, *_ = judged(innovations)
    assert slow.max() == 1.0
    assert fast.max() < 1.0


def test_a_small_lasting_error_is_told():
    """It opens nothing: an autoregression of 0.25, ten seconds."""
    *_, told, size = judged(coloured(0.25, 700, np.random.default_rng(5)))
    assert told[210:].mean() > 0.9
    assert 0.15 < size[-1] < 0.3


class OpenSwing(Swing):
    """The swing, whose length may be opened."""

    parameters = (
        Parameter("length", "m", 0.2, 0.1, 0.4, noise=1e-4, deviation=0.01, opened=0.3),
        Parameter("tilt", "rad", 0.0, -0.3, 0.5, "linear", noise=1e-3, deviation=0.1, scale=0.1,
                  opened=1.0, opens="slow"),
    )  # fmt: skip


class ChangedPlant(SwingPlant):
    """After a second its length is another one."""

    def __init__(self, changed, **settings):
        super().__init__(0.2, 0.0, **settings)
        self.changed = changed

    def advance(self):
        if self.time > 1.0:
            self.parameters[0, 0] = self.changed
        return super().advance()


def run(plant, ticks, **settings):
    """Every estimate."""
    numbers = ModelEstimatorSettings(state_noise=1e-3, **settings)
    estimator = ModelEstimator(OpenSwing(), numbers)
    estimator.start(plant.read(0.0), 0.0)
    found = []
    for _ in range(ticks):
        inputs, samples, stamp = plant.advance()
        found.append(estimator.update(inputs, {TIP: samples[TIP][:, 3]}, stamp))
    return found


@pytest.mark.parametrize("kind", ["ukf", "ekf"])
def test_a_parameter_that_changes_is_found_again(kind):
    change, told = 0.26, {}
    for reopening in (True, False):
        found = run(ChangedPlant(change), 245, filter=kind, reopening=reopening)
        told[reopening] = abs(found[-1].parameters["length"] / change - 1.0)
        after = [each for each in found if each.stamp > 1.0 + 3 * DT]
        assert any(each.is_opened for each in after) == reopening
        assert any("innovations are coloured" in " ".join(each.warnings()) for each in after)
    assert told[True] < 0.01
    assert told[False] > 5.0 * told[True]


def test_without_an_error_the_same_bits_come_out():
    found = {flag: run(SwingPlant(0.2, 0.0), 105, reopening=flag) for flag in (True, False)}
    for each, other in zip(found[True], found[False], strict=True):
        assert not each.is_opened
        assert each.warnings() == []
        np.testing.assert_array_equal(each.state, other.state)
        np.testing.assert_array_equal(each.covariance, other.covariance)


def test_a_new_start_closes_what_was_opened():
    estimator = ModelEstimator(OpenSwing(), ModelEstimatorSettings(state_noise=1e-3))
    plant = ChangedPlant(0.26)
    estimator.start(plant.read(0.0), 0.0)
    while plant.time < 1.2:
        inputs, samples, stamp = plant.advance()
        estimate = estimator.update(inputs, {TIP: samples[TIP][:, 3]}, stamp)
    assert estimate.is_opened
    fresh = estimator.start(plant.read(plant.time), plant.time)
    assert (fresh.opened_fast, fresh.opened_slow, fresh.innovation_correlation) == (0.0, 0.0, 0.0)


class LostPlant(SwingPlant):
    """From the first second to the fifth its tilt is beyond what the filter may estimate."""

    def advance(self):
        self.parameters[0, 1] = 0.65 if 1.0 < self.time < 5.0 else 0.0
        return super().advance()


@pytest.mark.parametrize("kind", ["ukf", "ekf"])
def test_a_filter_that_opened_in_vain_falls_back_says_so_and_opens_again(kind):
    found = run(LostPlant(0.2, 0.0), 980, filter=kind)
    first = next(each for each in found if each.fallbacks)
    assert 1.0 < first.stamp < 3.5
    assert first.is_safe
    assert not first.is_opened
    assert first.parameters == {"length": 0.2, "tilt": 0.0}
    assert first.parameters_std["length"] == pytest.approx(0.2 * 0.01)
    assert first.parameters_std["tilt"] < 1e-6  # slow: structure, which is left alone
    lost = [each for each in found if 1.3 < each.stamp < 5.0]
    assert all(each.warnings() for each in lost)
    assert any("fell back to safe parameters" in " ".join(each.warnings()) for each in lost)
    assert not found[-1].is_safe
    assert found[-1].parameters_std["tilt"] > 1e-4
    assert found[-1].warnings() == []


def test_who_does_not_open_does_not_fall_back():
    found = run(LostPlant(0.2, 0.0), 280, reopening=False)
    assert not any(each.fallbacks or each.is_safe or each.is_opened for each in found)
