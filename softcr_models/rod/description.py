"""What a rod says of itself as a model: state, inputs, parameters, outputs. Shared by every model
whose states are a rod's: the exact one, the one on a GPU, the surrogate."""

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from softcr_models.errors import UserError
from softcr_models.model import (
    SENSOR_DEVIATION,
    TIP,
    Group,
    Inputs,
    Layout,
    OutputInfo,
    Parameter,
)
from softcr_models.robots.parts import PoseSensor, TendonLengthSensor
from softcr_models.robots.robot import Robot
from softcr_models.rod.parameters import PAYLOAD, STIFFENINGS, RodParameter
from softcr_models.rod.state import RodState

if TYPE_CHECKING:
    from softcr_models.rod.cosserat_rod import CosseratRod

SMALLEST = 0.5
"""Times its nominal value an estimated parameter is at least [-]."""

LARGEST_FORCE, FORCE_WALK = 20.0, 0.05
"""Of the estimated force at the tip: bound of each component [N], random walk [N/sqrt(s)]."""

SHAPE, BASE_WRENCH, TENDON_LENGTHS = "shape", "base_wrench", "tendon_lengths"


def rod_layout(rod: "CosseratRod") -> Layout:
    """The groups of Tables VI and VII of Licher et al. (2025), the same at all nodes."""
    places = RodState(np.arange(rod.state_size), rod.segments)
    velocities = places.velocities
    wrenches = np.vstack((places.wrenches, places.base_wrench[None]))
    groups = (
        Group("velocity", np.sort(velocities[:, :3].ravel()), "m/s"),
        Group("angular_velocity", np.sort(velocities[:, 3:].ravel()), "rad/s"),
        Group("force", np.sort(wrenches[:, :2].ravel()), "N"),
        Group("force_z", np.sort(wrenches[:, 2]), "N"),
        Group("torque", np.sort(wrenches[:, 3:].ravel()), "N m"),
    )
    return Layout(groups, _scale(rod))


_TENDON_DEVIATION = 0.05
"""Standard deviation of the logarithm of a tendon's gain where a filter begins [-]: how a tendon
lies, and so its lever, is less well known than a sensor's gain."""


def rod_inputs(robot: Robot) -> Inputs:
    """Gauge pressures, tensions and motor angles, in the robot's order.

    Raises:
        UserError: chambers, tendons and motors do not follow their commands with the same lag.
    """
    limits, lags = robot.input_limits, robot.input_lags
    first, *others = lags
    for other in others:
        if lags[other] != lags[first]:
            raise UserError(
                f"robot {robot.name}: {other}_lag: must be {first}_lag where a rod has both"
            )
    return Inputs(
        quantity="input" if others else first,
        names=robot.actuator_names,
        unit=", ".join(dict.fromkeys(robot.input_units)),
        low=np.array([each.minimum for each in limits]),
        high=np.array([each.maximum for each in limits]),
        rate=np.array([each.maximum_rate for each in limits]),
        lag=lags[first],
        gain_deviation=_TENDON_DEVIATION if lags.keys() == {"tension"} else SENSOR_DEVIATION,
    )


def rod_parameters(rod: "CosseratRod") -> tuple[Parameter, ...]:
    """What a filter can find of a rod; noises and deviations are the tuned ones."""
    values = zip(rod.parameters, rod.nominal_parameters.tolist(), strict=True)
    return tuple(_parameter(each, value, rod.robot) for each, value in values)


def _parameter(each: RodParameter, value: float, robot: Robot) -> Parameter:
    if each is PAYLOAD:
        return _payload(each, robot)
    if each in STIFFENINGS:
        return Parameter(
            each.name, each.unit, value, -1.0, max(1.0, 2.0 * value), "linear",
            deviation=each.deviation,
        )  # fmt: skip
    if each.sign == "any":
        return _force(each, value)
    return _factor(each, value) if value > 0.0 else _absent_mass(each, robot)


def _factor(each: RodParameter, value: float) -> Parameter:
    return Parameter(
        each.name, each.unit, value, SMALLEST * value, each.largest * value,
        noise=5e-4, deviation=each.deviation,
    )  # fmt: skip


def _force(each: RodParameter, value: float) -> Parameter:
    return Parameter(
        each.name, each.unit, value, -LARGEST_FORCE, LARGEST_FORCE, transform="linear",
        noise=FORCE_WALK, deviation=each.deviation,
    )  # fmt: skip


def _payload(each: RodParameter, robot: Robot) -> Parameter:
    """In parts of the robot's own mass; of its tip mass one half may have gone."""
    mass = sum(_masses(robot))
    return Parameter(
        each.name, each.unit, 0.0, -SMALLEST * robot.tip_mass, mass, transform="linear",
        noise=5e-4, deviation=each.deviation, scale=mass,
    )  # fmt: skip


def _absent_mass(each: RodParameter, robot: Robot) -> Parameter:
    """A tip mass that the robot's file does not have: in parts of the robot's own mass."""
    mass = sum(_masses(robot))
    return Parameter(
        each.name, each.unit, 0.0, 0.0, mass, transform="linear", noise=5e-4,
        deviation=each.deviation, scale=mass,
    )  # fmt: skip


def rod_outputs(rod: "CosseratRod") -> Mapping[str, OutputInfo]:
    """Tip pose, points along the centre line, what the base sensor reads, how long tendons are if
    there are any, and the poses that the robot's sensors along the body see, by their names."""
    poses = dict.fromkeys(pose_sensors(rod.robot), OutputInfo((3, 4), "m", "pose"))
    tendons = len(rod.robot.tendons)
    lengths = {TENDON_LENGTHS: OutputInfo((tendons,), "m", "vector")} if tendons else {}
    return {
        TIP: OutputInfo((3, 4), "m", "pose"),
        SHAPE: OutputInfo((rod.total_intervals + 1, 3), "m", "points"),
        BASE_WRENCH: OutputInfo((6,), "N, N m", "wrench", needs_inputs=True),
        **lengths,
        **poses,
    }


def pose_sensors(robot: Robot) -> dict[str, PoseSensor]:
    """Sensors of poses along the body, by their names."""
    return {each.name: each for each in robot.sensors if isinstance(each, PoseSensor)}


def has_tendon_lengths(robot: Robot) -> bool:
    """Whether the lengths of its tendons are measured."""
    return any(isinstance(each, TendonLengthSensor) for each in robot.sensors)


def _scale(rod: "CosseratRod") -> np.ndarray:
    """Typical magnitudes: half the range of one input, one length per 0.1 s at the tip.

    Velocities grow along the rod; wrenches are those of the actuation, and the least are those of
    the weight of the segment and of what hangs below it, over their length. Without weight, a tenth
    of the largest force of the actuation stands for it.
    """
    robot = rod.robot
    arc = _relative_arcs(rod)
    tip_speed = robot.length / 0.1
    velocities = np.empty((rod.total_intervals, 6))
    velocities[:, :3] = tip_speed * np.maximum(arc, 0.1)[:, None]
    velocities[:, 3:] = tip_speed / robot.length * np.maximum(arc, 0.1)[:, None]
    inputs = rod_inputs(robot)
    half = 0.5 * np.maximum(np.abs(inputs.low), np.abs(inputs.high))
    actuation = (half * np.abs(rod.row_actuation)).max(axis=2)
    weightless = 0.1 * float(actuation[:, :3].max())
    least = np.empty_like(actuation)
    for segment, (first, end) in enumerate(pairwise(rod.grid.first_row.tolist())):
        soft, rigid = _masses(robot, segment)
        weight = robot.gravity * soft + robot.gravity * rigid or weightless
        length = sum(each.length for each in robot.segments[segment:])
        least[first:end, :3], least[first:end, 3:] = weight, 0.3 * weight * length
    wrenches = np.maximum(actuation, least)
    return RodState.join(velocities, wrenches, wrenches[0], rod.segments).array


def _relative_arcs(rod: "CosseratRod") -> np.ndarray:
    """(N,) arc lengths of the nodes after the base, over the rod's length [-]."""
    length, counts = rod.robot.length, np.diff(rod.grid.first_row)
    starts, lengths = rod.robot.segment_ends, np.diff(rod.robot.segment_ends)
    parts = [
        start / length + own / length * np.linspace(0.0, 1.0, count)[1:]
        for start, own, count in zip(starts[:-1], lengths, counts, strict=True)
    ]
    return np.concatenate(parts)


def _masses(robot: Robot, first: int = 0) -> tuple[float, float]:
    """From a segment on, of the soft segments, and of what is rigid [kg]."""
    each_soft = zip(robot.segments, robot.segment_areas.tolist(), strict=True)
    soft = [each.density * area * each.length for each, area in each_soft]
    before = [each.connector.mass for each in robot.segments[:first] if each.connector is not None]
    return sum(soft[first:]), robot.tip_mass + robot.rigid_mass - sum(before)
