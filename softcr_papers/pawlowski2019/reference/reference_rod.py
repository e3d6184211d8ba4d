"""The numbers of a rod for the reference solvers, and what loads it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from softcr_models.errors import UserError
from softcr_models.robots.robot import Robot
from softcr_papers.pawlowski2019.reference.actuator_lines import (
    ChamberModel,
    Line,
    lines_of,
    require_inside,
)
from softcr_papers.pawlowski2019.reference.muscles import Muscle, require_inputs

STRAIGHT = np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


@dataclass(frozen=True, eq=False)
class ReferenceRod:
    """A rod of one section; twists and wrenches (6,) linear first, in the section's frame.

    Attributes:
        length: L [m].
        stiffness: (6,) diagonal of K, (2.28): [N] and [N m^2].
        inertia: (6,) diagonal of M, (3.5): mass [kg/m] and moment of inertia [kg m] per length.
        viscosity: (6,) diagonal of V, (3.10): [N s] and [N m^2 s].
        weight: (3,) force of gravity per length, without buoyancy, base frame [N/m].
        lines: the actuators.
        rest_strain: (6,) xi* of the unloaded rod.
        muscles: bonded in it.
        drag: (2, 6) diagonals of the drag that is linear in the velocity, (3.11) [N s/m^2, N s],
            and of that which is multiplied by the speed of the centre line, too, (3.12)
            [N s^2/m^3, N s^2/m].
        base_height: from the base frame's origin to the rod, along z [m].
        tip_cap_length: from the rod's end to the tip [m].
    """

    length: float
    stiffness: np.ndarray
    inertia: np.ndarray
    viscosity: np.ndarray
    weight: np.ndarray
    lines: tuple[Line, ...] = ()
    rest_strain: np.ndarray = field(default_factory=STRAIGHT.copy)
    muscles: tuple[Muscle, ...] = ()
    drag: np.ndarray = field(default_factory=lambda: np.zeros((2, 6)))
    base_height: float = 0.0
    tip_cap_length: float = 0.0

    @classmethod
    def of_robot(cls, robot: Robot, chambers: ChamberModel = "section") -> "ReferenceRod":
        """The rod of a robot's file.

        Args:
            robot: of one segment, without payload and tip mass.
            chambers: how they act; tendons act as the robot's `tendon_model` says.

        Raises:
            UserError: the robot has what these solvers do not know.
        """
        _require_known(robot)
        (segment,) = robot.segments
        area, second_moment = float(robot.segment_areas[0]), segment.second_moment
        stiffness = 1.0 / segment.compliances(area)
        mass, rotary = segment.density * area, segment.density * second_moment
        displaced = robot.medium.density * segment.annulus if robot.medium else 0.0
        up = Rotation.from_euler("xyz", robot.base_orientation).as_matrix()[2]
        return cls(
            length=segment.length,
            stiffness=stiffness,
            inertia=np.array([mass, mass, mass, rotary, rotary, 2.0 * rotary]),
            viscosity=stiffness * segment.relaxation_times,
            weight=-(mass - displaced) * robot.gravity * up,
            lines=lines_of(robot, chambers),
            drag=_drag(robot),
            base_height=robot.sensor_to_base_cap + robot.base_cap_length,
            tip_cap_length=robot.tip_cap_length,
        )

    def with_lines(self, lines: Sequence[Line], radius: float) -> "ReferenceRod":
        """The same with actuators of any routing.

        Raises:
            UserError: one runs farther than `radius` [m] from the centre line.
        """
        for line in lines:
            require_inside(line, self.length, radius)
        return replace(self, lines=tuple(lines))

    def with_muscles(self, muscles: Sequence[Muscle]) -> "ReferenceRod":
        """The same with muscles bonded in it."""
        return replace(self, muscles=tuple(muscles))

    def scaled(self, stiffness: float, viscosity: float, mass: float) -> "ReferenceRod":
        """The same with so many times its stiffness, viscosity, mass and weight."""
        return replace(
            self, stiffness=stiffness * self.stiffness, viscosity=viscosity * self.viscosity,
            inertia=mass * self.inertia, weight=mass * self.weight,
        )  # fmt: skip

    def kirchhoff(self, ratio: float = 1e9) -> "ReferenceRod":
        """The same without shear and stretch, (3.45): `ratio` times as stiff against them.

        Statics and the implicit integrator find the force that holds them with the rest; nothing
        is left out but its strain, some 1e-9 of what it was.
        """
        stiffer = np.where(np.arange(6) < 3, ratio, 1.0)
        return replace(self, stiffness=stiffer * self.stiffness, viscosity=stiffer * self.viscosity)

    @property
    def scales(self) -> np.ndarray:
        """(6,) a force EI / L^2 [N] and a moment EI / L [N m] that bend it by the order of one."""
        bending = float(self.stiffness[3:5].mean())
        return np.repeat([bending / self.length**2, bending / self.length], 3)


@dataclass(frozen=True)
class Loads:
    """What loads a rod beside its weight.

    Attributes:
        inputs: (m,) tensions [N] and gauge pressures [Pa], one per line; () for zeros.
        tip_force: (3,) on the tip cap's outer face, which keeps its direction, base frame [N].
        tip_wrench: (6,) on the rod's end, which follows it [N, N m].
        body_wrench: (6,) per length, which follows the section [N/m, N].
        muscles: (k,) inputs q of the muscles bonded in the rod; () for zeros.
    """

    inputs: ArrayLike = ()
    tip_force: ArrayLike = (0.0, 0.0, 0.0)
    tip_wrench: ArrayLike = (0.0,) * 6
    body_wrench: ArrayLike = (0.0,) * 6
    muscles: ArrayLike = ()

    def scaled(self, share: float) -> "Loads":
        """All of them times a number."""
        return Loads(
            share * np.asarray(self.inputs, float),
            share * np.asarray(self.tip_force, float),
            share * np.asarray(self.tip_wrench, float),
            share * np.asarray(self.body_wrench, float),
            share * np.asarray(self.muscles, float),
        )

    def tensions(self, rod: ReferenceRod) -> np.ndarray:
        """(m,) tensions of the rod's lines [N]; below zero those of chambers.

        Raises:
            UserError: a wrong number of inputs, one that is not finite, or a cable that pushes.
        """
        inputs = _finite("inputs", self.inputs, None)
        inputs = inputs if inputs.size else np.zeros(len(rod.lines))
        if inputs.shape != (len(rod.lines),):
            raise UserError(
                f"inputs of shape {inputs.shape}: this rod has {len(rod.lines)} actuators"
            )
        for line, value in zip(rod.lines, inputs.tolist(), strict=True):
            if line.is_cable and value < 0.0:
                raise UserError(f"inputs: {line.name}: tension {value:g} N: a cable cannot push")
        return inputs * [line.pull for line in rod.lines]

    def muscle_inputs(self, rod: ReferenceRod) -> np.ndarray:
        """(k,) inputs of the rod's muscles.

        Raises:
            UserError: a wrong number of them, or one that is not finite.
        """
        return require_inputs(rod.muscles, _finite("muscles", self.muscles, None))

    def wrenches(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tip force (3,), tip wrench (6,) and body wrench (6,).

        Raises:
            UserError: a wrong shape, or a number that is not finite.
        """
        return (
            _finite("tip_force", self.tip_force, 3),
            _finite("tip_wrench", self.tip_wrench, 6),
            _finite("body_wrench", self.body_wrench, 6),
        )


def _finite(name: str, value: ArrayLike, size: int | None) -> np.ndarray:
    try:
        found = np.asarray(value, float)
    except (TypeError, ValueError):
        raise UserError(f"{name} {value!r}: must be numbers") from None
    if size is not None and found.shape != (size,):
        raise UserError(f"{name} of shape {found.shape}: must have {size} numbers")
    if not np.isfinite(found).all():
        raise UserError(f"{name} {found.tolist()}: must be finite")
    return found


def _drag(robot: Robot) -> np.ndarray:
    """(2, 6) of a robot's medium.

    The square part, (3.12), is that of a cylinder which moves across or along itself, with the
    coefficients of the robot's file; between the two (3.12) takes the whole speed, as
    `CosseratRod` does not.
    """
    drag, medium = np.zeros((2, 6)), robot.medium
    if medium is None:
        return drag
    diameter = robot.segments[0].outer_diameter
    across = 0.5 * medium.density * diameter * medium.normal_drag
    along = 0.5 * medium.density * np.pi * diameter * medium.tangential_drag
    drag[0], drag[1, :3] = medium.linear_drag, (across, across, along)
    return drag


def _require_known(robot: Robot) -> None:
    found = [f"{len(robot.segments)} segments"] if len(robot.segments) > 1 else []
    found += ["a payload"] if robot.payload is not None else []
    found += [f"a tip mass of {robot.tip_mass:g} kg"] if robot.tip_mass else []
    if robot.medium is not None and any(robot.medium.flow):
        found.append("a flow")
    if found:
        raise UserError(
            f"robot {robot.name}: the reference solvers are for one segment alone; this robot has "
            f"{', '.join(found)}"
        )
