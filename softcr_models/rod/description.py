"""What a rod says of itself as a model: state, inputs, parameters, outputs. Shared by every model
whose states are a rod's: the exact one, the one on a GPU, the surrogate."""

from collections.abc import Mapping

import numpy as np

from softcr_models.model import TIP, Group, Inputs, Layout, OutputInfo, Parameter
from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.parameters import ROD_PARAMETERS
from softcr_models.rod.state import RodState

PARAMETER_RANGE = 2.0
"""An estimated parameter stays within nominal / range and nominal * range [-]."""

SHAPE, BASE_WRENCH = "shape", "base_wrench"


def rod_layout(rod: CosseratRod) -> Layout:
    """The groups of Tables VI and VII of Licher et al. (2025), the same at all nodes."""
    places = RodState(np.arange(rod.state_size))
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


def rod_inputs(robot: Robot) -> Inputs:
    """The chambers' gauge pressures."""
    limits, count = robot.pressure_limits, len(robot.chambers)
    return Inputs(
        quantity="pressure",
        names=robot.chamber_names,
        unit="Pa",
        low=np.full(count, limits.minimum),
        high=np.full(count, limits.maximum),
        rate=np.full(count, limits.maximum_rate),
        lag=robot.pressure_lag,
    )


def rod_parameters(rod: CosseratRod) -> tuple[Parameter, ...]:
    """What a filter can find of a rod; noises and deviations are the tuned ones."""
    return tuple(
        Parameter(
            each.name, each.unit, value, value / PARAMETER_RANGE, value * PARAMETER_RANGE,
            noise=5e-4, deviation=each.deviation,
        )
        for each, value in zip(ROD_PARAMETERS, rod.nominal_parameters.tolist(), strict=True)
    )  # fmt: skip


def rod_outputs(rod: CosseratRod) -> Mapping[str, OutputInfo]:
    """Tip pose, points along the centre line, and what the base sensor reads."""
    return {
        TIP: OutputInfo((3, 4), "m", "pose"),
        SHAPE: OutputInfo((rod.intervals + 1, 3), "m", "points"),
        BASE_WRENCH: OutputInfo((6,), "N, N m", "wrench", needs_inputs=True),
    }


def _scale(rod: CosseratRod) -> np.ndarray:
    """Typical magnitudes: half the pressure range in one chamber, one length per 0.1 s at the tip.

    Velocities grow along the rod; wrenches are those of the actuation, with weights as the least.
    """
    robot = rod.robot
    arc = np.linspace(0.0, 1.0, rod.intervals + 1)[1:]
    tip_speed = robot.length / 0.1
    velocities = np.empty((rod.intervals, 6))
    velocities[:, :3] = tip_speed * np.maximum(arc, 0.1)[:, None]
    velocities[:, 3:] = tip_speed / robot.length * np.maximum(arc, 0.1)[:, None]
    pressure = 0.5 * robot.pressure_limits.maximum
    actuation = pressure * np.abs(robot.actuation_matrix).max(axis=1)
    weight = robot.gravity * (robot.density * robot.cross_section_area * robot.length)
    weight += robot.gravity * robot.tip_mass
    least = np.array([weight, weight, weight, *(3 * (0.3 * weight * robot.length,))])
    wrench = np.maximum(actuation, least)
    wrenches = np.broadcast_to(wrench, (rod.intervals + 1, 6))
    return RodState.join(velocities, wrenches, wrench).array
