"""The rod linearised about a steady state, Licher et al. 2025, (31)."""

import numpy as np
from scipy.linalg import expm

from softcr_models.rod.cosserat_rod import CosseratRod

_STEP = 1e-5  # of a state's typical magnitude, for central differences of the tip


class LinearRod:
    """Linear model about the steady state at constant pressures; exact for linear pressures.

    Attributes:
        rod: that was linearised.
        pressures: (m,) u_0 [Pa].
        state: (nx,) x_0.
        tip: (3,) h_pos(x_0) [m], base frame.
        jacobian: (nx, nx) df/dx; input_jacobian: (nx, m) df/du [1/Pa].
        tip_jacobian: (3, nx) dh_pos/dx, by central differences.
    """

    def __init__(self, rod: CosseratRod, pressures: np.ndarray) -> None:
        """Raises EquilibriumError where the pressures (m,) [Pa] have no steady state."""
        self.rod = rod
        self.pressures = np.asarray(pressures, float)
        self.state = rod.equilibrium(self.pressures)
        self.tip = rod.tip_pose(self.state)[:3, 3]
        self.jacobian, self.input_jacobian = rod.linearize(self.state, self.pressures)
        self.tip_jacobian = self._tip_jacobian()

    def motion(self, pressures: np.ndarray, period: float) -> np.ndarray:
        """(T + 1, nx) states from x_0 under pressures (T + 1, m) [Pa], linear in between.

        The discretisation is exact: the matrix exponential of model and input together.
        """
        size, chambers = self.input_jacobian.shape
        whole = np.zeros((size + 2 * chambers,) * 2)
        whole[:size, :size] = period * self.jacobian
        whole[:size, size : size + chambers] = period * self.input_jacobian
        whole[size : size + chambers, size + chambers :] = np.eye(chambers)
        exponential = expm(whole)[:size]
        transition = exponential[:, :size]
        held, ramp = np.split(exponential[:, size:], 2, axis=1)
        inputs = pressures - self.pressures
        driven = inputs[:-1] @ held.T + np.diff(inputs, axis=0) @ ramp.T
        away = np.zeros((len(inputs), size))
        for row, push in enumerate(driven):
            away[row + 1] = transition @ away[row] + push
        return self.state + away

    def tips(self, states: np.ndarray) -> np.ndarray:
        """(T, 3) y_pos of states (T, nx) [m]: linear in the states."""
        return self.tip + (states - self.state) @ self.tip_jacobian.T

    def _tip_jacobian(self) -> np.ndarray:
        scale = np.maximum(np.abs(self.state), 1e-2)
        columns = []
        for index, size in enumerate(_STEP * scale):
            change = np.zeros_like(self.state)
            change[index] = size
            ahead, behind = (
                self.rod.tip_pose(state)[:3, 3]
                for state in (self.state + change, self.state - change)
            )
            columns.append((ahead - behind) / (2 * size))
        return np.array(columns).T
