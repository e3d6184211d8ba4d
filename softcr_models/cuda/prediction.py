"""The exact rod on CUDA as a prediction model, with arrays on the host or on the device."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import cuda
from numba.cuda.cudadrv.devicearray import is_cuda_ndarray

from softcr_models.arguments import ArgumentError
from softcr_models.cuda import kernels
from softcr_models.devices import resolve_device
from softcr_models.rod import stepper
from softcr_models.rod.cosserat_rod import CosseratRod, linearisations
from softcr_models.rod_model import RodModel

# numba finds a thousand candidates few for a GPU, and would say so
warnings.filterwarnings("ignore", "Grid size .* low occupancy")

# One warp: a thousand candidates are few for a GPU, and small blocks spread them over its
# multiprocessors.
THREADS_PER_BLOCK = 32
STATE, TIPS = 0, 1  # what a kernel writes after each step


class CudaRodPrediction(RodModel):
    """The rod as a prediction model on the first GPU, a thread per candidate.

    What `RodPrediction` is on the processor: same equations, method, parameters and retries.

    The methods of the protocol take and return numpy arrays. Those named `..._on_device` do the
    same with arrays that stay on the device: anything with a `__cuda_array_interface__` (CUDA
    tensors of torch, CuPy's and numba's arrays), contiguous, of type `dtype`. They only enqueue
    work on `stream` (a CUDA stream's handle, as torch.cuda.current_stream().cuda_stream; 0 is the
    default stream), and given `out` they allocate nothing.

    Candidates whose result is not finite are done again in finer steps, with the factors of the
    processor's retries, in float64 and with fresh linearisations; what is still not finite is NaN.
    They are not counted, because that would wait for the device.
    A candidate that is well leaves a retry at once, but a batch waits for the one that needs them:
    2 + 4 + 8 + 16 times its rollout. Where a tick must not, give fewer `retry_factors`, or none.

    A kernel is compiled at its first call (seconds), see `warm_up`, and serves this rod only.

    Attributes:
        rod, substeps, single_precision: as of `RodPrediction`.
        retry_factors: by which the number of sub-steps is multiplied, one retry each.
        dtype: float type of rollouts and of all arrays on the device: np.float32 if
            `single_precision`, else np.float64.
    """

    def __init__(
        self,
        rod: CosseratRod,
        substeps: int = 2,
        single_precision: bool = True,
        retry_factors: Sequence[int] = stepper.RETRY_FACTORS,
    ) -> None:
        """A model of `rod` on the GPU.

        Raises:
            UserError: if there is no GPU that can be used; the line says what is missing.
        """
        resolve_device("cuda", "numba")
        super().__init__(rod)
        self.substeps = substeps
        self.single_precision = single_precision
        self.retry_factors = tuple(retry_factors)
        self.dtype: type[np.floating] = np.float32 if single_precision else np.float64
        self._attempt = cuda.to_device(np.array([substeps]))
        self._retries = cuda.to_device(substeps * np.array(self.retry_factors, dtype=int))
        self._rollout, self._tip_poses = (
            {dtype: cuda.jit(text(rod, dtype)) for dtype in (np.float32, np.float64)}
            for text in (kernels.rollout_text, kernels.tip_text)
        )

    def rollout_on_device(
        self,
        states: Any,
        inputs: Any,
        parameters: Any,
        dt: float,
        out: Any = None,
        stream: int = 0,
    ) -> Any:
        """States after each step, all arrays on the device.

        Args:
            states: (B, state_size), or (1, state_size) for all.
            inputs: (B, T + 1, m) [Pa, N] at begin and end of the steps, linear in between.
            parameters: (B, P), or (1, P) for all.
            dt: length of a step [s].
            out: (B, T, state_size) to write to; None makes a numba array.
            stream: handle of the CUDA stream the work is put on.

        Returns:
            `out`.

        Raises:
            UserError: if an array has another shape, type or layout, or dt is not above 0. Signs of
                parameters are not looked at, because that would wait for the device.
        """
        arrays = (states, inputs, parameters)
        return self._from_device("rollout_on_device", arrays, dt, STATE, out, stream)

    def rollout_tips_on_device(
        self,
        states: Any,
        inputs: Any,
        parameters: Any,
        dt: float,
        out: Any = None,
        stream: int = 0,
    ) -> Any:
        """As `rollout_on_device`, but (B, T, 3, 4) tip poses as of `rollout_tips`."""
        arrays = (states, inputs, parameters)
        return self._from_device("rollout_tips_on_device", arrays, dt, TIPS, out, stream)

    def tip_poses_on_device(
        self, states: Any, parameters: Any, out: Any = None, stream: int = 0
    ) -> Any:
        """(B, 3, 4) tip poses of states (B, state_size), parameters (B, P) or (1, P) for all.

        Raises:
            UserError: if an array has another shape, type or layout.
        """
        method = "tip_poses_on_device"
        rows = self._on_device(method, "states", states)
        numbers = self._on_device(method, "parameters", parameters)
        self._arguments.require_observed(method, tuple(rows.shape), tuple(numbers.shape))
        out = self._room(method, out, (rows.shape[0], 3, 4))
        self._enqueue_poses(rows, numbers, self.dtype, out, stream)
        return out

    def _advance(self, states, levels, parameters, dt, *, tips, precise):
        dtype = np.float64 if precise else self.dtype
        arrays = [_to_device(values, dtype) for values in (states, levels, parameters)]
        shape = self._shape(levels, TIPS if tips else STATE)
        out = cuda.device_array(shape, dtype)
        self._enqueue(arrays, dt, dtype, TIPS if tips else STATE, out)
        return out.copy_to_host()

    def _tips(self, states, parameters):
        dtype = states.dtype.type
        out = cuda.device_array((len(states), 3, 4), dtype)
        arrays = (_to_device(values, dtype) for values in (states, parameters))
        self._enqueue_poses(*arrays, dtype, out)
        return out.copy_to_host()

    def _from_device(self, method, arrays, dt, tips, out, stream):
        """A rollout of arrays on the device, which are checked."""
        dt = self._arguments.step_length(method, dt)
        named = zip(("states", "inputs", "parameters"), arrays, strict=True)
        arrays = [self._on_device(method, name, values) for name, values in named]
        self._arguments.require_batch(method, *(tuple(array.shape) for array in arrays))
        out = self._room(method, out, self._shape(arrays[1], tips))
        self._enqueue(arrays, dt, self.dtype, tips, out, stream)
        return out

    def _shape(self, levels, tips):
        batch, count, _ = levels.shape
        return (batch, count - 1, *((3, 4) if tips else (self.state_size,)))

    def _enqueue(self, arrays, dt, dtype, tips, out, stream=0):
        """Enqueues rollout and retries; `tips` is STATE or TIPS."""
        batch, steps = out.shape[:2]
        rows = _seen(out).reshape(batch, steps, math.prod(out.shape[2:]))
        pieces, launch = linearisations(dt), _launch(batch, stream)
        if batch:
            compute, fresh, again = self._rollout[dtype][launch], 0, 0
            compute(*arrays, pieces, self._attempt, fresh, tips, again, dt, rows)
            if self.retry_factors:
                compute, fresh, again = self._rollout[np.float64][launch], 1, 1
                compute(*arrays, pieces, self._retries, fresh, tips, again, dt, rows)

    def _enqueue_poses(self, states, parameters, dtype, out, stream=0):
        batch = out.shape[0]
        if batch:
            compute = self._tip_poses[dtype][_launch(batch, stream)]
            compute(states, parameters, _seen(out).reshape(batch, 12))

    def _room(self, method, out, shape):
        """`out`, if it is of this shape, or a new array."""
        if out is None:
            return cuda.device_array(shape, self.dtype)
        found = tuple(self._on_device(method, "out", out).shape)
        if found != shape:
            raise ArgumentError(
                f"{self._arguments.owner}.{method}: out of shape {found}: allowed is {shape}"
            )
        return out

    def _on_device(self, method, name, values):
        """The array as numba sees it, of the model's type and contiguous."""
        array = _seen(values)
        if array.dtype != self.dtype or not array.flags["C_CONTIGUOUS"]:
            layout = "contiguous" if array.flags["C_CONTIGUOUS"] else "not contiguous"
            raise ArgumentError(
                f"{self._arguments.owner}.{method}: {name} on the device of type {array.dtype}, "
                f"{layout}: allowed is {np.dtype(self.dtype)}, contiguous"
            )
        return array


def _to_device(values, dtype):
    return cuda.to_device(np.ascontiguousarray(values, dtype))


def _launch(batch, stream):
    """Grid, block and stream of a kernel with a thread for each of `batch`."""
    blocks = (batch + THREADS_PER_BLOCK - 1) // THREADS_PER_BLOCK
    return blocks, THREADS_PER_BLOCK, cuda.external_stream(stream) if stream else 0


def _seen(values):
    """The array as numba sees it."""
    return values if is_cuda_ndarray(values) else cuda.as_cuda_array(values, sync=False)
