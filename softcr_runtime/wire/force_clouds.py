"""Forces at points of a robot as point clouds, both ways; see `messages`."""

from typing import Any

import numpy as np

from softcr_runtime.blocks.values import PointForces
from softcr_runtime.wire.messages import (
    MessageError,
    check_finite,
    cloud_fields,
    cloud_message,
    cloud_values,
)

FORCE_FIELDS = (
    "x", "y", "z", "force_x", "force_y", "force_z", "moment_x", "moment_y", "moment_z",
)  # fmt: skip
"""Fields of a point, all float64, base frame: m, N, N m about the point."""


def forces_message(value: PointForces, stamp: int, frame: str = "base") -> Any:
    """sensor_msgs/PointCloud2 with one point for each place; stamp [ns]."""
    table = np.hstack((value.points, value.wrenches))[np.newaxis]
    return cloud_message(table, FORCE_FIELDS, stamp, frame)


def forces_from_message(message: Any, topic: str) -> PointForces:
    """The forces of a point cloud.

    Raises:
        MessageError: other fields or sizes, or a value that is not finite.
    """
    columns = cloud_fields(message, topic)
    if tuple(columns) != FORCE_FIELDS:
        raise MessageError(topic, f"fields {list(columns)} must be {list(FORCE_FIELDS)}")
    table = cloud_values(message, topic)
    if table.shape[0] != 1:
        raise MessageError(topic, f"height {table.shape[0]} must be 1")
    rows = table[0][:, list(columns.values())]
    check_finite(rows, FORCE_FIELDS, topic)
    return PointForces(rows[:, :3].astype(float), rows[:, 3:].astype(float))
