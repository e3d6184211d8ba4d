"""What cameras tell of the tip: markers that sit elsewhere, another base frame, noise, lies."""

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_simulation.errors.plant_errors import PlantErrors


class Camera:
    """Sees the tip; noise, lost poses and wrong ones have random streams of their own.

    Attributes:
        noise: standard deviation of each coordinate [m].
    """

    def __init__(self, errors: PlantErrors, noise: float, streams: list[np.random.Generator]):
        """
        Args:
            errors: of the plant.
            noise: standard deviation of each coordinate [m].
            streams: of noise, lost poses and wrong poses.
        """
        self._errors, self.noise = errors, noise
        self._noise, self._lost, self._wrong = streams
        self._base = np.eye(4)
        self._base[:3, :3] = Rotation.from_rotvec(errors.registration_rotation).as_matrix()
        self._base[:3, 3] = errors.registration_offset

    def registered(self, poses: np.ndarray) -> np.ndarray:
        """(..., 3, 4) or (..., 4, 4) poses in the base frame that the camera believes in."""
        moved: np.ndarray = self._base[: poses.shape[-2], :3] @ poses[..., :3, :]
        moved[..., :3, 3] += self._base[:3, 3]
        if poses.shape[-2] == 4:
            moved[..., 3, 3] = 1.0
        return moved

    def sees(self, tip: np.ndarray) -> np.ndarray | None:
        """(4, 4) pose that is told of the true one, base frame [m]; None: it is lost."""
        errors = self._errors
        pose = tip.copy()
        pose[:3, 3] += pose[:3, :3] @ np.array(errors.marker_offset)
        pose = self.registered(pose)
        pose[:3, 3] += self.noise * self._noise.standard_normal(3)
        # drawn whatever is needed: an error does not change the noise of another
        lost = self._lost.random() < errors.dropout
        wrong = self._wrong.random() < errors.outlier_share
        direction = self._wrong.standard_normal(3)
        if wrong:
            pose[:3, 3] += errors.outlier_size * direction / np.linalg.norm(direction)
        return None if lost else pose
