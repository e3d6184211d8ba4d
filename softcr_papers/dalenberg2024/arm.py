"""Tendon-driven arms as data: what the file of a robot of type `arm` says."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import pinocchio as pin
from pydantic import Field, model_validator

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
from softcr_models.model import TIP
from softcr_models.robots.kinds import ShownInput
from softcr_models.robots.parts import Data, check_names
from softcr_models.robots.robot import load_robot
from softcr_papers.constant_curvature.kinematics import ConstantCurvatureChain
from softcr_papers.dalenberg2024.tendons import Routing, Tendons

_LARGEST_BEND = 1.0
"""Of each section, where the tip is led to goals; as `ArmModelSettings` has it [rad]."""


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

    sees_tip: ClassVar = False
    in_world: ClassVar = True

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
        description="the sensors; their noises are those of simulated sensors and what a filter "
        "assumes",
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
    def length(self) -> float:
        """Of all bodies together [m]."""
        return float(sum(self.bodies))

    @property
    def bodies_seen(self) -> tuple[str, ...]:
        """The racks, base to tip."""
        return tuple(f"rack_{number + 1}" for number in range(len(self.racks)))

    @property
    def output_noises(self) -> dict[str, tuple[float, ...]]:
        """As `Robot.output_noises`, of the racks and the tip, which is the last of them."""
        return dict.fromkeys((*self.bodies_seen, TIP), (self.sensors[0].noise,))

    @property
    def shown_inputs(self) -> tuple[ShownInput, ...]:
        """(a,) changes of tendon length in mm; no file tells how far they may go."""
        shown = "tendon", 1e3, "mm", -np.inf, np.inf
        return tuple(ShownInput(name, *shown) for name in self.actuator_names)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Sets of kernels that its models call."""
        return ("constant_curvature",)

    def tip_solver(self) -> "ArmTipSolver":
        """Bends of the sections from rack to rack."""
        return ArmTipSolver(self)

    def centre_line(
        self, state: Mapping[str, np.ndarray], parameters: Mapping[str, float], points: int
    ) -> np.ndarray | None:
        """(points, 4, 4) of sections as long as `rest_length_1`, ... among the parameters say, or
        else as the sections from rack to rack, or the bodies, whose number they have."""
        if "coordinates" not in state:
            return None
        sections = len(state["coordinates"]) // 3
        names = [f"rest_length_{number + 1}" for number in range(sections)]
        nominal = self.model_lengths if sections == len(self.racks) else self.rest_lengths
        if all(name in parameters for name in names):
            nominal = np.array([parameters[name] for name in names])
        chain = ConstantCurvatureChain(sections, base=self.base)
        return chain.backbone(state["coordinates"], nominal, points)

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


def load_arm(name_or_path: str | Path) -> Arm:
    """`load_robot` for what needs an arm; raises UserError as it does."""
    robot: Arm = load_robot(name_or_path, ("arm",))
    return robot


class ArmTipSolver:
    """The bends (2 n,) of an arm's n sections from rack to rack, about y and about x [rad]."""

    chooses_orientation = False

    def __init__(self, arm: Arm) -> None:
        self._chain, self._lengths = arm.model, arm.model_lengths
        size = 2 * len(self._lengths)
        self.low, self.high = np.full(size, -_LARGEST_BEND), np.full(size, _LARGEST_BEND)
        self.rate = np.full(size, np.inf)  # no arm file tells how fast tendons are

    def tip(self, numbers: np.ndarray) -> np.ndarray:
        """(3,) where the tip stands with bends (2 n,) [m]."""
        shape = np.zeros((len(self._lengths), 3))
        shape[:, :2] = numbers.reshape(-1, 2)
        return np.asarray(self._chain.position(shape.ravel(), self._lengths))

    def orientation(self, numbers: np.ndarray) -> None:
        """None: the controller of an arm is told positions alone."""

    @property
    def rest(self) -> np.ndarray:
        return np.zeros(len(self.low))
