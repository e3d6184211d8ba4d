"""Arms and states with a part of everything, drawn at random."""

from dataclasses import replace

import numpy as np

from oracles import cases
from oracles.arms import Arm, Body, Connector, Tendon, helical, straight, tapered
from oracles.dynamics import Grid, State


def random_arm(seed: int, count: int, exact: bool = True) -> Arm:
    """An arm of `count` segments: unequal in everything, connectors that turn and shift and have
    masses off the axis, tendons of every kind, a payload, drag, wrenches on the tip, gravity from
    the side."""
    random = np.random.default_rng(seed)
    segments = []
    for index in range(count):
        model = cases.ARMS["A"].segments[index % 2]
        connector = Connector(
            (*random.normal(size=2) * 0.003, 0.012), tuple(random.normal(size=3) * 0.3),
            Body(0.03, tuple(random.normal(size=3) * 0.004), tuple(random.uniform(1e-6, 4e-6, 3))),
        )  # fmt: skip
        segments.append(
            replace(
                model, connector=connector if index + 1 < count else Connector(),
                relaxation=random.uniform(0.002, 0.006, 6),
                compliance=model.compliance * random.uniform(0.8, 1.2, 6),
                wrench=random.normal(size=6) * [0, 0, 3, 0.03, 0.03, 0],
            )
        )  # fmt: skip
    length = sum(each.length for each in segments)
    tendons = (
        Tendon(1.5, straight(0.009, 0.3), count - 1),
        Tendon(1.2, helical(0.009, 20.0, 0.5), count - 1),
        Tendon(0.8, tapered(0.014, 0.006, length, 2.0), min(1, count - 1)),
    )
    return Arm(
        tuple(segments), tendons, exact, cases.PAYLOAD, cases.gravity(*random.normal(size=3)),
        random.normal(size=6) * [0.1, 0.1, 0.1, 0.01, 0.01, 0.01], random.normal(size=3) * 0.1,
        random.uniform(0.0, 1.0, 6) * [1, 1, 1, 1e-3, 1e-3, 1e-3],
    )  # fmt: skip


def random_state(seed: int, grid: Grid, count: int) -> State:
    """Velocities of about 0.3 m/s and 3 rad/s, wrenches that bend a soft arm well."""
    random = np.random.default_rng(seed)
    rows = grid.total + count
    return State(
        random.normal(size=(grid.total, 6)) * [0.3, 0.3, 0.3, 3, 3, 3],
        random.normal(size=(rows, 6)) * [1, 1, 3, 0.05, 0.05, 0.02], random.normal(size=6),
    )  # fmt: skip
