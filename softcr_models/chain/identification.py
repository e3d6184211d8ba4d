"""Numbers of a chain of pressures, and of its rod with them, from the tip in a motion.

A chain and its rod explain each other's errors, so compliance, tip mass and damping are found
together with the chain's: weighted least squares over all of them. Lengths and the other
compliances stay. Every derivative is a lane of one batch, so that many numbers cost little more
than one.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares
from scipy.special import ndtri

from softcr_models.chain.acting import LARGEST_WEIGHTS
from softcr_models.chain.chain_model import ChainModel
from softcr_models.identification.identifiable import CHAIN_SCALES, with_parameters
from softcr_models.identification.measured_groups import TIP_POSITION
from softcr_models.identification.rod_identification import (
    CONFIDENCE,
    LARGEST_FACTOR,
    NOT_EXCITED,
    Recording,
)
from softcr_models.model import Parameter
from softcr_models.prediction import RodPrediction
from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod

_STEP = 1e-4  # of a coordinate, for differences
_CLOSE = 1e-5  # relative change of coordinates and of the squares that ends the search


@dataclass(frozen=True, eq=False)
class ChainFit:
    """What a motion tells of a robot with a chain.

    Attributes:
        names: (P,) of what was found, as the model names them.
        values: (P,) in SI units.
        intervals: (P,) half widths of the 95 % confidence intervals, in SI units.
        not_excited: names of what the motion does not tell; they stay as in the file.
        robot: with the values in it.
        error: mean distance of the robot's tip from the recorded one [m].
    """

    names: tuple[str, ...]
    values: np.ndarray
    intervals: np.ndarray
    not_excited: tuple[str, ...]
    robot: Robot
    error: float


def identify_chain(robot: Robot, recording: Recording, intervals: int = 10) -> ChainFit:
    """Numbers of the robot's `pressure_chain`, and its compliance, tip mass and damping.

    What is not excited would take any value and spoil the others: the least known is left as in the
    file and the rest is found again, until all that remains is known. Of a stop's weight, what is a
    chamber's own is told against that of the first chamber.

    Args:
        robot: the first guess, with a chain.
        recording: tip positions in a motion that begins at rest, its pressures slowly risen from
            ambient.
        intervals: of the model's rod.

    Raises:
        EquilibriumError: a rod on the way has no steady state under the first pressures.
        ValueError: the robot has no chain, or nothing is excited.
    """
    if robot.pressure_chain is None:
        raise ValueError(f"robot {robot.name}: has no pressure_chain")
    motion = _Motion(robot, recording, intervals)
    free = motion.wanted
    while free:
        coordinates, deviations, error = motion.fitted(free)
        worst = int(np.argmax(deviations))
        if ndtri(0.5 + CONFIDENCE / 2) * deviations[worst] < NOT_EXCITED:
            return motion.told(free, coordinates, deviations, error)
        free = [*free[:worst], *free[worst + 1 :]]
    raise ValueError("the motion tells no number of the chain and its rod")


class _Motion:
    """A recording, and the tips of a model of any numbers in it."""

    def __init__(self, robot: Robot, recording: Recording, intervals: int) -> None:
        assert robot.pressure_chain is not None
        rod = RodPrediction(
            CosseratRod(robot, intervals, curvature_stiffness=robot.stiffens),
            substeps=8,
            single_precision=False,
        )
        self._robot, self._recording = robot, recording
        self._tip = recording.outputs[TIP_POSITION][recording.run_in :]
        self._model = ChainModel(rod, robot.pressure_chain)
        self.parameters = self._model.parameters
        # a number of the rod that is zero in its file is none that it has
        self.wanted = [
            k for k, each in enumerate(self.parameters)
            if not each.name.endswith("_of_1") and (each.nominal > 0.0 or k >= self._model.of_rod)
        ]  # fmt: skip
        self._stops = _stops_of(self.parameters, recording.inputs.shape[1])
        self._levels = recording.inputs
        if (memory := self._model.inputs.memory) is not None:
            begun = memory.begin(self._levels[0])
            (past,) = memory.along(begun, self._levels[None], recording.period)
            self._levels = np.hstack((self._levels, past))

    def fitted(self, free: Sequence[int]) -> tuple[np.ndarray, np.ndarray, float]:
        """(P,) coordinates, (P,) their standard deviations, mean distance of the tip [m]."""
        chosen = [self.parameters[k] for k in free]
        start, reach = np.zeros(len(free)), np.log(LARGEST_FACTOR)
        low, high = np.array([_bounds(each, reach) for each in chosen]).T
        kept: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}

        def both(coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            key = coordinates.tobytes()
            if key not in kept:
                kept.clear()
                kept[key] = self._residual_and_slopes(free, coordinates)
            return kept[key]

        found = least_squares(
            lambda each: both(each)[0], start, jac=lambda each: both(each)[1],
            bounds=(low, high), x_scale=0.1, xtol=_CLOSE, ftol=_CLOSE,
        )  # fmt: skip
        of_tip = self._tip.size
        residual = found.fun[:of_tip].reshape(-1, 3)
        left, sizes, right = np.linalg.svd(found.jac[:of_tip], full_matrices=False)
        del left
        sizes = np.maximum(sizes, 1e-9 * sizes[0])
        deviations = residual.std() * np.sqrt(((right / sizes[:, None]) ** 2).sum(axis=0))
        near = 0.005 * (high - low)
        deviations[(found.x < low + near) | (found.x > high - near)] = np.inf
        return found.x, deviations, float(np.linalg.norm(residual, axis=1).mean())

    def told(
        self, free: Sequence[int], coordinates: np.ndarray, deviations: np.ndarray, error: float
    ) -> ChainFit:
        """The fit, and the robot of its numbers."""
        chosen = [self.parameters[k] for k in free]
        values = np.array([_value(*each) for each in zip(chosen, coordinates, strict=True)])
        units = np.array([_unit(*each) for each in zip(chosen, values, strict=True)])
        own = {each.name: value for each, value in zip(chosen, values.tolist(), strict=True)}
        ratios = {
            each.name: own.pop(each.name) / each.nominal
            for each in chosen if each.transform == "log"
        }  # fmt: skip
        robot = self._robot.scaled(
            bending=ratios.get("bending_compliance", 1.0),
            damping=ratios.get("damping_factor", 1.0),
            tip_mass=ratios.get("tip_mass", 1.0),
        )
        names = tuple(each.name for each in chosen)
        return ChainFit(
            names, values, ndtri(0.5 + CONFIDENCE / 2) * units * deviations,
            tuple(self.parameters[k].name for k in self.wanted if k not in free),
            with_parameters(robot, tuple(own), list(own.values())), error,
        )  # fmt: skip

    def _residual_and_slopes(
        self, free: Sequence[int], coordinates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(3 T + m,) of the tip [m] and of each chamber's stops, and slopes by coordinates."""
        # towards the file's value: there a chamber's stops have a slope even at their limit
        steps = np.where(coordinates > 0.0, -_STEP, _STEP)
        lanes = np.vstack((coordinates + np.diag(steps), coordinates))
        rows = np.tile(self._model.nominal_parameters, (len(lanes), 1))
        for column, k in enumerate(free):
            rows[:, k] = [_value(self.parameters[k], each) for each in lanes[:, column]]
        tips = self._tips(rows)[:, self._recording.run_in :]
        residual = tips[-1] - self._tip
        excess = self._excess(rows)
        slopes = np.hstack(
            ((tips[:-1] - tips[-1]).reshape(len(free), -1), excess[:-1] - excess[-1])
        )
        return np.concatenate((residual.ravel(), excess[-1])), (slopes / steps[:, None]).T

    def _excess(self, rows: np.ndarray) -> np.ndarray:
        """(B, m) by how much a chamber's stops weigh more than they can, of parameters (B, P).

        Beyond the limit the model does not change, so that the motion alone would leave the sum
        anywhere.
        """
        return np.maximum(rows @ self._stops - LARGEST_WEIGHTS, 0.0)

    def _tips(self, rows: np.ndarray) -> np.ndarray:
        """(B, T, 3) of parameters (B, P) [m]."""
        model, levels = self._model, self._levels
        states = np.array([model.equilibrium(levels[0], row) for row in rows])
        tips = [model.tip_poses(states, rows)[:, :, 3]]
        for begin, end in itertools.pairwise(levels):
            period = self._recording.period
            states = model.step(states, begin[None], end[None], rows, period)
            tips.append(model.tip_poses(states, rows)[:, :, 3])
        return np.stack(tips, axis=1)


def _stops_of(parameters: Sequence[Parameter], count: int) -> np.ndarray:
    """(P, m), 1 where a parameter is a part of the weight of a chamber's stops."""
    places = [each.name.split("_") for each in parameters]
    return np.array([
        [place[0] == "hysteresis" and (len(place) == 2 or place[-1] == str(i + 1))
         for i in range(count)]
        for place in places
    ], dtype=float)  # fmt: skip


def _value(parameter: Parameter, coordinate: float) -> float:
    """Of a coordinate: a logarithm, or the difference to the file's in units of its scale."""
    if parameter.transform == "log":
        return float(parameter.nominal * np.exp(coordinate))
    return float(parameter.nominal + CHAIN_SCALES[parameter.unit] * coordinate)


def _unit(parameter: Parameter, value: float) -> float:
    return value if parameter.transform == "log" else CHAIN_SCALES[parameter.unit]


def _bounds(parameter: Parameter, reach: float) -> tuple[float, float]:
    if parameter.transform == "log":
        return -reach, reach
    scale = CHAIN_SCALES[parameter.unit]
    return (parameter.low - parameter.nominal) / scale, (parameter.high - parameter.nominal) / scale
