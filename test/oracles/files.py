"""Arms from the content of robot files, read here and not by softcr."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oracles.arms import Arm, Body, Connector, Route, Segment, Tendon, helical, straight, tapered
from oracles.cases import Chamber, annulus, gravity

Content = Mapping[str, Any]


def arm_of(content: Content, inputs: Sequence[float] | np.ndarray, **loads: Any) -> Arm:
    """The arm that a file with `segments` describes; a tip mass is not read.

    Args:
        content: of the file.
        inputs: gauge pressures [Pa] and tensions [N], in the order of the actuators.
        loads: `follower`, `dead_force`, `drag` of an Arm.
    """
    names = [each["name"] for each in content["segments"]]
    ends = np.cumsum([each["length"] for each in content["segments"]])
    chambers, tendons = [], []
    for value, each in zip(inputs, content["actuators"], strict=True):
        last = names.index(each.get("to", names[-1]))
        if each["type"] == "chamber":
            chamber = Chamber(each["area"], each["lever_arm"], each["angle"])
            chambers.append((names.index(each.get("from", names[0])), last, chamber, value))
        else:
            tendons.append(Tendon(value, _route(each, ends[last]), last))
    segments = []
    for index, each in enumerate(content["segments"]):
        inside = [(c, value) for first, last, c, value in chambers if first <= index <= last]
        segments.append(_segment(each, inside))
    payload = content.get("payload")
    return Arm(
        tuple(segments), tuple(tendons), content.get("tendon_model") == "exact",
        _body(payload, (0, 0, 0)) if payload else Body(),
        content["gravity"] / 9.81 * gravity(*content["base_orientation"]), **loads,
    )  # fmt: skip


def _segment(content: Content, inside: list[tuple[Chamber, float]]) -> Segment:
    outer, inner = content["outer_diameter"], content["inner_diameter"]
    holes = sum(chamber.area for chamber, _ in inside)
    density, rotary = annulus(outer, inner, content["density"], holes)
    bending = np.broadcast_to(content["bending_compliance"], 2)
    compliance = np.array(
        [content["shear_compliance"], content["shear_compliance"], content["dilatation_compliance"],
         *bending, content["torsion_compliance"]]
    )  # fmt: skip
    wrench = sum((value * chamber.column() for chamber, value in inside), np.zeros(6))
    return Segment(
        content["length"], compliance, np.array(content["relaxation_times"]), density, rotary,
        wrench, _connector(content["connector"]) if "connector" in content else Connector(),
    )  # fmt: skip


def _connector(content: Content) -> Connector:
    translation = content.get("translation", (0.0, 0.0, content["length"]))
    body = _body(content, 0.5 * np.array(translation))
    return Connector(tuple(translation), tuple(content.get("rotation", (0, 0, 0))), body)


def _body(content: Content, centre: Any) -> Body:
    centre = tuple(content.get("centre_of_mass", centre))
    return Body(content["mass"], centre, tuple(content.get("inertia", (0, 0, 0))))


def _route(content: Content, end: float) -> Route:
    radius, angle = content["lever_arm"], content["angle"]
    routing = content.get("routing", {"kind": "straight"})
    if routing["kind"] == "helical":
        return helical(radius, 2.0 * np.pi / routing["pitch"], angle)
    if routing["kind"] == "tapered":
        return tapered(radius, routing["end_lever_arm"], end, angle)
    return straight(radius, angle)
