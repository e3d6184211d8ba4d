"""What is checked in front of every compiled kernel of the rod, on the processor and on a GPU.

Kernels believe what they are told: an array of another shape makes them read and write memory that
is not theirs. The functions here make the arrays that a kernel takes (contiguous, aligned,
writeable, of one float type), or raise `ArgumentError`.

What a batch may hold: the numbers of a candidate (its state, its pressures, its row of parameters)
are data. NaN or infinity there is allowed, comes out as NaN in the rows of that candidate, and does
not disturb the others; filters and controllers rely on it, and no pass over such arrays is spent.
What is shared is required to be finite: the length of a step, and parameters that are given once
for all candidates. A start that all candidates share is a state, and so data. Pressures are never
shared: each candidate has its own. Signs are required of all parameters that are numbers.
"""

import math
from typing import Any

import numpy as np

from softcr_models.errors import UserError

PARAMETERS = ("bending_compliance", "tip_mass", "damping_factor")
"""What filters may estimate, in the order of every vector of parameters."""

FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)
_MAY_BE_ZERO = (False, True, False)


class ArgumentError(UserError, ValueError):
    """A wrong shape, type or sign; says method, argument, what was found and what is allowed."""


def as_floats(where: str, name: str, values: Any, dtype: np.dtype = FLOAT64) -> np.ndarray:
    """The values as an array that a kernel takes; no copy where it is one already.

    Args:
        where: method that was called, for the message.
        name: of the argument.
        values: numbers; floats, integers or booleans.
        dtype: of the result.

    Raises:
        ArgumentError: they are not real numbers, or rows of different lengths.
    """
    # what is right already costs a tenth of a microsecond
    if type(values) is np.ndarray and values.dtype is dtype and values.flags.carray:
        return values
    try:
        array = np.asarray(values)
    except ValueError:
        raise ArgumentError(f"{where}: {name}: not an array of numbers") from None
    if array.dtype.kind not in "fiub":
        raise ArgumentError(f"{where}: {name} of type {array.dtype}: allowed are real numbers")
    array = np.asarray(array, dtype, order="C")
    # numba compiles anew for an array that may not be written, in the middle of a tick
    return array if array.flags.carray else array.copy()


def require_shape(where: str, name: str, found: tuple[int, ...], *allowed: tuple) -> None:
    """Refuses a shape that is none of `allowed`, whose entries are lengths or letters for any.

    Raises:
        ArgumentError: with the shape and those allowed.
    """
    for shape in allowed:
        if len(found) == len(shape) and all(
            length == wanted or isinstance(wanted, str)
            for length, wanted in zip(found, shape, strict=True)
        ):
            return
    shapes = " or ".join(_shown(shape) for shape in allowed)
    raise ArgumentError(f"{where}: {name} of shape {found}: allowed is {shapes}")


def step_length(where: str, dt: Any) -> float:
    """The length of a step [s] as a float.

    Raises:
        ArgumentError: it is not a finite number above 0.
    """
    try:
        seconds = float(dt)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0.0 < seconds < math.inf:
        raise ArgumentError(f"{where}: dt: {dt} s is not allowed: must be finite and above 0")
    return seconds


def require_signs(where: str, parameters: np.ndarray, shared: bool) -> None:
    """Refuses compliances and damping factors that are not above 0, and masses below 0.

    Args:
        where: method that was called, for the message.
        parameters: (B, 3) or (3,).
        shared: whether one row serves several candidates; otherwise NaN and infinity are data.

    Raises:
        ArgumentError: with the parameter and its value.
    """
    if parameters.size > len(PARAMETERS):
        if np.minimum.reduce(parameters, axis=None) > 0.0:  # not so if one is NaN
            return
        lowest = np.fmin.reduce(parameters, axis=0).tolist()
    else:
        lowest = parameters.ravel().tolist()
        if len(lowest) == 3 and min(lowest) > 0.0 and math.isfinite(sum(lowest)):
            return
    # an empty batch has none
    for name, value, may_be_zero in zip(PARAMETERS, lowest, _MAY_BE_ZERO, strict=False):
        if value < 0.0 or (value == 0.0 and not may_be_zero):
            allowed = "0 or above" if may_be_zero else "above 0"
            raise ArgumentError(f"{where}: {name}: {value} is not allowed: must be {allowed}")
        if shared and not math.isfinite(value):
            raise ArgumentError(
                f"{where}: {name}: {value} is not allowed: what all share must be finite"
            )


def candidates(
    where: str, states: Any, pressures: Any, parameters: Any, size: int, chambers: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States, pressures and parameters of a batch in float64, as a kernel takes them.

    Args:
        where: method that was called, for the message.
        states: (B, size), or (1, size) for all.
        pressures: (B, T + 1, chambers) [Pa], T >= 1.
        parameters: (B, 3) in the order of PARAMETERS, or (1, 3) for all.
        size, chambers: of the rod.

    Raises:
        ArgumentError: a shape, a type or a sign is not allowed.
    """
    states = as_floats(where, "states", states)
    pressures = as_floats(where, "pressures", pressures)
    parameters = as_floats(where, "parameters", parameters)
    require_batch(where, states.shape, pressures.shape, parameters.shape, size, chambers)
    require_signs(where, parameters, len(parameters) < len(pressures))
    return states, pressures, parameters


def one_start(where: str, state: Any, parameters: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    """State (size,) and parameters (3,) of a rollout as the one row (1, ...) of all candidates.

    Raises:
        ArgumentError: a shape or a type is not allowed.
    """
    state = as_floats(where, "state", state)
    parameters = as_floats(where, "parameters", parameters)
    if state.shape != (size,):
        require_shape(where, "state", state.shape, (size,))
    if parameters.shape != (len(PARAMETERS),):
        require_shape(where, "parameters", parameters.shape, (len(PARAMETERS),))
    return state[None], parameters[None]


def ends_of_step(where: str, states: Any, begin: Any, end: Any, chambers: int) -> np.ndarray:
    """(B, 2, chambers) pressures at begin and end of a step.

    Args:
        where: method that was called, for the message.
        states: (B, ...), or (1, ...) for all.
        begin, end: (B, chambers) [Pa], or (1, chambers) for all.
        chambers: of the rod.

    Raises:
        ArgumentError: a shape or a type is not allowed.
    """
    begin = as_floats(where, "pressures_begin", begin)
    end = as_floats(where, "pressures_end", end)
    batch = max(len(rows) if np.ndim(rows) else 1 for rows in (begin, end, states))
    require_rows(where, "pressures_begin", begin.shape, batch, chambers)
    require_rows(where, "pressures_end", end.shape, batch, chambers)
    levels = np.empty((batch, 2, chambers))
    levels[:, 0], levels[:, 1] = begin, end
    return levels


def require_batch(
    where: str,
    states: tuple[int, ...],
    pressures: tuple[int, ...],
    parameters: tuple[int, ...],
    size: int,
    chambers: int,
) -> None:
    """The shapes that `candidates` allows, of arrays wherever they lie.

    Raises:
        ArgumentError: one is not allowed.
    """
    if len(pressures) != 3 or pressures[1] < 2 or pressures[2] != chambers:
        shape = f"(B, T + 1, {chambers}), T >= 1"
        raise ArgumentError(f"{where}: pressures of shape {pressures}: allowed is {shape}")
    require_rows(where, "states", states, pressures[0], size)
    require_rows(where, "parameters", parameters, pressures[0], len(PARAMETERS))


def states_and_parameters(
    where: str, states: Any, parameters: Any, size: int, dtype: np.dtype = FLOAT64
) -> tuple[np.ndarray, np.ndarray]:
    """States (B, size) in `dtype` and parameters (B, 3) or (1, 3) in float64, for tip poses.

    Raises:
        ArgumentError: a shape, a type or a sign is not allowed.
    """
    states = as_floats(where, "states", states, dtype)
    parameters = as_floats(where, "parameters", parameters)
    if states.ndim != 2 or states.shape[1] != size:
        require_shape(where, "states", states.shape, ("B", size))
    require_rows(where, "parameters", parameters.shape, len(states), len(PARAMETERS))
    require_signs(where, parameters, len(parameters) < len(states))
    return states, parameters


def require_rows(where: str, name: str, found: tuple[int, ...], batch: int, columns: int) -> None:
    """Refuses what is not one row for each of `batch` candidates, or one row for all.

    Raises:
        ArgumentError: with the shape and those allowed.
    """
    if found != (batch, columns) and found != (1, columns):
        require_shape(where, name, found, (1, columns), (batch, columns))


def _shown(shape: tuple) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
