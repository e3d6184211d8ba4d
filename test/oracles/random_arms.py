"""Arms and states with a part of everything, drawn at random."""

from typing import Any

import numpy as np

from oracles.arms import Arm
from oracles.dynamics import Grid, State
from oracles.files import arm_of


def random_file(seed: int, count: int, exact: bool = True) -> dict[str, Any]:
    """The robot file of an arm of `count` segments.

    They are unequal in everything; connectors turn and shift and have masses off the axis; there
    are chambers in each segment, tendons of every kind, a payload, gravity from the side.
    """
    random = np.random.default_rng(seed)

    def around(value: float) -> float:
        return float(value * random.uniform(0.8, 1.2))

    def noise(size: float) -> list[float]:
        return [float(x) for x in size * random.normal(size=3)]

    segments: list[dict[str, Any]] = []
    actuators: list[dict[str, Any]] = []
    for index in range(count):
        name = f"part_{index + 1}"
        segments.append({
            "name": name, "length": around(0.09), "outer_diameter": around(0.036),
            "inner_diameter": around(0.009), "density": around(1070.0),
            "bending_compliance": [around(60.0), around(60.0)],
            "dilatation_compliance": around(0.008), "shear_compliance": around(0.025),
            "torsion_compliance": around(60.0),
            "relaxation_times": [around(0.004) for _ in range(6)],
        })  # fmt: skip
        if index + 1 < count:
            segments[-1]["connector"] = {
                "mass": around(0.03), "inertia": [2e-6, 3e-6, 4e-6],
                "centre_of_mass": noise(0.004), "rotation": noise(0.3),
                "translation": [*noise(0.003)[:2], around(0.012)],
            }  # fmt: skip
            segments[-1]["connector"]["length"] = segments[-1]["connector"]["translation"][2]
        for number in range(2):
            actuators.append({
                "type": "chamber", "name": f"p{index}{number}", "area": 6e-5, "lever_arm": 0.012,
                "angle": around(2.0 + 3.0 * number), "from": name, "to": name,
            })  # fmt: skip
    second = f"part_{min(2, count)}"
    tendon = {"type": "tendon", "lever_arm": 0.009}
    actuators += [
        {"type": "chamber", "name": "through", "angle": 0.7, "area": 5e-5, "lever_arm": 0.009},
        tendon | {"name": "straight", "angle": 0.3},
        tendon | {"name": "short", "angle": -1.0, "to": "part_1"},
        tendon | {"name": "helical", "angle": 0.5, "routing": {"kind": "helical", "pitch": 0.3}},
        tendon | {"name": "tapered", "angle": 2.0, "to": second,
                  "routing": {"kind": "tapered", "end_lever_arm": 0.006}},
    ]  # fmt: skip
    return {
        "type": "rod", "name": "random", "segments": segments, "actuators": actuators,
        "tip_mass": 0.0, "tip_mass_fraction": 0.2, "tendon_model": "exact" if exact else "constant",
        "payload": {"mass": 0.05, "centre_of_mass": [0.004, -0.002, 0.01],
                    "inertia": [5e-6, 6e-6, 8e-6]},
        "sensor_to_base_cap": 0.0, "base_cap_length": 0.0, "tip_cap_length": 0.0,
        "base_orientation": noise(1.0), "gravity": 9.81, "gravity_subintervals": 4,
        "gravity_strain_point": 0.5,
        "pressure_limits": {"minimum": 0.0, "maximum": 1e5, "maximum_rate": 2e6},
        "pressure_lag": {"gain": 11.0, "pole": 10.94},
        "tension_limits": {"minimum": 0.0, "maximum": 20.0, "maximum_rate": 100.0},
    }  # fmt: skip


def random_inputs(seed: int, content: dict[str, Any]) -> np.ndarray:
    """(m,) pressures up to 40 kPa and tensions up to 1.5 N."""
    random = np.random.default_rng(1000 + seed)
    tops = [4e4 if each["type"] == "chamber" else 1.5 for each in content["actuators"]]
    return np.array(tops) * random.uniform(0.3, 1.0, len(tops))


def random_loads(seed: int) -> dict[str, np.ndarray]:
    """Wrenches on the tip and drag."""
    random = np.random.default_rng(2000 + seed)
    return {
        "follower": random.normal(size=6) * [0.1, 0.1, 0.1, 0.01, 0.01, 0.01],
        "dead_force": random.normal(size=3) * 0.1,
        "drag": random.uniform(0.0, 1.0, 6) * [1, 1, 1, 1e-3, 1e-3, 1e-3],
    }


def random_arm(seed: int, count: int, exact: bool = True) -> Arm:
    """The arm of `random_file` under `random_inputs` and `random_loads`."""
    content = random_file(seed, count, exact)
    return arm_of(content, random_inputs(seed, content), **random_loads(seed))


def random_state(seed: int, grid: Grid, count: int) -> State:
    """Velocities of about 0.3 m/s and 3 rad/s, wrenches that bend a soft arm well."""
    random = np.random.default_rng(seed)
    rows = grid.total + count
    return State(
        random.normal(size=(grid.total, 6)) * [0.3, 0.3, 0.3, 3, 3, 3],
        random.normal(size=(rows, 6)) * [1, 1, 3, 0.05, 0.05, 0.02], random.normal(size=6),
    )  # fmt: skip
