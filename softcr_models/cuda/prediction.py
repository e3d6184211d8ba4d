"""The exact rod as a model whose batches run on a GPU, whether arrays or tensors."""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch

from softcr_models.arguments import ArgumentError
from softcr_models.cuda.device_model import Moment
from softcr_models.cuda.launcher import Call, Kernels
from softcr_models.devices import resolve_device
from softcr_models.errors import UserError
from softcr_models.prediction import RodPrediction
from softcr_models.rod.cosserat_rod import CosseratRod, linearisations
from softcr_models.rod.stepper import LEAST_SUBSTEP, Run


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


LEAST_BATCH = 256
"""Candidates for which the arrays of the protocol's methods travel to the GPU and back; fewer are
computed on the processor, which is done sooner."""

QUICK_DOUBLINGS = 4
"""Of a step's sub-steps in single precision, before all of the candidate is done in double."""


def doublings_of(run: Run) -> int:
    """How often a run's sub-steps can be halved before they are shorter than the processor's."""
    return max(0, math.floor(math.log2(run.dt / run.substeps / LEAST_SUBSTEP)))


class CudaRodPrediction(RodPrediction):
    """The rod as a prediction model on the first GPU.

    What `RodPrediction` is on the processor: same equations, method, parameters and retries.

    The methods of the protocol take and return numpy arrays, and compute small batches on the
    processor. Those named `..._on_device` do the same with tensors that stay on the GPU: of
    `device` and `tensor_type`, contiguous. They only enqueue work on torch's current stream, and
    may be recorded in a CUDA graph.

    A step that does not hold is done again in finer sub-steps with fresh linearisations; where some
    of them in single precision do not help, all of the candidate is done in float64, its steps as
    fine as the processor's finest; what then does not hold is NaN. On the GPU they are not counted,
    because that would wait for it. A batch waits for the candidate that needs the finest steps.

    Its kernels are compiled when it is made, in seconds, unless they were before.

    Attributes:
        device: the GPU.
        tensor_type: torch's float type of rollouts and of all tensors: float32 if
            `single_precision`, else float64.
    """

    def __init__(
        self,
        rod: CosseratRod,
        substeps: int = 2,
        single_precision: bool = True,
    ) -> None:
        """A model of `rod` on the GPU.

        Args:
            rod: the rod.
            substeps: of a period of 70 Hz.
            single_precision: whether rollouts are computed and returned in float32.

        Raises:
            UserError: if there is no GPU that can be used, the line says what is missing; or the
                rod is none for a GPU.
        """
        resolve_device("cuda", "rod")
        super().__init__(rod, substeps, single_precision)
        self.device = torch.device("cuda", 0)
        self.tensor_type = torch.float32 if single_precision else torch.float64
        self._precise = Kernels(rod, np.float64, self.device)
        self._quick = Kernels(rod, np.float32, self.device) if single_precision else self._precise

    @property
    def on_gpu(self) -> bool:
        return True

    def on_device(self, period: float, step: float) -> DeviceRod:
        if not self.single_precision:
            raise UserError(
                "single_precision: false is not allowed where candidates are tensors on a GPU"
            )
        return DeviceRod(self, step)

    def rollout_on_device(
        self,
        states: torch.Tensor,
        inputs: torch.Tensor,
        parameters: torch.Tensor,
        dt: float,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """States after each step.

        Args:
            states: (B, state_size), or (1, state_size) for all.
            inputs: (B, T + 1, m) [Pa, N] at begin and end of the steps, linear in between.
            parameters: (B, P), or (1, P) for all.
            dt: length of a step [s].
            out: (B, T, state_size) to write to.

        Returns:
            `out`, or a new tensor.

        Raises:
            UserError: if a tensor has another shape, type, device or layout, or dt is not above 0.
                Signs of parameters are not looked at, because that would wait for the device.
        """
        return self._rolled("rollout_on_device", states, inputs, parameters, dt, False, out)

    def rollout_tips_on_device(
        self,
        states: torch.Tensor,
        inputs: torch.Tensor,
        parameters: torch.Tensor,
        dt: float,
        out: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """As `rollout_on_device`, but (B, T, 3, 4) tip poses as of `rollout_tips`."""
        return self._rolled("rollout_tips_on_device", states, inputs, parameters, dt, True, out)

    def tip_poses_on_device(
        self, states: torch.Tensor, parameters: torch.Tensor, out: torch.Tensor | None = None
    ) -> torch.Tensor:
        """(B, 3, 4) tip poses of states (B, state_size), parameters (B, P) or (1, P) for all.

        Raises:
            UserError: if a tensor has another shape, type, device or layout.
        """
        method = "tip_poses_on_device"
        self._check(method, states=states, parameters=parameters)
        self._arguments.require_observed(method, tuple(states.shape), tuple(parameters.shape))
        out = self._room(method, out, (len(states), 3, 4))
        self._enqueue_poses(states, parameters, out)
        return out

    def _rolled(self, method, states, inputs, parameters, dt, tips, out):
        """A rollout of tensors that are checked."""
        dt = self._arguments.step_length(method, dt)
        self._check(method, states=states, inputs=inputs, parameters=parameters)
        shapes = (tuple(each.shape) for each in (states, inputs, parameters))
        self._arguments.require_batch(method, *shapes)
        out = self._room(method, out, self._shape(inputs, tips))
        self._enqueue(states, inputs, parameters, dt, tips, out)
        return out

    def _advance(self, states, levels, parameters, dt, *, tips, precise):
        if len(levels) < LEAST_BATCH:
            # of one candidate the processor's float64 is done before its lanes have begun
            double = precise or len(levels) == 1
            rolled = super()._advance(states, levels, parameters, dt, tips=tips, precise=double)
            single = self.single_precision and not precise
            return rolled.astype(np.float32, copy=False) if single else rolled
        kind = torch.float64 if precise else self.tensor_type
        tensors = [self._tensor(values, kind) for values in (states, levels, parameters)]
        out = torch.empty(self._shape(levels, tips), dtype=kind, device=self.device)
        self._enqueue(*tensors, dt, tips, out)
        return out.cpu().numpy()

    def _tips(self, states, parameters):
        if len(states) < LEAST_BATCH:
            return super()._tips(states, parameters)
        kind = torch.float32 if states.dtype == np.float32 else torch.float64
        out = torch.empty((len(states), 3, 4), dtype=kind, device=self.device)
        self._enqueue_poses(self._tensor(states, kind), self._tensor(parameters, kind), out)
        return out.cpu().numpy()

    def _shape(self, levels, tips):
        batch, count, _ = levels.shape
        return (batch, count - 1, *((3, 4) if tips else (self.state_size,)))

    def _enqueue(self, states, inputs, parameters, dt, tips, out):
        """Enqueues rollout and retries; of what is checked."""
        batch, steps = out.shape[:2]
        if not batch:
            return
        pieces = linearisations(dt)
        run = self._run(dt / pieces)
        finest = doublings_of(run)
        quick = self._quick if out.dtype == torch.float32 else self._precise
        at_once = min(finest, QUICK_DOUBLINGS) if quick is not self._precise else finest
        call = Call.of(
            run.dt, run.limits[0], batch=batch, steps=steps, one_state=len(states) == 1,
            one_parameters=len(parameters) == 1, pieces=pieces, fresh=run.fresh, tips=tips,
            substeps=run.substeps, doublings=at_once,
        )  # fmt: skip
        tensors = states, inputs, parameters, out
        quick.rollout(*tensors, call)
        if at_once < finest:
            call.again, call.doublings = 1, finest
            self._precise.rollout(*tensors, call)

    def _enqueue_poses(self, states, parameters, out):
        call = Call(batch=len(states), one_state=0, one_parameters=len(parameters) == 1)
        if len(states):
            kernels = self._quick if out.dtype == torch.float32 else self._precise
            kernels.tips(states, parameters, out, call)

    def _tensor(self, values: Any, kind: torch.dtype) -> torch.Tensor:
        return torch.as_tensor(np.ascontiguousarray(values), device=self.device).to(kind)

    def _room(self, method, out, shape):
        """`out`, if it is of this shape, or a new tensor."""
        if out is None:
            return torch.empty(shape, dtype=self.tensor_type, device=self.device)
        self._check(method, out=out)
        if tuple(out.shape) != shape:
            raise ArgumentError(
                f"{self._arguments.owner}.{method}: out of shape {tuple(out.shape)}: allowed is "
                f"{shape}"
            )
        return out

    def _check(self, method: str, **tensors: torch.Tensor) -> None:
        """Refuses what a kernel must not be given."""
        for name, tensor in tensors.items():
            if (tensor.dtype, tensor.device) != (self.tensor_type, self.device):
                raise ArgumentError(
                    f"{self._arguments.owner}.{method}: {name} of type {tensor.dtype} on "
                    f"{tensor.device}: allowed is {self.tensor_type} on {self.device}"
                )
            if not tensor.is_contiguous():
                raise ArgumentError(
                    f"{self._arguments.owner}.{method}: {name} is not contiguous: allowed are "
                    "contiguous tensors"
                )
