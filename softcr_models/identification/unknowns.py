"""What is not known of an arm that was recorded, each with how far off a first guess usually is.

The robot's own numbers are among it, and how the recording was made: what of an input acts, where
the cameras have the base, where on the body the markers sit. All unknowns are zero at the first
guess.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_models.errors import UserError
from softcr_models.files.yaml_files import validated
from softcr_models.identification.identifiable import content_of
from softcr_models.identification.measured_groups import POSITION, Group
from softcr_models.robots.parts import Motor, Tapered
from softcr_models.robots.robot import Robot
from softcr_models.rod.description import pose_sensors, rod_inputs

FACTOR = "factor"
"""Unit of an unknown that is the logarithm of a factor."""

OFFSETS_SHARE = 0.05
"""Of an actuator's range: how far off the zero of a reading usually is, or friction holds [-]."""

_OWN = 0.3  # of the friction that all tendons share: how far one's differs [-]


_ALIKE = 0.95  # correlation of two unknowns that are hardly told apart [-]


class Unknown(NamedTuple):
    """One number that is looked for.

    Attributes:
        name: unlike every other's.
        unit: SI, or FACTOR.
        deviation: standard deviation of a first guess [unit; of a factor its logarithm's].
        guess: what a factor multiplies, with `of` its unit; 1 of what is in the robot file.
        of: SI unit; empty for a factor alone.
    """

    name: str
    unit: str
    deviation: float
    guess: float = 1.0
    of: str = ""

    def told(self, value: float) -> float:
        """The factor of a logarithm, times its guess; any other value as it is."""
        return self.guess * float(np.exp(value)) if self.unit == FACTOR else float(value)


@dataclass(frozen=True, eq=False)
class Fit:
    """What was found of unknowns.

    Attributes:
        unknowns: (P,) that were looked for.
        values: by name.
        covariance: (P, P) of the values, priors and estimated noises taken as true.
        noise: by name of group, estimated: root mean square of a number [its unit].
    """

    unknowns: tuple[Unknown, ...]
    values: Mapping[str, float]
    covariance: np.ndarray
    noise: Mapping[str, float]

    @property
    def deviations(self) -> np.ndarray:
        """(P,) standard deviations."""
        deviations: np.ndarray = np.sqrt(self.covariance.diagonal())
        return deviations

    @property
    def told(self) -> np.ndarray:
        """(P,) the share of each prior's variance that the recording took away; 0: nothing."""
        priors = np.array([each.deviation for each in self.unknowns])
        return 1.0 - (self.deviations / priors) ** 2

    @property
    def alike(self) -> tuple[tuple[str, str, float], ...]:
        """Pairs of unknowns that the recording hardly tells apart, with their correlation."""
        found = self.covariance / np.outer(self.deviations, self.deviations)
        names = [each.name for each in self.unknowns]
        pairs = zip(*np.nonzero(np.abs(np.triu(found, 1)) > _ALIKE), strict=True)
        return tuple((names[i], names[k], float(found[i, k])) for i, k in pairs)


@dataclass(frozen=True, eq=False)
class Recorded:
    """A robot, and how it was recorded.

    Attributes:
        robot: that moved.
        gains, offsets: (m,) an input acts as gain * (reading - offset), a tension never below zero
            [-; Pa, N, rad].
        position, rotation: (3,) place and rotation vector of the robot's base in the frame of the
            recorded positions [m, rad].
        scale: of the recorded positions [-].
    """

    robot: Robot
    gains: np.ndarray
    offsets: np.ndarray
    position: np.ndarray
    rotation: np.ndarray
    scale: float = 1.0

    def acting(self, inputs: np.ndarray) -> np.ndarray:
        """(T, m) inputs that act, of readings (T, m) [Pa, N]."""
        acting = self.gains * (inputs - self.offsets)
        pulls = [each == "tension" for each in self.robot.quantities]
        return np.where(pulls, np.maximum(acting, 0.0), acting)

    def as_recorded(self, group: Group, values: np.ndarray) -> np.ndarray:
        """(T, 3) of a group as it is recorded, of values in the robot's base frame."""
        return self.placed(values) if group.unit == "m" else values

    def placed(self, positions: np.ndarray) -> np.ndarray:
        """(T, 3) positions in the frame of the recording, of those in the base frame [m]."""
        turned: np.ndarray = positions @ Rotation.from_rotvec(self.rotation).as_matrix().T
        return self.position + self.scale * turned

    def in_base_frame(self, positions: np.ndarray) -> np.ndarray:
        """(T, 3) recorded positions in the base frame [m]."""
        away = (positions - self.position) / self.scale
        turned: np.ndarray = away @ Rotation.from_rotvec(self.rotation).as_matrix()
        return turned


def refuse_unknown(families: Sequence[str], known: Collection[str]) -> None:
    """Raises UserError where a name is not that of a known family."""
    for name in families:
        if name not in known:
            raise UserError(f"{name}: not to be found; allowed are {', '.join(known)}")


def unknowns_of(
    robot: Robot,
    families: Sequence[str],
    groups: Sequence[Group],
    known: Mapping[str, "Make"] | None = None,
) -> tuple[Unknown, ...]:
    """The unknowns of some families.

    Args:
        robot: the first guess.
        families: names of those that are known.
        groups: that were recorded; only the markers among them have unknown places.
        known: families by name; None: FAMILIES.

    Raises:
        UserError: there is no such family.
    """
    known = FAMILIES if known is None else known
    refuse_unknown(families, known)
    return tuple(each for name in known if name in families for each in known[name](robot, groups))


def recorded_as(robot: Robot, values: Mapping[str, float]) -> Recorded:
    """A robot and its recording at values of unknowns, by name; absent ones are zero.

    Raises:
        UserError: a robot that cannot be.
    """
    count = len(robot.actuators)

    def own(pattern: str) -> np.ndarray:
        return np.array([values.get(pattern.format(k + 1), 0.0) for k in range(count)])

    def of_axes(pattern: str) -> np.ndarray:
        return np.array([values.get(pattern.format(axis), 0.0) for axis in "xyz"])

    gains = np.exp(values.get("gain", 0.0) + own("gain_{}"))
    turned = [each == "angle" for each in robot.quantities]  # the spool of a motor has its gain
    return Recorded(
        _changed(robot, values),
        np.where(turned, 1.0, gains),
        values.get("offset", 0.0) + own("offset_{}"),
        of_axes("base_{}"),
        of_axes("base_turn_{}"),
        float(np.exp(values.get("scale", 0.0))),
    )


def _changed(robot: Robot, values: Mapping[str, float]) -> Robot:
    content = content_of(robot)
    segments, lengths = content["segments"], np.array([each.length for each in robot.segments])
    middles = (np.cumsum(lengths) - 0.5 * lengths) / lengths.sum()
    taper, stiffness = values.get("taper", 0.0), values.get("stiffness", 0.0)
    for number, (segment, middle) in enumerate(zip(segments, middles, strict=True), 1):
        own = values.get(f"stiffness_{number}", 0.0)
        softer = float(np.exp(-stiffness - own - taper * (middle - 0.5)))
        for name in ("bending", "dilatation", "shear", "torsion"):
            place, value = f"{name}_compliance", segment.get(f"{name}_compliance")
            if isinstance(value, list):
                segment[place] = [softer * each for each in value]
            elif value is not None:
                segment[place] = softer * value
        segment["dilatation_compliance"] *= float(np.exp(-values.get("axial_stiffness", 0.0)))
        segment["density"] *= float(np.exp(values.get("density", 0.0)))
        if segment.get("connector"):
            heavier = float(np.exp(values.get(f"connector_{number}", 0.0)))
            connector = segment["connector"]
            connector["mass"] *= heavier
            connector["inertia"] = [heavier * each for each in connector["inertia"]]
        slower = values.get("relaxation", 0.0) + values.get(f"relaxation_{number}", 0.0)
        segment["relaxation_times"] = [
            float(np.exp(slower)) * each for each in segment["relaxation_times"]
        ]
    turned = Rotation.from_rotvec([-values.get(f"gravity_turn_{axis}", 0.0) for axis in "xyz"])
    if turned.magnitude():
        to_world = Rotation.from_euler("xyz", robot.base_orientation) * turned
        content["base_orientation"] = to_world.as_euler("xyz").tolist()
    content["curvature_stiffness"] = robot.curvature_stiffness + values.get("stiffening", 0.0)
    content["neo_hookean"] = robot.neo_hookean + values.get("neo_hookean", 0.0)
    content["tip_mass"] = max(0.0, content["tip_mass"] + values.get("tip_mass", 0.0))
    farther, ending = (
        float(np.exp(values.get(name, 0.0))) for name in ("lever_arms", "end_lever_arms")
    )
    for number, actuator in enumerate(content["actuators"], 1):
        actuator["lever_arm"] *= farther
        actuator["angle"] += values.get(f"angle_{number}", 0.0)
        if actuator["type"] == "motor":
            for name in ("stiffness", "pretension"):
                actuator[name] *= float(np.exp(values.get(f"tendon_{name}", 0.0)))
            gain = values.get("gain", 0.0) + values.get(f"gain_{number}", 0.0)
            actuator["spool_radius"] *= float(np.exp(gain))
        if "end_lever_arm" in actuator.get("routing", {}):
            actuator["routing"]["end_lever_arm"] *= farther * ending
    for sensor in content["sensors"]:
        if sensor["type"] == "pose":
            moved = [values.get(f"{sensor['name']}_{axis}", 0.0) for axis in "xyz"]
            sensor["offset"] = [a + b for a, b in zip(sensor["offset"], moved, strict=True)]
    return validated(Robot, content, f"robot {robot.name}")


Make = Callable[[Robot, Sequence[Group]], list[Unknown]]


def _one(name: str, unit: str, deviation: float) -> Make:
    return lambda robot, groups: [Unknown(name, unit, deviation)]


def _tip_mass(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    return [Unknown("tip_mass", "kg", max(0.3 * robot.tip_mass, 2e-3))]


def _lever_arms(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    tapered = any(isinstance(getattr(each, "routing", None), Tapered) for each in robot.actuators)
    ends = [Unknown("end_lever_arms", FACTOR, 0.3)] if tapered else []
    return [Unknown("lever_arms", FACTOR, 0.1), *ends]


def _segments(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    count = len(robot.segments)
    own = [Unknown(f"stiffness_{number + 1}", FACTOR, 0.3) for number in range(count)]
    return [*(own if count > 1 else []), Unknown("axial_stiffness", FACTOR, 0.7)]


def _connectors(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    return [
        Unknown(f"connector_{number}", FACTOR, 0.3)
        for number, each in enumerate(robot.segments, 1)
        if each.connector is not None and each.connector.mass
    ]


def _tendons(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    if not any(isinstance(each, Motor) for each in robot.actuators):
        return []
    return [Unknown(f"tendon_{name}", FACTOR, 0.7) for name in ("stiffness", "pretension")]


def _directions(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    return [Unknown(f"angle_{k + 1}", "rad", 0.1) for k in range(len(robot.actuators))]


def _gains(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    count = len(robot.actuators)
    if count == 1:
        return [Unknown("gain_1", FACTOR, 0.15)]
    own = [Unknown(f"gain_{k + 1}", FACTOR, 0.05) for k in range(count)]
    return [Unknown("gain", FACTOR, 0.15), *own]


def _offsets(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    limits = rod_inputs(robot)
    spans = OFFSETS_SHARE * (np.asarray(limits.high) - limits.low)
    units = robot.input_units
    shared = [Unknown("offset", "N", float(spans[0]))] if set(units) == {"N"} else []
    share = _OWN if shared else 1.0
    return [*shared] + [
        Unknown(f"offset_{k + 1}", unit, share * float(span))
        for k, (unit, span) in enumerate(zip(units, spans, strict=True))
    ]


def _registration(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    places = [Unknown(f"base_{axis}", "m", 5e-3) for axis in "xyz"]
    return [*places, *(Unknown(f"base_turn_{axis}", "rad", 0.05) for axis in "xyz")]


def _gravity(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    """About the two axes of the base that are least along gravity."""
    if not robot.gravity:
        return []
    upwards = Rotation.from_euler("xyz", robot.base_orientation).inv().apply((0.0, 0.0, 1.0))
    across = sorted(np.argsort(np.abs(upwards))[:2].tolist())
    return [Unknown(f"gravity_turn_{'xyz'[axis]}", "rad", 0.05) for axis in across]


def _markers(robot: Robot, groups: Sequence[Group]) -> list[Unknown]:
    recorded = [each.name.removesuffix(POSITION) for each in groups]
    names = [name for name in pose_sensors(robot) if name in recorded]
    return [Unknown(f"{name}_{axis}", "m", 5e-3) for name in names for axis in "xyz"]


FAMILIES: Mapping[str, Make] = {
    "stiffness": _one("stiffness", FACTOR, 0.5),
    "taper": _one("taper", FACTOR, 0.5),
    "segments": _segments,
    "stiffening": _one("stiffening", "-", 0.2),
    "neo_hookean": _one("neo_hookean", "-", 0.3),
    "density": _one("density", FACTOR, 0.2),
    "tip_mass": _tip_mass,
    "connectors": _connectors,
    "lever_arms": _lever_arms,
    "directions": _directions,
    "tendons": _tendons,
    "gains": _gains,
    "offsets": _offsets,
    "registration": _registration,
    "gravity": _gravity,
    "markers": _markers,
}
"""Name -> what is unknown. `stiffness` of the whole rod, `taper` its logarithm's change from base
to tip, `segments` each one's own, and along the rod's axis, `stiffening` the relative change of the
bending compliance at a curvature of 15/m, masses of `connectors`, `directions` in which actuators
lie, stiffness and pretension of the `tendons` of motors, `gains` and `offsets` of the actuators,
what they share and each one's own, `registration` of the base in the frame of the cameras,
`gravity` by how much its direction is turned in the frame of the base, `markers` where the sensors
of type pose sit."""


def in_words(unknown: Unknown, value: float, deviation: float) -> str:
    """Value and standard deviation, for the eyes of a person."""
    if unknown.of:
        return f"{unknown.told(value):.4g} {unknown.of} +- {100 * deviation:.2g} %"
    if unknown.unit == FACTOR:
        return f"x {np.exp(value):.4g} +- {100 * deviation:.2g} %"
    shown: Any = {"m": (1e3, "mm"), "kg": (1e3, "g")}.get(unknown.unit, (1.0, unknown.unit))
    factor, unit = shown
    return f"{factor * value:.3g} +- {factor * deviation:.2g} {unit}"
