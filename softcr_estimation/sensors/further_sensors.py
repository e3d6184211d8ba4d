"""What an estimator hears beside the tip's pose: poses along the body, lengths of tendons, the
wrench at the base."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcr_models.model import Model
from softcr_models.robots.robot import Robot
from softcr_models.rod.description import (
    BASE_WRENCH,
    TENDON_LENGTHS,
    has_tendon_lengths,
    pose_sensors,
)
from softcr_runtime.blocks.tick_grid import linear
from softcr_runtime.blocks.values import Pose, blended_poses

FURTHER = ("body_poses", "tendon_lengths", "base_wrench")
"""What may be asked for, as settings `use_...`; in the order of `further_sensors`."""


@dataclass(frozen=True)
class FurtherSensor:
    """A topic whose values are measurements of a model's outputs.

    Attributes:
        topic: in the table of topics.
        outputs: of the model, in the order of the topic's values.
        blend: the value between two values.
        measured: a value of the topic by output.
    """

    topic: str
    outputs: tuple[str, ...]
    blend: Callable[[Any, Any, float], Any]
    measured: Callable[[Any], dict[str, np.ndarray]]


def further_sensors(
    robot: Any, model: Model, body_poses: bool, tendon_lengths: bool, base_wrench: bool
) -> tuple[FurtherSensor, ...]:
    """Those that are asked for, and that the robot has and the model tells.

    Args:
        robot: as loaded from its file.
        model: that an estimator predicts with.
        body_poses, tendon_lengths, base_wrench: whether each is asked for.
    """
    if not isinstance(robot, Robot):
        return ()
    names = tuple(pose_sensors(robot))
    found = []
    if body_poses and names and set(names) <= set(model.outputs):
        found.append(FurtherSensor(
            "mocap/body/poses", names, _blended_each,
            lambda poses: {n: p.matrix for n, p in zip(names, poses, strict=True)},
        ))  # fmt: skip
    if tendon_lengths and has_tendon_lengths(robot) and TENDON_LENGTHS in model.outputs:
        found.append(FurtherSensor(
            "tendon/lengths", (TENDON_LENGTHS,), linear, lambda lengths: {TENDON_LENGTHS: lengths}
        ))  # fmt: skip
    if base_wrench and BASE_WRENCH in model.outputs:
        found.append(FurtherSensor(
            "force_torque/wrench", (BASE_WRENCH,), linear, lambda wrench: {BASE_WRENCH: wrench}
        ))  # fmt: skip
    return tuple(found)


def _blended_each(older: tuple[Pose, ...], newer: tuple[Pose, ...], part: float) -> tuple:
    pairs = zip(older, newer, strict=True)
    return tuple(blended_poses(*pair, part) for pair in pairs)
