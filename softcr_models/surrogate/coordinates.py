"""Coordinates a network sees instead of raw states: scaled, and turned into modes of motion."""

from dataclasses import dataclass

import numpy as np

from softcr_models.rod.state import RodState

# What never moves (three wrenches at the tip) still needs a scale: this part of its quantity's
# largest.
_LEAST_SCALE = 1e-3


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A linear change of coordinates, y = encode (x - mean) and x = mean + decode y.

    Attributes:
        mean: (nx,).
        encode: (nx, nx).
        decode: (nx, nx).
        weight: (nx,) of errors in y: weighted, they are errors of scaled states.
    """

    mean: np.ndarray
    encode: np.ndarray
    decode: np.ndarray
    weight: np.ndarray


def scaled_states(states: np.ndarray) -> Coordinates:
    """Each state by its own mean and half range over the sample: [-1, 1], Licher et al. Sec. IV-B.

    Args:
        states: (S, nx).
    """
    low, high = states.min(axis=0), states.max(axis=0)
    scale = _filled(0.5 * (high - low))
    return Coordinates(
        0.5 * (low + high), np.diag(1.0 / scale), np.diag(scale), np.ones(len(scale))
    )


def modes_of_motion(states: np.ndarray, least_spread: float, segments: int = 1) -> Coordinates:
    """Principal directions of the sample, each brought to unit spread.

    Modes of low energy carry the detail that drives the next step; unit spread makes them learnable
    (five times less tip error than single states scaled by their spread). What never moves
    (wrenches that the tip cannot bear) is left out: the rod does not feel it, and 3e-6 N of a
    filter's rounding in it would be whole units in whitened modes.

    Args:
        states: (S, nx).
        least_spread: spreads below it, in scaled states, are taken for it: the smaller, the more
            noise in a state is blown up.
        segments: of the rod.
    """
    mean, deviation = states.mean(axis=0), states.std(axis=0)
    scale = quantity_scale(deviation, segments)
    scaled = (states - mean) / scale
    energy, basis = np.linalg.eigh(scaled.T.astype(float) @ scaled / len(scaled))
    energy, basis = energy[::-1], basis[:, ::-1]
    spread = np.maximum(np.sqrt(np.maximum(energy, 0.0)), least_spread)
    encode = np.where(deviation > 0.0, basis.T / spread[:, None] / scale, 0.0)
    return Coordinates(mean, encode, scale[:, None] * basis * spread, spread)


def quantity_scale(deviation: np.ndarray, segments: int = 1) -> np.ndarray:
    """Standard deviations (nx,) made equal for x and y of a node, so that no direction counts
    more."""
    state = RodState(deviation.astype(float).copy(), segments)
    for part in (state.velocities, state.wrenches, state.base_wrench[None]):
        for x in (0, 3):
            part[:, x : x + 2] = np.sqrt((part[:, x : x + 2] ** 2).mean(axis=1, keepdims=True))
        part[:] = np.maximum(part, _LEAST_SCALE * part.max(axis=0))
    return state.array


def _filled(scale: np.ndarray) -> np.ndarray:
    return np.where(scale > 0.0, scale, _LEAST_SCALE * scale.max())
