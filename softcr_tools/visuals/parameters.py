"""What is estimated of a robot's model as numbers that programs plot."""

from array import array
from collections.abc import Mapping
from typing import Any

from softcr_runtime.wire.messages import header
from softcr_tools.viewer.picture import Picture


def estimated_parameters(picture: Picture) -> dict[str, tuple[float, float]]:
    """Value and standard deviation by name, in the parameter's unit; NaN where none is known.

    Of an arm its sections' rest lengths [m].
    """
    lengths = {
        f"rest_length_{section}": (float(length), float("nan"))
        for section, length in enumerate(picture.rest_lengths, 1)
    }
    return {**picture.parameters, **lengths}


def parameters_message(parameters: Mapping[str, tuple[float, float]], stamp: int) -> Any:
    """sensor_msgs/JointState: name, position = value, effort = standard deviation; stamp [ns]."""
    from sensor_msgs.msg import JointState

    return JointState(
        header=header(stamp, ""),
        name=list(parameters),
        position=array("d", [value for value, _ in parameters.values()]),
        effort=array("d", [deviation for _, deviation in parameters.values()]),
    )
