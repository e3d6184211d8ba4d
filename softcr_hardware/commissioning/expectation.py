"""What the model expects of the rod while one chamber is filled: pose of its tip, base wrench."""

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod

_SCALES = np.array([0.0, 0.5, 0.8, 1.0, 1.25, 1.6])  # on the pressure, between which it is smooth


@dataclass(frozen=True, eq=False)
class Bent:
    """One chamber at a pressure, against the vented rod.

    Attributes:
        displacement: (3,) of the tip, base frame [m].
        turn: (3,) rotation vector of the tip, base frame [rad].
        own_turn: (3,) the same in the tip's frame.
        wrench: (6,) change of the base wrench [N, N m].
    """

    displacement: np.ndarray
    turn: np.ndarray
    own_turn: np.ndarray
    wrench: np.ndarray


class Expectation:
    """Of one robot.

    Attributes:
        count: number of chambers.
        rest: (4, 4) resting tip, base frame [m].
        rest_wrench: (6,) at the base [N, N m].
    """

    def __init__(self, robot: Robot) -> None:
        """With the file's parameters."""
        self._rod = CosseratRod(robot)
        self.count = self._rod.input_size
        self.rest, self.rest_wrench = self._at(np.zeros(self.count))

    def bent(self, chamber: int, pressure: float) -> Bent:
        """One chamber, from 0, at a pressure [Pa]."""
        pose, wrench = self._at(self._pressures(chamber, pressure))
        rotation = self.rest[:3, :3]
        return Bent(
            pose[:3, 3] - self.rest[:3, 3],
            np.array(pin.log3(pose[:3, :3] @ rotation.T)),
            np.array(pin.log3(rotation.T @ pose[:3, :3])),
            wrench - self.rest_wrench,
        )

    def path(self, chamber: int, pressure: float) -> "BendingPath":
        """Poses of the tip for multiples of a pressure [Pa]."""
        rest = pin.SE3(self.rest)
        twists = [
            pin.log6(rest.actInv(pin.SE3(self._at(self._pressures(chamber, each))[0]))).vector
            for each in _SCALES * pressure
        ]
        return BendingPath(self.rest, np.array(twists))

    def _pressures(self, chamber: int, pressure: float) -> np.ndarray:
        pressures = np.zeros(self.count)
        pressures[chamber] = pressure
        return pressures

    def _at(self, pressures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        state = self._rod.equilibrium(pressures)
        return self._rod.tip_pose(state), self._rod.base_wrench(state, pressures)


@dataclass(frozen=True, eq=False)
class BendingPath:
    """Poses of the tip along growing pressures of one chamber.

    Attributes:
        rest: (4, 4) the vented one, base frame [m].
        twists: (n, 6) from it to the others, at `_SCALES`.
    """

    rest: np.ndarray
    twists: np.ndarray

    def pose(self, scale: float) -> np.ndarray:
        """(4, 4) at `scale` times the pressure, base frame."""
        twist = np.array([np.interp(scale, _SCALES, column) for column in self.twists.T])
        return np.array((pin.SE3(self.rest) * pin.exp6(twist)).homogeneous)
