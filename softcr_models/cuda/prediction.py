"""The exact rod on CUDA as a prediction model, with arrays on the host or on the device."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import cuda
from numba.cuda.cudadrv.devicearray import is_cuda_ndarray

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
PARAMETERS = len(stepper.PARAMETERS)
STATE, TIPS = 0, 1  # what a kernel writes after each step


class CudaRodPrediction(RodModel):
    """The rod as a prediction model on the first GPU, a thread per candidate.

    What `RodPrediction` is on the processor: same equations, method, parameters and retries.

    The methods of the protocol take and return numpy arrays. Those named `..._on_device` do the
    same with arrays that stay on the device: anything with a `__cuda_array_interface__` (CUDA
    tensors of torch, CuPy's and numba's arrays), contiguous, of type `dtype`. They only enqueue
    work on `stream` (a CUDA stream's handle, as torch.cuda.current_stream().cuda_stream; 0 is the
    default stream), and given `out` they allocate nothing.

    Candidates that leave the numbers are done again in finer steps, with the factors of the
    processor's retries, in float64 and with fresh linearisations; what is still not finite is NaN.
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
            {dtype: cuda.jit(text(rod.body, rod.grid, dtype)) for dtype in (np.float32, np.float64)}
            for text in (kernels.rollout_text, kernels.tip_text)
        )

    def tip_poses(self, states: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """See RodModel."""
        dtype = states.dtype.type
        poses = self._pose(_to_device(states, dtype), _to_device(parameters, dtype), dtype)
        return poses.copy_to_host()

    def rollout_on_device(
        self,
        states: Any,
        pressures: Any,
        parameters: Any,
        dt: float,
        out: Any = None,
        stream: int = 0,
    ) -> Any:
        """States after each step, all arrays on the device.

        Args:
            states: (B, state_size), or (1, state_size) for all.
            pressures: (B, T + 1, m) [Pa] at begin and end of the steps, linear in between.
            parameters: (B, 3), or (1, 3) for all.
            dt: length of a step [s].
            out: (B, T, state_size) to write to; None makes a numba array.
            stream: handle of the CUDA stream the work is put on.

        Returns:
            `out`.

        Raises:
            ValueError: if an array has another shape, type or layout.
        """
        inputs = (states, pressures, parameters)
        return self._enqueue(inputs, dt, self.dtype, STATE, out, stream)

    def rollout_tips_on_device(
        self,
        states: Any,
        pressures: Any,
        parameters: Any,
        dt: float,
        out: Any = None,
        stream: int = 0,
    ) -> Any:
        """As `rollout_on_device`, but (B, T, 3, 4) tip poses as of `rollout_tips`."""
        inputs = (states, pressures, parameters)
        return self._enqueue(inputs, dt, self.dtype, TIPS, out, stream)

    def tip_poses_on_device(
        self, states: Any, parameters: Any, out: Any = None, stream: int = 0
    ) -> Any:
        """(B, 3, 4) tip poses of states (B, state_size), parameters (B, 3) or (1, 3) for all.

        Raises:
            ValueError: if an array has another shape, type or layout.
        """
        return self._pose(states, parameters, self.dtype, out, stream)

    def _advance(self, states, levels, parameters, dt, *, tips, precise):
        dtype = np.float64 if precise else self.dtype
        inputs = [_to_device(values, dtype) for values in (states, levels, parameters)]
        return self._enqueue(inputs, dt, dtype, TIPS if tips else STATE).copy_to_host()

    def _enqueue(self, inputs, dt, dtype, tips, out=None, stream=0):
        """Enqueues rollout and retries; `tips` is STATE or TIPS."""
        states, pressures, parameters = inputs
        batch, levels = pressures.shape[:2]
        steps, size, row = levels - 1, self.state_size, (3, 4) if tips else (self.state_size,)
        if out is None:
            out = cuda.device_array((batch, steps, *row), dtype)
        arrays = (
            _checked("states", states, dtype, (1, size), (batch, size)),
            _checked("pressures", pressures, dtype, (batch, levels, self.input_size)),
            _checked("parameters", parameters, dtype, (1, PARAMETERS), (batch, PARAMETERS)),
        )
        rows = _checked("out", out, dtype, (batch, steps, *row))
        rows = rows.reshape(batch, steps, math.prod(row))
        dt, pieces, launch = float(dt), linearisations(dt), _launch(batch, stream)
        if batch and steps:
            compute, fresh, again = self._rollout[dtype][launch], 0, 0
            compute(*arrays, pieces, self._attempt, fresh, tips, again, dt, rows)
            if self.retry_factors:
                compute, fresh, again = self._rollout[np.float64][launch], 1, 1
                compute(*arrays, pieces, self._retries, fresh, tips, again, dt, rows)
        return out

    def _pose(self, states, parameters, dtype, out=None, stream=0):
        batch = states.shape[0]
        if out is None:
            out = cuda.device_array((batch, 3, 4), dtype)
        arrays = (
            _checked("states", states, dtype, (batch, self.state_size)),
            _checked("parameters", parameters, dtype, (1, PARAMETERS), (batch, PARAMETERS)),
        )
        rows = _checked("out", out, dtype, (batch, 3, 4)).reshape(batch, 12)
        if batch:
            self._tip_poses[dtype][_launch(batch, stream)](*arrays, rows)
        return out


def _to_device(values, dtype):
    return cuda.to_device(np.ascontiguousarray(values, dtype))


def _launch(batch, stream):
    """Grid, block and stream of a kernel with a thread for each of `batch`."""
    blocks = (batch + THREADS_PER_BLOCK - 1) // THREADS_PER_BLOCK
    return blocks, THREADS_PER_BLOCK, cuda.external_stream(stream) if stream else 0


def _checked(name, values, dtype, *shapes):
    """The array as numba sees it: a kernel believes what it is told."""
    array = values if is_cuda_ndarray(values) else cuda.as_cuda_array(values, sync=False)
    found = tuple(array.shape)
    if found not in shapes or array.dtype != dtype or not array.flags["C_CONTIGUOUS"]:
        allowed = " or ".join(map(str, shapes))
        raise ValueError(
            f"{name}: {array.dtype} of shape {found} on the device; "
            f"allowed is contiguous {np.dtype(dtype)} of shape {allowed}"
        )
    return array
