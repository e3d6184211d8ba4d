"""The arms of `cases` as the content of robot files, with the inputs that load them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oracles.cases import DISTAL, KPA, PROXIMAL, THROUGH, Chamber

HANGING = (np.pi, 0.0, 0.0)
COMMON = {
    "type": "rod", "tip_mass": 0.0, "tip_mass_fraction": 0.2, "sensor_to_base_cap": 0.0,
    "base_cap_length": 0.0, "tip_cap_length": 0.0, "base_orientation": (0.0, 0.0, 0.0),
    "gravity": 9.81, "gravity_subintervals": 4, "gravity_strain_point": 0.5,
}  # fmt: skip
PRESSURES = {
    "pressure_limits": {"minimum": 0.0, "maximum": 1e5, "maximum_rate": 2e6},
    "pressure_lag": {"gain": 11.0, "pole": 10.94},
}
TENSIONS = {"tension_limits": {"minimum": 0.0, "maximum": 20.0, "maximum_rate": 1e3}}


def tendon(name: str, angle: float, lever_arm: float, to: str, **more: Any) -> dict[str, Any]:
    """An actuator."""
    return {"type": "tendon", "name": name, "angle": angle, "lever_arm": lever_arm, "to": to} | more


def chambers(
    which: Sequence[Chamber], name: str, begin: str, end: str | None = None
) -> list[dict[str, Any]]:
    """Actuators `name`1, `name`2, ... from one segment to another."""
    return [
        {"type": "chamber", "name": f"{name}{i + 1}", "angle": each.angle, "area": each.area,
         "lever_arm": each.lever, "from": begin, "to": end or begin}
        for i, each in enumerate(which)
    ]  # fmt: skip


def two_segments(
    base_orientation: Sequence[float] = HANGING,
    loaded: bool = True,
    more: Sequence[Mapping[str, Any]] = (),
    relaxation: tuple[float, float] = (0.005, 0.005),
    intervals: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """The two-segment test arm: six chambers, then what is in `more`."""
    proximal = {
        "name": "proximal", "length": 0.10, "outer_diameter": 0.040, "inner_diameter": 0.010,
        "density": 1070.0, "bending_compliance": 40.0, "dilatation_compliance": 0.006,
        "shear_compliance": 0.02, "torsion_compliance": 35.0,
        "relaxation_times": (relaxation[0],) * 6,
    }  # fmt: skip
    distal = {
        "name": "distal", "length": 0.08, "outer_diameter": 0.030, "inner_diameter": 0.008,
        "density": 1070.0, "bending_compliance": 120.0, "dilatation_compliance": 0.011,
        "shear_compliance": 0.036, "torsion_compliance": 110.0,
        "relaxation_times": (relaxation[1],) * 6,
    }  # fmt: skip
    content: dict[str, Any] = COMMON | PRESSURES | {
        "name": "two", "base_orientation": tuple(base_orientation), "segments": [proximal, distal],
        "actuators": [*chambers(PROXIMAL, "p", "proximal"), *chambers(DISTAL, "d", "distal"),
                      *more],
    }  # fmt: skip
    if loaded:
        proximal["connector"] = {
            "length": 0.012, "mass": 0.030, "centre_of_mass": (0.0, 0.0, 0.006),
            "inertia": (1.6e-6, 1.6e-6, 2.4e-6),
        }  # fmt: skip
        content["payload"] = {
            "mass": 0.050, "centre_of_mass": (0.004, 0.0, 0.010), "inertia": (5e-6, 5e-6, 8e-6),
        }  # fmt: skip
    if any(each["type"] == "tendon" for each in more):
        content |= TENSIONS | {"tendon_model": "exact"}
    return with_intervals(content, intervals)


def with_intervals(content: dict[str, Any], counts: Sequence[int] | None) -> dict[str, Any]:
    """The same whose segments say how many intervals they get."""
    if counts is None:
        return content
    segments = [
        each | {"intervals": n} for each, n in zip(content["segments"], counts, strict=True)
    ]
    return content | {"segments": segments}


def solid(
    lengths: Sequence[float], radius: float, young: float, shear: float, correction: float,
    density: float, tendons: Sequence[Mapping[str, Any]], **more: Any,
) -> dict[str, Any]:  # fmt: skip
    """A solid round rod in pieces called a, b, ... with tendons that discs may hold outside it."""
    area, second_moment = np.pi * radius**2, np.pi / 4 * radius**4
    segments = [
        {
            "name": "abcdefgh"[index], "length": length, "outer_diameter": 2.0 * radius,
            "inner_diameter": 0.0, "density": density, "relaxation_times": (0.005,) * 6,
            "bending_compliance": 1.0 / (young * second_moment),
            "dilatation_compliance": 1.0 / (young * area),
            "shear_compliance": 1.0 / (correction * shear * area),
            "torsion_compliance": 0.5 / (shear * second_moment), "routing_radius": 0.02,
        }
        for index, length in enumerate(lengths)
    ]  # fmt: skip
    return COMMON | TENSIONS | {
        "name": "solid", "segments": segments, "actuators": [dict(each) for each in tendons],
        "tendon_model": "exact", "gravity": 0.0,
    } | more  # fmt: skip


def _soft_rod() -> dict[str, Any]:
    return solid((0.1,), 0.005, 1e6, 0.33e6, 5 / 6, 1000.0, [tendon("t", 0.0, 0.004, "a")])


def _till(helix: bool) -> dict[str, Any]:
    routing = {"routing": {"kind": "helical", "pitch": 0.5}} if helix else {}
    tendons = [tendon(f"t{i}", i * np.pi / 2, 0.01506, "a", **routing) for i in range(4)]
    # gravity pulls along x
    side = {"gravity": 9.81, "base_orientation": (0.0, np.pi / 2, 0.0)}
    return solid((0.5,), 0.001, 200e9, 80e9, 1.0, 8000.0, tendons, **side)


def _rao() -> dict[str, Any]:
    tendons = [
        tendon("t1", np.radians(90.0), 0.01, "a"),
        tendon("t2", np.radians(-30.0), 0.01, "b"),
    ]
    return solid((0.2, 0.2), 0.0007, 54e9, 54e9 / 2.6, 1.0, 6000.0, tendons)


_SIDE = [tendon("t1", 0.0, 0.009, "distal"), tendon("t2", np.pi / 2, 0.016, "proximal")]
_HELIX = tendon("t2", 0.0, 0.009, "distal", routing={"kind": "helical", "pitch": np.pi / 10})

FILES: dict[str, tuple[dict[str, Any], np.ndarray]] = {
    "A": (two_segments((0, 0, 0), False), KPA * np.array([30.0, 0, 0, 0, 0, 20])),
    "B": (two_segments(), KPA * np.array([40.0, 10, 0, 0, 35, 5])),
    "C": (two_segments((0, np.pi / 2, 0), False, _SIDE),
          np.array([0, 20 * KPA, 0, 0, 0, 0, 1.5, 2.0])),
    "D": (two_segments((0.3, 0, 0), True, [_SIDE[0], _HELIX]),
          np.array([10 * KPA, 20 * KPA, 0, 15 * KPA, 0, 0, 1.0, 1.2])),
    "E": (two_segments((0, 0, 0), False, chambers([THROUGH], "q", "proximal", "distal")),
          KPA * np.array([0.0, 0, 0, 10, 0, 0, 25])),
    "soft rod 0.5 N": (_soft_rod(), np.array([0.5])),
    "soft rod 2 N": (_soft_rod(), np.array([2.0])),
    "Till 15 N": (_till(False), np.array([15.0, 0, 0, 0])),
    "Till 5 and 3 N": (_till(False), np.array([5.0, 3, 0, 0])),
    "Till helix 15 N": (_till(True), np.array([15.0, 0, 0, 0])),
    "Till helix 5 and 3 N": (_till(True), np.array([5.0, 3, 0, 0])),
    "Rao": (_rao(), np.array([4.0, 2.0])),
}  # fmt: skip

# the area of the chamber through both segments of E was not subtracted: so the mass stays
for _segment, _holes in zip(FILES["E"][0]["segments"], (4.5e-4, 2.4e-4), strict=True):
    _area = np.pi / 4 * (_segment["outer_diameter"] ** 2 - _segment["inner_diameter"] ** 2) - _holes
    _segment["density"] *= _area / (_area - THROUGH.area)
