"""What a rod's body is made of: soft segments in series, rigid connectors between, a payload."""

import math
from typing import Annotated, Any, ClassVar

import numpy as np
import pinocchio as pin
from pydantic import Discriminator, Field, Tag, model_validator
from scipy.spatial.transform import Rotation

from softcr_models.files.number_types import (
    Density,
    Length,
    Mass,
    Name,
    NonNegative,
    Offset,
    Positive,
    RollPitchYaw,
    Width,
    WidthOrNone,
)
from softcr_models.robots.parts import SparseData
from softcr_models.rod.section import MAX_INTERVALS

MAX_SEGMENTS = 8


def _number_or_pair(value: Any) -> str:
    return "pair" if isinstance(value, (list, tuple)) else "number"


_Pair = Annotated[tuple[Positive, ...], Field(min_length=2, max_length=2)]
Compliance = Annotated[
    Annotated[Positive, Tag("number")] | Annotated[_Pair, Tag("pair")],
    Discriminator(_number_or_pair),
]
"""One number, or one about the x axis and one about the y axis."""

Inertia = Annotated[tuple[NonNegative, ...], Field(min_length=3, max_length=3)]


_SOFTEST, _STIFFEST = 10.0, 1e15  # Young's modulus of anything that a rod may be like [Pa]


class RigidBody(SparseData):
    """A body that does not deform."""

    mass: Mass = Field(description="mass of the body [kg]")
    inertia: Inertia = Field(
        default=(0.0, 0.0, 0.0),
        description="moments of inertia about axes through its centre of mass that are parallel to "
        "its frame's x, y, z [kg m^2]",
    )

    @model_validator(mode="after")
    def _inertia_is_possible(self) -> "RigidBody":
        largest, total = max(self.inertia), sum(self.inertia)
        if largest > 0.0 and self.mass == 0.0:
            raise ValueError(f"inertia {list(self.inertia)}: a body of mass 0 has none")
        if 2.0 * largest > total * (1.0 + 1e-9):
            raise ValueError(
                f"inertia {list(self.inertia)} is that of no body: none may exceed the sum of the "
                "other two"
            )
        return self

    def _spatial_inertia(self, centre: np.ndarray) -> np.ndarray:
        c = pin.skew(centre)
        corner = np.diag(self.inertia) - self.mass * c @ c
        return np.block([[self.mass * np.eye(3), -self.mass * c], [self.mass * c, corner]])


class Connector(RigidBody):
    """A rigid part between two segments. Its frame is that at the end of the segment before it.

    It leads to the frame at the start of the next segment by `offset`, then `rotation_matrix`.
    """

    optional: ClassVar = {"centre_of_mass": "centre_of_mass", "translation": "translation"}

    length: WidthOrNone = Field(description="length along z [m]")
    centre_of_mass: Offset | None = Field(
        default=None,
        description="centre of mass in its frame; half way to the next segment when absent [m]",
    )
    rotation: RollPitchYaw = Field(
        default=(0.0, 0.0, 0.0),
        description="roll, pitch, yaw of the next segment's frame in this one [rad]",
    )
    translation: Offset | None = Field(
        default=None,
        description="translation of the next segment's frame in this one, if it is not (0, 0, "
        "length); its z must be the length [m]",
    )

    @model_validator(mode="after")
    def _segments_meet(self) -> "Connector":
        along = self.length if self.translation is None else self.translation[2]
        if not math.isclose(along, self.length, rel_tol=1e-6, abs_tol=1e-9):
            raise ValueError(
                f"translation {list(self.translation or ())}: the segments do not meet, its z must "
                f"be the length {self.length}"
            )
        return self

    @property
    def offset(self) -> np.ndarray:
        """(3,) origin of the next segment's frame [m]."""
        return np.array(self.translation or (0.0, 0.0, self.length))

    @property
    def rotation_matrix(self) -> np.ndarray:
        """(3, 3) of the next segment's frame in the connector's."""
        matrix: np.ndarray = Rotation.from_euler("xyz", self.rotation).as_matrix()
        return matrix

    @property
    def centre(self) -> np.ndarray:
        """(3,) centre of mass in the frame at the end of the segment before [m]."""
        return 0.5 * self.offset if self.centre_of_mass is None else np.array(self.centre_of_mass)

    @property
    def spatial_inertia(self) -> np.ndarray:
        """(6, 6) about the origin of its frame, linear first: momentum = matrix @ twist [SI]."""
        return self._spatial_inertia(self.centre)


class Payload(RigidBody):
    """A rigid body at the tip, in the frame of the last segment's end; `tip_mass` is beside it."""

    centre_of_mass: Offset = Field(
        default=(0.0, 0.0, 0.0),
        description="centre of mass in the frame of the last segment's end [m]",
    )

    @property
    def spatial_inertia(self) -> np.ndarray:
        """(6, 6) about the origin of its frame, linear first: momentum = matrix @ twist [SI]."""
        return self._spatial_inertia(np.array(self.centre_of_mass))


class Segment(SparseData):
    """A soft, straight, round piece of a rod with the same section all along."""

    optional: ClassVar = {
        "name": "name",
        "intervals": "intervals",
        "connector": "connector",
        "routing_radius": "routing_radius",
    }

    name: Name | None = Field(
        default=None,
        description="name, different from that of every other segment; segment_1, segment_2 when "
        "absent",
    )
    length: Length = Field(description="reference length [m]")
    outer_diameter: Width = Field(description="outer diameter of the body [m]")
    inner_diameter: WidthOrNone = Field(description="diameter of the central hole [m]")
    density: Density = Field(description="density of the body [kg/m^3]")
    bending_compliance: Compliance = Field(
        description="1 / EI [rad/(N m m)]; two numbers if those about x and about y differ"
    )
    dilatation_compliance: Positive = Field(description="1 / EA [m/(N m)]")
    shear_compliance: Positive | None = Field(
        default=None, description="1 / (k G A) [1/N]; from material and geometry when absent"
    )
    torsion_compliance: Positive | None = Field(
        default=None,
        description="1 / (2 G I) [rad/(N m m)]; from material and geometry when absent",
    )
    shear_correction: Positive = Field(default=5.0 / 6.0, description="Timoshenko's factor k [-]")
    relaxation_times: Annotated[tuple[Positive, ...], Field(min_length=6, max_length=6)] = Field(
        description="diagonal of D_tau: shear x, shear y, dilatation, bending x, y, torsion [s]"
    )
    intervals: Annotated[int, Field(ge=1, le=MAX_INTERVALS)] | None = Field(
        default=None, description="share of the model's grid; by length when absent [-]"
    )
    routing_radius: Width | None = Field(
        default=None,
        description="largest lever arm of a tendon, if discs hold it outside the body; the outer "
        "radius when absent [m]",
    )
    connector: Connector | None = Field(
        default=None, description="rigid part after this segment; not after the last one"
    )

    @model_validator(mode="after")
    def _hole_is_smaller(self) -> "Segment":
        if self.inner_diameter >= self.outer_diameter:
            raise ValueError(
                f"inner_diameter {self.inner_diameter} must be below outer_diameter "
                f"{self.outer_diameter}"
            )
        return self

    @model_validator(mode="after")
    def _material_is_possible(self) -> "Segment":
        """The moduli that compliances and section say, whatever is in the section."""
        told = [("dilatation_compliance", self.dilatation_compliance, self.annulus)]
        told += [
            ("bending_compliance", each, self.second_moment) for each in self.bending_compliances
        ]
        for name, compliance, section in told:
            modulus = 1.0 / (compliance * section)
            if not _SOFTEST <= modulus <= _STIFFEST:
                raise ValueError(
                    f"{name} {compliance:g} with outer_diameter {self.outer_diameter:g} m is that "
                    f"of a material whose Young's modulus is {modulus:.3g} Pa, must be from "
                    f"{_SOFTEST:g} to {_STIFFEST:g} Pa: compliances are in SI units, and so are "
                    "the modulus and the section that they come from"
                )
        return self

    @property
    def annulus(self) -> float:
        """Area between hole and outside, chambers included [m^2]."""
        return math.pi / 4 * (self.outer_diameter**2 - self.inner_diameter**2)

    @property
    def second_moment(self) -> float:
        """Second moment of the whole annulus, chambers included [m^4]."""
        return math.pi / 64 * (self.outer_diameter**4 - self.inner_diameter**4)

    @property
    def bending_compliances(self) -> tuple[float, float]:
        """1 / EI about x and about y [rad/(N m m)]."""
        given = self.bending_compliance
        return (given[0], given[1]) if isinstance(given, tuple) else (given, given)

    @property
    def reach(self) -> float:
        """How far from the centre line a tendon may run [m]."""
        return self.routing_radius or 0.5 * self.outer_diameter

    def scaled(self, bending: float, damping: float) -> dict[str, Any]:
        """Its content with bending compliances and relaxation times multiplied; not checked."""
        given = self.bending_compliance
        scaled = [bending * each for each in self.bending_compliances]
        return self.model_dump() | {
            "bending_compliance": scaled if isinstance(given, tuple) else scaled[0],
            "relaxation_times": [damping * time for time in self.relaxation_times],
        }

    def compliances(self, area: float) -> np.ndarray:
        """(6,) diagonal of C, linear first: two shears, dilatation, two bendings, torsion.

        What is not given follows from the material: E = 1/(c_dilat A), G = E/3 (incompressible),
        shear 1/(k G A), torsion 1/(2 G I).

        Args:
            area: of the material, without its chambers [m^2].
        """
        shear_modulus = 1.0 / (self.dilatation_compliance * area) / 3.0
        shear = self.shear_compliance or 1.0 / (self.shear_correction * shear_modulus * area)
        torsion = self.torsion_compliance or 1.0 / (2 * shear_modulus * self.second_moment)
        bending = self.bending_compliances
        return np.array([shear, shear, self.dilatation_compliance, *bending, torsion])
