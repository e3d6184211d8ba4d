"""The surrogate for candidates that are tensors on its device."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from softcr_models.cuda.device_model import Moment
from softcr_models.errors import UserError
from softcr_models.surrogate.tip_poses import TipPoses

if TYPE_CHECKING:
    from softcr_models.surrogate.prediction import SurrogatePrediction

_PERIOD_TOLERANCE = 1e-7  # [s]: 0.1 us moves nothing by a micrometre


class DeviceNetwork:
    """A `DeviceModel` of a trained network with shared shapes, for steps of its own period.

    It predicts over the delay on the device, too.

    Args:
        model: the surrogate, on its device.
        period: of a tick [s].
        step: from one predicted state to the next [s].

    Raises:
        UserError: the network says its shapes itself, or was trained for another period.
    """

    def __init__(self, model: "SurrogatePrediction", period: float, step: float) -> None:
        network = model.network
        if model.folded is None:
            raise UserError(
                "the network says the shapes of its ansatz itself: train one with shared shapes"
            )
        for name, length in (("period", period), ("predicted step", step)):
            if abs(network.period - length) > _PERIOD_TOLERANCE:
                raise UserError(
                    f"{name} {length:.6g} s: the network was trained for {network.period:.6g} s"
                )
        self.device = model.device
        self._model, self._folded = model, model.folded
        self._poses = TipPoses(model.rod, network.mean, network.decoder)
        self._compliance = model.parameter_names.index(TipPoses.parameter)

    def shapes(self, horizon: int, longest_delay: int) -> dict[str, tuple[int, ...]]:
        model = self._model
        return {
            "state": (model.state_size,),
            "approach": (longest_delay + 1, model.input_size),
            "delay": (1,),
            "parameters": (1, len(model.parameter_names)),
            "compliance": (),
        }

    def told(self, moment: Moment) -> dict[str, np.ndarray]:
        model, parameters = self._model, moment.parameters[None]
        model.range.check(parameters)
        return {
            "state": moment.present_state,
            "approach": moment.approach,
            "delay": np.array([moment.delay]),
            "parameters": parameters * model.factors,
            "compliance": parameters[0, self._compliance],
        }

    def begun(self, told: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        """See DeviceModel: coordinates (1, nx) when the optimised commands begin."""
        if self.device.type == "cpu":
            # numba's parallel loops change the number of threads of the pool they share with torch
            torch.set_num_threads(self._model.threads)
        now = self._model.network.encode(told["state"][None])
        levels = told["approach"][:, None]
        later = self._folded.rollout(now, levels[:-1], levels[1:], told["parameters"])
        return {**told, "start": later[:, 0].index_select(0, told["delay"].long() - 1)}

    def futures(
        self, begun: Mapping[str, torch.Tensor], readings: torch.Tensor
    ) -> "_NetworkFutures":
        levels = readings.transpose(0, 1)
        steps = self._folded.rollout(begun["start"], levels[:-1], levels[1:], begun["parameters"])
        return _NetworkFutures(self._model, self._poses, steps.transpose(0, 1), begun["compliance"])


class _NetworkFutures:
    """`DeviceFutures` of coordinates (B, N, nx)."""

    def __init__(
        self,
        model: "SurrogatePrediction",
        poses: TipPoses,
        coordinates: torch.Tensor,
        compliance: torch.Tensor,
    ) -> None:
        self._network, self._poses = model.network, poses
        self._coordinates, self._compliance = coordinates, compliance

    @cached_property
    def states(self) -> torch.Tensor:
        return self._network.decode(self._coordinates)

    @cached_property
    def tip_poses(self) -> torch.Tensor:
        poses = self._poses(self._coordinates.flatten(0, 1), self._compliance)
        return poses.view(*self._coordinates.shape[:2], 3, 4)
