"""What the value of each topic must be, before anybody gets it: a NaN, a wrong length, something
that no message can hold. Values from messages are checked by their decoders."""

from typing import Any

import numpy as np

from softcr_runtime.blocks.command_packets import CommandPacket
from softcr_runtime.blocks.values import (
    PointForces,
    Pose,
    ReferenceRows,
    StateEstimate,
    TipEstimate,
)
from softcr_runtime.wire.codecs import Expected
from softcr_runtime.wire.topics import ACTUATOR_TOPICS, carries_packets

_WRENCHES = ("force_torque/wrench", "simulation/truth/contact/wrench")
_KINDS: dict[str, type] = {
    "mocap/tip/pose": Pose,
    "simulation/truth/tip/pose": Pose,
    "estimate/rod": StateEstimate,
    "estimate/state": StateEstimate,
    "simulation/truth/rod": StateEstimate,
    "simulation/truth/state": StateEstimate,
    "simulation/truth/loads": PointForces,
    "simulation/truth/contact/points": PointForces,
    "estimate/tip/pose": TipEstimate,
    "reference/rod": ReferenceRows,
    "reference/output": ReferenceRows,
}


def check_value(topic: str, value: Any, expected: Expected) -> None:
    """Refuse a value that a topic cannot carry.

    Args:
        topic: name in the table of topics; of others anything goes.
        value: of an output.
        expected: what the block's messages are about.

    Raises:
        TypeError, ValueError: one line with the topic, what was found and what is allowed.
    """
    if topic in ACTUATOR_TOPICS and not carries_packets(topic):
        # readings of positions have forces beside them
        for each in value if isinstance(value, tuple) else (value,):
            _check_array(topic, each, (len(expected.actuators),))
    elif topic in _WRENCHES:
        _check_array(topic, value, (6,))
    elif topic == "tendon/lengths":
        _check_array(topic, value, (len(expected.tendons),))
    elif topic == "mocap/body/poses":
        if not (isinstance(value, tuple) and len(value) == expected.bodies):
            raise TypeError(f"{topic} must be a tuple of {expected.bodies} poses")
        for pose in value:
            check_value("mocap/tip/pose", pose, expected)
    elif kind := CommandPacket if topic in ACTUATOR_TOPICS else _KINDS.get(topic):
        if not isinstance(value, kind):
            raise TypeError(f"{topic} is a {type(value).__name__}, must be a {kind.__name__}")
        for name, part, shape in _parts(value, len(expected.actuators)):
            _check_array(f"{topic} {name}", part, shape)


def _parts(value: Any, actuators: int) -> tuple[tuple[str, Any, tuple[int, ...]], ...]:
    if isinstance(value, Pose):
        return ("position", value.position, (3,)), ("quaternion", value.quaternion, (4,))
    if isinstance(value, CommandPacket):
        return (("commands", value.commands, (len(value.due), actuators)),)
    if isinstance(value, StateEstimate):
        state = "state", value.state, np.shape(value.state)
        return (state,) if value.inputs is None else (state, ("inputs", value.inputs, (actuators,)))
    if isinstance(value, PointForces):
        count = np.shape(value.points)[:1]
        return ("points", value.points, (*count, 3)), ("wrenches", value.wrenches, (*count, 6))
    if isinstance(value, TipEstimate):
        return (("covariance", value.position_covariance, (3, 3)),)
    if isinstance(value, ReferenceRows):
        rows = np.shape(value.tip_positions)[:1]
        tips = "tip positions", value.tip_positions, (*rows, 3)
        told = [tips]
        if value.tip_orientations is not None:
            asked = np.nan_to_num(value.tip_orientations, posinf=np.inf, neginf=-np.inf)
            told.append(("tip orientations", asked, (*rows, 4)))
        if value.shift is not None:
            told.append(("shift", value.shift, (*rows, 3)))
        return tuple(told)
    return ()


def _check_array(name: str, value: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(value, np.ndarray):
        raise TypeError(f"{name} is {type(value).__name__}, must be an array of shape {shape}")
    if value.shape != shape:
        raise ValueError(f"{name} has shape {value.shape}, must be {shape}")
    if value.dtype.kind not in "fiu" or not np.isfinite(value).all():
        raise ValueError(f"{name} = {_short(value)} must be finite")


def _short(value: np.ndarray) -> str:
    """Few numbers as they are; of many, where the first bad one is."""
    if value.size <= 12 or value.dtype.kind not in "fiu":
        return str(value.tolist())
    first = int(np.argmin(np.isfinite(value.ravel())))
    return f"an array whose element {first} is {value.ravel()[first]}"
