"""The surrogate as a prediction model, beside the exact rod."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field

from softcr_models.devices import DeviceName, resolve_device
from softcr_models.errors import UserError
from softcr_models.robots.robot import Robot
from softcr_models.rod.cosserat_rod import CosseratRod
from softcr_models.rod_model.rod_model import RodModel, rod_robot
from softcr_models.surrogate import files
from softcr_models.surrogate.card import Card, differing_field
from softcr_models.surrogate.ddpinn import DDPINN
from softcr_models.surrogate.device_network import DeviceNetwork
from softcr_models.surrogate.folded import FoldedNetwork
from softcr_models.surrogate.freed_memory import keep_freed_memory

_ROUNDING = 1e-6  # of a bound: the network's own numbers are float32


class ParameterRange:
    """The parameters that a network was trained for. It computes with the nearest inside.

    Attributes:
        outside: rows of parameters, of all that were checked, with one outside.
    """

    def __init__(self, names: Sequence[str], low: np.ndarray, high: np.ndarray) -> None:
        """
        Args:
            names: of P parameters.
            low, high: (P,) smallest and largest, in the unit of each.
        """
        self._names, self._low, self._high = tuple(names), low, high
        self._least, self._most = (1.0 - _ROUNDING) * low, (1.0 + _ROUNDING) * high
        self.outside = 0
        self._asked: np.ndarray = low

    def check(self, parameters: np.ndarray) -> None:
        """Counts the rows of (B, P) parameters that are outside."""
        wrong = (parameters < self._least) | (parameters > self._most)
        self.outside += int(np.count_nonzero(wrong.any(axis=1)))
        self._asked = parameters.mean(axis=0)

    def warnings(self) -> list[str]:
        """A line for each parameter whose mean over the rows checked last is outside."""
        wrong = (self._asked < self._least) | (self._asked > self._most)
        return [
            f"{self._names[p]} {self._asked[p]:.4g}: the network was trained for "
            f"{self._low[p]:.4g} to {self._high[p]:.4g}, and computes with the nearest of them"
            for p in np.flatnonzero(wrong)
        ]


# A step that differs from the period by less is taken for it: 0.1 us moves nothing by a micrometre.
_SAME_TIME = 1e-7


class SurrogateSettings(BaseModel):
    """Which network, and where it computes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    network: str = Field(
        default="",
        description="path of the network's files without ending; empty: the robot's shipped one",
    )
    device: DeviceName = Field(
        default="cpu", description="device that computes; auto: a GPU if any"
    )
    intervals: int | None = Field(
        default=None,
        ge=1,
        description="number of intervals of the rod, which the network must have been trained for",
    )


class SurrogatePrediction(RodModel):
    """A trained network as a model; see `Model` for the methods.

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
        range: of the parameters that the network was trained for; the network computes with the
            nearest inside.
    """

    Settings = SurrogateSettings
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
        super().__init__(CosseratRod(robot, card.intervals))
        self.threads = threads
        self.folded = FoldedNetwork(network) if network.architecture.shapes == "shared" else None
        # a damping factor counts from the robot's own relaxation times
        self.factors = np.ones(len(self.parameter_names))
        self.factors[2] = robot.relaxation_times[0] / card.relaxation_times[0]
        self.range = ParameterRange(
            self.parameter_names,
            np.array(network.inputs.low) / self.factors,
            np.array(network.inputs.high) / self.factors,
        )

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

    @classmethod
    def of_robot(
        cls, robot: Any, settings: SurrogateSettings | None = None
    ) -> "SurrogatePrediction":
        """The network of a robot.

        Raises:
            UserError: the robot is not a rod driven by pressure; there is no such network, or it is
                for another robot or number of intervals; a device that is not there.
        """
        own = settings or SurrogateSettings()
        chosen = cls.load(rod_robot(robot, "ddpinn"), own.network, own.device)
        if own.intervals not in (None, chosen.rod.intervals):
            raise UserError(
                f"intervals: {own.intervals}, but the network of {robot.name} was trained for "
                f"{chosen.rod.intervals}"
            )
        return chosen

    @property
    def on_gpu(self) -> bool:
        return self.device.type == "cuda"

    def on_device(self, period: float, step: float) -> DeviceNetwork:
        """See RodModel; on the processor, too."""
        return DeviceNetwork(self, period, step)

    def warm_up(self) -> None:
        """See RodModel; the network also for a step of its own period."""
        super().warm_up()
        states, levels = np.zeros((2, self.state_size)), np.zeros((2, 3, self.input_size))
        period, parameters = self.network.period, self.nominal_parameters
        self.step(states, levels[:, 0], levels[:, 1], parameters[None], period)
        self.rollout_tips(states[0], levels, parameters, period)

    def counts(self) -> dict[str, int]:
        """See SelfReport: rows of parameters outside the network's range."""
        return {"outside": self.range.outside}

    def warnings(self) -> list[str]:
        """See SelfReport: which parameters were outside when it was asked last."""
        return self.range.warnings()

    @torch.inference_mode()
    def _advance(self, states, levels, parameters, dt, *, tips, precise):
        """See RodModel; what the network gives is float32."""
        coordinates = self._coordinates(states, levels, parameters, dt)
        rolled = self.network.decode(coordinates).cpu().numpy()
        if tips:
            ticks, batch, size = rolled.shape
            poses = self.tip_poses(rolled.reshape(-1, size), parameters)
            return poses.reshape(ticks, batch, 3, 4).swapaxes(0, 1)
        by_candidate = rolled.swapaxes(0, 1)
        return by_candidate.astype(float) if precise else by_candidate

    @torch.inference_mode()
    def _coordinates(
        self, states: np.ndarray, pressures: np.ndarray, parameters: np.ndarray, dt: float
    ) -> torch.Tensor:
        """Coordinates (T, B, nx) after each step; states and parameters (B, ...) or (1, ...)."""
        # numba's parallel loops change the number of threads of the pool they share with torch
        torch.set_num_threads(self.threads)
        network, period = self.network, self.network.period
        pieces = max(1, math.ceil((dt - _SAME_TIME) / period))
        piece = dt / pieces
        levels = self._tensor(pressures)
        self.range.check(parameters)
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
