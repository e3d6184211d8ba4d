"""The filter behind the base sensor: Mehl et al., Sec. II-C."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from softcr_models import load_robot
from softcr_papers.mehl2024.cc_estimator import CcEstimator, CcEstimatorError, CcEstimatorSettings
from softcr_papers.mehl2024.dynamics import ConstantCurvatureModel

DT, HEIGHT = 0.005, 0.024


@pytest.fixture(scope="module")
def model():
    return ConstantCurvatureModel.of_robot(load_robot("licher2025"))


def pressures_at(times):
    """(T, 3) [Pa] smooth, with a constant part so that the arm is bent."""
    phases = np.array([0.0, 1.0, 2.5]) + 2 * np.pi * np.multiply.outer(times, [0.5, 0.7, 0.6])
    return np.array([1e4, 6e3, 4e3]) * (1.0 + np.sin(phases))


def true_motion(model, start, seconds=2.0):
    """Times (T,), pressures (T, 3), states (T, 6), wrenches on the sensor (T, 6): exact."""
    times = np.arange(round(seconds / DT) + 1) * DT

    def slope(t, state):
        acceleration, _ = model.motion(state[:3], state[3:], pressures_at(t))
        return np.concatenate([state[3:], acceleration])

    states = solve_ivp(slope, (0.0, times[-1]), start, t_eval=times, rtol=1e-9, atol=1e-11).y.T
    pressures = pressures_at(times)
    _, reactions = model.motion(states[:, :3], states[:, 3:], pressures)
    wrenches = -reactions
    wrenches[:, 3:] += np.cross([0.0, 0.0, HEIGHT], wrenches[:, :3])
    return times, pressures, states, wrenches


def estimates(estimator, times, pressures, wrenches):
    estimator.start(times[0])
    samples = zip(pressures[1:], wrenches[1:], times[1:], strict=True)
    return [estimator.update(*sample) for sample in samples]


STARTS = {
    "straight": np.zeros(6),
    "bent": np.array([0.02, -0.015, 0.01, 0.0, 0.0, 0.0]),
    "far": np.array([-0.03, 0.03, 0.0, 0.0, 0.0, 0.0]),
    "fast": np.array([0.01, 0.01, 0.0, -0.2, 0.2, 0.1]),
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS.keys())
@pytest.mark.parametrize("kind", ["ukf", "ekf"])
def test_finds_the_motion_from_the_base_alone(model, kind, start):
    times, pressures, states, wrenches = true_motion(model, start)
    estimator = CcEstimator(model, HEIGHT, CcEstimatorSettings(filter=kind))
    last = estimates(estimator, times, pressures, wrenches)[-1]
    tip = model.tip(states[-1, :3]) + np.array([0.0, 0.0, HEIGHT])
    np.testing.assert_allclose(last.tip_position, tip, atol=5e-4)
    np.testing.assert_allclose(last.coordinates, states[-1, :3], atol=2e-4)
    velocity = model.tip_velocity(states[-1, :3], states[-1, 3:])
    np.testing.assert_allclose(last.tip_velocity, velocity, atol=1e-2)


@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_finds_the_stiffness(model, factor):
    soft = model.replace(bending_stiffness=factor * model.bending_stiffness)
    times, pressures, _, wrenches = true_motion(soft, np.zeros(6), 4.0)
    estimator = CcEstimator(model, HEIGHT)
    last = estimates(estimator, times, pressures, wrenches)[-1]
    assert last.bending_stiffness == pytest.approx(soft.bending_stiffness, rel=0.02)


def test_innovations_are_as_large_as_the_noises_say(model):
    """On a truth that is (8) with the settings' noises, mean NIS of 6 numbers, 1500 ticks, seed 0.

    Its standard error is sqrt(2 6 / 1500) = 0.09.
    """
    settings = CcEstimatorSettings()
    walk = np.repeat([settings.coordinate_noise, settings.rate_noise], 3) * np.sqrt(DT)
    sensor = np.repeat([settings.force_noise, settings.moment_noise], 3)
    random = np.random.default_rng(0)
    estimator = CcEstimator(model, 0.0, settings)
    estimator.start(0.0)
    q, rate, nis = np.zeros(3), np.zeros(3), []
    for tick in range(1, 1701):
        pressures = pressures_at(tick * DT)
        noise = random.normal(size=6) * walk
        new = q + DT * rate
        rate = rate + DT * model.motion(new, rate, pressures)[0] + noise[3:]
        q = new + noise[:3]
        wrench = -model.motion(q, rate, pressures)[1] + random.normal(size=6) * sensor
        nis.append(estimator.update(pressures, wrench, tick * DT).nis)
    assert np.mean(nis[200:]) == pytest.approx(6.0, abs=0.4)


def test_the_step_is_semi_implicit_euler(model):
    """(8) by hand, for a filter so sure of its state that all sigma points coincide."""
    tiny = dict.fromkeys(("coordinate_deviation", "rate_deviation"), 1e-12)
    settings = CcEstimatorSettings(
        **tiny, stiffness_deviation=1e-9, coordinate_noise=0.0, rate_noise=0.0, stiffness_noise=0.0
    )
    estimator = CcEstimator(model, settings=settings)
    estimator.start(0.0)
    pressures = np.array([2e4, 1e4, 0.0])
    q, rate = np.zeros(3), np.zeros(3)
    for tick in range(1, 20):
        estimate = estimator.update(pressures, None, tick * DT)
        q = q + DT * rate
        rate = rate + DT * model.motion(q, rate, pressures)[0]
        np.testing.assert_allclose(estimate.coordinates, q, atol=1e-9)
        np.testing.assert_allclose(estimate.rates, rate, atol=1e-7)


def test_long_times_are_cut_into_steps_that_are_stable(model):
    single, many = CcEstimator(model), CcEstimator(model)
    single.start(0.0)
    many.start(0.0)
    pressures = np.array([2e4, 0.0, 0.0])
    once = single.update(pressures, None, 4 * DT)
    for tick in range(1, 5):
        step_by_step = many.update(pressures, None, tick * DT)
    np.testing.assert_allclose(once.coordinates, step_by_step.coordinates, atol=1e-12)
    np.testing.assert_allclose(once.covariance, step_by_step.covariance, atol=1e-9)
    for tick in range(1, 20):
        rest = single.update(pressures, None, 0.02 + 0.5 * tick)
    assert np.abs(rest.rates).max() < 0.1


def test_one_wild_sample_does_no_harm(model):
    times, pressures, states, wrenches = true_motion(model, np.zeros(6))
    wrenches[200] += [5.0, -5.0, 5.0, 1.0, 1.0, -1.0]
    found = estimates(CcEstimator(model, HEIGHT), times, pressures, wrenches)
    assert found[199].gated
    assert not found[-1].gated
    np.testing.assert_allclose(found[-1].coordinates, states[-1, :3], atol=2e-4)


def test_covariance_of_the_tip_follows_from_that_of_the_state(model):
    estimator = CcEstimator(model, HEIGHT)
    estimator.start(0.0)
    estimate = estimator.update(np.array([2e4, 0.0, 0.0]), None, 0.05)
    _, jacobian = model.tip_and_jacobian(estimate.coordinates)
    expected = jacobian @ estimate.covariance[:3, :3] @ jacobian.T
    np.testing.assert_allclose(estimate.tip_position_covariance, expected, atol=1e-15)
    assert np.linalg.eigvalsh(estimate.covariance).min() > 0.0


def test_bad_input_is_refused_and_leaves_the_estimator_as_it_was(model):
    estimator = CcEstimator(model)
    good = np.zeros(3), np.array([0.0, 0.0, -1.5, 0.0, 0.0, 0.0])
    with pytest.raises(CcEstimatorError, match="before start"):
        estimator.update(*good, 0.0)
    estimator.start(1.0)
    with pytest.raises(CcEstimatorError, match=r"wrench: .* must be \(6,\) finite numbers"):
        estimator.update(good[0], np.full(6, np.nan), 1.005)
    with pytest.raises(CcEstimatorError, match=r"pressures: .* must be \(3,\) finite numbers"):
        estimator.update(np.zeros(2), good[1], 1.005)
    with pytest.raises(CcEstimatorError, match=r"stamp: 1\.0 s after 1\.0 s"):
        estimator.update(*good, 1.0)
    with pytest.raises(CcEstimatorError, match="by at most 2"):
        estimator.update(*good, 4.0)
    fresh = CcEstimator(model)
    fresh.start(1.0)
    found, expected = (e.update(*good, 1.005) for e in (estimator, fresh))
    np.testing.assert_array_equal(found.coordinates, expected.coordinates)
