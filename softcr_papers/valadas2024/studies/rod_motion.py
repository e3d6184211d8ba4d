"""An exact rod that moves in a plane: what strain models are learned from, and its identification.

The rod is the chamber-driven one of Licher et al. (2025), upright, with a tip of its own mass. Its
second and third chamber have the same pressure, so that it bends in one plane. It shares no
equation with a chain of constant strains, and is integrated with its own method.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.optimize import least_squares

from softcr_models import load_robot
from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_papers.valadas2024.learning.shape_fit import PoseNoise
from softcr_papers.valadas2024.strain.kinematics import planar_poses

INTERVALS = 20
MARKERS = 21
GRAVITY = (0.0, -9.81)
"""Across and along the robot, which stands upright [m/s^2]."""

TRAJECTORIES, FRAMES, FRAME = 8, 500, 0.001
HOLD = 50
"""Frames for which pressures are held in training: the tip's swings take some 300 ms."""

TEST_HOLD, TEST = 10, 700
"""Frames for which pressures are held in the test, and how many there are: 7 s."""

_LARGEST = 60e3  # pressure [Pa]
_STEPS = 4  # of the rod in a frame; the error of a marker after a jump is below 0.01 mm
_KINDS = {"bending": 3, "shear": 0, "axial": 2}  # places in a section's six strains

Numbers = Mapping[str, float]
"""mass_body, mass_tip [kg/m], stiffness_ and damping_ of bending, shear, axial: as `Material`."""


@dataclass(frozen=True, eq=False)
class PlanarRod:
    """A rod on a grid.

    Attributes:
        robot: the data.
        intervals: of the grid.
    """

    robot: Robot
    intervals: int = INTERVALS

    @cached_property
    def rod(self) -> CosseratRod:
        """The equations."""
        return CosseratRod(self.robot, self.intervals)

    def motion(self, levels: np.ndarray, hold: int) -> np.ndarray:
        """(K hold + 1, 21, 3) poses at every frame, from the steady state of the first pressures.

        Args:
            levels: (K, 2) pressures of the first chamber, and of the two others [Pa].
            hold: frames for which each acts.
        """
        pressures = levels[:, [0, 1, 1]]
        begin = self.rod.equilibrium(pressures[0])
        held = np.repeat(pressures, hold * _STEPS, axis=0)
        states = self.rod.simulate(begin, held, FRAME / _STEPS)[_STEPS - 1 :: _STEPS]
        return self.poses(np.concatenate([begin[None], states]))

    def poses(self, states: np.ndarray) -> np.ndarray:
        """(T, 21, 3) of states (T, nx), in the frame of the rod's base."""
        rows = np.ascontiguousarray(states)
        numbers = np.tile(self.rod.nominal_parameters, (len(rows), 1))
        chain = [
            self.rod.poses_at(rows, 0, float(place), numbers)
            for place in np.linspace(0.0, 1.0, MARKERS)
        ]
        poses = planar_poses(np.stack(chain, axis=1)[..., :3, :])
        poses[..., 1] -= self.rod.base_height
        return poses

    def torques(self, levels: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """(..., 3 S) on the strains of segments of lengths (S,), under pressures (..., 2) [Pa].

        The chambers' wrench is the same in every section; a torque is its work on a unit strain.
        """
        wrench = np.asarray(levels)[..., [0, 1, 1]] @ self.rod.row_actuation[0].T
        own = np.stack(
            [-wrench[..., 4], np.zeros(wrench.shape[:-1]), wrench[..., 2]], axis=-1
        )  # the plane's angle is the negative one about y
        return (own[..., None, :] * lengths[:, None]).reshape(*own.shape[:-1], -1)


def true_rod() -> PlanarRod:
    """The one that is to be learned."""
    return PlanarRod(load_robot("licher2025"))


@lru_cache(maxsize=1)
def training(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Poses (8, 500, 21, 3) and pressures (8, 500, 2) of eight trajectories of 0.5 s.

    Each begins at rest under random pressures, which others follow.
    """
    levels = training_levels(seed)
    poses = [rolled[:-1] for rolled in trajectories(true_rod(), levels)]
    return np.array(poses), np.repeat(levels[:, 1:], HOLD, axis=1)


def training_levels(seed: int) -> np.ndarray:
    """(8, 11, 2) pressures [Pa]; the first of a trajectory are those at rest."""
    shape = (TRAJECTORIES, 1 + FRAMES // HOLD, 2)
    return np.random.default_rng(seed).uniform(0.0, _LARGEST, shape)


def trajectories(rod: PlanarRod, levels: np.ndarray) -> list[np.ndarray]:
    """Of each trajectory (501, 21, 3), without the time at rest."""
    return [rod.motion(each, HOLD)[HOLD:] for each in levels]


def test_levels() -> np.ndarray:
    """(700, 2) sines [Pa], a value every 10 ms."""
    t = TEST_HOLD * FRAME * np.arange(TEST)
    return 30e3 + 25e3 * np.stack([np.sin(3.0 * t + 0.5), np.cos(5.0 * t)], axis=-1)


def numbers_of(robot: Robot) -> dict[str, float]:
    """Of a robot file, see `Numbers`."""
    stiffness = 1.0 / robot.segment_compliances[0]
    times = robot.segment_relaxation_times[0]
    mass = float(robot.density * robot.segment_areas[0])
    tip = mass + robot.tip_mass / (robot.tip_mass_fraction * robot.length)
    found = {"mass_body": mass, "mass_tip": tip}
    found |= {f"stiffness_{kind}": float(stiffness[k]) for kind, k in _KINDS.items()}
    return found | {f"damping_{kind}": float(stiffness[k] * times[k]) for kind, k in _KINDS.items()}


def with_numbers(robot: Robot, numbers: Numbers) -> Robot:
    """The robot file with these numbers."""
    relaxation = {k: numbers[f"damping_{k}"] / numbers[f"stiffness_{k}"] for k in _KINDS}
    bending, shear, axial = (relaxation[kind] for kind in _KINDS)
    heavier = numbers["mass_tip"] - numbers["mass_body"]
    return robot.replace(
        density=numbers["mass_body"] / float(robot.segment_areas[0]),
        tip_mass=heavier * robot.tip_mass_fraction * robot.length,
        bending_compliance=1.0 / numbers["stiffness_bending"],
        shear_compliance=1.0 / numbers["stiffness_shear"],
        dilatation_compliance=1.0 / numbers["stiffness_axial"],
        relaxation_times=[shear, shear, axial, bending, bending, bending],
    )


def identify(
    poses: np.ndarray, levels: np.ndarray, noise: PoseNoise, guess: Robot, intervals: int
) -> tuple[dict[str, float], dict[str, float]]:
    """A rod's numbers by output error, and their standard errors.

    Least squares of all markers of all frames by Gauss and Newton on logarithms; the robot is known
    to be at rest at first.

    Args:
        poses: (8, 500, 21, 3).
        levels: (8, 11, 2) pressures [Pa].
        noise: of the markers.
        guess: where the search begins, and what is known: length, sections, chambers.
        intervals: of the rod's grid.
    """
    start = numbers_of(guess)

    def numbers(logs: np.ndarray) -> dict[str, float]:
        factors = np.exp(logs).tolist()
        return {name: v * f for (name, v), f in zip(start.items(), factors, strict=True)}

    def errors(logs: np.ndarray) -> np.ndarray:
        rod = PlanarRod(with_numbers(guess, numbers(logs)), intervals)
        found = np.array([each[:-1] for each in trajectories(rod, levels)])
        return ((found - poses) * noise.weights)[:, :, 1:].ravel()

    found = least_squares(errors, np.zeros(len(start)), diff_step=1e-4, xtol=1e-5, ftol=1e-7)
    spread = 2.0 * found.cost / (found.fun.size - len(start))
    deviations = np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)) * spread)
    values = numbers(found.x)
    return values, {
        name: value * float(each)
        for (name, value), each in zip(values.items(), deviations, strict=True)
    }
