"""Files of obstacles: what stands around a robot and how hard it is. `config/obstacles`."""

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, ValidationError, model_validator

from softcr_models.files.checked import checked
from softcr_models.files.number_types import Length, Name, Place, Triple
from softcr_models.files.yaml_files import load_yaml
from softcr_models.robots.parts import Data
from softcr_models.rod.obstacles import ContactLaw, Plane, Sphere

MAX_OBSTACLES = 32


class PlaneObstacle(Data):
    """A wall, a floor or a ceiling."""

    type: Literal["plane"]
    name: Name | None = Field(
        default=None, description="name, different from that of every other obstacle"
    )
    normal: Triple = Field(
        description="normal that points out of the wall, base frame; of any length"
    )
    point: Place = Field(description="a point on the wall, base frame [m]")

    @model_validator(mode="after")
    def _normal_has_a_length(self) -> "PlaneObstacle":
        if not any(self.normal):
            raise ValueError(f"normal {list(self.normal)}: must have a length")
        return self

    @property
    def thing(self) -> Plane:
        """As the rod takes it."""
        return Plane(self.normal, self.point)

    def in_words(self) -> str:
        """What it is and where."""
        return f"plane through {_told(self.point)} m with normal {_told(self.normal)}"

    def distance(self, points: np.ndarray) -> np.ndarray:
        """(J,) of points (J, 3) from its surface, below 0 inside [m]."""
        normal = np.array(self.normal) / np.linalg.norm(self.normal)
        found: np.ndarray = (points - np.array(self.point)) @ normal
        return found


class SphereObstacle(Data):
    """A ball."""

    type: Literal["sphere"]
    name: Name | None = Field(
        default=None, description="name, different from that of every other obstacle"
    )
    centre: Place = Field(description="centre of the ball, base frame [m]")
    radius: Length = Field(description="radius of the ball [m]")

    @property
    def thing(self) -> Sphere:
        """As the rod takes it."""
        return Sphere(self.centre, self.radius)

    def in_words(self) -> str:
        """What it is and where."""
        return f"sphere of radius {self.radius:g} m at {_told(self.centre)} m"

    def distance(self, points: np.ndarray) -> np.ndarray:
        """(J,) of points (J, 3) from its surface, below 0 inside [m]."""
        found: np.ndarray = np.linalg.norm(points - np.array(self.centre), axis=1) - self.radius
        return found


Obstacle = Annotated[PlaneObstacle | SphereObstacle, Field(discriminator="type")]


class Contact(Data):
    """How hard all of the obstacles are."""

    stiffness: Annotated[float, Field(gt=0.0, le=1e4)] = Field(
        default=1e4,
        description="contact force over depth at the tip [N/m]; on the body, the same for every "
        "20 mm",
    )
    smoothing: Annotated[float, Field(ge=1e-5, le=0.01)] = Field(
        default=5e-4, description="depth up to which the force grows quadratically [m]"
    )
    damping: Annotated[float, Field(ge=0.0, le=10.0)] = Field(
        default=0.0,
        description="relative increase of the force with the speed into the obstacle [s/m]",
    )
    friction: Annotated[float, Field(ge=0.0, le=2.0)] = Field(
        default=0.0, description="coefficient of friction [-]"
    )
    friction_speed: Annotated[float, Field(ge=1e-4, le=1.0)] = Field(
        default=0.01,
        description="speed below which friction fades, so that a sticking contact creeps [m/s]",
    )

    @property
    def law(self) -> ContactLaw:
        """As the rod takes it."""
        return ContactLaw(**self.model_dump())


class ObstacleFile(Data):
    """The content of a file of obstacles."""

    obstacles: Annotated[tuple[Obstacle, ...], Field(min_length=1, max_length=MAX_OBSTACLES)] = (
        Field(description="planes and spheres, all fixed in the base frame")
    )
    contact: Contact = Field(default=Contact(), description="contact properties of all obstacles")

    @model_validator(mode="after")
    def _names_differ(self) -> "ObstacleFile":
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"obstacles: names must differ, found {list(self.names)}")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """(J,) their own names, or plane_1, sphere_2, ..."""
        told = enumerate(self.obstacles, start=1)
        return tuple(each.name or f"{each.type}_{k}" for k, each in told)

    @property
    def things(self) -> tuple[Plane | Sphere, ...]:
        """As the rod takes them."""
        return tuple(each.thing for each in self.obstacles)

    def nearest(self, point: np.ndarray) -> str:
        """Name of the obstacle whose surface is nearest to a point (3,), or that it is in."""
        distances = [float(each.distance(point[None])[0]) for each in self.obstacles]
        return self.names[int(np.argmin(distances))]


def parse_obstacles(content: object) -> ObstacleFile | None:
    """The obstacles that a simulator published; None where there are none, or unreadable ones."""
    try:
        return None if content is None else checked(ObstacleFile, content)
    except ValidationError:
        return None


def obstacles_in_words(content: object) -> list[str]:
    """A line for each obstacle that a simulator told, with its name."""
    told = parse_obstacles(content)
    if told is None:
        return []
    return [
        f"{name}: {each.in_words()}" for name, each in zip(told.names, told.obstacles, strict=True)
    ]


def _told(numbers: tuple[float, ...]) -> str:
    return f"({', '.join(f'{each:g}' for each in numbers)})"


def load_obstacles(name_or_path: str | Path) -> ObstacleFile:
    """The obstacles of `config/obstacles/NAME.yaml`, or of the YAML file at a path.

    Raises:
        UserError: one line with the file, the field, the value found and what is allowed.
    """
    return load_yaml(name_or_path, "obstacles", ObstacleFile, "obstacles")
