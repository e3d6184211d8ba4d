"""How far a network is from the rod it stands for: free-running motions, never put right."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.spatial.transform import Rotation

from softcr_learning.surrogate.sampling import (
    ParameterRange,
    Trajectories,
    draw_levels,
    draw_parameters,
    signal_of,
    simulate,
    step_pieces,
)
from softcr_learning.surrogate.signals import Levels
from softcr_learning.surrogate.validation import ABSURD, free_run, free_run_with_rates, told_of
from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction
from softcr_models.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.parameters import PARAMETERS
from softcr_models.rod.state import RodState
from softcr_models.surrogate import files
from softcr_models.surrogate.ansatz import PIECES
from softcr_models.surrogate.card import Card, differing_field
from softcr_models.surrogate.ddpinn import DDPINN

# family, highest pressure [Pa] over the robot's limit; ten seconds each
MOTIONS = {
    "smooth 70 %": ("published", 0.7),
    "smooth 100 %": ("smooth", 1.0),
    "lagged steps 100 %": ("lagged_steps", 1.0),
}
HORIZONS = [1, 2, 4, 8, 16, 30, 70, 150, 300, 1000]
FINER = 20  # intervals of the finer rod
TICKS = 700  # of a motion: ten seconds
# published (Table IV), must, goal; tip, rotation, force, moment
ASKED: dict[str, tuple[tuple[float | None, float | None, float | None], ...]] = {
    "smooth 70 %": (
        (0.549, 0.27, 0.10),
        (0.0063, 0.003, None),
        (0.259, 0.06, None),
        (2.03, 1.0, None),
    ),
    "smooth 100 %": ((None, 0.55, 0.25), *3 * ((None, None, None),)),
    "lagged steps 100 %": ((None, 0.9, 0.5), *3 * ((None, None, None),)),
}
QUANTITIES = (
    ("tip position", "mm", "position_mm"),
    ("tip rotation", "rad", "rotation_rad"),
    ("base force", "N", "force_n"),
    ("base moment", "N mm", "moment_nmm"),
)
COMPLIANCE = {"bending_compliance": ParameterRange(0.8, 1.2)}
_WRENCH_EVERY = 5  # ticks: wrenches are computed one by one
NOISE = 0.05  # of each state's spread, as sigma points have


def load_network(robot: Robot, path: str) -> tuple[DDPINN, Card]:
    """The network at a path without ending; empty for the robot's shipped one.

    Raises:
        UserError: it cannot be read, or was trained for another robot.
    """
    network, card = files.load(path or robot.name)
    field = differing_field(card, robot)
    if field is not None:
        raise UserError(f"network of {card.robot}: trained for another {field} than {robot.name}")
    return network, card


@dataclass(frozen=True)
class Deviation:
    """Distances from the rod: mean and standard deviation over all ticks and motions.

    Attributes:
        position_mm: of the tip.
        rotation_rad: angle between the tips' orientations.
        force_n, moment_nmm: of the base wrench that the sensor sees.
    """

    position_mm: tuple[float, float]
    rotation_rad: tuple[float, float]
    force_n: tuple[float, float]
    moment_nmm: tuple[float, float]


class Verification:
    """A network beside the rod of the same robot and grid.

    Args:
        rod: whose states the network's are.
        network: to be judged.
        count: motions per family.
        ticks: of a motion.
        seed: of motions and compliances; none of the training's.
    """

    def __init__(
        self, rod: CosseratRod, network: DDPINN, count: int = 20, ticks: int = 700, seed: int = 77
    ) -> None:
        self.rod, self.network = rod, network
        self.count, self.ticks, self.seed = count, ticks, seed
        self._exact = RodPrediction(rod, single_precision=False)

    def motions(self, name: str) -> Trajectories:
        """The rod's motions of a family of MOTIONS, compliance +-20 % from motion to motion."""
        family, part = MOTIONS[name]
        return self._simulated(family, part, self.count, self.ticks, list(MOTIONS).index(name))

    def table(self, motions: Trajectories) -> tuple[Deviation, np.ndarray]:
        """Table IV for one family, and the network's states (B, T, nx).

        Where a motion leaves the numbers that a rod can have, every distance is infinite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            states, rates = free_run_with_rates(self.network, motions)
        if not (np.abs(states) < ABSURD).all():
            return Deviation(*4 * ((np.inf, 0.0),)), states
        return self.deviation(states, rates, motions), states

    def deviation(self, states: np.ndarray, rates: np.ndarray, motions: Trajectories) -> Deviation:
        """Of states and their rates (B, T, nx) from the rod's.

        The base wrench is x2 + D_tau x2' above the jump (3): the rod's own rate on its side, the
        ansatz's on the network's, which is twice as close as the rod's rate at the network's state.
        """
        ticks, true = states.shape[1], motions.states[:, 1:]
        parameters = np.repeat(motions.parameters, ticks, axis=0)
        ours, theirs = self._poses(states, parameters), self._poses(true, parameters)
        position = np.linalg.norm(ours[:, :, 3] - theirs[:, :, 3], axis=1)
        turned = Rotation.from_matrix(ours[:, :, :3]).inv() * Rotation.from_matrix(theirs[:, :, :3])
        some = slice(None, None, _WRENCH_EVERY)
        pressures = motions.levels.end[:, :ticks][:, some].reshape(-1, self.rod.input_size)
        rows = parameters.reshape(len(states), ticks, -1)[:, some].reshape(len(pressures), -1)
        wrench = self._told_wrenches(states[:, some], rates[:, some], pressures, rows)
        wrench -= self._wrenches(true[:, some], pressures, rows)
        return Deviation(
            _mean_and_spread(1e3 * position),
            _mean_and_spread(turned.magnitude()),
            _mean_and_spread(np.linalg.norm(wrench[:, :3], axis=1)),
            _mean_and_spread(1e3 * np.linalg.norm(wrench[:, 3:], axis=1)),
        )

    @torch.no_grad()
    def inside_step(self, motions: Trajectories) -> list[float]:
        """Mean tip distance [mm] at the marks of single steps from the rod's own states."""
        network = self.network
        ticks = motions.levels.begin.shape[1]
        before = torch.from_numpy(motions.states[:, :-1]).flatten(0, 1)
        told = self._told(motions).flatten(0, 1)
        parameters = np.repeat(motions.parameters, ticks, axis=0)
        result = []
        for mark in range(1, PIECES + 1):
            time = torch.tensor(mark * network.period / PIECES)
            ours = network.decode(network.at(network.encode(before), told, time)[0]).numpy()
            true = motions.inner[:, :, mark - 1] if mark < PIECES else motions.states[:, 1:]
            result.append(float(self._tip_distance(ours, true.reshape(len(ours), -1), parameters)))
        return result

    @torch.no_grad()
    def from_noisy_states(self, motions: Trajectories) -> float:
        """Mean tip distance [mm] after one step from states with NOISE, from the rod's answer."""
        rng = np.random.default_rng([self.seed, 5])
        rows = _every(motions.states[:, :-1], 10)
        spread = motions.states.reshape(-1, self.rod.state_size).std(axis=0)
        states = rows + NOISE * spread * rng.standard_normal(rows.shape)
        begin, end = _every(motions.levels.begin, 10), _every(motions.levels.end, 10)
        per_motion = len(rows) // len(motions.states)
        parameters = np.repeat(motions.parameters, per_motion, axis=0)
        true = step_pieces(self.rod, states, begin, end, parameters, self.network.period)[:, -1]
        network = self.network
        told = network.tell(*map(_tensor, (begin, end, parameters)))
        coordinates = network.encode(torch.tensor(states, dtype=torch.float32))
        ours = network.decode(network.advance(coordinates, told)).numpy()
        return float(self._tip_distance(ours, true, parameters))

    def over_horizon(self, motions: Trajectories, horizons: list[int]) -> list[float]:
        """Mean tip distance [mm] after so many steps from true states all over the motions."""
        result = []
        for horizon in horizons:
            distances = []
            starts = range(0, max(1, self.ticks - horizon + 1), max(1, horizon, self.ticks // 10))
            for start in starts:
                rows = slice(start, min(start + horizon, self.ticks))
                levels = Levels(motions.levels.begin[:, rows], motions.levels.end[:, rows])
                part = Trajectories(
                    motions.states[:, start:], motions.inner, levels, motions.parameters
                )
                ours = free_run(self.network, part)[:, -1]
                true = motions.states[:, rows.stop]
                distances.append(self._tip_distance(ours, true, motions.parameters))
            result.append(float(np.mean(distances)))
        return result

    def long_motions(self, family: str, count: int, ticks: int) -> tuple[int, float]:
        """How many of `count` free-running motions stay bounded, and the largest coordinate.

        Bounded: every coordinate below what the linear part and the hidden layers can reach; a
        finite number alone is no test.
        """
        motions = self._unsimulated(family, count, ticks)
        network = self.network
        with torch.no_grad():
            told = self._told(motions)
            coordinates = network.encode(torch.zeros(count, self.rod.state_size))
            largest = torch.zeros(count)
            for tick in range(ticks):
                coordinates = network.advance(coordinates, told[:, tick])
                largest = torch.maximum(largest, coordinates.abs().amax(dim=1))
        good = torch.isfinite(largest) & (largest < 500.0)
        return int(good.sum()), float(largest.max())

    def map(
        self, pressures: np.ndarray, compliances: np.ndarray, directions: int, ticks: int
    ) -> np.ndarray:
        """(P, C) mean tip distance [mm] in free running circles up to a pressure, at a compliance.

        Args:
            pressures: (P,) [Pa] highest of the chambers; compliances: (C,) factors.
            directions: motions per cell; ticks: of a motion.
        """
        cells = np.empty((len(pressures), len(compliances)))
        for row, pressure in enumerate(pressures):
            signal = signal_of(self.rod.robot, ticks, self.network.period, float(pressure))
            rng = np.random.default_rng([self.seed, 6, row])
            levels = draw_levels({"smooth": 1.0}, signal, directions, rng)
            for column, factor in enumerate(compliances):
                parameters = np.repeat(self.rod.nominal_parameters[None], directions, axis=0)
                parameters[:, 0] *= factor
                motions = simulate(self.rod, levels, parameters, self.network.period)
                ours = free_run(self.network, motions)
                rows = np.repeat(parameters, ticks, axis=0)
                cells[row, column] = self._tip_distance(
                    ours.reshape(-1, self.rod.state_size),
                    motions.states[:, 1:].reshape(-1, self.rod.state_size),
                    rows,
                )
        return cells

    def from_finer_rod(
        self, motions: Trajectories, states: np.ndarray, intervals: int
    ) -> tuple[float, float]:
        """Mean tip distance [mm] from a finer rod: of the network, and of the rod it stands for."""
        fine = CosseratRod(self.rod.robot, intervals)
        finer = simulate(fine, motions.levels, motions.parameters, self.network.period)
        truth = RodPrediction(fine, single_precision=False)
        parameters = np.repeat(motions.parameters, states.shape[1], axis=0)
        flat = finer.states[:, 1:].reshape(-1, fine.state_size).astype(float)
        tips = truth.tip_poses(flat, parameters)[:, :, 3]
        result = []
        for candidate in (states, motions.states[:, 1:]):
            ours = self._poses(candidate, parameters)[:, :, 3]
            result.append(float(1e3 * np.linalg.norm(ours - tips, axis=1).mean()))
        return result[0], result[1]

    # -- inner workings ---------------------------------------------------------------------------

    def _simulated(
        self, family: str, part: float, count: int, ticks: int, stream: int
    ) -> Trajectories:
        made = self._unsimulated(family, count, ticks, part, stream)
        return simulate(self.rod, made.levels, made.parameters, self.network.period)

    def _unsimulated(
        self, family: str, count: int, ticks: int, part: float = 1.0, stream: int = 99
    ) -> Trajectories:
        rng = np.random.default_rng([self.seed, stream])
        top = part * self.rod.robot.pressure_limits.maximum
        signal = signal_of(self.rod.robot, ticks, self.network.period, top)
        levels = draw_levels({family: 1.0}, signal, count, rng)
        parameters = draw_parameters(
            self.rod.nominal_parameters, PARAMETERS, COMPLIANCE, count, rng
        )
        empty = np.zeros((count, 1, self.rod.state_size), np.float32)
        return Trajectories(empty, empty[:, :, None], levels, parameters)

    def _told(self, motions: Trajectories) -> torch.Tensor:
        return told_of(self.network, motions)

    def _poses(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        flat = np.ascontiguousarray(states.reshape(-1, self.rod.state_size), dtype=float)
        return self._exact.tip_poses(flat, parameters)

    def _tip_distance(self, ours: np.ndarray, true: np.ndarray, parameters: np.ndarray) -> float:
        a = self._poses(ours, parameters)[:, :, 3]
        return 1e3 * np.linalg.norm(a - self._poses(true, parameters)[:, :, 3], axis=1).mean()

    def _told_wrenches(
        self, states: np.ndarray, rates: np.ndarray, pressures: np.ndarray, parameters: np.ndarray
    ) -> np.ndarray:
        """(S, 6) as `CosseratRod.base_wrench`, from states and rates (..., nx)."""
        relaxation = self.rod.body.relaxation * parameters[:, 2:3]
        elastic, elastic_rate = (
            RodState(values.astype(float)).wrenches[..., 0, :].reshape(-1, 6)
            for values in (states, rates)
        )
        wrenches = elastic + relaxation * elastic_rate
        wrenches -= pressures @ self.rod.robot.actuation_matrix.T
        wrenches[:, 3:] += np.cross([0.0, 0.0, self.rod.base_height], wrenches[:, :3])
        return wrenches

    def _wrenches(
        self, states: np.ndarray, pressures: np.ndarray, parameters: np.ndarray
    ) -> np.ndarray:
        flat = states.reshape(-1, self.rod.state_size).astype(float)
        return np.array(
            [
                self.rod.base_wrench(state, pressure, row)
                for state, pressure, row in zip(flat, pressures, parameters, strict=True)
            ]
        )


def _every(values: np.ndarray, ticks: int) -> np.ndarray:
    return np.ascontiguousarray(values[:, ::ticks].reshape(-1, values.shape[-1]), dtype=float)


def _mean_and_spread(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std())


def _tensor(values: np.ndarray) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)
