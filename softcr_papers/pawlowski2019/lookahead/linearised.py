"""A model in discrete time that is linear about one state and input, Pawlowski (2019), (4.22).

x' = next + A (x - x_0) + B_0 (begin - u_0) + B_1 (end - u_0): the affine part, which the thesis
leaves out, is kept. Only the motion is linear: outputs are the model's at the linear motion's
states.
"""

from collections.abc import Sequence

import numpy as np

from softcr_models.model import TIP, Model


class LinearisedModel:
    """A `Model` made by one linearisation of another, by differences as in (4.33) and (4.34).

    Attributes:
        state, inputs, parameters, outputs: the other's.
        finite: whether every number of the linearisation is.
    """

    def __init__(
        self,
        model: Model,
        state: np.ndarray,
        inputs: np.ndarray,
        parameters: np.ndarray,
        period: float,
        perturbation: float,
    ) -> None:
        """
        Args:
            model: that is linearised.
            state, inputs: (nx,) and (m,) about which.
            parameters: (P,) of the model.
            period: of a step [s].
            perturbation: of the differences / scale of a state, range of an input.
        """
        self._model, self._about, self._inputs = model, state, inputs
        self.state, self.inputs = model.state, model.inputs
        self.parameters, self.outputs = model.parameters, model.outputs
        size, m = self.state.size, self.inputs.size
        ranges = self.inputs.range
        moves = perturbation * np.concatenate((self.state.scale, ranges, ranges))
        lanes = np.tile(np.concatenate((state, inputs, inputs)), (1 + len(moves), 1))
        lanes[1:][np.diag_indices(len(moves))] += moves
        later = model.step(
            lanes[:, :size], lanes[:, size : size + m], lanes[:, size + m :],
            parameters[None], period,
        )  # fmt: skip
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = (later[1:] - later[0]) / moves[:, None]
        self._next, self._of_state = later[0], slopes[:size]
        self._of_begin, self._of_end = slopes[size : size + m], slopes[size + m :]
        self.finite = bool(np.isfinite(slopes).all())

    def step(
        self,
        states: np.ndarray,
        begin: np.ndarray,
        end: np.ndarray,
        parameters: np.ndarray,
        dt: float,
    ) -> np.ndarray:
        """See Model; of the period of the linearisation, whatever the last two arguments."""
        later: np.ndarray = self._next + (states - self._about) @ self._of_state
        later += (begin - self._inputs) @ self._of_begin
        later += (end - self._inputs) @ self._of_end
        return later

    def rollout(
        self, state: np.ndarray, inputs: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        states, rows = np.broadcast_to(state, (len(inputs), len(state))), []
        for tick in range(inputs.shape[1] - 1):
            states = self.step(states, inputs[:, tick], inputs[:, tick + 1], parameters, dt)
            rows.append(states)
        return np.stack(rows, axis=1)

    def rollout_tips(
        self, state: np.ndarray, inputs: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        states = self.rollout(state, inputs, parameters, dt)
        rows = states.reshape(-1, states.shape[2])
        poses = self.observe((TIP,), rows, None, parameters[None])[TIP]
        return poses.reshape(*states.shape[:2], *poses.shape[1:])

    def observe(
        self,
        names: Sequence[str],
        states: np.ndarray,
        inputs: np.ndarray | None,
        parameters: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """See Model; the other's."""
        return self._model.observe(names, states, inputs, parameters)

    def equilibrium(self, inputs: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """See Model; the other's."""
        return self._model.equilibrium(inputs, parameters)

    def warm_up(self) -> None:
        """See Model; there is nothing."""
