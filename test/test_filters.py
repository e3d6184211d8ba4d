"""What every filter promises, and what the unscented and the extended one promise alone."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.models import seven_state_measure, seven_state_predict
from scipy.stats import chi2

from softcr_estimation import ExtendedFilter, UnscentedFilter
from softcr_estimation.filters.square_root import downdated, factor_of, factor_of_sum

TABLE_VI = {"alpha": 0.1, "beta": 1.097, "kappa": 10.13}
SEVEN_NOISE = np.array([0.05, 0.05, 0.05, 0.3, 0.3, 0.3, 0.02])
SEVEN_SCALE = np.array([0.5, 0.5, 0.5, 5.0, 5.0, 5.0, 1.0])
SEVEN_COVARIANCE = np.diag(np.array([0.1, 0.1, 0.1, 0.5, 0.5, 0.5, 0.2]) ** 2)
NARROW = np.diag(np.array([0.05, 0.05, 0.05, 0.3, 0.3, 0.3, 0.1]) ** 2)  # nearly linear in it
TIP_NOISE = np.array([1e-3, 1e-3, 0.02])
DT = 1 / 70


@pytest.fixture(params=["ukf", "ekf"])
def kind(request):
    return request.param


def filter_of(kind, predict, measure, noise, **options):
    if kind == "ukf":
        return UnscentedFilter(predict, measure, noise, **options)
    return ExtendedFilter(predict, measure, noise, **options)


def seven_state_filter(kind="ukf", predict=seven_state_predict, measure=seven_state_measure,
                       **options):  # fmt: skip
    if kind == "ekf":
        options = {"scale": SEVEN_SCALE, **options}
    made = filter_of(kind, predict, measure, SEVEN_NOISE, **options)
    made.start(np.zeros(7), SEVEN_COVARIANCE if kind == "ukf" else NARROW)
    return made


def drive(k):
    return 2000.0 * np.sin(2 * np.pi * 0.7 * DT * k + np.array([0.0, 2.0, 4.0]))


# --- every filter -------------------------------------------------------------------------------


def test_the_squared_error_is_what_the_covariance_says(kind):
    """NEES of 40 seeded runs, each with truth and noises drawn from what the filter assumes."""
    runs, total, innovations = 40, 0.0, []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        made = seven_state_filter(kind)
        truth = rng.multivariate_normal(np.zeros(7), made.covariance)
        for k in range(50):
            truth = seven_state_predict(truth[None], drive(k), DT)[0]
            truth += np.sqrt(DT) * SEVEN_NOISE * rng.standard_normal(7)
            made.predict(drive(k), DT)
            z = seven_state_measure(truth[None])[0] + TIP_NOISE * rng.standard_normal(3)
            innovations.append(made.update(z, TIP_NOISE).nis)
        error = truth - made.mean
        total += error @ np.linalg.solve(made.covariance, error)
    low, high = chi2.ppf([0.001, 0.999], 7 * runs)
    assert low < total < high
    low, high = chi2.ppf([0.001, 0.999], 3 * len(innovations))
    assert low < sum(innovations) < high


@pytest.mark.parametrize("size", [7, 73])
def test_one_call_advances_all_points(kind, size):
    batches = []

    def predict(points, inputs, dt):
        batches.append((points.shape, inputs, dt))
        return 0.9 * points

    made = filter_of(kind, predict, lambda points: points[:, :3], np.full(size, 0.1))
    made.start(np.zeros(size), np.eye(size))
    made.predict("inputs", DT)
    made.update(np.ones(3), np.ones(3))
    count = 2 * size + 1 if kind == "ukf" else size + 1
    assert batches == [((count, size), "inputs", DT)]


def test_an_outlier_moves_the_state_by_a_bounded_step_and_no_other_measurement_is_gated(kind):
    ordinary, made = seven_state_filter(kind), seven_state_filter(kind)
    ordinary.predict(drive(0), DT)
    assert not ordinary.update(ordinary.observe().mean + 0.5 * TIP_NOISE, TIP_NOISE).gated
    made.predict(drive(0), DT)
    mean, covariance = made.mean.copy(), made.covariance
    correction = made.update(np.array([5.0, 5.0, 50.0]), TIP_NOISE)
    step = made.mean - mean
    gate = chi2.ppf(0.9999, 3)
    assert correction.gated
    assert correction.nis > 100 * gate
    assert 0 < step @ np.linalg.solve(covariance, step) <= gate * (1 + 1e-9)
    assert np.linalg.eigvalsh(made.covariance).min() > 0


def test_a_confident_filter_that_is_wrong_finds_back(kind):
    made = seven_state_filter(kind)
    made.start(np.zeros(7), 1e-8 * np.eye(7))
    truth = np.array([[0.8, 0.6, 0.4, 0.0, 0.0, 0.0, 0.0]])
    gated = []
    for _ in range(140):
        truth = seven_state_predict(truth, np.zeros(3), DT)
        made.predict(np.zeros(3), DT)
        gated.append(made.update(seven_state_measure(truth)[0], TIP_NOISE).gated)
    assert all(gated[:3])
    assert not any(gated[-35:])
    np.testing.assert_allclose(made.mean[:3], truth[0, :3], atol=0.02)


def test_points_and_means_stay_in_their_bounds(kind):
    seen = []

    def predict(points, inputs, dt):
        seen.append(points[:, 1].copy())
        return points

    bounds = (np.array([-np.inf, -0.5]), np.array([np.inf, 0.7]))
    made = filter_of(kind, predict, lambda points: points, np.ones(2), bounds=bounds)
    made.start(np.array([9.0, 3.0]), np.eye(2))
    assert made.mean[1] == 0.7
    for _ in range(20):
        made.predict(None, DT)
        made.update(np.array([9.0, -4.0]), np.ones(2))
    assert np.min(seen) >= -0.5
    assert np.max(seen) <= 0.7
    # At a bound the mean of the clipped points lies a little inside.
    assert made.mean == pytest.approx([9.0, -0.5], abs=0.02)


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("ukf", {"alpha": 0.0}, "alpha"),
        ("ukf", {"kappa": -7.0}, "kappa"),
        ("ukf", {"beta": np.nan}, "beta"),
        ("ukf", {"gate_probability": 1.0}, "gate_probability"),
        ("ekf", {"relative_step": 0.0}, "scale, relative_step"),
        ("ekf", {"scale": -1.0}, "scale, relative_step"),
    ],
)
def test_bad_options_are_named(kind, options, words):
    with pytest.raises(ValueError, match=words):
        seven_state_filter(kind, **options)


def test_a_bad_start_is_refused(kind):
    made = seven_state_filter(kind)
    for covariance in (-np.eye(7), np.full((7, 7), np.nan)):
        with pytest.raises(ValueError, match="covariance"):
            made.start(np.zeros(7), covariance)
    with pytest.raises(ValueError, match="process_noise"):
        filter_of(kind, seven_state_predict, seven_state_measure, np.array([1.0, -1.0]))


# --- the unscented filter -----------------------------------------------------------------------


class TextbookUnscentedFilter:
    """Plain covariance form with explicit loops: sigma points, weights, Cholesky."""

    def __init__(self, mean, covariance, alpha, beta, kappa):
        n = mean.size
        self.mean, self.covariance = mean, covariance
        self.spread = alpha**2 * (n + kappa)
        lam = self.spread - n
        self.mean_weights = np.full(2 * n + 1, 0.5 / (n + lam))
        self.mean_weights[0] = lam / (n + lam)
        self.weights = self.mean_weights.copy()
        self.weights[0] += 1 - alpha**2 + beta

    def points(self):
        root = np.linalg.cholesky(self.spread * self.covariance)
        points = [self.mean]
        points += [self.mean + root[:, j] for j in range(self.mean.size)]
        points += [self.mean - root[:, j] for j in range(self.mean.size)]
        return np.array(points)

    def moments(self, images):
        mean = sum(w * y for w, y in zip(self.mean_weights, images, strict=True))
        covariance = sum(
            w * np.outer(y - mean, y - mean) for w, y in zip(self.weights, images, strict=True)
        )
        return mean, covariance

    def predict(self, inputs, dt, process_noise):
        images = seven_state_predict(self.points(), inputs, dt)
        self.mean, self.covariance = self.moments(images)
        self.covariance = self.covariance + np.diag(process_noise**2) * dt

    def update(self, z, noise):
        points = self.points()
        images = seven_state_measure(points)
        mean, covariance = self.moments(images)
        cross = sum(
            w * np.outer(x - self.mean, y - mean)
            for w, x, y in zip(self.weights, points, images, strict=True)
        )
        total = covariance + np.diag(noise**2)
        gain = cross @ np.linalg.inv(total)
        self.mean = self.mean + gain @ (z - mean)
        self.covariance = self.covariance - gain @ total @ gain.T


@pytest.mark.parametrize(
    "weights", [{}, {"beta": 2.0}, TABLE_VI], ids=["default", "beta", "table6"]
)
def test_equals_the_textbook_filter_on_a_nonlinear_model(weights):
    rng = np.random.default_rng(5)
    unscented = seven_state_filter(gate_probability=1 - 1e-15, **weights)
    textbook = TextbookUnscentedFilter(
        np.zeros(7), SEVEN_COVARIANCE, **{"alpha": 1.0, "beta": 0.0, "kappa": 0.0, **weights}
    )
    truth = rng.multivariate_normal(np.zeros(7), SEVEN_COVARIANCE)
    for k in range(100):
        truth = seven_state_predict(truth[None], drive(k), DT)[0]
        unscented.predict(drive(k), DT)
        textbook.predict(drive(k), DT, SEVEN_NOISE)
        if k % 4:
            z = seven_state_measure(truth[None])[0] + TIP_NOISE * rng.standard_normal(3)
            unscented.update(z, TIP_NOISE)
            textbook.update(z, TIP_NOISE)
        np.testing.assert_allclose(unscented.mean, textbook.mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(unscented.covariance, textbook.covariance, rtol=0, atol=1e-9)
    assert unscented.repairs == 0


@pytest.mark.parametrize(
    "lost",
    [[3], [10], [3, 10], [0], [0, 3, 10], list(range(14)), list(range(15))],
    ids=["plus", "minus", "pair", "centre", "centre and pair", "all but one", "all"],
)
@pytest.mark.parametrize("weights", [{}, TABLE_VI], ids=["default", "table6"])
@pytest.mark.parametrize("where", ["predict", "measure"])
def test_lost_points_are_replaced_and_counted(lost, weights, where):
    """Those nearer to the centre, which are tried in their place, are lost too."""
    broken = True

    def predict(points, inputs, dt):
        images = seven_state_predict(points, inputs, dt)
        if broken and where == "predict":
            images[lost if len(points) == 15 else slice(None)] = np.inf
        return images

    def measure(points):
        images = seven_state_measure(points)
        if broken and where == "measure":
            images[lost if len(points) == 15 else slice(None), 0] = np.nan
        return images

    unscented = UnscentedFilter(predict, measure, SEVEN_NOISE, **weights)
    unscented.start(np.zeros(7), SEVEN_COVARIANCE)
    unscented.predict(drive(3), DT)
    unscented.update(np.array([0.0, 0.14, 0.1]), TIP_NOISE)
    assert unscented.repairs >= len(lost)
    assert np.isfinite(unscented.mean).all()
    values = np.linalg.eigvalsh(unscented.covariance)
    assert 0 < values.min() <= values.max() < 10
    broken = False
    for k in range(70):
        unscented.predict(drive(k), DT)
        unscented.update(np.array([0.0, 0.15, 0.0]), TIP_NOISE)
    assert np.isfinite(unscented.mean).all()


def test_a_lost_point_of_a_linear_model_costs_nothing():
    # The mirror image of its opposite is then exactly what was lost.
    rng = np.random.default_rng(1)
    transition = rng.standard_normal((4, 4))

    def predict(points, lost, dt):
        images = points @ transition.T
        images[lost if len(points) == 9 else slice(None)] = np.nan
        return images

    filters = []
    for lost in ([], [2, 7]):
        unscented = UnscentedFilter(predict, lambda points: points, np.full(4, 0.1))
        unscented.start(np.arange(4.0), np.eye(4))
        unscented.predict(lost, DT)
        filters.append(unscented)
    np.testing.assert_allclose(filters[1].mean, filters[0].mean, atol=1e-12)
    np.testing.assert_allclose(filters[1].covariance, filters[0].covariance, atol=1e-12)
    assert [unscented.repairs for unscented in filters] == [0, 2]


@pytest.mark.parametrize("spoiled", [np.nan, 1e33], ids=["not finite", "too far"])
def test_points_whose_step_diverges_are_tried_again_nearer_to_the_mean(spoiled):
    """The step is nearly linear near the mean, and far from it divergent. The derivative at
    the mean is the oracle of what becomes of a covariance whose points all diverge."""

    def predict(points, inputs, dt):
        images = 0.5 * points - 0.01 * points**3
        images[(np.abs(points) > 3.0).any(axis=1)] = spoiled
        return images

    options = {} if np.isnan(spoiled) else {"farthest": 100.0}
    unscented = UnscentedFilter(predict, lambda points: points, np.zeros(4), **options)
    unscented.start(np.full(4, 0.1), 4.0 * np.eye(4))
    unscented.predict(None, DT)
    slope = 0.5 - 0.03 * 0.1**2
    assert unscented.repairs == 8
    assert unscented.mean == pytest.approx(0.5 * 0.1 - 0.01 * 0.1**3, abs=1e-3)
    assert unscented.covariance == pytest.approx(4.0 * slope**2 * np.eye(4), rel=0.02, abs=1e-3)


@pytest.mark.parametrize(("farthest", "repairs"), [(math.inf, 0), (101.0, 0), (99.0, 4)])
def test_only_what_is_too_far_is_repaired(farthest, repairs):
    """Four points of eight lie at 100 after a step of a linear model, which costs nothing."""
    unscented = UnscentedFilter(
        lambda points, inputs, dt: 10.0 * points, lambda points: points, np.zeros(4),
        farthest=farthest,
    )  # fmt: skip
    unscented.start(np.full(4, 0.0), 25.0 * np.diag([1.0, 1.0, 0.01, 0.01]))
    unscented.predict(None, DT)
    assert unscented.repairs == repairs
    assert unscented.covariance == pytest.approx(2500.0 * np.diag([1.0, 1.0, 0.01, 0.01]))


def test_an_indefinite_downdate_is_repaired_and_counted():
    # Squares of independent states seem anticorrelated without bound under a negative weight.
    unscented = UnscentedFilter(
        lambda points, inputs, dt: points + 30 * points**2,
        lambda points: points,
        np.full(3, 1e-3),
        kappa=-2.0,
    )
    unscented.start(np.zeros(3), np.eye(3))
    unscented.predict(None, DT)
    assert unscented.repairs == 1
    assert np.linalg.eigvalsh(unscented.covariance).min() > 0
    unscented.update(np.zeros(3), np.ones(3))
    assert np.isfinite(unscented.mean).all()
    assert np.isfinite(unscented.factor).all()


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 20), rows=st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_factors_of_sums_and_differences_are_those_of_dense_matrices(seed, size, rows):
    rng = np.random.default_rng(seed)
    deviation, deviations = rng.uniform(0.1, 1.0, size), rng.standard_normal((rows, size))
    dense = np.diag(deviation**2) + deviations.T @ deviations
    factor = factor_of_sum(deviation, deviations)
    np.testing.assert_array_equal(factor, np.triu(factor))
    np.testing.assert_allclose(factor.T @ factor, dense, atol=1e-11 * rows)
    smaller, definite = downdated(factor, deviations)
    assert definite
    np.testing.assert_allclose(smaller.T @ smaller, np.diag(deviation**2), atol=1e-9 * rows)
    np.testing.assert_allclose(factor_of(dense).T @ factor_of(dense), dense, atol=1e-11 * rows)


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_an_indefinite_difference_becomes_the_nearest_covariance(seed, size):
    rng = np.random.default_rng(seed)
    factor = factor_of_sum(np.ones(size), rng.standard_normal((size, size)))
    rows = 1.5 * factor[:1]
    repaired, definite = downdated(factor, rows)
    assert not definite
    covariance = repaired.T @ repaired
    difference = factor.T @ factor - rows.T @ rows
    values, vectors = np.linalg.eigh(difference)
    nearest = (vectors * np.maximum(values, 0)) @ vectors.T
    np.testing.assert_allclose(covariance, nearest, atol=1e-9 * np.abs(difference).max())


# --- the extended filter ------------------------------------------------------------------------


def complex_step_jacobian(function, x):
    columns = [function((x + 1e-30j * row)[None])[0].imag / 1e-30 for row in np.eye(x.size)]
    return np.array(columns).T


FROM = np.array([0.3, 0.2, -0.4, 1.0, -2.0, 0.5, 0.1])


def exactly_predicted():
    """A narrow covariance after a step."""
    jacobian = complex_step_jacobian(lambda p: seven_state_predict(p, drive(7), DT), FROM)
    return jacobian @ NARROW @ jacobian.T + np.diag(SEVEN_NOISE**2 * DT)


def test_covariances_are_those_of_exact_jacobians():
    extended, expected = seven_state_filter("ekf", relative_step=1e-7), exactly_predicted()
    extended.start(FROM, NARROW)
    extended.predict(drive(7), DT)
    mean = seven_state_predict(FROM[None], drive(7), DT)[0]
    np.testing.assert_allclose(extended.mean, mean, atol=1e-14)
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

    extended, expected = seven_state_filter("ekf", predict), exactly_predicted()
    extended.start(FROM, NARROW)
    extended.predict(drive(7), DT)
    np.testing.assert_allclose(extended.covariance, expected, atol=bound * expected.max())


@pytest.mark.parametrize("lost", [[0], [4], [4, 7], list(range(8))])
def test_lost_points_of_differences_are_replaced_and_counted(lost):
    def predict(points, inputs, dt):
        images = seven_state_predict(points, inputs, dt)
        images[lost if len(points) == 8 else slice(None)] = np.nan
        return images

    extended = seven_state_filter("ekf", predict)
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
