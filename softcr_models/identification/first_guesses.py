"""Where a fit of a recorded arm begins: inputs that point where the recording says.

How the cameras' frame is turned about the rod, and which way the first actuator points, are what a
first guess has wrong most often; no search comes from a quarter turn off to the right one.
"""

from collections.abc import Sequence

import numpy as np

from softcr_models.identification.measured_groups import Group, seen
from softcr_models.identification.unknowns import Unknown
from softcr_models.prediction import RodPrediction

_RIDGE = 1e-3  # of the linear map of the inputs, of their variance
_SMALL = 0.5  # angles that a search finds from zero [rad]
_SHARE = 0.1  # of the inputs' deviations: small, and far above rounding


def turned(
    model: RodPrediction,
    group: Group,
    inputs: np.ndarray,
    measured: np.ndarray,
    unknowns: Sequence[Unknown],
) -> np.ndarray:
    """Values of unknowns at which each input moves a group across the rod's axis in the direction
    in which a linear map of the inputs moves what was measured.

    Args:
        model: of the first guess.
        group: positions.
        inputs: (T, m) readings [Pa, N, rad].
        measured: (T, 3) of the group in the base frame [m]; NaN where nothing was seen.
        unknowns: P; directions of the inputs, `angle_1`, ..., are turned if they are among them,
            else the base, `base_turn_z`.

    Returns:
        (P,) angles [rad]; zeros of all else, where a coordinate across the axis was never seen, and
        where all angles are so small that a search gets there itself.

    Raises:
        EquilibriumError: the rod has no steady state under the mean inputs.
    """
    names, found = [each.name for each in unknowns], np.zeros(len(unknowns))
    own = {name: k for k in range(inputs.shape[1]) if (name := f"angle_{k + 1}") in names}
    known = np.isfinite(measured[:, :2]).all(axis=1)
    if not known.any() or not (own or "base_turn_z" in names):
        return found
    middle, scale = inputs.mean(axis=0), np.maximum(inputs.std(axis=0), 1e-9)
    spread = np.hstack(((inputs[known] - middle) / scale, np.ones((known.sum(), 1))))
    square = spread.T @ spread + _RIDGE * len(spread) * np.eye(spread.shape[1])
    moved = np.linalg.solve(square, spread.T @ measured[known, :2])[:-1]
    state = model.rod.equilibrium(middle)
    jacobian, by_inputs = model.rod.linearize(state, middle)
    moves = _SHARE * scale[:, None] * np.linalg.solve(jacobian, by_inputs).T
    states = np.vstack((state, state - moves))
    places = seen(model, (group,), states, np.tile(middle, (len(states), 1)))[group.name]
    expected = places[1:, :2] - places[0, :2]
    turns = (moved @ [1.0, 1.0j]) * np.conj(expected @ [1.0, 1.0j])
    for name, k in own.items():
        found[names.index(name)] = np.angle(turns[k])
    if not own:
        found[names.index("base_turn_z")] = np.angle(turns.sum())
    return found if np.abs(found).max() > _SMALL else np.zeros(len(unknowns))
