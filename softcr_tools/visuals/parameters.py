"""What is estimated of a robot's model as numbers that programs plot."""

from array import array
from collections.abc import Mapping
from typing import Any

from softcr_runtime.wire.messages import header


def parameters_message(parameters: Mapping[str, tuple[float, float]], stamp: int) -> Any:
    """sensor_msgs/JointState: name, position = value, effort = standard deviation; stamp [ns]."""
    from sensor_msgs.msg import JointState

    return JointState(
        header=header(stamp, ""),
        name=list(parameters),
        position=array("d", [value for value, _ in parameters.values()]),
        effort=array("d", [deviation for _, deviation in parameters.values()]),
    )
