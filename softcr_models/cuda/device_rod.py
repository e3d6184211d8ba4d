"""The exact rod for controllers whose candidates are tensors on a GPU."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from softcr_models.cuda.device_model import Moment

if TYPE_CHECKING:
    from softcr_models.cuda.prediction import CudaRodPrediction


class DeviceRod:
    """A `DeviceModel` of the rod alone.

    The state when the optimised commands begin comes from the processor: there a step of one
    candidate is done before a kernel on the GPU has begun.

    Args:
        rod: on its GPU, in single precision.
        step: from one predicted state to the next [s].
    """

    def __init__(self, rod: "CudaRodPrediction", step: float) -> None:
        self.device = rod.device
        self._rod, self._step = rod, step

    def shapes(self, horizon: int, longest_delay: int) -> dict[str, tuple[int, ...]]:
        return {"start": (1, self._rod.state_size), "parameters": (1, len(self._rod.parameters))}

    def told(self, moment: Moment) -> dict[str, np.ndarray]:
        return {"start": moment.start_state(), "parameters": moment.parameters}

    def begun(self, told: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        return told

    def futures(self, begun: Mapping[str, torch.Tensor], readings: torch.Tensor) -> "_Futures":
        return _Futures(self._rod, begun["start"], readings, begun["parameters"], self._step)


class _Futures:
    """`DeviceFutures` of pressures that act, (B, N + 1, m)."""

    def __init__(
        self,
        rod: "CudaRodPrediction",
        start: torch.Tensor,
        acting: torch.Tensor,
        parameters: torch.Tensor,
        step: float,
    ) -> None:
        self._rod, self._asked = rod, (start, acting, parameters, step)

    @cached_property
    def states(self) -> torch.Tensor:
        return self._rod.rollout_on_device(*self._asked)

    @cached_property
    def tip_poses(self) -> torch.Tensor:
        if "states" not in vars(self):
            return self._rod.rollout_tips_on_device(*self._asked)
        states, parameters = self.states, self._asked[2]
        poses = self._rod.tip_poses_on_device(states.flatten(0, 1), parameters)
        return poses.view(*states.shape[:2], 3, 4)
