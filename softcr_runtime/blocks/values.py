"""Values that blocks exchange and that survive their message to the bit.

A matrix does not survive the quaternion of its message, so a pose that a block sends is position
and quaternion, and whoever wants the matrix derives it by the one function here, on both sides.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from softcr_models.model import Layout


@dataclass(frozen=True, eq=False)
class Pose:
    """A pose in the frame of its message.

    Attributes:
        position: (3,) [m].
        quaternion: (4,) x y z w, of length 1.
    """

    position: np.ndarray
    quaternion: np.ndarray

    @classmethod
    def of(cls, matrix: np.ndarray) -> "Pose":
        """Of a (4, 4) or (3, 4) matrix."""
        return cls(matrix[:3, 3].copy(), pin.Quaternion(matrix[:3, :3].copy()).coeffs())

    @cached_property
    def matrix(self) -> np.ndarray:
        """(4, 4)."""
        matrix = np.eye(4)
        length = math.hypot(*self.quaternion)
        matrix[:3, :3] = pin.Quaternion(self.quaternion / length).matrix()
        matrix[:3, 3] = self.position
        return matrix


class BlendedPose(Pose):
    """A pose between two others; what is asked for its position only never turns anything."""

    def __init__(self, older: Pose, newer: Pose, part: float) -> None:
        """See `blended_poses`."""
        ways = older.position, newer.position
        self.__dict__["position"] = ways[0] + part * (ways[1] - ways[0])
        self.__dict__["_turn"] = older, newer, part

    @cached_property
    def quaternion(self) -> np.ndarray:
        """(4,) x y z w, of length 1."""
        older, newer, part = self.__dict__["_turn"]
        begin = Rotation.from_matrix(older.matrix[:3, :3])
        turn = (begin.inv() * Rotation.from_matrix(newer.matrix[:3, :3])).as_rotvec()
        rotation = (begin * Rotation.from_rotvec(part * turn)).as_matrix()
        return pin.Quaternion(rotation).coeffs()


def blended_poses(older: Pose, newer: Pose, part: float) -> Pose:
    """The pose at a part of the way, 0 <= part <= 1: straight on, turning about one axis."""
    return BlendedPose(older, newer, part)


@dataclass(frozen=True, eq=False)
class StateEstimate:
    """An estimated, or true, state of a model.

    Attributes:
        state: (nx,).
        parameters: by name, of the model and of its inputs' sensors.
        parameters_std: their standard deviations by name; what is not named has none.
        poses: gives (k, 4, 4) poses along the robot, base to tip [m], for viewers; only called
            where somebody makes a message of this.
        inputs: (m,) measured inputs that the estimate was made with [unit of the model's inputs];
            None of a true state, and where an estimator does not tell them.
        layout: of the state, where the block that sends it exchanges no model's states, and of one
            that came in a message; None: that of the block's model.
    """

    state: np.ndarray
    parameters: Mapping[str, float]
    parameters_std: Mapping[str, float] = field(default_factory=dict)
    poses: Callable[[], np.ndarray] | None = None
    inputs: np.ndarray | None = None
    layout: Layout | None = None

    @property
    def groups(self) -> dict[str, np.ndarray]:
        """Entries of the state by group of its layout; none without one."""
        return {group.name: self.state[group.indices] for group in self.layout or ()}


@dataclass(frozen=True, eq=False)
class PointForces:
    """What acts on a robot at single points, base frame.

    Attributes:
        points: (J, 3) [m].
        wrenches: (J, 6) force [N], then moment about the point [N m].
    """

    points: np.ndarray
    wrenches: np.ndarray


@dataclass(frozen=True, eq=False)
class TipEstimate:
    """An estimated tip.

    Attributes:
        pose: gives the pose in the base frame [m]; only called where somebody needs it.
        position_covariance: (3, 3) [m^2].
    """

    pose: Callable[[], Pose]
    position_covariance: np.ndarray


@dataclass(frozen=True, eq=False)
class ReferenceRows:
    """What a controller shall follow; row j belongs to time stamp + j * period.

    Attributes:
        stamp: time of row 0 [ns].
        period: time between rows [s].
        states: (H, nx) wanted states; rows of NaN where only the tip is known, which a model that
            is no rod does not tell. None: no state is.
        tip_positions: (H, 3) wanted tip positions [m], base frame.
        poses: gives (H, k, 4, 4) poses along the robot [m], or None where they are unknown; only
            called where somebody makes a message of this.
        tip_orientations: (H, 4) quaternions x y z w that are asked of the tip, base frame; NaN in
            rows that ask for none, and where the state is known. None: no row asks for one.
        shift: (H, 3) by which a controller aims beside the wanted tip, because repetitions of the
            motion have taught so [m]. None: nothing was learned.
    """

    stamp: int
    period: float
    states: np.ndarray | None
    tip_positions: np.ndarray
    poses: Callable[[], np.ndarray | None] = lambda: None
    tip_orientations: np.ndarray | None = None
    shift: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Goal:
    """Where a person wants the tip to go.

    Attributes:
        tips: (k, 3) positions, one after the other, in `frame` [m].
        frame: that they are in, as the message has it; empty where it names none.
        orientations: (k, 4) quaternions x, y, z, w of the tip in `frame`; (0, 0, 0, 1) asks for
            none. None: none is asked for anywhere.
    """

    tips: np.ndarray
    frame: str
    orientations: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class GoalState:
    """How it stands with a goal.

    Attributes:
        state: "idle", "moving", "stopping", "following" or "waiting" for a stream that is silent.
        message: what happened last, in a line.
        warns: whether a person should look.
        distance: of the way that is left [m]; NaN where there is none.
        tip: (3,) wanted now [m].
        frame: of it.
    """

    state: str
    message: str
    warns: bool
    distance: float
    tip: np.ndarray
    frame: str
