"""Planar strain robots as data: what the file of a robot of type `strain` says."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
import yaml
from pydantic import Field, model_validator

from softcr_models.files.number_types import (
    Density,
    FileName,
    Finite,
    Length,
    Modulus,
    NonNegative,
    Positive,
    Triple,
    Width,
)
from softcr_models.robots.kinds import ShownInput
from softcr_models.robots.parts import Data
from softcr_models.robots.robot import load_robot
from softcr_papers.valadas2024.strain.kinematics import (
    STRAINS,
    StrainKinematics,
    kinds_first,
    transforms,
)
from softcr_papers.valadas2024.strain.numbers import StrainNumbers, strain_name

Strain = Literal["bending", "shear", "axial"]
Convention = Literal["per_length", "integrated"]

_NotNegative3 = Annotated[tuple[NonNegative, ...], Field(min_length=3, max_length=3)]


class MaterialSegment(Data):
    """A round, homogeneous segment of a known material."""

    type: Literal["material"]
    length: Length = Field(description="rest length [m]")
    radius: Width = Field(description="radius of the cross-section [m]")
    density: Density = Field(description="density of the material [kg/m^3]")
    youngs_modulus: Modulus = Field(description="Young's modulus E for bending [Pa]")
    axial_modulus: Modulus | None = Field(
        default=None, description="E for axial strain; that of bending when absent [Pa]"
    )
    shear_modulus: Modulus = Field(description="shear modulus G [Pa]")
    shear_factor: Positive = Field(
        default=4.0 / 3.0, description="shear stiffness divided by G times area [-]"
    )
    damping: _NotNegative3 = Field(
        description="damping of bending [N m^2 s], shear and axial strain [N s]; per strain, not "
        "per length"
    )


class IdentifiedSegment(Data):
    """A segment whose numbers were identified from its motion."""

    type: Literal["identified"]
    length: Length = Field(description="rest length [m]")
    mass: Positive = Field(description="mass per length [kg/m]")
    inertia: Positive = Field(
        description="moment of inertia of the cross-section, per length [kg m]"
    )
    weight: Finite = Field(description="weight per length, along gravity [N/m]")
    strains: Annotated[tuple[Strain, ...], Field(max_length=3)] = Field(
        description="strains that are kept; the others are too stiff to matter"
    )
    stiffness: Annotated[tuple[Finite, ...], Field(max_length=3)] = Field(
        description="stiffness of each strain kept: bending [N m^2], shear and axial [N]"
    )
    damping: Annotated[tuple[Finite, ...], Field(max_length=3)] = Field(
        description="damping of each strain kept: bending [N m^2 s], shear and axial [N s]"
    )

    @model_validator(mode="after")
    def _fits(self) -> "IdentifiedSegment":
        places = [STRAINS.index(strain) for strain in self.strains]
        if places != sorted(set(places)):
            raise ValueError(f"strains {list(self.strains)} must keep the order {list(STRAINS)}")
        for name in ("stiffness", "damping"):
            if len(getattr(self, name)) != len(places):
                raise ValueError(f"{name} must have one number for each of {len(places)} strains")
        return self


StrainSegment = Annotated[MaterialSegment | IdentifiedSegment, Field(discriminator="type")]


class StrainArm(Data):
    """A planar robot of segments of constant strain, with a torque on each strain. SI units."""

    sees_tip: ClassVar = False
    in_world: ClassVar = False

    type: Literal["strain"]
    name: FileName = Field(description="name of the robot")
    description: str = Field(default="", description="description in one line")
    segments: Annotated[tuple[StrainSegment, ...], Field(min_length=1, max_length=8)] = Field(
        description="the segments, from the base to the tip"
    )
    stiffness_convention: Convention = Field(
        default="per_length",
        description="per_length: torque is E I, G A, E A times strain, as Valadas et al. have it; "
        "integrated: that times the segment's length, as energy has it",
    )
    gravity: Annotated[tuple[Finite, ...], Field(min_length=2, max_length=2)] = Field(
        default=(0.0, 9.81),
        description="gravity in the plane, across and along the straight robot from its base "
        "[m/s^2]",
    )
    largest_torque: Triple = Field(
        default=(0.2, 5.0, 5.0),
        description="largest torques on bending [N m], shear and axial strain [N]",
    )
    fastest_full_range: Positive = Field(
        default=0.01, description="time a torque takes from its lowest to its highest value [s]"
    )
    markers: Annotated[int, Field(ge=1, le=200)] = Field(
        default=20,
        description="number of cross-sections whose poses cameras see, evenly spaced from the base "
        "(excluded) to the tip (included) [-]",
    )
    marker_noise: Annotated[tuple[NonNegative, ...], Field(min_length=2, max_length=2)] = Field(
        default=(1e-4, 8.7e-3),
        description="standard deviations of a simulated camera: position [m], angle [rad]",
    )

    @model_validator(mode="after")
    def _moves(self) -> "StrainArm":
        if any(not torque > 0.0 for torque in self.largest_torque):
            raise ValueError(f"largest_torque {list(self.largest_torque)} must be above 0")
        if not any(self._kept(segment) for segment in self.segments):
            raise ValueError("segments: no strain is kept")
        return self

    @property
    def lengths(self) -> np.ndarray:
        """(S,) rest lengths [m]."""
        return np.array([segment.length for segment in self.segments])

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Of the torques: strains that are kept, such as `bending_1`."""
        return tuple(strain_name(index) for index in self._active())

    @property
    def length(self) -> float:
        """Of the whole robot, unloaded [m]."""
        return float(self.lengths.sum())

    @property
    def radius(self) -> float:
        """Of the first segment's cross-section [m]; where the file tells none, that of a round,
        homogeneous one with its moment of inertia."""
        first = self.segments[0]
        if isinstance(first, MaterialSegment):
            return first.radius
        return 2.0 * math.sqrt(first.inertia / first.mass)

    @property
    def base_orientation(self) -> tuple[float, float, float]:
        """Roll, pitch, yaw of the base in the world, whose z is up: the base's z is along the
        straight robot, its x across it in the plane [rad]."""
        across, along = self.gravity
        return 0.0, math.pi - math.atan2(across, along), 0.0

    @property
    def bodies_seen(self) -> tuple[str, ...]:
        """The markers, base to tip."""
        return tuple(f"marker_{number + 1}" for number in range(self.markers))

    @property
    def shown_inputs(self) -> tuple[ShownInput, ...]:
        """(m,) torques on bending in mN m, forces on shear and axial strain in N."""
        shown = ("torque", 1e3, "mN m"), ("force", 1.0, "N"), ("force", 1.0, "N")
        found = []
        for index in self._active():
            largest = self.largest_torque[index % 3]
            found.append(ShownInput(strain_name(index), *shown[index % 3], -largest, largest))
        return tuple(found)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Sets of kernels that its models call."""
        return ("softcr_papers.valadas2024.strain.warm_up:KERNELS",)

    def tip_solver(self) -> None:
        """None: the steady states of its model."""

    def centre_line(
        self, state: Mapping[str, np.ndarray], parameters: Mapping[str, float], points: int
    ) -> np.ndarray | None:
        """(points, 3, 4) of the strains that are kept, in segments as long as the file says."""
        told = [state[name] for name in ("bending", "linear_strains") if name in state]
        numbers = self.numbers
        if sum(map(len, told)) != numbers.size:
            return None
        strains, chain = np.empty(numbers.size), StrainKinematics(self.lengths)
        strains[kinds_first(numbers.active)] = np.concatenate(told)
        places = np.linspace(0.0, chain.length, points)
        return transforms(chain.poses(numbers.full(strains), places))

    @property
    def marker_places(self) -> np.ndarray:
        """(markers,) places on the unloaded backbone, of which the last is the tip [m]."""
        return np.linspace(0.0, self.lengths.sum(), self.markers + 1)[1:]

    @property
    def numbers(self) -> StrainNumbers:
        """What the equations of motion are made of."""
        size = math.hypot(*self.gravity)
        down = np.array(self.gravity) / size if size > 0.0 else np.array([0.0, 1.0])
        densities = [self._densities(segment, size) for segment in self.segments]
        mass, inertia, weight = (np.array(column) for column in zip(*densities, strict=True))
        springs = [self._springs(segment) for segment in self.segments]
        active = self._active()
        return StrainNumbers(
            self.lengths, mass, inertia, weight, down,
            np.concatenate([stiffness for stiffness, _ in springs]),
            np.concatenate([damping for _, damping in springs]), np.array(active),
        )  # fmt: skip

    def as_yaml(self) -> str:
        """The text of a robot file."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, width=100)

    def save(self, path: Path) -> None:
        """Writes a robot file.

        Raises:
            OSError: it cannot be written.
        """
        path.write_text(self.as_yaml(), encoding="utf-8")

    def _active(self) -> list[int]:
        """Indices of the strains kept."""
        return [3 * i + k for i, each in enumerate(self.segments) for k in self._kept(each)]

    @staticmethod
    def _kept(segment: MaterialSegment | IdentifiedSegment) -> list[int]:
        if isinstance(segment, MaterialSegment):
            return [0, 1, 2]
        return [STRAINS.index(strain) for strain in segment.strains]

    @staticmethod
    def _densities(
        segment: MaterialSegment | IdentifiedSegment, gravity: float
    ) -> tuple[float, float, float]:
        if isinstance(segment, IdentifiedSegment):
            return segment.mass, segment.inertia, segment.weight
        area = np.pi * segment.radius**2
        mass = segment.density * area
        return mass, segment.density * area * segment.radius**2 / 4.0, gravity * mass

    def _springs(
        self, segment: MaterialSegment | IdentifiedSegment
    ) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(segment, IdentifiedSegment):
            return np.array(segment.stiffness, float), np.array(segment.damping, float)
        area = np.pi * segment.radius**2
        axial = segment.axial_modulus or segment.youngs_modulus
        stiffness = area * np.array(
            [
                segment.youngs_modulus * segment.radius**2 / 4.0,
                segment.shear_factor * segment.shear_modulus,
                axial,
            ]
        )
        if self.stiffness_convention == "integrated":
            stiffness = stiffness * segment.length
        return stiffness, np.array(segment.damping)


def load_strain_arm(name_or_path: str | Path) -> StrainArm:
    """`load_robot` for what needs a strain robot; raises UserError as it does."""
    robot: StrainArm = load_robot(name_or_path, ("strain",))
    return robot


def identified_arm(
    name: str,
    numbers: StrainNumbers,
    gravity: Sequence[float],
    largest_torque: Sequence[float],
    description: str = "",
) -> StrainArm:
    """The robot file of identified numbers.

    Args:
        name: of the robot.
        numbers: as found.
        gravity: (2,) across and along the straight robot [m/s^2].
        largest_torque: (3,) on bending [N m], shear and axial strain [N].
        description: one line for people.

    Raises:
        pydantic.ValidationError: the numbers are not physical, such as a mass that is not above 0.
    """
    segments = []
    for i, length in enumerate(numbers.lengths.tolist()):
        kept = np.flatnonzero(numbers.active // 3 == i)
        content: Mapping[str, object] = {
            "type": "identified", "length": length, "mass": float(numbers.mass[i]),
            "inertia": float(numbers.inertia[i]), "weight": float(numbers.weight[i]),
            "strains": [STRAINS[index % 3] for index in numbers.active[kept]],
            "stiffness": numbers.stiffness[kept].tolist(),
            "damping": numbers.damping[kept].tolist(),
        }  # fmt: skip
        segments.append(content)
    return StrainArm.model_validate(
        {
            "type": "strain", "name": name, "description": description, "segments": segments,
            "gravity": list(gravity), "largest_torque": list(largest_torque),
        }
    )  # fmt: skip
