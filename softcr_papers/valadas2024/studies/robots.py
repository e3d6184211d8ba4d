"""The simulated robots of Valadas et al. (2024), Section IV-A, and how they are moved.

The paper prints that torques change every 10 ms, that there are eight trajectories of 0.5 s at
1000 Hz for training and one of 7 s with sines for the test. Ranges of torques and initial strains
are those of the authors' public data; of case 3, whose dynamics the paper does not use, they are
ours. Test torques of the first seed are those of the data, without their axial share where it is
not told; for the other seeds sizes, signs and rates are drawn about theirs.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from softcr_papers.valadas2024.learning.simulated import SimulatedMotion, simulated_motion
from softcr_papers.valadas2024.learning.sparsification import Stiffest
from softcr_papers.valadas2024.strain.arm import StrainArm, load_strain_arm
from softcr_papers.valadas2024.strain.dynamics import StrainDynamics
from softcr_papers.valadas2024.strain.integration import Integration, simulate
from softcr_studies.frame.cell import Cell

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
        """Eight trajectories from random starts under random torques of a seed."""
        return _training(self, seed)

    def test(self, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        """Torques (700, n) of a cell's test, and strains (701, n) of the robot, straight at first;
        the first seed has the torques of the authors' data."""
        return _test(self, cell.stream("test") if cell.seed else None)


@lru_cache(maxsize=2)
def _training(case: RobotCase, seed: int) -> SimulatedMotion:
    """Methods of a study learn from the same motion, which takes seconds to compute."""
    shape = (8, round(TRAINING / HOLD), len(case.amplitudes))
    random = np.random.default_rng(seed)
    torques = random.uniform(-1.0, 1.0, shape) * case.amplitudes
    largest = np.abs(case.starts).max(axis=0)
    starts = random.choice((-1.0, 1.0), case.starts.shape) * largest
    starts *= random.uniform(0.7, 1.0, starts.shape)
    return simulated_motion(case.arm.numbers, starts, torques, HOLD, tolerance=1e-7)


@lru_cache(maxsize=4)
def _test(case: RobotCase, seed: int | None) -> tuple[np.ndarray, np.ndarray]:
    torques = sine_torques(len(case.amplitudes), seed)
    begin = np.zeros(2 * torques.shape[1])
    states = simulate(
        StrainDynamics(case.arm.numbers), begin, torques, HOLD, Integration(tolerance=1e-8)
    )
    return torques, states[0, :, : torques.shape[1]]


_SINES = np.array(
    [[0.02, 3, 0.02, 1], [0.1, 2, 0.1, 4], [2, 2, -1, 1],
     [-0.01, 3, -0.02, 1], [-0.1, 2, -0.1, 4], [-1, 3, -1, 2]]
)  # fmt: skip
"""Of each strain: size and rate [rad/s] of a sine, then of a cosine."""


def sine_torques(size: int, seed: int | None = None) -> np.ndarray:
    """(700, n) sines, evaluated every 10 ms and held.

    Args:
        size: number of strains.
        seed: draws signs, sizes within 30 % and rates within 50 %; None: those of the data.
    """
    numbers = _SINES[:size].copy()
    if size == 3:
        numbers[0, [0, 2]] = 0.03
    if seed is not None:
        random = np.random.default_rng(seed)
        numbers[:, 0::2] *= random.choice((-1.0, 1.0), (size, 2))
        numbers[:, 0::2] *= random.uniform(0.7, 1.3, (size, 2))
        numbers[:, 1::2] *= random.uniform(0.5, 1.5, (size, 2))
    t = HOLD * np.arange(round(TEST / HOLD))[:, None]
    sines = numbers[:, 0] * np.sin(numbers[:, 1] * t)
    return sines + numbers[:, 2] * np.cos(numbers[:, 3] * t)


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
