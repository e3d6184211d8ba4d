"""What models have in common: arguments are checked, one way through a batch is taken, and outputs
are looked up in a table."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from softcr_models.arguments import Arguments, signs_of, unknown_output
from softcr_models.model import (
    TIP,
    Inputs,
    Layout,
    OutputInfo,
    Parameter,
    nominal_parameters,
)

Observer = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Makes `(B, *shape)` of states (B, nx), inputs (B, m) or (1, m), empty where the output needs
none, and parameters (B, P) or (1, P)."""


class ModelBase:
    """`Model`'s ways through time, and its outputs; a class has one way through a batch."""

    state: Layout
    inputs: Inputs
    parameters: tuple[Parameter, ...]
    outputs: Mapping[str, OutputInfo]
    _arguments: Arguments
    _observers: Mapping[str, Observer]

    def _tells(self, table: Mapping[str, tuple[OutputInfo, Observer]]) -> None:
        """The outputs by name, once state, inputs and parameters are known."""
        self.outputs = {name: info for name, (info, _) in table.items()}
        self._observers = {name: observer for name, (_, observer) in table.items()}
        self._arguments = Arguments(
            type(self).__name__, self.state.size, self.inputs.size, signs_of(self.parameters)
        )

    def step(
        self,
        states: np.ndarray,
        begin: np.ndarray,
        end: np.ndarray,
        parameters: np.ndarray,
        dt: float,
    ) -> np.ndarray:
        checked = self._arguments.step(states, self._whole(begin), self._whole(end), parameters, dt)
        return self._advance(*checked, tips=False, precise=True)[:, -1]

    def rollout(
        self, state: np.ndarray, inputs: Any, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """See Model; float32 where the model's rollouts are in single precision."""
        return self._roll("rollout", state, inputs, parameters, dt, tips=False)

    def rollout_tips(
        self, state: np.ndarray, inputs: Any, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """See Model; of the float type of `rollout`."""
        return self._roll("rollout_tips", state, inputs, parameters, dt, tips=True)

    def observe(
        self,
        names: Sequence[str],
        states: np.ndarray,
        inputs: np.ndarray | None,
        parameters: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """See Model; what depends on the state alone is of the states' float type."""
        rows, numbers = self._arguments.observe("observe", states, parameters)
        whole, observed = self._whole(inputs), {}
        for name in names:
            if name not in self.outputs:
                raise unknown_output(self, name)
            acting = np.empty((1, 0))
            if self.outputs[name].needs_inputs:
                acting = self._arguments.inputs_of(name, whole, len(rows))
            observed[name] = self._observed(name, rows, acting, numbers)
        return observed

    def equilibrium(self, inputs: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def warm_up(self) -> None:
        numbers = nominal_parameters(self.parameters)
        state, levels = np.zeros(self.state.size), np.zeros((2, 2, self.inputs.size))
        self.rollout_tips(state, levels, numbers, 0.01)
        self.observe(tuple(self.outputs), state[None], levels[0, :1], numbers[None])
        self.equilibrium(self.inputs.rest, numbers)

    def _roll(
        self,
        method: str,
        state: np.ndarray,
        inputs: Any,
        parameters: np.ndarray,
        dt: float,
        *,
        tips: bool,
    ) -> np.ndarray:
        """`rollout`, or `rollout_tips` if `tips`."""
        checked = self._arguments.rollout(method, state, self._whole(inputs), parameters, dt)
        return self._advance(*checked, tips=tips, precise=False)

    def _whole(self, inputs: Any) -> Any:
        """Inputs as the kernels take them; a model may leave out what they remember."""
        return inputs

    def _observed(
        self, name: str, states: np.ndarray, inputs: np.ndarray, parameters: np.ndarray
    ) -> np.ndarray:
        """One of the outputs, of what is checked; see `Observer`."""
        return self._observers[name](states, inputs, parameters)

    def _advance(
        self,
        states: np.ndarray,
        levels: np.ndarray,
        parameters: np.ndarray,
        dt: float,
        *,
        tips: bool,
        precise: bool,
    ) -> np.ndarray:
        """(B, T, nx) after each of T steps, or (B, T, 3, 4) if `tips`; of what is checked.

        Args:
            states: (B, nx), or (1, nx) for all.
            levels: (B, T + 1, m) inputs at the grid points, linear in between.
            parameters: (B, P), or (1, P) for all.
            dt: length of a step [s].
            tips: whether poses of the tip are wanted.
            precise: whether float64 is.
        """
        found = self._states_after(states, levels, parameters, dt)
        return self._observed(TIP, found, levels, parameters) if tips else found

    def _states_after(
        self, states: np.ndarray, levels: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """(B, T, nx) of `_advance`, in float64. The observer of the tip then takes (B, T, nx)."""
        raise NotImplementedError
