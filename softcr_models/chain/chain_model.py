"""A rod's model with the chain in front of it: readings in, the rod underneath."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from softcr_models.arguments import Arguments, signs_of
from softcr_models.chain import acting
from softcr_models.chain.elements import elements_of
from softcr_models.chain.memory import ChainMemory
from softcr_models.chain.readings import Readings
from softcr_models.errors import UserError
from softcr_models.model import TIP, Parameter, counts_and_warnings
from softcr_models.robots.pressure_chain import PressureChain
from softcr_models.robots.robot import Robot
from softcr_models.rod.parameters import PAYLOAD, STIFFNESS, TIP_MASS
from softcr_models.rod_model.rod_model import RodModel

if TYPE_CHECKING:
    from softcr_models.cuda.device_model import DeviceModel

_GAIN_DEVIATION = 0.018
_DEVIATIONS = {"bending_compliance": 0.05}
"""Where a filter begins [-]: as if lever arms lay evenly within 3 % of what their file says, and
sensors within 1 %; a rod at rest tells its compliance from the chain by where they begin."""


class ChainModel(RodModel):
    """A model of a rod whose inputs go through its robot's `pressure_chain`.

    The chain is one function of readings, of what is remembered of them and of parameters; filters
    and controllers alike call it through this model. What acts is told to the rod's model as
    pressures that make the same wrench, so any model of the rod will do.

    Inputs are the m readings, with what is remembered of them behind (`Inputs.memory`); m columns
    alone count as those of a chain that remembers nothing. Parameters are the rod's, then the
    chain's.

    Attributes:
        of_rod: how many of the parameters are the rod's.
        moves_marker: whether an offset of the marker is among the parameters.
    """

    suited_filter: ClassVar = "ekf"
    """It finds hysteresis better than the unscented one."""

    def __init__(self, inner: RodModel, chain: PressureChain) -> None:
        """
        Args:
            inner: of the rod alone.
            chain: in front of it.

        Raises:
            UserError: the chain is not for such a robot.
        """
        super().__init__(inner.rod)
        self._inner, robot = inner, inner.rod.robot
        own = [_begun(each) for each in inner.parameters if each.name != STIFFNESS.name]
        if chain.curvature_stiffness and len(own) == len(inner.parameters):
            raise UserError(
                f"robot {robot.name}: pressure_chain: curvature_stiffness: "
                f"{type(inner).__name__} has none; allowed with the model rod"
            )
        self.of_rod = len(own)
        count = inner.inputs.size
        self._memory = ChainMemory(count, chain.hysteresis_radii, chain.lag_times)
        remembers = self._memory if self._memory.size else None
        self.inputs = replace(inner.inputs, gain_deviation=_GAIN_DEVIATION, memory=remembers)
        self._nothing_remembered = np.zeros(self._memory.size)
        self._as_read = np.ones(count), np.zeros(count)
        elements = dict(elements_of(chain, count))
        added = tuple(parameter for each in elements.values() for parameter in each)
        self.parameters = (*own, *added)
        self.parameter_names = tuple(each.name for each in self.parameters)
        self.nominal_parameters = np.array([each.nominal for each in self.parameters])
        self._parts = np.full(acting.PARTS, -1)
        place = self.of_rod
        for part, each in elements.items():
            self._parts[part], place = place, place + len(each)
        self._columns = count + self._memory.size
        self.moves_marker = chain.marker_offset
        self._turned = _turned(robot, chain)
        stiffness = int(self._parts[acting.STIFFNESS])
        self._rod_columns = [*range(self.of_rod), *([stiffness] if stiffness >= 0 else [])]
        signs = {**inner._arguments.signs, **signs_of(added)}
        owner, size = type(self).__name__, self.state.size
        self._arguments = Arguments(owner, size, self._columns, signs)
        self._of_readings = Arguments(owner, size, count, signs)

    @property
    def double_precision(self) -> bool:
        """Whether rollouts are float64; of the model underneath."""
        return not getattr(self._inner, "single_precision", True)

    def equilibrium(self, inputs: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """See Model; inputs (m,) have slowly risen from zero, or (m + k,) with their past."""
        row = np.asarray(inputs, float)
        memory = self.inputs.memory
        if memory is not None and row.shape == (self.inputs.size,):
            row = np.concatenate((row, memory.begin(row)))
        row, numbers = self._arguments.equilibrium(row, parameters)
        (acts,) = self.acting_pressures(row[None, None], numbers[None])[0]
        return self._inner.equilibrium(acts, self.rod_parameters(numbers[None])[0])

    def rod_parameters(self, parameters: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(parameters[:, self._rod_columns])

    def acting_pressures(self, levels: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """(B, L, m) pressures that act on the rod [Pa], of levels (B, L, m + k) and parameters
        (B, P) or (1, P); see `acting.acting_pressures`."""
        return self._acts(levels, self._nothing_remembered, *self._as_read, 1.0, parameters)

    def marker_offset(self, parameters: np.ndarray) -> np.ndarray:
        """(..., 3) of the marker in the frame of the tip [m], of parameters (..., P)."""
        if not self.moves_marker:
            return np.zeros((*parameters.shape[:-1], 3))
        first = int(self._parts[acting.MARKER])
        return parameters[..., first : first + 3]

    @property
    def on_gpu(self) -> bool:
        """See RodModel; of the model underneath."""
        return self._inner.on_gpu

    def on_device(self, period: float, step: float) -> "DeviceModel":
        """See RodModel; where the model underneath computes with tensors."""
        rod = self._inner.on_device(period, step)
        # torch is imported only where tensors are wanted
        from softcr_models.chain.device_chain import DeviceChain

        return DeviceChain(self, rod, step)

    def tip_beyond(self, end: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        tip = super().tip_beyond(end, parameters)
        if self.moves_marker:
            tip[:3, 3] += tip[:3, :3] @ self.marker_offset(parameters)
        return tip

    def warm_up(self) -> None:
        self._inner.warm_up()
        super().warm_up()
        memory, levels = self.inputs.memory, np.zeros((2, 2, self.inputs.size))
        if memory is not None:
            past = memory.begin(levels[0, 0])
            memory.along(past, levels, 0.01)
            followed = Readings(levels, past, *self._as_read)
            self.rollout_tips(np.zeros(self.state_size), followed, self.nominal_parameters, 0.01)

    def counts(self) -> dict[str, int]:
        """See SelfReport; of the model underneath."""
        return counts_and_warnings(self._inner)[0]

    def warnings(self) -> list[str]:
        """See SelfReport; of the model underneath."""
        return counts_and_warnings(self._inner)[1]

    def _whole(self, inputs: Any) -> Any:
        """Inputs (..., m) with nothing remembered, (..., m + k); others as they are."""
        if inputs is None:
            return None
        found = np.asarray(inputs)
        if self._columns == self.inputs.size or found.shape[-1:] != (self.inputs.size,):
            return inputs
        nothing = np.zeros((*found.shape[:-1], self._columns - self.inputs.size))
        return np.concatenate((found, nothing), axis=-1)

    def _roll(
        self,
        method: str,
        state: np.ndarray,
        inputs: np.ndarray | Readings,
        parameters: np.ndarray,
        dt: float,
        *,
        tips: bool,
    ) -> np.ndarray:
        """From levels or from readings."""
        if not isinstance(inputs, Readings):
            return super()._roll(method, state, inputs, parameters, dt, tips=tips)
        states, values, numbers, dt = self._of_readings.rollout(
            method, state, inputs.values, parameters, dt
        )
        past, gain, offset = (
            self._arguments.vector(method, name, getattr(inputs, name), size)
            for name, size in (
                ("remembered", self._memory.size),
                ("gain", self.inputs.size),
                ("offset", self.inputs.size),
            )
        )
        acts = self._acts(values, past, gain, offset, dt, numbers)
        return self._behind(states, acts, numbers, dt, tips=tips, precise=False)

    def _acts(
        self,
        levels: np.ndarray,
        remembered: np.ndarray,
        gain: np.ndarray,
        offset: np.ndarray,
        dt: float,
        parameters: np.ndarray,
    ) -> np.ndarray:
        """(B, L, m) pressures that act [Pa], of what is checked; see `acting.acting_pressures`."""
        found = np.empty((*levels.shape[:2], self.inputs.size))
        acting.acting_pressures(
            levels, remembered, gain, offset, dt, parameters, self._parts, self._turned,
            self._memory.radii, self._memory.times, found,
        )  # fmt: skip
        return found

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
        acts = self.acting_pressures(levels, parameters)
        return self._behind(states, acts, parameters, dt, tips=tips, precise=precise)

    def _behind(
        self,
        states: np.ndarray,
        acts: np.ndarray,
        parameters: np.ndarray,
        dt: float,
        *,
        tips: bool,
        precise: bool,
    ) -> np.ndarray:
        """What `_advance` finds, of pressures (B, T + 1, m) that act."""
        of_rod = self.rod_parameters(parameters)
        rolled = self._inner._advance(states, acts, of_rod, dt, tips=tips, precise=precise)
        return self._at_marker(rolled, parameters) if tips else rolled

    def _tips(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        poses = self._inner._tips(states, self.rod_parameters(parameters))
        return self._at_marker(poses, parameters)

    def _at_marker(self, poses: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """Tips (B, T, 3, 4) or (B, 3, 4), in place, moved to the marker."""
        if self.moves_marker:
            offsets = np.ascontiguousarray(self.marker_offset(parameters))
            acting.to_marker(poses.reshape(len(poses), -1, 12), offsets)
        return poses

    def _observed(
        self, name: str, states: np.ndarray, inputs: np.ndarray, parameters: np.ndarray
    ) -> np.ndarray:
        if name == TIP:
            return self._tips(states, parameters)
        acts = inputs
        if self.outputs[name].needs_inputs:
            acts = self.acting_pressures(inputs[:, None], parameters)[:, 0]
        return self._inner._observed(name, states, acts, self.rod_parameters(parameters))


def _turned(robot: Robot, chain: PressureChain) -> np.ndarray:
    """(m, m) `turned` of `acting_pressures`, over all segments.

    Raises:
        UserError: the robot's chambers cannot make the moments of turned ones.
    """
    segments = robot.segment_actuation  # (S, 6, m)
    # a quarter turn of the moments is their derivative by the angle
    quarter = np.zeros_like(segments)
    quarter[:, 3], quarter[:, 4] = -segments[:, 4], segments[:, 3]
    matrix, moments = (each.reshape(-1, each.shape[-1]) for each in (segments, quarter))
    turned = np.linalg.pinv(matrix) @ moments
    exact = np.allclose(matrix @ turned, moments, rtol=0.0, atol=1e-9 * np.abs(moments).max())
    if chain.chamber_angles and not exact:
        raise UserError(
            f"robot {robot.name}: pressure_chain: chamber_angles are for robots whose chambers "
            "make bending moments both ways without a force along the rod: three or more around "
            "the centre line, from and to the same segments"
        )
    return np.ascontiguousarray(turned)


def _begun(parameter: Parameter) -> Parameter:
    """A parameter of the rod, as a filter begins with it behind a chain.

    A tip mass that the file does not have is as little expected as a payload: what hangs lower at
    rest is a marker's place or a length sooner than a mass.
    """
    deviation = _DEVIATIONS.get(parameter.name, parameter.deviation)
    if parameter.name == TIP_MASS and parameter.nominal == 0.0:
        deviation = PAYLOAD.deviation
    return replace(parameter, deviation=deviation)
