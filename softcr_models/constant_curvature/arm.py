"""Tendon-driven arms as data: what config/arms/NAME.yaml says of one."""

from pathlib import Path
from typing import Annotated

import numpy as np
import pinocchio as pin
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from softcr_models.config import config_directory
from softcr_models.constant_curvature.kinematics import ConstantCurvatureChain
from softcr_models.constant_curvature.tendons import Routing, Tendons
from softcr_models.errors import UserError

_Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
_NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
_Finite = Annotated[float, Field(allow_inf_nan=False)]


class Arm(BaseModel):
    """A round, homogeneous arm of constant-curvature bodies, with tendons and sensors at racks.

    SI units. Delta is scaled by 1 m, as in Dalenberg's thesis: a bend of 1 rad is Delta = 1 m.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1)]
    description: str = ""
    bodies: Annotated[tuple[_Positive, ...], Field(min_length=1)] = Field(
        description="rest lengths pi_t of the true arm's bodies, base to tip [m]"
    )
    radius: _Positive = Field(description="of the cross-section [m]")
    density: _Positive = Field(description="[kg/m^3]")
    youngs_modulus: _Positive = Field(description="E [Pa]")
    relaxation_time: _NonNegative = Field(description="damping over stiffness [s]")
    racks: Annotated[tuple[_Positive, ...], Field(min_length=1)] = Field(
        description="material abscissae where tendons are fixed and sensors sit [m]"
    )
    tendons_per_rack: Annotated[int, Field(ge=1, le=12)] = Field(description="evenly around [-]")
    tendon_radius: _Positive = Field(description="their distance from the centre line [m]")
    rack_turn: _Finite = Field(
        description="angle from the first tendon of a rack to that of the next, about z [rad]"
    )
    routing: Routing = Field(
        description="coupled: tendons begin at the base; independent: at the rack before theirs"
    )
    base_orientation: Annotated[tuple[_Finite, ...], Field(min_length=3, max_length=3)] = Field(
        description="roll, pitch, yaw of the base in the world [rad]; (pi, 0, 0) hangs"
    )
    gravity: _NonNegative = Field(description="along the world's -z [m/s^2]")

    @model_validator(mode="after")
    def _racks_lie_on_the_arm(self) -> "Arm":
        if any(b <= a for a, b in zip((0.0, *self.racks), self.racks, strict=False)):
            raise ValueError(f"racks {list(self.racks)} must rise from above 0")
        if self.racks[-1] > sum(self.bodies) + 1e-9:
            raise ValueError(f"racks: {self.racks[-1]} m is beyond the arm's {sum(self.bodies)} m")
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
    def tendon_names(self) -> tuple[str, ...]:
        """Of the tendons, in the order of every vector of tendons."""
        count = len(self.racks) * self.tendons_per_rack
        return tuple(f"tendon_{number + 1}" for number in range(count))

    def tendons(self, routing: Routing | None = None) -> Tendons:
        """Its tendons, as they are, or as somebody takes them for."""
        around = 2.0 * np.pi * np.arange(self.tendons_per_rack) / self.tendons_per_rack
        turns = self.rack_turn * np.arange(len(self.racks))
        angles = np.add.outer(turns, around)
        racks = np.array(self.racks)
        return Tendons.of_racks(racks, self.tendon_radius, angles, routing or self.routing)


def load_arm(name_or_path: str | Path) -> Arm:
    """The arm of `config/arms/NAME.yaml`, or of the YAML file at a path.

    Raises:
        UserError: one line with the file, the field, the value found and what is allowed.
    """
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml"):
        path = config_directory() / "arms" / f"{name_or_path}.yaml"
    try:
        return Arm.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.yaml"))) or "none"
        raise UserError(f"arm file {path}: no such file; beside it are: {known}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        problem = " ".join(str(error).split())
        raise UserError(f"{path}: cannot be read as an arm file: {problem}") from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "arm"
        reason = first["msg"].removeprefix("Value error, ")
        raise UserError(f"{path}: {field}: {first['input']!r} is not allowed: {reason}") from None
