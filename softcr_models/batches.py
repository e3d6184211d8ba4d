"""Arguments of a model's methods, checked once and in the same words for every model."""

import numpy as np

from softcr_models.errors import UserError
from softcr_models.model import Model


def checked_step(
    model: Model,
    states: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    parameters: np.ndarray,
    dt: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arguments of `Model.step`, as a compiled loop takes them.

    Returns:
        States (B, nx) or (1, nx), levels (B, 2, m), parameters (B, P) or (1, P): float64,
        contiguous.

    Raises:
        UserError: a wrong shape, or a dt that is not above 0.
    """
    _positive(dt)
    arrays = (states, begin, end, parameters)
    batch = max((len(each) for each in arrays if np.ndim(each) == 2), default=1)
    rows = _rows("states", states, model.state.size, batch)
    levels = np.empty((batch, 2, model.inputs.size))
    levels[:, 0] = _rows("begin", begin, model.inputs.size, batch)
    levels[:, 1] = _rows("end", end, model.inputs.size, batch)
    return rows, levels, checked_parameters(model, parameters, batch)


def checked_rollout(
    model: Model, state: np.ndarray, inputs: np.ndarray, parameters: np.ndarray, dt: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arguments of `Model.rollout`, as a compiled loop takes them.

    Returns:
        States (1, nx), levels (B, T + 1, m), parameters (1, P): float64, contiguous.

    Raises:
        UserError: a wrong shape, or a dt that is not above 0.
    """
    _positive(dt)
    levels = np.ascontiguousarray(inputs, dtype=float)
    size = model.inputs.size
    if levels.ndim != 3 or levels.shape[1] < 1 or levels.shape[2] != size:
        raise UserError(f"inputs of shape {levels.shape}: must be (B, T + 1, {size})")
    return (
        _rows("state", np.asarray(state)[None], model.state.size, 1),
        levels,
        checked_parameters(model, np.asarray(parameters)[None], 1),
    )


def checked_states(model: Model, states: np.ndarray) -> np.ndarray:
    """States (B, nx) of `Model.observe`, of their own float type.

    Raises:
        UserError: a wrong shape.
    """
    rows = np.asarray(states)
    if rows.ndim != 2 or rows.shape[1] != model.state.size:
        raise UserError(f"states of shape {rows.shape}: must be (B, {model.state.size})")
    return rows


def checked_parameters(model: Model, parameters: np.ndarray, batch: int) -> np.ndarray:
    """Parameters (B, P) or (1, P), contiguous.

    Raises:
        UserError: a wrong shape.
    """
    return _rows("parameters", parameters, len(model.parameters), batch)


def checked_inputs(model: Model, name: str, inputs: np.ndarray | None, batch: int) -> np.ndarray:
    """Inputs (B, m) or (1, m) that the output `name` needs, contiguous.

    Raises:
        UserError: there are none, or of a wrong shape.
    """
    if inputs is None:
        raise UserError(f"output {name!r}: needs the model's inputs, which are not given")
    return _rows("inputs", inputs, model.inputs.size, batch)


def unknown_output(model: Model, name: str) -> UserError:
    """The error of a name that no output has."""
    return UserError(f"output {name!r}: unknown; known are {', '.join(model.outputs)}")


def _positive(dt: float) -> None:
    if not 0.0 < dt < np.inf:
        raise UserError(f"dt: {dt} s is not allowed: must be above 0")


def _rows(name: str, values: np.ndarray, size: int, batch: int) -> np.ndarray:
    rows = np.ascontiguousarray(values, dtype=float)
    if rows.ndim != 2 or rows.shape[1] != size or len(rows) not in (1, batch):
        allowed = f"({batch}, {size})" + f" or (1, {size})" * (batch != 1)
        raise UserError(f"{name} of shape {rows.shape}: must be {allowed}")
    return rows
