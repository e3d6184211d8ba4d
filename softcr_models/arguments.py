"""Arguments of a model's methods, checked once in front of what computes, for every model alike.

Compiled kernels believe what they are told: an array of another shape makes them read and write
memory that is not theirs. `Arguments` makes the arrays that a kernel takes (contiguous, aligned,
writeable, of one float type), or raises `ArgumentError`. What is right already costs a few
comparisons; only what is not is looked at closely.

What a batch may hold: the numbers of a candidate (its state, its inputs, its row of parameters) are
data. NaN or infinity there is allowed, comes out as NaN in the rows of that candidate, and does not
disturb the others; filters and controllers rely on it, and no pass over such arrays is spent. What
is shared is required to be finite: the length of a step, and parameters that are given once for all
candidates. A start that all candidates share is a state, and so data. Inputs are never shared: each
candidate has its own. Signs are required of all parameters that are numbers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from softcr_models.errors import UserError
from softcr_models.model import Model, Parameter

FLOAT64, FLOAT32 = np.dtype(np.float64), np.dtype(np.float32)

Sign = Literal["positive", "not negative", "any"]
Shape = tuple[int, ...]


class ArgumentError(UserError, ValueError):
    """A wrong shape, type or sign; says method, argument, what was found and what is allowed."""


@dataclass(frozen=True)
class Arguments:
    """What the methods of one model may be given; B is a batch, T a number of steps.

    Every method raises `ArgumentError` where a shape, a type or a sign is not allowed. `method` is
    always the name of the method that was called, for the message.

    Attributes:
        owner: class whose methods they are.
        state_size: nx.
        input_size: m.
        signs: that parameters must have, by their names and in their order (P).
    """

    owner: str
    state_size: int
    input_size: int
    signs: Mapping[str, Sign]

    def step(
        self, states: Any, begin: Any, end: Any, parameters: Any, dt: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Arguments of `Model.step`, as a compiled loop takes them.

        Returns:
            States (B, nx) or (1, nx), levels (B, 2, m), parameters (B, P) or (1, P): float64,
            contiguous; dt [s].
        """
        dt = self.step_length("step", dt)
        states = self.floats("step", "states", states)
        begin = self.floats("step", "begin", begin)
        end = self.floats("step", "end", end)
        parameters = self.floats("step", "parameters", parameters)
        shapes = (states.shape, begin.shape, end.shape, parameters.shape)
        batch = max([shape[0] for shape in shapes if len(shape) == 2], default=1)
        self.rows("step", "states", shapes[0], batch, self.state_size)
        self.rows("step", "begin", shapes[1], batch, self.input_size)
        self.rows("step", "end", shapes[2], batch, self.input_size)
        self.rows("step", "parameters", shapes[3], batch, len(self.signs))
        self.require_signs("step", parameters, batch)
        levels = np.empty((batch, 2, self.input_size))
        levels[:, 0], levels[:, 1] = begin, end
        return states, levels, parameters, dt

    def rollout(
        self, method: str, state: Any, inputs: Any, parameters: Any, dt: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Arguments of `Model.rollout` and `rollout_tips`, as a compiled loop takes them.

        Returns:
            States (1, nx), levels (B, T + 1, m), parameters (1, P): float64, contiguous; dt [s].
        """
        dt = self.step_length(method, dt)
        state = self.vector(method, "state", state, self.state_size)
        levels = self.floats(method, "inputs", inputs)
        numbers = self.vector(method, "parameters", parameters, len(self.signs))
        self.require_levels(method, levels.shape)
        self.require_signs(method, numbers, len(levels))
        return state[None], levels, numbers[None], dt

    def batch(
        self, method: str, states: Any, inputs: Any, parameters: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """States (B, nx) or (1, nx), inputs (B, T + 1, m), parameters (B, P) or (1, P)."""
        states = self.floats(method, "states", states)
        levels = self.floats(method, "inputs", inputs)
        parameters = self.floats(method, "parameters", parameters)
        self.require_batch(method, states.shape, levels.shape, parameters.shape)
        self.require_signs(method, parameters, len(levels))
        return states, levels, parameters

    def observe(self, method: str, states: Any, parameters: Any) -> tuple[np.ndarray, np.ndarray]:
        """States (B, nx), parameters (B, P) or (1, P); float64, or float32 states if they are."""
        single = getattr(states, "dtype", None) == FLOAT32
        states = self.floats(method, "states", states, FLOAT32 if single else FLOAT64)
        parameters = self.floats(method, "parameters", parameters)
        self.require_observed(method, states.shape, parameters.shape)
        self.require_signs(method, parameters, len(states))
        return states, parameters

    def inputs_of(self, output: str, inputs: Any, batch: int) -> np.ndarray:
        """Inputs (B, m) or (1, m) that an output needs.

        Raises:
            ArgumentError: also where there are none.
        """
        if inputs is None:
            raise ArgumentError(
                f"{self.owner}.observe: output {output!r}: needs the model's inputs, which are "
                "not given"
            )
        rows = self.floats("observe", "inputs", inputs)
        self.rows("observe", "inputs", rows.shape, batch, self.input_size)
        return rows

    def equilibrium(self, inputs: Any, parameters: Any) -> tuple[np.ndarray, np.ndarray]:
        """Inputs (m,) and parameters (P,) of a steady state; all finite."""
        acting = self.vector("equilibrium", "inputs", inputs, self.input_size)
        numbers = self.vector("equilibrium", "parameters", parameters, len(self.signs))
        self.require_finite("equilibrium", "inputs", acting)
        self.require_signs("equilibrium", numbers, None)
        return acting, numbers

    def floats(self, method: str, name: str, values: Any, dtype: np.dtype = FLOAT64) -> np.ndarray:
        """The values as an array that a kernel takes; no copy where it is one already."""
        if type(values) is np.ndarray and values.dtype is dtype and values.flags.carray:
            return values
        try:
            array = np.asarray(values)
        except ValueError:
            raise ArgumentError(f"{self.owner}.{method}: {name}: not an array of numbers") from None
        if array.dtype.kind not in "fiub":
            raise ArgumentError(
                f"{self.owner}.{method}: {name} of type {array.dtype}: allowed are real numbers"
            )
        array = np.asarray(array, dtype, order="C")
        # numba compiles anew for an array that may not be written, in the middle of a tick
        return array if array.flags.carray else array.copy()

    def vector(self, method: str, name: str, values: Any, size: int) -> np.ndarray:
        """(size,) float64."""
        array = self.floats(method, name, values)
        if array.shape != (size,):
            raise self._wrong_shape(method, name, array.shape, f"({size},)")
        return array

    def step_length(self, method: str, dt: Any) -> float:
        """The length of a step [s] as a float: finite and above 0."""
        try:
            seconds = float(dt)
        except (TypeError, ValueError):
            seconds = math.nan
        if not 0.0 < seconds < math.inf:
            raise ArgumentError(
                f"{self.owner}.{method}: dt: {dt} s is not allowed: must be finite and above 0"
            )
        return seconds

    def rows(self, method: str, name: str, found: Shape, batch: int, columns: int) -> None:
        """Refuses a shape that is neither (batch, columns) nor (1, columns)."""
        if found != (batch, columns) and found != (1, columns):
            allowed = f"(1, {columns})" + f" or ({batch}, {columns})" * (batch != 1)
            raise self._wrong_shape(method, name, found, allowed)

    def require_levels(self, method: str, found: Shape) -> None:
        """Refuses a shape that is not (B, T + 1, m)."""
        if len(found) != 3 or found[1] < 2 or found[2] != self.input_size:
            allowed = f"(B, T + 1, {self.input_size}), T >= 1"
            raise self._wrong_shape(method, "inputs", found, allowed)

    def require_batch(self, method: str, states: Shape, inputs: Shape, parameters: Shape) -> None:
        """Refuses shapes that `batch` does not allow, of arrays wherever they lie."""
        self.require_levels(method, inputs)
        self.rows(method, "states", states, inputs[0], self.state_size)
        self.rows(method, "parameters", parameters, inputs[0], len(self.signs))

    def require_observed(self, method: str, states: Shape, parameters: Shape) -> None:
        """Refuses shapes that `observe` does not allow, of arrays wherever they lie."""
        if len(states) != 2 or states[1] != self.state_size:
            raise self._wrong_shape(method, "states", states, f"(B, {self.state_size})")
        self.rows(method, "parameters", parameters, states[0], len(self.signs))

    def require_finite(self, method: str, name: str, values: np.ndarray) -> None:
        """Refuses NaN and infinity."""
        if not np.isfinite(values).all():
            raise ArgumentError(f"{self.owner}.{method}: {name} {values.tolist()}: must be finite")

    def require_signs(self, method: str, parameters: np.ndarray, batch: int | None) -> None:
        """Refuses parameters (B, P), (1, P) or (P,) of the wrong sign.

        One row for several candidates, or for what is no candidate (`batch` is None), must be
        finite; otherwise NaN and infinity are data.
        """
        if parameters.size > len(self.signs):
            # of a NaN argmin gives the place; it costs a quarter of what min does
            if parameters.item(parameters.argmin()) > 0.0:
                return
            lowest, shared = np.fmin.reduce(parameters, axis=0).tolist(), False
        else:
            lowest, shared = parameters.ravel().tolist(), batch is None or batch > 1
            # an empty batch has no lowest
            if lowest and min(lowest) > 0.0 and math.isfinite(sum(lowest)):
                return
        for (name, sign), value in zip(self.signs.items(), lowest, strict=False):
            if sign != "any" and (value < 0.0 or (value == 0.0 and sign == "positive")):
                allowed = "above 0" if sign == "positive" else "0 or above"
                raise ArgumentError(
                    f"{self.owner}.{method}: {name}: {value} is not allowed: must be {allowed}"
                )
            if shared and not math.isfinite(value):
                raise ArgumentError(
                    f"{self.owner}.{method}: {name}: {value} is not allowed: what all share must "
                    "be finite"
                )

    def _wrong_shape(self, method: str, name: str, found: Shape, allowed: str) -> ArgumentError:
        return ArgumentError(
            f"{self.owner}.{method}: {name} of shape {found}: allowed is {allowed}"
        )


def signs_of(parameters: Sequence[Parameter]) -> dict[str, Sign]:
    """Of a model's parameters: a filter holds the logarithm of what must be positive."""
    return {each.name: "positive" if each.transform == "log" else "any" for each in parameters}


def unknown_output(model: Model, name: str) -> UserError:
    """The error of a name that no output has."""
    return UserError(f"output {name!r}: unknown; known are {', '.join(model.outputs)}")
