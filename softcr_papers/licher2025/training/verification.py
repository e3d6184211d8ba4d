"""How far a network is from the rod it stands for: free-running motions, never put right."""

import numpy as np
import torch
from scipy.spatial.transform import Rotation

from softcr_models.errors import UserError
from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod.description import rod_inputs
from softcr_models.rod.state import RodState
from softcr_models.surrogate import files
from softcr_models.surrogate.ansatz import PIECES
from softcr_models.surrogate.card import Card, differing_field
from softcr_models.surrogate.ddpinn import DDPINN
from softcr_papers.licher2025.training.sampling import (
    Trajectories,
    judged_inputs,
    simulate,
    step_pieces,
)
from softcr_papers.licher2025.training.training_data import as_tensor, told_of
from softcr_papers.licher2025.training.validation import (
    diverged,
    free_run,
    mean_tip_distance,
    run_freely,
    tips,
)

# family, highest inputs over the robot's limit
MOTIONS = {
    "smooth 70 %": ("published", 0.7),
    "smooth 100 %": ("smooth", 1.0),
    "lagged steps 100 %": ("lagged_steps", 1.0),
}
# what is compared, and its unit: the angle between the tips' orientations; the wrench that the
# sensor below the base sees
QUANTITIES = {"tip position": "mm", "tip rotation": "rad", "base force": "N", "base moment": "N mm"}
FINER = 20  # intervals of the finer rod
_WRENCH_EVERY = 5  # ticks: wrenches are computed one by one
_NOISY_EVERY = 10  # ticks
NOISE = 0.05  # of each state's spread, as sigma points have
# no coordinate comes near it: what the linear part and the hidden layers can reach is below
_BOUND = 500.0


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


class Verification:
    """A network beside the rod of the same robot and grid.

    Args:
        rod: whose states the network's are.
        network: to be judged.
        count: motions per family.
        ticks: of a motion; 700 are ten seconds.
        seed: of motions and compliances; none of the training's.
    """

    def __init__(
        self, rod: CosseratRod, network: DDPINN, count: int = 20, ticks: int = 700, seed: int = 77
    ) -> None:
        self.rod, self.network = rod, network
        self.count, self.ticks, self.seed = count, ticks, seed

    def motions(self, name: str) -> Trajectories:
        """The rod's motions of a family of MOTIONS, compliance +-20 % from motion to motion."""
        family, part = MOTIONS[name]
        highest = part * rod_inputs(self.rod.robot).high
        seed, period = [self.seed, list(MOTIONS).index(name)], self.network.period
        inputs = judged_inputs(self.rod, family, self.count, self.ticks, period, seed, highest)
        return simulate(self.rod, *inputs, period)

    def table(self, motions: Trajectories) -> tuple[dict[str, tuple[float, float]], np.ndarray]:
        """Table IV for one family, and the network's states (B, T, nx).

        Mean and standard deviation over all ticks and motions of the distances from the rod, by
        name of QUANTITIES. Where a motion is nothing that a rod can do, every distance is infinite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            states, rates = self._free_run_with_rates(motions)
        if diverged(states):
            return dict.fromkeys(QUANTITIES, (np.inf, 0.0)), states
        true, parameters = motions.states[:, 1:], motions.parameters
        a, b = tips(self.rod, states, parameters), tips(self.rod, true, parameters)
        turned = Rotation.from_matrix(a[:, :, :3]).inv() * Rotation.from_matrix(b[:, :, :3])
        wrench = self._wrench_errors(states, rates, motions)
        distances = (
            1e3 * np.linalg.norm(a[:, :, 3] - b[:, :, 3], axis=1),
            turned.magnitude(),
            np.linalg.norm(wrench[:, :3], axis=1),
            1e3 * np.linalg.norm(wrench[:, 3:], axis=1),
        )
        found = [(float(each.mean()), float(each.std())) for each in distances]
        return dict(zip(QUANTITIES, found, strict=True)), states

    @torch.no_grad()
    def inside_step(self, motions: Trajectories) -> list[float]:
        """Mean tip distance [mm] at the marks of single steps from the rod's own states."""
        network = self.network
        before = as_tensor(motions.states[:, :-1]).flatten(0, 1)
        told = told_of(network, motions).flatten(0, 1)
        result = []
        for mark in range(1, PIECES + 1):
            time = torch.tensor(mark * network.period / PIECES)
            ours = network.decode(network.at(network.encode(before), told, time)[0]).numpy()
            true = motions.inner[:, :, mark - 1] if mark < PIECES else motions.states[:, 1:]
            result.append(mean_tip_distance(self.rod, ours, true, motions.parameters))
        return result

    @torch.no_grad()
    def from_noisy_states(self, motions: Trajectories) -> float:
        """Mean tip distance [mm] after one step from states with NOISE, from the rod's answer."""
        rng = np.random.default_rng([self.seed, 5])
        size, network = self.rod.state_size, self.network
        rows = motions.states[:, :-1:_NOISY_EVERY].reshape(-1, size)
        spread = motions.states.reshape(-1, size).std(axis=0)
        states = rows + NOISE * spread * rng.standard_normal(rows.shape)
        begin, end = motions.levels[:, :, ::_NOISY_EVERY].reshape(2, len(rows), -1)
        parameters = np.repeat(motions.parameters, len(rows) // len(motions.states), axis=0)
        true = step_pieces(self.rod, states, begin, end, parameters, network.period)[:, -1]
        told = network.tell(*map(as_tensor, (begin, end, parameters)))
        ours = network.decode(network.advance(network.encode(as_tensor(states)), told)).numpy()
        return mean_tip_distance(self.rod, ours, true, parameters)

    def over_horizon(self, motions: Trajectories, horizons: list[int]) -> list[float]:
        """Mean tip distance [mm] after so many steps from true states all over the motions."""
        result = []
        for horizon in horizons:
            distances = []
            starts = range(0, max(1, self.ticks - horizon + 1), max(1, horizon, self.ticks // 10))
            for start in starts:
                stop, parameters = min(start + horizon, self.ticks), motions.parameters
                levels, states = motions.levels[:, :, start:stop], motions.states
                part = Trajectories(states[:, start:], motions.inner, levels, parameters)
                ours = free_run(self.network, part)[:, -1]
                distances.append(mean_tip_distance(self.rod, ours, states[:, stop], parameters))
            result.append(float(np.mean(distances)))
        return result

    def long_motions(self, family: str, count: int, ticks: int) -> tuple[int, float]:
        """How many of `count` free-running motions stay bounded, and the largest coordinate.

        Bounded: every coordinate below what the linear part and the hidden layers can reach; a
        finite number alone is no test.
        """
        period = self.network.period
        inputs = judged_inputs(self.rod, family, count, ticks, period, [self.seed, 99])
        rest = np.zeros((count, 1, self.rod.state_size), np.float32)
        largest = torch.zeros(count)
        for coordinates in run_freely(self.network, Trajectories(rest, rest, *inputs)):
            largest = torch.maximum(largest, coordinates.abs().amax(dim=1))
        good = torch.isfinite(largest) & (largest < _BOUND)
        return int(good.sum()), float(largest.max())

    def map(
        self, pressures: np.ndarray, compliances: np.ndarray, directions: int, ticks: int
    ) -> np.ndarray:
        """(P, C) mean tip distance [mm] in free running circles up to a pressure, at a compliance.

        Args:
            pressures: (P,) [Pa] highest of the chambers; compliances: (C,) factors.
            directions: motions per cell; ticks: of a motion.
        """
        cells, period = np.empty((len(pressures), len(compliances))), self.network.period
        for row, pressure in enumerate(pressures):
            seed = [self.seed, 6, row]
            levels, _ = judged_inputs(self.rod, "smooth", directions, ticks, period, seed, pressure)
            for column, factor in enumerate(compliances):
                parameters = np.repeat(self.rod.nominal_parameters[None], directions, axis=0)
                parameters[:, 0] *= factor
                motions = simulate(self.rod, levels, parameters, period)
                ours, true = free_run(self.network, motions), motions.states[:, 1:]
                cells[row, column] = mean_tip_distance(self.rod, ours, true, motions.parameters)
        return cells

    def from_finer_rod(self, motions: Trajectories, states: np.ndarray) -> tuple[float, float]:
        """Mean tip distance [mm] from a rod of FINER intervals: the network's, and its rod's."""
        fine = CosseratRod(self.rod.robot, FINER)
        parameters = motions.parameters
        finer = simulate(fine, motions.levels, parameters, self.network.period)
        truth = tips(fine, finer.states[:, 1:], parameters)[:, :, 3]
        ours, theirs = (
            tips(self.rod, each, parameters)[:, :, 3] for each in (states, motions.states[:, 1:])
        )
        network, rod = (
            1e3 * np.linalg.norm(each - truth, axis=1).mean() for each in (ours, theirs)
        )
        return float(network), float(rod)

    # -- inner workings ---------------------------------------------------------------------------

    @torch.no_grad()
    def _free_run_with_rates(self, motions: Trajectories) -> tuple[np.ndarray, np.ndarray]:
        """As `free_run`, and the ansatz's rates (B, T, nx) at the ends of the steps."""
        network = self.network
        told = told_of(network, motions)
        coordinates = network.encode(as_tensor(motions.states[:, 0]).to(told.device))
        end = told.new_full((), network.period)
        states, rates = [], []
        for tick in range(told.shape[1]):
            coordinates, rate = network.at(coordinates, told[:, tick], end)
            states.append(network.decode(coordinates))
            rates.append(rate @ network.decoder.T)
        return torch.stack(states, 1).cpu().numpy(), torch.stack(rates, 1).cpu().numpy()

    def _wrench_errors(
        self, states: np.ndarray, rates: np.ndarray, motions: Trajectories
    ) -> np.ndarray:
        """(S, 6) base wrench of states and their rates (B, T, nx), minus the rod's.

        It is x2 + D_tau x2' above the jump (3): the rod's own rate on its side, the ansatz's on the
        network's, which is twice as close as the rod's rate at the network's state. Tendons pull as
        in the straight rod.
        """
        rod, some = self.rod, slice(None, None, _WRENCH_EVERY)
        inputs = motions.levels[1, :, some]
        batch, ticks, _ = inputs.shape
        inputs = inputs.reshape(-1, rod.input_size)
        parameters = np.repeat(motions.parameters, ticks, axis=0)
        ours, ours_rate, true = (
            values[:, some].reshape(batch * ticks, -1).astype(float)
            for values in (states, rates, motions.states[:, 1:])
        )
        elastic, elastic_rate = (
            RodState(each, rod.segments).wrenches[:, 0] for each in (ours, ours_rate)
        )
        wrenches = elastic + rod.body.relaxation[0] * parameters[:, 2:3] * elastic_rate
        wrenches -= inputs @ rod.row_actuation[0].T
        wrenches[:, 3:] += np.cross([0.0, 0.0, rod.base_height], wrenches[:, :3])
        rows = zip(true, inputs, parameters, strict=True)
        return wrenches - np.array([rod.base_wrench(*row) for row in rows])
