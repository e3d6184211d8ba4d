"""Tendon-driven arms as data: what the file of a robot of type `arm` says."""

from typing import Annotated, Literal

import numpy as np
import pinocchio as pin
from pydantic import Field, model_validator

from softcr_models.constant_curvature.kinematics import ConstantCurvatureChain
from softcr_models.constant_curvature.tendons import Routing, Tendons
from softcr_models.files.number_types import (
    Angle,
    Count,
    Density,
    FileName,
    Gravity,
    Length,
    LengthNoise,
    Modulus,
    Name,
    NonNegative,
    RollPitchYaw,
    Width,
)
from softcr_models.robots.parts import Data, check_names


class Tendon(Data):
    """One tendon, parallel to the centre line, fixed at a rack."""

    type: Literal["tendon"]
    name: Name = Field(description="name, different from that of every other actuator")
    rack: Count = Field(
        description="number of the rack in `racks` at which it is fixed, from 1 [-]"
    )
    angle: Angle = Field(description="angle of its position about z from the x axis [rad]")
    lever_arm: Width = Field(description="distance from the centre line [m]")


class RackPosesSensor(Data):
    """Poses of all racks, seen by cameras."""

    type: Literal["rack_poses"]
    noise: LengthNoise = Field(description="standard deviation of each coordinate [m]")


ArmActuator = Tendon
"""What can move an arm; a union discriminated by `type` as soon as there is a second one."""

ArmSensor = RackPosesSensor
"""What can be measured of an arm; likewise."""


class Arm(Data):
    """A round, homogeneous arm of constant-curvature bodies, with tendons and sensors at racks.

    SI units. Delta is scaled by 1 m: a bend of 1 rad is Delta = 1 m. docs/howto/robot.md says how
    to write a file.
    """

    type: Literal["arm"]
    name: FileName = Field(description="name of the robot")
    description: str = Field(default="", description="description in one line")
    bodies: Annotated[tuple[Length, ...], Field(min_length=1)] = Field(
        description="rest lengths of the arm's bodies, base to tip [m]"
    )
    radius: Width = Field(description="radius of the cross-section [m]")
    density: Density = Field(description="density of the body [kg/m^3]")
    youngs_modulus: Modulus = Field(description="Young's modulus E [Pa]")
    relaxation_time: NonNegative = Field(description="damping over stiffness [s]")
    racks: Annotated[tuple[Length, ...], Field(min_length=1)] = Field(
        description="material abscissae at which tendons are fixed and sensors sit, increasing [m]"
    )
    routing: Routing = Field(
        description="coupled: every tendon begins at the base; independent: at the rack before its "
        "own"
    )
    actuators: Annotated[tuple[ArmActuator, ...], Field(min_length=1)] = Field(
        description="the tendons; their order is that of every vector of inputs"
    )
    sensors: Annotated[tuple[ArmSensor, ...], Field(min_length=1, max_length=1)] = Field(
        default=(RackPosesSensor(type="rack_poses", noise=2e-4),),
        description="the sensors; their noises are those of simulated sensors",
    )
    base_orientation: RollPitchYaw = Field(
        description="roll, pitch, yaw of the base in the world [rad]; (pi, 0, 0) hangs"
    )
    gravity: Gravity = Field(description="gravity along the world's -z [m/s^2]")

    @model_validator(mode="after")
    def _racks_lie_on_the_arm(self) -> "Arm":
        if any(b <= a for a, b in zip((0.0, *self.racks), self.racks, strict=False)):
            raise ValueError(f"racks {list(self.racks)} must rise from above 0")
        if self.racks[-1] > sum(self.bodies) + 1e-9:
            raise ValueError(f"racks: {self.racks[-1]} m is beyond the arm's {sum(self.bodies)} m")
        check_names(self.actuator_names)
        for tendon in self.actuators:
            if tendon.rack > len(self.racks):
                raise ValueError(
                    f"actuators: {tendon.name} is fixed at rack {tendon.rack}, there are "
                    f"{len(self.racks)}"
                )
        return self

    @property
    def rest_lengths(self) -> np.ndarray:
        """(n,) of the bodies [m]."""
        return np.array(self.bodies)

    @property
    def base(self) -> np.ndarray:
        """(4, 4) pose of the base in the world."""
        rotation = pin.rpy.rpyToMatrix(*self.base_orientation)
        return np.ascontiguousarray(pin.SE3(rotation, np.zeros(3)).homogeneous)

    @property
    def chain(self) -> ConstantCurvatureChain:
        """The true arm's kinematics; poses in the world."""
        return ConstantCurvatureChain(len(self.bodies), base=self.base)

    @property
    def model(self) -> ConstantCurvatureChain:
        """A controller's coarser arm: one section from rack to rack."""
        return ConstantCurvatureChain(len(self.racks), base=self.base)

    @property
    def model_lengths(self) -> np.ndarray:
        """(r,) pi_v, rest lengths from rack to rack [m]."""
        return np.diff(self.racks, prepend=0.0)

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of all actuators, in the order of every vector of inputs."""
        return tuple(actuator.name for actuator in self.actuators)

    @property
    def tendon_names(self) -> tuple[str, ...]:
        """Names of the tendons, in the order of every vector of tendons."""
        return self.actuator_names

    def tendons(self, routing: Routing | None = None) -> Tendons:
        """Where the tendons run.

        Args:
            routing: as a controller assumes it; None for the arm's own.
        """
        angles = np.array([tendon.angle for tendon in self.actuators])
        arms = np.array([tendon.lever_arm for tendon in self.actuators])
        index = np.array([tendon.rack for tendon in self.actuators])
        ends = np.array([0.0, *self.racks])
        begins = ends[index - 1] if (routing or self.routing) == "independent" else 0.0 * arms
        offsets = arms[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
        return Tendons(offsets, begins, ends[index])
