"""An exact rod under the inputs of a paper's robot: a plant whose equations no model of it has.

The papers' robots have inputs that no robot file of a rod knows: a torque on each strain of a
segment, or tendons that are parallel to the centre line and end inside. `DrivenBeam` takes the
sections' numbers and inputs as arrays, and moves them as the chain of geometrically exact elements
of the simulation does, with the simulation's integrator. `Hysteresis` is what acts late of an
input.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softcr_simulation.beam.dynamics import Numbers, march, node_forces, room_for
from softcr_simulation.plant_effects.acting_pressures import through_plays

_PLAYS = 10
_FINEST = 5  # halvings of a step that fails
_REFRESH = 20  # steps of a loop between derivatives
_NUDGE = 1e-4  # of an input over its size, to differentiate by


@dataclass(frozen=True)
class Sections:
    """Parts of a rod, base to tip, each with the same sections throughout. Strains and twists have
    shear (x, y) and stretch (z) before bending (x, y) and torsion (z).

    Attributes:
        lengths: (S,) [m].
        stiffness: (S, 6) [N], [N m^2].
        damping: (S, 6) [N s], [N m^2 s].
        inertia: (S, 6) mass [kg/m] three times, moments of inertia [kg m], per length.
        actuation: (S, 6, m) wrench in every section of a part, per input.
    """

    lengths: np.ndarray
    stiffness: np.ndarray
    damping: np.ndarray
    inertia: np.ndarray
    actuation: np.ndarray


class Hysteresis:
    """Inputs of which a share follows with play: a smooth loop of ten plays.

    Half widths of the plays are evenly spaced up to the widest, as those of a pneumatic plant's
    errors are.
    """

    def __init__(self, share: float, widest: Sequence[float] | np.ndarray) -> None:
        """
        Args:
            share: of an input that the plays carry [-].
            widest: (m,) half width of the widest play, in the inputs' units.
        """
        self._radii = np.outer(widest, np.arange(1, _PLAYS + 1) / _PLAYS)
        self._weights = np.full((len(self._radii), _PLAYS), share / _PLAYS)
        self._plays = np.zeros_like(self._radii)

    def acting(self, inputs: np.ndarray) -> np.ndarray:
        """(m,) what acts of inputs (m,); the plays move."""
        rows = zip(inputs, self._plays, self._radii, self._weights, strict=True)
        return np.array([through_plays(*row) for row in rows])


class DrivenBeam:
    """A rod that is straight without load, clamped at its base.

    Attributes:
        poses: (N + 1, 3, 4) of the nodes [m], in the frame of the base, z along the straight rod.
        velocities: (N + 1, 6) twists in the nodes' frames.
        first: (S + 1,) node at which each part begins; the last is the tip's.
        lengths: (N,) of the elements [m].
        inputs, acting: (m,) of the last step of `follow`, and what acted of them.
        size: m, the number of inputs.
    """

    def __init__(
        self,
        parts: Sections,
        gravity: Sequence[float],
        tip_mass: float,
        longest: float,
        hysteresis: Hysteresis | None = None,
    ) -> None:
        """
        Args:
            parts: of the rod.
            gravity: (3,) acceleration that pulls it, in the frame of the base [m/s^2].
            tip_mass: a point at the tip [kg].
            longest: of an element [m].
            hysteresis: of the inputs in `follow`; None: they act as they are.
        """
        counts = np.ceil(parts.lengths / longest - 1e-9).astype(int)
        of = np.repeat(np.arange(len(counts)), counts)
        lengths = (parts.lengths / counts)[of]
        inertia = np.zeros((len(of) + 1, 6, 6))
        for i, half in enumerate(0.5 * lengths[:, None] * parts.inertia[of]):
            inertia[i : i + 2] += np.diag(half)
        inertia[-1, range(3), range(3)] += tip_mass
        self._numbers = Numbers(
            lengths=lengths, stiffness=parts.stiffness[of],
            relaxation=(parts.damping / parts.stiffness)[of], inertia=inertia,
            gravity=np.array(gravity, float), offsets=np.tile(np.eye(4)[:3], (len(of), 1, 1)),
            lower=np.tile(np.eye(6), (len(of), 1, 1)), is_offset=np.zeros(len(of), bool),
            actuation=np.ascontiguousarray(parts.actuation[of]), curvature_share=0.0,
            reference_curvature=1.0, tip_lever=0.0,
        )  # fmt: skip
        self.lengths = lengths
        self.first, self.size = np.r_[0, np.cumsum(counts)], parts.actuation.shape[2]
        self._room = room_for(len(of), self.size)
        self.poses = np.tile(np.eye(4)[:3], (len(of) + 1, 1, 1))
        self.poses[1:, 2, 3] = np.cumsum(lengths)
        self.velocities = np.zeros((len(of) + 1, 6))
        self.inputs = self.acting = np.zeros(self.size)
        self._hysteresis = hysteresis or Hysteresis(0.0, np.zeros(self.size))
        self._ticks = 0

    def advance(self, inputs: np.ndarray, seconds: float, steps: int = 1) -> None:
        """Move for some seconds under inputs (m,) that act evenly.

        Raises:
            ArithmeticError: no motion was found, even in finer steps.
        """
        before = self._motion()
        for _ in range(_FINEST):
            levels = np.tile(inputs, (steps + 1, 1))
            args = levels, seconds / steps, self._numbers, self._room, 1.0, np.zeros(3)
            if march(self.poses, self.velocities, *args) >= 0:
                return
            self._restore(before)
            self._room.rate[:] = 0.0
            steps *= 2
        raise ArithmeticError(f"the rod was lost under inputs {inputs.tolist()}")

    def follow(
        self, force: np.ndarray, proportional: np.ndarray, derivative: np.ndarray, dt: float
    ) -> None:
        """Move for a time dt [s] in a continuous loop, inputs = force - P y - D y' of the step's
        end, where y are the rod's `conjugates`.

        Large gains would make a loop swing that knows the step's beginning alone. A trial step
        under the last inputs, and by how much y' at its end changes with each input, tell the end
        to first order.

        Args:
            force: (m,).
            proportional, derivative: (m, m) P and D.
            dt: [s].

        Raises:
            ArithmeticError: as `advance`.
        """
        begin, y = self._motion(), self.conjugates()
        free = self._trial(begin, y, self.acting, dt)
        if self._ticks % _REFRESH == 0:
            nudge = _NUDGE * (1.0 + np.abs(self.acting).max())
            moved = [self._trial(begin, y, self.acting + nudge * row, dt)
                     for row in np.eye(self.size)]  # fmt: skip
            self._mobility = (np.array(moved) - free).T / nudge
        self._ticks += 1
        gains = derivative + dt * proportional
        still = free - self._mobility @ self.inputs
        self.inputs = np.linalg.solve(
            np.eye(self.size) + gains @ self._mobility, force - proportional @ y - gains @ still
        )
        self.acting = self._hysteresis.acting(self.inputs)
        self.advance(self.acting, dt)

    def _trial(
        self, begin: tuple[np.ndarray, ...], y: np.ndarray, acting: np.ndarray, dt: float
    ) -> np.ndarray:
        """(m,) mean rates of `conjugates` over a step that is then undone."""
        self.advance(acting, dt)
        rates: np.ndarray = (self.conjugates() - y) / dt
        self._restore(begin)
        return rates

    def _motion(self) -> tuple[np.ndarray, ...]:
        return self.poses.copy(), self.velocities.copy(), self._room.rate.copy()

    def _restore(self, motion: tuple[np.ndarray, ...]) -> None:
        self.poses[:], self.velocities[:], self._room.rate[:] = motion

    def strains(self) -> np.ndarray:
        """(N, 6) of the elements, without the straight rod's."""
        numbers, room = self._numbers, self._room
        still = np.zeros(self.size)
        node_forces(room, self.poses, self.velocities, still, numbers, 1.0, np.zeros(3))
        strains: np.ndarray = room.psi / numbers.lengths[:, None]
        strains[:, 2] -= 1.0
        return strains

    def conjugates(self) -> np.ndarray:
        """(m,) on which the inputs do work: integral over the rod of actuation^T strain."""
        numbers, strains = self._numbers, self.strains()
        found: np.ndarray = np.einsum("i,ikm,ik->m", numbers.lengths, numbers.actuation, strains)
        return found
