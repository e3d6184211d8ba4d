"""A controller on a bare model whose state it is told; no filter, no sensors, no nodes.

What is decided at a tick acts from the next one on.
"""

import numpy as np

from softcr_control.observation import Observation
from softcr_control.reference.references import Reference
from softcr_models.prediction import RodPrediction
from softcr_models.rod_model.rows import interval_counts, restricted


class KnownState:
    """The loop around a controller: `observe`, then `follow`, once a tick.

    Attributes:
        now: time since the beginning [s].
        inputs: (m,) that act [Pa], [N].
    """

    def __init__(
        self,
        model: RodPrediction,
        plant: RodPrediction,
        state: np.ndarray,
        inputs: np.ndarray,
        period: float,
    ) -> None:
        """
        Args:
            model: of the controller.
            plant: that moves; a rod with more intervals, or the model itself.
            state: (nx,) of the plant at first.
            inputs: (m,) at first, and the command before the first one.
            period: of a tick [s].
        """
        self._model, self._plant, self._state, self._period = model, plant, state, period
        self.inputs = self._due = inputs
        self._ticks = 0

    @property
    def now(self) -> float:
        """[s]"""
        return self._ticks * self._period

    @property
    def tip(self) -> np.ndarray:
        """(3,) of the plant, base frame [m]."""
        numbers = self._plant.nominal_parameters[None]
        return self._plant.tip_poses(self._state[None], numbers)[0, :, 3]

    def observe(self, reference: Reference) -> Observation:
        """What the controller sees now, at the nodes of its model."""
        state = self._state
        if self._plant is not self._model:
            rods = self._plant.rod, self._model.rod
            state = restricted(state[None], *map(interval_counts, rods))[0]
        return Observation(self.now, state, {}, reference, self.inputs, self._model)

    def follow(self, command: np.ndarray) -> None:
        """One tick, in which the command before this one, (m,), acts."""
        lag, before = self._plant.inputs.lag, self.inputs
        self.inputs = self._due if lag is None else lag.step(before, self._due, self._period)
        numbers = self._plant.nominal_parameters[None]
        ramp = before[None], self.inputs[None]
        self._state = self._plant.step(self._state[None], *ramp, numbers, self._period)[0]
        self._due, self._ticks = command, self._ticks + 1
