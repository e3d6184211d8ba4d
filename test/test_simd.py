"""The SIMD value type against numpy."""

import numba
import numpy as np
import pytest

from softcr_models.rod.float_flags import SAFE_FLAGS
from softcr_models.rod.simd import as_lanes, flush_denormals, local

FAST = {"fastmath": set(SAFE_FLAGS), "error_model": "numpy"}


@numba.njit(**FAST)
def _arithmetic(a, b, out):
    x, y, result = as_lanes(a, 8), as_lanes(b, 8), as_lanes(out, 8)
    scratch = local(x[0], (2, 3))
    for i in range(x.shape[0]):
        scratch[0, 1] = 2.0 * x[i] - y[i] / 3
        scratch[1, 2] = 0.0
        total = 0.0
        total += scratch[0, 1] * y[i]
        total -= 1
        total /= y[i]
        result[i] = -total + scratch[1, 2] * x[i]


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-14), (np.float32, 2e-6)])
def test_arithmetic_of_lanes_is_that_of_numbers(dtype, tolerance):
    random = np.random.default_rng(3)
    a = random.uniform(1, 2, (5, 8)).astype(dtype)
    b = random.uniform(1, 2, (5, 8)).astype(dtype)
    out = np.empty_like(a)
    _arithmetic(a, b, out)
    expected = -((2 * a - b / 3) * b - 1) / b
    assert out == pytest.approx(expected, rel=tolerance)


@numba.njit(**FAST)
def _not_a_number_stays(a, b, out):
    x, y, result = as_lanes(a, 8), as_lanes(b, 8), as_lanes(out, 8)
    result[0] = x[0] - x[0]
    result[1] = x[0] / x[0]
    result[2] = x[0] + y[0]
    result[3] = (1.0 - x[0]) * y[0]
    result[4] = y[0] / x[0]
    result[5] = x[0] * y[0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_is_not_finite_stays_so(dtype, bad):
    a, b, out = np.ones((1, 8), dtype), np.full((1, 8), 2.0, dtype), np.empty((6, 8), dtype)
    a[0, 3] = bad
    _not_a_number_stays(a, b, out)
    assert np.isnan(out[:2, 3]).all()
    assert (~np.isfinite(out[[2, 3, 5], 3])).all()
    assert np.isnan(out[4, 3]) or (np.isinf(bad) and out[4, 3] == 0.0)
    assert np.isfinite(np.delete(out, 3, axis=1)).all()


@numba.njit(**FAST)
def _scalar_view(a):
    view = as_lanes(a, 1)
    view[1] += 2.0
    return view.ndim


def test_one_lane_is_a_view_of_numbers():
    a = np.ones((3, 1))
    assert _scalar_view(a) == 1
    assert a[:, 0].tolist() == [1.0, 3.0, 1.0]


@numba.njit
def _flushed(x, y, product):
    word = flush_denormals(-1)
    product[0] = x[0] * y[0]
    flush_denormals(word)
    product[1] = x[0] * y[0]


def test_denormals_are_flushed_and_the_control_word_comes_back():
    tiny = np.array([1e-30], np.float32)
    product = np.empty(2, np.float32)
    _flushed(tiny, np.array([1e-12], np.float32), product)
    assert product[0] == 0.0
    assert product[1] > 0.0


def test_local_in_plain_python_takes_lanes_and_type_from_its_example():
    assert local(np.zeros(4, complex), (2, 3)).shape == (2, 3, 4)
    assert local(np.zeros(4, complex), (2, 3)).dtype == complex
    assert local(1.0, (6,)).shape == (6,)
