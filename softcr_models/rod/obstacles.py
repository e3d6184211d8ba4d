"""What a rod may touch, as people say it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from softcr_models.arguments import ArgumentError
from softcr_models.robots.robot import Robot

if TYPE_CHECKING:
    from softcr_models.rod.contact import Obstacles

LENGTH_PER_TIP = 0.02
"""Length of the body that resists as much as the tip [m]."""

IMPACT_PHASE = 0.5
"""Of a sub-step near an obstacle, in the body's bouncing on it [rad]."""


@dataclass(frozen=True)
class Plane:
    """A wall, a floor or a ceiling.

    Attributes:
        normal: (3,) out of the wall, base frame; of any length.
        point: (3,) on the wall, base frame [m].
    """

    normal: Sequence[float]
    point: Sequence[float]


@dataclass(frozen=True)
class Sphere:
    """A ball.

    Attributes:
        centre: (3,) base frame [m].
        radius: [m].
    """

    centre: Sequence[float]
    radius: float


@dataclass(frozen=True)
class ContactLaw:
    """How hard things are; the defaults let 1 N sink in by 0.35 mm.

    Attributes:
        stiffness: of the tip [N/m]; of the body this much for every 20 mm. Where the rod touches,
            sub-steps get shorter as this grows: 0.7 ms at 1e4 for a body of 1 kg/m.
        smoothing: depth at which the force becomes linear [m].
        damping: share of the force that a speed into the obstacle adds [s/m].
        friction: coefficient [-].
        friction_speed: speed below which friction fades, so that what sticks creeps [m/s].
    """

    stiffness: float = 1e4
    smoothing: float = 5e-4
    damping: float = 0.0
    friction: float = 0.0
    friction_speed: float = 0.01

    def __post_init__(self) -> None:
        for name in ("stiffness", "smoothing", "friction_speed"):
            value = getattr(self, name)
            if not 0.0 < value < math.inf:
                raise ArgumentError(f"contact: {name}: {value} is not allowed: must be above 0")
        for name in ("damping", "friction"):
            value = getattr(self, name)
            if not 0.0 <= value < math.inf:
                raise ArgumentError(f"contact: {name}: {value} is not allowed: must be 0 or above")


def obstacles_of(
    robot: Robot, base_height: float, things: Sequence[Plane | Sphere], law: ContactLaw
) -> "Obstacles":
    """Obstacles as the kernels take them.

    Raises:
        ArgumentError: a normal of no length, a radius not above 0, or a number that is not finite.
    """
    from softcr_models.rod.contact import Obstacles

    planes, spheres = [], []
    for thing in things:
        if isinstance(thing, Plane):
            normal = _three("plane: normal", thing.normal)
            length = float(np.linalg.norm(normal))
            if not length > 0.0:
                raise ArgumentError(f"plane: normal {normal.tolist()}: must have a length")
            normal = normal / length
            planes.append([*normal, normal @ _three("plane: point", thing.point)])
        else:
            if not 0.0 < thing.radius < math.inf:
                raise ArgumentError(f"sphere: radius {thing.radius} m: must be above 0")
            spheres.append([*_three("sphere: centre", thing.centre), thing.radius])
    line_stiffness = law.stiffness / LENGTH_PER_TIP
    lightest = min(
        each.density * area for each, area in zip(robot.segments, robot.segment_areas, strict=True)
    )
    return Obstacles(
        planes=np.array(planes, float).reshape(-1, 4),
        spheres=np.array(spheres, float).reshape(-1, 4),
        radius=np.array([0.5 * each.outer_diameter for each in robot.segments]),
        base_height=base_height,
        line_stiffness=line_stiffness,
        tip_stiffness=law.stiffness,
        smoothing=law.smoothing,
        damping=law.damping,
        friction=law.friction,
        friction_speed=law.friction_speed,
        longest_step=IMPACT_PHASE * math.sqrt(lightest / line_stiffness),
    )


def _three(what: str, values: Sequence[float]) -> np.ndarray:
    numbers = np.asarray(values, float)
    if numbers.shape != (3,) or not np.isfinite(numbers).all():
        raise ArgumentError(f"{what} {list(values)}: must be three finite numbers")
    return numbers
