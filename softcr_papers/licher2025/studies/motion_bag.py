"""The bag of a motion that two models made: the true one beside the one that stands for it."""

from pathlib import Path
from typing import Any

import numpy as np

from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.parameters import PARAMETERS
from softcr_models.rod_model.rows import interval_counts, row_poses
from softcr_runtime.bags.offline_bag import OfflineBag, status
from softcr_runtime.wire.messages import (
    pose_to_message,
    pose_with_covariance_to_message,
    pressures_to_message,
)
from softcr_runtime.wire.rod_clouds import rod_cloud_message


def write_motion_bag(
    directory: Path,
    rod: CosseratRod,
    parameters: np.ndarray,
    pressures: np.ndarray,
    truth: np.ndarray,
    model: np.ndarray,
    period: float,
    model_tips: np.ndarray | None = None,
) -> None:
    """Writes simulation/truth/... of the true motion and estimate/... of the model's.

    Args:
        directory: of the bag.
        rod: that the states of both belong to.
        parameters: (P,) of both.
        pressures: (T, m) [Pa].
        truth, model: (T, nx) states.
        period: between rows [s].
        model_tips: (T, 3) [m], base frame, where the model has an output of its own; None: the
            tips of its states.

    Raises:
        UserError: it cannot be written.
    """
    bag, names = OfflineBag(), rod.robot.actuator_names
    values = dict(zip(PARAMETERS, parameters.tolist(), strict=True))

    def shape(state: np.ndarray, stamp: int) -> tuple[Any, np.ndarray]:
        """A rod cloud and the (4, 4) pose of its tip [m]."""
        rows = row_poses(rod, state, parameters)
        counts = interval_counts(rod)
        places = np.concatenate((rows[:1], rows))
        cloud = rod_cloud_message(state, places, values, {}, stamp, counts=counts)
        return cloud, rod.tip_pose_from_rod_tip(rows[-1])

    for row, (levels, true, own) in enumerate(zip(pressures, truth, model, strict=True)):
        stamp = round(1e9 * (row + 1) * period)
        bag.add("pressure/state", stamp, pressures_to_message(levels, names, stamp))
        cloud, tip = shape(true, stamp)
        bag.add("simulation/truth/rod", stamp, cloud)
        bag.add("simulation/truth/tip/pose", stamp, pose_to_message(tip, stamp))
        cloud, tip = shape(own, stamp)
        if model_tips is not None:
            tip[:3, 3] = model_tips[row]
        bag.add("estimate/rod", stamp, cloud)
        pose = pose_with_covariance_to_message(tip, np.zeros((3, 3)), stamp)
        bag.add("estimate/tip/pose", stamp, pose)
    told = {"robot": rod.robot.model_dump(mode="json")}
    bag.add_statuses([status("simulator", rod.robot, told)])
    bag.write(directory)
