"""Robots as data: a validated, immutable description of one soft continuum robot."""

import math
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from softcr_models.config import config_directory
from softcr_models.errors import UserError
from softcr_models.pressure import PressureLag

Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class _Data(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=False, arbitrary_types_allowed=False
    )


class Chamber(_Data):
    """One pressure chamber, parallel to the centre line of the rod."""

    name: Annotated[str, Field(min_length=1)]
    angle: Finite = Field(description="angle of its centre about z from the x axis [rad]")
    area: Positive = Field(description="cross-sectional area the pressure acts on [m^2]")
    lever_arm: NonNegative = Field(description="distance of its centre from the centre line [m]")


class PressureLimits(_Data):
    """What the valves may be asked for."""

    minimum: Finite = Field(description="lowest gauge pressure [Pa]")
    maximum: Finite = Field(description="highest gauge pressure [Pa]")
    maximum_rate: Positive = Field(description="largest change of a command per second [Pa/s]")

    @model_validator(mode="after")
    def _ordered(self) -> "PressureLimits":
        if self.minimum >= self.maximum:
            raise ValueError(f"minimum {self.minimum} must be below maximum {self.maximum}")
        return self


class Robot(_Data):
    """One soft continuum robot. SI units; numbers of the default robot:
    config/robots/licher2025.yaml.

    The frames: `base` is the force-torque sensor's frame (CS)_fts of eq. (29), z along the straight
    rod; the rod starts `sensor_to_base_cap + base_cap_length` above it; `tip` is the outer face of
    the tip cap.
    """

    name: Annotated[str, Field(min_length=1)]
    description: str = ""
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
    tip_mass_fraction: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        description="fraction of the length, at the tip, over which tip_mass is spread [-]"
    )
    chambers: Annotated[tuple[Chamber, ...], Field(min_length=1)]
    sensor_to_base_cap: NonNegative = Field(
        description="force-torque sensor to base cap, l_fts [m]"
    )
    base_cap_length: NonNegative = Field(description="rigid cap below the rod, l_cap [m]")
    tip_cap_length: NonNegative = Field(description="rigid cap above the rod, l_cap [m]")
    base_orientation: Annotated[tuple[Finite, ...], Field(min_length=3, max_length=3)] = Field(
        description="roll, pitch, yaw of the base in the world [rad]; (pi, 0, 0) hangs"
    )
    gravity: NonNegative = Field(description="gravity along the world's -z [m/s^2]")
    gravity_subintervals: Annotated[int, Field(ge=1, le=32)] = Field(
        description="sub-intervals n_sub of Algorithm 1 per interval [-]"
    )
    gravity_strain_point: Annotated[float, Field(ge=0.0, le=1.0)] = Field(
        description="where in a sub-interval strain is taken: 1 end (Algorithm 1), 0.5 middle"
    )
    pressure_limits: PressureLimits
    pressure_lag: PressureLag

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
        names = [chamber.name for chamber in self.chambers]
        if len(set(names)) != len(names):
            raise ValueError(f"chambers: names must differ, found {names}")
        return self

    @cached_property
    def cross_section_area(self) -> float:
        """Area of material, A = pi/4 (d_o^2 - d_i^2) - sum of chambers [m^2]."""
        annulus = math.pi / 4 * (self.outer_diameter**2 - self.inner_diameter**2)
        return annulus - sum(chamber.area for chamber in self.chambers)

    @cached_property
    def second_moment_of_area(self) -> float:
        """Of the whole annulus [m^4]; for rotary inertia and torsion.

        The chambers are not subtracted: the printed lever arm cannot be their place inside the body
        (it equals the outer radius). With the annulus the shipped robot, linearised at rest, has
        eigenvalues from -3.0e5 1/s to the slowest pair -0.97 +- 16.2i 1/s.
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
        bending = self.bending_compliance
        return np.array([shear, shear, self.dilatation_compliance, bending, bending, torsion])

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
    def chamber_names(self) -> tuple[str, ...]:
        """Names of the chambers, in the order of every pressure vector."""
        return tuple(chamber.name for chamber in self.chambers)

    def replace(self, **changes: Any) -> "Robot":
        """A copy with some fields changed, validated again; raises UserError naming a bad field."""
        return _validated({**self.model_dump(), **changes}, f"robot {self.name}")


def load_robot(name_or_path: str | Path) -> Robot:
    """The robot of `config/robots/NAME.yaml`, or of the YAML file at a path.

    Raises:
        UserError: one line with the file, the field, the value found and what is allowed.
    """
    path = _robot_path(name_or_path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f" line {where.line + 1}" if where else ""
        problem = getattr(error, "problem", None) or "not readable as YAML"
        raise UserError(f"{path}:{line} {problem}: a robot file must be valid YAML") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as a robot file: {error}") from None
    if not isinstance(content, dict):
        raise UserError(
            f"{path}: holds {type(content).__name__}, must hold a mapping of robot fields"
        )
    return _validated(content, str(path))


def available_robots() -> list[str]:
    """Names that `load_robot` knows."""
    return sorted(path.stem for path in (config_directory() / "robots").glob("*.yaml"))


def _robot_path(name_or_path: str | Path) -> Path:
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml") or path.parent != Path("."):
        if not path.is_file():
            raise UserError(f"robot file {path}: no such file")
        return path
    path = config_directory() / "robots" / f"{name_or_path}.yaml"
    if not path.is_file():
        known = ", ".join(available_robots())
        raise UserError(
            f"robot {str(name_or_path)!r}: unknown; known are {known}, or give a .yaml path"
        )
    return path


def _validated(content: dict[str, Any], where: str) -> Robot:
    try:
        return Robot.model_validate(content)
    except ValidationError as error:
        raise UserError(f"{where}: {_first_problem(error)}") from None


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    field = ".".join(str(part) for part in problem["loc"]) or "robot"
    if problem["type"] == "missing":
        return f"{field}: missing; this field is required"
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{field}: unknown field; allowed are {', '.join(_siblings(problem['loc']))}"
    if not problem["loc"]:
        return problem["msg"].removeprefix("Value error, ")
    reason = problem["msg"].removeprefix("Value error, ")
    return f"{field}: {problem['input']!r} is not allowed: {reason}"


def _siblings(location: tuple[Any, ...]) -> list[str]:
    if len(location) == 1:
        return sorted(Robot.model_fields)
    nested = {"chambers": Chamber, "pressure_limits": PressureLimits, "pressure_lag": PressureLag}
    return sorted(nested[location[0]].__annotations__)
