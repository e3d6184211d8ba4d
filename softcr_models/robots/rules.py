"""Rules between the fields of a rod's file; ValueError with one line where one is broken."""

from typing import TYPE_CHECKING, Any

from softcr_models.robots.parts import (
    BaseWrenchSensor,
    Chamber,
    PoseSensor,
    PressureSensor,
    RodSensor,
    RodTendon,
    Tendon,
    TipPoseSensor,
    check_names,
)
from softcr_models.robots.routing import farthest, segment_index
from softcr_models.rod.section import MAX_INPUTS, MAX_INTERVALS

if TYPE_CHECKING:
    from softcr_models.robots.robot import Robot

SENSORS: tuple[RodSensor, ...] = (
    PressureSensor(type="pressure", noise=0.0),
    BaseWrenchSensor(type="base_wrench", force_noise=0.02, moment_noise=5e-4),
    TipPoseSensor(type="tip_pose", noise=2e-4),
)
"""Of a robot whose file says nothing of sensors; without the pressure where there is no chamber."""

_TOLD_FROM_NOISE = 3.0  # a play of that many deviations of the readings
_RESERVED = ("tip", "shape", "base_wrench", "tendon_lengths")  # outputs that every rod has


def with_sensors(content: dict[str, Any]) -> dict[str, Any]:
    """The content of a file that says nothing of sensors, with those of a robot without chambers.

    Where there are chambers, or sensors, it is as it was.
    """
    actuators = content.get("actuators")
    if "sensors" in content or not isinstance(actuators, (list, tuple)):
        return content
    if any(_type_of(actuator) == "chamber" for actuator in actuators):
        return content
    return {**content, "sensors": SENSORS[1:]}


def _type_of(actuator: Any) -> Any:
    return actuator.get("type") if isinstance(actuator, dict) else getattr(actuator, "type", None)


def check_segments(robot: "Robot") -> None:
    """Names differ, the grid is not too fine, nothing is attached behind the last segment."""
    names, segments = robot.segment_names, robot.segments
    if len(set(names)) != len(names):
        raise ValueError(f"segments: names must differ, found {list(names)}")
    intervals = sum(segment.intervals or 1 for segment in segments)
    if intervals > MAX_INTERVALS:
        raise ValueError(
            f"segments: {intervals} intervals in all are not allowed: at most {MAX_INTERVALS}"
        )
    if segments[-1].connector is not None:
        raise ValueError(
            f"segments: {names[-1]}: the last one has no connector; what its end carries is the "
            "robot's payload"
        )


def check_actuators(robot: "Robot") -> None:
    """They run through segments that there are, leave material there and stay in the section."""
    check_names(robot.actuator_names)
    if len(robot.actuators) > MAX_INPUTS:
        raise ValueError(f"actuators: {len(robot.actuators)} are not allowed: at most {MAX_INPUTS}")
    for name, area in zip(robot.segment_names, robot.segment_areas.tolist(), strict=True):
        if area <= 0.0:
            where = f"segments: {name}: " if len(robot.segments) > 1 else ""
            raise ValueError(
                f"{where}the chambers' areas leave no material: their sum must be below the body's"
            )
    for actuator, (_, last) in zip(robot.actuators, robot.reaches, strict=True):
        if isinstance(actuator, Tendon):
            _check_tendon(robot, actuator, last)


def _check_tendon(robot: "Robot", tendon: Tendon, last: int) -> None:
    ends = robot.segment_ends.tolist()
    for k in range(last + 1):
        distance = farthest(tendon, ends[k], ends[k + 1], ends[last + 1])
        segment = robot.segments[k]
        if distance > segment.reach * (1.0 + 1e-9):
            what = "routing_radius" if segment.routing_radius else "outer radius"
            raise ValueError(
                f"actuators: {tendon.name} runs {distance:g} m from the centre line of "
                f"{robot.segment_names[k]}, beyond its {what} of {segment.reach:g} m; where discs "
                "hold tendons farther out, the segment's routing_radius says how far"
            )


def check_sensors(robot: "Robot") -> None:
    """Each kind as often as the actuators allow; poses have names and segments."""
    found = [sensor.type for sensor in robot.sensors if sensor.type != "pose"]
    needed = [sensor.type for sensor in (SENSORS if robot.chambers else SENSORS[1:])]
    optional = [str(each) for each in ("tension", "angle") if each in robot.quantities]
    optional += ["tendon_length"] if robot.tendons else []
    missing = set(needed) - set(found)
    if missing or len(set(found)) < len(found) or set(found) - {*needed, *optional}:
        also = f", {' and '.join(optional)} at most once" if optional else ""
        all_found = [sensor.type for sensor in robot.sensors]
        raise ValueError(
            f"sensors: must be {', '.join(needed)}, each once{also}, found {all_found}"
        )
    poses = [sensor for sensor in robot.sensors if isinstance(sensor, PoseSensor)]
    names = [pose.name for pose in poses]
    if len(set(names)) != len(names):
        raise ValueError(f"sensors: names must differ, found {names}")
    for pose in poses:
        if pose.name in _RESERVED:
            raise ValueError(f"sensors: {pose.name!r} is a name of every robot; take another one")
        segment_index(f"sensors: {pose.name}", pose.segment, robot.segment_names, -1)


def check_limits(robot: "Robot") -> None:
    """Limits and lags belong to actuators that there are."""
    chambers, tendons, motors = (
        each in robot.quantities for each in ("pressure", "tension", "angle")
    )
    needed = (
        ("pressure_limits", robot.given_pressure_limits, chambers, "chambers"),
        ("pressure_lag", robot.given_pressure_lag, chambers, "chambers"),
        ("tension_limits", robot.given_tension_limits, tendons, "tendons"),
        ("angle_limits", robot.given_angle_limits, motors, "motors"),
    )
    for field, given, there, actuators in needed:
        if there and given is None:
            raise ValueError(f"{field}: missing; a robot with {actuators} needs this field")
    for field, given, there, actuators in (
        *needed, ("tension_lag", robot.tension_lag, tendons, "tendons"),
        ("angle_lag", robot.angle_lag, motors, "motors"),
    ):  # fmt: skip
        if given is not None and not there:
            raise ValueError(f"{field}: not allowed: this robot has no {actuators}")


def pressed_to_nothing(robot: "Robot") -> str:
    """What to tell of a robot whose limits let its inputs press a segment to nothing, in a line;
    empty if they do not."""
    for k, segment in enumerate(robot.segments):
        force = 0.0
        for actuator, (first, last) in zip(robot.actuators, robot.reaches, strict=True):
            if not first <= k <= last:
                continue
            if isinstance(actuator, RodTendon):
                force += robot.tension_limits.maximum
            elif isinstance(actuator, Chamber):
                force += actuator.area * max(0.0, -robot.pressure_limits.minimum)
        least = 1.0 / segment.dilatation_compliance
        if force >= least:
            return (
                f"all inputs together may press segment {robot.segment_names[k]} with {force:.4g} "
                f"N, and {least:.4g} N press it to nothing (1 / dilatation_compliance): check the "
                "units of limits and compliance; a simulation stops where it comes to that"
            )
    return ""


def check_pressure_chain(robot: "Robot") -> None:
    """A chain is that of chambers, and its elements are what their sensors can tell."""
    chain = robot.pressure_chain
    if chain is None:
        return
    if robot.given_pressure_limits is None:
        raise ValueError("pressure_chain: not allowed: this robot has no chambers")
    if robot.tendons:
        raise ValueError("pressure_chain: not allowed: this robot has tendons")
    for name in ("curvature_stiffness", "neo_hookean"):
        if getattr(robot, name):
            raise ValueError(f"{name}: not allowed beside pressure_chain, whose filter finds one")
    limits = robot.given_pressure_limits
    noise = max(each.noise for each in robot.sensors if isinstance(each, PressureSensor))
    reach = 0.5 * (limits.maximum - limits.minimum)
    for radius in chain.hysteresis_radii:
        if radius < _TOLD_FROM_NOISE * noise:
            raise ValueError(
                f"pressure_chain: hysteresis_radii: {radius:g} Pa: no motion tells it from the "
                f"pressure sensor's noise of {noise:g} Pa; must be at least {_TOLD_FROM_NOISE:g} "
                "times that"
            )
        if radius >= reach:
            raise ValueError(
                f"pressure_chain: hysteresis_radii: {radius:g} Pa: such a stop never slides and "
                f"cannot be told from a gain; must be below {reach:g} Pa, half the range"
            )
    _check_chain_values(robot)


def _check_chain_values(robot: "Robot") -> None:
    """Values are of parameters that the elements have, and allowed ones."""
    chain = robot.pressure_chain
    assert chain is not None
    if not chain.values:
        return
    from softcr_models.chain.elements import elements_of  # numba, for who has values alone

    elements = elements_of(chain, len(robot.actuators))
    known = {parameter.name: parameter for _, part in elements for parameter in part}
    for name, value in chain.values:
        if name not in known:
            raise ValueError(
                f"pressure_chain: values: {name}: no parameter of the elements that are on; "
                f"allowed are {', '.join(known)}"
            )
        low, high, unit = known[name].low, known[name].high, known[name].unit
        if not low <= value <= high:
            told = "" if unit == "-" else f" {unit}"
            raise ValueError(
                f"pressure_chain: values: {name}: {value:g} is not allowed: must be from {low:g} "
                f"to {high:g}{told}"
            )
