"""What can be measured of a rod beside its inputs: one table, three numbers to a group.

A group is what one sensor says in one unit: the position of the tip, the force at the base. Bags,
CSV files, fits and the tables of their residuals all know a group by its name.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_models.model import TIP
from softcr_models.robots.parts import BaseWrenchSensor, TipPoseSensor
from softcr_models.robots.robot import Robot
from softcr_models.robots.rules import SENSORS
from softcr_models.rod.description import BASE_WRENCH, pose_sensors
from softcr_models.rod_model.rod_model import RodModel

POSITION = " position"
"""How the names of groups end that are positions; all other groups have other names."""
TIP_POSITION, TIP_ORIENTATION = f"tip{POSITION}", "tip orientation"
BASE_FORCE, BASE_MOMENT = "base force", "base moment"
_ROTATION_NOISE = 5e-3  # of a marker body of a few centimetres [rad]


class Group(NamedTuple):
    """Three numbers that one sensor measures.

    Attributes:
        name: unlike every other's.
        unit: SI. A group in rad is a rotation vector.
        output: of the model, in which it is seen.
        noise: standard deviation of each number of a sample, as the robot file has it [unit].
        columns: of a CSV file.
    """

    name: str
    unit: Literal["m", "rad", "N", "N m"]
    output: str
    noise: float
    columns: tuple[str, str, str]

    @property
    def fitted(self) -> bool:
        """Whether parameters are fitted to it. An orientation is compared alone: a body of markers
        is seldom aligned with the section that carries it."""
        return self.unit != "rad"

    @property
    def by_cameras(self) -> bool:
        """Whether cameras measure it, in the base frame."""
        return self.unit in ("m", "rad")

    def off(self, predicted: np.ndarray, measured: np.ndarray) -> np.ndarray:
        """(T, 3) predicted minus measured [unit]; of orientations the rotation between them."""
        if self.unit != "rad":
            return predicted - measured
        known = np.isfinite(measured).all(axis=1) & np.isfinite(predicted).all(axis=1)
        apart = np.full(measured.shape, np.nan)
        of_model, of_sensor = (Rotation.from_rotvec(x[known]) for x in (predicted, measured))
        apart[known] = (of_sensor.inv() * of_model).as_rotvec()
        return apart


def groups_of(robot: Robot) -> tuple[Group, ...]:
    """All groups of a robot: of its tip, of its base, and of each sensor of poses on its body."""
    own = {type(each): each for each in (*SENSORS, *robot.sensors)}
    tip, base = own[TipPoseSensor], own[BaseWrenchSensor]
    assert isinstance(tip, TipPoseSensor)
    assert isinstance(base, BaseWrenchSensor)
    return (
        Group(TIP_POSITION, "m", TIP, tip.noise, _columns("tip")),
        Group(
            TIP_ORIENTATION, "rad", TIP, _ROTATION_NOISE, ("tip_roll", "tip_pitch", "tip_yaw")
        ),
        *(
            Group(f"{name}{POSITION}", "m", name, each.noise, _columns(name))
            for name, each in pose_sensors(robot).items()
        ),
        Group(BASE_FORCE, "N", BASE_WRENCH, base.force_noise, _columns("force")),
        Group(BASE_MOMENT, "N m", BASE_WRENCH, base.moment_noise, _columns("moment")),
    )  # fmt: skip


def seen(
    model: RodModel, groups: Sequence[Group], states: np.ndarray, inputs: np.ndarray
) -> dict[str, np.ndarray]:
    """(B, 3) of each group, by name, of states (B, nx) under inputs (B, m) [Pa, N]."""
    outputs = tuple(dict.fromkeys(each.output for each in groups))
    values = model.observe(outputs, states, inputs, model.nominal_parameters[None])
    return {each.name: _part(each, values) for each in groups}


def known_mean(values: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Means over axes of what is not NaN; 0 where nothing is known: a camera may see two
    coordinates alone."""
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(axis=axes)
    mean: np.ndarray = total / np.maximum(known.sum(axis=axes), 1)
    return mean


def _part(group: Group, outputs: Mapping[str, np.ndarray]) -> np.ndarray:
    value = outputs[group.output]
    if group.unit == "m":
        return value[:, :, 3]
    if group.unit == "rad":
        vectors: np.ndarray = Rotation.from_matrix(value[:, :, :3]).as_rotvec()
        return vectors
    return value[:, :3] if group.unit == "N" else value[:, 3:]


def _columns(name: str) -> tuple[str, str, str]:
    return f"{name}_x", f"{name}_y", f"{name}_z"
