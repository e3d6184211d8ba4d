import numpy as np
import pytest
from estimation_models import (
    KalmanFilter,
    random_linear_system,
    seven_state_measure,
    seven_state_predict,
)
from scipy.stats import chi2

from softcr_estimation import ExtendedFilter

DT = 1 / 70
SEVEN_NOISE = np.array([0.05, 0.05, 0.05, 0.3, 0.3, 0.3, 0.02])
SEVEN_SCALE = np.array([0.5, 0.5, 0.5, 5.0, 5.0, 5.0, 1.0])
SEVEN_COVARIANCE = np.diag(np.array([0.05, 0.05, 0.05, 0.3, 0.3, 0.3, 0.1]) ** 2)
TIP_NOISE = np.array([1e-3, 1e-3, 0.02])


def seven_state_filter(**options):
    options = {"scale": SEVEN_SCALE, **options}
    extended = ExtendedFilter(seven_state_predict, seven_state_measure, SEVEN_NOISE, **options)
    extended.start(np.zeros(7), SEVEN_COVARIANCE)
    return extended


def drive(k):
    return 2000.0 * np.sin(2 * np.pi * 0.7 * DT * k + np.array([0.0, 2.0, 4.0]))


def complex_step_jacobian(function, x):
    columns = [function((x + 1e-30j * row)[None])[0].imag / 1e-30 for row in np.eye(x.size)]
    return np.array(columns).T


def test_equals_the_linear_kalman_filter():
    rng = np.random.default_rng(3)
    transition, measurement, process, noise = random_linear_system(rng)
    extended = ExtendedFilter(
        lambda points, inputs, dt: points @ transition.T + inputs,
        lambda points: points @ measurement.T,
        process,
        gate_probability=1 - 1e-15,
        relative_step=0.1,
    )
    mean, covariance = rng.standard_normal(4), np.diag([1.0, 2.0, 0.5, 1.5])
    extended.start(mean, covariance)
    kalman = KalmanFilter(transition, measurement, process, noise, mean, covariance)
    truth = mean + rng.standard_normal(4)
    for k in range(200):
        dt = rng.uniform(0.005, 0.03)
        inputs = rng.standard_normal(4)
        truth = transition @ truth + inputs + np.sqrt(dt) * process * rng.standard_normal(4)
        extended.predict(inputs, dt)
        kalman.predict(inputs, dt)
        if k % 3:
            z = measurement @ truth + noise * rng.standard_normal(2)
            assert extended.update(z, noise).nis == pytest.approx(
                kalman.update(z), rel=1e-7, abs=1e-9
            )
        np.testing.assert_allclose(extended.mean, kalman.mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(extended.covariance, kalman.covariance, rtol=0, atol=1e-9)
    assert extended.repairs == 0


def test_covariances_are_those_of_exact_jacobians():
    extended = seven_state_filter(relative_step=1e-7)
    x = np.array([0.3, 0.2, -0.4, 1.0, -2.0, 0.5, 0.1])
    extended.start(x, SEVEN_COVARIANCE)
    jacobian = complex_step_jacobian(lambda p: seven_state_predict(p, drive(7), DT), x)
    expected = jacobian @ SEVEN_COVARIANCE @ jacobian.T + np.diag(SEVEN_NOISE**2 * DT)
    extended.predict(drive(7), DT)
    np.testing.assert_allclose(
        extended.mean, seven_state_predict(x[None], drive(7), DT)[0], atol=1e-14
    )
    np.testing.assert_allclose(extended.covariance, expected, atol=1e-8 * expected.max())

    x, before = extended.mean.copy(), extended.covariance
    H = complex_step_jacobian(seven_state_measure, x)
    moments = extended.observe()
    np.testing.assert_allclose(moments.covariance, H @ before @ H.T, atol=1e-8)
    total = H @ before @ H.T + np.diag(TIP_NOISE**2)
    gain = before @ H.T @ np.linalg.inv(total)
    innovation = 0.5 * TIP_NOISE
    extended.update(moments.mean + innovation, TIP_NOISE)
    np.testing.assert_allclose(extended.mean - x, gain @ innovation, atol=1e-7)
    np.testing.assert_allclose(extended.covariance, before - gain @ total @ gain.T, atol=1e-8)


@pytest.mark.parametrize(("precision", "bound"), [(float, 1e-4), (np.float32, 5e-3)])
def test_the_usual_step_suits_models_in_either_precision(precision, bound):
    def predict(points, inputs, dt):
        return seven_state_predict(points, inputs, dt).astype(precision).astype(float)

    x = np.array([0.3, 0.2, -0.4, 1.0, -2.0, 0.5, 0.1])
    jacobian = complex_step_jacobian(lambda p: seven_state_predict(p, drive(7), DT), x)
    expected = jacobian @ SEVEN_COVARIANCE @ jacobian.T + np.diag(SEVEN_NOISE**2 * DT)
    extended = ExtendedFilter(predict, seven_state_measure, SEVEN_NOISE, scale=SEVEN_SCALE)
    extended.start(x, SEVEN_COVARIANCE)
    extended.predict(drive(7), DT)
    np.testing.assert_allclose(extended.covariance, expected, atol=bound * expected.max())


def test_the_squared_error_is_what_the_covariance_says():
    runs, total, innovations = 40, 0.0, []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        extended = seven_state_filter()
        truth = rng.multivariate_normal(np.zeros(7), SEVEN_COVARIANCE)
        for k in range(50):
            truth = seven_state_predict(truth[None], drive(k), DT)[0]
            truth += np.sqrt(DT) * SEVEN_NOISE * rng.standard_normal(7)
            extended.predict(drive(k), DT)
            z = seven_state_measure(truth[None])[0] + TIP_NOISE * rng.standard_normal(3)
            innovations.append(extended.update(z, TIP_NOISE).nis)
        error = truth - extended.mean
        total += error @ np.linalg.solve(extended.covariance, error)
    low, high = chi2.ppf([0.001, 0.999], 7 * runs)
    assert low < total < high
    low, high = chi2.ppf([0.001, 0.999], 3 * len(innovations))
    assert low < sum(innovations) < high


def test_one_call_holds_the_mean_and_all_perturbed_points():
    shapes = []

    def predict(points, inputs, dt):
        shapes.append(points.shape)
        return 0.9 * points

    extended = ExtendedFilter(predict, lambda points: points[:, :3], np.full(73, 0.1))
    extended.start(np.zeros(73), np.eye(73))
    extended.predict(None, DT)
    assert shapes == [(74, 73)]


def test_an_outlier_moves_the_state_by_a_bounded_step():
    extended = seven_state_filter()
    extended.predict(drive(0), DT)
    mean, covariance = extended.mean.copy(), extended.covariance
    correction = extended.update(np.array([5.0, 5.0, 50.0]), TIP_NOISE)
    step = extended.mean - mean
    assert correction.gated
    assert 0 < step @ np.linalg.solve(covariance, step) <= chi2.ppf(0.9999, 3) * (1 + 1e-9)


@pytest.mark.parametrize("lost", [[0], [4], [4, 7], list(range(8))])
def test_lost_points_are_replaced_and_counted(lost):
    def predict(points, inputs, dt):
        images = seven_state_predict(points, inputs, dt)
        images[lost if len(points) == 8 else slice(None)] = np.nan
        return images

    extended = ExtendedFilter(predict, seven_state_measure, SEVEN_NOISE, scale=SEVEN_SCALE)
    extended.start(np.zeros(7), SEVEN_COVARIANCE)
    extended.predict(drive(0), DT)
    assert extended.repairs == len(lost)
    assert np.isfinite(extended.mean).all()
    assert np.linalg.eigvalsh(extended.covariance).min() > 0


def test_the_derivative_at_a_bound_is_taken_inside():
    # Beyond the bound the model would have another slope.
    def predict(points, inputs, dt):
        return np.where(points > 0.0, 100.0 * points, 2.0 * points)

    bounds = (np.array([-1.0]), np.array([0.0]))
    extended = ExtendedFilter(predict, lambda points: points, np.array([0.0]), bounds=bounds)
    extended.start(np.array([0.0]), np.eye(1))
    extended.predict(None, DT)
    assert extended.covariance[0, 0] == pytest.approx(4.0)


@pytest.mark.parametrize("options", [{"relative_step": 0.0}, {"scale": -1.0}])
def test_bad_steps_are_refused(options):
    with pytest.raises(ValueError, match="scale, relative_step"):
        seven_state_filter(**options)
