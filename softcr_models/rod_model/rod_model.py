"""What every model of a rod's states has in common, whatever advances them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from softcr_models.arguments import Arguments
from softcr_models.errors import UserError
from softcr_models.model import TIP
from softcr_models.model_base import ModelBase
from softcr_models.robots.parts import PoseSensor
from softcr_models.robots.robot import Robot
from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.description import (
    BASE_WRENCH,
    SHAPE,
    TENDON_LENGTHS,
    pose_sensors,
    rod_inputs,
    rod_layout,
    rod_outputs,
    rod_parameters,
)
from softcr_models.rod.parameters import PAYLOAD
from softcr_models.rod_model.tendon_lengths import tendon_lengths

if TYPE_CHECKING:
    from softcr_models.cuda.device_model import DeviceModel

OPENED: Mapping[str, float] = {
    "bending_compliance": 0.08,
    "tip_mass": 0.3,
    "damping_factor": 0.1,
    PAYLOAD.name: 2.0,
}
"""Random walks of a rod's parameters while a filter finds that it is wrong [1/sqrt(s)]: what is
picked up is a large part of the mass at the tip, or of the robot's. Where a payload is estimated,
the tip mass is known as well as ever."""


class RodModel(ModelBase):
    """A `Model` whose states are a rod's; how they advance is its subclass's to say.

    Attributes:
        rod: that the states belong to; gives poses along itself, wrenches and equilibria.
        state, inputs, parameters, outputs: see `Model`.
    """

    def __init__(self, rod: CosseratRod) -> None:
        self.rod = rod
        self.state = rod_layout(rod)
        self.inputs = rod_inputs(rod.robot)
        told = rod_parameters(rod)
        replaced = {"tip_mass"} if PAYLOAD.name in rod.parameter_names else set()
        opened = {name: walk for name, walk in OPENED.items() if name not in replaced}
        self.parameters = tuple(replace(each, opened=opened.get(each.name, 0.0)) for each in told)
        self.outputs = rod_outputs(rod)
        self._observers = {
            TIP: lambda states, _, parameters: self._tips(states, parameters),
            SHAPE: self._shapes,
            BASE_WRENCH: self._wrenches,
            TENDON_LENGTHS: lambda states, _, parameters: tendon_lengths(
                rod, states, self._rows(states, parameters)
            ),
            **{name: partial(self._seen, each) for name, each in pose_sensors(rod.robot).items()},
        }
        self.parameter_names = rod.parameter_names
        self.nominal_parameters = rod.nominal_parameters
        signs = {each.name: each.sign for each in rod.parameters}
        self._arguments = Arguments(type(self).__name__, rod.state_size, rod.input_size, signs)

    @property
    def state_size(self) -> int:
        """Length of a state."""
        return self.state.size

    @property
    def input_size(self) -> int:
        """Number of actuators."""
        return self.inputs.size

    @property
    def state_scale(self) -> np.ndarray:
        """(state_size,) typical magnitude of each state."""
        return self.state.scale

    @property
    def on_gpu(self) -> bool:
        """Whether large batches are computed on a GPU."""
        return False

    def on_device(self, period: float, step: float) -> "DeviceModel":
        """What a controller predicts with whose candidates are tensors.

        Args:
            period: of a tick [s].
            step: from one predicted state to the next [s].

        Raises:
            UserError: the model does not compute with tensors, or not such steps.
        """
        raise UserError("the rod on the processor does not compute with tensors")

    def tip_poses(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """(B, 3, 4) the output "tip", of the states' float type.

        Args:
            states: (B, state_size).
            parameters: (B, P), or (1, P) for all.
        """
        return self._tips(*self._arguments.observe("tip_poses", states, parameters))

    def equilibrium(self, inputs: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """See Model; the exact rod's."""
        return self.rod.equilibrium(inputs, parameters)

    def rod_parameters(self, parameters: np.ndarray) -> np.ndarray:
        """(B, Q) parameters of the rod, from the model's (B, P)."""
        return parameters

    def tip_beyond(self, end: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """(4, 4) the output "tip" from the pose (4, 4) of the rod's last node.

        Args:
            end: in the base frame [m].
            parameters: (P,).
        """
        return self.rod.tip_pose_from_rod_tip(end)

    def warm_up(self) -> None:
        """See Model: compiles (or loads) every kernel a control loop may call."""
        states, levels = np.zeros((2, self.state_size)), np.zeros((2, 2, self.input_size))
        parameters = np.repeat(self.nominal_parameters[None], 2, axis=0)
        for batch in (2, 1):
            begin, end = levels[:batch, 0], levels[:batch, 1]
            self.step(states[:batch], begin, end, parameters[:batch], 0.01)
        rolled = self.rollout(states[0], levels, parameters[0], 0.01)
        self.rollout_tips(states[0], levels, parameters[0], 0.01)
        self.tip_poses(states, parameters)
        self.tip_poses(rolled[:, -1], parameters)
        self.rod.equilibrium(levels[0, 0])
        self.rod.tip_pose(states[0])
        self.rod.node_poses(states[0])
        self.rod.base_wrench(states[0], levels[0, 0])

    def _tips(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """`tip_poses` of what is checked."""
        rod = self.rod
        return stepper.poses(states, parameters, rod.body, rod.grid, rod.fittings)

    def _wrenches(self, states: np.ndarray, acting: np.ndarray, rows: np.ndarray) -> np.ndarray:
        acting = np.broadcast_to(acting, (len(states), self.input_size))
        return self.rod.base_wrenches(*map(_contiguous, (states, acting, self._rows(states, rows))))

    def _shapes(self, states: np.ndarray, _: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        each = zip(states, self._rows(states, parameters), strict=True)
        return np.stack([self.rod.node_poses(x, p)[:, :3, 3] for x, p in each])

    @staticmethod
    def _rows(states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """(B, P), a row for each state."""
        return np.broadcast_to(parameters, (len(states), parameters.shape[1]))

    def _seen(
        self, sensor: PoseSensor, states: np.ndarray, _: np.ndarray, parameters: np.ndarray
    ) -> np.ndarray:
        """(B, 3, 4) poses that a sensor along the body sees, in the base frame."""
        states, parameters = map(_contiguous, (states, self._rows(states, parameters)))
        segment = _segment(self.rod, sensor)
        return _beside(self.rod.poses_at(states, segment, sensor.at, parameters), sensor)


def sensor_pose(rod: CosseratRod, sensor: PoseSensor, state: np.ndarray) -> np.ndarray:
    """(3, 4) pose that a sensor along the body sees of a state (nx,), in the base frame."""
    return _beside(rod.pose_at(state, _segment(rod, sensor), sensor.at), sensor)


def _segment(rod: CosseratRod, sensor: PoseSensor) -> int:
    names = rod.robot.segment_names
    return names.index(sensor.segment or names[-1])


def _beside(poses: np.ndarray, sensor: PoseSensor) -> np.ndarray:
    """(..., 3, 4) of a sensor from those (..., 4, 4) of its place on the centre line."""
    seen = poses[..., :3, :].copy()
    seen[..., 3] += seen[..., :3] @ np.array(sensor.offset)
    return seen


def _contiguous(rows: np.ndarray) -> np.ndarray:
    """float64, as compiled loops take it."""
    return np.ascontiguousarray(rows, dtype=float)


def rod_robot(robot: Any, model: str) -> Robot:
    """The robot, if it is a rod.

    Raises:
        UserError: it is another kind; the line names it and the model.
    """
    if not isinstance(robot, Robot):
        name = getattr(robot, "name", type(robot).__name__)
        raise UserError(f"model {model!r}: is for a rod, which {name} is not")
    return robot
