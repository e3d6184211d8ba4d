"""The explicit variational Lie group integrator of Pawlowski (2019), Sec. 3.3.1 and 3.3.2.

It is first order in time and space and keeps energy in bounds; its steps are bounded by the waves
along the rod (3.43) and, with viscosity, by diffusion.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from softcr_models.errors import UserError
from softcr_papers.pawlowski2019.lie import se3
from softcr_papers.pawlowski2019.reference.kernel import explicit_kernels, kirchhoff_kernels
from softcr_papers.pawlowski2019.reference.numbers import numbers_of
from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod
from softcr_papers.pawlowski2019.reference.steady import base_pose

Kind = Literal["cosserat", "kirchhoff", "kirchhoff_naive"]
"""Cosserat; neither shear nor stretch, with the force that holds them; or without that force, as
(3.45) is printed: weight then never bends the rod, and only rotary inertia resists actuators."""


@dataclass(frozen=True)
class StepBounds:
    """Longest stable steps [s]: 2 / w of the fastest oscillation w, 2 / g of the fastest decay g.

    Attributes:
        waves: Delta s / c with the fastest wave c = max sqrt(K / M), (3.43), but at most
            2 sqrt(rho I / GA): on coarse grids sections that turn against the rod are faster.
        diffusion: Delta s^2 min(M / V) / 2, but at most 2 rho I / V_shear for the same reason;
            infinite without viscosity.
    """

    waves: float
    diffusion: float

    @property
    def step(self) -> float:
        """The step that is taken: 0.1 of waves, (3.44), 0.9 of diffusion [s]."""
        return min(0.1 * self.waves, 0.9 * self.diffusion)


@dataclass(eq=False)
class ExplicitState:
    """A moving rod; `ExplicitMotion.advance` changes it.

    Attributes:
        strains: (N - 1, 6) of the intervals.
        velocities: (N, 6) of the nodes, in their frames, the first one's zero.
        momenta: (N, 6) mu of (3.42).
        forces: (N - 1, 3) that hold shear and stretch of the kind "kirchhoff" [N].
    """

    strains: np.ndarray
    velocities: np.ndarray
    momenta: np.ndarray
    forces: np.ndarray


class MotionFailed(ArithmeticError):
    """No forces hold shear and stretch; one line."""


class ExplicitMotion:
    """A rod of N nodes in motion."""

    def __init__(
        self, rod: ReferenceRod, points: int = 20, kind: Kind = "cosserat", dt: float | None = None
    ) -> None:
        """
        Args:
            rod: which.
            points: N, both ends included.
            kind: see `Kind`.
            dt: step [s]; None: `bounds.step`, for Kirchhoff's restriction 0.9 of the waves' bound.

        Raises:
            UserError: fewer than three points, a rod with muscles, or a step that the waves or
                diffusion do not bear.
        """
        if points < 3:
            raise UserError(f"points: {points} is not allowed: at least 3")
        if rod.muscles:
            raise UserError("muscles: are for statics and the implicit integrator")
        self.rod, self.points, self.kind = rod, points, kind
        self.interval = rod.length / (points - 1)
        self.bounds = self._bounds()
        usual = self.bounds.step
        if kind != "cosserat":
            usual = min(0.9 * self.bounds.waves, 0.9 * self.bounds.diffusion)
        self.dt = usual if dt is None else dt
        for name, bound in (("waves", self.bounds.waves), ("diffusion", self.bounds.diffusion)):
            if not 0.0 < self.dt <= bound:
                raise UserError(
                    f"dt: {self.dt:.3g} s is not allowed: with {points} points {name} bound it by "
                    f"{bound:.3g} s"
                )

    def _bounds(self) -> StepBounds:
        rod, h = self.rod, self.interval
        # the restricted rod has no waves of shear and stretch; those of bending are as fast
        kept = slice(0, 6) if self.kind == "cosserat" else slice(3, 6)
        inertia = rod.inertia[kept]
        elastic = 4.0 * (rod.stiffness[kept] / inertia).max() / h**2
        viscous = 4.0 * (rod.viscosity[kept] / inertia).max() / h**2
        if self.kind == "cosserat":  # sections that turn against the rod, all alike
            elastic = max(elastic, (rod.stiffness[:2] / rod.inertia[4:2:-1]).max())
            viscous = max(viscous, (rod.viscosity[:2] / rod.inertia[4:2:-1]).max())
        return StepBounds(
            float(2.0 / np.sqrt(elastic)), float(2.0 / viscous) if viscous > 0.0 else np.inf
        )

    def rest_state(self) -> ExplicitState:
        """Unloaded, at rest."""
        strains = np.tile(np.asarray(self.rod.rest_strain, float), (self.points - 1, 1))
        nodes = self.points, 6
        return ExplicitState(strains, np.zeros(nodes), np.zeros(nodes), np.zeros((nodes[0] - 1, 3)))

    def advance(self, state: ExplicitState, loads: Loads, count: int) -> np.ndarray:
        """(count, 3) positions of the rod's end after each step [m]; the state goes with it.

        Raises:
            MotionFailed: of the kind "kirchhoff", no forces were found.
        """
        rod, h, n = self.rod, self.interval, self.points
        places = h * np.append(np.arange(n - 1) + 0.5, n - 1.0)
        numbers = numbers_of(rod, loads, places)
        steps = se3.exp(h * state.strains)
        tips = np.empty((count, 3))
        moved = state.strains, state.velocities, state.momenta
        kept = (
            np.ascontiguousarray(base_pose(rod)[:3]), np.ascontiguousarray(steps[:, :3, :3]),
            np.ascontiguousarray(steps[:, :3, 3]), np.empty((n, 3, 3)), np.empty((n, 3)), tips,
        )  # fmt: skip
        about = rod.inertia, rod.viscosity, rod.drag, numbers
        if self.kind == "kirchhoff":
            done = kirchhoff_kernels().advance(
                count, self.dt, h, *about, *moved, state.forces, *kept
            )
            if done < count:
                raise MotionFailed(
                    f"dt {self.dt:.3g} s, {n} points: no forces hold shear and stretch at step "
                    f"{done}; shorter steps may help"
                )
            return tips
        frozen = int(self.kind == "kirchhoff_naive")
        explicit_kernels().advance(count, self.dt, h, frozen, *about, *moved, *kept)
        return tips

    def poses(self, state: ExplicitState) -> np.ndarray:
        """(N, 4, 4) of the nodes in the robot's base frame."""
        return chain(self.rod, se3.exp(self.interval * state.strains))

    def energy(self, state: ExplicitState) -> float:
        """Of motion, deformation and weight [J]; 0 for the unloaded rod but for its weight."""
        rod, h = self.rod, self.interval
        motion = 0.5 * h * np.sum(state.velocities**2 * rod.inertia)
        strain = 0.5 * h * np.sum((state.strains - rod.rest_strain) ** 2 * rod.stiffness)
        heights = self.poses(state)[1:, :3, 3] @ rod.weight
        return float(motion + strain - h * heights.sum())


def chain(rod: ReferenceRod, steps: np.ndarray) -> np.ndarray:
    """(N, 4, 4) poses from the base on, of the poses (N - 1, 4, 4) from each to the next."""
    poses = np.empty((len(steps) + 1, 4, 4))
    poses[0] = base_pose(rod)
    for j, step in enumerate(steps):
        poses[j + 1] = poses[j] @ step
    return poses
