"""The implicit integrator of Pawlowski (2019), Sec. 3.3.3: midpoint in time, shooting in space.

It has no longest step. It has a shortest one: marching by explicit Euler along the rod makes motion
grow where steps are short beside the distance of the points and viscosity does not damp it. By the
midpoint rule along the rod, which is ours, it is of second order in space, too.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.pawlowski2019.lie import se3
from softcr_papers.pawlowski2019.reference.explicit_motion import chain
from softcr_papers.pawlowski2019.reference.kernel import implicit_kernels
from softcr_papers.pawlowski2019.reference.numbers import numbers_of
from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod
from softcr_papers.pawlowski2019.reference.steady import base_pose

Space = Literal["euler", "midpoint"]
"""How the rod is marched along: by explicit Euler, as in the thesis, or by the midpoint rule."""

TOLERANCE = 1e-9
"""Of what is wrong at the end, in parts of EI / L^2 and EI / L."""


class StepFailed(ArithmeticError):
    """A step has no solution that is found; one line.

    Attributes:
        time: to which the motion is known [s].
    """

    def __init__(self, line: str, time: float) -> None:
        """The line, and the time."""
        super().__init__(line)
        self.time = time


@dataclass(eq=False)
class ImplicitState:
    """A moving rod; `ImplicitMotion.advance` changes it.

    Attributes:
        strains, velocities: (P, 6) of the points, in their frames: P = N, or, for the midpoint
            rule, 2 N - 1, the middles between them as well.
        base_wrench: (6,) total internal wrench at the base at the half of the last step [N, N m].
        time: since it was made [s].
    """

    strains: np.ndarray
    velocities: np.ndarray
    base_wrench: np.ndarray
    time: float = 0.0


class ImplicitMotion:
    """A rod of N points in motion.

    Attributes:
        places: (P,) arc lengths of a state's rows [m].
        marches: along the rod, since this was made.
    """

    def __init__(
        self, rod: ReferenceRod, points: int = 20, dt: float = 0.05, space: Space = "euler"
    ) -> None:
        """
        Args:
            rod: which; `rod.kirchhoff()` has neither shear nor stretch.
            points: N, both ends included.
            dt: step [s].
            space: how it is marched along.

        Raises:
            UserError: fewer than three points, a step that is not above zero, or another way.
        """
        if space not in get_args(Space):
            raise UserError(f"space {space!r}: must be one of {', '.join(get_args(Space))}")
        if points < 3:
            raise UserError(f"points: {points} is not allowed: at least 3")
        if not 0.0 < dt < np.inf:
            raise UserError(f"dt: {dt} s is not allowed: must be above 0 and finite")
        self.rod, self.points, self.dt, self.space = rod, points, dt, space
        self.interval = rod.length / (points - 1)
        self.places = np.linspace(0.0, rod.length, points if space == "euler" else 2 * points - 1)
        self.marches = 0

    def rest_state(self) -> ImplicitState:
        """Unloaded, at rest."""
        strains = np.tile(np.asarray(self.rod.rest_strain, float), (len(self.places), 1))
        return ImplicitState(strains, np.zeros(strains.shape), np.zeros(6))

    def advance(self, state: ImplicitState, loads: Loads, count: int) -> np.ndarray:
        """(count, 3) positions of the rod's end after each step [m]; the state goes with it.

        Laws of muscles are taken as linear about the strains before these steps.

        Raises:
            StepFailed: a step was not found, after which the state is that before it.
        """
        rod, h = self.rod, self.interval
        midpoint = self.space == "midpoint"
        numbers = numbers_of(rod, loads, self.places, state.strains)
        base, tips = base_pose(rod), np.empty((count, 3))
        done, marches = implicit_kernels().simulate(
            count, midpoint, self.dt, h, np.vstack((base[:3, :3], base[None, :3, 3])),
            state.base_wrench, numbers, rod.inertia, rod.viscosity, rod.drag, rod.scales,
            TOLERANCE, state.strains, state.velocities, tips,
        )  # fmt: skip
        self.marches += marches
        state.time += done * self.dt
        if done < count:
            raise StepFailed(
                f"dt {self.dt:g} s, {self.points} points: no step was found at {state.time:.3g} s: "
                "this scheme needs longer steps or more points",
                state.time,
            )
        return tips

    def poses(self, state: ImplicitState) -> np.ndarray:
        """(N, 4, 4) of the points in the robot's base frame."""
        strains = state.strains[:-1] if self.space == "euler" else state.strains[1::2]
        return chain(self.rod, se3.exp(self.interval * strains))

    def energy(self, state: ImplicitState) -> float:
        """Of motion, deformation and weight [J], without muscles; by a point of each interval."""
        rod, h = self.rod, self.interval
        euler = self.space == "euler"
        strains = state.strains[:-1] if euler else state.strains[1::2]
        velocities = state.velocities[1:] if euler else state.velocities[1::2]
        motion = 0.5 * h * np.sum(velocities**2 * rod.inertia)
        strain = 0.5 * h * np.sum((strains - rod.rest_strain) ** 2 * rod.stiffness)
        heights = self.poses(state)[1:, :3, 3] @ rod.weight
        return float(motion + strain - h * heights.sum())
