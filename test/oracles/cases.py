"""The arms whose solutions the tests know, with the solutions.

The numbers were computed once by two integrators of boundary value problems that agree to 1e-12 m;
`statics.solve` reproduces them. The arms after Till et al. (IJRR 38, 2019) and Rao et al.
(Frontiers in Robotics and AI, 2021) take their published parameters.
"""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from oracles.arms import Arm, Body, Connector, G, Route, Segment, Tendon, helical, straight

KPA = 1e3
TURN = 2.0 * np.pi


@dataclass(frozen=True)
class Solution:
    """Where an arm comes to rest: last node's pose [m], wrench on the mounting [N, N m]."""

    tip: np.ndarray
    quaternion: np.ndarray | None = None  # w x y z
    force: np.ndarray | None = None
    moment: np.ndarray | None = None


@dataclass(frozen=True)
class Chamber:
    """A pressure chamber: cross-section [m^2], distance from the axis [m], direction [rad]."""

    area: float
    lever: float
    angle: float

    def column(self) -> np.ndarray:
        """(6,) wrench per pascal: the chamber's end is pushed along z."""
        r = self.lever * np.array([np.cos(self.angle), np.sin(self.angle), 0.0])
        push = np.array([0.0, 0.0, self.area])
        return np.concatenate((push, np.cross(r, push)))


PROXIMAL = tuple(Chamber(1.5e-4, 0.014, np.radians(a)) for a in (0.0, 120.0, 240.0))
DISTAL = tuple(Chamber(0.8e-4, 0.010, np.radians(a)) for a in (60.0, 180.0, 300.0))
THROUGH = Chamber(0.8e-4, 0.010, 0.7)  # of case E, its area is not subtracted
CONNECTOR = Connector(
    (0.0, 0.0, 0.012), body=Body(0.030, (0.0, 0.0, 0.006), (1.6e-6, 1.6e-6, 2.4e-6))
)
PAYLOAD = Body(0.050, (0.004, 0.0, 0.010), (5e-6, 5e-6, 8e-6))


def gravity(*base_orientation: float) -> np.ndarray:
    """(3,) gravity reversed, in a base of this roll, pitch, yaw [m/s^2]."""
    return G * Rotation.from_euler("xyz", base_orientation).as_matrix()[2]


def annulus(
    outer: float, inner: float, density: float, holes: float = 0.0
) -> tuple[float, np.ndarray]:
    """Mass per length and (3,) rotary inertia per mass of a tube; holes [m^2] take mass away."""
    area = np.pi / 4 * (outer**2 - inner**2) - holes
    ratio = np.pi / 64 * (outer**4 - inner**4) / area
    return density * area, ratio * np.array([1.0, 1.0, 2.0])


def two_segments(
    pressures: tuple[float, ...],
    base_orientation: tuple[float, float, float],
    loaded: bool,
    relaxation: tuple[float, float] = (0.005, 0.005),
    through: float = 0.0,
    **loads: object,
) -> Arm:
    """The two-segment test arm.

    Args:
        pressures: (6,) of both segments' chambers [kPa].
        base_orientation: roll, pitch, yaw [rad].
        loaded: whether it carries the connector and the payload.
        relaxation: time of each segment [s].
        through: pressure of the chamber through both [kPa].
        loads: other attributes of `Arm`.
    """
    segments = []
    whole = through * KPA * THROUGH.column()
    for length, outer, inner, compliance, chambers, pressed, time, connector in (
        (0.10, 0.040, 0.010, (0.02, 0.02, 0.006, 40, 40, 35), PROXIMAL, pressures[:3],
         relaxation[0], CONNECTOR if loaded else Connector()),
        (0.08, 0.030, 0.008, (0.036, 0.036, 0.011, 120, 120, 110), DISTAL, pressures[3:],
         relaxation[1], Connector()),
    ):  # fmt: skip
        density, rotary = annulus(outer, inner, 1070.0, sum(each.area for each in chambers))
        wrench = whole + sum(
            KPA * p * each.column() for p, each in zip(pressed, chambers, strict=True)
        )
        segments.append(
            Segment(length, np.array(compliance, float), np.full(6, time), density, rotary, wrench,
                    connector)
        )  # fmt: skip
    payload = PAYLOAD if loaded else Body()
    return Arm(tuple(segments), payload=payload, up=gravity(*base_orientation), **loads)  # type: ignore[arg-type]


def _rod(
    lengths: tuple[float, ...], radius: float, young: float, shear: float, correction: float,
    density: float = 0.0,
) -> tuple[Segment, ...]:  # fmt: skip
    """A solid round rod in pieces."""
    area, second = np.pi * radius**2, np.pi / 4 * radius**4
    lateral = 1.0 / (correction * shear * area)
    bending = 1.0 / (young * second)
    compliance = np.array([lateral, lateral, 1.0 / (young * area), bending, bending,
                           0.5 / (shear * second)])  # fmt: skip
    rotary = second / area * np.array([1.0, 1.0, 2.0])
    return tuple(
        Segment(length, compliance, np.full(6, 0.005), density * area, rotary) for length in lengths
    )


def soft_rod(tension: float, exact: bool = True) -> Arm:
    """A soft weightless rod with one straight tendon."""
    segments = _rod((0.1,), 0.005, 1e6, 0.33e6, 5 / 6, 1000.0)
    return Arm(segments, (Tendon(tension, straight(0.004), 0),), exact)


def till(tensions: tuple[float, ...], helix: bool = False) -> Arm:
    """The steel rod of Till et al. 2019 with four tendons; helix: each makes one turn."""
    segments = _rod((0.5,), 0.001, 200e9, 80e9, 1.0, 8000.0)
    rate = TURN / 0.5 if helix else 0.0
    tendons = tuple(
        Tendon(tension, helical(0.01506, rate, i * TURN / 4), 0)
        for i, tension in enumerate(tensions)
    )
    return Arm(segments, tendons, up=np.array([-G, 0.0, 0.0]))


def rao(exact: bool = True) -> Arm:
    """The two-segment tendon arm of Rao et al. 2021, weightless, two of its tendons pulled."""
    segments = _rod((0.2, 0.2), 0.0007, 54e9, 54e9 / 2.6, 1.0, 6000.0)
    tendons = (
        Tendon(4.0, straight(0.01, np.radians(90.0)), 0),
        Tendon(2.0, straight(0.01, np.radians(-30.0)), 1),
    )
    return Arm(segments, tendons, exact)


def _straight_and_short() -> tuple[Tendon, ...]:
    lever: Route = helical(0.016, 0.0, np.pi / 2)
    return Tendon(1.5, straight(0.009), 1), Tendon(2.0, lever, 0)


ARMS: dict[str, Arm] = {
    "A": two_segments((30, 0, 0, 0, 0, 20), (0, 0, 0), False),
    "B": two_segments((40, 10, 0, 0, 35, 5), (np.pi, 0, 0), True),
    "C": two_segments((0, 20, 0, 0, 0, 0), (0, np.pi / 2, 0), False, tendons=_straight_and_short()),
    "D": two_segments(
        (10, 20, 0, 15, 0, 0), (0.3, 0, 0), True,
        tendons=(Tendon(1.0, straight(0.009), 1), Tendon(1.2, helical(0.009, 20.0), 1)),
        dead_force=np.array([0.15, -0.10, 0.05]),
    ),
    "E": two_segments((0, 0, 0, 10, 0, 0), (0, 0, 0), False, through=25.0),
    "soft rod 0.5 N": soft_rod(0.5),
    "soft rod 2 N": soft_rod(2.0),
    "Till 15 N": till((15, 0, 0, 0)),
    "Till 5 and 3 N": till((5, 3, 0, 0)),
    "Till helix 15 N": till((15, 0, 0, 0), True),
    "Till helix 5 and 3 N": till((5, 3, 0, 0), True),
    "Rao": rao(),
}  # fmt: skip


def _solution(*numbers: float) -> Solution:
    found = np.array(numbers, float)
    if len(found) == 3:
        return Solution(found)
    if len(found) == 7:
        return Solution(found[:3], found[3:])
    return Solution(found[:3], found[3:7], found[7:10], found[10:])


SOLUTIONS: dict[str, Solution] = {
    "A": _solution(
        -0.04272693, 0.00598556, 0.17693409, 0.9791709, -0.0687469, -0.1907992, -0.0096893,
        0, 0, -1.114090, -0.000793799, -0.01395028, 0,
    ),
    "B": _solution(
        -0.02195321, -0.00583484, 0.19898623, 0.9999374, 0.0065516, 0.0089376, 0.0015372,
        0, 0, 1.898890, -0.006111099, 0.02198649, 0,
    ),
    "C": _solution(
        0.05001392, -0.00212749, 0.16983197, 0.9717058, 0.0085491, 0.2360336, 0.0017166,
        1.114090, 0, 0, 0, 0.08455300, 0.000739699,
    ),
    "D": _solution(
        0.03708221, -0.09085425, 0.15748779, 0.8970637, 0.4153617, 0.1483901, -0.0270502,
        0.15, -0.661160, -1.764079, 0.1531468, 0.05886125, -0.001554042,
    ),
    "E": _solution(
        -0.01806234, -0.01677021, 0.18028852, 0.9825074, 0.1300678, -0.1332714, 0.0006061,
        0, 0, -1.114090, 0.003915740, -0.004403198, 0,
    ),
    "soft rod 0.5 N": _solution(0.019963662, 0, 0.096636979),
    "soft rod 2 N": _solution(0.063319725, 0, 0.059692861),
    "Till 15 N": _solution(0.1822117, 0, 0.4532293),
    "Till 5 and 3 N": _solution(0.0714772, 0.0355755, 0.4916176),
    "Till helix 15 N": _solution(0.0122099, 0.0581888, 0.4933483),
    "Till helix 5 and 3 N": _solution(0.0007136, 0.0192477, 0.4992244),
    "Rao": _solution(
        0.1276076, 0.1434674, 0.3364068, 0.9245691, -0.1914225, 0.3229392, -0.0651125
    ),
}  # fmt: skip

COLLOCATION_ERRORS = {
    "A": {(5, 5): 0.097, (10, 10): 0.024, (20, 20): 0.0061},
    "B": {(5, 5): 0.020, (10, 5): 0.026, (10, 10): 0.0049},
    "C": {(5, 5): 0.158, (10, 5): 0.066, (10, 10): 0.040},
    "D": {(5, 5): 0.288, (10, 5): 0.077, (10, 10): 0.072, (20, 20): 0.018},
    "E": {(5, 5): 0.080, (10, 10): 0.020},
}
"""Distance of the collocated tip from the continuum's [mm], by intervals of both segments."""
