"""Where the robot's base stands in the cameras' world, and its tip in the rigid body seen there.

    tip in base = inverse(base in world) * body in world * tip in body

All of them are poses of the second named frame in the first; SE(3) algebra is pinocchio's.
"""

from pathlib import Path

import numpy as np
import pinocchio as pin
import yaml
from pydantic import BaseModel, ConfigDict, Field

from softcr_hardware.unit_quaternion import UnitQuaternion
from softcr_models.errors import UserError
from softcr_models.files.number_types import Place
from softcr_models.files.yaml_files import load_yaml
from softcr_runtime.bags.whole_files import write_whole

_FEWEST = 20  # poses for a calibration
_ROUNDS = 20  # of the mean's iteration
_CONVERGED = 1e-12


class Placement(BaseModel):
    """One frame in another."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    position: Place = (0.0, 0.0, 0.0)
    quaternion: UnitQuaternion = (0.0, 0.0, 0.0, 1.0)

    @property
    def pose(self) -> np.ndarray:
        """(4, 4) [m]."""
        return pose_matrix(self.position, self.quaternion)

    @classmethod
    def of(cls, pose: np.ndarray) -> "Placement":
        """Of a (4, 4) pose."""
        numbers = pin.SE3ToXYZQUAT(pin.SE3(pose)).round(9).tolist()
        return cls(position=tuple(numbers[:3]), quaternion=tuple(numbers[3:]))


class MocapCalibration(BaseModel):
    """The file: what the cameras' world is to the robot."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str = ""
    base_in_world: Placement = Field(description="pose of the robot's base in the cameras' world")
    tip_in_body: Placement = Field(
        default=Placement(), description="pose of the tip in its rigid body"
    )
    base_in_body: Placement = Field(
        default=Placement(), description="pose of the base in a body that is fixed to it"
    )

    def tip(self, body: np.ndarray) -> np.ndarray:
        """(4, 4) tip in the base frame of a (4, 4) tip's body in the world."""
        return inverse(self.base_in_world.pose) @ body @ self.tip_in_body.pose

    def body(self, tip: np.ndarray) -> np.ndarray:
        """(4, 4) pose of the tip's body in the world for a (4, 4) tip in the base frame."""
        return self.base_in_world.pose @ tip @ inverse(self.tip_in_body.pose)


def load_calibration(name_or_path: str | Path) -> MocapCalibration:
    """The calibration of `config/optitrack/NAME.yaml`, or of the YAML file at a path.

    Raises:
        UserError: one line with the file, the field, the value found and what is allowed.
    """
    return load_yaml(name_or_path, "optitrack", MocapCalibration, "calibration")


def save_calibration(path: Path, calibration: MocapCalibration) -> None:
    """Write a calibration where `load_calibration` finds it.

    Raises:
        UserError: the file cannot be written.
    """
    content = calibration.model_dump(mode="json")
    write_whole(path, yaml.safe_dump(content, sort_keys=False))


def calibrated_by_tip(
    calibration: MocapCalibration, bodies: np.ndarray, resting_tip: np.ndarray, spread: float
) -> MocapCalibration:
    """The base from poses of the tip's body while the vented rod rests.

    Args:
        calibration: whose `tip_in_body` holds.
        bodies: (N, 4, 4) in the world.
        resting_tip: (4, 4) where the model has the resting tip, base frame.
        spread: most the bodies may move meanwhile [m].

    Raises:
        UserError: too few poses, or they move.
    """
    tip = resting_mean(bodies, spread) @ calibration.tip_in_body.pose
    return calibration.model_copy(
        update={"base_in_world": Placement.of(tip @ inverse(resting_tip))}
    )


def calibrated_by_base(
    calibration: MocapCalibration, bodies: np.ndarray, spread: float
) -> MocapCalibration:
    """The base from poses (N, 4, 4) of a body fixed to it, whose `base_in_body` holds.

    Raises:
        UserError: too few poses, or they move by more than `spread` [m].
    """
    base = resting_mean(bodies, spread) @ calibration.base_in_body.pose
    return calibration.model_copy(update={"base_in_world": Placement.of(base)})


def resting_mean(poses: np.ndarray, spread: float) -> np.ndarray:
    """(4, 4) mean of poses (N, 4, 4) of something that rests: the pose from which the others'
    logarithms sum to zero.

    Raises:
        UserError: fewer than 20 poses, or one lies further than `spread` [m] from the mean.
    """
    if len(poses) < _FEWEST:
        raise UserError(
            f"calibration: {len(poses)} poses in the last second, must be {_FEWEST}: is the body "
            "tracked?"
        )
    mean = pin.SE3(poses[0])
    others = [pin.SE3(pose) for pose in poses]
    for _ in range(_ROUNDS):
        step = np.mean([pin.log6(mean.actInv(other)).vector for other in others], axis=0)
        mean = mean * pin.exp6(step)
        if np.linalg.norm(step) < _CONVERGED:
            break
    worst = max(np.linalg.norm(other.translation - mean.translation) for other in others)
    if worst > spread:
        raise UserError(
            f"calibration: the body moved by {1e3 * worst:.2f} mm, must rest within "
            f"{1e3 * spread:.2f} mm: vent the valves and wait"
        )
    return np.array(mean.homogeneous)


def pose_matrix(position: tuple[float, ...], quaternion: tuple[float, ...]) -> np.ndarray:
    """(4, 4) pose of a position [m] and a quaternion x, y, z, w of any length but 0."""
    rotation = pin.Quaternion(np.array(quaternion)).normalized().toRotationMatrix()
    return np.array(pin.SE3(rotation, np.array(position)).homogeneous)


def inverse(pose: np.ndarray) -> np.ndarray:
    """(4, 4) inverse of a (4, 4) pose."""
    return np.array(pin.SE3(pose).inverse().homogeneous)
