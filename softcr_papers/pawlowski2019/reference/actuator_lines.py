"""Actuators as lines that run through a rod: cables that pull, chambers that push.

At arc length s a line lies at r(s) in the section's frame. In a strained rod it runs along
q = nu + w x r + r' and has the direction e = q / |q|, (2.39) and (2.41) of Pawlowski (2019). A
tension T (a chamber's pressure times area is a tension below zero) puts -T [e; r x e] on a section,
the oracle of everything here: what the line puts on the rod between a cut and its end, transported
to the cut, must be the same.

All wrenches are linear first, in the section's frame.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from softcr_models.errors import UserError
from softcr_models.robots.parts import Chamber, RodActuator
from softcr_models.robots.robot import Robot
from softcr_models.robots.routing import tendon_offset
from softcr_papers.pawlowski2019.lie import so3

Acting = Literal["tangent", "section", "tip"]
"""How a line's force acts: along the line as it is bent; along the line of the unstrained rod, as
`CosseratRod` has its chambers and its tendons of the model "constant"; or at its end alone."""

ChamberModel = Literal["section", "tangent", "tip", "thesis"]
"""`Acting` of chambers, or "thesis": at the end alone, with the moment (2.51) along the rod."""


@dataclass(frozen=True)
class Line:
    """One actuator.

    Attributes:
        name: of the actuator.
        offset: (J,) arc lengths [m] -> (J, 2, 3) places r [m] and slopes dr/ds [-].
        pull: tension per input [N/N, or N/Pa and below zero for a chamber].
        acting: how.
        restoring: whether the moment (2.51) acts beside it.
        span: arc lengths between which it runs; it is fixed to the rod at the second, and, where
            the first is not the base, comes there through a sheath that bears it [m].
    """

    name: str
    offset: Callable[[np.ndarray], np.ndarray]
    pull: float = 1.0
    acting: Acting = "tangent"
    restoring: bool = False
    span: tuple[float, float] = (0.0, np.inf)

    @property
    def is_cable(self) -> bool:
        """Whether it can pull alone."""
        return self.pull > 0.0

    def is_partial(self, length: float) -> bool:
        """Whether it runs through a part of a rod of this length [m] alone."""
        return self.span[0] > 0.0 or self.span[1] < length

    def runs_at(self, arc_lengths: np.ndarray, length: float) -> np.ndarray:
        """(J,) 1.0 where it runs through a rod of this length [m], 0.0 elsewhere.

        Where it begins it runs, where it ends before the rod's end it does not: a node stands for
        the interval behind it.
        """
        begin, end = self.span[0] - 1e-9 * length, self.span[1] - 1e-9 * length
        runs = (arc_lengths >= begin) & ((arc_lengths < end) | (self.span[1] >= length))
        return runs.astype(float)


def lines_of(robot: Robot, chambers: ChamberModel) -> tuple[Line, ...]:
    """The actuators of a robot of one segment, in its order."""
    return tuple(_line(robot, each, chambers) for each in robot.actuators)


def _line(robot: Robot, actuator: RodActuator, chambers: ChamberModel) -> Line:
    if isinstance(actuator, Chamber):
        x, y = actuator.lever_arm * np.array([np.cos(actuator.angle), np.sin(actuator.angle)])
        acting: Acting = "tip" if chambers == "thesis" else chambers
        return Line(
            actuator.name, partial(_parallel, np.array([x, y, 0.0])), -actuator.area, acting,
            chambers == "thesis",
        )  # fmt: skip
    acting = "tangent" if robot.tendon_model == "exact" else "section"
    return Line(actuator.name, partial(tendon_offset, actuator, robot.length), 1.0, acting)


def _parallel(place: np.ndarray, arc_lengths: np.ndarray) -> np.ndarray:
    return np.tile(np.stack((place, np.zeros(3))), (len(arc_lengths), 1, 1))


def require_inside(line: Line, length: float, radius: float) -> None:
    """Raises UserError where a line leaves the section or the rod, with the place."""
    begin, end = line.span
    if not 0.0 <= begin < min(end, length):
        raise UserError(f"actuators: {line.name} runs from {begin:g} to {end:g} m: not along a rod")
    if line.acting == "tip" and line.is_partial(length):
        raise UserError(f"actuators: {line.name} acts at the rod's end, before which it ends")
    places = np.linspace(begin, min(end, length), 101)
    distances = np.linalg.norm(line.offset(places)[:, 0], axis=1)
    worst = int(distances.argmax())
    if not distances[worst] <= radius * (1.0 + 1e-9):
        raise UserError(
            f"actuators: {line.name} runs {distances[worst]:g} m from the centre line at "
            f"{places[worst]:g} m, beyond the section's radius of {radius:g} m"
        )


def direction(offset: np.ndarray, strain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """e (..., 3) and the line's length per arc length |q| (...).

    Args:
        offset: (..., 2, 3) place and slope.
        strain: (..., 6).
    """
    place, slope = offset[..., 0, :], offset[..., 1, :]
    q = strain[..., :3] + np.cross(strain[..., 3:], place) + slope
    stretch = np.linalg.norm(q, axis=-1)
    return q / stretch[..., None], stretch


def section_wrench(offset: np.ndarray, strain: np.ndarray) -> np.ndarray:
    """(..., 6) wrench per tension that a line puts on a section, -[e; r x e]."""
    along, _ = direction(offset, strain)
    return -np.concatenate((along, np.cross(offset[..., 0, :], along)), axis=-1)


def end_wrench(offset: np.ndarray, strain: np.ndarray) -> np.ndarray:
    """(..., 6) wrench per tension on the rod's end where the line is fixed, (2.46) with F = -T."""
    return section_wrench(offset, strain)


def distributed_wrench(
    offset: np.ndarray, curving: np.ndarray, strain: np.ndarray, strain_rate: np.ndarray
) -> np.ndarray:
    """(..., 6) wrench per tension and arc length that a line puts on the rod, (2.45), F = +T.

    +[r x R^T t'; R^T t'], with R^T t' = -(q^ q^) q_s / |q|^3 and q_s = w x q + q' of (2.40). The
    thesis has r^ for r_a^ and -p^ for r_a^ in (2.45), and one sign for F here and in (2.46); with
    these the sum over the rod is not what a cut shows.

    Args:
        offset: (..., 2, 3) place and slope.
        curving: (..., 3) second derivative of the place by arc length [1/m].
        strain, strain_rate: (..., 6), and its derivative by arc length.
    """
    place, slope = offset[..., 0, :], offset[..., 1, :]
    nu, w = strain[..., :3], strain[..., 3:]
    q = nu + np.cross(w, place) + slope
    q_rate = strain_rate[..., :3] + np.cross(strain_rate[..., 3:], place) + np.cross(w, slope)
    q_rate = q_rate + curving + np.cross(w, q)
    hat = so3.hat(q)
    bend = -(hat @ hat @ q_rate[..., None])[..., 0] / np.linalg.norm(q, axis=-1)[..., None] ** 3
    return np.concatenate((bend, np.cross(place, bend)), axis=-1)


def restoring_moment(rotation: np.ndarray) -> np.ndarray:
    """(..., 6) of (2.51) per pressure and area: -[0; d], d = [-R23, R13, R21 - R12].

    It depends on how the rod lies in space. It is there only because the normal n in (2.49) does
    not turn with the section; with R n the integral is zero.
    """
    d = np.stack(
        (-rotation[..., 1, 2], rotation[..., 0, 2], rotation[..., 1, 0] - rotation[..., 0, 1]),
        axis=-1,
    )
    return np.concatenate((0.0 * d, -d), axis=-1)
