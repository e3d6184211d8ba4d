"""From a wanted tip path to a motion the rod can do: inputs and states, so that users need not
think in 72 states.

The nominal rod is led along the path by the gradient MPC with the same rod as its model: here that
is right, because this is planning, not control. What it does not reach is told, not hidden.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from softcr_control.costs import CostSettings
from softcr_control.observation import ControlContext, Observation
from softcr_control.predictive.gauss_newton import GaussNewtonMpc, GaussNewtonSettings
from softcr_control.reference.inverse_statics import holding_numbers
from softcr_control.reference.references import SampledReference
from softcr_models.errors import UserError
from softcr_models.model import TIP, Model, nominal_parameters
from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import EquilibriumError

_BEGIN = 0.2  # of the range of inputs, where a search begins

LOOK_AHEAD = GaussNewtonSettings(
    horizon=12, knots=(2, 6, 12), costs=CostSettings(tip_position=1e4, input_rate=0.01)
)


@dataclass(frozen=True, eq=False)
class Plan:
    """A motion of the nominal rod, a row per control period.

    Attributes:
        period: [s].
        pressures: (T, m) inputs, gauge pressures [Pa] or tensions [N], reached through their lag.
        states: (T, nx) of the rod that was led.
        tips, wanted_tips: (T, 3) [m], base frame.
    """

    period: float
    pressures: np.ndarray
    states: np.ndarray
    tips: np.ndarray
    wanted_tips: np.ndarray

    @property
    def deviation(self) -> np.ndarray:
        """(T,) distance of the planned from the wanted tip [m]."""
        return np.linalg.norm(self.tips - self.wanted_tips, axis=1)


def plan_along(
    robot: Robot,
    prediction: Model,
    wanted_tips: np.ndarray,
    period: float,
    progress: Callable[[int], None] = lambda rows: None,
) -> Plan:
    """The motion that follows a tip path as closely as rod, lag and limits allow.

    Args:
        robot: that is led.
        prediction: the nominal rod.
        wanted_tips: (T, 3) at the grid of `period` [m], base frame.
        period: [s].
        progress: called with the number of rows done.

    Raises:
        UserError: no inputs inside the limits hold the rod still near the first point.
    """
    lag = prediction.inputs.lag
    guide = GaussNewtonMpc(ControlContext(robot, prediction, period), LOOK_AHEAD)
    source = SampledReference(period, None, wanted_tips)
    nominal = nominal_parameters(prediction.parameters)
    pressures = holding_pressures(robot, prediction, wanted_tips[0])
    state = prediction.equilibrium(pressures, nominal)
    active = pressures * lag.pole / lag.gain if lag else pressures
    rows = []
    for row in range(len(wanted_tips)):
        rows.append((pressures, state))
        now = row * period
        reference = source.window(now, guide.rows)
        answer = guide.command(
            Observation(now, state, {}, reference, pressures, prediction)
        ).pressures
        later = lag.step(pressures, active, period) if lag else active
        state = prediction.step(state[None], pressures[None], later[None], nominal[None], period)[0]
        pressures, active = later, answer
        progress(1)
    reached, states = (np.array(column) for column in zip(*rows, strict=True))
    tips = prediction.observe((TIP,), states, None, nominal[None])[TIP][:, :, 3]
    return Plan(period, reached, states, tips, wanted_tips)


def holding_pressures(robot: Robot, prediction: Model, tip: np.ndarray) -> np.ndarray:
    """Inputs (m,) [Pa, N] inside the limits whose equilibrium brings the tip closest to (3,) [m].

    Raises:
        UserError: none does so at all.
    """
    nominal, inputs = nominal_parameters(prediction.parameters), prediction.inputs
    low, high = inputs.low, inputs.high

    def tip_of(pressures: np.ndarray) -> np.ndarray:
        state = prediction.equilibrium(pressures, nominal)
        pose = prediction.observe((TIP,), state[None], None, nominal[None])[TIP][0]
        return np.asarray(pose[:, 3])

    try:
        return holding_numbers(tip_of, low, high, low + _BEGIN * (high - low), tip)[0]
    except EquilibriumError as error:
        raise UserError(f"plan: first point {np.round(tip, 4).tolist()} m: {error}") from None
