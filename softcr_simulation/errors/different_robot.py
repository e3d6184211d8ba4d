"""The robot that a plant really is: a robot file with the plant's errors in its numbers."""

from typing import Any

from scipy.spatial.transform import Rotation

from softcr_models.robots.robot import Robot
from softcr_simulation.errors.plant_errors import PlantErrors


def different_robot(robot: Robot, errors: PlantErrors) -> Robot:
    """A robot whose length, compliances, masses, levers and base differ as the errors say.

    Raises:
        UserError: a number is then not allowed.
    """
    scaled = robot.scaled(
        bending=errors.bending_factor,
        damping=errors.damping_factor,
        tip_mass=errors.tip_mass_factor,
    )
    segments = []
    for a, segment in enumerate(scaled.segments):
        # given explicitly, shear and torsion stay what they are
        shear, _, dilatation, _, _, torsion = scaled.segment_compliances[a].tolist()
        segments.append(
            segment.model_dump()
            | {
                "length": errors.length_factor * segment.length,
                "dilatation_compliance": errors.dilatation_factor * dilatation,
                "shear_compliance": shear,
                "torsion_compliance": torsion,
            }
        )
    changes: dict[str, Any] = {"segments": segments, "actuators": _actuators(scaled, errors)}
    if errors.tip_mass_fraction is not None:
        changes["tip_mass_fraction"] = errors.tip_mass_fraction
    if any(errors.base_tilt):
        straight = Rotation.from_euler("xyz", robot.base_orientation)
        tilted = straight * Rotation.from_euler("xyz", (*errors.base_tilt, 0.0))
        changes["base_orientation"] = tuple(tilted.as_euler("xyz").tolist())
    return scaled.replace(**changes)


def _actuators(robot: Robot, errors: PlantErrors) -> list[dict[str, Any]]:
    angles = errors.of_inputs("chamber_angle_error", robot).tolist()
    factors = errors.of_inputs("lever_factor", robot).tolist()
    made = []
    for actuator, angle, factor in zip(robot.actuators, angles, factors, strict=True):
        content = actuator.model_dump(by_alias=True)
        content["angle"] += angle
        content["lever_arm"] *= factor
        made.append(content)
    return made
