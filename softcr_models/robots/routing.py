"""Where actuators run through the segments of a rod, and what wrench they put on a section.

Arc length s counts soft length from the base; rigid connectors do not count. All vectors are those
of the section's frame, z along the rod; wrenches are linear first.
"""

import math
from collections.abc import Sequence

import numpy as np

from softcr_models.robots.parts import Chamber, Helical, RodActuator, Tapered, Tendon

Reach = tuple[int, int]
"""Indices of the first and the last segment that an actuator runs through."""


def reaches(actuators: Sequence[RodActuator], names: Sequence[str]) -> tuple[Reach, ...]:
    """Of each actuator, in their order.

    Args:
        actuators: of a robot.
        names: of its segments, base to tip.

    Raises:
        ValueError: one runs to a segment that is not there, or backwards; one line.
    """
    found = []
    for actuator in actuators:
        begin = actuator.from_segment if isinstance(actuator, Chamber) else None
        first = segment_index(f"actuators: {actuator.name}", begin, names, 0)
        last = segment_index(f"actuators: {actuator.name}", actuator.to_segment, names, -1)
        if first > last:
            raise ValueError(
                f"actuators: {actuator.name} runs from {names[first]} to {names[last]}, which is "
                "nearer to the base"
            )
        found.append((first, last))
    return tuple(found)


def segment_index(what: str, name: str | None, names: Sequence[str], absent: int) -> int:
    """Index of a segment by its name; `absent` stands for None and may count from the end.

    Raises:
        ValueError: no segment has this name; the line begins with `what`.
    """
    if name is None:
        return absent % len(names)
    if name not in names:
        raise ValueError(f"{what}: no segment is called {name!r}; there are {', '.join(names)}")
    return names.index(name)


def constant_column(actuator: RodActuator) -> np.ndarray:
    """(6,) wrench per input on a section that it runs through [N/Pa; N m/Pa] or [-; m].

    Zeros for a tendon whose wrench changes along a segment: `tendon_columns` tells it; and for
    motors, whose tendons' tensions depend on the rod.
    """
    x = actuator.lever_arm * math.cos(actuator.angle)
    y = actuator.lever_arm * math.sin(actuator.angle)
    # r x e_z = (y, -x, 0); a chamber pushes, a tendon pulls
    push = np.array([0.0, 0.0, 1.0, y, -x, 0.0])
    if isinstance(actuator, Chamber):
        return actuator.area * push
    return np.zeros(6) if varies(actuator) or actuator.quantity == "angle" else -push


def varies(actuator: RodActuator) -> bool:
    """Whether its wrench per input changes along a segment."""
    return isinstance(actuator, Tendon) and actuator.routing.kind != "straight"


def tendon_offset(tendon: Tendon, end: float, arc_lengths: np.ndarray) -> np.ndarray:
    """(J, 2, 3) place r in the section [m], and its derivative r_s by arc length [-].

    Args:
        tendon: any; beyond its end its routing goes on.
        end: arc length where it is fixed [m].
        arc_lengths: (J,) from the base [m].
    """
    s = np.asarray(arc_lengths, float)
    routing, distance = tendon.routing, np.full(len(s), tendon.lever_arm)
    angle, change, turn = np.full(len(s), tendon.angle), 0.0, 0.0
    if isinstance(routing, Helical):
        turn = 2.0 * math.pi / routing.pitch
        angle = angle + turn * s
    if isinstance(routing, Tapered):
        change = (routing.end_lever_arm - tendon.lever_arm) / end
        distance = distance + change * s
    outward = np.stack((np.cos(angle), np.sin(angle), np.zeros(len(s))), axis=-1)
    around = np.stack((-np.sin(angle), np.cos(angle), np.zeros(len(s))), axis=-1)
    slope = change * outward + turn * distance[:, None] * around
    return np.stack((distance[:, None] * outward, slope), axis=1)


def tendon_columns(offsets: np.ndarray) -> np.ndarray:
    """(..., 6) wrench per tension [-; m] of tendons at offsets (..., 2, 3) in a straight rod.

    -[e; r x e] with e = (e_z + r_s) / |e_z + r_s|: the tendon's direction where no strain is.
    """
    place, slope = offsets[..., 0, :], offsets[..., 1, :]
    along = slope + np.array([0.0, 0.0, 1.0])
    direction = along / np.linalg.norm(along, axis=-1, keepdims=True)
    return -np.concatenate((direction, np.cross(place, direction)), axis=-1)


def farthest(tendon: Tendon, begin: float, end: float, fixed: float) -> float:
    """Largest distance from the centre line between two arc lengths; `fixed` is its end [m]."""
    offsets = tendon_offset(tendon, fixed, np.array([begin, end]))
    return float(np.linalg.norm(offsets[:, 0], axis=-1).max())
