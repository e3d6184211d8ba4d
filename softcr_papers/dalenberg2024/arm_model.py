"""A tendon-driven arm of several sections, with the loops of its tendons, as a `Model`.

The equations of motion are `ArmDynamics`'s (Dalenberg, (33) to (38)) on the arm that a controller
assumes: one section of constant curvature from rack to rack, coarser than the true one. Inputs are
wanted changes of the tendons' lengths, which the motors' PID loops follow.
"""

import math
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from softcr_models.errors import UserError
from softcr_models.model import (
    TIP,
    Group,
    Inputs,
    Layout,
    OutputInfo,
    Parameter,
)
from softcr_models.model_base import ModelBase
from softcr_models.rod.description import SHAPE
from softcr_papers.constant_curvature.kinematics import coverage_of
from softcr_papers.dalenberg2024.arm import Arm
from softcr_papers.dalenberg2024.arm_dynamics import ArmDynamics, TendonGains

_Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
_STEPS_OF_NEWTON = 50
_LONGEST_BEND = 0.3
"""Coordinates change by so much in a step of Newton's method at most [m]."""


class ArmModelSettings(BaseModel):
    """Numbers of an `ArmModel`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sections: Literal["racks", "bodies"] = Field(
        default="racks", description="one section from rack to rack, or one per body of the arm"
    )
    longest_step: Annotated[float, Field(gt=0.0, le=0.02)] = Field(
        default=0.005, description="largest sub-step of the integration [s]"
    )
    quadrature: Annotated[int, Field(ge=1, le=20)] = Field(
        default=3, description="number of points per section that carry its mass [-]"
    )
    points: Annotated[int, Field(ge=2, le=200)] = Field(
        default=13, description="number of points of the output shape, base to tip [-]"
    )
    payload: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] = Field(
        default=0.0, description="nominal point mass at the tip [kg]"
    )
    highest_payload: _Positive = Field(default=1.0, description="largest estimated payload [kg]")
    largest_bend: _Positive = Field(
        default=1.0,
        description="largest bending of each section [rad]; with the largest stretch it limits the "
        "lengths",
    )
    largest_stretch: _Positive = Field(
        default=0.2,
        description="largest stretch or shortening of each section, relative to its rest length "
        "[-]",
    )
    fastest_full_range: _Positive = Field(
        default=0.5, description="time a tendon takes from its lowest to its highest length [s]"
    )
    loops: Literal["configuration", "tendon"] = Field(
        default="configuration", description="space of the motors' loops (see TendonGains)"
    )
    unilateral: bool = Field(default=False, description="whether tendons only pull")


class ArmModel(ModelBase):
    """An arm with tendon loops; see `Model`.

    The state is q (3 n,) [m] (`coordinates`), its rates [m/s] (`rates`), and the integrals (a,) of
    the tendons' length errors [m s] (`integrals`). Poses are in the frame of the arm's base with
    the world's axes, as its cameras see them: `tip`, `rack_1`, `rack_2`, ... and `shape`, points
    from base to tip.

    A tendon of the length change y follows the wanted y_d, and no arm file says how far it may go.
    The limits are those of an arm whose sections all bend by `largest_bend` and are stretched by
    `largest_stretch` at a time, from where the tendon begins to where it ends; the rate crosses
    that range in `fastest_full_range` seconds.

    Attributes:
        arm: the data, of the true arm.
        dynamics: the equations of the model's arm.
        settings: of the model.
        gains: of the tendons' loops.
    """

    Settings = ArmModelSettings

    def __init__(self, arm: Arm, settings: ArmModelSettings | None = None) -> None:
        """
        Args:
            arm: the data.
            settings: of the model.
        """
        self.arm, self.settings = arm, settings or ArmModelSettings()
        own = self.settings
        body_of = arm if own.sections == "bodies" else _from_rack_to_rack(arm)
        self.dynamics = ArmDynamics(body_of, quadrature=own.quadrature)
        self.gains = TendonGains(space=own.loops, unilateral=own.unilateral)
        self._lengths = self.dynamics.arm.rest_lengths
        self._size, tendons = self.dynamics.actuation.shape
        racks = coverage_of(np.array(arm.racks), self._lengths)
        places = {TIP: np.ones(len(self._lengths))}
        places |= {f"rack_{number + 1}": place for number, place in enumerate(racks)}
        self.inputs = _tendon_lengths(self.dynamics, own)
        # a section bends by 1 rad and is stretched by a tenth in half a second
        size = np.outer(self._lengths, [0.0, 0.0, 0.1]).ravel()
        size[0::3] = size[1::3] = 1.0
        self.state = Layout(
            (
                Group("coordinates", np.arange(self._size), "m"),
                Group("rates", np.arange(self._size, 2 * self._size), "m/s"),
                Group("integrals", np.arange(2 * self._size, 2 * self._size + tendons), "m s"),
            ),
            np.concatenate([size, 2.0 * size, 0.5 * self.inputs.range]),
        )
        self.parameters: tuple[Parameter, ...] = (
            Parameter("stiffness_factor", "-", 1.0, 0.5, 2.0, noise=5e-4, deviation=0.1),
            Parameter(
                "payload", "kg", own.payload, 0.0, max(own.highest_payload, own.payload), "linear",
                noise=0.05, deviation=1.0, scale=0.1,
            ),
        )  # fmt: skip
        pose = OutputInfo((3, 4), "m", "pose")
        self._tells(
            {
                **{name: (pose, partial(self._seen, each)) for name, each in places.items()},
                SHAPE: (OutputInfo((own.points, 3), "m", "points"), self._shapes),
            }
        )

    @classmethod
    def of_robot(cls, robot: Any, settings: ArmModelSettings | None = None) -> "ArmModel":
        """The model of an arm.

        Raises:
            UserError: the robot is not an arm that tendons drive.
        """
        if not isinstance(robot, Arm):
            name = getattr(robot, "name", type(robot).__name__)
            raise UserError(f"model 'arm': is for an arm driven by tendons, which {name} is not")
        return cls(robot, settings)

    def equilibrium(self, inputs: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """Where an arm that follows inputs (a,) [m] for some seconds hangs still.

        The integrals are 0, as the loops begin. They grow with the tendons' errors that weight and
        springs leave, and would take minutes to do away with them (proportional over integral
        gain, 750 s); so coordinates and rates are steady over a motion, integrals are not.

        Raises:
            UserError: none is found by Newton's method from the straight pose.
        """
        reference, numbers = self._arguments.equilibrium(inputs, parameters)
        factor, payload = numbers

        def force(q: np.ndarray) -> np.ndarray:
            return self.dynamics.static_force(q, reference, factor, payload, self.gains)

        q, small = np.zeros(self._size), 1e-6 * np.eye(self._size)
        for _ in range(_STEPS_OF_NEWTON):
            slopes = (force(q + small) - force(q - small)).T / 2e-6
            change = -np.linalg.solve(slopes, force(q))
            q = q + change * min(1.0, _LONGEST_BEND / max(np.abs(change).max(), 1e-300))
            if np.abs(change).max() < 1e-11:
                return np.concatenate([q, np.zeros(self._size), np.zeros(len(reference))])
        raise UserError(f"no steady state was found at inputs {reference.tolist()} m")

    def _states_after(
        self, states: np.ndarray, levels: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        substeps = math.ceil(dt / self.settings.longest_step - 1e-9)
        return self.dynamics.rollout(states, levels, parameters, dt, substeps, self.gains)

    def _seen(
        self, place: np.ndarray, states: np.ndarray, _: np.ndarray, __: np.ndarray
    ) -> np.ndarray:
        """(..., 3, 4) the pose at a place, of states (..., nx)."""
        q = states[..., : self._size]
        return self.dynamics.chain.pose(q, self._lengths, place)[..., :3, :]

    def _shapes(self, states: np.ndarray, _: np.ndarray, __: np.ndarray) -> np.ndarray:
        q = states[:, : self._size]
        poses = self.dynamics.chain.backbone(q, self._lengths, self.settings.points)
        return poses[..., :3, 3].copy()


def section_layout(sections: int) -> Layout:
    """Of the coordinates (3 n,) of n sections alone [m]."""
    return Layout((Group("coordinates", np.arange(3 * sections), "m"),), np.ones(3 * sections))


def _from_rack_to_rack(arm: Arm) -> Arm:
    """The arm with one body from rack to rack, and one beyond the last rack if there is more."""
    ends = [*arm.racks]
    if sum(arm.bodies) - ends[-1] > 1e-6:
        ends.append(sum(arm.bodies))
    return arm.model_copy(update={"bodies": tuple(np.diff(ends, prepend=0.0).tolist())})


def _tendon_lengths(dynamics: ArmDynamics, settings: ArmModelSettings) -> Inputs:
    """The inputs of an arm: changes of tendon length."""
    arms = np.abs(dynamics.actuation.T).reshape(-1, len(dynamics.arm.bodies), 3)
    bends = np.linalg.norm(arms[..., :2], axis=-1).sum(axis=-1) * settings.largest_bend
    stretches = arms[..., 2] @ dynamics.arm.rest_lengths * settings.largest_stretch
    high = bends + stretches
    return Inputs(
        quantity="tendon_length",
        names=dynamics.arm.actuator_names,
        unit="m",
        low=-high,
        high=high,
        rate=2.0 * high / settings.fastest_full_range,
    )
