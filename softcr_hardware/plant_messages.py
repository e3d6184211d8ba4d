"""What a simulated plant says on the hardware's topics, and the truth beside it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcr_hardware.plant import Measurement
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_runtime.messages import pose_to_message, pressures_to_message, wrench_to_message
from softcr_runtime.rod_clouds import rod_cloud_message

PLANT_TOPICS = (
    "mocap/tip/pose",
    "pressure/state",
    "force_torque/wrench",
    "simulation/truth/tip/pose",
    "simulation/truth/rod",
)


def plant_messages(
    rod: CosseratRod, measured: Measurement, chambers: Sequence[str]
) -> dict[str, Any]:
    """Messages by their topic of PLANT_TOPICS; without a tip pose there is none of it.

    Args:
        rod: of the plant.
        measured: with it.
        chambers: names of the m chambers.
    """
    stamp = measured.stamp
    messages = {
        "pressure/state": pressures_to_message(measured.pressures, chambers, stamp),
        "force_torque/wrench": wrench_to_message(measured.wrench, stamp),
        "simulation/truth/tip/pose": pose_to_message(measured.true_tip_pose, stamp),
        "simulation/truth/rod": _truth(rod, measured),
    }
    if measured.tip_pose is not None:
        pose = pose_to_message(measured.tip_pose, measured.tip_stamp)
        messages = {"mocap/tip/pose": pose, **messages}
    return messages


def _truth(rod: CosseratRod, measured: Measurement) -> Any:
    parameters = {
        "bending_compliance": rod.robot.bending_compliance,
        "tip_mass": rod.robot.tip_mass,
    }
    poses = np.concatenate((measured.node_poses[:1], measured.node_poses))
    return rod_cloud_message(measured.state, poses, parameters, {}, measured.stamp)
