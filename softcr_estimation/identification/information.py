"""Which parameters a motion tells: Fisher information of tip and pressures.

The tip of the exact rod is differentiated by each number the filter estimates beside the state:
with S(t) (3, P) along the motion and tip noise sigma, F = sum S^T S / sigma^2. 1 / sqrt(F_ii) is
what an unbiased filter could know of a number if all others were known, sqrt((F^-1)_ii) if none
were (Cramer and Rao); the eigenvector of the least eigenvalue is the combination that shows least.
The pressure lag needs no rod: it follows from commands and readings.
"""

from dataclasses import dataclass

import numpy as np

from softcr_estimation.estimator_settings import EstimatorSettings
from softcr_estimation.identification.stretches import PERIOD
from softcr_models.prediction import RodPrediction
from softcr_models.pressure import PRESSURE_GAIN, PRESSURE_OFFSET, PressureLag, chamber_names
from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod

INTERVALS = 5
TOLD = 0.01
"""A number known as well as this (of itself; offsets: of 10 kPa) counts as excited."""
OFFSET_UNIT = 1e4  # [Pa]
LAG = ("lag_pole", "lag_ratio")
_STEP = 1e-4  # of a number's unit, for differences
_PRESSURE_NOISE = 100.0  # of a reading [Pa]
_NOTHING, _TINY = 1e-12, np.finfo(float).tiny  # of the largest information: rounding


@dataclass(frozen=True, eq=False)
class Motion:
    """What was done.

    Attributes:
        readings: (T, m) pressures, a tick apart [Pa].
        commands: (T, m) [Pa]; row k is held from reading k to k + 1.
    """

    readings: np.ndarray
    commands: np.ndarray


@dataclass(frozen=True, eq=False)
class Information:
    """What a motion tells.

    Attributes:
        names: (P,) of the numbers.
        matrix: (P, P) Fisher information, each number in units of itself, offsets of 10 kPa.
    """

    names: tuple[str, ...]
    matrix: np.ndarray

    @property
    def alone(self) -> np.ndarray:
        """(P,) least deviations if all others were known; inf: it does not show at all."""
        diagonal = self.matrix.diagonal()
        shown = diagonal > _NOTHING * max(diagonal.max(), _TINY)
        return np.where(shown, 1.0 / np.sqrt(np.where(shown, diagonal, 1.0)), np.inf)

    @property
    def together(self) -> np.ndarray:
        """(P,) least deviations if all are unknown; inf where two are not told apart at all."""
        values, vectors = np.linalg.eigh(self.matrix)
        kept = values > _NOTHING * max(values[-1], _TINY)
        deviations: np.ndarray = np.sqrt((vectors[:, kept] ** 2 / values[kept]).sum(axis=1))
        deviations[(np.abs(vectors[:, ~kept]) > 1e-3).any(axis=1)] = np.inf
        return deviations

    @property
    def not_excited(self) -> tuple[str, ...]:
        """Names of what is not known to TOLD from this motion alone."""
        pairs = zip(self.names, self.together, strict=True)
        return tuple(name for name, deviation in pairs if not deviation <= TOLD)

    @property
    def least(self) -> np.ndarray:
        """(P,) the combination that shows least, of length 1, its largest part positive.

        NaN where several show nothing at all: none of them is the least.
        """
        values, vectors = np.linalg.eigh(self.matrix)
        if (values <= _NOTHING * max(values[-1], _TINY)).sum() > 1:
            return np.full(len(values), np.nan)
        direction: np.ndarray = vectors[:, 0]
        return direction * np.sign(direction[np.argmax(np.abs(direction))])


def tip_information(robot: Robot, readings: np.ndarray) -> Information:
    """Of the rod's parameters, and of gains and offsets of the pressure sensors.

    Args:
        robot: as its file has it.
        readings: (T, m) [Pa] PERIOD apart; the rod rests under the first.
    """
    prediction = RodPrediction(CosseratRod(robot, INTERVALS), single_precision=False)
    chambers = prediction.input_size
    gains = chamber_names(PRESSURE_GAIN, chambers)
    offsets = chamber_names(PRESSURE_OFFSET, chambers)
    names = (*prediction.parameter_names, *gains, *offsets)
    # a lane each, and the unchanged one last
    changes = _STEP * np.eye(len(names) + 1, len(names))
    rod = len(prediction.parameter_names)
    parameters = prediction.nominal_parameters * (1.0 + changes[:, :rod])
    gain, offset = 1.0 + changes[:, rod : rod + chambers], changes[:, rod + chambers :]

    def seen(row: int) -> np.ndarray:
        return gain * readings[row] + OFFSET_UNIT * offset

    lanes = zip(seen(0), parameters, strict=True)
    states = np.array([prediction.equilibrium(*lane) for lane in lanes])
    matrix = np.zeros((len(names), len(names)))
    for row in range(1, len(readings)):
        states = prediction.step(states, seen(row - 1), seen(row), parameters, PERIOD)
        tips = prediction.tip_poses(states, parameters)[:, :, 3]
        slopes = (tips[:-1] - tips[-1]) / _STEP
        matrix += slopes @ slopes.T
    return Information(names, matrix / EstimatorSettings().tip_position_noise ** 2)


def lag_information(lag: PressureLag, motion: Motion) -> Information:
    """Of pole and steady ratio of the lag, one tick ahead from noisy readings."""
    before, command = motion.readings[:-1].ravel(), motion.commands[:-1].ravel()
    decay, ratio = np.exp(-lag.pole * PERIOD), lag.gain / lag.pole
    by_pole = lag.pole * PERIOD * decay * (ratio * command - before)
    slopes = np.stack([by_pole, (1.0 - decay) * ratio * command])
    return Information(LAG, slopes @ slopes.T / (_PRESSURE_NOISE**2 * (1.0 + decay**2)))
