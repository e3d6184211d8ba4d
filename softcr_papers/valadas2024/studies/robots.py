"""The simulated robots of Valadas et al. (2024), Section IV-A, and how they are moved.

The paper prints that torques change every 10 ms, that there are eight trajectories of 0.5 s at
1000 Hz for training and one of 7 s with sines for the test. Ranges of torques and initial strains
are those of the authors' public data; of case 3, whose dynamics the paper does not use, they are
ours. Test torques are those of the data, without their axial share where it is not told.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from softcr_papers.valadas2024.learning.simulated import SimulatedMotion, simulated_motion
from softcr_papers.valadas2024.learning.sparsification import Stiffest
from softcr_papers.valadas2024.strain.arm import StrainArm, load_strain_arm
from softcr_papers.valadas2024.strain.dynamics import StrainDynamics
from softcr_papers.valadas2024.strain.integration import Integration, simulate

HOLD = 0.01
"""For how long each torque acts [s]."""

TRAINING, TEST = 0.5, 7.0
"""Length of a trajectory [s]."""

_ONE = (
    (-340, -0.2, 0.15), (340, 0.1, -0.05), (320, -0.01, -0.1), (-335, 0.05, 0.05),
    (330, 0.1, 0.2), (-337, 0.07, -0.11), (325, -0.1, -0.06), (334, -0.09, 0.1),
)  # fmt: skip
_TURNS = (
    (-250, 270), (270, -250), (280, -272), (-240, -245), (285, 120), (283, -286), (-250, 264),
    (240, 230),
)  # fmt: skip
_FIRST = (
    (-0.2, 0.15), (0.1, -0.05), (-0.01, -0.1), (0.07, -0.11), (-0.1, -0.06), (-0.09, 0.08),
    (-0.13, 0.11), (-0.1, -0.05),
)  # fmt: skip
_SECOND = (
    (-0.1, -0.1), (0.15, -0.05), (0.05, 0.1), (-0.08, 0.11), (0.1, 0.06), (-0.09, -0.06),
    (-0.08, -0.09), (0.06, 0.05),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class RobotCase:
    """A robot of the paper.

    Attributes:
        name: as the tables say it.
        robot: its file.
        amplitudes: (n,) of the random torques [N m, N, N, ...].
        stiff: strains that begin at 0 since they hardly give.
        noise: standard deviations of a pose, where the paper has a noisy row [m], [rad].
        largest_modulus: E^max of Eq. (8) [Pa].
    """

    name: str
    robot: str
    amplitudes: tuple[float, ...]
    stiff: tuple[int, ...] = ()
    noise: tuple[float, float] = (1e-4, float(np.deg2rad(0.5)))
    largest_modulus: float = 1e8

    @property
    def arm(self) -> StrainArm:
        """Its data."""
        return load_strain_arm(self.robot)

    @property
    def limits(self) -> Stiffest:
        """Of Eq. (8)."""
        return Stiffest(youngs_modulus=self.largest_modulus)

    @property
    def starts(self) -> np.ndarray:
        """(8, n) strains at the start of the training trajectories."""
        lengths = self.arm.lengths
        if len(lengths) == 1:
            strains = np.array(_ONE, float)
        else:
            turns = np.array(_TURNS, float)
            parts = [np.c_[turns[:, 0], _FIRST], np.c_[turns[:, 1], _SECOND]]
            if len(lengths) == 3:  # ours: a third segment bends as the first one of the next draw
                parts.append(np.c_[np.roll(turns[:, 0], 3), np.roll(_FIRST, 3, axis=0)])
            strains = np.concatenate(parts, axis=1)
        strains[:, 0::3] = np.deg2rad(strains[:, 0::3]) / lengths
        strains[:, list(self.stiff)] = 0.0
        return strains

    def training(self, seed: int) -> SimulatedMotion:
        """Eight trajectories under random torques of a seed."""
        return _training(self, seed)

    def test(self) -> tuple[np.ndarray, np.ndarray]:
        """Torques (700, n) of the test, and strains (701, n) of the robot that starts straight."""
        torques = sine_torques(len(self.amplitudes))
        begin = np.zeros(2 * torques.shape[1])
        states = simulate(
            StrainDynamics(self.arm.numbers), begin, torques, HOLD, Integration(tolerance=1e-8)
        )
        return torques, states[0, :, : torques.shape[1]]


@lru_cache(maxsize=2)
def _training(case: RobotCase, seed: int) -> SimulatedMotion:
    """Methods of a study learn from the same motion, which takes seconds to compute."""
    shape = (8, round(TRAINING / HOLD), len(case.amplitudes))
    torques = np.random.default_rng(seed).uniform(-1.0, 1.0, shape) * case.amplitudes
    return simulated_motion(case.arm.numbers, case.starts, torques, HOLD, tolerance=1e-7)


def sine_torques(size: int) -> np.ndarray:
    """(700, n) sines, evaluated every 10 ms and held."""
    t = HOLD * np.arange(round(TEST / HOLD))
    sin, cos = np.sin, np.cos
    first = (0.03 if size == 3 else 0.02) * (sin(3 * t) + cos(t))
    columns = [first, 0.1 * sin(2 * t) + 0.1 * cos(4 * t), 2.0 * sin(2 * t) - cos(t)]
    second = [
        -0.01 * sin(3 * t) - 0.02 * cos(t),
        -0.1 * sin(2 * t) - 0.1 * cos(4 * t),
        -sin(3 * t) - cos(2 * t),
    ]
    return np.stack((columns + second)[:size], axis=1)


CASES = (
    RobotCase(
        "1: 1S PCS", "pcs_one_segment", (0.04, 0.4, 0.4), noise=(5e-4, float(np.deg2rad(1.0)))
    ),
    RobotCase("2: 2S PCS", "pcs_two_segments", (0.04, 0.4, 0.4, 0.03, 0.2, 0.2)),
    RobotCase(
        "3: 3S PCS", "pcs_three_segments", (0.04, 0.4, 0.4, 0.03, 0.2, 0.2, 0.03, 0.2, 0.2)
    ),
    RobotCase(
        "4: 1S PCS H-SH", "pcs_stiff_shear", (0.04, 7.0, 0.4), (1,), (5e-4, float(np.deg2rad(1.0)))
    ),
    RobotCase(
        "5: 2S PCS H-AX/SH", "pcs_stiff_axial_shear", (0.04, 0.4, 7.0, 0.03, 7.0, 0.3), (2, 4),
        largest_modulus=1e6,
    ),
)  # fmt: skip
"""In the order of the paper. Case 5's stiff axial strain has 12.6 kN, below the paper's limit of
126 kN of E^max = 100 MPa; it is dropped with 1 MPa."""
