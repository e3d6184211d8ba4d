"""Robots as data: a validated, immutable description of one soft continuum robot."""

import math
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, overload

import numpy as np
from pydantic import Field, model_validator

from softcr_models.errors import UserError
from softcr_models.number_types import NO_BOOLEAN, Fraction, Name, NonNegative, Positive, Triple
from softcr_models.old_robots import is_old_arm, is_old_rod, upgraded_rod
from softcr_models.pressure import PressureLag
from softcr_models.robot_parts import (
    BaseWrenchSensor,
    Chamber,
    Data,
    PressureLimits,
    PressureSensor,
    RodActuator,
    RodSensor,
    TipPoseSensor,
    check_names,
)
from softcr_models.yaml_files import available, read_mapping, validated, yaml_path

if TYPE_CHECKING:
    from softcr_models.constant_curvature.arm import Arm

__all__ = [
    "BENDING",
    "WORDS",
    "Chamber",
    "Kind",
    "PressureLimits",
    "Robot",
    "available_robots",
    "kind_of",
    "load_robot",
]

Kind = Literal["rod", "arm"]
"""The `type` of a robot file."""

BENDING = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.0])
"""(6,) which entries of C's diagonal are the bending compliance."""

WORDS: dict[Kind, str] = {"rod": "a rod driven by pressure", "arm": "an arm driven by tendons"}

_FOLDER = "robots"
_SENSORS: tuple[RodSensor, ...] = (
    PressureSensor(type="pressure", noise=0.0),
    BaseWrenchSensor(type="base_wrench", force_noise=0.02, moment_noise=5e-4),
    TipPoseSensor(type="tip_pose", noise=2e-4),
)


class Robot(Data):
    """One soft continuum robot: a rod, its actuators and sensors. SI units.

    The frames: `base` is the force-torque sensor's frame (CS)_fts of eq. (29) of Licher et al.
    2025, z along the straight rod; the rod starts `sensor_to_base_cap + base_cap_length` above it;
    `tip` is the outer face of the tip cap. docs/howto/robot.md says how to write a file.
    """

    type: Literal["rod"]
    name: Name = Field(description="of the robot")
    description: str = Field(default="", description="one line for people")
    length: Positive = Field(description="reference length of the rod [m]")
    outer_diameter: Positive = Field(description="outer diameter of the body [m]")
    inner_diameter: NonNegative = Field(description="diameter of the central hole [m]")
    density: Positive = Field(description="density of the body [kg/m^3]")
    bending_compliance: Positive = Field(description="1 / EI [rad/(N m m)]")
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
    tip_mass: NonNegative = Field(description="mass of tip cap and markers, m_EE [kg]")
    tip_mass_fraction: Annotated[float, Field(gt=0.0, le=1.0), NO_BOOLEAN] = Field(
        description="fraction of the length, at the tip, over which tip_mass is spread [-]"
    )
    actuators: Annotated[tuple[RodActuator, ...], Field(min_length=1)] = Field(
        description="their order is that of every vector of inputs"
    )
    sensors: tuple[RodSensor, ...] = Field(
        default=_SENSORS, description="one of each type; noises are those of a simulated sensor"
    )
    sensor_to_base_cap: NonNegative = Field(
        description="force-torque sensor to base cap, l_fts [m]"
    )
    base_cap_length: NonNegative = Field(description="rigid cap below the rod, l_cap [m]")
    tip_cap_length: NonNegative = Field(description="rigid cap above the rod, l_cap [m]")
    base_orientation: Triple = Field(
        description="roll, pitch, yaw of the base in the world [rad]; (pi, 0, 0) hangs"
    )
    gravity: NonNegative = Field(description="gravity along the world's -z [m/s^2]")
    gravity_subintervals: Annotated[int, Field(ge=1, le=32), NO_BOOLEAN] = Field(
        description="sub-intervals n_sub of Algorithm 1 per interval [-]"
    )
    gravity_strain_point: Fraction = Field(
        description="where in a sub-interval strain is taken: 1 end (Algorithm 1), 0.5 middle [-]"
    )
    pressure_limits: PressureLimits = Field(description="what the valves may be asked for")
    pressure_lag: PressureLag = Field(description="from a command to the chamber's pressure")

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, content: Any) -> Any:
        return upgraded_rod(content)

    @model_validator(mode="after")
    def _consistent(self) -> "Robot":
        if self.inner_diameter >= self.outer_diameter:
            raise ValueError(
                f"inner_diameter {self.inner_diameter} must be below outer_diameter "
                f"{self.outer_diameter}"
            )
        if self.cross_section_area <= 0.0:
            raise ValueError(
                "the chambers' areas leave no material: their sum must be below the body's"
            )
        check_names(self.actuator_names)
        found, needed = ([sensor.type for sensor in some] for some in (self.sensors, _SENSORS))
        if sorted(found) != sorted(needed):
            raise ValueError(f"sensors: must be {', '.join(needed)}, each once, found {found}")
        return self

    @cached_property
    def cross_section_area(self) -> float:
        """Area of material, A = pi/4 (d_o^2 - d_i^2) - sum of chambers [m^2]."""
        annulus = math.pi / 4 * (self.outer_diameter**2 - self.inner_diameter**2)
        return annulus - sum(chamber.area for chamber in self.chambers)

    @cached_property
    def second_moment_of_area(self) -> float:
        """Of the whole annulus [m^4]; for rotary inertia and torsion.

        The chambers are not subtracted: the lever arm that Licher et al. 2025 print cannot be their
        place inside the body. With the annulus the linearisation of their robot at rest has the
        fastest eigenvalue -3.0e5 1/s and the slowest pair -0.97 +- 16.2i.
        """
        return math.pi / 64 * (self.outer_diameter**4 - self.inner_diameter**4)

    @cached_property
    def compliances(self) -> np.ndarray:
        """(6,) diagonal of C, linear first: two shears, dilatation, two bendings, torsion.

        What was not identified follows from the material: E = 1/(c_dilat A), G = E/3
        (incompressible), shear 1/(k G A), torsion 1/(2 G I).
        """
        area = self.cross_section_area
        shear_modulus = 1.0 / (self.dilatation_compliance * area) / 3.0
        shear = self.shear_compliance or 1.0 / (self.shear_correction * shear_modulus * area)
        torsion = self.torsion_compliance or 1.0 / (2 * shear_modulus * self.second_moment_of_area)
        others = np.array([shear, shear, self.dilatation_compliance, 0.0, 0.0, torsion])
        return others + self.bending_compliance * BENDING

    @cached_property
    def actuation_matrix(self) -> np.ndarray:
        """(6, m) wrench per gauge pressure [N/Pa; N m/Pa]: w_p = matrix @ pressures, eq. (7)."""
        columns = []
        for chamber in self.chambers:
            x = chamber.lever_arm * math.cos(chamber.angle)
            y = chamber.lever_arm * math.sin(chamber.angle)
            # r x e_z = (y, -x, 0)
            columns.append(chamber.area * np.array([0.0, 0.0, 1.0, y, -x, 0.0]))
        return np.array(columns).T.copy()

    @property
    def chambers(self) -> tuple[Chamber, ...]:
        """The actuators that are pressure chambers."""
        return tuple(actuator for actuator in self.actuators if actuator.type == "chamber")

    @property
    def chamber_names(self) -> tuple[str, ...]:
        """Names of the chambers, in the order of every pressure vector."""
        return tuple(chamber.name for chamber in self.chambers)

    @property
    def actuator_names(self) -> tuple[str, ...]:
        """Names of all actuators, in the order of every vector of inputs."""
        return tuple(actuator.name for actuator in self.actuators)

    def replace(self, **changes: Any) -> "Robot":
        """A copy with some fields changed, validated again; raises UserError naming a bad field."""
        return validated(Robot, {**self.model_dump(), **changes}, f"robot {self.name}")


@overload
def load_robot(name_or_path: str | Path, kinds: tuple[Literal["rod"]] = ("rod",)) -> Robot: ...


@overload
def load_robot(name_or_path: str | Path, kinds: tuple[Literal["arm"]]) -> "Arm": ...


@overload
def load_robot(name_or_path: str | Path, kinds: tuple[Kind, ...]) -> "Robot | Arm": ...


def load_robot(name_or_path: str | Path, kinds: tuple[Kind, ...] = ("rod",)) -> "Robot | Arm":
    """The robot of `config/robots/NAME.yaml`, or of the YAML file at a path.

    Args:
        name_or_path: which.
        kinds: what is allowed; another kind is refused.

    Returns:
        A Robot for the type `rod`, an Arm for the type `arm`.

    Raises:
        UserError: one line with the file, the field, the value found and what is allowed.
    """
    path, content, kind = _read(name_or_path)
    if kind not in kinds:
        known = ", ".join(available_robots(kinds)) or "none"
        wanted = " or ".join(WORDS[kind] for kind in kinds)
        raise UserError(
            f"robot {str(name_or_path)!r}: is {WORDS[kind]}, must be {wanted}; known are {known}"
        )
    if kind == "rod":
        return validated(Robot, content, path)
    # with kernels of its own, which nobody else needs to load
    from softcr_models.constant_curvature.arm import Arm

    return validated(Arm, content, path)


def available_robots(kinds: tuple[Kind, ...] = ("rod",)) -> list[str]:
    """Names that `load_robot` knows, of robots of some kinds.

    Raises:
        UserError: a file of config/robots cannot be read.
    """
    return [name for name in available(_FOLDER) if kind_of(name) in kinds]


def load_arm(name_or_path: str | Path) -> "Arm":
    """`load_robot` for what needs an arm; raises UserError as it does."""
    return load_robot(name_or_path, ("arm",))


def kind_of(name_or_path: str | Path) -> Kind:
    """What kind of robot a name or a file means.

    Raises:
        UserError: no robot has this name, or its file cannot be read or has no known type.
    """
    return _read(name_or_path)[2]


def _read(name_or_path: str | Path) -> tuple[Path, dict[str, Any], Kind]:
    """Path, content and kind of a robot file."""
    path = yaml_path(name_or_path, _FOLDER, "robot")
    content = read_mapping(path, "robot")
    allowed = ", ".join(WORDS)
    if "type" in content:
        for kind in WORDS:
            if content["type"] == kind:
                return path, content, kind
        raise UserError(
            f"{path}: type: {content['type']!r} is not allowed: must be one of {allowed}"
        )
    if is_old_arm(content):
        return path, content, "arm"
    if is_old_rod(content):
        return path, content, "rod"
    raise UserError(f"{path}: type: missing; this field is required; allowed are {allowed}")
