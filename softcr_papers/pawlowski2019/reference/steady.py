"""What a solver of the statics gives, and what it is asked."""

from dataclasses import dataclass

import numpy as np

from softcr_papers.pawlowski2019.reference.reference_rod import Loads, ReferenceRod


@dataclass(frozen=True, eq=False)
class Problem:
    """A rod, its loads, and where its end is clamped.

    Attributes:
        rod, loads: which.
        points: N, both ends included.
        goal: (4, 4) pose of the end in the base frame; None: it is free.
    """

    rod: ReferenceRod
    loads: Loads
    points: int
    goal: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A rod at rest, at N points; wrenches linear first, in the sections' frames.

    Attributes:
        arc_lengths: (N,) from the base, rising [m].
        poses: (N, 4, 4) in the robot's base frame.
        strains: (N, 6).
        wrenches: (N, 6) total internal wrenches: of the material and of the lines in it [N, N m].
        residual: what is wrong, in parts of EI / L^2 and EI / L, of L and 1 rad.
        steps: of Newton's method, for the last share of the loads.
    """

    arc_lengths: np.ndarray
    poses: np.ndarray
    strains: np.ndarray
    wrenches: np.ndarray
    residual: float
    steps: int

    @property
    def tip(self) -> np.ndarray:
        """(3,) position of the rod's end [m]."""
        position: np.ndarray = self.poses[-1, :3, 3]
        return position

    @property
    def base_wrench(self) -> np.ndarray:
        """(6,) total internal wrench at the rod's base [N, N m]."""
        wrench: np.ndarray = self.wrenches[0]
        return wrench

    def strains_at(self, places: np.ndarray) -> np.ndarray:
        """(P, 6) linear between the points, at arc lengths (P,) [m]."""
        columns = [np.interp(places, self.arc_lengths, column) for column in self.strains.T]
        return np.stack(columns, axis=-1)

    @property
    def determinant_error(self) -> float:
        """Largest difference of a rotation's determinant from 1."""
        return float(np.abs(np.linalg.det(self.poses[:, :3, :3]) - 1.0).max())


def base_pose(rod: ReferenceRod) -> np.ndarray:
    """(4, 4) pose of the rod's base in the robot's base frame."""
    pose = np.eye(4)
    pose[2, 3] = rod.base_height
    return pose


def poses_of(rotations: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """(N, 4, 4) of rotations (N, 3, 3) and positions (N, 3)."""
    poses = np.zeros((len(positions), 4, 4))
    poses[:, :3, :3], poses[:, :3, 3], poses[:, 3, 3] = rotations, positions, 1.0
    return poses
