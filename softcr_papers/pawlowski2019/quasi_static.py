"""The quasi-static controller of Pawlowski (2019), Sec. 4.1: inputs follow from the Jacobian of the
statics, q' = q - 0.2 J^-1 e, (4.8) to (4.11).

The thesis's J is made of derivatives of a shooting problem, (4.10); here it is that of the model's
equilibrium by differences, which is the same. J^-1 asks for as many inputs as coordinates; here the
change is the least-squares one in the box of the inputs, by a little weight of the least inputs.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from softcr_control.costs.rollout import tips_of
from softcr_control.observation import ControlContext, Observation
from softcr_control.predictive.bounded_minimum import bounded_minimum
from softcr_control.predictive.estimated_parameters import EstimatedParameters
from softcr_models.model import Model
from softcr_runtime.blocks.command_packets import CommandPacket

_PERTURBATION = 1e-3  # of an input's range, for differences of equilibria


def static_tip(model: Model, inputs: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """(3,) where the tip stands under inputs (m,) [m]."""
    state = model.equilibrium(inputs, parameters)
    return np.asarray(tips_of(model, state[None], parameters)[0, :, 3], float)


def static_jacobian(
    model: Model, inputs: np.ndarray, parameters: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(3,) tip [m] of the equilibrium under inputs (m,), and its derivatives by them (3, m)."""
    limits = model.inputs
    inward = np.where(2.0 * inputs > limits.low + limits.high, -1.0, 1.0)
    moves = inward * _PERTURBATION * limits.range
    tip = static_tip(model, inputs, parameters)
    tips = [static_tip(model, row, parameters) for row in inputs + np.diag(moves)]
    return tip, ((np.array(tips) - tip) / moves[:, None]).T


def static_change(
    model: Model, inputs: np.ndarray, jacobian: np.ndarray, wish: np.ndarray, level: float
) -> np.ndarray:
    """(m,) the change of the inputs that moves the tip by a wish (3,) [m], as near as the box lets.

    Args:
        model: says the box.
        inputs: (m,) now, inside of it.
        jacobian: (3, m) [m per unit of the inputs].
        wish: [m].
        level: what inputs at their range from rest cost, as a distance of the tip [m].
    """
    limits = model.inputs
    weight = (level / limits.range) ** 2
    gradient = -jacobian.T @ wish + weight * (inputs - limits.rest)
    normal = jacobian.T @ jacobian + np.diag(weight)
    return bounded_minimum(normal, gradient, limits.low - inputs, limits.high - inputs)


class QuasiStaticSettings(BaseModel):
    """Numbers of the controller."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    gain: float = Field(0.2, gt=0.0, le=1.0, description="gain on the error in an update [-]")
    update_ticks: int = Field(
        10,
        ge=1,
        le=1000,
        description="time between updates, in which the robot should come to rest [ticks]",
    )
    lead: float = Field(
        1.0,
        ge=0.0,
        le=1.0,
        description="fraction of the reference's motion until the next update that is added; with "
        "0, as in the thesis, the tip lags behind [-]",
    )
    input_level: float = Field(
        1e-4,
        gt=0.0,
        le=0.1,
        description="cost of inputs that are their whole range away from rest, as an error [m]",
    )


class QuasiStatic:
    """Moves the tip by small changes of inputs that are held until the robot rests; a `Controller`.

    What the reference moves by until the next update is added to the error's share, so that the tip
    does not lag behind what moves; this is ours, and `lead` turns it off.
    """

    Settings: ClassVar[type[QuasiStaticSettings]] = QuasiStaticSettings

    def __init__(self, context: ControlContext, settings: QuasiStaticSettings) -> None:
        self.settings = settings
        self._model, self._period = context.model, context.period
        self._names = EstimatedParameters(context.model)
        self.rows = settings.update_ticks + 1
        self.reset()

    def reset(self) -> None:
        """As if newly made."""
        self._inputs: np.ndarray | None = None
        self._updated = -np.inf

    def take_over(self, packets: Sequence[CommandPacket]) -> None:
        """Goes on from another controller's last command."""
        inputs = self._model.inputs
        self._inputs = np.clip(packets[-1].commands[0], inputs.low, inputs.high)

    def command(self, observation: Observation) -> np.ndarray:
        """The inputs to send now (m,)."""
        if self._inputs is None:
            limits = self._model.inputs
            known = np.where(np.isfinite(observation.inputs), observation.inputs, limits.rest)
            self._inputs = np.clip(known, limits.low, limits.high)
        settings, since = self.settings, observation.stamp - self._updated
        if since < (settings.update_ticks - 0.5) * self._period:
            return self._inputs
        self._updated = observation.stamp
        parameters = self._names.read(observation.parameters).parameters
        jacobian = static_jacobian(self._model, self._inputs, parameters)[1]
        wanted = observation.reference.tip_positions
        tip = tips_of(self._model, np.asarray(observation.state)[None], parameters)[0, :, 3]
        error = tip - wanted[0]
        ahead = wanted[min(settings.update_ticks, len(wanted) - 1)] - wanted[0]
        wish = settings.lead * ahead - settings.gain * error
        change = static_change(self._model, self._inputs, jacobian, wish, settings.input_level)
        self._inputs = self._inputs + change
        return self._inputs
