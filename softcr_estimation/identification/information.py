"""Which parameters a motion tells: Fisher information of tip and inputs.

The tip of the exact rod is differentiated by each number the filter estimates beside the state:
with S(t) (3, P) along the motion and tip noise sigma, F = sum S^T S / sigma^2. 1 / sqrt(F_ii) is
what an unbiased filter could know of a number if all others were known, sqrt((F^-1)_ii) if none
were (Cramer and Rao); the eigenvector of the least eigenvalue is the combination that shows least.
The inputs' lag needs no rod: it follows from commands and readings.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from softcr_estimation.identification.stretches import PERIOD
from softcr_estimation.sensors.measurements import UNTOLD_NOISES
from softcr_models.chain.chain_model import ChainModel
from softcr_models.chain.pressure import PRESSURE_GAIN, PRESSURE_OFFSET, PressureLag, chamber_names
from softcr_models.identification.identifiable import CHAIN_SCALES
from softcr_models.model import Parameter
from softcr_models.prediction import RodPrediction
from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod

INTERVALS = 5
TOLD = 0.01
"""A number known as well as this (of itself; offsets: of their unit) counts as excited."""
PRESSURE_OFFSET_UNIT = 1e4  # [Pa]
TENSION_OFFSET_UNIT = 0.1  # of the highest tension
LAG = ("lag_pole", "lag_ratio")
_STEP = 1e-4  # of a number's unit, for differences
_INPUT_NOISE = 0.01  # of a reading, of the unit of offsets
_NOTHING, _TINY = 1e-12, np.finfo(float).tiny  # of the largest information: rounding


@dataclass(frozen=True, eq=False)
class Motion:
    """What was done.

    Attributes:
        readings: (T, m) inputs, a tick apart [Pa, N].
        commands: (T, m) [Pa, N]; row k is held from reading k to k + 1.
    """

    readings: np.ndarray
    commands: np.ndarray


@dataclass(frozen=True, eq=False)
class Information:
    """What a motion tells.

    Attributes:
        names: (P,) of the numbers.
        matrix: (P, P) Fisher information, each number in units of itself, offsets as in
            `offset_units`, numbers of a chain as in `chain_unit`.
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


def offset_units(robot: Robot) -> np.ndarray:
    """(m,) in which offsets of sensors are told: 10 kPa, or a tenth of the highest tension [N] or
    motor angle [rad]."""
    return np.array([
        PRESSURE_OFFSET_UNIT if each == "pressure" else TENSION_OFFSET_UNIT * limits.maximum
        for each, limits in zip(robot.quantities, robot.input_limits, strict=True)
    ])  # fmt: skip


def tip_information(robot: Robot, readings: np.ndarray) -> Information:
    """Of the rod's parameters, those of its chain, gains and offsets of the sensors of its inputs.

    The slopes are at the file's numbers. Of a stop's weight, what is a chamber's own is told
    against that of the first chamber.

    Args:
        robot: as its file has it.
        readings: (T, m) [Pa, N] PERIOD apart; the rod rests under the first.
    """
    rod = RodPrediction(CosseratRod(robot, INTERVALS), single_precision=False)
    model = rod if robot.pressure_chain is None else ChainModel(rod, robot.pressure_chain)
    inputs, units = model.input_size, offset_units(robot)
    told = [k for k, each in enumerate(model.parameters) if not each.name.endswith("_of_1")]
    own = tuple(model.parameters[k].name for k in told)
    names = (*own, *chamber_names(PRESSURE_GAIN, inputs), *chamber_names(PRESSURE_OFFSET, inputs))
    # a lane each, and the unchanged one last
    changes = _STEP * np.eye(len(names) + 1, len(names))
    parameters = np.tile(model.nominal_parameters, (len(changes), 1))
    of_chain = model.parameters[len(rod.parameters) :]
    scales = np.append(rod.nominal_parameters, [chain_unit(each) for each in of_chain])
    parameters[:, told] += changes[:, : len(told)] * scales[told]
    gain, offset = 1.0 + changes[:, len(told) :][:, :inputs], changes[:, len(told) + inputs :]
    seen = gain[:, None] * readings + (units * offset)[:, None]
    if (memory := model.inputs.memory) is not None:
        past = [memory.along(memory.begin(lane[0]), lane[None], PERIOD)[0] for lane in seen]
        seen = np.concatenate((seen, past), axis=2)
    lanes = zip(seen[:, 0], parameters, strict=True)
    states = np.array([model.equilibrium(*lane) for lane in lanes])
    matrix = np.zeros((len(names), len(names)))
    for begin, end in pairwise(np.ascontiguousarray(seen.swapaxes(0, 1))):
        states = model.step(states, begin, end, parameters, PERIOD)
        tips = model.tip_poses(states, parameters)[:, :, 3]
        slopes = (tips[:-1] - tips[-1]) / _STEP
        matrix += slopes @ slopes.T
    return Information(names, matrix / UNTOLD_NOISES["position_noise"] ** 2)


def chain_unit(parameter: Parameter) -> float:
    """In which a number of a chain is told: a hundred times what is worth knowing [its unit]."""
    return 10.0 * CHAIN_SCALES[parameter.unit]


def lag_information(lag: PressureLag, motion: Motion, units: np.ndarray) -> Information:
    """Of pole and steady ratio of the lag, one tick ahead from noisy readings.

    Args:
        lag: of all inputs.
        motion: with commands.
        units: (m,) see `offset_units`; readings have a hundredth of them as noise.
    """
    before, command = ((each[:-1] / units).ravel() for each in (motion.readings, motion.commands))
    decay, ratio = np.exp(-lag.pole * PERIOD), lag.gain / lag.pole
    by_pole = lag.pole * PERIOD * decay * (ratio * command - before)
    slopes = np.stack([by_pole, (1.0 - decay) * ratio * command])
    return Information(LAG, slopes @ slopes.T / (_INPUT_NOISE**2 * (1.0 + decay**2)))
