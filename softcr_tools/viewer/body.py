"""Parts of a rod's body as drawn: segments, connectors and payload as tubes, tendons as lines."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from softcr_models.robots.kinds import AnyRobot
from softcr_models.robots.robot import Robot
from softcr_models.robots.segments import Payload
from softcr_tools.viewer.shape import Shape

_CONNECTOR_SHARE = 0.8  # of the thinner neighbour's radius
_PAYLOAD_SHARE = 0.6  # of the last segment's radius: radius, and least half length


class Tube(NamedTuple):
    """A part of the body: poses along it, as of `Shape`, and its radius [m]."""

    positions: np.ndarray
    quaternions: np.ndarray
    radius: float
    rigid: bool = False


def parts_of(robot: AnyRobot | None, shape: Shape, radius: float) -> list[Tube]:
    """What a robot's body is drawn as; one tube with a radius [m] of what is not a rod."""
    if isinstance(robot, Robot):
        return tubes(robot, shape)
    return [Tube(shape.positions, shape.quaternions, radius)]


def most_parts(robot: AnyRobot | None) -> int:
    """As many parts as a robot's body can be drawn as: segments, connectors, a payload."""
    return 2 * len(robot.segments) if isinstance(robot, Robot) else 1


def tubes(robot: Robot, shape: Shape) -> list[Tube]:
    """Segments, connectors that have a length, and the payload, base to tip.

    A shape that does not tell its segments is one tube with the radius of the first.
    """
    radii = [0.5 * segment.outer_diameter for segment in robot.segments]
    if len(shape.counts) != len(radii):
        return [Tube(shape.positions, shape.quaternions, radii[0])]
    places = _places(shape.counts)
    parts = []
    for place, radius in zip(places, radii, strict=True):
        parts.append(Tube(shape.positions[place], shape.quaternions[place], radius))
    for (below, above), thinner in zip(pairwise(places), map(min, pairwise(radii)), strict=True):
        ends = [below.stop - 1, above.start]
        here, there = shape.positions[ends]
        if np.linalg.norm(there - here) > 1e-9:
            along = _towards(shape.quaternions[ends[0]], there - here)
            both = np.stack((along, along))
            parts.append(Tube(shape.positions[ends], both, _CONNECTOR_SHARE * thinner, rigid=True))
    if robot.payload is not None:
        parts.append(_payload(robot.payload, shape, radii[-1]))
    return parts


def _payload(payload: Payload, shape: Shape, radius: float) -> Tube:
    """A cylinder round its centre of mass, along the last segment's end from there: its size is
    nothing that a robot's file tells."""
    turn, centre = Rotation.from_quat(shape.quaternions[-1]), np.array(payload.centre_of_mass)
    half = max(abs(float(centre[2])), _PAYLOAD_SHARE * radius)
    ends = centre + half * np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])
    both = np.repeat(shape.quaternions[-1:], 2, axis=0)
    return Tube(shape.positions[-1] + turn.apply(ends), both, _PAYLOAD_SHARE * radius, rigid=True)


def tendon_lines(robot: Robot, shape: Shape) -> dict[str, np.ndarray]:
    """(k, 3) points along each tendon, by its name [m]; none of a shape without its segments."""
    if len(shape.counts) != len(robot.segments):
        return {}
    found: dict[str, list[np.ndarray]] = {tendon.name: [] for tendon in robot.tendons}
    for number, place in enumerate(_places(shape.counts)):
        begin, end = robot.segment_ends[number : number + 2].tolist()
        arcs = np.linspace(begin, end, shape.counts[number] + 1)
        offsets = robot.tendon_offsets(number, arcs)[:, :, 0]
        turns = Rotation.from_quat(shape.quaternions[place])
        reaches = zip(robot.tendons, robot.tendon_reaches.tolist(), strict=True)
        for i, (tendon, reach) in enumerate(reaches):
            if number <= reach:
                found[tendon.name].append(shape.positions[place] + turns.apply(offsets[:, i]))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _places(counts: tuple[int, ...]) -> list[slice]:
    """Of each segment's nodes among the points of a cloud, of which 0 is the base's other side."""
    ends = np.cumsum([1, *(count + 1 for count in counts)]).tolist()
    return [slice(*each) for each in pairwise(ends)]


def _towards(quaternion: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """(4,) the orientation nearest to one whose z axis has a direction (3,)."""
    turn = Rotation.from_quat(quaternion)
    z = turn.apply([0.0, 0.0, 1.0])
    wanted = direction / np.linalg.norm(direction)
    axis, cosine = np.cross(z, wanted), float(z @ wanted)
    size = float(np.linalg.norm(axis))
    if size < 1e-9:
        return quaternion
    return (Rotation.from_rotvec(np.arctan2(size, cosine) / size * axis) * turn).as_quat()
