"""The surrogate as a prediction model, beside the exact rod."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from softcr_models.devices import resolve_device
from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction
from softcr_models.robot import Robot
from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.surrogate import files
from softcr_models.surrogate.card import Card, differing_field
from softcr_models.surrogate.ddpinn import DDPINN
from softcr_models.surrogate.folded import FoldedNetwork
from softcr_models.surrogate.freed_memory import keep_freed_memory

# A step that differs from the period by less is taken for it: 0.1 us moves nothing by a micrometre.
_SAME_TIME = 1e-7


class SurrogatePrediction:
    """A trained network as a prediction model; see `PredictionModel` for the methods.

    States stay in the network's coordinates over a rollout. A step may be shorter than the period
    the network was trained for: the ansatz is evaluated where it ends. A longer one is divided.
    Tip poses and equilibria are the exact rod's.

    Attributes:
        network: on its device.
        rod: of the robot, with the network's number of intervals.
        folded: the network for steps of its own period; None if it says its own shapes.
        approximate: its errors are systematic and its rollouts single precision; controllers have
            other defaults on such a model.
        factors: (P,) by which parameters are multiplied before the network is told them.
    """

    parameter_names: tuple[str, ...] = stepper.PARAMETERS
    approximate = True

    def __init__(
        self,
        robot: Robot,
        network: DDPINN,
        card: Card,
        device: str = "auto",
        threads: int = 1,
    ) -> None:
        """A prediction model of `robot` by a network trained for it.

        Args:
            robot: compliance, tip mass and damping may differ from those of the training: the
                network is told them.
            network, card: as loaded.
            device: "auto", "cpu" or "cuda".
            threads: of torch on a CPU; two on busy cores stall for 100 ms.

        Raises:
            UserError: the network was trained for another robot, or the device cannot be used.
        """
        field = differing_field(card, robot)
        if field is not None:
            raise UserError(
                f"surrogate of {card.robot}: trained for a robot with another {field} than "
                f"{robot.name}: train again with `softcr train --robot {robot.name}`"
            )
        keep_freed_memory()
        self.device = torch.device(resolve_device(device, "torch"))
        self.network = network.on(self.device)
        self.rod = CosseratRod(robot, card.intervals)
        self.threads = threads
        self.folded = FoldedNetwork(network) if network.architecture.shapes == "shared" else None
        self._exact = RodPrediction(self.rod)
        self.state, self.inputs = self._exact.state, self._exact.inputs
        self.parameters, self.outputs = self._exact.parameters, self._exact.outputs
        self.state_size = self.rod.state_size
        self.input_size = self.rod.input_size
        self.nominal_parameters = self.rod.nominal_parameters
        self.state_scale = self._exact.state_scale
        # a damping factor counts from the robot's own relaxation times
        self.factors = np.ones(len(self.parameter_names))
        self.factors[2] = robot.relaxation_times[0] / card.relaxation_times[0]

    @classmethod
    def load(
        cls,
        robot: Robot,
        name_or_path: str | Path = "",
        device: str = "auto",
        threads: int = 1,
    ) -> "SurrogatePrediction":
        """The shipped network of a robot, or the one at a path.

        Raises:
            UserError: there is none, its files are broken, or it is another robot's.
        """
        network, card = files.load(name_or_path or robot.name)
        return cls(robot, network, card, device, threads)

    def step(
        self,
        states: np.ndarray,
        pressures_begin: np.ndarray,
        pressures_end: np.ndarray,
        parameters: np.ndarray,
        dt: float,
    ) -> np.ndarray:
        """See PredictionModel; float64."""
        pressures = np.stack((pressures_begin, pressures_end), axis=1)
        coordinates = self._rolled(states, pressures, parameters, dt)[-1]
        with torch.inference_mode():
            return self.network.decode(coordinates).cpu().numpy().astype(float)

    def rollout(
        self, state: np.ndarray, pressures: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """See PredictionModel; float32."""
        return self._rolled_states(state, pressures, parameters, dt).swapaxes(0, 1)

    def rollout_tips(
        self, state: np.ndarray, pressures: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """See PredictionModel; float32."""
        states = self._rolled_states(state, pressures, parameters, dt)
        ticks, batch, size = states.shape
        poses = self.tip_poses(states.reshape(-1, size), parameters[None])
        return poses.reshape(ticks, batch, 3, 4).swapaxes(0, 1)

    def tip_poses(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """See PredictionModel; of the states' float type."""
        return self._exact.tip_poses(states, parameters)

    def observe(
        self,
        names: Sequence[str],
        states: np.ndarray,
        inputs: np.ndarray | None,
        parameters: np.ndarray,
    ) -> dict[str, np.ndarray]:
        """See Model; of the exact rod."""
        return self._exact.observe(names, states, inputs, parameters)

    def equilibrium(self, pressures: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """See PredictionModel."""
        return self.rod.equilibrium(pressures, parameters)

    def warm_up(self) -> None:
        """What a control loop may call, once."""
        states, pressures = np.zeros((2, self.state_size)), np.zeros((2, self.input_size))
        parameters = np.repeat(self.nominal_parameters[None], 2, axis=0)
        for dt in (self.network.period, 0.9 * self.network.period):
            self.step(states, pressures, pressures, parameters, dt)
        self.rollout_tips(states[0], np.zeros((2, 3, self.input_size)), parameters[0], dt)
        self.tip_poses(states, parameters)
        self.rod.equilibrium(pressures[0])
        self.rod.tip_pose(states[0])
        self.rod.base_wrench(states[0], pressures[0])

    @torch.inference_mode()
    def _rolled_states(
        self, state: np.ndarray, pressures: np.ndarray, parameters: np.ndarray, dt: float
    ) -> np.ndarray:
        """(T, B, nx) float32 after each step from one state."""
        steps = self._rolled(state[None], pressures, parameters[None], dt)
        return self.network.decode(steps).cpu().numpy()

    @torch.inference_mode()
    def _rolled(
        self, states: np.ndarray, pressures: np.ndarray, parameters: np.ndarray, dt: float
    ) -> torch.Tensor:
        """Coordinates (T, B, nx) after each step; states and parameters (B, ...) or (1, ...)."""
        # numba's parallel loops change the number of threads of the pool they share with torch
        torch.set_num_threads(self.threads)
        network, period = self.network, self.network.period
        pieces = max(1, math.ceil((dt - _SAME_TIME) / period))
        piece = dt / pieces
        levels = self._tensor(pressures)
        told_parameters = self._tensor(parameters * self.factors)
        coordinates = network.encode(self._tensor(states))
        whole = pieces == 1 and abs(piece - period) <= _SAME_TIME
        if whole and self.folded is not None and network.compute_type == torch.float32:
            ticks = levels.transpose(0, 1)
            return self.folded.rollout(coordinates, ticks[:-1], ticks[1:], told_parameters)
        known = network.tell_parameters(told_parameters).expand(len(levels), -1)
        coordinates = coordinates.expand(len(levels), -1)
        time = torch.tensor(piece, device=self.device)
        rolled = []
        for tick in range(levels.shape[1] - 1):
            first, change = levels[:, tick], (levels[:, tick + 1] - levels[:, tick]) / pieces
            for part in range(pieces):
                begin = first + part * change
                # a slope is told by where it would end after a whole period
                acting = network.tell_pressures(begin, begin + period / piece * change)
                told = torch.cat((acting, known), dim=-1)
                coordinates = network.at(coordinates, told, time)[0]
            rolled.append(coordinates)
        return torch.stack(rolled)

    def _tensor(self, values: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(np.asarray(values, dtype=np.float32), device=self.device)
