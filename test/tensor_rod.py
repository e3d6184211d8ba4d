"""The exact rod on the processor, its candidates as tensors: for tests without a GPU."""

from functools import cached_property

import numpy as np
import torch

from softcr_models.prediction import RodPrediction


class TensorRod(RodPrediction):
    """A RodPrediction with the method that a rod on a GPU has."""

    def on_device(self, period, step):
        return TensorRodModel(self, step)


class TensorRodModel:
    """A DeviceModel; the state when the optimised commands begin comes from the processor."""

    device = torch.device("cpu")

    def __init__(self, rod, period):
        self._rod, self._period = rod, period

    def shapes(self, horizon, longest_delay):
        return {"start": (self._rod.state_size,), "rod_parameters": (self._parameters,)}

    def told(self, moment):
        return {"start": moment.start_state(), "rod_parameters": moment.parameters}

    def begun(self, told):
        return told

    def futures(self, begun, readings):
        arrays = (begun["start"], readings, begun["rod_parameters"])
        return _Futures(self._rod, [each.numpy().astype(float) for each in arrays], self._period)

    @property
    def _parameters(self):
        return len(self._rod.parameter_names)


class _Futures:
    def __init__(self, rod, arrays, period):
        self._rod, self._arrays, self._period = rod, arrays, period

    @cached_property
    def states(self):
        return torch.as_tensor(self._rod.rollout(*self._arrays, self._period))

    @cached_property
    def tip_poses(self):
        if "states" not in vars(self):
            return torch.as_tensor(self._rod.rollout_tips(*self._arrays, self._period))
        states = self.states.flatten(0, 1).numpy()
        poses = self._rod.tip_poses(states, self._arrays[2][None])
        return torch.as_tensor(np.ascontiguousarray(poses)).view(*self.states.shape[:2], 3, 4)
