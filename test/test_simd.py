"""The SIMD value type where numbers are not finite or denormal; that lanes are scalars is tested in
test_rod_contract.py."""

import numba
import numpy as np
import pytest

from softcr_models.rod.float_flags import SAFE_FLAGS
from softcr_models.rod.simd import as_lanes, flush_denormals

FAST = {"fastmath": set(SAFE_FLAGS), "error_model": "numpy"}


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
