"""What a rod leaves of recorded motions, learned from inputs and from what the rod predicts.

It is linear in what the rod predicts, in inputs of some times and perhaps in products of inputs;
how much of it is believed is chosen on trials that were left out, or on parts of a few. Like the
rod, it knows nothing of what was measured, so it cannot diverge.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from softcr_studies.koopman.lifted_model import ridge_regression

LAGS = (0.0, 0.1, 0.2, 0.4)
"""Ages of the inputs [s]."""
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e3)
"""Of regressors of deviation 1; at the last one nearly nothing is believed."""
_PARTS = 4  # of all trials, or in which a few are cut, each left out once


@dataclass(frozen=True, eq=False)
class Residual:
    """Of outputs (q,), by regressors (n,).

    Attributes:
        lags: (L,) ages of the inputs [rows].
        products: (1,) whether products of two inputs are regressors.
        scale: (n,) of the regressors.
        slopes, intercept: (q, n), (q,) [m].
    """

    lags: np.ndarray
    products: np.ndarray
    scale: np.ndarray
    slopes: np.ndarray
    intercept: np.ndarray

    def along(self, inputs: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """(T, q) [m] of inputs (T, m) and predicted outputs (T, q)."""
        regressors = _regressors(inputs, predicted, self.lags, bool(self.products[0]))
        found: np.ndarray = regressors / self.scale @ self.slopes.T + self.intercept
        return found

    def save(self, path: Path) -> None:
        """As a file of safetensors: arrays by the names above."""
        # the format writes memory as it lies
        save_file({name: np.ascontiguousarray(each) for name, each in asdict(self).items()}, path)


def learned(
    inputs: Sequence[np.ndarray],
    predicted: Sequence[np.ndarray],
    measured: Sequence[np.ndarray],
    period: float,
) -> Residual:
    """Of trials: inputs (T, m), predicted and measured outputs (T, q) [m], so long apart [s].

    Rows in which an output was not measured teach nothing.
    """
    lags = np.array([round(lag / period) for lag in LAGS])
    best: tuple[float, bool, float] | None = None
    for products in (False, True):
        table = _table(inputs, predicted, measured, lags, products)
        for ridge in RIDGES:
            error = _left_out(table, ridge)
            if best is None or error < best[0]:
                best = error, products, ridge
    assert best is not None
    regressors, left, scale, _ = _table(inputs, predicted, measured, lags, best[1])
    slopes, intercept = ridge_regression(regressors, left, best[2])
    return Residual(lags, np.array([best[1]], dtype=np.uint8), scale, slopes, intercept)


def _left_out(table: tuple, ridge: float) -> float:
    """Mean square of what remains of parts that were not learned from."""
    regressors, left, _, parts = table
    errors = []
    for part in range(_PARTS):
        slopes, intercept = ridge_regression(regressors[parts != part], left[parts != part], ridge)
        out = parts == part
        errors.append(left[out] - regressors[out] @ slopes.T - intercept)
    return float(np.mean(np.concatenate(errors) ** 2))


def _table(inputs, predicted, measured, lags, products):
    """Regressors (N, n) over their scales, what the rod leaves (N, q), scales, parts (N,)."""
    rows, left, parts = [], [], []
    several = len(inputs) >= _PARTS
    for trial, (levels, seen, true) in enumerate(zip(inputs, predicted, measured, strict=True)):
        known = np.isfinite(true - seen).all(axis=1)
        rows.append(_regressors(levels, seen, lags, products)[known])
        left.append((true - seen)[known])
        times = _PARTS * np.arange(len(levels)) // len(levels)
        parts.append((np.full(len(levels), trial % _PARTS) if several else times)[known])
    regressors = np.vstack(rows)
    scale = np.maximum(regressors.std(axis=0), 1e-12)
    return regressors / scale, np.vstack(left), scale, np.concatenate(parts)


def _regressors(inputs, predicted, lags, products):
    """(T, n); before the first row its inputs have stood."""
    rows = np.arange(len(inputs))
    past = [inputs[np.maximum(rows - lag, 0)] for lag in lags]
    pairs = np.triu_indices(inputs.shape[1])
    multiplied = [inputs[:, pairs[0]] * inputs[:, pairs[1]]] if products else []
    return np.hstack([predicted, *past, *multiplied])
