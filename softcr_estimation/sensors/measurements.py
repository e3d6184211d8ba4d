"""What a measurement of a model's output is compared with, and how well it is known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_estimation.errors import EstimatorError
from softcr_estimation.estimator_settings import ModelEstimatorSettings
from softcr_models.model import Kind, OutputInfo
from softcr_models.rod.description import TENDON_LENGTHS

UNTOLD_NOISES = {
    "position_noise": 2e-4, "tendon_length_noise": 2e-4, "wrench_force_noise": 0.02,
    "wrench_moment_noise": 1e-3,
}  # fmt: skip
"""Where neither settings nor robot file say a noise [m], [N], [N m]."""

_WRENCH = ("wrench_force_noise", "wrench_moment_noise")


def noises_of_outputs(
    settings: ModelEstimatorSettings,
    outputs: Mapping[str, OutputInfo],
    of_file: Mapping[str, tuple[float, ...]],
) -> dict[str, tuple[float, ...]]:
    """Noises of the outputs that the sensors of a robot's file measure.

    Args:
        settings: whose noises count where they are not 0.
        outputs: of the model.
        of_file: output -> standard deviations of its sensor, as `Robot.output_noises` has them.

    Returns:
        Output -> standard deviation of each kind of coordinate, as `Measurements` has them.
    """
    found: dict[str, tuple[float, ...]] = {}
    for name in of_file.keys() & outputs.keys():
        kind, told = outputs[name].kind, of_file[name]
        names = _WRENCH if kind == "wrench" else ("position_noise",)
        if name == TENDON_LENGTHS:
            names = ("tendon_length_noise",)
        numbers = (_number(settings, *each) for each in zip(names, told, strict=True))
        found[name] = (*numbers, *([settings.rotation_noise] * (kind == "pose")))
    return found


def _number(settings: ModelEstimatorSettings, name: str, of_file: float = 0.0) -> float:
    number: float = getattr(settings, name) or of_file or UNTOLD_NOISES[name]
    return number


def _usual_noises(settings: ModelEstimatorSettings) -> dict[Kind, tuple[float, ...]]:
    """Of each kind of output, where the settings do not name it; a vector has no usual noise."""
    position = _number(settings, "position_noise")
    return {
        "pose": (position, settings.rotation_noise),  # [m], [rad]
        "position": (position,),  # [m]
        "points": (position,),  # [m]
        "wrench": tuple(_number(settings, name) for name in _WRENCH),  # [N], [N m]
    }


@dataclass(frozen=True, eq=False)
class Measurement:
    """One sensor's sample, ready for a filter.

    Attributes:
        values: (nz,) measured; zeros for a rotation, which is compared in its tangent space.
        noise: (nz,) standard deviations.
        compared: from the model's output (B, ...) to (B, nz); NaN where that is not finite.
    """

    values: np.ndarray
    noise: np.ndarray
    compared: Callable[[np.ndarray], np.ndarray]


class Measurements:
    """Turns samples of a model's outputs into what a filter compares."""

    def __init__(self, outputs: Mapping[str, OutputInfo], settings: ModelEstimatorSettings) -> None:
        """
        Args:
            outputs: of the model.
            settings: with the noises of kinds of outputs, and of single ones.

        Raises:
            EstimatorError: a noise for an output that does not exist, or not one number for each
                kind of coordinate.
        """
        self._outputs, usual = outputs, _usual_noises(settings)
        self._noises = {
            name: usual[info.kind] for name, info in outputs.items() if info.kind in usual
        }
        if TENDON_LENGTHS in outputs:
            self._noises[TENDON_LENGTHS] = (_number(settings, "tendon_length_noise"),)
        for name, noise in settings.measurement_noises.items():
            kind = self.info(name, "measurement_noises").kind
            given = noise if isinstance(noise, tuple) else (noise,)
            wanted = len(usual.get(kind, (1.0,)))
            if len(given) != wanted:
                raise EstimatorError(
                    f"measurement_noises: {name}: {list(given)}; a {kind} has {wanted} numbers"
                )
            self._noises[name] = given

    def info(self, name: str, where: str = "measurements") -> OutputInfo:
        """What an output is. Raises EstimatorError where none has the name."""
        if name not in self._outputs:
            raise EstimatorError(f"{where}: {name!r} unknown; known are {', '.join(self._outputs)}")
        return self._outputs[name]

    def of(self, name: str, sample: np.ndarray) -> Measurement:
        """Of an output's sample.

        Args:
            name: of the output.
            sample: of the output's shape; of a pose also (4, 4), or (3,): the position alone.

        Raises:
            EstimatorError: an unknown output, a wrong shape, non-finite numbers, no rotation
                matrix, or a noise that nothing tells.
        """
        info = self.info(name)
        if name not in self._noises:
            raise EstimatorError(f"measurement_noises: {name!r} is measured and must be given one")
        noise = self._noises[name]
        if info.kind == "pose":
            return _pose(name, sample, noise)
        values = checked(name, sample, info.shape).ravel()
        return Measurement(values, np.repeat(noise, values.size // len(noise)), _flat)


def checked(name: str, values: np.ndarray, *shapes: tuple[int, ...]) -> np.ndarray:
    """A copy as floats. Raises EstimatorError where it has none of the shapes, or is not finite."""
    array = np.array(values, float)
    if array.shape not in shapes or not np.isfinite(array).all():
        wanted = " or ".join(map(str, shapes))
        raise EstimatorError(f"{name}: {array.tolist()} must be {wanted} finite numbers")
    return array


def checked_rotation(name: str, matrix: np.ndarray) -> np.ndarray:
    """A copy (3, 3) as floats. Raises EstimatorError where it is no rotation matrix."""
    matrix = checked(name, matrix, (3, 3))
    if not np.allclose(matrix @ matrix.T, np.eye(3), atol=1e-3) or np.linalg.det(matrix) < 0.0:
        raise EstimatorError(f"{name}: {matrix.tolist()} must be a rotation matrix")
    return matrix


def positions(poses: np.ndarray) -> np.ndarray:
    """(B, 3) of poses (B, 3, 4)."""
    return poses[:, :, 3]


def _pose(name: str, sample: np.ndarray, noise: tuple[float, ...]) -> Measurement:
    sample = checked(name, sample, (3,), (3, 4), (4, 4))
    if sample.ndim == 1:
        return Measurement(sample, np.full(3, noise[0]), positions)
    reference = Rotation.from_matrix(checked_rotation(name, sample[:3, :3]))

    def compared(poses: np.ndarray) -> np.ndarray:
        """(B, 6) positions, and rotation vectors from the measured one, in its tangent space."""
        finite = np.isfinite(poses).all(axis=(1, 2))
        result = np.full((len(poses), 6), np.nan)
        rotations = reference.inv() * Rotation.from_matrix(poses[finite, :, :3])
        result[finite] = np.hstack([poses[finite, :, 3], rotations.as_rotvec()])
        return result

    return Measurement(np.concatenate([sample[:3, 3], np.zeros(3)]), np.repeat(noise, 3), compared)


def _flat(observed: np.ndarray) -> np.ndarray:
    return observed.reshape(len(observed), -1)
